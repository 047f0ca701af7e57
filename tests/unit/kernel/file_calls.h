// An open File with a user context, and the requests that every test of the kernel's role begins with.
#pragma once

#include <gtest/gtest.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <memory>

#include "kernel/file.h"
#include "kernel/ib.h"
#include "uverbs/bundle.h"

namespace verbena::kernel {

class FileCalls : public testing::Test {
 protected:
  using Bundle = uverbs::Bundle;

  void open(const std::shared_ptr<Node>& node) {
    file_ = File::open(node);
    ASSERT_TRUE(file_);
    mlx5_ib_alloc_ucontext_req_v2 driver{};
    driver.total_num_bfregs = 16;
    driver.num_low_latency_bfregs = 4;
    driver.max_cqe_version = 1;
    driver.flags = context_flags_;
    driver.lib_caps = MLX5_LIB_CAP_4K_UAR | MLX5_LIB_CAP_DYN_UAR;
    Bundle get(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
    std::uint32_t vectors = 0;
    get.out_struct(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, vectors);
    get.in_struct(UVERBS_ATTR_UHW_IN, driver);
    get.out_struct(UVERBS_ATTR_UHW_OUT, context_);
    ASSERT_EQ(run(get), 0);
    EXPECT_GT(vectors, 0u);
  }
  void TearDown() override {
    if (file_) file_->release();
    file_.reset();  // before what the device of the test logs to
  }
  int run(Bundle& bundle) { return file_->ioctl(bundle.finish(kDriverId)); }

  template <class Cmd, class Resp>
  int write(std::uint32_t command, const Cmd& cmd, Resp* resp) {
    Bundle bundle(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
    bundle.in_struct(UVERBS_ATTR_CORE_IN, cmd);
    if (resp) bundle.out(UVERBS_ATTR_CORE_OUT, resp, sizeof *resp);
    bundle.in_const(UVERBS_ATTR_WRITE_CMD, command);
    return run(bundle);
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

  std::uint32_t context_flags_ = 0;  // MLX5_IB_ALLOC_UCTX_*; before open()
  std::shared_ptr<File> file_;
  mlx5_ib_alloc_ucontext_resp context_{};
};

}  // namespace verbena::kernel
