// REREG_MR on the device itself: what keeps its key, and what the key is afterwards.
#include <gtest/gtest.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <filesystem>

#include "kernel/command.h"
#include "kernel/file.h"
#include "kernel/ib.h"
#include "prm/mkey.h"
#include "uverbs/bundle.h"

namespace verbena::kernel {
namespace {

using uverbs::Bundle;
constexpr std::size_t kBytes = 8192;

class ReregTest : public testing::Test {
 protected:
  void SetUp() override {
    char dir[] = "/dev/shm/verbena-test-XXXXXX";
    ASSERT_NE(mkdtemp(dir), nullptr);
    dir_ = dir;
    setenv("VERBENA_RUN_DIR", dir, 1);
    auto node = Node::create(device::Profile{}, "test", 0);
    ASSERT_TRUE(node) << node.error().reason;
    node_ = *node;
    file_ = File::open(node_);
    mlx5_ib_alloc_ucontext_req_v2 driver{};
    driver.total_num_bfregs = 16;
    driver.num_low_latency_bfregs = 4;
    driver.max_cqe_version = 1;
    driver.lib_caps = MLX5_LIB_CAP_4K_UAR | MLX5_LIB_CAP_DYN_UAR;
    Bundle get(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
    std::uint32_t vectors = 0;
    mlx5_ib_alloc_ucontext_resp context{};
    get.out_struct(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, vectors);
    get.in_struct(UVERBS_ATTR_UHW_IN, driver);
    get.out_struct(UVERBS_ATTR_UHW_OUT, context);
    ASSERT_EQ(file_->ioctl(get.finish(kDriverId)), 0);
    memory_ = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory_, MAP_FAILED);
  }
  void TearDown() override {
    if (file_) file_->release();
    file_.reset();
    node_.reset();
    munmap(memory_, kBytes);
    std::filesystem::remove_all(dir_);
  }

