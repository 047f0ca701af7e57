// Attachments, numbers and the arena.
#include "device/shared/nic.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <set>

#include "device/shared/nic_file.h"
#include "fabric/registry.h"

namespace verbena::device {
namespace {

class RunDir : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/dev/shm/verbena-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    dir_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  NicConfig config(const std::string& host = "a", unsigned index = 0) {
    NicConfig c;
    c.run_dir = dir_;
    c.host = host;
    c.index = index;
    return c;
  }
  std::string dir_;
};

TEST_F(RunDir, LaysOutPortsAsLinuxDoes) {
  auto nic = Nic::attach(config());
  ASSERT_TRUE(nic) << nic.error().reason;
  const NicSegment& s = (*nic)->segment();
  EXPECT_EQ(s.ports[0].state.load(), 4);
  EXPECT_EQ(s.gids[0][0].type.load(), static_cast<unsigned>(GidType::roce_v1));
  EXPECT_EQ(s.gids[0][1].type.load(), static_cast<unsigned>(GidType::roce_v2));
  EXPECT_EQ(s.gids[0][0].gid[0], 0xfe);
  const std::uint8_t v4[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 18, 0, 1};
  EXPECT_EQ(std::memcmp(s.gids[0][3].gid, v4, 16), 0);
  EXPECT_EQ(s.gids[0][4].type.load(), 0);
  fabric::Gid gid;
  std::memcpy(gid.data(), v4, 16);
  auto registry = fabric::Registry::open(dir_);
  ASSERT_TRUE(registry);
  auto route = (*registry)->find(gid);
  ASSERT_TRUE(route);
  EXPECT_EQ((*registry)->host_name(route->host), "a");
}

TEST_F(RunDir, TwoAttachmentsSeeEachOther) {
  auto a = Nic::attach(config());
  auto b = Nic::attach(config());
  ASSERT_TRUE(a && b);
  EXPECT_NE((*a)->slot(), (*b)->slot());
  EXPECT_NE((*a)->me(), (*b)->me());
  QpContext* qp = (*a)->alloc_qp();
  ASSERT_NE(qp, nullptr);
  EXPECT_GE(qp->qpn, 0x40u);
  (*a)->publish(*qp);
  const auto found = (*b)->find_qp(qp->qpn);
  ASSERT_TRUE(found);
  EXPECT_EQ(found.context->qpn, qp->qpn);
  EXPECT_NE(found.context, qp);  // the same context through another mapping
  EXPECT_EQ(found.peer->in_arena((*a)->self().arena_va + 4096, 4096), found.peer->arena + 4096);
  EXPECT_EQ(found.peer->in_arena((*a)->self().arena_va + kArenaBytes - 1, 2), nullptr);
  EXPECT_EQ(found.peer->in_arena((*a)->self().arena_va - 1, 1), nullptr);
}

TEST_F(RunDir, NumbersAreUniqueAndRested) {
  auto a = Nic::attach(config());
  auto b = Nic::attach(config());
  ASSERT_TRUE(a && b);
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 300; ++i) {
    QpContext* qa = (*a)->alloc_qp();
    QpContext* qb = (*b)->alloc_qp();
    ASSERT_TRUE(qa && qb);
    EXPECT_TRUE(seen.insert(qa->qpn).second);
    EXPECT_TRUE(seen.insert(qb->qpn).second);
  }
  MkeyContext* mkey = (*a)->alloc_mkey();
  ASSERT_NE(mkey, nullptr);
  (*a)->publish(*mkey);
  EXPECT_EQ((*b)->find_mkey(mkey->key).context->key.load(), mkey->key.load());
  EXPECT_EQ((*a)->own_mkey(mkey->key >> 8), mkey);
  EXPECT_EQ((*b)->own_mkey(mkey->key >> 8), nullptr);
  (*a)->free_mkey(*mkey);
  EXPECT_EQ((*a)->own_mkey(mkey->key >> 8), nullptr);
}

