// The calls of mlx5dv at work, by what the device does and not by what they return: raw queries and changes of objects
// that verbs made, capabilities, ports, clocks, allocators, queues with the driver's own attributes.
#include <fcntl.h>
#include <poll.h>
#include <time.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "devx_world.h"
#include "prm/raw.h"
#include "prm/srq.h"
#include "xrc.h"

namespace {

using prm::Opcode;

struct Pair : ConnectedPair {
  using ConnectedPair::ConnectedPair;
  void send() {
    ibv_sge sge = {reinterpret_cast<std::uintptr_t>(data), 8, mr->lkey};
    ibv_send_wr wr = {}, *bad;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    CHECK(!ibv_post_send(a, &wr, &bad));
  }
  void receive(ibv_srq* srq) {
    ibv_sge sge = {reinterpret_cast<std::uintptr_t>(data) + 128, 8, mr->lkey};
    ibv_recv_wr wr = {}, *bad;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    CHECK(!(srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(b, &wr, &bad)));
  }
  // A message there, and its completions taken.
  void exchange() {
    std::memcpy(data, &++number, sizeof number);
    receive(nullptr);
    send();
    CHECK(next_wc(cq).status == IBV_WC_SUCCESS && next_wc(received).status == IBV_WC_SUCCESS);
    CHECK(!std::memcmp(data, data + 128, sizeof number));
  }
  std::uint32_t number = 0;
};

// What a raw query says is what the verbs did; what a raw change does, traffic and the verbs feel.
void queue_pairs(World* w) {
  Pair p(w);
  QueryQp query(Opcode::query_qp);
  query.in.set<prm::QueryQpIn::qpn>(p.a->qp_num);
  CHECK(!mlx5dv_devx_qp_query(p.a, query.in.data(), prm::QueryQpIn::size, query.out.data(), prm::QueryQpOut::size));
  const auto qpc = query.out.sub<prm::QueryQpOut::qpc>();
  CHECK(qpc.get<prm::Qpc::state>() == prm::QpState::rts && qpc.get<prm::Qpc::remote_qpn>() == p.b->qp_num);
  CHECK(qpc.get<prm::Qpc::mtu>() == prm::QpMtu::mtu_1k && qpc.get<prm::Qpc::st>() == prm::QpServiceType::rc);
  p.receive(nullptr);
  Command<prm::Qp2errIn, prm::Qp2errOut> error(Opcode::qp_2err);
  error.in.set<prm::Qp2errIn::qpn>(p.b->qp_num);
  CHECK(!mlx5dv_devx_qp_modify(p.b, error.in.data(), prm::Qp2errIn::size, error.out.data(), prm::Qp2errOut::size));
  CHECK(next_wc(p.cq).status == IBV_WC_WR_FLUSH_ERR);
  ibv_qp_attr attr;
  ibv_qp_init_attr init;
  CHECK(!ibv_query_qp(p.b, &attr, IBV_QP_STATE, &init) && attr.qp_state == IBV_QPS_ERR);
}

// A CQ is moderated by a raw command: of the completions of a while, one event.
void completion_queues(World* w) {
  ibv_comp_channel* channel = ibv_create_comp_channel(w->context);
  ibv_cq* cq = ibv_create_cq(w->context, 64, nullptr, channel, 0);
  CHECK(channel && cq);
  mlx5dv_cq view = {};
  mlx5dv_obj object = {};
  object.cq.in = cq;
  object.cq.out = &view;
  CHECK(!mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ));
  QueryCq query(Opcode::query_cq);
  query.in.set<prm::QueryCqIn::cqn>(view.cqn);
  const auto ask = [&] {
    CHECK(!mlx5dv_devx_cq_query(cq, query.in.data(), prm::QueryCqIn::size, query.out.data(), prm::QueryCqOut::size));
    return query.out.sub<prm::QueryCqOut::cq_context>();
  };
  CHECK(1u << ask().get<prm::Cqc::log_cq_size>() == view.cqe_cnt && ask().get<prm::Cqc::cq_max_count>() == 0);
  constexpr unsigned kPeriodUs = 4000, kTries = 200;
  const auto moderate = [&](unsigned count, unsigned period_us) {
    Command<prm::ModifyCqIn, prm::ModifyCqOut> change(Opcode::modify_cq);
    constexpr std::uint32_t period_and_count = 3;
    change.in.set<prm::ModifyCqIn::cqn>(view.cqn);
    change.in.set<prm::ModifyCqIn::modify_field_select_resize_field_select>(period_and_count);
    change.in.sub<prm::ModifyCqIn::cq_context>().set<prm::Cqc::cq_period>(period_us).set<prm::Cqc::cq_max_count>(count);
    CHECK(!mlx5dv_devx_cq_modify(cq, change.in.data(), prm::ModifyCqIn::size, change.out.data(), prm::ModifyCqOut::size));
    CHECK(ask().get<prm::Cqc::cq_max_count>() == count && ask().get<prm::Cqc::cq_period>() == period_us);
  };
  {
    Pair p(w, nullptr, cq);
    // Events that came for `n` messages, each taken and the CQ armed again at once; how long the messages took. `wait_ms`:
    // how long to wait for one after each message.
    const auto events_of = [&](unsigned n, int wait_ms, double* took) {
      unsigned events = 0;
      const auto take = [&](int ms) {
        pollfd ready = {channel->fd, POLLIN, 0};
        if (poll(&ready, 1, ms) != 1) return false;
        ibv_cq* fired;
        void* cookie;
        CHECK(!ibv_get_cq_event(channel, &fired, &cookie) && fired == cq);
        ibv_ack_cq_events(cq, 1);
        CHECK(!ibv_req_notify_cq(cq, 0));
        ++events;
        return true;
      };
      poll(nullptr, 0, 10);  // the period counts from the last event
      CHECK(!ibv_req_notify_cq(cq, 0));
      p.exchange();  // one message's completion is taken with the first event, which comes at once
      CHECK(take(3000));
      const double begin = now_ms();
      events = 0;
      for (unsigned i = 0; i < n; ++i) {
        p.exchange();
        take(wait_ms);
      }
      *took = now_ms() - begin;
      while (take(kPeriodUs / 1000 + 3)) {
      }
      return events;
    };
    double took = 0;
    EXPECT(events_of(12, 3000, &took) == 12, "an event for each completion");
    moderate(4, kPeriodUs);
    unsigned events = 0;
    for (unsigned i = 0; i < kTries && events != 3; ++i)  // a busy machine may need longer than a period for four messages
      EXPECT((events = events_of(12, 0, &took)) >= 3 && (events == 3 || took >= kPeriodUs * 1e-3), "%u events in %.3f ms", events, took);
    EXPECT(events == 3, "one event for four completions: %u", events);
    moderate(0, 0);
    EXPECT(events_of(12, 3000, &took) == 12, "an event for each completion again");
  }
  CHECK(!ibv_destroy_cq(cq) && !ibv_destroy_comp_channel(channel));
}

