// REREG_MR on the device itself: what keeps its key, and what the key is afterwards.
#include <algorithm>

#include "kernel/command.h"
#include "prm/mkey.h"
#include "tests/unit/kernel/node_fixture.h"

namespace verbena::kernel {
namespace {

class ReregTest : public NodeTest {
 protected:
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

  int error_ = 0;
};

TEST_F(ReregTest, RightsChangeInPlace) {
  for (const std::uint64_t shift : {std::uint64_t{0}, std::uint64_t{1} << 40}) {
    const auto region = mr(pd(), shift);
    const std::uint32_t wide = Access::local_write | Access::remote_write | Access::remote_read;
    EXPECT_EQ(rereg(region.mr_handle, Rereg::access, wide), region.rkey) << error_;
    auto mkc = context_of(region.rkey);
    EXPECT_TRUE(mkc.get<prm::Mkc::rw>() && mkc.get<prm::Mkc::rr>() && mkc.get<prm::Mkc::lw>());
    EXPECT_EQ(mkc.get<prm::Mkc::len>(), kMemory);
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
  ASSERT_EQ(mprotect(memory_, kMemory, PROT_READ), 0);
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