TEST_F(RunDir, ArenaReusesAndZeroes) {
  auto nic = Nic::attach(config());
  ASSERT_TRUE(nic);
  auto* p = static_cast<std::byte*>((*nic)->alloc_dma(10000));
  ASSERT_NE(p, nullptr);
  std::memset(p, 0xab, 10000);
  (*nic)->free_dma(p, 10000);
  auto* q = static_cast<std::byte*>((*nic)->alloc_dma(10000));
  EXPECT_EQ(p, q);
  for (int i = 0; i < 10000; ++i) ASSERT_EQ(q[i], std::byte{0});
  const auto t = (*nic)->alloc_table(3);
  ASSERT_NE(t, 0u);
  (*nic)->table(t)[2].bytes = 7;
  (*nic)->free_table(t, 3);
  EXPECT_EQ((*nic)->alloc_dma(kArenaBytes + 1), nullptr);
}

// What waiters for its locks ask about a process.
TEST_F(RunDir, StoppedProcessesAreKnown) {
  auto a = Nic::attach(config());
  ASSERT_TRUE(a);
  EXPECT_EQ(NicFile::holder_state((*a)->me()), Holder::lives);
  int pipe_fd[2];
  ASSERT_EQ(pipe(pipe_fd), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto c = Nic::attach(config());
    const std::uint32_t me = c ? (*c)->me() : 0;
    (void)!write(pipe_fd[1], &me, sizeof me);
    pause();
    _exit(0);
  }
  std::uint32_t id = 0;
  ASSERT_EQ(read(pipe_fd[0], &id, sizeof id), static_cast<ssize_t>(sizeof id));
  EXPECT_EQ(NicFile::holder_state(id), Holder::lives);
  kill(child, SIGSTOP);
  waitpid(child, nullptr, WUNTRACED);
  EXPECT_EQ(NicFile::holder_state(id), Holder::stopped);
  kill(child, SIGCONT);
  waitpid(child, nullptr, WCONTINUED);
  EXPECT_EQ(NicFile::holder_state(id), Holder::lives);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(NicFile::holder_state(id), Holder::gone);
  close(pipe_fd[0]);
  close(pipe_fd[1]);
}

TEST_F(RunDir, KilledProcessIsReaped) {
  auto a = Nic::attach(config());
  ASSERT_TRUE(a);
  int pipe_fd[2];
  ASSERT_EQ(pipe(pipe_fd), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto c = Nic::attach(config());
    std::uint32_t qpn = 0;
    if (c) {
      QpContext* qp = (*c)->alloc_qp();
      (*c)->publish(*qp);
      qp->rx_lock.lock((*c)->me());  // dies holding it
      qpn = qp->qpn;
    }
    (void)!write(pipe_fd[1], &qpn, sizeof qpn);
    pause();
    _exit(0);
  }
  std::uint32_t qpn = 0;
  ASSERT_EQ(read(pipe_fd[0], &qpn, sizeof qpn), static_cast<ssize_t>(sizeof qpn));
  auto found = (*a)->find_qp(qpn);
  ASSERT_TRUE(found);
  EXPECT_TRUE((*a)->alive(*found.peer));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  {  // the lock of the dead is taken over
    SharedGuard guard(found.context->rx_lock, (*a)->me());
  }
  found.peer->next_probe = 0;
  EXPECT_FALSE((*a)->alive(*found.peer));
  EXPECT_FALSE((*a)->find_qp(qpn));
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/a/0/slice-" + std::to_string(found.peer->slot)));
  // Our own attachment survived the child's fork and death.
  EXPECT_TRUE((*a)->alloc_qp());
  auto b = Nic::attach(config());
  ASSERT_TRUE(b);
  EXPECT_EQ((*b)->slot(), found.peer->slot);
}

TEST_F(RunDir, MulticastMembershipComesAndGoes) {
  auto a = Nic::attach(config());
  ASSERT_TRUE(a);
  const std::uint8_t gid[16] = {0xff, 1};
  EXPECT_EQ((*a)->attach_multicast(gid, 0x50), 0);
  EXPECT_EQ((*a)->attach_multicast(gid, 0x50), 0);
  EXPECT_EQ((*a)->detach_multicast(gid, 0x50), 0);
  EXPECT_NE((*a)->detach_multicast(gid, 0x50), 0);
}

}  // namespace
}  // namespace verbena::device