// The event that the limit of a shared receive queue was reached comes.
void expect_limit(World* w, ibv_srq* srq) {
  pollfd ready = {w->context->async_fd, POLLIN, 0};
  ibv_async_event event;
  CHECK(poll(&ready, 1, 3000) == 1 && !ibv_get_async_event(w->context, &event));
  CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == srq);
  ibv_ack_async_event(&event);
}

void shared_queues(World* w) {
  ibv_srq_init_attr init = {};
  init.attr.max_wr = 16;
  init.attr.max_sge = 1;
  ibv_srq* srq = ibv_create_srq(w->pd, &init);
  CHECK(srq);
  const std::uint32_t srqn = srq_number(srq);
  {
    Pair p(w, srq);
    for (int i = 0; i < 4; ++i) p.receive(srq);
    Command<prm::ModifyRmpIn, prm::ModifyRmpOut> arm(Opcode::modify_rmp);
    arm.in.set<prm::ModifyRmpIn::rmp_state>(prm::RmpState::rdy).set<prm::ModifyRmpIn::rmpn>(srqn);
    arm.in.sub<prm::ModifyRmpIn::bitmask>().set<prm::RmpBitmask::lwm>(1);
    arm.in.sub<prm::ModifyRmpIn::ctx>().set<prm::Rmpc::state>(prm::RmpState::rdy);
    arm.in.sub<prm::ModifyRmpIn::ctx>().sub<prm::Rmpc::wq>().set<prm::Wq::lwm>(3);
    CHECK(!mlx5dv_devx_srq_modify(srq, arm.in.data(), prm::ModifyRmpIn::size, arm.out.data(), prm::ModifyRmpOut::size));
    ibv_srq_attr now;
    CHECK(!ibv_query_srq(srq, &now) && now.srq_limit == 3);
    for (int i = 0; i < 2; ++i) p.send();
    for (int i = 0; i < 4; ++i) CHECK(next_wc(p.cq).status == IBV_WC_SUCCESS);
    expect_limit(w, srq);
    Command<prm::QueryRmpIn, prm::QueryRmpOut> query(Opcode::query_rmp);
    query.in.set<prm::QueryRmpIn::rmpn>(srqn);
    CHECK(!mlx5dv_devx_srq_query(srq, query.in.data(), prm::QueryRmpIn::size, query.out.data(), prm::QueryRmpOut::size));
    const auto wq = query.out.sub<prm::QueryRmpOut::rmp_context>().sub<prm::Rmpc::wq>();
    CHECK(wq.get<prm::Wq::hw_counter>() == 2 && wq.get<prm::Wq::sw_counter>() == 4 && wq.get<prm::Wq::lwm>() == 0);
  }
  CHECK(!ibv_destroy_srq(srq));
}

