// What the DEVX programs share: commands in named fields, and queues that the program builds in its own memory.
#pragma once

#include <infiniband/mlx5dv.h>
#include <unistd.h>

#include "pair.h"
#include "prm/caps.h"
#include "prm/cq.h"
#include "prm/cqe.h"
#include "prm/doorbell.h"
#include "prm/eqe.h"
#include "prm/misc.h"
#include "prm/port.h"
#include "prm/qp.h"
#include "prm/wqe.h"

namespace prm = verbena::prm;

// One command and its reply.
template <class In, class Out>
struct Command {
  explicit Command(prm::Opcode opcode) { in.template set<typename In::opcode>(opcode); }
  prm::Box<In> in;
  prm::Box<Out> out;
  int general(ibv_context* context) {
    return mlx5dv_devx_general_cmd(context, in.data(), In::size, out.data(), Out::size);
  }
  mlx5dv_devx_obj* create(ibv_context* context) {
    return mlx5dv_devx_obj_create(context, in.data(), In::size, out.data(), Out::size);
  }
  int modify(mlx5dv_devx_obj* object) {
    return mlx5dv_devx_obj_modify(object, in.data(), In::size, out.data(), Out::size);
  }
  int query(mlx5dv_devx_obj* object) {
    return mlx5dv_devx_obj_query(object, in.data(), In::size, out.data(), Out::size);
  }
  prm::Status status() {
    return prm::ConstView<prm::CommandOut>(out.data()).template get<prm::CommandOut::status>();
  }
  std::uint32_t syndrome() {
    return prm::ConstView<prm::CommandOut>(out.data()).template get<prm::CommandOut::syndrome>();
  }
};
using CreateCq = Command<prm::CreateCqIn, prm::CreateCqOut>;
using QueryCq = Command<prm::QueryCqIn, prm::QueryCqOut>;
using CreateQp = Command<prm::CreateQpIn, prm::CreateQpOut>;
using QueryQp = Command<prm::QueryQpIn, prm::QueryQpOut>;
using AllocPd = Command<prm::AllocPdIn, prm::AllocPdOut>;

inline World open_devx() {
  World w;
  std::memset(&w, 0, sizeof w);
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  CHECK(list && count > 0);
  mlx5dv_context_attr attr = {};
  attr.flags = MLX5DV_CONTEXT_FLAGS_DEVX;
  CHECK((w.context = mlx5dv_open_device(list[0], &attr)));
  ibv_free_device_list(list);
  CHECK((w.pd = ibv_alloc_pd(w.context)));
  w.gid_index = 1;
  CHECK(!ibv_query_gid(w.context, 1, w.gid_index, &w.gid));
  return w;
}

inline std::uint32_t pd_number(ibv_pd* pd) {
  mlx5dv_pd out = {};
  mlx5dv_obj object = {};
  object.pd.in = pd;
  object.pd.out = &out;
  CHECK(!mlx5dv_init_obj(&object, MLX5DV_OBJ_PD));
  return out.pdn;
}

inline std::uint32_t srq_number(ibv_srq* srq) {
  mlx5dv_srq out = {};
  out.comp_mask = MLX5DV_SRQ_MASK_SRQN;
  mlx5dv_obj object = {};
  object.srq.in = srq;
  object.srq.out = &out;
  CHECK(!mlx5dv_init_obj(&object, MLX5DV_OBJ_SRQ));
  return out.srqn;
}

inline void store_be32(void* to, std::uint32_t value) {
  __atomic_store_n(static_cast<std::uint32_t*>(to), htobe32(value), __ATOMIC_RELEASE);
}

// A CQ and an RC QP in memory of the program.
struct Queues {
  static constexpr unsigned kLogCq = 5, kLogRq = 4, kLogSq = 4;
  static constexpr std::size_t kBytes = 16384, kQpAt = 4096, kCqDbr = 12288, kQpDbr = 12352, kDataAt = 8192;
  static constexpr std::size_t kRqBytes = 16u << kLogRq;

