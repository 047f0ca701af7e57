// Errors of raw commands on objects that verbs made, and of the calls that change one thing about a queue pair; see
// dv_errors_devx.cc.
#include "dv_errors.h"
#include "prm/raw.h"
#include "prm/srq.h"

namespace {

// A queue pair that the device has put into error, unlike its library: what only the device can refuse.
void in_another_state(World* w) {
  ibv_cq* cq = ibv_create_cq(w->context, 16, nullptr, nullptr, 0);
  CHECK(cq);
  ibv_qp* qp = make_qp(w, IBV_QPT_RC, cq, cq, nullptr);
  connect_qp(w, qp, qp->qp_num);
  mlx5dv_sched_attr root = {};
  mlx5dv_sched_node* node = mlx5dv_sched_node_create(w->context, &root);
  mlx5dv_sched_attr under = {};
  under.parent = node;
  mlx5dv_sched_leaf* leaf = mlx5dv_sched_leaf_create(w->context, &under);
  CHECK(node && leaf);
  CHECK(!mlx5dv_modify_qp_udp_sport(qp, 50000) && !mlx5dv_modify_qp_lag_port(qp, 1));
  CHECK(!mlx5dv_modify_qp_sched_elem(qp, nullptr, nullptr));
  static char data[64];
  ibv_mr* mr = ibv_reg_mr(w->pd, data, sizeof data, kAllAccess);
  CHECK(mr);
  ibv_sge sge = {reinterpret_cast<std::uintptr_t>(data), 8, mr->lkey};
  ibv_send_wr wr = {}, *bad = nullptr;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(data);
  wr.wr.rdma.rkey = mr->rkey ^ 0xff00;
  CHECK(!ibv_post_send(qp, &wr, &bad) && next_wc(cq).status == IBV_WC_REM_ACCESS_ERR && qp->state == IBV_QPS_RTS);
  CASE(mlx5dv_modify_qp_udp_sport, EINVAL, mlx5dv_modify_qp_udp_sport(qp, 50001));
  CASE(mlx5dv_modify_qp_lag_port, EINVAL, mlx5dv_modify_qp_lag_port(qp, 2));
  CASE(mlx5dv_modify_qp_sched_elem, EINVAL, mlx5dv_modify_qp_sched_elem(qp, leaf, nullptr));
  CHECK(!mlx5dv_sched_leaf_destroy(leaf) && !mlx5dv_sched_node_destroy(node));
  CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_dereg_mr(mr));
}

// What belongs to another context is not there.
void of_another_context(World* w) {
  World other = open_devx();
  mlx5dv_sched_attr attr = {};
  mlx5dv_sched_node* theirs = mlx5dv_sched_node_create(other.context, &attr);
  attr.parent = theirs;
  CHECK(theirs);
  CASE(mlx5dv_sched_node_create, EINVAL, of(mlx5dv_sched_node_create(w->context, &attr)));
  CASE(mlx5dv_sched_leaf_create, EINVAL, of(mlx5dv_sched_leaf_create(w->context, &attr)));
  mlx5dv_sched_leaf* leaf = mlx5dv_sched_leaf_create(other.context, &attr);
  ibv_cq* cq = ibv_create_cq(w->context, 16, nullptr, nullptr, 0);
  CHECK(leaf && cq);
  ibv_qp* qp = make_qp(w, IBV_QPT_RC, cq, cq, nullptr);
  connect_qp(w, qp, qp->qp_num);
  CASE(mlx5dv_modify_qp_sched_elem, EINVAL, mlx5dv_modify_qp_sched_elem(qp, leaf, nullptr));
  CHECK(!mlx5dv_sched_leaf_destroy(leaf) && !mlx5dv_sched_node_destroy(theirs));
  std::uint32_t qpn = 0;
  CHECK(!mlx5dv_reserved_qpn_alloc(other.context, &qpn));
  CASE(mlx5dv_reserved_qpn_dealloc, EINVAL, mlx5dv_reserved_qpn_dealloc(w->context, qpn));
  CHECK(!mlx5dv_reserved_qpn_dealloc(other.context, qpn));
  CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
  close_world(&other);
}

