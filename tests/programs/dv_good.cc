// The calls of mlx5dv at work, by what the device does and not by what they return: raw queries and changes of objects
// that verbs made, capabilities, ports, clocks, allocators, queues with the driver's own attributes.
#include <poll.h>
#include <time.h>

#include <vector>

#include "devx_world.h"
#include "prm/raw.h"
#include "prm/srq.h"

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
  Command<prm::ModifyCqIn, prm::ModifyCqOut> change(Opcode::modify_cq);
  change.in.set<prm::ModifyCqIn::cqn>(view.cqn);
  prm::store_be32(change.in.data() + 0xc, 3);  // modify_field_select: period and count
  change.in.sub<prm::ModifyCqIn::cq_context>().set<prm::Cqc::cq_period>(7).set<prm::Cqc::cq_max_count>(5);
  CHECK(!mlx5dv_devx_cq_modify(cq, change.in.data(), prm::ModifyCqIn::size, change.out.data(), prm::ModifyCqOut::size));
  CHECK(ask().get<prm::Cqc::cq_max_count>() == 5 && ask().get<prm::Cqc::cq_period>() == 7);
  CHECK(!ibv_destroy_cq(cq) && !ibv_destroy_comp_channel(channel));
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
    pollfd ready = {w->context->async_fd, POLLIN, 0};
    ibv_async_event event;
    CHECK(poll(&ready, 1, 3000) == 1 && !ibv_get_async_event(w->context, &event));
    CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == srq);
    ibv_ack_async_event(&event);
    Command<prm::QueryRmpIn, prm::QueryRmpOut> query(Opcode::query_rmp);
    query.in.set<prm::QueryRmpIn::rmpn>(srqn);
    CHECK(!mlx5dv_devx_srq_query(srq, query.in.data(), prm::QueryRmpIn::size, query.out.data(), prm::QueryRmpOut::size));
    const auto wq = query.out.sub<prm::QueryRmpOut::rmp_context>().sub<prm::Rmpc::wq>();
    CHECK(wq.get<prm::Wq::hw_counter>() == 2 && wq.get<prm::Wq::sw_counter>() == 4 && wq.get<prm::Wq::lwm>() == 0);
  }
  CHECK(!ibv_destroy_srq(srq));
}

void facts(World* w) {
  CHECK(mlx5dv_is_supported(w->context->device));
  mlx5dv_context info = {};
  info.comp_mask = MLX5DV_CONTEXT_MASK_NUM_LAG_PORTS | MLX5DV_CONTEXT_MASK_HCA_CORE_CLOCK;
  CHECK(!mlx5dv_query_device(w->context, &info));
  CHECK(info.flags & MLX5DV_CONTEXT_FLAGS_CQE_V1 && info.num_lag_ports == 2);
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

// The program's own memory for what the library allocates.
unsigned allocated = 0, freed = 0;
void allocators(World* w) {
  mlx5dv_ctx_allocators own = {};
  own.alloc = [](std::size_t size, void*) -> void* {
    ++allocated;
    return std::aligned_alloc(4096, (size + 4095) / 4096 * 4096);
  };
  own.free = [](void* memory, void*) {
    ++freed;
    std::free(memory);
  };
  CHECK(!mlx5dv_set_context_attr(w->context, MLX5DV_CTX_ATTR_BUF_ALLOCATORS, &own));
  { Pair p(w); }
  CHECK(allocated && allocated == freed);
  own = {};
  CHECK(!mlx5dv_set_context_attr(w->context, MLX5DV_CTX_ATTR_BUF_ALLOCATORS, &own));
}

// Queues with the driver's attributes carry traffic like any.
void special_queues(World* w) {
  ibv_cq_init_attr_ex cq_init = {};
  cq_init.cqe = 32;
  mlx5dv_cq_init_attr cq_special = {};
  cq_special.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE;
  cq_special.cqe_size = 128;
  ibv_cq_ex* ex = mlx5dv_create_cq(w->context, &cq_init, &cq_special);
  CHECK(ex);
  ibv_cq* cq = ibv_cq_ex_to_cq(ex);
  mlx5dv_cq view = {};
  mlx5dv_obj object = {};
  object.cq.in = cq;
  object.cq.out = &view;
  CHECK(!mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ) && view.cqe_size == 128);
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
  CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b) && !ibv_destroy_cq(cq) && !ibv_dereg_mr(mr));
}

}  // namespace

int main() {
  World w = open_devx();
  queue_pairs(&w);
  completion_queues(&w);
  shared_queues(&w);
  facts(&w);
  lag(&w);
  allocators(&w);
  special_queues(&w);
  CHECK(!ibv_dealloc_pd(w.pd) && !ibv_close_device(w.context));
  puts("ok");
  return 0;
}
