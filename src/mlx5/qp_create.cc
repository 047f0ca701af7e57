// Making and unmaking a QP.

#include <algorithm>
#include <bit>

#include "mlx5/cqe.h"
#include "mlx5/environment.h"
#include "mlx5/ops.h"
#include "mlx5/qp_size.h"
#include "mlx5/qp_state.h"
#include "mlx5/uar.h"
#include "mlx5/wr.h"
#include "support/c_enum.h"

namespace verbena::mlx5 {

int post_connected(Qp* qp, ibv_send_wr* wr, ibv_send_wr** bad);
int post_datagram(Qp* qp, ibv_send_wr* wr, ibv_send_wr** bad);
int post_frames(Qp* qp, ibv_send_wr* wr, ibv_send_wr** bad);
int post_xrc(Qp* qp, ibv_send_wr* wr, ibv_send_wr** bad);
int post_none(Qp* qp, ibv_send_wr* wr, ibv_send_wr** bad);

namespace {

constexpr std::uint32_t kAttrMask =
    IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_MAX_TSO_HEADER |
    IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
constexpr std::uint64_t kVendorMask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS | MLX5DV_QP_INIT_ATTR_MASK_DC |
                                      MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS | MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS;
constexpr std::uint32_t kVendorFlags = MLX5DV_QP_CREATE_TUNNEL_OFFLOADS | MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC |
                                       MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_MC |
                                       MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE | MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE |
                                       MLX5DV_QP_CREATE_PACKET_BASED_CREDIT_MODE;
constexpr std::uint32_t kEceVersion1 = 0x10000000;  // asks the device to offer ECE
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kPageOffsetQuanta = 64;  // a ring may start at any 64th of its page

const char* huge_key(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return "HUGE_RC";
    case IBV_QPT_UC:
      return "HUGE_UC";
    case IBV_QPT_UD:
      return "HUGE_UD";
    case IBV_QPT_RAW_PACKET:
      return "HUGE_RAW_ETH";
    default:
      return "HUGE_NA";
  }
}

// Which flags of the create command the vendor attributes ask for.
int vendor_flags(const mlx5dv_qp_init_attr& vendor, std::uint32_t* flags) {
  if (vendor.comp_mask & ~kVendorMask) return EINVAL;
  if (vendor.comp_mask & (MLX5DV_QP_INIT_ATTR_MASK_DC | MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS)) return EINVAL;
  if (!(vendor.comp_mask & MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS)) return 0;
  const std::uint32_t asked = vendor.create_flags;
  if (asked & MLX5DV_QP_CREATE_SIG_PIPELINING) return EOPNOTSUPP;
  if (asked & MLX5DV_QP_CREATE_OOO_DP) return EOPNOTSUPP;
  if (asked & ~kVendorFlags) return EINVAL;
  constexpr std::uint32_t kBoth = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE | MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE;
  if ((asked & kBoth) == kBoth) return EINVAL;
  if (asked & MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE) *flags &= ~std::uint32_t{MLX5_QP_FLAG_SCATTER_CQE};
  if (asked & MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE) *flags |= MLX5_QP_FLAG_ALLOW_SCATTER_CQE | MLX5_QP_FLAG_SCATTER_CQE;
  if (asked & MLX5DV_QP_CREATE_TUNNEL_OFFLOADS) *flags |= MLX5_QP_FLAG_TUNNEL_OFFLOADS;
  if (asked & MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC) *flags |= MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC;
  if (asked & MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_MC) *flags |= MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_MC;
  if (asked & MLX5DV_QP_CREATE_PACKET_BASED_CREDIT_MODE) *flags |= MLX5_QP_FLAG_PACKET_BASED_CREDIT_MODE;
  return 0;
}

// Of a type that only the vendor's attributes name; the device has no DC.
int check_driver_type(const mlx5dv_qp_init_attr* vendor) {
  if (!vendor) return EOPNOTSUPP;
  if (vendor->comp_mask & ~kVendorMask || !(vendor->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_DC)) return EINVAL;
  const auto type = number_of(vendor->dc_init_attr.dc_type);
  return type == MLX5DV_DCTYPE_DCT || type == MLX5DV_DCTYPE_DCI ? EOPNOTSUPP : EINVAL;
}

int check(const ibv_qp_init_attr_ex& attr, const mlx5dv_qp_init_attr* vendor) {
  if (attr.comp_mask & ~kAttrMask) return EOPNOTSUPP;
  const bool target = number_of(attr.qp_type) == IBV_QPT_XRC_RECV;
  const std::uint32_t needed = target ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD;
  if (!(attr.comp_mask & needed) || (!target && !attr.pd)) return EINVAL;
  switch (number_of(attr.qp_type)) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_UD:
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
    case IBV_QPT_RAW_PACKET:
      break;
    case IBV_QPT_DRIVER:
      return check_driver_type(vendor);
    default:
      return EINVAL;
  }
  if (attr.comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER && attr.qp_type != IBV_QPT_RAW_PACKET) return EINVAL;
  if (attr.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS && attr.comp_mask & IBV_QP_INIT_ATTR_RX_HASH) return EINVAL;
  // The rest of the flags is for the kernel to judge.
  const bool flags = attr.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS;
  if (!flags || !(attr.create_flags & IBV_QP_CREATE_SOURCE_QPN)) return 0;
  return attr.qp_type == IBV_QPT_UD ? EOPNOTSUPP : EINVAL;
}