  World* w = nullptr;
  char* memory = nullptr;
  mlx5dv_devx_umem* umem = nullptr;
  bool borrowed = false;
  bool no_record = false;  // the UAR store alone says what is posted
  mlx5dv_devx_uar* uar = nullptr;
  mlx5dv_devx_obj *cq = nullptr, *qp = nullptr;
  ibv_mr* mr = nullptr;
  std::uint32_t cqn = 0, qpn = 0, ci = 0;
  std::uint16_t sq_pi = 0, rq_pi = 0;

  explicit Queues(World* world, std::uint32_t uar_type = MLX5DV_UAR_ALLOC_TYPE_BF)
      : Queues(world, uar_type, static_cast<char*>(std::aligned_alloc(4096, kBytes))) {}
  Queues(World* world, std::uint32_t uar_type, char* place, bool without_record = false)
      : w(world), memory(place), no_record(without_record) {
    std::memset(memory, 0, kBytes);
    CHECK((umem = mlx5dv_devx_umem_reg(w->context, memory, kBytes, IBV_ACCESS_LOCAL_WRITE)));
    build(uar_type);
  }
  struct NoRecord {};
  Queues(World* world, NoRecord) : Queues(world, MLX5DV_UAR_ALLOC_TYPE_NC, static_cast<char*>(std::aligned_alloc(4096, kBytes)), true) {}
  // In a UMEM that is there already; it and the memory stay the caller's.
  Queues(World* world, char* place, mlx5dv_devx_umem* there) : w(world), memory(place), umem(there), borrowed(true) {
    std::memset(memory, 0, kBytes);
    build(MLX5DV_UAR_ALLOC_TYPE_BF);
  }
  void build(std::uint32_t uar_type) {
    CHECK((uar = mlx5dv_devx_alloc_uar(w->context, uar_type)));
    CHECK((mr = ibv_reg_mr(w->pd, memory + kDataAt, 4096, kAllAccess)));
    make_cq();
    make_qp();
  }
  ~Queues() {
    CHECK(!mlx5dv_devx_obj_destroy(qp) && !mlx5dv_devx_obj_destroy(cq));
    CHECK(!ibv_dereg_mr(mr));
    mlx5dv_devx_free_uar(uar);
    if (borrowed) return;
    CHECK(!mlx5dv_devx_umem_dereg(umem));
    std::free(memory);
  }
  Queues(const Queues&) = delete;
  Queues& operator=(const Queues&) = delete;

  void fill(CreateCq& create, std::uint32_t eqn) const {
    using In = prm::CreateCqIn;
    create.in.set<In::cq_umem_id>(umem->umem_id).set<In::cq_umem_valid>(1);
    const auto cqc = create.in.sub<In::cq_context>();
    cqc.set<prm::Cqc::log_cq_size>(kLogCq).set<prm::Cqc::uar_page>(uar->page_id);
    cqc.set<prm::Cqc::c_eqn_or_apu_element>(eqn);
    cqc.set<prm::Cqc::dbr_umem_id>(umem->umem_id).set<prm::Cqc::dbr_umem_valid>(1).set<prm::Cqc::dbr_addr>(kCqDbr);
  }
  void make_cq() {
    std::uint32_t eqn = 0;
    CHECK(!mlx5dv_devx_query_eqn(w->context, 0, &eqn));
    CreateCq create(prm::Opcode::create_cq);
    fill(create, eqn);
    for (unsigned i = 0; i < 1u << kLogCq; ++i) memory[i * 64 + 63] = static_cast<char>(MLX5_CQE_INVALID << 4 | 1);
    CHECK((cq = create.create(w->context)));
    cqn = create.out.get<prm::CreateCqOut::cqn>();
  }
  void make_qp() {
    using In = prm::CreateQpIn;
    CreateQp create(prm::Opcode::create_qp);
    create.in.set<In::wq_umem_id>(umem->umem_id).set<In::wq_umem_valid>(1).set<In::wq_umem_offset>(kQpAt);
    const auto qpc = create.in.sub<In::qpc>();
    using Q = prm::Qpc;
    qpc.set<Q::st>(prm::QpServiceType::rc).set<Q::pm_state>(prm::PathMigrationState::migrated);
    qpc.set<Q::pd>(pd_number(w->pd)).set<Q::uar_page>(uar->page_id).set<Q::cqn_snd>(cqn).set<Q::cqn_rcv>(cqn);
    qpc.set<Q::log_rq_size>(kLogRq).set<Q::log_rq_stride>(0).set<Q::log_sq_size>(kLogSq);
    qpc.set<Q::ts_format>(prm::TimestampFormat::standard);
    qpc.set<Q::dbr_umem_id>(umem->umem_id).set<Q::dbr_umem_valid>(1).set<Q::dbr_addr>(kQpDbr);
    if (no_record) qpc.set<Q::send_dbr_mode>(prm::SendDbrMode::no_dbr_ext);
    CHECK((qp = create.create(w->context)));
    qpn = create.out.get<prm::CreateQpOut::qpn>();
  }

