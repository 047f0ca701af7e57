// Objects of DEVX one by one: memory under a key that the program made, queues of every kind in it, and an account of
// which commands the device has accepted.
#pragma once

#include <poll.h>

#include <cstdio>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "devx_world.h"
#include "prm/mkey.h"
#include "prm/raw.h"
#include "prm/srq.h"

inline std::set<unsigned> accepted;  // opcodes

template <class In, class Out>
bool note(Command<In, Out>& command, int error) {
  if (error)
    std::fprintf(stderr, "opcode %#x: error %d, syndrome %#x\n", prm::load_be32(command.in.data()) >> 16, error,
                 command.syndrome());
  if (!error) accepted.insert(prm::load_be32(command.in.data()) >> 16);
  return !error;
}

// An object, and the command that undoes it.
struct Object {
  mlx5dv_devx_obj* handle = nullptr;
  std::uint32_t number = 0;
  prm::Opcode undo{};
  Object() = default;
  Object(mlx5dv_devx_obj* h, std::uint32_t n, prm::Opcode u) : handle(h), number(n), undo(u) {}
  Object(Object&& o) noexcept : handle(std::exchange(o.handle, nullptr)), number(o.number), undo(o.undo) {}
  Object& operator=(Object&& o) noexcept {
    drop();
    handle = std::exchange(o.handle, nullptr);
    number = o.number;
    undo = o.undo;
    return *this;
  }
  ~Object() { drop(); }
  void drop() {
    if (!handle) return;
    CHECK(!mlx5dv_devx_obj_destroy(std::exchange(handle, nullptr)));
    accepted.insert(static_cast<unsigned>(undo));
  }
};

template <class Number, class In, class Out>
Object made(World* w, Command<In, Out>& command, prm::Opcode undo) {
  mlx5dv_devx_obj* object = command.create(w->context);
  CHECK(note(command, object ? 0 : errno));
  return {object, static_cast<std::uint32_t>(command.out.template get<Number>()), undo};
}
// The same for a request with something behind its fixed part.
template <class In, class Out>
Object made_with(World* w, Command<In, Out>& command, std::span<const std::byte> tail, prm::Opcode undo) {
  std::vector<std::byte> whole(command.in.span().begin(), command.in.span().end());
  whole.insert(whole.end(), tail.begin(), tail.end());
  mlx5dv_devx_obj* object =
      mlx5dv_devx_obj_create(w->context, whole.data(), whole.size(), command.out.data(), command.out.span().size());
  CHECK(note(command, object ? 0 : errno));
  return {object, prm::load_be32(command.out.data() + 8) & 0xffffff, undo};
}
#define GENERAL(command, w) CHECK(note(command, (command).general((w)->context)))
#define MODIFY(command, object) CHECK(note(command, (command).modify((object).handle)))
#define QUERY(command, object) CHECK(note(command, (command).query((object).handle)))

template <class Ask>
bool soon(Ask ask, double ms = 3000) {
  for (const double end = now_ms() + ms; now_ms() < end;)
    if (ask()) return true;
  return ask();
}

// A channel with one subscription.
struct Channel {
  mlx5dv_devx_event_channel* fd;
  struct Event {
    std::uint64_t cookie;
    std::byte eqe[64];
  };
  Channel(World* w, mlx5dv_devx_obj* object, prm::EventType type, std::uint64_t cookie)
      : fd(mlx5dv_devx_create_event_channel(w->context, static_cast<mlx5dv_devx_create_event_channel_flags>(0))) {
    std::uint16_t number = static_cast<std::uint16_t>(type);
    CHECK(fd && !mlx5dv_devx_subscribe_devx_event(fd, object, sizeof number, &number, cookie));
  }
  ~Channel() { mlx5dv_devx_destroy_event_channel(fd); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  bool readable(int ms) const {
    pollfd ready = {fd->fd, POLLIN, 0};
    return poll(&ready, 1, ms) == 1;
  }
  Event take() const {
    Event event{};
    CHECK(readable(3000));
    CHECK(mlx5dv_devx_get_event(fd, reinterpret_cast<mlx5dv_devx_async_event_hdr*>(&event), sizeof event) ==
          sizeof event);
    return event;
  }
  // The next event is of this type and names that queue.
  void expect(prm::EventType type, std::uint64_t cookie, std::uint32_t number,
              prm::QpEventObject object = prm::QpEventObject::qp) const {
    const Event event = take();
    const prm::ConstView<prm::Eqe> eqe(event.eqe);
    CHECK(event.cookie == cookie && eqe.get<prm::Eqe::event_type>() == type);
    const auto queue = eqe.sub<prm::Eqe::event_data>().sub<prm::EventAuto::qp_events>();
    CHECK(queue.get<prm::QpEvents::qpn_rqn_sqn>() == number && queue.get<prm::QpEvents::type>() == object);
    CHECK(!readable(0));
  }
};

// A protection domain, and memory that a key of it covers, all made by commands.
struct Memory {
  static constexpr std::size_t kBytes = 1 << 17;
  World* w;
  char* base;
  mlx5dv_devx_umem* umem;
  mlx5dv_devx_uar* uar;
  Object pd, key;
  std::uint32_t lkey = 0, eqn = 0;
  std::size_t taken = 0;