std::size_t custom_alignment(const QpSize& size) {
  const std::uint64_t bytes = (size.recv_bytes() + size.send_bytes() + kPage - 1) & ~(kPage - 1);
  const std::uint64_t page = std::bit_ceil(bytes);
  return std::max<std::uint64_t>({kWqeBlock, std::uint64_t{1} << size.recv_shift, page / kPageOffsetQuanta});
}

// Rings, bookkeeping and the doorbell record.
int allocate_rings(Context* context, const ibv_qp_init_attr_ex& attr, const QpSize& size, Qp* qp) {
  // Frames are sent from a ring of its own, other QPs have one buffer, receive ring first.
  const std::size_t bytes = size.recv_bytes() + (qp->frames ? 0 : size.send_bytes());
  const std::size_t alignment = qp->frames ? kPage : custom_alignment(size);
  const bool huge = environment::huge(huge_key(attr.qp_type));
  const BufferRequest request{bytes, alignment, MLX5DV_RES_TYPE_QP, "QP", huge};
  // An XRC target has no rings.
  const bool has_rings = (bytes || !qp->frames) && attr.qp_type != IBV_QPT_XRC_RECV;
  if (has_rings && !allocate(context, attr.pd, request, &qp->buffer)) return errno ? errno : ENOMEM;
  const BufferRequest sends{size.send_bytes(), alignment, MLX5DV_RES_TYPE_QP, "QP", huge};
  if (qp->frames && sends.size && !allocate(context, attr.pd, sends, &qp->send_buffer)) return errno ? errno : ENOMEM;
  if (!allocate(context, attr.pd, &qp->db)) return errno ? errno : ENOMEM;
  SendQueue& sq = qp->sq;
  RecvQueue& rq = qp->rq;
  sq.entries = new (std::nothrow) SendEntry[std::max(size.send_blocks, 1u)]();
  rq.wr_ids = new (std::nothrow) std::uint64_t[std::max(size.recv_count, 1u)]();
  if (!sq.entries || !rq.wr_ids) return ENOMEM;
  sq.start = qp->frames ? qp->send_buffer.data : qp->buffer.data + size.recv_bytes();
  sq.end = sq.start + size.send_bytes();
  sq.blocks = size.send_blocks;
  sq.mask = size.send_blocks ? size.send_blocks - 1 : 0;
  sq.max_post = size.max_post;
  // Where nothing but the fixed part fits, the limit is below zero, and the caller is told so as by rdma-core.
  sq.max_inline = static_cast<std::uint32_t>(std::max(static_cast<std::int32_t>(size.max_inline), 0));
  sq.max_sge = size.max_send_sge;
  sq.dbrec = &qp->db.words[MLX5_SND_DBR];
  rq.start = qp->buffer.data;
  rq.count = size.recv_count;
  rq.mask = size.recv_count ? size.recv_count - 1 : 0;
  rq.shift = size.recv_shift;
  rq.max_sge = size.max_recv_sge;
  rq.dbrec = qp->frames ? &qp->held_dbrec : &qp->db.words[MLX5_RCV_DBR];
  return 0;
}

void discard(Context* context, Qp* qp) {
  if (qp->uidx != CqeOwners::kNone) context->qps.clear(qp->uidx);
  give_qp_uar(context, qp->own_uar);
  release(context, &qp->db);
  release(context, &qp->buffer);
  release(context, &qp->send_buffer);
  delete[] qp->sq.entries;
  delete[] qp->rq.wr_ids;
  delete qp;
}

// The register this QP rings: the thread domain's, one of ours, or (null) what the kernel will name.
int choose_uar(Context* context, ibv_pd* pd, Qp* qp) {
  const ParentDomain* domain = parent_domain_of(pd);
  if (domain && domain->thread) {
    qp->sq.uar = domain->thread->uar;
  } else if (!context->static_uars) {
    qp->sq.uar = qp->own_uar = take_qp_uar(context);
    if (!qp->sq.uar) return errno ? errno : ENOSPC;
  }
  return 0;
}

