// What the driver does of its own with DEVX objects, over the device itself.
#include <gtest/gtest.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <unistd.h>

#include <cerrno>

#include "prm/cq.h"
#include "prm/mkey.h"
#include "tests/unit/kernel/node_fixture.h"

namespace verbena::kernel {
namespace {

class DevxObjectTest : public NodeTest {
 protected:
  static constexpr std::int64_t kPage = 4096;
  void SetUp() override {
    context_flags_ = MLX5_IB_ALLOC_UCTX_DEVX;
    NodeTest::SetUp();
    Bundle eq(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_EQN);
    eq.in_u32(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC, 0);
    eq.out_struct(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, eqn_);
    ASSERT_EQ(run(eq), 0);
    Bundle umem(MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG);
    umem.out_object(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE);
    umem.in_u64(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, reinterpret_cast<std::uintptr_t>(memory_));
    umem.in_u64(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, kMemory);
    umem.in_u32(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, Access::local_write);
    umem.out_struct(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, umem_);
    ASSERT_EQ(run(umem), 0);
  }

  struct Uar {
    std::uint32_t handle = 0, page = 0, length = 0;
    std::uint64_t offset = 0;
  };
  Uar uar() {
    Uar uar;
    Bundle alloc(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC);
    const auto slot = alloc.out_object(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE);
    alloc.in_const(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC);
    alloc.out_struct(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, uar.offset);
    alloc.out_struct(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, uar.length);
    alloc.out_struct(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, uar.page);
    EXPECT_EQ(run(alloc), 0);
    uar.handle = alloc.object(slot);
    return uar;
  }
  bool maps(const Uar& uar) {
    void* p = file_->mmap(nullptr, uar.length, PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<std::int64_t>(uar.offset));
    return p != MAP_FAILED && munmap(p, uar.length) == 0;
  }
  int destroy(std::uint16_t object, std::uint16_t method, std::uint16_t attr, std::uint32_t handle) {
    Bundle bundle(object, method);
    bundle.in_object(attr, handle);
    return run(bundle);
  }
  int destroy(const Uar& uar) {
    return destroy(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY, MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, uar.handle);
  }
  int destroy(std::uint32_t object) {
    return destroy(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY, MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, object);
  }
  int create(const void* in, std::size_t length, std::uint32_t* handle) {
    std::byte out[16];
    Bundle create(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE);
    const auto slot = create.out_object(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE);
    create.in(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, in, length);
    create.out(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, out, sizeof out);
    const int error = run(create);
    if (!error) *handle = create.object(slot);
    return error;
  }
  int cq(std::uint32_t eqn, std::uint32_t uar_page, std::uint32_t* handle) {
    using In = prm::CreateCqIn;
    prm::Box<In> in;
    in.set<In::opcode>(prm::Opcode::create_cq).set<In::cq_umem_id>(umem_);
    const auto cqc = in.sub<In::cq_context>();
    cqc.set<prm::Cqc::log_cq_size>(4).set<prm::Cqc::uar_page>(uar_page).set<prm::Cqc::c_eqn_or_apu_element>(eqn);
    cqc.set<prm::Cqc::dbr_umem_id>(umem_).set<prm::Cqc::dbr_addr>(kPage);
    return create(in.data(), In::size, handle);
  }

  std::uint32_t eqn_ = 0, umem_ = 0;
};

// The kernel's: it unmaps the page for newcomers, and gives it back as soon as the device lets it.
TEST_F(DevxObjectTest, AUarGoesWhileQueuesNameIt) {
  const Uar first = uar(), second = uar();
  std::uint32_t queue = 0;
  ASSERT_EQ(cq(eqn_, first.page, &queue), 0);
  EXPECT_TRUE(maps(first));
  EXPECT_EQ(destroy(first), 0);
  EXPECT_EQ(destroy(first), ENOENT);
  EXPECT_FALSE(maps(first));
  EXPECT_TRUE(maps(second));
  EXPECT_EQ(file_->retired_uars().size(), 1u);
  EXPECT_EQ(destroy(queue), 0);
  EXPECT_EQ(give_back_uars(*file_), 1u);
  EXPECT_EQ(destroy(second), 0);
  EXPECT_TRUE(file_->retired_uars().empty());
}

// mlx5_create_cq() looks for the EQ among its own, before there is a command.
TEST_F(DevxObjectTest, ACompletionQueueNeedsAnEqOfCompletions) {
  const Uar page = uar();
  std::uint32_t queue = 0;
  EXPECT_EQ(cq(eqn_, page.page, &queue), 0);
  EXPECT_EQ(cq(0, page.page, &queue), ENOENT);
  EXPECT_EQ(cq(255, page.page, &queue), ENOENT);
  ASSERT_EQ(node_->start_async_events(), 0);
  unsigned granted = 0;
  for (std::uint32_t eqn = 0; eqn < 64; ++eqn) granted += cq(eqn, page.page, &queue) == 0;
  EXPECT_EQ(granted, 1u) << "nobody else asked for an EQ, and that of events is none";
  EXPECT_EQ(cq(eqn_, 4711, &queue), EREMOTEIO) << "what the device looks at is its own affair";
}

TEST_F(DevxObjectTest, AKeyNeedsAContext) {
  prm::Box<prm::CreateMkeyIn> in;
  in.set<prm::CreateMkeyIn::opcode>(prm::Opcode::create_mkey);
  constexpr std::size_t end = prm::CreateMkeyIn::memory_key_mkey_entry::offset + prm::Mkc::size;
  std::uint32_t key = 0;
  EXPECT_EQ(create(in.data(), 16, &key), EINVAL);
  EXPECT_EQ(create(in.data(), end - 1, &key), EINVAL);
  EXPECT_EQ(create(in.data(), end, &key), EREMOTEIO);
}

// The program has the file of the node. Pages that it took away would be missing when its doorbells are looked at.
TEST_F(DevxObjectTest, NobodyCutsTheFileOff) {
  const int fd = file_->take_user_fd();
  EXPECT_NE(ftruncate(fd, 0), 0);
  EXPECT_EQ(errno, EPERM);
  close(fd);
}

}  // namespace
}  // namespace verbena::kernel