// A QP, CQ, SRQ of the verbs: raw commands on them, and the calls that are one command.
void verbs_objects(World* w, Foreign& foreign) {
  using prm::Opcode;
  ibv_cq* cq = ibv_create_cq(w->context, 16, nullptr, nullptr, 0);
  ibv_srq_init_attr srq_init = {};
  srq_init.attr.max_wr = srq_init.attr.max_sge = 1;
  ibv_srq* srq = ibv_create_srq(w->pd, &srq_init);
  CHECK(cq && srq);
  ibv_qp* qp = make_qp(w, IBV_QPT_RC, cq, cq, nullptr);
  ibv_qp* uc = make_qp(w, IBV_QPT_UC, cq, cq, nullptr);
  ibv_qp strange_qp = *qp;
  ibv_cq strange_cq = *cq;
  ibv_srq strange_srq = *srq;
  ibv_wq strange_wq = {};
  ibv_rwq_ind_table strange_table = {};
  strange_qp.context = strange_cq.context = strange_srq.context = strange_wq.context = strange_table.context = foreign();
  mlx5dv_cq cq_view = {};
  mlx5dv_obj view = {};
  CHECK((view.cq = {cq, &cq_view}, !mlx5dv_init_obj(&view, MLX5DV_OBJ_CQ)));
  const auto call = [](auto function, auto* object, Mailbox m, const char* field = "") {
    return refused(m.out, function(object, m.in, m.length, m.out, m.room), field);
  };
  CASE(mlx5dv_devx_qp_query, EINVAL, call(mlx5dv_devx_qp_query, qp, Mailbox(Opcode::query_cq, qp->qp_num)));
  CASE(mlx5dv_devx_qp_query, EREMOTEIO, call(mlx5dv_devx_qp_query, qp, Mailbox(Opcode::query_qp, qp->qp_num), "input length"));
  CASE(mlx5dv_devx_qp_query, EOPNOTSUPP, call(mlx5dv_devx_qp_query, &strange_qp, Mailbox(Opcode::query_qp)));
  CASE(mlx5dv_devx_qp_modify, EINVAL, call(mlx5dv_devx_qp_modify, qp, Mailbox(Opcode::qp_2err, qp->qp_num + 1)));
  CASE(mlx5dv_devx_qp_modify, EREMOTEIO, call(mlx5dv_devx_qp_modify, qp, Mailbox(Opcode::rtr2rts_qp, qp->qp_num), "qpn"));
  CASE(mlx5dv_devx_qp_modify, EOPNOTSUPP, call(mlx5dv_devx_qp_modify, &strange_qp, Mailbox(Opcode::qp_2err)));
  CASE(mlx5dv_devx_cq_query, EINVAL, call(mlx5dv_devx_cq_query, cq, Mailbox(Opcode::query_cq, cq_view.cqn + 1)));
  CASE(mlx5dv_devx_cq_query, EREMOTEIO, call(mlx5dv_devx_cq_query, cq, Mailbox(Opcode::query_cq, cq_view.cqn), "input length"));
  CASE(mlx5dv_devx_cq_query, EOPNOTSUPP, call(mlx5dv_devx_cq_query, &strange_cq, Mailbox(Opcode::query_cq)));
  CASE(mlx5dv_devx_cq_modify, EINVAL, call(mlx5dv_devx_cq_modify, cq, Mailbox(Opcode::query_cq, cq_view.cqn)));
  CASE(mlx5dv_devx_cq_modify, EREMOTEIO, [&] {
    Command<prm::ModifyCqIn, prm::ModifyCqOut> m(Opcode::modify_cq);
    m.in.set<prm::ModifyCqIn::cqn>(cq_view.cqn);
    m.in.set<prm::ModifyCqIn::modify_field_select_resize_field_select>(1u << 30);
    return refused(m.out.span(), mlx5dv_devx_cq_modify(cq, m.in.data(), m.in.size(), m.out.data(), m.out.size()),
                   "modify_field_select");
  }());
  CASE(mlx5dv_devx_cq_modify, EOPNOTSUPP, call(mlx5dv_devx_cq_modify, &strange_cq, Mailbox(Opcode::modify_cq)));
  CASE(mlx5dv_devx_srq_query, EINVAL, call(mlx5dv_devx_srq_query, srq, Mailbox(Opcode::query_srq, 0xffffff)));
  const std::uint32_t srqn = srq_number(srq);
  CASE(mlx5dv_devx_srq_query, EREMOTEIO, call(mlx5dv_devx_srq_query, srq, Mailbox(Opcode::query_rmp, srqn), "input length"));  // too long
  CASE(mlx5dv_devx_srq_query, EOPNOTSUPP, call(mlx5dv_devx_srq_query, &strange_srq, Mailbox(Opcode::query_srq)));
  CASE(mlx5dv_devx_srq_modify, EINVAL, call(mlx5dv_devx_srq_modify, srq, Mailbox(Opcode::arm_rq)));
  CASE(mlx5dv_devx_srq_modify, EREMOTEIO, [&] {  // the pool is ready and cannot become so
    Command<prm::ModifyRmpIn, prm::ModifyRmpOut> m(Opcode::modify_rmp);
    m.in.set<prm::ModifyRmpIn::rmp_state>(prm::RmpState::err).set<prm::ModifyRmpIn::rmpn>(srqn);
    m.in.sub<prm::ModifyRmpIn::ctx>().set<prm::Rmpc::state>(prm::RmpState::rdy);
    return refused(m.out.span(), mlx5dv_devx_srq_modify(srq, m.in.data(), m.in.size(), m.out.data(), m.out.size()),
                   "rmp_state");
  }());
  CASE(mlx5dv_devx_srq_modify, EOPNOTSUPP, call(mlx5dv_devx_srq_modify, &strange_srq, Mailbox(Opcode::arm_rq)));
  {
    WorkQueue own(*w, cq);
    const std::uint32_t rqn = own.wq->wq_num, rqtn = static_cast<std::uint32_t>(own.table->ind_tbl_num);
    CASE(mlx5dv_devx_wq_query, EINVAL, call(mlx5dv_devx_wq_query, own.wq, Mailbox(Opcode::query_rq, rqn + 1)));
    CASE(mlx5dv_devx_wq_query, EREMOTEIO, call(mlx5dv_devx_wq_query, own.wq, Mailbox(Opcode::query_rq, rqn), "input length"));
    CASE(mlx5dv_devx_wq_modify, EINVAL, call(mlx5dv_devx_wq_modify, own.wq, Mailbox(Opcode::query_rq, rqn)));
    CASE(mlx5dv_devx_wq_modify, EREMOTEIO, [&] {  // no such field to change
      Command<prm::ModifyRqIn, prm::ModifyRqOut> m(Opcode::modify_rq);
      m.in.set<prm::ModifyRqIn::rqn>(rqn).set<prm::ModifyRqIn::modify_bitmask>(1ull << 40);
      return refused(m.out.span(), mlx5dv_devx_wq_modify(own.wq, m.in.data(), m.in.size(), m.out.data(), m.out.size()),
                     "modify_bitmask");
    }());
    CASE(mlx5dv_devx_ind_tbl_query, EREMOTEIO, [&] {  // no room for the answer
      Command<prm::QueryRqtIn, prm::QueryRqtOut> m(Opcode::query_rqt);
      m.in.set<prm::QueryRqtIn::rqtn>(rqtn);
      return refused(m.out.span(), mlx5dv_devx_ind_tbl_query(own.table, m.in.data(), m.in.size(), m.out.data(), 16),
                     "output length");
    }());
    CASE(mlx5dv_devx_ind_tbl_modify, EREMOTEIO, [&] {  // no such receive queue
      prm::Box<prm::ModifyRqtIn, prm::RqNum::size> in;
      prm::Box<prm::ModifyRqtOut> out;
      in.set<prm::ModifyRqtIn::opcode>(Opcode::modify_rqt).set<prm::ModifyRqtIn::rqtn>(rqtn);
      in.sub<prm::ModifyRqtIn::bitmask>().set<prm::RqtBitmask::rqn_list>(1);
      const auto rqtc = in.sub<prm::ModifyRqtIn::ctx>();
      rqtc.set<prm::Rqtc::rqt_actual_size>(1).at<prm::Rqtc::rq_num>(0).set<prm::RqNum::rq_num>(0xfffff0);
      return refused(out.span(), mlx5dv_devx_ind_tbl_modify(own.table, in.data(), in.size(), out.data(), out.size()),
                     "rqtc.rq_num");
    }());
    CASE(mlx5dv_devx_ind_tbl_query, EINVAL, call(mlx5dv_devx_ind_tbl_query, own.table, Mailbox(Opcode::query_rq, rqtn)));
    CASE(mlx5dv_devx_ind_tbl_modify, EINVAL, call(mlx5dv_devx_ind_tbl_modify, own.table, Mailbox(Opcode::query_rqt, rqtn)));
    CASE(mlx5dv_create_wq, EINVAL, own.striding(MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ, 6));
    CASE(mlx5dv_create_wq, EINVAL, own.striding(2, 0));
    CASE(mlx5dv_create_wq, EOPNOTSUPP, of(mlx5dv_create_wq(foreign(), &own.init, nullptr)));
  }
  CASE(mlx5dv_devx_wq_query, EOPNOTSUPP, call(mlx5dv_devx_wq_query, &strange_wq, Mailbox(Opcode::query_rq)));
  CASE(mlx5dv_devx_wq_modify, EOPNOTSUPP, call(mlx5dv_devx_wq_modify, &strange_wq, Mailbox(Opcode::modify_rq)));
  CASE(mlx5dv_devx_ind_tbl_query, EOPNOTSUPP,
       call(mlx5dv_devx_ind_tbl_query, &strange_table, Mailbox(Opcode::query_rqt)));
  CASE(mlx5dv_devx_ind_tbl_modify, EOPNOTSUPP,
       call(mlx5dv_devx_ind_tbl_modify, &strange_table, Mailbox(Opcode::modify_rqt)));

  std::uint8_t port = 0, active = 0;
  CASE(mlx5dv_modify_qp_udp_sport, EOPNOTSUPP, mlx5dv_modify_qp_udp_sport(qp, 50000));  // not in RTS
  CASE(mlx5dv_modify_qp_udp_sport, EOPNOTSUPP, mlx5dv_modify_qp_udp_sport(&strange_qp, 50000));
  ibv_qp* ud = make_qp(w, IBV_QPT_UD, cq, cq, nullptr);  // its address handles have ports
  connect_qp(w, ud, 0);
  CASE(mlx5dv_modify_qp_udp_sport, EOPNOTSUPP, mlx5dv_modify_qp_udp_sport(ud, 50000));
  CHECK(!ibv_destroy_qp(ud));
  CASE(mlx5dv_query_qp_lag_port, EOPNOTSUPP, mlx5dv_query_qp_lag_port(qp, &port, &active));  // has none yet
  CASE(mlx5dv_modify_qp_lag_port, EOPNOTSUPP, mlx5dv_modify_qp_lag_port(qp, 1));
  CASE(mlx5dv_query_qp_lag_port, EOPNOTSUPP, mlx5dv_query_qp_lag_port(&strange_qp, &port, &active));
  CASE(mlx5dv_modify_qp_sched_elem, EOPNOTSUPP, mlx5dv_modify_qp_sched_elem(qp, nullptr, nullptr));  // in RESET
  connect_qp(w, qp, qp->qp_num);
  CHECK(!mlx5dv_query_qp_lag_port(qp, &port, &active));
  CASE(mlx5dv_modify_qp_lag_port, EINVAL, mlx5dv_modify_qp_lag_port(qp, 3));
  mlx5dv_sched_attr root = {};
  mlx5dv_sched_node* node = mlx5dv_sched_node_create(w->context, &root);
  mlx5dv_sched_attr under = {};
  under.parent = node;
  mlx5dv_sched_leaf* leaf = mlx5dv_sched_leaf_create(w->context, &under);
  CHECK(node && leaf);
  CASE(mlx5dv_modify_qp_sched_elem, EINVAL, mlx5dv_modify_qp_sched_elem(uc, nullptr, leaf));
  CASE(mlx5dv_modify_qp_sched_elem, EOPNOTSUPP, mlx5dv_modify_qp_sched_elem(&strange_qp, nullptr, nullptr));
  CHECK(!mlx5dv_modify_qp_sched_elem(qp, leaf, nullptr));
  CASE(mlx5dv_sched_leaf_destroy, EINVAL, mlx5dv_sched_leaf_destroy(leaf));  // a queue pair is under it
  CHECK(!mlx5dv_modify_qp_sched_elem(qp, nullptr, nullptr));
  CHECK(!mlx5dv_sched_leaf_destroy(leaf) && !mlx5dv_sched_node_destroy(node));

  ibv_ah_attr to = {};
  to.port_num = 1;
  to.is_global = 1;
  to.grh.dgid = w->gid;
  to.grh.sgid_index = static_cast<std::uint8_t>(w->gid_index);
  ibv_ah* ah = ibv_create_ah(w->pd, &to);
  CHECK(ah);
  CASE(mlx5dv_map_ah_to_qp, EINVAL, mlx5dv_map_ah_to_qp(ah, 0xfffff0));
  ibv_ah strange_ah = *ah;
  strange_ah.context = foreign();
  CASE(mlx5dv_map_ah_to_qp, EOPNOTSUPP, mlx5dv_map_ah_to_qp(&strange_ah, qp->qp_num));
  mlx5dv_qp qp_view = {};
  view.qp = {&strange_qp, &qp_view};
  CASE(mlx5dv_init_obj, EOPNOTSUPP, mlx5dv_init_obj(&view, MLX5DV_OBJ_QP));
  CASE(mlx5dv_init_obj, EINVAL, mlx5dv_init_obj(&view, 0));
  CHECK(!ibv_destroy_ah(ah) && !ibv_destroy_qp(qp) && !ibv_destroy_qp(uc) && !ibv_destroy_srq(srq) && !ibv_destroy_cq(cq));
}

}  // namespace

int main() {
  World w = open_devx();
  Foreign foreign;
  verbs_objects(&w, foreign);
  in_another_state(&w);
  of_another_context(&w);
  close_world(&w);
  return finish();
}
