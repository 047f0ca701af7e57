// Errors of the mlx5dv calls on devices that lack something, see dv_errors_devx.cc: this program starts itself again on a
// virtual host of its own for each.
//
//   dv_errors_devices nodevx    a device without user contexts
//   dv_errors_devices small     few of everything, and contexts that got no user context
//   dv_errors_devices oneport   without a bond
//   dv_errors_devices nopacing  that does not pace
//   dv_errors_devices fewrates  whose table of rates is short
//   dv_errors_devices fewqueues which has few, and no memory for more
//   dv_errors_devices legacy    whose driver does not run the switch by rules
#include <sys/eventfd.h>

#include <string>
#include <vector>

#include "another_device.h"
#include "dv_errors.h"
#include "ethernet.h"
#include "prm/raw.h"
#include "prm/srq.h"

namespace {

// One object of each kind that verbs make.
struct Verbs {
  World* w;
  ibv_cq* cq;
  ibv_srq* srq;
  ibv_qp* qp;
  ibv_ah* ah;
  explicit Verbs(World* world) : w(world) {
    ibv_srq_init_attr init = {};
    init.attr.max_wr = init.attr.max_sge = 1;
    CHECK((cq = ibv_create_cq(w->context, 16, nullptr, nullptr, 0)) && (srq = ibv_create_srq(w->pd, &init)));
    qp = make_qp(w, IBV_QPT_RC, cq, cq, nullptr);
    connect_qp(w, qp, qp->qp_num);
    ibv_qp_attr to = attributes(w, qp->qp_num);
    CHECK((ah = ibv_create_ah(w->pd, &to.ah_attr)));
  }
  ~Verbs() { CHECK(!ibv_destroy_ah(ah) && !ibv_destroy_qp(qp) && !ibv_destroy_srq(srq) && !ibv_destroy_cq(cq)); }
};

// What no context may without a user context of the device: right commands all, on the right objects.
void no_user_context(World* w) {
  using prm::Opcode;
  Verbs v(w);
  const auto call = [](auto function, auto* object, Opcode opcode, std::uint32_t number, std::size_t length = 16) {
    Mailbox m(opcode, number);
    return function(object, m.in, length, m.out, sizeof m.out);
  };
  mlx5dv_cq view = {};
  mlx5dv_obj object = {};
  object.cq = {v.cq, &view};
  CHECK(!mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ));
  const std::uint32_t qpn = v.qp->qp_num, srqn = srq_number(v.srq);
  CASE(mlx5dv_devx_obj_create, EINVAL, [&] {
    Mailbox m(Opcode::alloc_pd);
    return of(mlx5dv_devx_obj_create(w->context, m.in, 16, m.out, 16));
  }());
  CASE(mlx5dv_devx_general_cmd, EINVAL, call(mlx5dv_devx_general_cmd, w->context, Opcode::nop, 0));
  CASE(mlx5dv_devx_qp_query, EINVAL, call(mlx5dv_devx_qp_query, v.qp, Opcode::query_qp, qpn));
  CASE(mlx5dv_devx_qp_modify, EINVAL, call(mlx5dv_devx_qp_modify, v.qp, Opcode::qp_2err, qpn));
  CASE(mlx5dv_devx_cq_query, EINVAL, call(mlx5dv_devx_cq_query, v.cq, Opcode::query_cq, view.cqn));
  CASE(mlx5dv_devx_cq_modify, EINVAL,
       call(mlx5dv_devx_cq_modify, v.cq, Opcode::modify_cq, view.cqn, prm::ModifyCqIn::size));
  CASE(mlx5dv_devx_srq_query, EINVAL, call(mlx5dv_devx_srq_query, v.srq, Opcode::query_rmp, srqn));
  CASE(mlx5dv_devx_srq_modify, EINVAL,
       call(mlx5dv_devx_srq_modify, v.srq, Opcode::modify_rmp, srqn, prm::ModifyRmpIn::size));
  {
    WorkQueue own(*w, v.cq);
    const std::uint32_t rqn = own.wq->wq_num, rqtn = static_cast<std::uint32_t>(own.table->ind_tbl_num);
    CASE(mlx5dv_devx_wq_query, EINVAL, call(mlx5dv_devx_wq_query, own.wq, Opcode::query_rq, rqn));
    CASE(mlx5dv_devx_wq_modify, EINVAL,
         call(mlx5dv_devx_wq_modify, own.wq, Opcode::modify_rq, rqn, prm::ModifyRqIn::size));
    CASE(mlx5dv_devx_ind_tbl_query, EINVAL, call(mlx5dv_devx_ind_tbl_query, own.table, Opcode::query_rqt, rqtn));
    CASE(mlx5dv_devx_ind_tbl_modify, EINVAL,
         call(mlx5dv_devx_ind_tbl_modify, own.table, Opcode::modify_rqt, rqtn, prm::ModifyRqtIn::size));
  }