// The same of an XRC SRQ, which has a command of its own.
void xrc_shared_queues(World* w) {
  ibv_xrcd* xrcd = open_xrcd(w);
  ibv_cq *sent = ibv_create_cq(w->context, 16, nullptr, nullptr, 0), *received = ibv_create_cq(w->context, 16, nullptr, nullptr, 0);
  CHECK(sent && received);
  ibv_srq* srq = make_xrc_srq(w, xrcd, received, 16);
  ibv_qp *initiator = make_xrc_initiator(w, sent, 8), *target = make_xrc_target(w, xrcd);
  connect_qp(w, initiator, target->qp_num);
  connect_qp(w, target, initiator->qp_num);
  char data[64] = {};
  ibv_mr* mr = ibv_reg_mr(w->pd, data, sizeof data, kAllAccess);
  CHECK(mr);
  ibv_sge sge = {reinterpret_cast<std::uintptr_t>(data), 8, mr->lkey};
  for (int i = 0; i < 4; ++i) {
    ibv_recv_wr wr = {}, *bad = nullptr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    CHECK(!ibv_post_srq_recv(srq, &wr, &bad));
  }
  const std::uint32_t srqn = srq_number(srq);
  Command<prm::ArmXrcSrqIn, prm::ArmXrcSrqOut> arm(Opcode::arm_xrc_srq);
  arm.in.set<prm::ArmXrcSrqIn::op_mod>(1).set<prm::ArmXrcSrqIn::xrc_srqn>(srqn).set<prm::ArmXrcSrqIn::lwm>(3);
  CHECK(!mlx5dv_devx_srq_modify(srq, arm.in.data(), arm.in.size(), arm.out.data(), arm.out.size()));
  pollfd ready = {w->context->async_fd, POLLIN, 0};
  for (int i = 0; i < 2; ++i) {
    CHECK(poll(&ready, 1, 0) == 0);
    ibv_send_wr wr = {}, *bad = nullptr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.qp_type.xrc.remote_srqn = srqn;
    CHECK(!ibv_post_send(initiator, &wr, &bad));
    CHECK(next_wc(sent).status == IBV_WC_SUCCESS && next_wc(received).status == IBV_WC_SUCCESS);
  }
  expect_limit(w, srq);
  Command<prm::QueryXrcSrqIn, prm::QueryXrcSrqOut> query(Opcode::query_xrc_srq);
  query.in.set<prm::QueryXrcSrqIn::xrc_srqn>(srqn);
  CHECK(!mlx5dv_devx_srq_query(srq, query.in.data(), query.in.size(), query.out.data(), query.out.size()));
  CHECK(query.out.sub<prm::QueryXrcSrqOut::xrc_srq_context_entry>().get<prm::XrcSrqc::wqe_cnt>() == 2);
  CHECK(!ibv_destroy_qp(initiator) && !ibv_destroy_qp(target) && !ibv_destroy_srq(srq) && !ibv_dereg_mr(mr));
  CHECK(!ibv_close_xrcd(xrcd) && !ibv_destroy_cq(sent) && !ibv_destroy_cq(received));
}

