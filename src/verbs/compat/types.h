// The structures of libibverbs 1.0 (before 2007), as programs linked against the node IBVERBS_1.0 know them.
//
// Each object holds what those programs could read, and a pointer to the present object. The other way round the
// present object's user context points at the old object, and the old one keeps the program's context.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace verbena::verbs::v1_0 {

struct Context;

struct Pd {
  Context* context;
  std::uint32_t handle;
  ibv_pd* real;
};

struct Mr {
  Context* context;
  Pd* pd;
  std::uint32_t handle;
  std::uint32_t lkey;
  std::uint32_t rkey;
  ibv_mr* real;
};

struct Srq {
  Context* context;
  void* srq_context;
  Pd* pd;
  std::uint32_t handle;
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  std::uint32_t events_completed;
  ibv_srq* real;
};

struct Cq {
  Context* context;
  void* cq_context;
  std::uint32_t handle;
  int cqe;
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  std::uint32_t comp_events_completed;
  std::uint32_t async_events_completed;
  ibv_cq* real;
};

struct Qp {
  Context* context;
  void* qp_context;
  Pd* pd;
  Cq* send_cq;
  Cq* recv_cq;
  Srq* srq;
  std::uint32_t handle;
  std::uint32_t qp_num;
  ibv_qp_state state;
  ibv_qp_type qp_type;
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  std::uint32_t events_completed;
  ibv_qp* real;
};

struct QpInitAttr {
  void* qp_context;
  Cq* send_cq;
  Cq* recv_cq;
  Srq* srq;
  ibv_qp_cap cap;
  ibv_qp_type qp_type;
  int sq_sig_all;
};

struct Ah {
  Context* context;
  Pd* pd;
  std::uint32_t handle;
  ibv_ah* real;
};

struct SendWr {
  SendWr* next;
  std::uint64_t wr_id;
  ibv_sge* sg_list;
  int num_sge;
  ibv_wr_opcode opcode;
  int send_flags;
  __be32 imm_data;
  union {
    struct {
      std::uint64_t remote_addr;
      std::uint32_t rkey;
    } rdma;
    struct {
      std::uint64_t remote_addr;
      std::uint64_t compare_add;
      std::uint64_t swap;
      std::uint32_t rkey;
    } atomic;
    struct {
      Ah* ah;
      std::uint32_t remote_qpn;
      std::uint32_t remote_qkey;
    } ud;
  } wr;
};

struct RecvWr {
  RecvWr* next;
  std::uint64_t wr_id;
  ibv_sge* sg_list;
  int num_sge;
};

struct Device {
  void* sysfs_device;
  void* sysfs_ib_device;
  ibv_device* real;
  _ibv_device_ops ops;
};

// Programs' inline functions call five of these; the others were the library's own.
struct ContextOps {
  void* query_device;
  void* query_port;
  void* alloc_pd;
  void* dealloc_pd;
  void* reg_mr;
  void* dereg_mr;
  void* create_cq;
  int (*poll_cq)(Cq*, int, ibv_wc*);
  int (*req_notify_cq)(Cq*, int);
  void* cq_event;
  void* resize_cq;
  void* destroy_cq;
  void* create_srq;
  void* modify_srq;
  void* query_srq;
  void* destroy_srq;
  int (*post_srq_recv)(Srq*, RecvWr*, RecvWr**);
  void* create_qp;
  void* query_qp;
  void* modify_qp;
  void* destroy_qp;
  int (*post_send)(Qp*, SendWr*, SendWr**);
  int (*post_recv)(Qp*, RecvWr*, RecvWr**);
  void* create_ah;
  void* destroy_ah;
  void* attach_mcast;
  void* detach_mcast;
};

struct Context {
  Device* device;
  ContextOps ops;
  int cmd_fd;
  int async_fd;
  int num_comp_vectors;
  ibv_context* real;
};

// datapath.cc
void set_data_path(ContextOps* ops);

}  // namespace verbena::verbs::v1_0
