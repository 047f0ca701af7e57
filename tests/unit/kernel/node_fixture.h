// An open uverbs node over the device itself, with a user context and some memory to register.
#pragma once

#include <gtest/gtest.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <filesystem>
#include <memory>
#include <string>

#include "kernel/file.h"
#include "kernel/ib.h"
#include "uverbs/bundle.h"

namespace verbena::kernel {

class NodeTest : public testing::Test {
 protected:
  using Bundle = uverbs::Bundle;
  static constexpr std::size_t kMemory = 8192;
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
    memory_ = mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory_, MAP_FAILED);
  }
  void TearDown() override {
    if (file_) file_->release();
    file_.reset();
    node_.reset();
    munmap(memory_, kMemory);
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
    cmd.length = kMemory;
    cmd.access_flags = Access::local_write;
    ib_uverbs_reg_mr_resp resp{};
    EXPECT_EQ(write(IB_USER_VERBS_CMD_REG_MR, cmd, &resp), 0);
    return resp;
  }

  std::string dir_;
  std::shared_ptr<Node> node_;
  std::shared_ptr<File> file_;
  void* memory_ = nullptr;
};

}  // namespace verbena::kernel
