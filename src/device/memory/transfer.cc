#include "device/memory/transfer.h"

#include <errno.h>
#include <sched.h>
#include <sys/uio.h>
#include <unistd.h>

#include "device/memory/guard.h"
#include "device/memory/promote.h"

namespace verbena::device {

namespace {

constexpr unsigned kMoveAttempts = 10'000;

bool ours(const Peer* peer) { return peer == nullptr || peer->self; }

bool canonical(std::uint64_t va) { return static_cast<std::int64_t>(va << 16) >> 16 == static_cast<std::int64_t>(va); }

// Our address of a piece's bytes from `at` on, or null; n is cut to what the answer holds for.
std::byte* reach(const Piece& piece, std::uint64_t at, std::uint64_t& n) {
  const std::uint64_t va = piece.va + at;
  if (ours(piece.peer)) return reinterpret_cast<std::byte*>(va);
  if (std::byte* p = piece.peer->in_arena(va, n); p != nullptr) return p;
  return promoted(*piece.peer, va, n);
}

Moved copy_mapped(std::byte* to, const std::byte* from, std::uint64_t n) {
  const std::uintptr_t fault = guarded_copy(to, from, n);
  if (fault == 0) [[likely]]
    return Moved::ok;
  const auto start = reinterpret_cast<std::uintptr_t>(to);
  if (fault == 1) return canonical(start) ? Moved::source_fault : Moved::destination_fault;
  return fault - start < n ? Moved::destination_fault : Moved::source_fault;
}

// Whether our own memory can be read: tells whose fault an EFAULT was.
bool readable(const iovec& local) {
  char sink;
  const auto* p = static_cast<const char*>(local.iov_base);
  for (std::size_t at = 0; at < local.iov_len; at += 4096)
    if (guarded_copy(&sink, p + at, 1) != 0) return false;
  return guarded_copy(&sink, p + local.iov_len - 1, 1) == 0;
}

// The pid may be of another pid namespace and then stand for somebody else: look for the cookie first.
bool identified(Peer& peer) {
  std::uint64_t cookie = 0;
  const iovec here{&cookie, sizeof cookie};
  const std::uint64_t va = peer.arena_va - kArenaOffset + offsetof(SliceHeader, cookie);
  const iovec there{reinterpret_cast<void*>(va), sizeof cookie};
  if (process_vm_readv(peer.pid, &here, 1, &there, 1, 0) != sizeof cookie) return false;
  return cookie == peer.slice->header.cookie;
}

bool may_process_vm(Peer& peer) {
  const auto state = peer.process_vm.load(std::memory_order_acquire);
  if (state != Peer::ProcessVm::unknown) [[likely]]
    return state == Peer::ProcessVm::yes;
  const bool yes = identified(peer);
  peer.process_vm.store(yes ? Peer::ProcessVm::yes : Peer::ProcessVm::no, std::memory_order_release);
  return yes;
}

// One process_vm call; `writing`: from ours to theirs.
Moved cross(Peer& peer, bool writing, iovec ours_at, std::uint64_t theirs) {
  if (!may_process_vm(peer)) return Moved::unreachable;
  note_remote_access(peer, theirs, ours_at.iov_len);
  std::uint32_t moves = peer.slice->header.promoting.load(std::memory_order_acquire);
  unsigned attempts = 0;
  while (ours_at.iov_len != 0) {
    const iovec there{reinterpret_cast<void*>(theirs), ours_at.iov_len};
    const ssize_t done = writing ? process_vm_writev(peer.pid, &ours_at, 1, &there, 1, 0)
                                 : process_vm_readv(peer.pid, &ours_at, 1, &there, 1, 0);
    if (done > 0) {
      ours_at.iov_base = static_cast<char*>(ours_at.iov_base) + done;
      ours_at.iov_len -= static_cast<std::size_t>(done);
      theirs += static_cast<std::uint64_t>(done);
      continue;
    }
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && errno == ESRCH) return Moved::gone;
    if (done < 0 && errno == EPERM) return Moved::unreachable;
    // While the owner moves pages they are write-protected for a moment: ask again.
    const std::uint32_t promoting = peer.slice->header.promoting.load(std::memory_order_acquire);
    if (writing && (promoting != moves || (promoting & 1) != 0) && ++attempts < kMoveAttempts) {
      moves = promoting;
      sched_yield();
      continue;
    }
    const bool their_fault = readable(ours_at);
    return writing == their_fault ? Moved::destination_fault : Moved::source_fault;
  }
  return Moved::ok;
}

Moved step(const Piece& to, std::uint64_t to_at, const Piece& from, std::uint64_t from_at, std::uint64_t& n) {
  std::byte* d = reach(to, to_at, n);
  std::byte* s = reach(from, from_at, n);
  if (d != nullptr && s != nullptr) return copy_mapped(d, s, n);
  if (d != nullptr) return cross(*from.peer, false, {d, n}, from.va + from_at);
  if (s != nullptr) return cross(*to.peer, true, {s, n}, to.va + to_at);
  return Moved::unreachable;
}

}  // namespace

