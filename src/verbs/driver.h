// The private interface between libibverbs.so.1 (src/verbs) and its provider libmlx5.so.1 (src/mlx5): how a
// provider registers, the objects both sides share, and the requests the library issues for it. C++ structures,
// C linkage; names `verbena_*`, exported at the node VERBENA_PRIVATE.
//
// Every verbena_* function that returns int gives 0 or a positive errno and sets errno to the same.
// Kernel handles live where the public structures have room: ibv_{pd,mr,mw,cq,qp,srq,wq,ah,flow,dm}.handle,
// ibv_rwq_ind_table.ind_tbl_handle; for the others in Xrcd, Counters and FlowAction below.
//
// Threads: any, unless said otherwise; registration happens under the loader's lock.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "uverbs/backend.h"
#include "uverbs/bundle.h"

namespace verbena::verbs {

inline constexpr std::uint32_t kDriverAbi = 1;

struct Context;
struct Ops;
struct Provider;

// ---- objects: a provider derives from these, so that ibv_xx* <-> provider object is a static cast away ----

struct Device {
  ibv_device device;  // first: the ABI's ibv_device* is our Device*
  const Provider* provider;
  const uverbs::Backend* backend;
  uverbs::DeviceInfo info;
  int backend_index;            // for Backend::open
  std::atomic<int> references;  // device list entries and open contexts
  std::uint64_t core_support;   // IB_UVERBS_CORE_SUPPORT_*, known after the first open
};

enum class MrKind { normal, null_mr, imported, dmabuf };

struct Mr {
  ibv_mr mr;
  MrKind kind;
  int access;
};

struct Cq {
  union {
    ibv_cq cq;
    ibv_cq_ex cq_ex;
  };
};

inline constexpr std::uint32_t kQpHasXrcd = 1u << 0;
inline constexpr std::uint32_t kQpIsEx = 1u << 1;  // set by the provider when qp_ex's builders are filled

struct Xrcd {
  ibv_xrcd xrcd;
  std::uint32_t handle;
};

struct Qp {
  union {
    ibv_qp qp;
    ibv_qp_ex qp_ex;
  };
  std::uint32_t comp_mask;
  Xrcd* xrcd;
};

struct Srq {
  ibv_srq srq;
  ibv_srq_type type;
  Xrcd* xrcd;
  ibv_cq* cq;
  std::uint32_t srq_num;
};

struct Dm {
  ibv_dm dm;
};

struct Counters {
  ibv_counters counters;
  std::uint32_t handle;
};

struct FlowAction {
  ibv_flow_action action;
  std::uint32_t handle;
};

template <class T, class Base>
T* derived(Base* base) {  // the public structure is the first member
  return static_cast<T*>(reinterpret_cast<void*>(base));
}

// ---- provider ----

struct Provider {
  std::uint32_t abi;  // kDriverAbi
  const char* name;   // "mlx5"
  bool (*match)(const uverbs::DeviceInfo& info);
  // The library fills every member of Device afterwards.
  Device* (*alloc_device)(const uverbs::DeviceInfo& info);
  void (*free_device)(Device* device);
  // Allocates its context, calls verbena_context_init(), verbena_cmd_get_context(), verbena_set_ops().
  // Owns cmd_fd from the call on: on failure verbena_context_uninit() (or Backend::close) and return null with errno.
  Context* (*alloc_context)(Device* device, int cmd_fd, void* private_data);
  // The same for ibv_import_device: verbena_cmd_query_context() in place of get_context. May be null.
  Context* (*import_context)(Device* device, int cmd_fd);
};

// Every verb a provider can implement. Null means unsupported: the library answers EOPNOTSUPP.
// int results are 0 or a positive errno unless the verbs manual says otherwise.
struct Ops {
  // context
  void (*free_context)(Context*);  // must call verbena_context_uninit() and free its memory
  int (*query_device_ex)(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex*, std::size_t);
  int (*query_port)(ibv_context*, std::uint8_t port, ibv_port_attr*);
  int (*query_rt_values)(ibv_context*, ibv_values_ex*);
  void (*async_event)(ibv_context*, ibv_async_event*);  // seen before the program gets it; may be null
  // protection and memory
  ibv_pd* (*alloc_pd)(ibv_context*);
  int (*dealloc_pd)(ibv_pd*);
  ibv_td* (*alloc_td)(ibv_context*, ibv_td_init_attr*);
  int (*dealloc_td)(ibv_td*);
  ibv_pd* (*alloc_parent_domain)(ibv_context*, ibv_parent_domain_init_attr*);
  ibv_mr* (*reg_mr)(ibv_pd*, void* addr, std::size_t length, std::uint64_t iova, int access);
  ibv_mr* (*reg_dmabuf_mr)(ibv_pd*, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd, int access);
  int (*rereg_mr)(Mr*, int flags, ibv_pd*, void* addr, std::size_t length, int access);
  int (*dereg_mr)(Mr*);
  int (*advise_mr)(ibv_pd*, ibv_advise_mr_advice, std::uint32_t flags, ibv_sge*, std::uint32_t count);
  ibv_mr* (*alloc_null_mr)(ibv_pd*);
  ibv_mw* (*alloc_mw)(ibv_pd*, ibv_mw_type);
  int (*dealloc_mw)(ibv_mw*);
  int (*bind_mw)(ibv_qp*, ibv_mw*, ibv_mw_bind*);
  ibv_dm* (*alloc_dm)(ibv_context*, ibv_alloc_dm_attr*);
  int (*free_dm)(ibv_dm*);
  ibv_mr* (*reg_dm_mr)(ibv_pd*, ibv_dm*, std::uint64_t offset, std::size_t length, unsigned access);
  ibv_dm* (*import_dm)(ibv_context*, std::uint32_t handle);
  void (*unimport_dm)(ibv_dm*);
  int (*dm_export_dmabuf_fd)(ibv_dm*);  // a descriptor, or -1 with errno
  ibv_mr* (*import_mr)(ibv_pd*, std::uint32_t handle);
  void (*unimport_mr)(ibv_mr*);
  ibv_pd* (*import_pd)(ibv_context*, std::uint32_t handle);
  void (*unimport_pd)(ibv_pd*);
  // completion queues
  ibv_cq* (*create_cq)(ibv_context*, int cqe, ibv_comp_channel*, int vector);
  ibv_cq_ex* (*create_cq_ex)(ibv_context*, ibv_cq_init_attr_ex*);
  int (*poll_cq)(ibv_cq*, int, ibv_wc*);
  int (*req_notify_cq)(ibv_cq*, int solicited_only);
  void (*cq_event)(ibv_cq*);  // an event was taken from the channel; may be null
  int (*resize_cq)(ibv_cq*, int cqe);
  int (*modify_cq)(ibv_cq*, ibv_modify_cq_attr*);
  int (*destroy_cq)(ibv_cq*);
  // shared receive queues
  ibv_srq* (*create_srq)(ibv_pd*, ibv_srq_init_attr*);
  ibv_srq* (*create_srq_ex)(ibv_context*, ibv_srq_init_attr_ex*);
  int (*modify_srq)(ibv_srq*, ibv_srq_attr*, int mask);
  int (*query_srq)(ibv_srq*, ibv_srq_attr*);
  int (*get_srq_num)(ibv_srq*, std::uint32_t*);
  int (*destroy_srq)(ibv_srq*);
  int (*post_srq_recv)(ibv_srq*, ibv_recv_wr*, ibv_recv_wr** bad);
  int (*post_srq_ops)(ibv_srq*, ibv_ops_wr*, ibv_ops_wr** bad);
  // queue pairs
  ibv_qp* (*create_qp)(ibv_pd*, ibv_qp_init_attr*);
  ibv_qp* (*create_qp_ex)(ibv_context*, ibv_qp_init_attr_ex*);
  ibv_qp* (*open_qp)(ibv_context*, ibv_qp_open_attr*);
  int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int mask);
  int (*query_qp)(ibv_qp*, ibv_qp_attr*, int mask, ibv_qp_init_attr*);
  int (*destroy_qp)(ibv_qp*);
  int (*post_send)(ibv_qp*, ibv_send_wr*, ibv_send_wr** bad);
  int (*post_recv)(ibv_qp*, ibv_recv_wr*, ibv_recv_wr** bad);
  int (*modify_qp_rate_limit)(ibv_qp*, ibv_qp_rate_limit_attr*);
  int (*query_qp_data_in_order)(ibv_qp*, ibv_wr_opcode, std::uint32_t flags);
  int (*query_ece)(ibv_qp*, ibv_ece*);
  int (*set_ece)(ibv_qp*, ibv_ece*);
  int (*attach_mcast)(ibv_qp*, const ibv_gid*, std::uint16_t lid);
  int (*detach_mcast)(ibv_qp*, const ibv_gid*, std::uint16_t lid);
  // address handles
  ibv_ah* (*create_ah)(ibv_pd*, ibv_ah_attr*);
  int (*destroy_ah)(ibv_ah*);
  // XRC domains, work queues, steering, counters
  ibv_xrcd* (*open_xrcd)(ibv_context*, ibv_xrcd_init_attr*);
  int (*close_xrcd)(ibv_xrcd*);
  ibv_wq* (*create_wq)(ibv_context*, ibv_wq_init_attr*);
  int (*modify_wq)(ibv_wq*, ibv_wq_attr*);
  int (*destroy_wq)(ibv_wq*);
  ibv_rwq_ind_table* (*create_rwq_ind_table)(ibv_context*, ibv_rwq_ind_table_init_attr*);
  int (*destroy_rwq_ind_table)(ibv_rwq_ind_table*);
  ibv_flow* (*create_flow)(ibv_qp*, ibv_flow_attr*);
  int (*destroy_flow)(ibv_flow*);
  ibv_flow_action* (*create_flow_action_esp)(ibv_context*, ibv_flow_action_esp_attr*);
  int (*modify_flow_action_esp)(ibv_flow_action*, ibv_flow_action_esp_attr*);
  int (*destroy_flow_action)(ibv_flow_action*);
  ibv_counters* (*create_counters)(ibv_context*, ibv_counters_init_attr*);
  int (*destroy_counters)(ibv_counters*);
  int (*read_counters)(ibv_counters*, std::uint64_t*, std::uint32_t count, std::uint32_t flags);
  int (*attach_counters_point_flow)(ibv_counters*, ibv_counter_attach_attr*, ibv_flow*);
};