  void connect(std::uint32_t peer) {
    using Q = prm::Qpc;
    Command<prm::Rst2initQpIn, prm::Rst2initQpOut> init(prm::Opcode::rst2init_qp);
    init.in.set<prm::Rst2initQpIn::qpn>(qpn);
    auto qpc = init.in.sub<prm::Rst2initQpIn::qpc>();
    qpc.set<Q::rre>(1).set<Q::rwe>(1);
    qpc.sub<Q::primary_address_path>().set<prm::Ads::vhca_port_num>(1);
    CHECK(!init.modify(qp));
    Command<prm::Init2rtrQpIn, prm::Init2rtrQpOut> rtr(prm::Opcode::init2rtr_qp);
    rtr.in.set<prm::Init2rtrQpIn::qpn>(qpn);
    qpc = rtr.in.sub<prm::Init2rtrQpIn::qpc>();
    qpc.set<Q::mtu>(prm::QpMtu::mtu_1k).set<Q::log_msg_max>(20).set<Q::remote_qpn>(peer).set<Q::min_rnr_nak>(1);
    auto path = qpc.sub<Q::primary_address_path>();
    path.set<prm::Ads::vhca_port_num>(1).set<prm::Ads::src_addr_index>(static_cast<std::uint32_t>(w->gid_index));
    path.set<prm::Ads::hop_limit>(64).set<prm::Ads::udp_sport>(0xc123);
    std::memcpy(path.bytes<prm::Ads::rgid_rip>().data(), w->gid.raw, 16);
    CHECK(!rtr.modify(qp));
    Command<prm::Rtr2rtsQpIn, prm::Rtr2rtsQpOut> rts(prm::Opcode::rtr2rts_qp);
    rts.in.set<prm::Rtr2rtsQpIn::qpn>(qpn);
    qpc = rts.in.sub<prm::Rtr2rtsQpIn::qpc>();
    qpc.set<Q::retry_count>(3).set<Q::rnr_retry>(3);
    qpc.sub<Q::primary_address_path>().set<prm::Ads::vhca_port_num>(1).set<prm::Ads::ack_timeout>(12);
    CHECK(!rts.modify(qp));
  }

  char* data() const { return memory + kDataAt; }
  std::byte* at(std::size_t offset) const { return reinterpret_cast<std::byte*>(memory + offset); }

