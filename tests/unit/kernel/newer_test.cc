// Requests that only a newer rdma-core makes: DMA handles, registration in one method, port speed, depths of reads.
#include "uverbs/newer.h"

#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "tests/unit/kernel/node_fixture.h"

namespace verbena::kernel {
namespace {

using namespace uverbs::newer;

class NewerTest : public NodeTest {
 protected:
  int alloc(std::uint32_t* handle, std::uint8_t hint, const std::uint32_t* cpu = nullptr, int memory_type = -1) {
    Bundle bundle(kObjectDmah, kDmahAlloc);
    const auto slot = bundle.out_object(kAllocDmahHandle);
    if (cpu) bundle.in_u32(kAllocDmahCpuId, *cpu);
    if (memory_type >= 0) bundle.in_enum(kAllocDmahMemoryType, static_cast<std::uint8_t>(memory_type), nullptr, 0);
    bundle.in(kAllocDmahHint, &hint, 1);
    const int error = run(bundle);
    if (!error) *handle = bundle.object(slot);
    return error;
  }
  int free_dmah(std::uint32_t handle) {
    Bundle bundle(kObjectDmah, kDmahFree);
    bundle.in_object(kFreeDmahHandle, handle);
    return run(bundle);
  }
  struct Wish {
    const std::uint64_t* address = nullptr;
    std::uint32_t access = Access::local_write;
    const std::uint32_t* dmah = nullptr;
    const std::uint64_t* fd_offset = nullptr;
    int fd = -1;
  };
  int reg(const Wish& wish, std::uint32_t* handle, std::uint32_t* key) {
    Bundle bundle(UVERBS_OBJECT_MR, kRegMr);
    const auto slot = bundle.out_object(kRegMrHandle);
    bundle.in_object(kRegMrPd, pd());
    if (wish.dmah) bundle.in_object(kRegMrDmah, *wish.dmah);
    bundle.in_u64(kRegMrIova, reinterpret_cast<std::uintptr_t>(memory_));
    if (wish.address) bundle.in_u64(kRegMrAddress, *wish.address);
    bundle.in_u64(kRegMrLength, kMemory);
    bundle.in_u32(kRegMrAccess, wish.access);
    if (wish.fd >= 0) bundle.in_fd(kRegMrFd, wish.fd);
    if (wish.fd_offset) bundle.in_u64(kRegMrFdOffset, *wish.fd_offset);
    std::uint32_t rkey = 0;
    bundle.out_struct(kRegMrLkey, *key);
    bundle.out_struct(kRegMrRkey, rkey);
    const int error = run(bundle);
    if (error) return error;
    EXPECT_EQ(*key, rkey);
    *handle = bundle.object(slot);
    return 0;
  }
  int dereg(std::uint32_t handle) {
    ib_uverbs_dereg_mr cmd{};
    cmd.mr_handle = handle;
    return write(IB_USER_VERBS_CMD_DEREG_MR, cmd);
  }
};

TEST_F(NewerTest, DmaHandles) {
  std::uint32_t handle = 0;
  const auto cpu = static_cast<std::uint32_t>(sched_getcpu());
  const std::uint32_t nowhere = 0xffff;
  EXPECT_EQ(alloc(&handle, 3), 0);
  EXPECT_EQ(free_dmah(handle), 0);
  EXPECT_EQ(free_dmah(handle), ENOENT);
  EXPECT_EQ(alloc(&handle, 4), EINVAL);
  EXPECT_EQ(alloc(&handle, 0, &cpu), EINVAL) << "a processor without a memory type";
  EXPECT_EQ(alloc(&handle, 0, nullptr, 1), EINVAL);
  EXPECT_EQ(alloc(&handle, 0, &nowhere, 1), EPERM);
  EXPECT_EQ(alloc(&handle, 0, &cpu, 2), EOPNOTSUPP) << "there are two memory types";
  EXPECT_EQ(alloc(&handle, 0, &cpu, 1), 0);
  // In use by a region, and free behind it; what is left behind goes with the file.
  const auto address = reinterpret_cast<std::uint64_t>(memory_);
  std::uint32_t region = 0, key = 0;
  ASSERT_EQ(reg({.address = &address, .dmah = &handle}, &region, &key), 0);
  EXPECT_EQ(free_dmah(handle), EBUSY);
  EXPECT_EQ(dereg(region), 0);
  EXPECT_EQ(free_dmah(handle), 0);
  ASSERT_EQ(alloc(&handle, 0), 0);
  ASSERT_EQ(reg({.address = &address, .dmah = &handle}, &region, &key), 0);
}

TEST_F(NewerTest, RegistersByOneMethod) {
  const auto address = reinterpret_cast<std::uint64_t>(memory_);
  const std::uint64_t zero = 0, odd = address + 1;
  const std::uint32_t none = 0x7777;
  std::uint32_t region = 0, key = 0;
  EXPECT_EQ(reg({}, &region, &key), EINVAL);
  EXPECT_EQ(reg({.address = &address, .fd_offset = &zero}, &region, &key), EINVAL);
  EXPECT_EQ(reg({.address = &address, .fd_offset = &zero, .fd = 0}, &region, &key), EINVAL);
  EXPECT_EQ(reg({.address = &odd}, &region, &key), EINVAL);
  EXPECT_EQ(reg({.address = &address, .access = Access::remote_write}, &region, &key), EINVAL);
  EXPECT_EQ(reg({.address = &address, .access = Access::on_demand}, &region, &key), EOPNOTSUPP);
  EXPECT_EQ(reg({.address = &address, .access = 1u << 8}, &region, &key), EINVAL) << "FLUSH is no access of this device";
  EXPECT_EQ(reg({.address = &address, .dmah = &none}, &region, &key), ENOENT);
  EXPECT_EQ(reg({.fd_offset = &zero, .fd = 9999}, &region, &key), EBADF);
  ASSERT_EQ(reg({.address = &address}, &region, &key), 0);
  EXPECT_NE(key, 0u);
  EXPECT_EQ(dereg(region), 0);
}

TEST_F(NewerTest, PortSpeed) {
  const auto ask = [this](std::uint32_t port, std::uint64_t* speed) {
    Bundle bundle(UVERBS_OBJECT_DEVICE, kQueryPortSpeed);
    bundle.in_const(kQueryPortSpeedPort, port);
    bundle.out_struct(kQueryPortSpeedResp, *speed);
    return run(bundle);
  };
  std::uint64_t speed = 0;
  ASSERT_EQ(ask(1, &speed), 0);
  EXPECT_EQ(speed, std::uint64_t{node_->profile().link_gbps} * 10);
  EXPECT_EQ(ask(2, &speed), EINVAL);
  Bundle bundle(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
  bundle.in_const(UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1);
  std::array<std::uint32_t, sizeof(ib_uverbs_query_port_resp_ex) / 4> response{};
  bundle.out_struct(UVERBS_ATTR_QUERY_PORT_RESP, response);
  ASSERT_EQ(run(bundle), 0);
  ib_uverbs_query_port_resp known{};
  std::memcpy(&known, response.data(), sizeof known);
  EXPECT_EQ(response.back(), known.active_speed);
}

TEST_F(NewerTest, TlpDoorbellsAreNotThere) {
  Bundle bundle(MLX5_IB_OBJECT_VAR, MLX5_IB_METHOD_VAR_OBJ_ALLOC);
  std::uint64_t offset = 0;
  std::uint32_t length = 0, page = 0;
  bundle.out_object(MLX5_IB_ATTR_VAR_OBJ_ALLOC_HANDLE);
  bundle.out_struct(MLX5_IB_ATTR_VAR_OBJ_ALLOC_MMAP_OFFSET, offset);
  bundle.out_struct(MLX5_IB_ATTR_VAR_OBJ_ALLOC_MMAP_LENGTH, length);
  bundle.out_struct(MLX5_IB_ATTR_VAR_OBJ_ALLOC_PAGE_ID, page);
  bundle.in_u32(kVarAllocFlags, kVarAllocTlp);
  EXPECT_EQ(run(bundle), EOPNOTSUPP);
}

}  // namespace
}  // namespace verbena::kernel