std::byte* direct(Peer* peer, std::uint64_t va, std::uint64_t n) {
  if (ours(peer)) return reinterpret_cast<std::byte*>(va);
  if (std::byte* p = peer->in_arena(va, n); p != nullptr) return p;
  std::uint64_t got = n;
  std::byte* p = promoted(*peer, va, got);
  return got == n ? p : nullptr;
}

Moved move(const PieceList& to, std::uint64_t to_at, const PieceList& from, std::uint64_t from_at, std::uint64_t n) {
  unsigned t = 0, f = 0;
  while (t < to.size() && to_at >= to[t].length) to_at -= to[t++].length;
  while (f < from.size() && from_at >= from[f].length) from_at -= from[f++].length;
  while (n != 0) {
    if (t >= to.size()) return Moved::destination_fault;
    if (f >= from.size()) return Moved::source_fault;
    std::uint64_t part = std::min({n, to[t].length - to_at, from[f].length - from_at});
    if (const Moved m = step(to[t], to_at, from[f], from_at, part); m != Moved::ok) [[unlikely]]
      return m;
    n -= part;
    to_at += part;
    from_at += part;
    if (to_at == to[t].length) ++t, to_at = 0;
    if (from_at == from[f].length) ++f, from_at = 0;
  }
  return Moved::ok;
}

Moved read_memory(Peer* peer, std::uint64_t va, void* to, std::size_t n) {
  if (std::byte* p = direct(peer, va, n); p != nullptr) return copy_mapped(static_cast<std::byte*>(to), p, n);
  PieceList d, s;
  d.add(nullptr, reinterpret_cast<std::uint64_t>(to), n);
  s.add(peer, va, n);
  return move(d, 0, s, 0, n);
}

Moved write_memory(Peer* peer, std::uint64_t va, const void* from, std::size_t n) {
  if (std::byte* p = direct(peer, va, n); p != nullptr) return copy_mapped(p, static_cast<const std::byte*>(from), n);
  PieceList d, s;
  d.add(peer, va, n);
  s.add(nullptr, reinterpret_cast<std::uint64_t>(from), n);
  return move(d, 0, s, 0, n);
}

Moved atomic(Peer* peer, std::uint64_t va, const AtomicOp& op, std::uint32_t me, std::uint64_t& original) {
  SharedGuard guard(peer->slice->header.atomic_lock, me);
  std::uint64_t old = 0;
  if (const Moved m = read_memory(peer, va, &old, sizeof old); m != Moved::ok) return m;
  original = old;
  if (op.compare_swap && old != op.compare) return Moved::ok;
  const std::uint64_t fresh = op.compare_swap ? op.swap_add : old + op.swap_add;
  return write_memory(peer, va, &fresh, sizeof fresh);
}

}  // namespace verbena::device