// ---- context ----

// A provider derives its context from this. `verbs` (whose own last member is ibv_context) is what programs see.
struct Context {
  verbs_context verbs;  // first, for those who know no more of a context (src/preload)
  const uverbs::Backend* backend;
  Device* device;
  std::uint32_t driver_id;  // RDMA_DRIVER_MLX5
  bool imported;
  Ops ops;                                    // with defaults where the provider has none
  std::atomic<std::uint64_t> unsupported[2];  // native methods the kernel does not know (Method in cmd.h)
};

inline Context* context_of(ibv_context* context) {
  auto* vctx = reinterpret_cast<verbs_context*>(reinterpret_cast<char*>(context) - offsetof(verbs_context, context));
  return reinterpret_cast<Context*>(vctx->priv);
}
inline ibv_context* public_context(Context* context) { return &context->verbs.context; }

// Driver-specific bytes that follow a request and its answer (UVERBS_ATTR_UHW_IN/OUT): struct mlx5_ib_create_cq etc.
// without the core structure in front.
struct Udata {
  const void* in = nullptr;
  std::size_t in_length = 0;
  void* out = nullptr;
  std::size_t out_length = 0;
};

}  // namespace verbena::verbs

extern "C" {

using verbena_bundle = verbena::uverbs::Bundle;
using verbena_context = verbena::verbs::Context;
using verbena_udata = verbena::verbs::Udata;

// ---- registration and life of a context ----

// From a constructor of the provider's library.
void verbena_register_provider(const verbena::verbs::Provider* provider);
// Resets every base member (the derived part is the caller's). Takes over cmd_fd.
void verbena_context_init(verbena_context*, verbena::verbs::Device*, int cmd_fd, std::uint32_t driver_id);
// Closes the descriptors. Does not free memory.
void verbena_context_uninit(verbena_context*);
// Installs the non-null members of `ops`; may be called again (e.g. another poll_cq once the CQE version is known).
void verbena_set_ops(verbena_context*, const verbena::verbs::Ops* ops);
// ibv_open_device with the provider's private data (mlx5dv_open_device).
ibv_context* verbena_open_device(ibv_device*, void* private_data);

// ---- generic requests ----

// Executes a native method. The bundle's results can be read afterwards.
int verbena_execute(verbena_context*, verbena_bundle*);
// A legacy command (IB_USER_VERBS_CMD_*, or'ed with IB_USER_VERBS_CMD_FLAG_EXTENDED) inside INVOKE_WRITE.
int verbena_write(verbena_context*, std::uint32_t command, const void* in, std::size_t in_length, void* out,
                  std::size_t out_length, const verbena_udata*);
// mmap/munmap on the command descriptor.
void* verbena_mmap(verbena_context*, std::size_t length, int prot, std::int64_t offset);
int verbena_munmap(verbena_context*, void* addr, std::size_t length);

// ---- device ----

int verbena_cmd_get_context(verbena_context*, const verbena_udata*);
int verbena_cmd_query_context(verbena_context*, verbena_bundle* driver);
// *filled (may be null): how much of udata->out the kernel may have written; 0 where only the legacy command
// exists. Driver structures say in a response_length of their own what of it is valid. attr->fw_ver is formatted
// here as "major.minor.sub".
int verbena_cmd_query_device_ex(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex*,
                                std::size_t attr_size, const verbena_udata*, std::size_t* filled);
int verbena_cmd_query_port(ibv_context*, std::uint8_t port, ibv_port_attr*);

// ---- protection and memory. `driver` bundles hold extra attributes (may be null); results are copied back. ----

int verbena_cmd_alloc_pd(ibv_context*, ibv_pd*, const verbena_udata*);
int verbena_cmd_dealloc_pd(ibv_pd*);
int verbena_cmd_reg_mr(ibv_pd*, void* addr, std::size_t length, std::uint64_t iova, int access, verbena::verbs::Mr*,
                       const verbena_udata*);
int verbena_cmd_rereg_mr(verbena::verbs::Mr*, std::uint32_t flags, void* addr, std::size_t length, std::uint64_t iova,
                         int access, ibv_pd*, const verbena_udata*);
int verbena_cmd_dereg_mr(verbena::verbs::Mr*);
int verbena_cmd_reg_dmabuf_mr(ibv_pd*, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd, int access,
                              verbena::verbs::Mr*, verbena_bundle* driver);
int verbena_cmd_query_mr(ibv_pd*, verbena::verbs::Mr*, std::uint32_t handle);
int verbena_cmd_advise_mr(ibv_pd*, ibv_advise_mr_advice, std::uint32_t flags, const ibv_sge*, std::uint32_t count);
int verbena_cmd_alloc_mw(ibv_pd*, ibv_mw_type, ibv_mw*, const verbena_udata*);
int verbena_cmd_dealloc_mw(ibv_mw*);
int verbena_cmd_alloc_dm(ibv_context*, const ibv_alloc_dm_attr*, verbena::verbs::Dm*, verbena_bundle* driver);
int verbena_cmd_free_dm(verbena::verbs::Dm*);
// What mmap(2) of the command descriptor maps at `offset`, as a dma-buf: its descriptor, or -1 with errno. Only recent kernels
// can (EPROTONOSUPPORT from others).
int verbena_cmd_export_dmabuf_fd(ibv_context*, std::uint64_t offset);
int verbena_cmd_reg_dm_mr(ibv_pd*, verbena::verbs::Dm*, std::uint64_t offset, std::size_t length, unsigned access,
                          verbena::verbs::Mr*, verbena_bundle* driver);

// ---- completion queues. cq->cqe and handle are filled; the library initializes the rest of ibv_cq. ----

int verbena_cmd_create_cq(ibv_context*, const ibv_cq_init_attr_ex*, verbena::verbs::Cq*, const verbena_udata*);
int verbena_cmd_resize_cq(ibv_cq*, int cqe, const verbena_udata*);
int verbena_cmd_modify_cq(ibv_cq*, const ibv_modify_cq_attr*);
// Waits until every event of the CQ was acknowledged, as ibv_destroy_cq(3) says.
int verbena_cmd_destroy_cq(ibv_cq*);

// ---- queue pairs. attr->cap is updated; all of ibv_qp is initialized. ----

int verbena_cmd_create_qp(ibv_context*, verbena::verbs::Qp*, ibv_qp_init_attr_ex*, const verbena_udata*);
int verbena_cmd_open_qp(ibv_context*, verbena::verbs::Qp*, const ibv_qp_open_attr*, const verbena_udata*);
int verbena_cmd_query_qp(ibv_qp*, ibv_qp_attr*, int mask, ibv_qp_init_attr*);
// Chooses the extended command where the mask (IBV_QP_RATE_LIMIT) or driver data need it.
int verbena_cmd_modify_qp(ibv_qp*, const ibv_qp_attr*, int mask, const verbena_udata*);
int verbena_cmd_destroy_qp(ibv_qp*);
int verbena_cmd_attach_mcast(ibv_qp*, const ibv_gid*, std::uint16_t lid);
int verbena_cmd_detach_mcast(ibv_qp*, const ibv_gid*, std::uint16_t lid);

// ---- shared receive queues ----

int verbena_cmd_create_srq(ibv_pd*, verbena::verbs::Srq*, ibv_srq_init_attr_ex*, const verbena_udata*);
int verbena_cmd_modify_srq(ibv_srq*, const ibv_srq_attr*, int mask, const verbena_udata*);
int verbena_cmd_query_srq(ibv_srq*, ibv_srq_attr*);
int verbena_cmd_destroy_srq(ibv_srq*);

// ---- address handles ----

int verbena_cmd_create_ah(ibv_pd*, ibv_ah*, const ibv_ah_attr*, const verbena_udata*);
int verbena_cmd_destroy_ah(ibv_ah*);

// ---- XRC domains, work queues, steering, counters ----

int verbena_cmd_open_xrcd(ibv_context*, verbena::verbs::Xrcd*, const ibv_xrcd_init_attr*);
int verbena_cmd_close_xrcd(verbena::verbs::Xrcd*);
int verbena_cmd_create_wq(ibv_context*, ibv_wq_init_attr*, ibv_wq*, const verbena_udata*);
int verbena_cmd_modify_wq(ibv_wq*, const ibv_wq_attr*, const verbena_udata*);
int verbena_cmd_destroy_wq(ibv_wq*);
int verbena_cmd_create_rwq_ind_table(ibv_context*, const ibv_rwq_ind_table_init_attr*, ibv_rwq_ind_table*,
                                     const verbena_udata*);
int verbena_cmd_destroy_rwq_ind_table(ibv_rwq_ind_table*);
int verbena_cmd_create_flow(ibv_qp*, ibv_flow*, const ibv_flow_attr*, const void* driver_data,
                            std::size_t driver_length);
int verbena_cmd_destroy_flow(ibv_flow*);
int verbena_cmd_create_flow_action_esp(ibv_context*, ibv_flow_action_esp_attr*, verbena::verbs::FlowAction*,
                                       verbena_bundle* driver);
int verbena_cmd_modify_flow_action_esp(verbena::verbs::FlowAction*, ibv_flow_action_esp_attr*, verbena_bundle* driver);
int verbena_cmd_destroy_flow_action(verbena::verbs::FlowAction*);
int verbena_cmd_create_counters(ibv_context*, const ibv_counters_init_attr*, verbena::verbs::Counters*,
                                verbena_bundle* driver);
int verbena_cmd_destroy_counters(verbena::verbs::Counters*);
int verbena_cmd_read_counters(verbena::verbs::Counters*, std::uint64_t* values, std::uint32_t count,
                              std::uint32_t flags, verbena_bundle* driver);

}  // extern "C"