  template <class Cmd, class Resp>
  int write(std::uint32_t command, const Cmd& cmd, Resp* resp) {
    Bundle bundle(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
    bundle.in_struct(UVERBS_ATTR_CORE_IN, cmd);
    if (resp) bundle.out(UVERBS_ATTR_CORE_OUT, resp, sizeof *resp);
    bundle.in_const(UVERBS_ATTR_WRITE_CMD, command);
    return file_->ioctl(bundle.finish(kDriverId));
  }
  template <class Cmd>
  int write(std::uint32_t command, const Cmd& cmd) {
    return write<Cmd, int>(command, cmd, nullptr);
  }
  std::uint32_t pd() {
    ib_uverbs_alloc_pd_resp resp{};
    EXPECT_EQ(write(IB_USER_VERBS_CMD_ALLOC_PD, ib_uverbs_alloc_pd{}, &resp), 0);
    return resp.pd_handle;
  }
  ib_uverbs_reg_mr_resp mr(std::uint32_t pd_handle, std::uint64_t shift = 0) {
    ib_uverbs_reg_mr cmd{};
    cmd.pd_handle = pd_handle;
    cmd.start = reinterpret_cast<std::uintptr_t>(memory_);
    cmd.hca_va = cmd.start + shift;
    cmd.length = kBytes;
    cmd.access_flags = Access::local_write;
    ib_uverbs_reg_mr_resp resp{};
    EXPECT_EQ(write(IB_USER_VERBS_CMD_REG_MR, cmd, &resp), 0);
    return resp;
  }
  // The key after the change, or 0.
  std::uint32_t rereg(std::uint32_t handle, std::uint32_t flags, std::uint32_t access, std::uint32_t pd_handle = 0) {
    ib_uverbs_rereg_mr cmd{};
    cmd.mr_handle = handle;
    cmd.flags = flags;
    cmd.access_flags = access;
    cmd.pd_handle = pd_handle;
    ib_uverbs_rereg_mr_resp resp{};
    error_ = write(IB_USER_VERBS_CMD_REREG_MR, cmd, &resp);
    return error_ ? 0 : resp.rkey;
  }
  prm::Box<prm::Mkc> context_of(std::uint32_t key) {
    Command<prm::QueryMkeyIn, prm::QueryMkeyOut> query(prm::Opcode::query_mkey);
    query.in().set<prm::QueryMkeyIn::mkey_index>(key >> 8);
    EXPECT_EQ(query.run(node_->device()), 0);
    prm::Box<prm::Mkc> mkc;
    const auto from = query.out().sub<prm::QueryMkeyOut::memory_key_mkey_entry>();
    std::copy_n(from.data(), prm::Mkc::size, mkc.data());
    return mkc;
  }

  std::string dir_;
  std::shared_ptr<Node> node_;
  std::shared_ptr<File> file_;
  void* memory_ = nullptr;
  int error_ = 0;
};

TEST_F(ReregTest, RightsChangeInPlace) {
  for (const std::uint64_t shift : {std::uint64_t{0}, std::uint64_t{1} << 40}) {
    const auto region = mr(pd(), shift);
    const std::uint32_t wide = Access::local_write | Access::remote_write | Access::remote_read;
    EXPECT_EQ(rereg(region.mr_handle, Rereg::access, wide), region.rkey) << error_;
    auto mkc = context_of(region.rkey);
    EXPECT_TRUE(mkc.get<prm::Mkc::rw>() && mkc.get<prm::Mkc::rr>() && mkc.get<prm::Mkc::lw>());
    EXPECT_EQ(mkc.get<prm::Mkc::len>(), kBytes);
    EXPECT_EQ(rereg(region.mr_handle, Rereg::access, 0), region.rkey) << error_;
    mkc = context_of(region.rkey);
    EXPECT_FALSE(mkc.get<prm::Mkc::rw>() || mkc.get<prm::Mkc::rr>() || mkc.get<prm::Mkc::lw>());
    EXPECT_TRUE(mkc.get<prm::Mkc::lr>());
    EXPECT_FALSE(mkc.get<prm::Mkc::relaxed_ordering_write>());
    EXPECT_EQ(rereg(region.mr_handle, Rereg::access, Access::relaxed_ordering), region.rkey) << error_;
    EXPECT_TRUE(context_of(region.rkey).get<prm::Mkc::relaxed_ordering_write>());
  }
}

TEST_F(ReregTest, RightToWriteNeedsWritableMemory) {
  const auto region = mr(pd());
  EXPECT_EQ(rereg(region.mr_handle, Rereg::access, 0), region.rkey);
  ASSERT_EQ(mprotect(memory_, kBytes, PROT_READ), 0);
  EXPECT_EQ(rereg(region.mr_handle, Rereg::access, Access::local_write), 0u);
  EXPECT_EQ(error_, EFAULT);
}

TEST_F(ReregTest, DomainChangesInPlaceAndTheOldOneIsFree) {
  const std::uint32_t first = pd(), second = pd();
  const auto region = mr(first);
  const auto before = context_of(region.rkey).get<prm::Mkc::pd>();
  EXPECT_EQ(rereg(region.mr_handle, Rereg::pd, 0, second), region.rkey) << error_;
  EXPECT_NE(context_of(region.rkey).get<prm::Mkc::pd>(), before);
  EXPECT_EQ(write(IB_USER_VERBS_CMD_DEALLOC_PD, ib_uverbs_dealloc_pd{first}), 0);
  EXPECT_EQ(write(IB_USER_VERBS_CMD_DEALLOC_PD, ib_uverbs_dealloc_pd{second}), EBUSY);
  EXPECT_EQ(write(IB_USER_VERBS_CMD_DEREG_MR, ib_uverbs_dereg_mr{region.mr_handle}), 0);
  EXPECT_EQ(write(IB_USER_VERBS_CMD_DEALLOC_PD, ib_uverbs_dealloc_pd{second}), 0);
}

}  // namespace
}  // namespace verbena::kernel
