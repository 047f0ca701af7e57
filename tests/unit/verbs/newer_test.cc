// Verbs that are newer than rdma-core 44: what they refuse themselves, and what they ask of the kernel.
#include "verbs/newer.h"

#include <gtest/gtest.h>

#include <array>

#include "fake_kernel.h"
#include "uverbs/newer.h"

extern "C" {
ibv_mr* ibv_reg_mr_ex(ibv_pd*, ibv_mr_init_attr*);
ibv_dmah* ibv_alloc_dmah(ibv_context*, ibv_dmah_init_attr*);
int ibv_dealloc_dmah(ibv_dmah*);
void* ibv_alloc_buf(ibv_pd*, std::size_t, ibv_buf**);
ibv_mr* ibv_reg_buf_mr(ibv_pd*, ibv_buf*, void*, std::size_t, int);
void ibv_free_buf(ibv_buf*);
int ibv_query_port_speed(ibv_context*, std::uint32_t, std::uint64_t*);
}

namespace verbena::test {
namespace {

namespace newer = uverbs::newer;
using verbs::DmahInit;
using verbs::MrInit;

class Newer : public testing::Test {
 protected:
  Newer() { pd_.context = kernel_.context(); }

  FakeKernel kernel_;
  ibv_pd pd_{};
  std::array<char, 64> memory_{};
};

TEST_F(Newer, HintsAreWholeOrRefused) {
  kernel_.answer = [](const Request&) { return ADD_FAILURE() << "asked the kernel", EINVAL; };
  const auto errno_of = [&](ibv_dmah_init_attr attr) {
    errno = 0;
    EXPECT_EQ(ibv_alloc_dmah(kernel_.context(), &attr), nullptr);
    return errno;
  };
  EXPECT_EQ(errno_of({.comp_mask = 0}), EINVAL);
  EXPECT_EQ(errno_of({.comp_mask = DmahInit::hint | DmahInit::cpu_id}), EINVAL);
  EXPECT_EQ(errno_of({.comp_mask = DmahInit::hint | DmahInit::memory_type}), EINVAL);
  EXPECT_EQ(errno_of({.comp_mask = DmahInit::hint | 8}), EOPNOTSUPP);
}

TEST_F(Newer, ARegionComesWithHints) {
  kernel_.answer = [](const Request& request) {
    EXPECT_EQ(request.object, newer::kObjectDmah);
    EXPECT_EQ(request.value(newer::kAllocDmahHint), 2u);
    EXPECT_FALSE(request.has(newer::kAllocDmahCpuId));
    return 0;
  };
  ibv_dmah_init_attr hints{.comp_mask = DmahInit::hint, .ph = 2};
  ibv_dmah* dmah = ibv_alloc_dmah(kernel_.context(), &hints);
  ASSERT_NE(dmah, nullptr);
  kernel_.answer = [this](const Request& request) {
    EXPECT_EQ(request.object, UVERBS_OBJECT_MR);
    EXPECT_EQ(request.method, newer::kRegMr);
    EXPECT_TRUE(request.has(newer::kRegMrDmah));
    EXPECT_FALSE(request.has(newer::kRegMrFd));
    EXPECT_EQ(request.value(newer::kRegMrAddress), reinterpret_cast<std::uintptr_t>(memory_.data()));
    EXPECT_EQ(request.value(newer::kRegMrIova), 0x1000u);
    *request.pointer<std::uint32_t>(newer::kRegMrLkey) = 0x77;
    return 0;
  };
  ibv_mr_init_attr attr{};
  attr.length = memory_.size();
  attr.comp_mask = MrInit::addr | MrInit::iova | MrInit::dmah;
  attr.iova = 0x1000;
  attr.addr = memory_.data();
  attr.dmah = dmah;
  ibv_mr* mr = ibv_reg_mr_ex(&pd_, &attr);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->lkey, 0x77u);
  EXPECT_EQ(mr->addr, memory_.data());
  delete reinterpret_cast<verbs::Mr*>(mr);
  kernel_.answer = [](const Request& request) { return request.method == newer::kDmahFree ? 0 : EINVAL; };
  EXPECT_EQ(ibv_dealloc_dmah(dmah), 0);
}

TEST_F(Newer, OneKindOfMemoryIsNamed) {
  kernel_.answer = [](const Request&) { return ADD_FAILURE() << "asked the kernel", EINVAL; };
  const auto errno_of = [&](std::uint64_t mask) {
    ibv_mr_init_attr attr{};
    attr.length = 1;
    attr.comp_mask = mask;
    attr.addr = memory_.data();
    errno = 0;
    EXPECT_EQ(ibv_reg_mr_ex(&pd_, &attr), nullptr);
    return errno;
  };
  EXPECT_EQ(errno_of(0), EINVAL);
  EXPECT_EQ(errno_of(MrInit::addr | MrInit::fd | MrInit::fd_offset | MrInit::iova), EINVAL);
  EXPECT_EQ(errno_of(MrInit::fd | MrInit::iova), EINVAL);
  EXPECT_EQ(errno_of(MrInit::fd | MrInit::fd_offset), EINVAL);
  EXPECT_EQ(errno_of(MrInit::addr | 64), EOPNOTSUPP);
}

TEST_F(Newer, BuffersKeepToTheirBoundsAndDomain) {
  kernel_.answer = [](const Request&) { return ADD_FAILURE() << "asked the kernel", EINVAL; };
  ibv_buf* buffer = nullptr;
  auto* at = static_cast<char*>(ibv_alloc_buf(&pd_, 100, &buffer));
  ASSERT_NE(at, nullptr);
  ibv_pd other{.context = kernel_.context(), .handle = 9};
  const auto errno_of = [&](ibv_pd* pd, char* from, std::size_t length) {
    errno = 0;
    EXPECT_EQ(ibv_reg_buf_mr(pd, buffer, from, length, 0), nullptr);
    return errno;
  };
  EXPECT_EQ(errno_of(&other, at, 100), EINVAL);
  EXPECT_EQ(errno_of(&pd_, at, 101), EINVAL);
  EXPECT_EQ(errno_of(&pd_, at + 1, 100), EINVAL);
  EXPECT_EQ(errno_of(&pd_, at - 1, 1), EINVAL);
  ibv_free_buf(buffer);
}

TEST_F(Newer, PortSpeed) {
  kernel_.answer = [](const Request& request) {
    EXPECT_EQ(request.method, newer::kQueryPortSpeed);
    EXPECT_EQ(request.value(newer::kQueryPortSpeedPort), 3u);
    *request.pointer<std::uint64_t>(newer::kQueryPortSpeedResp) = 2000;
    return 0;
  };
  std::uint64_t speed = 0;
  EXPECT_EQ(ibv_query_port_speed(kernel_.context(), 3, &speed), 0);
  EXPECT_EQ(speed, 2000u);
}

}  // namespace
}  // namespace verbena::test