  // DEVX takes any handle: that of the CQ.
  char blob[64] = {};
  std::memcpy(blob, &v.cq->handle, sizeof v.cq->handle);
  mlx5dv_devx_obj* cq = mlx5dv_devx_obj_import(w->context, blob);
  auto* answers = mlx5dv_devx_create_cmd_comp(w->context);
  auto* events = mlx5dv_devx_create_event_channel(w->context, {});
  CHECK(cq && answers && events);
  CASE(mlx5dv_devx_obj_query, EINVAL, call(mlx5dv_devx_obj_query, cq, Opcode::query_cq, view.cqn));
  CASE(mlx5dv_devx_obj_modify, EINVAL,
       call(mlx5dv_devx_obj_modify, cq, Opcode::modify_cq, view.cqn, prm::ModifyCqIn::size));
  CASE(mlx5dv_devx_obj_query_async, EINVAL, [&] {
    Mailbox m(Opcode::query_cq, view.cqn);
    return mlx5dv_devx_obj_query_async(cq, m.in, 16, prm::QueryCqOut::size, 1, answers);
  }());
  std::uint16_t change = static_cast<std::uint16_t>(prm::EventType::port_change);
  CASE(mlx5dv_devx_subscribe_devx_event, EINVAL,
       mlx5dv_devx_subscribe_devx_event(events, nullptr, sizeof change, &change, 0));
  const int counter = eventfd(0, 0);
  CASE(mlx5dv_devx_subscribe_devx_event_fd, EINVAL,
       mlx5dv_devx_subscribe_devx_event_fd(events, counter, nullptr, change));
  close(counter);
  mlx5dv_devx_destroy_event_channel(events);
  mlx5dv_devx_destroy_cmd_comp(answers);
  mlx5dv_devx_obj_unimport(cq);

  alignas(4096) static char page[4096];
  CASE(mlx5dv_devx_umem_reg, EINVAL, of(mlx5dv_devx_umem_reg(w->context, page, 64, IBV_ACCESS_LOCAL_WRITE)));
  mlx5dv_devx_umem_in in = {};
  in.addr = page, in.size = 64, in.access = IBV_ACCESS_LOCAL_WRITE, in.pgsz_bitmap = 4096;
  CASE(mlx5dv_devx_umem_reg_ex, EINVAL, of(mlx5dv_devx_umem_reg_ex(w->context, &in)));
  alignas(8) std::byte contents[48] = {};
  store_be32(contents, 100);
  CASE(mlx5dv_pp_alloc, EINVAL, of(mlx5dv_pp_alloc(w->context, sizeof contents, contents, 0)));
}

