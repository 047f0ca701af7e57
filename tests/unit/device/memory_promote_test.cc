// Private memory of another process: reached by system call first, promoted when it is hot.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/memory/promoted_table.h"
#include "device/memory/promoter_state.h"
#include "transport_world.h"

namespace verbena::device::test {
namespace {

using prm::CqeOpcode;
using prm::WqeOpcode;

struct Offer {
  std::uint32_t qpn, key;
  std::uint64_t va;
  std::uint8_t gid[16];
};

class Promotion : public World {
 protected:
  // Runs `owner` in a process of its own, and connects a queue pair of ours to its.
  void start(void (*owner)(const std::string& dir, int to, int from)) {
    ASSERT_EQ(pipe(up), 0);
    ASSERT_EQ(pipe(down), 0);
    b.reset();
    child = fork();
    if (child == 0) {
      a.release();  // the parent's
      owner(dir_, up[1], down[0]);
    }
    ASSERT_EQ(read(up[0], &offer, sizeof offer), static_cast<ssize_t>(sizeof offer));
    c = a->cq();
    q = a->qp(QpType::rc, c);
    ASSERT_EQ(write(down[1], &q->context->qpn, 4), 4);
    char ready_byte;
    ASSERT_EQ(read(up[0], &ready_byte, 1), 1);
    QpContext remote{};
    remote.qpn = offer.qpn;
    ready(*a, *q, *a, remote, 1);
    const auto found = a->nic->find_qp(offer.qpn);
    ASSERT_TRUE(found);
    peer = found.peer;
  }