int create_in_kernel(Context* context, ibv_qp_init_attr_ex* attr, std::uint32_t flags, const QpSize& size, Qp* qp) {
  mlx5_ib_create_qp request = {};
  mlx5_ib_create_qp_resp response = {};
  request.buf_addr = reinterpret_cast<std::uintptr_t>(qp->buffer.data);
  if (qp->frames) request.sq_buf_addr = reinterpret_cast<std::uintptr_t>(qp->send_buffer.data);
  request.db_addr = reinterpret_cast<std::uintptr_t>(qp->db.words);
  request.sq_wqe_count = size.send_blocks;
  request.rq_wqe_count = size.recv_count;
  request.rq_wqe_shift = size.recv_shift;
  request.flags = flags;
  const bool nameless = attr->qp_type == IBV_QPT_XRC_RECV && context->caps.cqe_version;  // its CQEs name the SRQ
  request.uidx = nameless ? 0 : qp->uidx;
  if (const Uar* uar = qp->sq.uar) {
    request.bfreg_index = uar->page_id;
    request.flags |= MLX5_QP_FLAG_UAR_PAGE_INDEX;
  }
  if (context->ece) request.ece_options = kEceVersion1;
  const verbs::Udata udata{&request, sizeof request, &response, sizeof response};
  if (int error = verbena_cmd_create_qp(context->ibv(), &qp->verbs, attr, &udata)) return error;
  qp->ece_got = response.ece_options;
  qp->parts = response;
  if (!qp->sq.uar && response.bfreg_index < context->static_regs.size())
    qp->sq.uar = &context->static_regs[response.bfreg_index];
  return 0;
}

void connect_data_path(Context* context, const ibv_qp_init_attr_ex& attr, Qp* qp) {
  qp->sq.qpn_field = qp->verbs.qp.qp_num << 8;
  qp->sq.signal_bits = attr.sq_sig_all ? kCqUpdate : 0;
  qp->srq = attr.srq ? srq_of(attr.srq) : nullptr;
  qp->post_send = qp->frames                         ? post_frames
                  : attr.qp_type == IBV_QPT_UD       ? post_datagram
                  : attr.qp_type == IBV_QPT_XRC_SEND ? post_xrc
                  : attr.qp_type == IBV_QPT_XRC_RECV ? post_none
                                                     : post_connected;
  if (attr.qp_type == IBV_QPT_XRC_RECV) return set_operational(qp, IBV_QPS_RESET);
  const uverbs::Backend* backend = context->backend;
  if (backend->sq_token && backend->ring_sq) {
    qp->sq.ring_token = backend->sq_token(context->ibv()->cmd_fd, qp->verbs.qp.qp_num);
    if (qp->sq.ring_token) qp->sq.ring = backend->ring_sq;
  }
  set_operational(qp, IBV_QPS_RESET);
}

// A QP that receives by hashing over a table: a TIR, and no queues.
Qp* create_hashing(Context* context, ibv_qp_init_attr_ex* attr, std::uint32_t flags) {
  mlx5_ib_create_qp_rss request = {};
  mlx5_ib_create_qp_resp response = {};
  const ibv_rx_hash_conf& hash = attr->rx_hash_conf;
  if (hash.rx_hash_key_len > sizeof request.rx_hash_key) return fail_null(EINVAL);
  request.rx_hash_fields_mask = hash.rx_hash_fields_mask;
  request.rx_hash_function = hash.rx_hash_function;
  request.rx_key_len = hash.rx_hash_key_len;
  request.flags = flags;
  if (hash.rx_hash_key_len) std::memcpy(request.rx_hash_key, hash.rx_hash_key, hash.rx_hash_key_len);
  auto* qp = new (std::nothrow) Qp();
  if (!qp) return fail_null(ENOMEM);
  const verbs::Udata udata{&request, sizeof request, &response, sizeof response};
  if (int error = verbena_cmd_create_qp(context->ibv(), &qp->verbs, attr, &udata)) {
    delete qp;
    return fail_null(error);
  }
  qp->uidx = CqeOwners::kNone;
  qp->frames = qp->hashes = true;
  qp->parts = response;
  qp->post_send = post_frames;
  if (parent_domain_of(attr->pd)) pd_of(attr->pd)->users.fetch_add(1);
  return qp;
}

}  // namespace