// Over a device whose user contexts are switched off the driver knows no request of DEVX: neither right commands on the
// right objects, nor wrong ones, nor those that are otherwise open to everybody.
void no_devx(World* w, Verbs& v) {
  using prm::Opcode;
  const auto call = [](auto function, auto* object, Opcode opcode, std::size_t length = 16) {
    Mailbox m(opcode);
    return function(object, m.in, length, m.out, sizeof m.out);
  };
  for (const auto open : {Opcode::alloc_pd, Opcode::query_hca_cap, Opcode::query_hca_vport_context,
                          Opcode::query_esw_vport_context, Opcode::query_esw_functions}) {
    CASE(mlx5dv_devx_general_cmd, EPROTONOSUPPORT, call(mlx5dv_devx_general_cmd, w->context, open));
    CASE(mlx5dv_devx_obj_create, EPROTONOSUPPORT, of(call(mlx5dv_devx_obj_create, w->context, open)));
  }
  CASE(mlx5dv_devx_general_cmd, EPROTONOSUPPORT, call(mlx5dv_devx_general_cmd, w->context, Opcode::nop, 4));
  CASE(mlx5dv_devx_qp_query, EPROTONOSUPPORT, call(mlx5dv_devx_qp_query, v.qp, Opcode::query_qp));
  CASE(mlx5dv_devx_qp_modify, EPROTONOSUPPORT, call(mlx5dv_devx_qp_modify, v.qp, Opcode::qp_2err));
  CASE(mlx5dv_devx_cq_query, EPROTONOSUPPORT, call(mlx5dv_devx_cq_query, v.cq, Opcode::query_cq));
  CASE(mlx5dv_devx_cq_modify, EPROTONOSUPPORT, call(mlx5dv_devx_cq_modify, v.cq, Opcode::modify_cq, prm::ModifyCqIn::size));
  CASE(mlx5dv_devx_srq_query, EPROTONOSUPPORT, call(mlx5dv_devx_srq_query, v.srq, Opcode::query_rmp));
  CASE(mlx5dv_devx_srq_modify, EPROTONOSUPPORT,
       call(mlx5dv_devx_srq_modify, v.srq, Opcode::modify_rmp, prm::ModifyRmpIn::size));
  {
    WorkQueue own(*w, v.cq);
    CASE(mlx5dv_devx_wq_query, EPROTONOSUPPORT, call(mlx5dv_devx_wq_query, own.wq, Opcode::query_rq));
    CASE(mlx5dv_devx_wq_modify, EPROTONOSUPPORT,
         call(mlx5dv_devx_wq_modify, own.wq, Opcode::modify_rq, prm::ModifyRqIn::size));
    CASE(mlx5dv_devx_ind_tbl_query, EPROTONOSUPPORT, call(mlx5dv_devx_ind_tbl_query, own.table, Opcode::query_rqt));
    CASE(mlx5dv_devx_ind_tbl_modify, EPROTONOSUPPORT,
         call(mlx5dv_devx_ind_tbl_modify, own.table, Opcode::modify_rqt, prm::ModifyRqtIn::size));
  }
  char blob[64] = {};
  std::memcpy(blob, &v.cq->handle, sizeof v.cq->handle);
  mlx5dv_devx_obj* cq = mlx5dv_devx_obj_import(w->context, blob);
  CHECK(cq);
  CASE(mlx5dv_devx_obj_query, EPROTONOSUPPORT, call(mlx5dv_devx_obj_query, cq, Opcode::query_cq));
  CASE(mlx5dv_devx_obj_modify, EPROTONOSUPPORT, call(mlx5dv_devx_obj_modify, cq, Opcode::modify_cq, prm::ModifyCqIn::size));
  CASE(mlx5dv_devx_obj_destroy, EPROTONOSUPPORT, mlx5dv_devx_obj_destroy(cq));
  CASE(mlx5dv_devx_obj_query_async, EPROTONOSUPPORT, [&] {
    Mailbox m(Opcode::query_cq);
    mlx5dv_devx_cmd_comp no_channel = {0};  // there is none to be had
    return mlx5dv_devx_obj_query_async(cq, m.in, 16, prm::QueryCqOut::size, 1, &no_channel);
  }());
  mlx5dv_devx_obj_unimport(cq);
  std::uint32_t eqn;
  CASE(mlx5dv_devx_query_eqn, EPROTONOSUPPORT, mlx5dv_devx_query_eqn(w->context, 0, &eqn));
  CASE(mlx5dv_devx_create_cmd_comp, EPROTONOSUPPORT, of(mlx5dv_devx_create_cmd_comp(w->context)));
  CASE(mlx5dv_devx_create_event_channel, EPROTONOSUPPORT, of(mlx5dv_devx_create_event_channel(w->context, {})));
  alignas(4096) static char page[4096];
  CASE(mlx5dv_devx_umem_reg, EPROTONOSUPPORT, of(mlx5dv_devx_umem_reg(w->context, page, 64, IBV_ACCESS_LOCAL_WRITE)));
  mlx5dv_devx_umem_in in = {};
  in.addr = page, in.size = 64, in.access = IBV_ACCESS_LOCAL_WRITE, in.pgsz_bitmap = 4096;
  CASE(mlx5dv_devx_umem_reg_ex, EPROTONOSUPPORT, of(mlx5dv_devx_umem_reg_ex(w->context, &in)));
  mlx5dv_devx_umem* umem = mlx5dv_devx_umem_import(w->context, blob);
  CHECK(umem);
  CASE(mlx5dv_devx_umem_dereg, EPROTONOSUPPORT, mlx5dv_devx_umem_dereg(umem));
  mlx5dv_devx_umem_unimport(umem);
}

