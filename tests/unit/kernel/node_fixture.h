// An open uverbs node over the device itself, with a user context and some memory to register.
#pragma once

#include <stdlib.h>
#include <sys/mman.h>

#include <filesystem>
#include <memory>
#include <string>

#include "tests/unit/kernel/file_calls.h"

namespace verbena::kernel {

class NodeTest : public FileCalls {
 protected:
  static constexpr std::size_t kMemory = 8192;
  void SetUp() override {
    char dir[] = "/dev/shm/verbena-test-XXXXXX";
    ASSERT_NE(mkdtemp(dir), nullptr);
    dir_ = dir;
    setenv("VERBENA_RUN_DIR", dir, 1);
    auto node = Node::create(profile_, "test", index_);
    ASSERT_TRUE(node) << node.error().reason;
    node_ = *node;
    open(node_);
    memory_ = mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory_, MAP_FAILED);
  }
  void TearDown() override {
    FileCalls::TearDown();
    node_.reset();
    munmap(memory_, kMemory);
    std::filesystem::remove_all(dir_);
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

  device::Profile profile_{};  // what a test changes before SetUp()
  unsigned index_ = 0;
  std::string dir_;
  std::shared_ptr<Node> node_;
  void* memory_ = nullptr;
};

}  // namespace verbena::kernel