Qp* create_qp(Context* context, ibv_qp_init_attr_ex* attr, const mlx5dv_qp_init_attr* vendor) {
  std::uint32_t flags = environment::scatter_to_cqe() ? MLX5_QP_FLAG_SCATTER_CQE : 0;
  if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD)) attr->pd = nullptr;
  int error = check(*attr, vendor);
  if (!error && vendor) error = vendor_flags(*vendor, &flags);
  if (!error && attr->comp_mask & IBV_QP_INIT_ATTR_RX_HASH) {
    return create_hashing(context, attr, flags & ~std::uint32_t{MLX5_QP_FLAG_SCATTER_CQE});  // it has no queues
  }
  QpSize size;
  const auto& caps = context->caps;
  if (!error)
    error = compute_size({caps.max_sq_desc_sz, caps.max_rq_desc_sz, caps.max_send_wqebb, caps.max_recv_wr}, *attr,
                         vendor, &size);
  if (error) return fail_null(error);

  auto* qp = new (std::nothrow) Qp();
  if (!qp) return fail_null(ENOMEM);
  qp->uidx = CqeOwners::kNone;
  qp->atomics = context->atomic_cap != IBV_ATOMIC_NONE;
  qp->frames = attr->qp_type == IBV_QPT_RAW_PACKET;
  qp->eth_inline = context->eth_inline;
  const bool extended = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  const std::uint64_t vendor_ops =
      vendor && (vendor->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS) ? vendor->send_ops_flags : 0;
  if (vendor_ops) error = EOPNOTSUPP;
  if (!error && extended) error = fill_builders(qp, attr->qp_type, attr->send_ops_flags);
  qp->sq.lock.set_shared(!single_threaded(context, attr->pd));
  qp->rq.lock.set_shared(!single_threaded(context, attr->pd));
  if (!error) error = allocate_rings(context, *attr, size, qp);
  // Nothing of an XRC target completes in its name.
  if (!error && attr->qp_type != IBV_QPT_XRC_RECV) {
    qp->uidx = context->qps.store(qp);
    if (qp->uidx == CqeOwners::kNone) error = ENOMEM;
  }
  if (!error) error = choose_uar(context, attr->pd, qp);
  const ibv_qp_cap asked = attr->cap;
  if (size.send_blocks) attr->cap.max_inline_data = size.max_inline;
  if (!error) error = create_in_kernel(context, attr, flags, size, qp);
  if (error) {
    attr->cap = asked;
    discard(context, qp);
    return fail_null(error);
  }
  if (extended) qp->verbs.comp_mask |= verbs::kQpIsEx;
  connect_data_path(context, *attr, qp);
  attr->cap = asked;
  attr->cap.max_send_wr = size.max_post;
  attr->cap.max_inline_data = size.send_blocks ? size.max_inline : asked.max_inline_data;
  attr->cap.max_recv_wr = size.recv_count;
  attr->cap.max_recv_sge = size.max_recv_sge;
  if (parent_domain_of(attr->pd)) pd_of(attr->pd)->users.fetch_add(1);
  return qp;
}

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  ibv_qp_init_attr_ex extended = {};
  std::memcpy(&extended, attr, sizeof *attr);
  extended.comp_mask = IBV_QP_INIT_ATTR_PD;
  extended.pd = pd;
  Qp* qp = create_qp(context_of(pd->context), &extended, nullptr);
  if (!qp) return nullptr;
  std::memcpy(attr, &extended, sizeof *attr);
  return &qp->verbs.qp;
}

ibv_qp* create_qp_ex(ibv_context* ibv, ibv_qp_init_attr_ex* attr) {
  Qp* qp = create_qp(context_of(ibv), attr, nullptr);
  return qp ? &qp->verbs.qp : nullptr;
}

// A handle of somebody else's XRC target: nothing but the number.
ibv_qp* open_qp(ibv_context* ibv, ibv_qp_open_attr* attr) {
  auto* qp = new (std::nothrow) Qp();
  if (!qp) return fail_null(ENOMEM);
  qp->uidx = CqeOwners::kNone;
  qp->post_send = post_none;
  if (int error = verbena_cmd_open_qp(ibv, &qp->verbs, attr, nullptr)) {
    delete qp;
    return fail_null(error);
  }
  return &qp->verbs.qp;
}

int destroy_qp(ibv_qp* ibqp) {
  Qp* qp = qp_of(ibqp);
  Context* context = context_of(ibqp->context);
  ibv_pd* pd = ibqp->pd;
  Cq* send_cq = ibqp->send_cq ? cq_of(ibqp->send_cq) : nullptr;
  Cq* recv_cq = ibqp->recv_cq ? cq_of(ibqp->recv_cq) : nullptr;
  if (int error = verbena_cmd_destroy_qp(ibqp)) return error;
  // Pollers find no CQE of it afterwards, and no pollers hold it now.
  if (recv_cq) clean(recv_cq, qp->uidx, qp->srq);
  if (send_cq && send_cq != recv_cq) clean(send_cq, qp->uidx, nullptr);
  discard(context, qp);
  if (parent_domain_of(pd)) pd_of(pd)->users.fetch_sub(1);
  return 0;
}

}  // namespace verbena::mlx5
