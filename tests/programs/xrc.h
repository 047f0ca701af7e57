// The pieces of an XRC connection.
#pragma once

#include <fcntl.h>
#include <infiniband/verbs.h>

#include "pair.h"

inline ibv_xrcd* open_xrcd(World* w) {
  ibv_xrcd_init_attr init = {IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, O_CREAT};
  ibv_xrcd* xrcd = ibv_open_xrcd(w->context, &init);
  CHECK(xrcd);
  return xrcd;
}

inline ibv_srq* make_xrc_srq(World* w, ibv_xrcd* xrcd, ibv_cq* cq, std::uint32_t receives) {
  ibv_srq_init_attr_ex init = {};
  init.attr.max_wr = receives;
  init.attr.max_sge = 1;
  init.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  init.srq_type = IBV_SRQT_XRC;
  init.pd = w->pd;
  init.xrcd = xrcd;
  init.cq = cq;
  ibv_srq* srq = ibv_create_srq_ex(w->context, &init);
  CHECK(srq);
  return srq;
}

inline ibv_qp* make_xrc_initiator(World* w, ibv_cq* cq, std::uint32_t sends) {
  ibv_qp_init_attr_ex init = {};
  init.qp_type = IBV_QPT_XRC_SEND;
  init.send_cq = cq;
  init.cap = {sends, 0, 1, 0, 0};
  init.comp_mask = IBV_QP_INIT_ATTR_PD;
  init.pd = w->pd;
  ibv_qp* qp = ibv_create_qp_ex(w->context, &init);
  CHECK(qp);
  return qp;
}

inline ibv_qp* make_xrc_target(World* w, ibv_xrcd* xrcd) {
  ibv_qp_init_attr_ex init = {};
  init.qp_type = IBV_QPT_XRC_RECV;
  init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
  init.xrcd = xrcd;
  ibv_qp* qp = ibv_create_qp_ex(w->context, &init);
  CHECK(qp);
  return qp;
}
