// The provider's entry points, one declaration per verb; context.cc puts them into verbs::Ops.
// Semantics are those of the verbs manual pages; threads: any, as the manual allows.
#pragma once

#include "mlx5/types.h"

namespace verbena::mlx5 {

// device.cc, caps.cc, clock.cc
int query_device_ex(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex*, std::size_t);
int query_port(ibv_context*, std::uint8_t port, ibv_port_attr*);
int query_rt_values(ibv_context*, ibv_values_ex*);
void read_capabilities(Context*);
void map_clocks(Context*);
void unmap_clocks(Context*);
int read_clock_info(const Context*, mlx5dv_clock_info*);

// pd.cc
ibv_pd* alloc_pd(ibv_context*);
int dealloc_pd(ibv_pd*);
ibv_td* alloc_td(ibv_context*, ibv_td_init_attr*);
int dealloc_td(ibv_td*);
ibv_pd* alloc_parent_domain(ibv_context*, ibv_parent_domain_init_attr*);
ibv_pd* import_pd(ibv_context*, std::uint32_t handle);
void unimport_pd(ibv_pd*);

// mr.cc
ibv_mr* reg_mr(ibv_pd*, void* addr, std::size_t length, std::uint64_t iova, int access);
ibv_mr* reg_dmabuf_mr(ibv_pd*, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd, int access);
// With extra attributes of the request, or null.
ibv_mr* reg_dmabuf_mr_with(ibv_pd*, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd, int access,
                           verbena_bundle* driver);
int rereg_mr(verbs::Mr*, int flags, ibv_pd*, void* addr, std::size_t length, int access);
int dereg_mr(verbs::Mr*);
int advise_mr(ibv_pd*, ibv_advise_mr_advice, std::uint32_t flags, ibv_sge*, std::uint32_t count);
ibv_mr* alloc_null_mr(ibv_pd*);
ibv_mr* import_mr(ibv_pd*, std::uint32_t handle);
void unimport_mr(ibv_mr*);
ibv_mr* reg_dm_mr(ibv_pd*, ibv_dm*, std::uint64_t offset, std::size_t length, unsigned access);
ibv_mw* alloc_mw(ibv_pd*, ibv_mw_type);
int dealloc_mw(ibv_mw*);
int bind_mw(ibv_qp*, ibv_mw*, ibv_mw_bind*);

// dm.cc
ibv_dm* alloc_dm(ibv_context*, ibv_alloc_dm_attr*);
int free_dm(ibv_dm*);
ibv_dm* import_dm(ibv_context*, std::uint32_t handle);
void unimport_dm(ibv_dm*);
int export_dm(ibv_dm*);

// cq.cc, poll.cc
ibv_cq* create_cq(ibv_context*, int cqe, ibv_comp_channel*, int vector);
ibv_cq_ex* create_cq_ex(ibv_context*, ibv_cq_init_attr_ex*);
Cq* create_cq(Context*, const ibv_cq_init_attr_ex&, bool extended, const mlx5dv_cq_init_attr*);
int poll_cq(ibv_cq*, int, ibv_wc*);
int req_notify_cq(ibv_cq*, int solicited_only);
void cq_event(ibv_cq*);
int resize_cq(ibv_cq*, int cqe);
int modify_cq(ibv_cq*, ibv_modify_cq_attr*);
int destroy_cq(ibv_cq*);

// srq.cc
ibv_srq* create_srq(ibv_pd*, ibv_srq_init_attr*);
ibv_srq* create_srq_ex(ibv_context*, ibv_srq_init_attr_ex*);
int modify_srq(ibv_srq*, ibv_srq_attr*, int mask);
int query_srq(ibv_srq*, ibv_srq_attr*);
int get_srq_num(ibv_srq*, std::uint32_t*);
int destroy_srq(ibv_srq*);
int post_srq_recv(ibv_srq*, ibv_recv_wr*, ibv_recv_wr** bad);

// xrcd.cc
ibv_xrcd* open_xrcd(ibv_context*, ibv_xrcd_init_attr*);
int close_xrcd(ibv_xrcd*);

// qp_create.cc, qp_state.cc, send.cc, recv.cc
ibv_qp* create_qp(ibv_pd*, ibv_qp_init_attr*);
ibv_qp* create_qp_ex(ibv_context*, ibv_qp_init_attr_ex*);
Qp* create_qp(Context*, ibv_qp_init_attr_ex*, const mlx5dv_qp_init_attr*);
ibv_qp* open_qp(ibv_context*, ibv_qp_open_attr*);
int modify_qp(ibv_qp*, ibv_qp_attr*, int mask);
int modify_qp_rate_limit(ibv_qp*, ibv_qp_rate_limit_attr*);
int query_qp(ibv_qp*, ibv_qp_attr*, int mask, ibv_qp_init_attr*);
int destroy_qp(ibv_qp*);
int post_send(ibv_qp*, ibv_send_wr*, ibv_send_wr** bad);
int post_recv(ibv_qp*, ibv_recv_wr*, ibv_recv_wr** bad);
int query_ece(ibv_qp*, ibv_ece*);
int set_ece(ibv_qp*, ibv_ece*);
int query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, std::uint32_t flags);
int attach_mcast(ibv_qp*, const ibv_gid*, std::uint16_t lid);
int detach_mcast(ibv_qp*, const ibv_gid*, std::uint16_t lid);

// wq.cc
ibv_wq* create_wq(ibv_context*, ibv_wq_init_attr*);
ibv_wq* create_wq(Context*, ibv_wq_init_attr*, const mlx5dv_wq_init_attr*);
int modify_wq(ibv_wq*, ibv_wq_attr*);
int destroy_wq(ibv_wq*);
int post_wq_recv(ibv_wq*, ibv_recv_wr*, ibv_recv_wr** bad);
ibv_rwq_ind_table* create_rwq_ind_table(ibv_context*, ibv_rwq_ind_table_init_attr*);
int destroy_rwq_ind_table(ibv_rwq_ind_table*);

// flow.cc
ibv_flow* create_flow(ibv_qp*, ibv_flow_attr*);
int destroy_flow(ibv_flow*);
ibv_counters* create_counters(ibv_context*, ibv_counters_init_attr*);
int destroy_counters(ibv_counters*);
int read_counters(ibv_counters*, std::uint64_t*, std::uint32_t count, std::uint32_t flags);
int attach_counters_point_flow(ibv_counters*, ibv_counter_attach_attr*, ibv_flow*);

// ah.cc
ibv_ah* create_ah(ibv_pd*, ibv_ah_attr*);
int destroy_ah(ibv_ah*);

}  // namespace verbena::mlx5