// A device whose user contexts are switched off has no capabilities to tell: what needs one is not there.
void without_devx() {
  World w = open_world();
  mlx5dv_context_attr attr = {};
  attr.flags = MLX5DV_CONTEXT_FLAGS_DEVX;
  CASE(mlx5dv_open_device, EINVAL, of(mlx5dv_open_device(w.context->device, &attr)));
  alignas(8) std::byte contents[48] = {};
  store_be32(contents, 100);
  CASE(mlx5dv_pp_alloc, EINVAL, of(mlx5dv_pp_alloc(w.context, sizeof contents, contents, 0)));
  {
    Verbs v(&w);
    no_devx(&w, v);
    std::uint8_t port, active;
    CASE(mlx5dv_map_ah_to_qp, EOPNOTSUPP, mlx5dv_map_ah_to_qp(v.ah, v.qp->qp_num));
    CASE(mlx5dv_modify_qp_udp_sport, EOPNOTSUPP, mlx5dv_modify_qp_udp_sport(v.qp, 50000));
    CASE(mlx5dv_query_qp_lag_port, EOPNOTSUPP, mlx5dv_query_qp_lag_port(v.qp, &port, &active));
    CASE(mlx5dv_modify_qp_lag_port, EOPNOTSUPP, mlx5dv_modify_qp_lag_port(v.qp, 1));
    CASE(mlx5dv_modify_qp_sched_elem, EOPNOTSUPP, mlx5dv_modify_qp_sched_elem(v.qp, nullptr, nullptr));
  }
  const mlx5dv_sched_attr root = {};
  CASE(mlx5dv_sched_node_create, EOPNOTSUPP, of(mlx5dv_sched_node_create(w.context, &root)));
  std::uint32_t qpn;
  CASE(mlx5dv_reserved_qpn_alloc, EOPNOTSUPP, mlx5dv_reserved_qpn_alloc(w.context, &qpn));
  close_world(&w);
}

// A device that has DEVX, and a context that got no user context of it.
void without_user_context(World* w) {
  no_user_context(w);
  prm::Box<prm::QueryHcaCapIn> capabilities;
  prm::Box<prm::QueryHcaCapOut> answer;
  capabilities.set<prm::QueryHcaCapIn::opcode>(prm::Opcode::query_hca_cap);
  capabilities.set<prm::QueryHcaCapIn::op_mod>(prm::cap_op_mod(prm::CapType::general, prm::CapMode::current));
  CHECK(!mlx5dv_devx_general_cmd(w->context, capabilities.data(), prm::QueryHcaCapIn::size, answer.data(), answer.size()));
  Verbs v(w);
  std::uint8_t port, active;
  CASE(mlx5dv_map_ah_to_qp, EINVAL, mlx5dv_map_ah_to_qp(v.ah, v.qp->qp_num));
  CASE(mlx5dv_modify_qp_udp_sport, EINVAL, mlx5dv_modify_qp_udp_sport(v.qp, 50000));
  CASE(mlx5dv_query_qp_lag_port, EINVAL, mlx5dv_query_qp_lag_port(v.qp, &port, &active));
  CASE(mlx5dv_modify_qp_lag_port, EINVAL, mlx5dv_modify_qp_lag_port(v.qp, 1));
  CASE(mlx5dv_modify_qp_sched_elem, EINVAL, mlx5dv_modify_qp_sched_elem(v.qp, nullptr, nullptr));
  const mlx5dv_sched_attr root = {};
  CASE(mlx5dv_sched_node_create, EINVAL, of(mlx5dv_sched_node_create(w->context, &root)));
  std::uint32_t qpn;
  CASE(mlx5dv_reserved_qpn_alloc, EINVAL, mlx5dv_reserved_qpn_alloc(w->context, &qpn));
  CASE(mlx5dv_reserved_qpn_dealloc, EINVAL, mlx5dv_reserved_qpn_dealloc(w->context, 0x100));
}

