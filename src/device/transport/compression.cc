// CQE compression: completions of one receive queue, one after the other and alike, written as a title and an array of what
// they differ in (PRM, CQE Compression; the basic layout, as drivers read it).
//
// A session of n completions takes n entries of the ring. The first has the title: the CQE of the first completion, but with
// the format `compressed` and n for its byte_cnt. Arrays of eight mini CQEs lie in the second entry, and in the entries 8, 16,
// ... of the session; the first mini CQE is the title's own. What lies between is left as it is. The title comes last: its
// owner bit makes the session the consumer's.
//
// A session is what one turn of a sender completes: whoever adds to it closes it before it lets the thread go on
// (Deferred::close_later), so nothing waits for a timer. While it is open its entries are in the ring, or in the CQ's slice
// (CqSession), and nobody can see them; whoever wants the CQ up to date closes it: the next CQE that does not fit, the owner
// who arms or looks, and its helper thread, should the sender have been killed in its turn or stopped.
#include <algorithm>
#include <bit>
#include <cstring>

#include "device/transport/attention.h"
#include "device/transport/clock.h"
#include "device/transport/completion.h"
#include "prm/cq.h"

namespace verbena::device {

using prm::Cqe64;
using prm::MiniCqe8;

namespace {

constexpr std::uint32_t kArray = 8;  // mini CQEs of one entry
using Both [[gnu::may_alias]] = std::uint64_t;

prm::ConstView<Cqe64> title_of(const CqSession& session) { return prm::ConstView<Cqe64>(session.title); }

bool keeps_hash(const CqContext& cq) { return cq.mini_format == static_cast<std::uint8_t>(prm::MiniCqeFormat::hash); }
bool keeps_counter(const CqContext& cq) {
  return cq.mini_format == static_cast<std::uint8_t>(prm::MiniCqeFormat::checksum_stride_index);
}

// Completions of received messages, without data in them.
bool compressible(const prm::ConstView<Cqe64>& cqe) {
  switch (cqe.get<Cqe64::opcode>()) {
    case prm::CqeOpcode::resp_wr_imm:
    case prm::CqeOpcode::resp_send:
    case prm::CqeOpcode::resp_send_imm:
    case prm::CqeOpcode::resp_send_inv:
      return cqe.get<Cqe64::format>() == prm::CqeFormat::no_inline;
    default:
      return false;
  }
}

// What mini CQEs tell, or nobody gets to know: all of it but this is the title's for all.
struct Common {
  alignas(64) std::byte bytes[Cqe64::size];
  Common(const std::byte* cqe, bool hash) {
    std::memcpy(bytes, cqe, sizeof bytes);
    const prm::View<Cqe64> v(bytes);
    v.set<Cqe64::byte_cnt>(0).set<Cqe64::timestamp>(0).set<Cqe64::wqe_counter>(0).set<Cqe64::owner>(0);
    v.set<Cqe64::rss_hash_result>(0);  // with checksums, drivers take it for unknown
    if (!hash) v.set<Cqe64::rss_hash_type>(0).set<Cqe64::check_sum>(0);
  }
  bool operator==(const Common& other) const { return std::memcmp(bytes, other.bytes, sizeof bytes) == 0; }
};

void write_mini(const CqContext& cq, const prm::ConstView<Cqe64>& cqe, std::byte* at) {
  const prm::View<MiniCqe8> mini(at);
  mini.set<MiniCqe8::byte_cnt>(cqe.get<Cqe64::byte_cnt>());
  if (keeps_hash(cq)) {
    mini.set<MiniCqe8::rx_hash_result>(cqe.get<Cqe64::rss_hash_result>());
  } else {
    mini.set<MiniCqe8::checksum>(cqe.get<Cqe64::check_sum>());
    mini.set<MiniCqe8::stridx>(keeps_counter(cq) ? cqe.get<Cqe64::wqe_counter>() : 0);
  }
}

// How far the CQ is, read and written as one: whoever is killed leaves the session open or closed.
struct Mark {
  std::uint32_t pi, gathered;
  bool operator==(const Mark&) const = default;
};
static_assert(offsetof(CqContext, gathered) == offsetof(CqContext, pi) + sizeof(CqContext::pi) && offsetof(CqContext, pi) % 8 == 0);

Mark mark_of(const CqContext& cq) {
  return std::bit_cast<Mark>(__atomic_load_n(reinterpret_cast<const Both*>(&cq.pi), __ATOMIC_RELAXED));
}

// Nothing changes if the CQ is not where it was: the lock has been taken from us (SharedLock), and whoever took it has
// closed the session, or gone on with it.
void advance(CqContext& cq, Mark from, Mark to) {
  if (mark_of(cq) == from) [[likely]]
    __atomic_store_n(reinterpret_cast<Both*>(&cq.pi), std::bit_cast<Both>(to), __ATOMIC_RELAXED);
}

}  // namespace

// Whether the open session has a place for it.
bool Completer::continues(CqContext& cq, const CqeBuffer& cqe) {
  const CqSession& session = session_of(cq);
  const std::uint32_t n = cq.gathered, entries = 1u << (cq.ring.log_entries & 31);
  if (n >= kMaxSession || (cq.pi & (entries - 1)) + n >= entries || (!has_room(cq, n) && !cq.overrun_ignore)) return false;
  const auto title = title_of(session);
  const prm::ConstView<Cqe64> v(cqe.bytes);
  if (cqe.time - title.get<Cqe64::timestamp>() > kSessionNs) return false;
  const std::uint16_t counter = static_cast<std::uint16_t>(title.get<Cqe64::wqe_counter>() + n);
  if (!keeps_counter(cq) && v.get<Cqe64::wqe_counter>() != counter) return false;
  const bool hash = keeps_hash(cq);
  return Common(session.title, hash) == Common(cqe.bytes, hash);
}

// Whether a session may begin with it. It never goes over the ring's end.
bool Completer::begins(CqContext& cq) {
  const std::uint32_t entries = 1u << (cq.ring.log_entries & 31);
  return (cq.pi & (entries - 1)) + 1 < entries && cq.status != kCqOverflow && (has_room(cq) || cq.overrun_ignore);
}

// Writes the mini CQEs of the array that ends with the n-th of the session that begins at `pi`.
bool Completer::write_array(CqContext& cq, std::uint32_t pi, std::uint32_t n) {
  const std::uint32_t array = (n - 1) / kArray, used = (n - 1) % kArray + 1;
  const std::uint32_t mask = (1u << (cq.ring.log_entries & 31)) - 1;
  return write_half(cq, (pi & mask) + (array == 0 ? 1 : array * kArray), session_of(cq).minis, used * MiniCqe8::size);
}

bool Completer::gather(CqContext& cq, CqeBuffer& cqe, bool solicited) {
  const std::uint32_t index = index_of(cq);
  const bool fits = compressible(cqe.view()) && deferred_.close_later(owner_, index, me_);
  if (cq.gathered != 0 && (!fits || !continues(cq, cqe)) && !close(cq)) return false;
  CqSession& session = session_of(cq);
  const Mark mark = mark_of(cq);
  const std::uint32_t n = mark.gathered;
  if (n == 0) {
    if (!fits || !begins(cq)) return post_whole(cq, cqe, solicited);
    std::memcpy(session.title, cqe.bytes, sizeof session.title);
    set_attention(*owner_.slice, cq_attention(*owner_.slice), index);
    advance(cq, mark, {mark.pi, 1});
    return true;
  }
  if (n == 1) write_mini(cq, title_of(session), session.minis);
  write_mini(cq, cqe.view(), session.minis + n % kArray * MiniCqe8::size);
  if ((n + 1) % kArray == 0 && !write_array(cq, mark.pi, n + 1)) [[unlikely]] {
    advance(cq, mark, {mark.pi, 0});
    overrun(cq);
    return false;
  }
  advance(cq, mark, {mark.pi, n + 1});
  return true;
}

// False: the CQ cannot be written, and what was gathered is lost.
bool Completer::close(CqContext& cq) {
  const Mark mark = mark_of(cq);
  const std::uint32_t n = std::min(mark.gathered, kMaxSession);
  if (n == 0 || !usable(cq)) return true;
  CqeBuffer title;
  std::memcpy(title.bytes, session_of(cq).title, sizeof title.bytes);
  const bool solicited = title.view().get<Cqe64::se>() != 0;
  bool written = true;
  if (n > 1) {
    if (n % kArray != 0) written = write_array(cq, mark.pi, n);
    title.view().set<Cqe64::byte_cnt>(n).set<Cqe64::format>(prm::CqeFormat::compressed);
  }
  if (!written || !place(cq, mark.pi, title)) [[unlikely]] {
    advance(cq, mark, {mark.pi, 0});
    overrun(cq);
    return false;
  }
  advance(cq, mark, {mark.pi + n, 0});
  cq.last_cqe_ns = device_clock();
  announce(cq, solicited);
  return true;
}

void Completer::close_session(std::uint32_t cq_index) {
  CqContext& cq = owner_.slice->cqs[cq_index];
  SharedGuard guard(cq.lock, me_);
  close(cq);
}

}  // namespace verbena::device