  int up[2], down[2];
  pid_t child = 0;
  Offer offer{};
  Cq* c = nullptr;
  Qp* q = nullptr;
  Peer* peer = nullptr;  // the owner
};

// The owner's side of getting connected: makes its offer known, and is ready to receive from whoever answers.
void accept(Process& p, Qp& q, const Offer& offer, int to, int from) {
  std::uint32_t peer;
  if (write(to, &offer, sizeof offer) != sizeof offer || read(from, &peer, sizeof peer) != sizeof peer) _exit(1);
  p.engine->set_state(*q.context, QpState::init);
  p.engine->set_state(*q.context, QpState::rtr, [&](QpContext& x) {
    x.dest_qpn = peer;
    x.path.port = 1;
    x.path.sgid_index = 3;
    std::memcpy(x.path.rgid, offer.gid, 16);
    x.epsn = 1;
  });
  if (write(to, "r", 1) != 1) _exit(1);
}

// The owner of the memory: a process of its own that only spins, counting in a word of the same chunk.
[[noreturn]] void owner(const std::string& dir, int to, int from) {
  auto p = std::make_unique<Process>(dir);
  Cq* c = p->cq();
  Qp* q = p->qp(QpType::rc, c);
  auto* memory = static_cast<std::byte*>(mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::memset(memory, 0, 1 << 20);
  Offer offer{q->context->qpn, p->key(memory, 1 << 20, kAllRights), reinterpret_cast<std::uint64_t>(memory), {}};
  p->gid(offer.gid);
  accept(*p, *q, offer, to, from);
  volatile std::uint64_t* count = reinterpret_cast<std::uint64_t*>(memory + 4096 - 8);
  volatile std::uint64_t* stop = reinterpret_cast<std::uint64_t*>(memory + 4096);
  std::uint64_t mine = 0;
  while (*stop == 0) *count = ++mine;  // in the middle of what is being moved
  const bool kept = *count == mine;
  // A child of ours has its own copy.
  if (const pid_t grandchild = fork(); grandchild == 0) {
    *count = 0;
    _exit(*stop == 1 ? 0 : 1);
  } else {
    int status = 1;
    waitpid(grandchild, &status, 0);
    const bool home = p->nic->slice().header.promoted_count.load() == 0;  // since the fork
    const std::uint8_t answer = kept && home && status == 0 && *count == mine;
    if (write(to, &answer, 1) != 1) _exit(1);
  }
  // Promoted anew; deregistration brings it home with what peers wrote.
  while (*stop != 2) sched_yield();
  const auto& promoted_count = p->nic->slice().header.promoted_count;
  const bool again = promoted_count.load() != 0;
  const std::vector<std::byte> before(memory, memory + (1 << 20));
  p->engine->unregistered(offer.va, 1 << 20);
  const bool same = std::memcmp(before.data(), memory, 1 << 20) == 0;
  const std::uint8_t answer = (again ? 1 : 0) | (promoted_count.load() == 0 ? 2 : 0) | (same ? 4 : 0);
  if (write(to, &answer, 1) != 1) _exit(1);
  pause();
  _exit(0);
}

TEST_F(Promotion, HotMemoryMovesUnderItsOwnersWrites) {
  ASSERT_NO_FATAL_FAILURE(start(&owner));
  Memory m = a->memory(1 << 20, kAllRights, true);
  for (int round = 0; round < 200 && !find_promoted(*peer->slice, offer.va + 8192).holds(offer.va + 8192); ++round) {
    std::memset(m.p, round + 1, 65536);
    a->post(*q, {.opcode = WqeOpcode::rdma_write, .sges = {{m.p, 65536, m.key}}, .raddr = offer.va + 8192, .rkey = offer.key});
    ASSERT_EQ(a->wait(*c).opcode, CqeOpcode::req);
    if (round > 8) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_GT(peer->slice->header.promoted_count.load(), 0u);
  EXPECT_TRUE(find_promoted(*peer->slice, offer.va + 8192).holds(offer.va + 8192));
  // Reads and writes agree across the border of what was promoted.
  for (std::size_t i = 0; i < 1 << 19; ++i) m.p[i] = static_cast<std::byte>(i * 31);
  a->post(*q, {.opcode = WqeOpcode::rdma_write, .sges = {{m.p, 1 << 19, m.key}}, .raddr = offer.va + 12288, .rkey = offer.key});
  ASSERT_EQ(a->wait(*c).opcode, CqeOpcode::req);
  a->post(*q, {.opcode = WqeOpcode::rdma_read, .sges = {{m.p + (1 << 19), 1 << 19, m.key}}, .raddr = offer.va + 12288, .rkey = offer.key});
  ASSERT_EQ(a->wait(*c).opcode, CqeOpcode::req);
  EXPECT_EQ(std::memcmp(m.p, m.p + (1 << 19), 1 << 19), 0);
  // The target is stopped: one-sided operations go on.
  kill(child, SIGSTOP);
  a->post(*q, {.opcode = WqeOpcode::atomic_fa, .sges = {{m.p, 8, m.key}}, .raddr = offer.va + 4096, .rkey = offer.key, .swap_add = 1});
  EXPECT_EQ(a->wait(*c).opcode, CqeOpcode::req);
  kill(child, SIGCONT);
  std::uint8_t answer = 0;
  ASSERT_EQ(read(up[0], &answer, 1), 1);
  EXPECT_EQ(answer, 1);
  for (int round = 0; round < 200 && !find_promoted(*peer->slice, offer.va + 8192).holds(offer.va + 8192); ++round) {
    a->post(*q, {.opcode = WqeOpcode::rdma_write, .sges = {{m.p, 65536, m.key}}, .raddr = offer.va + 8192, .rkey = offer.key});
    ASSERT_EQ(a->wait(*c).opcode, CqeOpcode::req);
    if (round > 8) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  a->post(*q, {.opcode = WqeOpcode::atomic_fa, .sges = {{m.p, 8, m.key}}, .raddr = offer.va + 4096, .rkey = offer.key, .swap_add = 1});
  EXPECT_EQ(a->wait(*c).opcode, CqeOpcode::req);
  ASSERT_EQ(read(up[0], &answer, 1), 1);
  EXPECT_EQ(answer, 7);  // was promoted again, is home, unchanged
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  // The dead answer nothing.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  a->post(*q, {.opcode = WqeOpcode::rdma_write, .inline_data = "x", .raddr = offer.va, .rkey = offer.key});
  EXPECT_EQ(a->wait(*c).vendor, 0x81u);
}

// An owner whose second page is not there until it is told.
[[noreturn]] void owner_of_a_hole(const std::string& dir, int to, int from) {
  auto p = std::make_unique<Process>(dir);
  Qp* q = p->qp(QpType::rc, p->cq());
  auto* memory = static_cast<std::byte*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  Offer offer{q->context->qpn, p->key(memory, 8192, kAllRights), reinterpret_cast<std::uint64_t>(memory), {}};
  p->gid(offer.gid);
  munmap(memory + 4096, 4096);
  accept(*p, *q, offer, to, from);
  char word;
  if (read(from, &word, 1) != 1) _exit(1);
  void* page = mmap(memory + 4096, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (page == MAP_FAILED || write(to, &word, 1) != 1) _exit(1);
  pause();
  _exit(0);
}

// While pages are being moved they may be missing for a moment, longer where the machine halts the owner just then. The
// requester asks again, as it would a host that does not answer; it must not report a fault of the memory.
TEST_F(Promotion, WhatIsMissingWhilePagesMoveIsAskedForAgain) {
  ASSERT_NO_FATAL_FAILURE(start(&owner_of_a_hole));
  q->context->retry_count = 7;
  auto& promoting = peer->slice->header.promoting;
  promoting.fetch_add(1);
  std::thread mover([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(700));  // longer than a copy waits
    char done = 0;
    if (write(down[1], "m", 1) == 1 && read(up[0], &done, 1) == 1) promoting.fetch_add(1);
  });
  a->post(*q, {.opcode = WqeOpcode::rdma_write, .inline_data = "x", .raddr = offer.va + 4096, .rkey = offer.key});
  const auto completion = a->wait(*c);
  mover.join();
  EXPECT_EQ(completion.opcode, CqeOpcode::req) << completion.vendor;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

// The program may unmap or truncate what is just being moved: the mover must neither wait for itself nor leave the rest
// read-only.
TEST_F(Promotion, PagesThatCannotBeReadStayPrivate) {
  Promoter::State state(*a->nic);
  constexpr std::size_t page = kPromotedPage;
  const auto arena = static_cast<std::uint64_t>(a->dma(4 * page) - a->nic->self().arena);
  const int file = memfd_create("short", 0);
  ASSERT_EQ(ftruncate(file, page), 0);
  void* short_file = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  void* hole = mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_EQ(munmap(static_cast<std::byte*>(hole) + page, page), 0);
  const std::pair<void*, std::size_t> cases[] = {{short_file, 2}, {hole, 3}};
  for (const auto& [start, pages] : cases) {
    ASSERT_NE(start, MAP_FAILED);
    const auto va = reinterpret_cast<std::uint64_t>(start);
    EXPECT_FALSE(state.move_in(va, va + pages * page, arena));
    auto* word = static_cast<volatile std::uint64_t*>(start);
    *word = 4711;
    EXPECT_EQ(*word, 4711u);
    EXPECT_FALSE(state.move_out(va, va + pages * page));
    *word = 4712;
    EXPECT_EQ(*word, 4712u);
    munmap(start, pages * page);
  }
  close(file);
}

}  // namespace
}  // namespace verbena::device::test
