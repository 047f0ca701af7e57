// Ends of verbs: a send queue with room for the fixed part of a WQE alone, and device memory as a dma-buf.
#include <algorithm>

#include "devx_world.h"

extern "C" int ibv_dm_export_dmabuf_fd(ibv_dm*);  // newer than the headers of Debian 12

namespace {

ibv_qp_init_attr_ex without_room(World* w, ibv_cq* cq) {
  ibv_qp_init_attr_ex init = {};
  init.send_cq = init.recv_cq = cq;
  init.cap = {.max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 0, .max_recv_sge = 1, .max_inline_data = 0};
  init.qp_type = IBV_QPT_UD;
  init.pd = w->pd;
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  init.send_ops_flags = IBV_QP_EX_WITH_SEND;
  return init;
}

// The control and the datagram segment fill the only block of a WQE. Data behind them would lie in the next WQE: it is
// refused by both interfaces, and the rest of the ring stays as it was.
void no_inline_data(World* w) {
  ibv_cq* cq = ibv_create_cq(w->context, 16, nullptr, nullptr, 0);
  CHECK(cq);
  ibv_qp_init_attr_ex init = without_room(w, cq);
  ibv_qp* qp = ibv_create_qp_ex(w->context, &init);
  CHECK(qp && static_cast<std::int32_t>(init.cap.max_inline_data) == -4);  // as rdma-core tells it
  ibv_qp_attr a = attributes(w, qp->qp_num);
  a.qkey = 0x11111111;
  for (const auto state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) CHECK(!go(qp, state, a, required(IBV_QPT_UD, state)));
  ibv_ah* ah = ibv_create_ah(w->pd, &a.ah_attr);
  CHECK(ah);
  mlx5dv_qp view = {};
  mlx5dv_obj object = {};
  object.qp = {qp, &view};
  CHECK(!mlx5dv_init_obj(&object, MLX5DV_OBJ_QP) && view.sq.wqe_cnt >= 4 && view.sq.stride == 64);
  auto* ring = static_cast<std::byte*>(view.sq.buf);
  const std::size_t bytes = std::size_t{view.sq.wqe_cnt} * view.sq.stride;
  std::memset(ring + 64, 0x5a, bytes - 64);
  const auto untouched = [&] {
    return std::all_of(ring + 64, ring + bytes, [](std::byte byte) { return byte == std::byte{0x5a}; });
  };
  char data[48] = "behind the end of a WQE";
  for (const std::uint32_t length : {1u, 12u, 48u}) {
    ibv_sge sge = {reinterpret_cast<std::uintptr_t>(data), length, 0};
    ibv_send_wr wr = {}, *bad = nullptr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
    wr.wr.ud = {.ah = ah, .remote_qpn = qp->qp_num, .remote_qkey = a.qkey};
    CHECK(ibv_post_send(qp, &wr, &bad) != 0 && bad == &wr && untouched());
    ibv_qp_ex* ex = ibv_qp_to_qp_ex(qp);
    ibv_wr_start(ex);
    ibv_wr_send(ex);
    ibv_wr_set_ud_addr(ex, ah, qp->qp_num, a.qkey);
    ibv_wr_set_inline_data(ex, data, length);
    CHECK(ibv_wr_complete(ex) == ENOMEM && untouched());
  }
  ibv_wc wc;
  CHECK(ibv_poll_cq(cq, 1, &wc) == 0);
  CHECK(!ibv_destroy_ah(ah) && !ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}

// The kernel's role makes no dma-bufs, as kernels before the request: the library asks it and hands on the answer.
void no_dmabuf_of_device_memory(World* w) {
  ibv_alloc_dm_attr attr = {};
  attr.length = 64;
  ibv_dm* dm = ibv_alloc_dm(w->context, &attr);
  CHECK(dm);
  errno = 0;
  CHECK(ibv_dm_export_dmabuf_fd(dm) == -1 && errno == EPROTONOSUPPORT);
  CHECK(!ibv_free_dm(dm));
}

}  // namespace

int main() {
  World w = open_world();
  no_inline_data(&w);
  no_dmabuf_of_device_memory(&w);
  close_world(&w);
  puts("ok");
  return 0;
}
