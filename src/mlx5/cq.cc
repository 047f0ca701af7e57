// Life of a completion queue.

#include <bit>
#include <memory>

#include "mlx5/cq_ex.h"
#include "mlx5/cqe.h"
#include "mlx5/environment.h"
#include "mlx5/ops.h"
#include "mlx5/uar.h"

namespace verbena::mlx5 {

namespace {

constexpr std::uint64_t kWcFlags = std::uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_CVLAN |
                                   IBV_WC_EX_WITH_FLOW_TAG | IBV_WC_EX_WITH_TM_INFO |
                                   IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
constexpr std::uint32_t kAttrMask = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
constexpr std::uint32_t kFlags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
constexpr std::uint64_t kVendorMask =
    MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE | MLX5DV_CQ_INIT_ATTR_MASK_FLAGS | MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE;
constexpr std::uint64_t kMostEntries = 1u << 24;

int check(const ibv_cq_init_attr_ex& attr, const mlx5dv_cq_init_attr* vendor) {
  if (!attr.cqe || (attr.comp_mask & ~kAttrMask)) return EINVAL;
  if ((attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) && (attr.flags & ~kFlags)) return EINVAL;
  if (attr.wc_flags & ~kWcFlags) return ENOTSUP;
  if (vendor && (vendor->comp_mask & ~kVendorMask)) return EINVAL;
  if ((attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) && !parent_domain_of(attr.parent_domain)) return EINVAL;
  return 0;
}

int entry_size(const mlx5dv_cq_init_attr* vendor) {
  if (!vendor || !(vendor->comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE)) return environment::cqe_size();
  return vendor->cqe_size == 64 || vendor->cqe_size == 128 ? vendor->cqe_size : -EINVAL;
}

// Compression and padding, as far as the device has them.
int vendor_request(const Context* context, const mlx5dv_cq_init_attr& vendor, int size, mlx5_ib_create_cq* request) {
  if (vendor.comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE) {
    const auto& caps = context->vendor.cqe_comp_caps;
    if (!caps.max_num || !(vendor.cqe_comp_res_format & caps.supported_format)) return EINVAL;
    request->cqe_comp_en = 1;
    request->cqe_comp_res_format = vendor.cqe_comp_res_format;
  }
  if (vendor.comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_FLAGS) {
    if (vendor.flags & ~static_cast<std::uint32_t>(MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD)) return EINVAL;
    if (vendor.flags & MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD) {
      if (!(context->vendor.flags & MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD) || size != 128) return EINVAL;
      request->flags |= MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD;
    }
  }
  return 0;
}

void set_ring(Cq* cq, char* data, std::uint32_t entries, int size) {
  cq->buf = data;
  cq->mask = entries - 1;
  cq->count_bit = entries;
  cq->shift = size == 64 ? 6 : 7;
  cq->cqe_offset = static_cast<std::uint32_t>(size) - 64;
}

// A new ring holds nothing: opcode "invalid" whatever the lap.
bool allocate_ring(Context* context, ibv_pd* domain, std::uint32_t entries, int size, Buffer* out) {
  const std::size_t bytes = std::size_t{entries} * static_cast<unsigned>(size);
  const BufferRequest request{(bytes + 4095) & ~std::size_t{4095}, 4096, MLX5DV_RES_TYPE_CQ, "CQ",
                              environment::huge("HUGE_CQ")};
  if (!allocate(context, domain, request, out)) return false;
  if (out->source == BufferSource::custom) std::memset(out->data, 0, bytes);
  for (std::size_t at = static_cast<unsigned>(size) - 1; at < bytes; at += static_cast<unsigned>(size))
    out->data[at] = static_cast<char>(kOpcodeInvalid);
  return true;
}

void discard(Context* context, Cq* cq) {
  release(context, &cq->db);
  release(context, &cq->buffer);
  delete cq;
}

int create_in_kernel(Context* context, Cq* cq, const ibv_cq_init_attr_ex& attr, const mlx5dv_cq_init_attr* vendor,
                     std::uint32_t entries, int size) {
  mlx5_ib_create_cq request = {};
  mlx5_ib_create_cq_resp response = {};
  request.buf_addr = reinterpret_cast<std::uintptr_t>(cq->buffer.data);
  request.db_addr = reinterpret_cast<std::uintptr_t>(cq->db.words);
  request.cqe_size = static_cast<__u32>(size);
  if (vendor)
    if (int error = vendor_request(context, *vendor, size, &request)) return error;
  if (context->real_time_ts && !(attr.wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) &&
      (attr.wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK))
    request.flags |= MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS;
  if (context->nc_uar) {
    request.flags |= MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX;
    request.uar_page_index = static_cast<__u16>(context->nc_uar->page_id);
  }
  ibv_cq_init_attr_ex core = attr;
  core.cqe = entries - 1;
  const verbs::Udata udata{&request, sizeof request, &response, sizeof response};
  if (int error = verbena_cmd_create_cq(context->ibv(), &core, &cq->verbs, &udata)) return error;
  cq->cqn = response.cqn;
  return 0;
}

}  // namespace

Cq* create_cq(Context* context, const ibv_cq_init_attr_ex& attr, bool extended, const mlx5dv_cq_init_attr* vendor) {
  if (int error = check(attr, vendor)) return fail_null(error);
  const std::uint64_t entries = std::bit_ceil(std::uint64_t{attr.cqe} + 1);
  if (entries > kMostEntries) return fail_null(EINVAL);
  const int size = entry_size(vendor);
  if (size < 0) return fail_null(-size);

  auto* cq = new (std::nothrow) Cq();
  if (!cq) return fail_null(ENOMEM);
  const bool alone =
      (attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) && (attr.flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
  if (attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) cq->parent_domain = attr.parent_domain;
  cq->lock.set_shared(!alone && !single_threaded(context, nullptr));
  cq->extended = extended;
  cq->pending = context->pending;
  cq->qps = context->qps.slots();
  int error = extended ? fill_cq_ex(context, cq, attr.wc_flags) : 0;
  if (!error && !(allocate_ring(context, cq->parent_domain, static_cast<std::uint32_t>(entries), size, &cq->buffer) &&
                  allocate(context, cq->parent_domain, &cq->db)))
    error = errno ? errno : ENOMEM;
  if (!error) {
    set_ring(cq, cq->buffer.data, static_cast<std::uint32_t>(entries), size);
    cq->dbrec = cq->db.words;
    error = create_in_kernel(context, cq, attr, vendor, static_cast<std::uint32_t>(entries), size);
  }
  if (error) {
    discard(context, cq);
    return fail_null(error);
  }
  if (cq->parent_domain) pd_of(cq->parent_domain)->users.fetch_add(1);
  const uverbs::Backend* backend = context->backend;
  if (backend->cq_token && backend->arm_cq) {
    cq->arm_token = backend->cq_token(context->ibv()->cmd_fd, cq->cqn);
    if (cq->arm_token) cq->arm = backend->arm_cq;
  }
  return cq;
}

ibv_cq* create_cq(ibv_context* ibv, int cqe, ibv_comp_channel* channel, int vector) {
  if (cqe <= 0) return fail_null(EINVAL);
  ibv_cq_init_attr_ex attr = {};
  attr.cqe = static_cast<std::uint32_t>(cqe);
  attr.channel = channel;
  attr.comp_vector = static_cast<std::uint32_t>(vector);
  attr.wc_flags = IBV_WC_STANDARD_FLAGS;
  Cq* cq = create_cq(context_of(ibv), attr, false, nullptr);
  return cq ? &cq->verbs.cq : nullptr;
}

ibv_cq_ex* create_cq_ex(ibv_context* ibv, ibv_cq_init_attr_ex* attr) {
  Cq* cq = create_cq(context_of(ibv), *attr, true, nullptr);
  return cq ? &cq->verbs.cq_ex : nullptr;
}

int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attr) { return verbena_cmd_modify_cq(cq, attr); }

int destroy_cq(ibv_cq* ibcq) {
  Cq* cq = cq_of(ibcq);
  Context* context = context_of(ibcq->context);
  if (int error = verbena_cmd_destroy_cq(ibcq)) return error;
  if (cq->parent_domain) pd_of(cq->parent_domain)->users.fetch_sub(1);
  discard(context, cq);
  return 0;
}

// The arm word: sequence number of the events taken so far, kind of event, consumer index.
int req_notify_cq(ibv_cq* ibcq, int solicited_only) {
  Cq* cq = cq_of(ibcq);
  const std::uint32_t word =
      (cq->arm_sn & 3) << 28 | (solicited_only ? MLX5_CQ_DB_REQ_NOT_SOL : MLX5_CQ_DB_REQ_NOT) | (cq->ci & 0xffffff);
  __atomic_store_n(&cq->dbrec[1], be(word), __ATOMIC_SEQ_CST);
  if (cq->arm) {
    cq->arm(cq->arm_token);
    return 0;
  }
  const Context* context = context_of(ibcq->context);
  if (context->cq_uar) {
    __builtin_ia32_sfence();
    const std::uint64_t doorbell = be((std::uint64_t{word} << 32) | cq->cqn);
    *reinterpret_cast<volatile std::uint64_t*>(static_cast<char*>(context->cq_uar) + MLX5_CQ_DOORBELL) = doorbell;
    __builtin_ia32_sfence();
  }
  return 0;
}

void cq_event(ibv_cq* ibcq) { ++cq_of(ibcq)->arm_sn; }

namespace {

// Copies what was not yet consumed, up to the RESIZE CQE that the device wrote last into the old ring. In the new
// ring those sit just behind where the device goes on. False: no such CQE.
bool move_cqes(Cq* cq, char* to, std::uint32_t entries) {
  const std::uint32_t first = cq->ci;
  const std::size_t size = std::size_t{1} << cq->shift;
  for (std::uint32_t i = first; i - first <= cq->mask; ++i) {
    mlx5_cqe64* from = cqe_at(cq, i);
    if (!owned_by_software(cq, from, i)) return false;
    if (from->op_own >> 4 == MLX5_CQE_RESIZE_CQ) {
      cq->ci = first + 1;
      return true;
    }
    char* entry = to + (std::size_t{(i + 1) & (entries - 1)} << cq->shift);
    std::memcpy(entry, reinterpret_cast<char*>(from) - cq->cqe_offset, size);
    mlx5dv_set_cqe_owner(reinterpret_cast<mlx5_cqe64*>(entry + cq->cqe_offset), ((i + 1) & entries) != 0);
  }
  return false;
}

}  // namespace

int resize_cq(ibv_cq* ibcq, int cqe) {
  if (cqe < 0 || static_cast<std::uint64_t>(cqe) + 1 > kMostEntries) return fail(EINVAL);
  Cq* cq = cq_of(ibcq);
  Context* context = context_of(ibcq->context);
  const std::uint32_t entries = std::bit_ceil(static_cast<std::uint32_t>(cqe) + 1);
  const int size = 1 << cq->shift;
  LockGuard guard(cq->lock);
  if (entries == cq->count_bit) return 0;
  Buffer fresh;
  if (!allocate_ring(context, cq->parent_domain, entries, size, &fresh)) return fail(ENOMEM);
  mlx5_ib_resize_cq request = {};
  request.buf_addr = reinterpret_cast<std::uintptr_t>(fresh.data);
  request.cqe_size = static_cast<__u16>(size);
  const verbs::Udata udata{.in = &request, .in_length = sizeof request};
  if (int error = verbena_cmd_resize_cq(ibcq, static_cast<int>(entries) - 1, &udata)) {
    release(context, &fresh);
    return error;
  }
  const bool moved = move_cqes(cq, fresh.data, entries);
  release(context, &cq->buffer);
  cq->buffer = fresh;
  set_ring(cq, fresh.data, entries, size);
  ibcq->cqe = static_cast<int>(entries) - 1;
  if (moved) update_ci(cq);
  return 0;
}

}  // namespace verbena::mlx5
