#include "device/memory/transfer.h"

#include "device/memory/guard.h"
#include "device/memory/promote.h"
#include "device/memory/remote.h"

namespace verbena::device {

namespace {

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

Moved step(const Piece& to, std::uint64_t to_at, const Piece& from, std::uint64_t from_at, std::uint64_t& n) {
  std::byte* d = reach(to, to_at, n);
  std::byte* s = reach(from, from_at, n);
  if (d != nullptr && s != nullptr) return copy_mapped(d, s, n);
  if (d != nullptr) return remote_copy(*from.peer, false, d, from.va + from_at, n);
  if (s != nullptr) return remote_copy(*to.peer, true, s, to.va + to_at, n);
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
  const unsigned bytes = op.bytes == 4 ? 4 : 8;
  if (const Moved m = read_memory(peer, va, &old, bytes); m != Moved::ok) return m;
  original = old;
  if (op.compare_swap && ((old ^ op.compare) & op.compare_mask) != 0) return Moved::ok;
  const std::uint64_t fresh = op.compare_swap ? (old & ~op.swap_mask) | (op.swap_add & op.swap_mask)
                                              : ((old & ~op.fields) + (op.swap_add & ~op.fields)) ^ ((old ^ op.swap_add) & op.fields);
  return write_memory(peer, va, &fresh, bytes);
}

}  // namespace verbena::device