void small_device() {
  World w = open_devx();
  mlx5dv_context_attr attr = {};
  attr.flags = MLX5DV_CONTEXT_FLAGS_DEVX;
  std::vector<ibv_context*> opened;
  CASE(mlx5dv_open_device, ENOMEM, [&] {
    while (ibv_context* one = opened.size() < 64 ? mlx5dv_open_device(w.context->device, &attr) : nullptr) opened.push_back(one);
    return errno;
  }());
  World late = open_world();
  without_user_context(&late);
  close_world(&late);
  for (ibv_context* one : opened) CHECK(!ibv_close_device(one));
  alignas(4096) static char memory[4096];
  CASE(mlx5dv_devx_umem_reg, ENOMEM, [&] {
    std::vector<mlx5dv_devx_umem*> all;
    while (auto* one = all.size() < 64 ? mlx5dv_devx_umem_reg(w.context, memory, 64, IBV_ACCESS_LOCAL_WRITE) : nullptr)
      all.push_back(one);
    const int error = errno;
    for (mlx5dv_devx_umem* one : all) CHECK(!mlx5dv_devx_umem_dereg(one));
    return error;
  }());
  CASE(mlx5dv_devx_umem_reg_ex, ENOMEM, [&] {
    mlx5dv_devx_umem_in in = {};
    in.addr = memory, in.size = 64, in.access = IBV_ACCESS_LOCAL_WRITE, in.pgsz_bitmap = 4096;
    std::vector<mlx5dv_devx_umem*> all;
    while (auto* one = all.size() < 64 ? mlx5dv_devx_umem_reg_ex(w.context, &in) : nullptr) all.push_back(one);
    const int error = errno;
    for (mlx5dv_devx_umem* one : all) CHECK(!mlx5dv_devx_umem_dereg(one));
    return error;
  }());
  CASE(mlx5dv_devx_alloc_uar, EAGAIN, [&] {
    std::vector<mlx5dv_devx_uar*> all;
    while (auto* one = all.size() < 256 ? mlx5dv_devx_alloc_uar(w.context, MLX5DV_UAR_ALLOC_TYPE_NC_DEDICATED) : nullptr)
      all.push_back(one);
    const int error = errno;
    for (mlx5dv_devx_uar* one : all) mlx5dv_devx_free_uar(one);
    return error;
  }());
  // Pages that were given back are as good as new ones.
  for (unsigned i = 0; i < 40; ++i) {
    Queues q(&w, 1u << 31);
    q.connect(q.qpn);
    q.post(prm::WqeOpcode::rdma_write, 8, reinterpret_cast<std::uintptr_t>(q.data()), q.mr->rkey, false);
    CHECK(q.next_cqe().get<prm::Cqe64::opcode>() == prm::CqeOpcode::req);
  }
  close_world(&w);
}

void one_port() {
  World w = open_world();
  ibv_cq* cq = ibv_create_cq(w.context, 16, nullptr, nullptr, 0);
  ibv_qp* qp = make_qp(&w, IBV_QPT_RC, cq, cq, nullptr);
  connect_qp(&w, qp, qp->qp_num);
  std::uint8_t port, active;
  CASE(mlx5dv_query_qp_lag_port, EOPNOTSUPP, mlx5dv_query_qp_lag_port(qp, &port, &active));
  CASE(mlx5dv_modify_qp_lag_port, EOPNOTSUPP, mlx5dv_modify_qp_lag_port(qp, 1));
  CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
  close_world(&w);
}

