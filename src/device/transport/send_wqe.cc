#include "device/transport/send_wqe.h"

#include "device/memory/guard.h"
#include "device/memory/transfer.h"

namespace verbena::device {

using prm::WqeOpcode;

namespace {
// Copies `n` bytes of the ring from WQEBB `at`, `skip` bytes in, across its end.
bool copy_out(const QpContext& qp, Peer& self, std::uint16_t at, unsigned skip, std::byte* to, unsigned n) {
  const std::uint64_t size = prm::kSendWqeBasicBlock << (qp.sq.log_entries & 31);
  std::uint64_t from = (at * prm::kSendWqeBasicBlock + skip) & (size - 1);
  while (n != 0) {
    const auto part = static_cast<unsigned>(std::min<std::uint64_t>(n, size - from));
    if (read_memory(&self, qp.sq.va + from, to, part) != Moved::ok) return false;
    to += part;
    n -= part;
    from = 0;
  }
  return true;
}
}  // namespace

SendWqe::Fetch SendWqe::fetch(const QpContext& qp, Peer& self, std::uint16_t at, std::uint32_t available) {
  index = at;
  blocks = 1;
  opcode = WqeOpcode::nop;
  signaled = true;
  event = false;
  if (!copy_out(qp, self, at, 0, raw, prm::kSendWqeBasicBlock)) return Fetch::unreadable;
  const prm::ConstView<prm::CtrlSeg> ctrl(raw);
  const std::uint32_t ds = ctrl.get<prm::CtrlSeg::ds>();
  opcode = ctrl.get<prm::CtrlSeg::opcode>();
  opmod = static_cast<std::uint8_t>(ctrl.get<prm::CtrlSeg::opmod>());
  if (ds == 0) return Fetch::bad;
  bytes = ds * prm::kWqeOctoword;
  const unsigned need = (bytes + prm::kSendWqeBasicBlock - 1) / prm::kSendWqeBasicBlock;
  if (need > available || need > 1u << (qp.sq.log_entries & 31)) return Fetch::bad;
  blocks = static_cast<std::uint16_t>(need);
  if (bytes > prm::kSendWqeBasicBlock &&
      !copy_out(qp, self, at, prm::kSendWqeBasicBlock, raw + prm::kSendWqeBasicBlock, bytes - prm::kSendWqeBasicBlock))
    return Fetch::unreadable;
  const auto ce = ctrl.get<prm::CtrlSeg::ce>();
  signaled = ce == prm::WqeCompletion::always || ce == prm::WqeCompletion::always_and_event;
  event = ce == prm::WqeCompletion::always_and_event;
  solicited = ctrl.get<prm::CtrlSeg::se>() != 0;
  fenced = ctrl.get<prm::CtrlSeg::fm>() != prm::WqeFence::none;
  immediate = ctrl.get<prm::CtrlSeg::imm>();
  if (ctrl.get<prm::CtrlSeg::qpn>() != qp.qpn) return Fetch::bad;
  return parse(qp) ? Fetch::ok : Fetch::bad;
}

bool SendWqe::parse(const QpContext& qp) {
  unsigned at = prm::CtrlSeg::size;
  count = 0;
  length = 0;
  address_vector = nullptr;
  control = at;
  if (qp.type == QpType::ud) {
    if (opcode == WqeOpcode::nop) return true;
    if (opcode != WqeOpcode::send && opcode != WqeOpcode::send_imm) return false;
    if (at + prm::UdAdrsVector::size > bytes) return false;
    address_vector = raw + at;
    return data_segments(at + prm::UdAdrsVector::size);
  }
  if (qp.type == QpType::raw) return opcode == WqeOpcode::nop || (opcode == WqeOpcode::send && frame_segments(at));
  const bool local = opcode == WqeOpcode::nop || opcode == WqeOpcode::umr || opcode == WqeOpcode::local_inval;
  if (qp.type == QpType::xrc && !local) [[unlikely]] {
    if (at + prm::XrcSeg::size > bytes) return false;
    xrc_srqn = prm::ConstView<prm::XrcSeg>(raw + at).get<prm::XrcSeg::xrc_srqn>();
    at += prm::XrcSeg::size;
  }
  const bool reliable = is_reliable(qp.type);
  switch (opcode) {
    case WqeOpcode::nop:
      return true;
    case WqeOpcode::send:
    case WqeOpcode::send_imm:
    case WqeOpcode::send_inval:
      return data_segments(at);
    case WqeOpcode::rdma_read:
      if (!reliable) return false;
      [[fallthrough]];
    case WqeOpcode::rdma_write:
    case WqeOpcode::rdma_write_imm: {
      if (at + prm::RaddrSeg::size > bytes) return false;
      const prm::ConstView<prm::RaddrSeg> seg(raw + at);
      raddr = seg.get<prm::RaddrSeg::raddr>();
      rkey = seg.get<prm::RaddrSeg::rkey>();
      return data_segments(at + prm::RaddrSeg::size);
    }
    case WqeOpcode::atomic_cs:
    case WqeOpcode::atomic_fa: {
      if (!reliable || at + prm::RaddrSeg::size + prm::AtomicSeg::size > bytes) return false;
      const prm::ConstView<prm::RaddrSeg> seg(raw + at);
      raddr = seg.get<prm::RaddrSeg::raddr>();
      rkey = seg.get<prm::RaddrSeg::rkey>();
      const prm::ConstView<prm::AtomicSeg> op(raw + at + prm::RaddrSeg::size);
      swap_add = op.get<prm::AtomicSeg::swap_add>();
      compare = op.get<prm::AtomicSeg::compare>();
      atomic_bytes = 8;
      return data_segments(at + prm::RaddrSeg::size + prm::AtomicSeg::size) && length == 8;
    }
    case WqeOpcode::atomic_masked_cs:
    case WqeOpcode::atomic_masked_fa:
      return reliable && extended_atomic(at);
    case WqeOpcode::umr:
      return at + prm::UmrCtrlSeg::size + prm::Mkc::size <= bytes;
    case WqeOpcode::local_inval:
      return true;
    default:
      return false;
  }
}

// The opmod says that it is one, and the size of its operands.
bool SendWqe::extended_atomic(unsigned at) {
  if ((opmod & ~1u) != prm::kExtendedAtomic) return false;
  atomic_bytes = static_cast<std::uint8_t>(4u << (opmod & 1));
  swap_mask = compare_mask = 0;
  const bool swap = opcode == WqeOpcode::atomic_masked_cs, wide = atomic_bytes == 8;
  const auto operands = static_cast<unsigned>(swap && wide ? prm::MaskedAtomicSeg::size : prm::AtomicSeg::size);
  if (at + prm::RaddrSeg::size + operands > bytes) return false;
  const prm::ConstView<prm::RaddrSeg> seg(raw + at);
  raddr = seg.get<prm::RaddrSeg::raddr>();
  rkey = seg.get<prm::RaddrSeg::rkey>();
  at += static_cast<unsigned>(prm::RaddrSeg::size);
  if (wide) {
    using Seg = prm::MaskedAtomicSeg;
    const prm::ConstView<prm::AtomicSeg> first(raw + at);
    swap_add = first.get<prm::AtomicSeg::swap_add>();
    compare = first.get<prm::AtomicSeg::compare>();
    if (swap) {
      swap_mask = prm::ConstView<Seg>(raw + at).get<Seg::swap_add_mask>();
      compare_mask = prm::ConstView<Seg>(raw + at).get<Seg::compare_mask>();
    }
  } else {
    using Seg = prm::MaskedAtomic32Seg;
    const prm::ConstView<Seg> op(raw + at);
    swap_add = op.get<Seg::swap_add>();
    compare = op.get<Seg::compare>();
    swap_mask = op.get<Seg::swap_add_mask>();
    compare_mask = op.get<Seg::compare_mask>();
  }
  return data_segments(at + operands) && length == atomic_bytes;
}

// The head of the frame begins in the Ethernet segment and may go on behind it.
bool SendWqe::frame_segments(unsigned at) {
  if (at + prm::EthSeg::size > bytes) return false;
  const prm::ConstView<prm::EthSeg> eth(raw + at);
  const std::uint32_t head = eth.get<prm::EthSeg::inline_hdr_sz>();
  checksums = static_cast<std::uint8_t>(eth.get<prm::EthSeg::cs_flags>());
  const unsigned start = at + prm::EthSeg::inline_hdr_start::offset;
  if (head > bytes - start) return false;
  if (head != 0) segment[count++] = {start, 0, head, true};
  length = head;
  const unsigned end = std::max(start + head, at + static_cast<unsigned>(prm::EthSeg::size));
  return data_segments((end + prm::kWqeOctoword - 1) / prm::kWqeOctoword * prm::kWqeOctoword);
}

bool SendWqe::data_segments(unsigned at) {
  while (at + prm::DataSeg::size <= bytes) {
    const prm::ConstView<prm::DataSeg> seg(raw + at);
    const std::uint32_t n = seg.get<prm::DataSeg::byte_count>();
    if (count == kMaxSegments) return false;
    if (seg.get<prm::DataSeg::inline_>() != 0) {
      if (n > bytes - at - prm::InlineSeg::size) return false;
      if (n != 0) segment[count++] = {at + prm::InlineSeg::size, 0, n, true};
      length += n;
      at += (prm::InlineSeg::size + n + prm::kWqeOctoword - 1) / prm::kWqeOctoword * prm::kWqeOctoword;
      continue;
    }
    const std::uint32_t real = n == 0 ? prm::kZeroByteCountMeans : n;
    segment[count++] = {seg.get<prm::DataSeg::addr>(), seg.get<prm::DataSeg::lkey>(), real, false};
    length += real;
    at += prm::DataSeg::size;
  }
  return true;
}

KeyError SendWqe::gather(NicMap& nic, Peer& self, const QpContext& qp, std::uint32_t rights, PieceList& out) const {
  const KeyUse use{&self, qp.pdn, qp.qpn, rights};
  for (unsigned i = 0; i < count; ++i) {
    const Segment& s = segment[i];
    if (s.in_wqe) {
      if (rights != kMkeyLocalRead) return KeyError::rights;
      out.add(nullptr, reinterpret_cast<std::uint64_t>(raw + s.va), s.length);
    } else if (const KeyError e = translate(nic, use, s.lkey, s.va, s.length, out); e != KeyError::none) {
      return e;
    }
  }
  return KeyError::none;
}

}  // namespace verbena::device