  explicit Memory(World* world) : w(world), base(static_cast<char*>(std::aligned_alloc(4096, kBytes))) {
    std::memset(base, 0, kBytes);
    CHECK((umem = mlx5dv_devx_umem_reg(w->context, base, kBytes, IBV_ACCESS_LOCAL_WRITE)));
    CHECK((uar = mlx5dv_devx_alloc_uar(w->context, MLX5DV_UAR_ALLOC_TYPE_NC)));
    CHECK(!mlx5dv_devx_query_eqn(w->context, 0, &eqn));
    AllocPd alloc(prm::Opcode::alloc_pd);
    pd = made<prm::AllocPdOut::pd>(w, alloc, prm::Opcode::dealloc_pd);
    using In = prm::CreateMkeyIn;
    Command<In, prm::CreateMkeyOut> create(prm::Opcode::create_mkey);
    create.in.set<In::mkey_umem_id>(umem->umem_id).set<In::mkey_umem_valid>(1);
    create.in.set<In::translations_octword_actual_size>(kBytes / 4096 / 2);
    const auto mkc = create.in.sub<In::memory_key_mkey_entry>();
    prm::set_mkey_access_mode(mkc, prm::MkeyAccessMode::mtt);
    mkc.set<prm::Mkc::pd>(pd.number).set<prm::Mkc::qpn>(0xffffff).set<prm::Mkc::mkey_7_0>(0x42);
    mkc.set<prm::Mkc::lr>(1).set<prm::Mkc::lw>(1).set<prm::Mkc::rr>(1).set<prm::Mkc::rw>(1);
    mkc.set<prm::Mkc::start_addr>(reinterpret_cast<std::uintptr_t>(base)).set<prm::Mkc::len>(kBytes);
    mkc.set<prm::Mkc::translations_octword_size>(kBytes / 4096 / 2).set<prm::Mkc::log_page_size>(12);
    key = made<prm::CreateMkeyOut::mkey_index>(w, create, prm::Opcode::destroy_mkey);
    lkey = key.number << 8 | 0x42;
  }
  ~Memory() {
    key.drop();
    pd.drop();
    mlx5dv_devx_free_uar(uar);
    CHECK(!mlx5dv_devx_umem_dereg(umem));
    std::free(base);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::size_t take(std::size_t bytes) {
    const std::size_t at = taken;
    taken += (bytes + 63) & ~std::size_t{63};
    CHECK(taken <= kBytes);
    return at;
  }
  std::byte* at(std::size_t offset) const { return reinterpret_cast<std::byte*>(base) + offset; }
  void fill_data(std::byte* segment, std::size_t offset, std::uint32_t length, std::uint32_t other_key = 0) const {
    prm::View<prm::DataSeg> seg(segment);
    seg.set<prm::DataSeg::byte_count>(length).set<prm::DataSeg::lkey>(other_key ? other_key : lkey);
    seg.set<prm::DataSeg::addr>(reinterpret_cast<std::uintptr_t>(base) + offset);
  }
  template <class Wq>
  void fill_wq(const Wq& wq, prm::WqType type, unsigned log_stride, unsigned log_size, std::size_t ring,
               std::size_t record) const {
    wq.template set<prm::Wq::wq_type>(type)
        .template set<prm::Wq::log_wq_stride>(log_stride)
        .template set<prm::Wq::log_wq_sz>(log_size);
    wq.template set<prm::Wq::pd>(pd.number).template set<prm::Wq::uar_page>(uar->page_id);
    wq.template set<prm::Wq::wq_umem_id>(umem->umem_id)
        .template set<prm::Wq::wq_umem_valid>(1)
        .template set<prm::Wq::wq_umem_offset>(ring);
    wq.template set<prm::Wq::dbr_umem_id>(umem->umem_id)
        .template set<prm::Wq::dbr_umem_valid>(1)
        .template set<prm::Wq::dbr_addr>(record);
  }
};

struct CompletionQueue {
  static constexpr unsigned kLog = 5;
  Memory& m;
  std::size_t ring, record;
  Object object;
  std::uint32_t ci = 0;
  explicit CompletionQueue(Memory& memory) : m(memory), ring(m.take(64u << kLog)), record(m.take(64)) {
    CreateCq create(prm::Opcode::create_cq);
    create.in.set<prm::CreateCqIn::cq_umem_id>(m.umem->umem_id).set<prm::CreateCqIn::cq_umem_valid>(1);
    create.in.set<prm::CreateCqIn::cq_umem_offset>(ring);
    const auto cqc = create.in.sub<prm::CreateCqIn::cq_context>();
    cqc.set<prm::Cqc::log_cq_size>(kLog)
        .set<prm::Cqc::uar_page>(m.uar->page_id)
        .set<prm::Cqc::c_eqn_or_apu_element>(m.eqn);
    cqc.set<prm::Cqc::dbr_umem_id>(m.umem->umem_id).set<prm::Cqc::dbr_umem_valid>(1).set<prm::Cqc::dbr_addr>(record);
    for (unsigned i = 0; i < 1u << kLog; ++i)
      m.at(ring)[i * 64 + 63] = static_cast<std::byte>(MLX5_CQE_INVALID << 4 | 1);
    object = made<prm::CreateCqOut::cqn>(m.w, create, prm::Opcode::destroy_cq);
  }
  bool ready() const {
    const auto own = __atomic_load_n(
        reinterpret_cast<const std::uint8_t*>(m.at(ring + (ci & ((1u << kLog) - 1)) * 64)) + 63, __ATOMIC_ACQUIRE);
    return own >> 4 != MLX5_CQE_INVALID && (own & 1) == (ci >> kLog & 1);
  }
  prm::ConstView<prm::Cqe64> next(double ms = 3000) {
    CHECK(soon([&] { return ready(); }, ms));
    const std::byte* cqe = m.at(ring + (ci & ((1u << kLog) - 1)) * 64);
    store_be32(m.base + record, ++ci & 0xffffff);
    return prm::ConstView<prm::Cqe64>(cqe);
  }
};

// A queue of receives that others stand on: each WQE names the next.
struct Pool {
  static constexpr unsigned kLog = 4;
  Memory& m;
  std::size_t ring, record;
  std::uint32_t posted = 0;
  Object object;
  explicit Pool(Memory& memory) : m(memory), ring(m.take(64u << kLog)), record(m.take(64)) {}
  void receive(std::size_t to, std::uint32_t bytes) {
    std::byte* wqe = m.at(ring + (posted & ((1u << kLog) - 1)) * 64);
    std::memset(wqe, 0, 64);
    prm::View<prm::SrqNextSeg>(wqe).set<prm::SrqNextSeg::next_wqe_index>((posted + 1) & ((1u << kLog) - 1));
    m.fill_data(wqe + 16, to, bytes);
    prm::View<prm::DataSeg>(wqe + 32).set<prm::DataSeg::lkey>(prm::kInvalidLkey);
    store_be32(m.base + record, ++posted);
  }
};

// A queue pair of any service.
struct QueuePair {
  static constexpr unsigned kLog = 4;
  Memory& m;
  std::size_t rq, sq, record;
  Object object;
  std::uint32_t rq_pi = 0;
  std::uint16_t sq_pi = 0;
  template <class Fill>
  QueuePair(Memory& memory, CompletionQueue& cq, prm::QpServiceType service, Fill fill)
      : m(memory), rq(m.take((16u << kLog) + (64u << kLog))), sq(rq + (16u << kLog)), record(m.take(64)) {
    using Q = prm::Qpc;
    CreateQp create(prm::Opcode::create_qp);
    create.in.set<prm::CreateQpIn::wq_umem_id>(m.umem->umem_id)
        .set<prm::CreateQpIn::wq_umem_valid>(1)
        .set<prm::CreateQpIn::wq_umem_offset>(rq);
    const auto qpc = create.in.sub<prm::CreateQpIn::qpc>();
    qpc.set<Q::st>(service)
        .set<Q::pm_state>(prm::PathMigrationState::migrated)
        .set<Q::pd>(m.pd.number)
        .set<Q::uar_page>(m.uar->page_id);
    qpc.set<Q::cqn_snd>(cq.object.number)
        .set<Q::cqn_rcv>(cq.object.number)
        .set<Q::log_rq_size>(kLog)
        .set<Q::log_sq_size>(kLog);
    qpc.set<Q::ts_format>(prm::TimestampFormat::standard);
    qpc.set<Q::dbr_umem_id>(m.umem->umem_id).set<Q::dbr_umem_valid>(1).set<Q::dbr_addr>(record);
    fill(qpc);
    if (qpc.template get<Q::rq_type>() != prm::RqType::regular) sq = rq;  // the send ring comes first then
    object = made<prm::CreateQpOut::qpn>(m.w, create, prm::Opcode::destroy_qp);
  }
  // Any transition: all have the shape of the first.
  template <class Fill>
  void go(prm::Opcode opcode, std::uint32_t mask, Fill fill) {
    Command<prm::Rst2initQpIn, prm::Rst2initQpOut> step(opcode);
    step.in.set<prm::Rst2initQpIn::qpn>(object.number).set<prm::Rst2initQpIn::opt_param_mask>(mask);
    const auto qpc = step.in.sub<prm::Rst2initQpIn::qpc>();
    qpc.sub<prm::Qpc::primary_address_path>().set<prm::Ads::vhca_port_num>(1);
    fill(qpc);
    MODIFY(step, object);
  }
  void to_init(std::uint32_t counters = 0) {
    go(prm::Opcode::rst2init_qp, 0, [&](auto qpc) {
      qpc.template set<prm::Qpc::rwe>(1).template set<prm::Qpc::counter_set_id>(counters).template set<prm::Qpc::q_key>(
          0x1234);
    });
  }
  void connect(std::uint32_t peer) {
    to_rtr(peer);
    to_rts();
  }
  void to_rtr(std::uint32_t peer) {
    using Q = prm::Qpc;
    go(prm::Opcode::init2rtr_qp, 0, [&](auto qpc) {
      qpc.template set<Q::mtu>(prm::QpMtu::mtu_1k)
          .template set<Q::log_msg_max>(20)
          .template set<Q::remote_qpn>(peer)
          .template set<Q::min_rnr_nak>(1);
      const auto path = qpc.template sub<Q::primary_address_path>();
      path.template set<prm::Ads::src_addr_index>(static_cast<std::uint32_t>(m.w->gid_index))
          .template set<prm::Ads::hop_limit>(64);
      path.template set<prm::Ads::udp_sport>(0xc123);
      std::memcpy(path.template bytes<prm::Ads::rgid_rip>().data(), m.w->gid.raw, 16);
    });
  }
  void to_rts() {
    using Q = prm::Qpc;
    go(prm::Opcode::rtr2rts_qp, 0, [&](auto qpc) {
      qpc.template set<Q::retry_count>(3).template set<Q::rnr_retry>(3);
      qpc.template sub<Q::primary_address_path>().template set<prm::Ads::ack_timeout>(12);
    });
  }
  prm::Box<prm::QueryQpOut> state() {
    QueryQp query(prm::Opcode::query_qp);
    query.in.set<prm::QueryQpIn::qpn>(object.number);
    QUERY(query, object);
    return query.out;
  }
  bool is(prm::QpState wanted) { return state().sub<prm::QueryQpOut::qpc>().get<prm::Qpc::state>() == wanted; }