// Without packet pacing the driver has no entries to give out, whatever they should hold; no queue can name one, and none is
// advertised.
void no_pacing() {
  World w = open_devx();
  alignas(8) std::byte contents[64] = {};
  store_be32(contents, 100);
  const auto pp = [&](std::size_t length, std::uint32_t flags) {
    return of(mlx5dv_pp_alloc(w.context, length, contents, flags));
  };
  for (const std::size_t length : {48u, 0u, 49u}) CASE(mlx5dv_pp_alloc, EPROTONOSUPPORT, pp(length, 0));
  CASE(mlx5dv_pp_alloc, EPROTONOSUPPORT, pp(48, MLX5DV_PP_ALLOC_FLAGS_DEDICATED_INDEX));
  CASE(mlx5dv_pp_alloc, EOPNOTSUPP, pp(48, 2));  // the library's own rule comes first
  Command<prm::QueryHcaCapIn, prm::QueryHcaCapOut> page(prm::Opcode::query_hca_cap);
  page.in.set<prm::QueryHcaCapIn::op_mod>(prm::cap_op_mod(prm::CapType::qos, prm::CapMode::current));
  CHECK(!page.general(w.context));
  using Cap = prm::QosCap;
  const auto qos = page.out.sub<prm::QueryHcaCapOut::capability>().sub<prm::HcaCapUnion::qos_cap>();
  CHECK(!qos.get<Cap::packet_pacing>() && !qos.get<Cap::packet_pacing_uid>() && !qos.get<Cap::packet_pacing_max_rate>() &&
        !qos.get<Cap::packet_pacing_burst_bound>() && !qos.get<Cap::packet_pacing_rate_table_size>());
  CHECK(qos.get<Cap::nic_qp_scheduling>());  // scheduling is another matter
  ibv_device_attr_ex attr = {};
  CHECK(!ibv_query_device_ex(w.context, nullptr, &attr));
  CHECK(!attr.packet_pacing_caps.supported_qpts && !attr.packet_pacing_caps.qp_rate_limit_max);
  {
    Side frames;
    ibv_qp_rate_limit_attr limit = {};
    limit.rate_limit = 1000;
    CHECK(ibv_modify_qp_rate_limit(frames.qp, &limit) == EOPNOTSUPP);
    limit.max_burst_sz = 1000;
    CHECK(ibv_modify_qp_rate_limit(frames.qp, &limit) == EINVAL);
  }
  close_world(&w);
}

// A table of three entries, one behind the other.
void few_rates() {
  World w = open_devx();
  alignas(8) std::byte contents[48] = {};
  std::vector<mlx5dv_pp*> all;
  CASE(mlx5dv_pp_alloc, ENOSPC, [&] {
    for (std::uint32_t kbps = 100; all.size() < 10; ++kbps) {
      store_be32(contents, kbps);
      mlx5dv_pp* one = mlx5dv_pp_alloc(w.context, sizeof contents, contents, 0);
      if (!one) break;
      all.push_back(one);
    }
    return errno;
  }());
  CHECK(all.size() == 3);
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i]->index == i + 1);
  for (mlx5dv_pp* one : all) mlx5dv_pp_free(one);
  close_world(&w);
}

// Whether `make` says so once everything of its kind is taken, what `undo` then gives back.
template <class Make, class Undo>
int error_when_full(Make make, Undo undo) {
  std::vector<decltype(make())> all;
  errno = 0;
  while (auto* one = all.size() < 1000 ? make() : nullptr) all.push_back(one);
  const int error = errno;
  for (auto* one : all) CHECK(!undo(one));
  return error;
}