void facts(World* w) {
  CHECK(mlx5dv_is_supported(w->context->device));
  // What the library says of the device, beside what the device says by command.
  constexpr std::uint64_t kKnown = MLX5DV_CONTEXT_MASK_CQE_COMPRESION | MLX5DV_CONTEXT_MASK_SWP | MLX5DV_CONTEXT_MASK_STRIDING_RQ |
                                   MLX5DV_CONTEXT_MASK_TUNNEL_OFFLOADS | MLX5DV_CONTEXT_MASK_DYN_BFREGS |
                                   MLX5DV_CONTEXT_MASK_CLOCK_INFO_UPDATE | MLX5DV_CONTEXT_MASK_FLOW_ACTION_FLAGS |
                                   MLX5DV_CONTEXT_MASK_DC_ODP_CAPS | MLX5DV_CONTEXT_MASK_HCA_CORE_CLOCK |
                                   MLX5DV_CONTEXT_MASK_NUM_LAG_PORTS | MLX5DV_CONTEXT_MASK_SIGNATURE_OFFLOAD |
                                   MLX5DV_CONTEXT_MASK_DCI_STREAMS | MLX5DV_CONTEXT_MASK_WR_MEMCPY_LENGTH |
                                   MLX5DV_CONTEXT_MASK_CRYPTO_OFFLOAD;
  mlx5dv_context info;
  std::memset(&info, 0xff, sizeof info);
  info.comp_mask = 0;
  CHECK(!mlx5dv_query_device(w->context, &info) && !info.comp_mask && info.num_lag_ports == 0xff);  // nobody asked
  info.comp_mask = kKnown | std::uint64_t{1} << 60;
  CHECK(!mlx5dv_query_device(w->context, &info) && info.comp_mask == kKnown && info.version == 0);
  const auto page = [&](prm::CapType type) {
    Command<prm::QueryHcaCapIn, prm::QueryHcaCapOut> query(Opcode::query_hca_cap);
    query.in.set<prm::QueryHcaCapIn::op_mod>(prm::cap_op_mod(type, prm::CapMode::current));
    CHECK(!query.general(w->context));
    return query.out;
  };
  const auto general = page(prm::CapType::general);
  using Cap = prm::CmdHcaCap;
  const auto cap = std::as_const(general).view().sub<prm::QueryHcaCapOut::capability>().sub<prm::HcaCapUnion::cmd_hca_cap>();
  const auto says = [&](std::uint64_t flag, bool device) { return !(info.flags & flag) == !device; };
  CHECK(says(MLX5DV_CONTEXT_FLAGS_CQE_V1, cap.get<Cap::cqe_version>()));
  constexpr std::uint64_t kBlueFlame = 1 << 8;  // MLX5DV_CONTEXT_FLAGS_BLUEFLAME, which Debian 12 does not have yet
  CHECK(!(info.flags & kBlueFlame) || cap.get<Cap::bf>());
  CHECK(says(MLX5DV_CONTEXT_FLAGS_CQE_128B_PAD, cap.get<Cap::cqe_128_always>()));
  CHECK(!info.cqe_comp_caps.max_num == !cap.get<Cap::cqe_compression>());
  CHECK(!info.dci_streams_caps.max_log_num_concurent && !info.sig_caps.block_size && !info.crypto_caps.flags);
  CHECK(!info.sw_parsing_caps.sw_parsing_offloads && !info.striding_rq_caps.supported_qpts && !info.max_wr_memcpy_length);
  CHECK(!cap.get<Cap::striding_rq>() && !cap.get<Cap::crypto>());
  CHECK(info.num_lag_ports == cap.get<Cap::num_lag_ports>() && info.num_lag_ports == 2);
  CHECK(info.max_clock_info_update_nsec && info.max_dynamic_bfregs);
  mlx5dv_port port = {};
  CHECK(!mlx5dv_query_port(w->context, 1, &port));
  CHECK(port.flags & MLX5DV_QUERY_PORT_VPORT);
  // The clock that CQEs are stamped with, in the time of the machine.
  mlx5dv_clock_info clock = {};
  CHECK(!mlx5dv_get_clock_info(w->context, &clock));
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  CHECK(info.comp_mask & MLX5DV_CONTEXT_MASK_HCA_CORE_CLOCK);
  const auto half = [&](unsigned at) { return be32toh(static_cast<volatile std::uint32_t*>(info.hca_core_clock)[at]); };
  const std::uint64_t begin = std::uint64_t{half(0)} << 32 | half(1);
  usleep(1000);
  const std::uint64_t passed = (std::uint64_t{half(0)} << 32 | half(1)) - begin;
  CHECK(begin >= clock.last_cycles && begin - clock.last_cycles < 60'000'000'000 && passed >= 1'000'000 && passed < 1'000'000'000);
  ibv_values_ex values = {};
  values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  CHECK(!ibv_query_rt_values_ex(w->context, &values) && static_cast<std::uint64_t>(values.raw_clock.tv_nsec) - begin < 5'000'000'000);
  const double apart = static_cast<double>(mlx5dv_ts_to_ns(&clock, clock.last_cycles)) * 1e-9 - static_cast<double>(now.tv_sec);
  CHECK(apart > -5 && apart < 5);
}

void lag(World* w) {
  Pair p(w);
  std::uint8_t configured = 0, active = 0;
  for (std::uint8_t port = 1; port <= 2; ++port) {
    CHECK(!mlx5dv_modify_qp_lag_port(p.a, port) && !mlx5dv_query_qp_lag_port(p.a, &configured, &active));
    CHECK(configured == port && active == port);
    p.receive(nullptr);
    p.send();
    for (int i = 0; i < 2; ++i) CHECK(next_wc(p.cq).status == IBV_WC_SUCCESS);
  }
  CHECK(!mlx5dv_modify_qp_udp_sport(p.a, 50000));
  QueryQp query(Opcode::query_qp);
  query.in.set<prm::QueryQpIn::qpn>(p.a->qp_num);
  CHECK(!mlx5dv_devx_qp_query(p.a, query.in.data(), prm::QueryQpIn::size, query.out.data(), prm::QueryQpOut::size));
  const auto path = query.out.sub<prm::QueryQpOut::qpc>().sub<prm::Qpc::primary_address_path>();
  CHECK(path.get<prm::Ads::udp_sport>() == 50000);
}

// The program's own memory for what the library allocates: rings lie in it, the device reads and writes them there.
struct Blocks {
  std::map<char*, std::size_t> live;
  unsigned taken = 0;
  bool empty = false;  // has nothing more to give
  static void* alloc(std::size_t size, void* self) {
    auto* blocks = static_cast<Blocks*>(self);
    const std::size_t whole = (size + 4095) / 4096 * 4096;
    char* memory = blocks->empty ? nullptr : static_cast<char*>(std::aligned_alloc(4096, whole));
    if (!memory) return nullptr;
    std::memset(memory, 0xa5, whole);
    blocks->live[memory] = size;
    ++blocks->taken;
    return memory;
  }
  static void free(void* memory, void* self) {
    CHECK(static_cast<Blocks*>(self)->live.erase(static_cast<char*>(memory)) == 1);
    std::free(memory);
  }
  bool have(const void* begin, std::size_t bytes) const {
    const auto* first = static_cast<const char*>(begin);
    const auto block = live.upper_bound(const_cast<char*>(first));
    if (block == live.begin()) return false;
    const auto& [start, size] = *std::prev(block);
    return first >= start && first + bytes <= start + size;
  }
};

void allocators(World* w) {
  Blocks blocks;
  mlx5dv_ctx_allocators own = {Blocks::alloc, Blocks::free, &blocks};
  CHECK(!mlx5dv_set_context_attr(w->context, MLX5DV_CTX_ATTR_BUF_ALLOCATORS, &own));
  {
    ibv_srq_init_attr init = {};
    init.attr.max_wr = 16;
    init.attr.max_sge = 1;
    ibv_srq* srq = ibv_create_srq(w->pd, &init);
    CHECK(srq);
    {
      Pair p(w, srq);
      CHECK(blocks.taken >= 4);  // a CQ, an SRQ, two QPs
      mlx5dv_qp sender = {};
      mlx5dv_cq completions = {};
      mlx5dv_srq receives = {};
      mlx5dv_obj object = {};
      object.qp = {p.a, &sender};
      object.cq = {p.cq, &completions};
      object.srq = {srq, &receives};
      CHECK(!mlx5dv_init_obj(&object, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ | MLX5DV_OBJ_SRQ));
      CHECK(blocks.have(sender.sq.buf, std::size_t{sender.sq.wqe_cnt} * sender.sq.stride));
      CHECK(blocks.have(sender.rq.buf, std::size_t{sender.rq.wqe_cnt} * sender.rq.stride));
      CHECK(blocks.have(completions.buf, std::size_t{completions.cqe_cnt} * completions.cqe_size));
      CHECK(blocks.have(receives.buf, std::size_t{16} * receives.stride));
      for (int i = 0; i < 100; ++i) {
        std::memset(p.data, i, 8);
        p.receive(srq);
        p.send();
        for (int n = 0; n < 2; ++n) CHECK(next_wc(p.cq).status == IBV_WC_SUCCESS);
        CHECK(p.data[128] == static_cast<char>(i) && p.data[135] == static_cast<char>(i));
      }
      // What was posted and what completed stands in the program's memory.
      CHECK(prm::ConstView<prm::CtrlSeg>(static_cast<std::byte*>(sender.sq.buf)).get<prm::CtrlSeg::qpn>() == p.a->qp_num);
      const std::byte* last = static_cast<std::byte*>(completions.buf) + (199 % completions.cqe_cnt) * completions.cqe_size;
      CHECK(prm::ConstView<prm::Cqe64>(last).get<prm::Cqe64::opcode>() == prm::CqeOpcode::req ||
            prm::ConstView<prm::Cqe64>(last).get<prm::Cqe64::opcode>() == prm::CqeOpcode::resp_send);
    }
    CHECK(!ibv_destroy_srq(srq));
  }
  // None is given: none is taken from elsewhere.
  blocks.empty = true;
  CHECK(!ibv_create_cq(w->context, 4000, nullptr, nullptr, 0));
  blocks.empty = false;
  own = {};
  CHECK(!mlx5dv_set_context_attr(w->context, MLX5DV_CTX_ATTR_BUF_ALLOCATORS, &own));
  const unsigned before = blocks.taken;
  { Pair p(w); }
  CHECK(blocks.taken == before);
}

// Queues with the driver's attributes carry traffic like any.
void special_queues(World* w, bool padded) {
  ibv_cq_init_attr_ex cq_init = {};
  cq_init.cqe = 32;
  mlx5dv_cq_init_attr cq_special = {};
  cq_special.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE;
  cq_special.cqe_size = 128;
  if (padded) {
    cq_special.comp_mask |= MLX5DV_CQ_INIT_ATTR_MASK_FLAGS;
    cq_special.flags = MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD;
  }
  ibv_cq_ex* ex = mlx5dv_create_cq(w->context, &cq_init, &cq_special);
  CHECK(ex);
  ibv_cq* cq = ibv_cq_ex_to_cq(ex);
  mlx5dv_cq view = {};
  mlx5dv_obj object = {};
  object.cq.in = cq;
  object.cq.out = &view;
  CHECK(!mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ) && view.cqe_size == 128);
  // Whether each entry is written whole, or only its second half.
  const auto front = [&](unsigned entry) { return static_cast<std::byte*>(view.buf) + entry * 128; };
  for (unsigned i = 0; i < view.cqe_cnt; ++i) std::memset(front(i), 0x77, 64);
  const auto front_is = [&](unsigned entry, unsigned char what) {
    return std::all_of(front(entry), front(entry) + 64, [&](std::byte b) { return b == std::byte{what}; });
  };
  ibv_qp_init_attr_ex init = {};
  init.send_cq = init.recv_cq = cq;
  init.cap = {8, 8, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  init.comp_mask = IBV_QP_INIT_ATTR_PD;
  init.pd = w->pd;
  mlx5dv_qp_init_attr special = {};
  special.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
  special.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE;
  ibv_qp* a = mlx5dv_create_qp(w->context, &init, &special);
  ibv_qp* b = mlx5dv_create_qp(w->context, &init, &special);
  CHECK(a && b);
  connect_qp(w, a, b->qp_num);
  connect_qp(w, b, a->qp_num);
  char data[64] = "with attributes";
  ibv_mr* mr = ibv_reg_mr(w->pd, data, sizeof data, kAllAccess);
  CHECK(mr);
  ibv_sge to = {reinterpret_cast<std::uintptr_t>(data) + 32, 32, mr->lkey}, from = {reinterpret_cast<std::uintptr_t>(data), 16, mr->lkey};
  ibv_recv_wr receive = {}, *bad_receive;
  receive.sg_list = &to;
  receive.num_sge = 1;
  CHECK(!ibv_post_recv(b, &receive, &bad_receive));
  ibv_send_wr send = {}, *bad;
  send.sg_list = &from;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  send.send_flags = IBV_SEND_SIGNALED;
  CHECK(!ibv_post_send(a, &send, &bad));
  for (int i = 0; i < 2; ++i) CHECK(next_wc(cq).status == IBV_WC_SUCCESS);
  CHECK(!std::strcmp(data + 32, "with attributes"));
  for (unsigned i = 0; i < 2; ++i) CHECK(front_is(i, padded ? 0 : 0x77));
  CHECK(front_is(2, 0x77));
  CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b) && !ibv_destroy_cq(cq) && !ibv_dereg_mr(mr));
}

}  // namespace

int main() {
  World w = open_devx();
  queue_pairs(&w);
  completion_queues(&w);
  shared_queues(&w);
  xrc_shared_queues(&w);
  facts(&w);
  lag(&w);
  allocators(&w);
  for (const bool padded : {false, true}) special_queues(&w, padded);
  CHECK(!ibv_dealloc_pd(w.pd) && !ibv_close_device(w.context));
  puts("ok");
  return 0;
}
