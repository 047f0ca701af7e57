// A File over a device that grants everything: what the kernel's role itself checks.
#include "kernel/file.h"

#include <gtest/gtest.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel/ib.h"
#include "prm/cq.h"
#include "prm/mkey.h"
#include "tests/unit/kernel/fake_device.h"
#include "tests/unit/kernel/file_calls.h"
#include "uverbs/bundle.h"

namespace verbena::kernel {
namespace {

using uverbs::Bundle;

class FileTest : public FileCalls {
 protected:
  void SetUp() override {
    auto node = Node::adopt(std::make_unique<FakeDevice>(log_), device::Profile{}, 0);
    ASSERT_TRUE(node) << node.error().reason;
    open(*node);
  }
  int reg_mr(std::uint32_t pd_handle, std::uint64_t start, std::uint64_t length, std::uint64_t iova,
             std::uint32_t access, ib_uverbs_reg_mr_resp* resp) {
    ib_uverbs_reg_mr cmd{};
    cmd.pd_handle = pd_handle;
    cmd.start = start;
    cmd.length = length;
    cmd.hca_va = iova;
    cmd.access_flags = access;
    return write(IB_USER_VERBS_CMD_REG_MR, cmd, resp);
  }
  int create_cq(std::uint32_t cqe, std::uint32_t vector, std::uint32_t* handle, std::uint32_t* got,
                mlx5_ib_create_cq driver = {.cqe_size = 64}) {
    driver.buf_addr = reinterpret_cast<std::uintptr_t>(buffer_);
    driver.db_addr = reinterpret_cast<std::uintptr_t>(doorbell_);
    driver.flags = MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX;
    driver.uar_page_index = 1;
    Bundle bundle(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
    auto slot = bundle.out_object(UVERBS_ATTR_CREATE_CQ_HANDLE);
    bundle.in_u32(UVERBS_ATTR_CREATE_CQ_CQE, cqe);
    bundle.in_u64(UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 0x1234);
    bundle.in_u32(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, vector);
    bundle.out_struct(UVERBS_ATTR_CREATE_CQ_RESP_CQE, *got);
    bundle.in_struct(UVERBS_ATTR_UHW_IN, driver);
    int error = run(bundle);
    *handle = bundle.object(slot);
    return error;
  }

  FakeDevice::Log log_;
  alignas(4096) std::byte buffer_[16384]{};
  alignas(64) std::uint32_t doorbell_[4]{};
};

TEST_F(FileTest, ContextAnswersWhatProvidersNeed) {
  EXPECT_EQ(context_.cqe_version, 1);
  EXPECT_EQ(context_.tot_bfregs, 0u);
  EXPECT_EQ(context_.log_uar_size, 12u);
  EXPECT_EQ(context_.bf_reg_size, 512u);
  EXPECT_EQ(context_.max_send_wqebb, 1u << 15);
}

TEST_F(FileTest, UnknownRequestsHaveTheKernelsErrors) {
  Bundle object(0x7777, 0);
  EXPECT_EQ(run(object), EPROTONOSUPPORT);
  Bundle extra(UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY);
  extra.in_object(UVERBS_ATTR_DESTROY_PD_HANDLE, 0);
  extra.in_u64(0x55, 1);
  EXPECT_EQ(run(extra), EPROTONOSUPPORT);
  Bundle missing(UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY);
  EXPECT_EQ(run(missing), EINVAL);
  EXPECT_EQ(write(IB_USER_VERBS_CMD_POST_SEND, ib_uverbs_alloc_pd{}), EOPNOTSUPP);
  EXPECT_EQ(write(IB_USER_VERBS_CMD_ALLOC_PD, ib_uverbs_alloc_pd{}), ENOSPC);
}

TEST_F(FileTest, HandlesAreCheckedForClassAndUse) {
  const std::uint32_t handle = pd();
  const auto here = reinterpret_cast<std::uintptr_t>(buffer_);
  ib_uverbs_reg_mr_resp mr{};
  ASSERT_EQ(reg_mr(handle, here, 4096, here, Access::local_write, &mr), 0);
  EXPECT_EQ(write(IB_USER_VERBS_CMD_DEALLOC_PD, ib_uverbs_dealloc_pd{handle}), EBUSY);
  EXPECT_EQ(write(IB_USER_VERBS_CMD_DEALLOC_PD, ib_uverbs_dealloc_pd{mr.mr_handle}), EINVAL);
  EXPECT_EQ(write(IB_USER_VERBS_CMD_DEALLOC_PD, ib_uverbs_dealloc_pd{999}), ENOENT);
  EXPECT_EQ(write(IB_USER_VERBS_CMD_DEREG_MR, ib_uverbs_dereg_mr{mr.mr_handle}), 0);
  EXPECT_EQ(write(IB_USER_VERBS_CMD_DEALLOC_PD, ib_uverbs_dealloc_pd{handle}), 0);
}

TEST_F(FileTest, RegistrationChecksAccessAndMemory) {
  const std::uint32_t handle = pd();
  const auto here = reinterpret_cast<std::uintptr_t>(buffer_);
  ib_uverbs_reg_mr_resp mr{};
  EXPECT_EQ(reg_mr(handle, here, 64, here, Access::remote_write, &mr), EINVAL);
  EXPECT_EQ(reg_mr(handle, here, 64, here, Access::remote_atomic, &mr), EINVAL);
  EXPECT_EQ(reg_mr(handle, here, 64, here, 1u << 12, &mr), EINVAL);
  EXPECT_EQ(reg_mr(handle, here, 64, here + 1, 0, &mr), EINVAL) << "offsets into the page differ";
  EXPECT_EQ(reg_mr(handle, here, ~std::uint64_t{0} - 16, here, 0, &mr), EINVAL);
  EXPECT_EQ(reg_mr(handle, 0x1000, 64, 0x1000, 0, &mr), EFAULT);
  void* read_only = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto there = reinterpret_cast<std::uintptr_t>(read_only);
  EXPECT_EQ(reg_mr(handle, there, 64, there, Access::local_write, &mr), EFAULT);
  EXPECT_EQ(reg_mr(handle, there, 64, there, 0, &mr), 0);
  munmap(read_only, 4096);
}

TEST_F(FileTest, AnotherIovaBecomesAnIndirectKey) {
  ib_uverbs_reg_mr_resp mr{};
  const auto here = reinterpret_cast<std::uintptr_t>(buffer_);
  ASSERT_EQ(reg_mr(pd(), here, 4096, 0x10000000, Access::local_write, &mr), 0);
  EXPECT_EQ(log_.count(prm::Opcode::create_mkey), 2u);
  auto mkc = prm::ConstView<prm::CreateMkeyIn>(log_.last(prm::Opcode::create_mkey).data())
                 .sub<prm::CreateMkeyIn::memory_key_mkey_entry>();
  EXPECT_EQ(prm::mkey_access_mode(mkc), prm::MkeyAccessMode::klms);
  EXPECT_EQ(mkc.get<prm::Mkc::start_addr>(), 0x10000000u);
  log_.refuse[prm::Opcode::create_mkey] = prm::Status::exceed_lim;
  EXPECT_EQ(reg_mr(pd(), here, 4096, here, 0, &mr), ENOMEM);
}

TEST_F(FileTest, CompletionQueueSizesAndVectors) {
  std::uint32_t handle = 0, cqe = 0;
  EXPECT_EQ(create_cq(0, 0, &handle, &cqe), EINVAL);
  EXPECT_EQ(create_cq(1u << 22, 0, &handle, &cqe), EINVAL);
  EXPECT_EQ(create_cq(100, 1000, &handle, &cqe), EINVAL);
  ASSERT_EQ(create_cq(100, 0, &handle, &cqe), 0);
  EXPECT_EQ(cqe, 127u);
  ib_uverbs_destroy_cq_resp resp{};
  Bundle destroy(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY);
  destroy.in_object(UVERBS_ATTR_DESTROY_CQ_HANDLE, handle);
  destroy.out_struct(UVERBS_ATTR_DESTROY_CQ_RESP, resp);
  EXPECT_EQ(run(destroy), 0);
  EXPECT_EQ(resp.comp_events_reported, 0u);
}

TEST_F(FileTest, CompressedEntries) {
  std::uint32_t handle = 0, cqe = 0;
  const auto create = [&](std::uint8_t format, std::uint8_t enable = 1, std::uint32_t size = 64) {
    return create_cq(10, 0, &handle, &cqe, {.cqe_size = size, .cqe_comp_en = enable, .cqe_comp_res_format = format});
  };
  const auto asked = [&] {
    return prm::ConstView<prm::CreateCqIn>(log_.last(prm::Opcode::create_cq).data()).sub<prm::CreateCqIn::cq_context>();
  };
  ASSERT_EQ(create(MLX5_IB_CQE_RES_FORMAT_CSUM), 0);
  EXPECT_EQ(asked().get<prm::Cqc::cqe_comp_en>(), 1u);
  EXPECT_EQ(asked().get<prm::Cqc::mini_cqe_res_format>(), prm::MiniCqeFormat::checksum);
  ASSERT_EQ(create(MLX5_IB_CQE_RES_FORMAT_HASH), 0);
  EXPECT_EQ(asked().get<prm::Cqc::mini_cqe_res_format>(), prm::MiniCqeFormat::hash);
  EXPECT_EQ(create(MLX5_IB_CQE_RES_FORMAT_CSUM_STRIDX), EOPNOTSUPP) << "the device has no stride index";
  EXPECT_EQ(create(MLX5_IB_CQE_RES_FORMAT_HASH, 1, 128), EOPNOTSUPP) << "the device compresses small entries only";
  EXPECT_EQ(create(0), EINVAL);
  EXPECT_EQ(create(MLX5_IB_CQE_RES_FORMAT_HASH | MLX5_IB_CQE_RES_FORMAT_CSUM), EINVAL);
  ASSERT_EQ(create(0, 2), 0) << "only 1 asks for it";
  EXPECT_EQ(asked().get<prm::Cqc::cqe_comp_en>(), 0u);
}

TEST_F(FileTest, UarPagesMapAndTheClockPageIsReadOnly) {
  std::uint64_t offset = 0;
  std::uint32_t length = 0, page = 0;
  Bundle alloc(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC);
  auto slot = alloc.out_object(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE);
  alloc.in_const(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, 0);
  alloc.out_struct(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, offset);
  alloc.out_struct(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, length);
  alloc.out_struct(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, page);
  ASSERT_EQ(run(alloc), 0);
  EXPECT_NE(page, 0u);
  const int rw = PROT_READ | PROT_WRITE;
  void* uar = file_->mmap(nullptr, length, rw, MAP_SHARED, static_cast<std::int64_t>(offset));
  ASSERT_NE(uar, MAP_FAILED);
  static_cast<char*>(uar)[0x800] = 1;
  munmap(uar, length);
  EXPECT_EQ(file_->mmap(nullptr, length, rw, MAP_SHARED, static_cast<std::int64_t>(offset + 4096)), MAP_FAILED);
  const std::int64_t clock = std::int64_t{MLX5_IB_MMAP_CLOCK_INFO} << 20;
  EXPECT_EQ(file_->mmap(nullptr, 4096, rw, MAP_SHARED, clock), MAP_FAILED);
  EXPECT_EQ(errno, EPERM);
  void* info = file_->mmap(nullptr, 4096, PROT_READ, MAP_SHARED, clock);
  ASSERT_NE(info, MAP_FAILED);
  EXPECT_EQ(static_cast<mlx5_ib_clock_info*>(info)->mult, 1u);
  munmap(info, 4096);
  Bundle destroy(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY);
  destroy.in_object(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, alloc.object(slot));
  EXPECT_EQ(run(destroy), 0);
}

// The driver has no DEVX objects over a device without user contexts, whatever the request.
TEST_F(FileTest, WithoutUserContextsThereIsNoDevx) {
  TearDown();
  log_.log_max_uctx = 0;
  SetUp();
  alignas(8) std::byte in[64]{}, out[prm::QueryHcaCapOut::size]{};
  for (const unsigned opcode : {0x100u, 0x752u, 0x762u, 0x80du}) {
    prm::store_be32(in, opcode << 16);
    Bundle other(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER);
    other.in(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, in, sizeof in);
    other.out(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, out, sizeof out);
    EXPECT_EQ(run(other), EPROTONOSUPPORT) << std::hex << opcode;
  }
  for (const unsigned object : {MLX5_IB_OBJECT_DEVX, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_OBJECT_DEVX_UMEM,
                                MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD, MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD}) {
    Bundle any(static_cast<std::uint16_t>(object), MLX5_IB_METHOD_DEVX_OTHER);
    EXPECT_EQ(run(any), EPROTONOSUPPORT) << object;
  }
}

// Without a user context of the device (the one here was opened without DEVX), what anybody may know is told, and no more.
TEST_F(FileTest, WithoutDevxNoCommandGoesThrough) {
  alignas(8) std::byte in[64]{}, out[prm::QueryHcaCapOut::size]{};
  const auto command = [&](Bundle& bundle, std::uint16_t in_id, std::uint16_t out_id) {
    bundle.in(in_id, in, sizeof in);
    bundle.out(out_id, out, sizeof out);
    return run(bundle);
  };
  const std::uint32_t handle = pd();
  for (unsigned opcode = 0; opcode < 0x1000; ++opcode) {
    prm::store_be32(in, opcode << 16);
    Bundle other(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER);
    const bool anybody = opcode == 0x100 || opcode == 0x740 || opcode == 0x752 || opcode == 0x762;
    EXPECT_EQ(command(other, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT), anybody ? 0 : EINVAL)
        << std::hex << opcode;
    Bundle create(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE);
    create.out_object(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE);
    EXPECT_EQ(command(create, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT), EINVAL);
    Bundle query(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY);
    query.in_object(MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, handle);
    EXPECT_EQ(command(query, MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN, MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT), EINVAL);
    Bundle modify(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY);
    modify.in_object(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, handle);
    EXPECT_EQ(command(modify, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT), EINVAL);
  }
}

TEST_F(FileTest, GidQueriesKnowEmptyEntries) {
  ib_uverbs_gid_entry entry{};
  auto query = [&](std::uint64_t port, std::uint64_t index) {
    Bundle bundle(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY);
    bundle.in_const(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, port);
    bundle.in_const(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, index);
    bundle.in_u32(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 0);
    bundle.out_struct(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, entry);
    return run(bundle);
  };
  EXPECT_EQ(query(1, 1), 0);
  EXPECT_EQ(entry.gid_type, std::uint32_t{IB_UVERBS_GID_TYPE_ROCE_V2});
  EXPECT_EQ(query(1, 2), ENODATA);
  EXPECT_EQ(query(1, 4000), EINVAL);
  EXPECT_EQ(query(2, 0), EINVAL);
}

TEST(EventPipe, UnreadRecordsOfADeadObjectAreTakenBack) {
  auto pipe = EventPipe::create(sizeof(ib_uverbs_comp_event_desc));
  ASSERT_TRUE(pipe);
  const int fd = pipe->take_user_fd();
  for (std::uint64_t element : {7, 8, 7, 9}) {
    ib_uverbs_comp_event_desc record{element};
    pipe->post(&record);
  }
  std::uint64_t first = 0;
  ASSERT_EQ(read(fd, &first, sizeof first), 8);
  EXPECT_EQ(first, 7u);
  EXPECT_EQ(pipe->retract(7), 1u) << "one was read, one was not";
  std::uint64_t rest[2]{};
  ASSERT_EQ(read(fd, rest, sizeof rest), 16);
  EXPECT_EQ(rest[0], 8u);
  EXPECT_EQ(rest[1], 9u);
  close(fd);
}

}  // namespace
}  // namespace verbena::kernel