// Queues of every kind, until the device has none left; or as soon as the program's allocator has no memory for a ring.
void few_queues() {
  World w = open_world();
  ibv_cq* cq = ibv_create_cq(w.context, 16, nullptr, nullptr, 0);
  CHECK(cq);
  ibv_cq_init_attr_ex cq_init = {};
  cq_init.cqe = 16;
  mlx5dv_cq_init_attr cq_special = {};
  ibv_qp_init_attr_ex qp_init = {};
  qp_init.qp_type = IBV_QPT_RC;
  qp_init.send_cq = qp_init.recv_cq = cq;
  qp_init.cap = {1, 1, 1, 1, 0};
  qp_init.comp_mask = IBV_QP_INIT_ATTR_PD;
  qp_init.pd = w.pd;
  mlx5dv_qp_init_attr qp_special = {};
  ibv_wq_init_attr wq_init = {};
  wq_init.wq_type = IBV_WQT_RQ;
  wq_init.max_wr = wq_init.max_sge = 1;
  wq_init.pd = w.pd;
  wq_init.cq = cq;
  mlx5dv_wq_init_attr wq_special = {};
  const auto make_cq = [&] { return mlx5dv_create_cq(w.context, &cq_init, &cq_special); };
  const auto make_qp = [&] { return mlx5dv_create_qp(w.context, &qp_init, &qp_special); };
  const auto make_wq = [&] { return mlx5dv_create_wq(w.context, &wq_init, &wq_special); };
  CASE(mlx5dv_create_cq, ENOMEM, error_when_full(make_cq, [](ibv_cq_ex* one) { return ibv_destroy_cq(ibv_cq_ex_to_cq(one)); }));
  CASE(mlx5dv_create_qp, ENOMEM, error_when_full(make_qp, ibv_destroy_qp));
  CASE(mlx5dv_create_wq, ENOMEM, error_when_full(make_wq, ibv_destroy_wq));
  mlx5dv_ctx_allocators none = {[](std::size_t, void*) -> void* { return nullptr; }, [](void*, void*) {}, nullptr};
  CHECK(!mlx5dv_set_context_attr(w.context, MLX5DV_CTX_ATTR_BUF_ALLOCATORS, &none));
  CASE(mlx5dv_create_cq, ENOMEM, of(make_cq()));
  CASE(mlx5dv_create_qp, ENOMEM, of(make_qp()));
  CASE(mlx5dv_create_wq, ENOMEM, of(make_wq()));
  none = {};
  CHECK(!mlx5dv_set_context_attr(w.context, MLX5DV_CTX_ATTR_BUF_ALLOCATORS, &none));
  CHECK(!ibv_destroy_cq(cq));
  close_world(&w);
}

// The driver tells nothing of the switch then; the device answers as ever.
void legacy_switch() {
  World w = open_devx();
  mlx5dv_port port;
  std::memset(&port, 0xff, sizeof port);
  CHECK(!mlx5dv_query_port(w.context, 1, &port));
  const mlx5dv_port nothing = {};
  CHECK(!std::memcmp(&port, &nothing, sizeof port));
  CASE(mlx5dv_query_port, EINVAL, mlx5dv_query_port(w.context, 2, &port));
  Command<prm::QueryEswVportContextIn, prm::QueryEswVportContextOut> esw(prm::Opcode::query_esw_vport_context);
  CHECK(!esw.general(w.context));
  CHECK(esw.out.sub<prm::QueryEswVportContextOut::esw_vport_context>()
            .get<prm::EswVportContext::sw_steering_vport_icm_address_rx>());
  close_world(&w);
}

void again(const char* mode, const char* profile) {
  const int status = run_on_another_device(mode, profile);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: status %#x", mode, status);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "nodevx") {
    without_devx();
  } else if (mode == "small") {
    small_device();
  } else if (mode == "oneport") {
    one_port();
  } else if (mode == "nopacing") {
    no_pacing();
  } else if (mode == "fewrates") {
    few_rates();
  } else if (mode == "fewqueues") {
    few_queues();
  } else if (mode == "legacy") {
    legacy_switch();
  } else {
    again("nodevx", "[limits]\nlog_max_uctx = 0\n");
    again("small", "[limits]\nlog_max_uctx = 2\nlog_max_umem = 3\nmax_uar = 16\n");
    again("oneport", "[link]\nports = 1\nlag = false\n");
    again("nopacing", "[limits]\npacket_pacing_rates = 0\n");
    again("fewrates", "[limits]\npacket_pacing_rates = 3\n");
    again("fewqueues", "[limits]\nlog_max_cq = 4\nlog_max_qp = 4\n");
    again("legacy", "[eswitch]\nmode = \"legacy\"\n");
  }
  return finish(mode.c_str());
}