  void receive(std::size_t to, std::uint32_t bytes) {
    m.fill_data(m.at(rq + (rq_pi & ((1u << kLog) - 1)) * 16), to, bytes);
    store_be32(m.base + record, ++rq_pi);
  }
  // A request: control segment, what `fill` puts behind it (returns how many segments), data.
  template <class Fill>
  void post(prm::WqeOpcode opcode, std::size_t from, std::uint32_t bytes, Fill fill, std::uint32_t key = 0) {
    std::byte* wqe = m.at(sq + (sq_pi & ((1u << kLog) - 1)) * 64);
    std::memset(wqe, 0, 64);
    const unsigned between = fill(wqe + 16);
    // A data segment behind an address vector begins the next block.
    std::byte* data = between < 3 ? wqe + 16 + between * 16 : m.at(sq + ((sq_pi + 1) & ((1u << kLog) - 1)) * 64);
    m.fill_data(data, from, bytes, key);
    prm::View<prm::CtrlSeg> ctrl(wqe);
    ctrl.set<prm::CtrlSeg::wqe_index>(sq_pi).set<prm::CtrlSeg::opcode>(opcode).set<prm::CtrlSeg::qpn>(object.number);
    ctrl.set<prm::CtrlSeg::ds>(2 + between).set<prm::CtrlSeg::ce>(prm::WqeCompletion::always);
    sq_pi = static_cast<std::uint16_t>(sq_pi + (between < 3 ? 1 : 2));
    store_be32(m.base + record + 4, sq_pi);
    *static_cast<volatile std::uint64_t*>(m.uar->reg_addr) = *reinterpret_cast<std::uint64_t*>(wqe);
  }
  void send(std::size_t from, std::uint32_t bytes, std::uint32_t key = 0) {
    post(
        prm::WqeOpcode::send, from, bytes, [](std::byte*) { return 0u; }, key);
  }
  void write(std::size_t from, std::uint32_t bytes, std::size_t to) {
    post(prm::WqeOpcode::rdma_write, from, bytes, [&](std::byte* at) {
      prm::View<prm::RaddrSeg>(at)
          .set<prm::RaddrSeg::raddr>(reinterpret_cast<std::uintptr_t>(m.base) + to)
          .set<prm::RaddrSeg::rkey>(m.lkey);
      return 1u;
    });
  }
};