  // A request of three 16-byte segments: RDMA WRITE, or SEND with two.
  void post(prm::WqeOpcode opcode, std::uint32_t length, std::uint64_t remote, std::uint32_t rkey, bool blueflame) {
    std::byte* wqe = at(kQpAt + kRqBytes + (sq_pi & ((1u << kLogSq) - 1)) * 64u);
    std::memset(wqe, 0, 64);
    const bool write = opcode == prm::WqeOpcode::rdma_write;
    prm::View<prm::CtrlSeg> ctrl(wqe);
    ctrl.set<prm::CtrlSeg::wqe_index>(sq_pi).set<prm::CtrlSeg::opcode>(opcode).set<prm::CtrlSeg::qpn>(qpn);
    ctrl.set<prm::CtrlSeg::ds>(write ? 3 : 2).set<prm::CtrlSeg::ce>(prm::WqeCompletion::always);
    std::byte* next = wqe + 16;
    if (write) {
      prm::View<prm::RaddrSeg> raddr(next);
      raddr.set<prm::RaddrSeg::raddr>(remote).set<prm::RaddrSeg::rkey>(rkey);
      next += 16;
    }
    fill_data(next, length);
    ++sq_pi;
    if (!no_record) store_be32(memory + kQpDbr + 4, sq_pi);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (no_record) {
      auto* page = static_cast<char*>(uar->base_addr);
      *reinterpret_cast<volatile std::uint64_t*>(page + prm::UarPage::send_without_record) = *reinterpret_cast<std::uint64_t*>(wqe);
      return;
    }
    auto* reg = static_cast<volatile std::uint64_t*>(uar->reg_addr);
    for (unsigned i = 0; i < (blueflame ? 8u : 1u); ++i) reg[i] = reinterpret_cast<std::uint64_t*>(wqe)[i];
  }
  void fill_data(std::byte* segment, std::uint32_t length) const {
    prm::View<prm::DataSeg> seg(segment);
    seg.set<prm::DataSeg::byte_count>(length).set<prm::DataSeg::lkey>(mr->lkey);
    seg.set<prm::DataSeg::addr>(reinterpret_cast<std::uintptr_t>(data()));
  }
  void post_recv(std::uint32_t length) {
    fill_data(at(kQpAt + (rq_pi & ((1u << kLogRq) - 1)) * 16u), length);
    store_be32(memory + kQpDbr, ++rq_pi);
  }

  // The next CQE, within 5 s, and its consumption.
  prm::ConstView<prm::Cqe64> next_cqe() {
    const std::byte* cqe = at((ci & ((1u << kLogCq) - 1)) * 64u);
    const double end = now_ms() + 5000;
    for (;;) {
      const auto own = __atomic_load_n(reinterpret_cast<const std::uint8_t*>(cqe) + 63, __ATOMIC_ACQUIRE);
      if (own >> 4 != MLX5_CQE_INVALID && (own & 1) == (ci >> kLogCq & 1)) break;
      CHECK(now_ms() < end);
    }
    store_be32(memory + kCqDbr, ++ci & 0xffffff);
    return prm::ConstView<prm::Cqe64>(cqe);
  }
  // Until the device has executed what was posted, 1 s at most.
  void wait_for_device() {
    QueryQp query(prm::Opcode::query_qp);
    query.in.set<prm::QueryQpIn::qpn>(qpn);
    for (const double end = now_ms() + 1000; now_ms() < end;) {
      CHECK(!query.query(qp));
      if (query.out.sub<prm::QueryQpOut::qpc>().get<prm::Qpc::hw_sq_wqebb_counter>() == sq_pi) return;
    }
  }
  void arm() const {
    store_be32(memory + kCqDbr + 4, ci & 0xffffff);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    auto* base = static_cast<char*>(uar->base_addr);
    *reinterpret_cast<volatile std::uint64_t*>(base + prm::UarPage::cq_arm) =
        htobe64(static_cast<std::uint64_t>(ci & 0xffffff) << 32 | cqn);
  }
};

// Two RC queue pairs of the verbs, connected to each other, on one CQ and one piece of memory.
struct ConnectedPair {
  ibv_cq *cq, *received;
  ibv_qp *a, *b;
  ibv_mr* mr;
  alignas(64) char data[256] = {};
  // `srq`: where b receives, if not by itself. `other`: where what b receives completes, if not with all the rest.
  explicit ConnectedPair(World* w, ibv_srq* srq = nullptr, ibv_cq* other = nullptr) {
    CHECK((cq = ibv_create_cq(w->context, 64, nullptr, nullptr, 0)));
    received = other ? other : cq;
    CHECK((mr = ibv_reg_mr(w->pd, data, sizeof data, kAllAccess)));
    a = make_qp(w, IBV_QPT_RC, cq, cq, nullptr);
    b = make_qp(w, IBV_QPT_RC, cq, received, srq);
    connect_qp(w, a, b->qp_num);
    connect_qp(w, b, a->qp_num);
  }
  ConnectedPair(const ConnectedPair&) = delete;
  ConnectedPair& operator=(const ConnectedPair&) = delete;
  ~ConnectedPair() { CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b) && !ibv_destroy_cq(cq) && !ibv_dereg_mr(mr)); }
};
