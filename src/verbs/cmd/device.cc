// Device and port requests.
#include <cstdio>
#include <cstring>

#include "uverbs/newer.h"
#include "verbs/cmd/request.h"
#include "verbs/newer.h"

namespace verbena::verbs {
namespace {

void copy_port(const ib_uverbs_query_port_resp& from, ibv_port_attr* to) {
  to->state = static_cast<ibv_port_state>(from.state);
  to->max_mtu = static_cast<ibv_mtu>(from.max_mtu);
  to->active_mtu = static_cast<ibv_mtu>(from.active_mtu);
  to->gid_tbl_len = static_cast<int>(from.gid_tbl_len);
  to->port_cap_flags = from.port_cap_flags;
  to->max_msg_sz = from.max_msg_sz;
  to->bad_pkey_cntr = from.bad_pkey_cntr;
  to->qkey_viol_cntr = from.qkey_viol_cntr;
  to->pkey_tbl_len = from.pkey_tbl_len;
  to->lid = from.lid;
  to->sm_lid = from.sm_lid;
  to->lmc = from.lmc;
  to->max_vl_num = from.max_vl_num;
  to->sm_sl = from.sm_sl;
  to->subnet_timeout = from.subnet_timeout;
  to->init_type_reply = from.init_type_reply;
  to->active_width = from.active_width;
  to->active_speed = from.active_speed;
  to->phys_state = from.phys_state;
  to->link_layer = from.link_layer;
  to->flags = from.flags;
}

void copy_device(const ib_uverbs_query_device_resp& from, ibv_device_attr* to) {
  // fw_ver is 16 bits each of major, minor and sub-minor for every ConnectX.
  std::snprintf(to->fw_ver, sizeof to->fw_ver, "%u.%u.%04u", static_cast<unsigned>(from.fw_ver >> 32 & 0xffff),
                static_cast<unsigned>(from.fw_ver >> 16 & 0xffff), static_cast<unsigned>(from.fw_ver & 0xffff));
  to->node_guid = from.node_guid;
  to->sys_image_guid = from.sys_image_guid;
  to->max_mr_size = from.max_mr_size;
  to->page_size_cap = from.page_size_cap;
  to->vendor_id = from.vendor_id;
  to->vendor_part_id = from.vendor_part_id;
  to->hw_ver = from.hw_ver;
  to->max_qp = static_cast<int>(from.max_qp);
  to->max_qp_wr = static_cast<int>(from.max_qp_wr);
  to->device_cap_flags = from.device_cap_flags;
  to->max_sge = static_cast<int>(from.max_sge);
  to->max_sge_rd = static_cast<int>(from.max_sge_rd);
  to->max_cq = static_cast<int>(from.max_cq);
  to->max_cqe = static_cast<int>(from.max_cqe);
  to->max_mr = static_cast<int>(from.max_mr);
  to->max_pd = static_cast<int>(from.max_pd);
  to->max_qp_rd_atom = static_cast<int>(from.max_qp_rd_atom);
  to->max_ee_rd_atom = static_cast<int>(from.max_ee_rd_atom);
  to->max_res_rd_atom = static_cast<int>(from.max_res_rd_atom);
  to->max_qp_init_rd_atom = static_cast<int>(from.max_qp_init_rd_atom);
  to->max_ee_init_rd_atom = static_cast<int>(from.max_ee_init_rd_atom);
  to->atomic_cap = static_cast<ibv_atomic_cap>(from.atomic_cap);
  to->max_ee = static_cast<int>(from.max_ee);
  to->max_rdd = static_cast<int>(from.max_rdd);
  to->max_mw = static_cast<int>(from.max_mw);
  to->max_raw_ipv6_qp = static_cast<int>(from.max_raw_ipv6_qp);
  to->max_raw_ethy_qp = static_cast<int>(from.max_raw_ethy_qp);
  to->max_mcast_grp = static_cast<int>(from.max_mcast_grp);
  to->max_mcast_qp_attach = static_cast<int>(from.max_mcast_qp_attach);
  to->max_total_mcast_qp_attach = static_cast<int>(from.max_total_mcast_qp_attach);
  to->max_ah = static_cast<int>(from.max_ah);
  to->max_fmr = static_cast<int>(from.max_fmr);
  to->max_map_per_fmr = static_cast<int>(from.max_map_per_fmr);
  to->max_srq = static_cast<int>(from.max_srq);
  to->max_srq_wr = static_cast<int>(from.max_srq_wr);
  to->max_srq_sge = static_cast<int>(from.max_srq_sge);
  to->max_pkeys = from.max_pkeys;
  to->local_ca_ack_delay = from.local_ca_ack_delay;
  to->phys_port_cnt = from.phys_port_cnt;
}

// Copies the extended members that both the kernel's answer and the program's structure have.
class ExtendedCopy {
 public:
  ExtendedCopy(const ib_uverbs_ex_query_device_resp& from, ibv_device_attr_ex* to, std::size_t to_size)
      : from_(from), to_(to), to_size_(to_size) {}

  void run() {
    copy(&ib_uverbs_ex_query_device_resp::odp_caps, &ibv_device_attr_ex::odp_caps, [](const auto& f, auto& t) {
      t.general_caps = f.general_caps;
      t.per_transport_caps.rc_odp_caps = f.per_transport_caps.rc_odp_caps;
      t.per_transport_caps.uc_odp_caps = f.per_transport_caps.uc_odp_caps;
      t.per_transport_caps.ud_odp_caps = f.per_transport_caps.ud_odp_caps;
    });
    copy(&ib_uverbs_ex_query_device_resp::timestamp_mask, &ibv_device_attr_ex::completion_timestamp_mask);
    copy(&ib_uverbs_ex_query_device_resp::hca_core_clock, &ibv_device_attr_ex::hca_core_clock);
    copy(&ib_uverbs_ex_query_device_resp::device_cap_flags_ex, &ibv_device_attr_ex::device_cap_flags_ex);
    copy(&ib_uverbs_ex_query_device_resp::rss_caps, &ibv_device_attr_ex::rss_caps, [](const auto& f, auto& t) {
      t.supported_qpts = f.supported_qpts;
      t.max_rwq_indirection_tables = f.max_rwq_indirection_tables;
      t.max_rwq_indirection_table_size = f.max_rwq_indirection_table_size;
    });
    copy(&ib_uverbs_ex_query_device_resp::max_wq_type_rq, &ibv_device_attr_ex::max_wq_type_rq);
    copy(&ib_uverbs_ex_query_device_resp::raw_packet_caps, &ibv_device_attr_ex::raw_packet_caps);
    copy(&ib_uverbs_ex_query_device_resp::tm_caps, &ibv_device_attr_ex::tm_caps, [](const auto& f, auto& t) {
      t.max_rndv_hdr_size = f.max_rndv_hdr_size;
      t.max_num_tags = f.max_num_tags;
      t.flags = f.flags;
      t.max_ops = f.max_ops;
      t.max_sge = f.max_sge;
    });
    copy(&ib_uverbs_ex_query_device_resp::cq_moderation_caps, &ibv_device_attr_ex::cq_mod_caps,
         [](const auto& f, auto& t) {
           t.max_cq_count = f.max_cq_moderation_count;
           t.max_cq_period = f.max_cq_moderation_period;
         });
    copy(&ib_uverbs_ex_query_device_resp::max_dm_size, &ibv_device_attr_ex::max_dm_size);
    copy(&ib_uverbs_ex_query_device_resp::xrc_odp_caps, &ibv_device_attr_ex::xrc_odp_caps);
  }

 private:
  template <class F, class T, class Fn>
  void copy(F ib_uverbs_ex_query_device_resp::*source, T ibv_device_attr_ex::*target, Fn&& assign) {
    const F& f = from_.*source;
    T& t = to_->*target;
    auto end = [](const void* base, const auto& member) {
      return static_cast<std::size_t>(reinterpret_cast<const char*>(&member + 1) - static_cast<const char*>(base));
    };
    if (end(&from_, f) <= from_.response_length && end(to_, t) <= to_size_) assign(f, t);
  }
  template <class F, class T>
  void copy(F ib_uverbs_ex_query_device_resp::*source, T ibv_device_attr_ex::*target) {
    copy(source, target, [](const F& f, T& t) { t = static_cast<T>(f); });
  }

  const ib_uverbs_ex_query_device_resp& from_;
  ibv_device_attr_ex* to_;
  std::size_t to_size_;
};

}  // namespace

int alloc_async_fd(Context& context) {
  uverbs::Bundle bundle(UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC);
  auto fd = bundle.out_fd(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE);
  int error = verbena_execute(&context, &bundle);
  if (!error) context.verbs.context.async_fd = bundle.fd(fd);
  return error;
}

}  // namespace verbena::verbs

using namespace verbena::verbs;

int verbena_cmd_get_context(verbena_context* context, const verbena_udata* udata) {
  return verbena_cmd_get_context_with(context, udata, nullptr);
}

int verbena_cmd_get_context_with(verbena_context* context, const verbena_udata* udata, const ibv_fd_arr* fds) {
  std::uint32_t vectors = 0;
  std::uint64_t core_support = 0;
  verbena_bundle bundle(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
  bundle.out_struct(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, vectors);
  bundle.out_struct(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, core_support);
  if (fds) bundle.in(verbena::uverbs::newer::kGetContextFdArr, fds->arr, fds->count * sizeof *fds->arr);
  add_udata(bundle, udata);
  int error = 0;
  switch (try_native(*context, Native::get_context, bundle, &error)) {
    case Outcome::done:
      context->verbs.context.num_comp_vectors = static_cast<int>(vectors);
      context->device->core_support = core_support;
      return 0;
    case Outcome::failed:
      return error;
    case Outcome::legacy:
      break;
  }
  ib_uverbs_get_context request{};
  ib_uverbs_get_context_resp response{};
  error = legacy(*context, IB_USER_VERBS_CMD_GET_CONTEXT, request, response, udata);
  if (error) return error;
  context->verbs.context.async_fd = static_cast<int>(response.async_fd);
  context->verbs.context.num_comp_vectors = static_cast<int>(response.num_comp_vectors);
  return 0;
}

int verbena_cmd_query_context(verbena_context* context, verbena_bundle* driver) {
  std::uint32_t vectors = 0;
  std::uint64_t core_support = 0;
  verbena_bundle bundle(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT);
  bundle.out_struct(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, vectors);
  bundle.out_struct(UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, core_support);
  if (int error = execute_with(*context, bundle, driver)) return error;
  context->verbs.context.num_comp_vectors = static_cast<int>(vectors);
  context->device->core_support = core_support;
  return 0;
}

int verbena_cmd_query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr) {
  Context& ctx = *context_of(context);
  ib_uverbs_query_port_resp_ex response{};
  verbena_bundle bundle(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
  bundle.in_const(UVERBS_ATTR_QUERY_PORT_PORT_NUM, port);
  bundle.out_struct(UVERBS_ATTR_QUERY_PORT_RESP, response);
  int error = 0;
  switch (try_native(ctx, Native::query_port, bundle, &error)) {
    case Outcome::done:
      attr->port_cap_flags2 = response.port_cap_flags2;
      break;
    case Outcome::failed:
      return error;
    case Outcome::legacy: {
      ib_uverbs_query_port request{};
      request.port_num = port;
      error = legacy(ctx, IB_USER_VERBS_CMD_QUERY_PORT, request, response.legacy_resp);
      if (error) return error;
    }
  }
  copy_port(response.legacy_resp, attr);
  return 0;
}

int verbena_cmd_query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attr,
                                std::size_t attr_size, const verbena_udata* udata, std::size_t* filled) {
  Context& ctx = *context_of(context);
  if (input && input->comp_mask) return report(EINVAL);
  if (attr_size < sizeof attr->orig_attr) return report(EINVAL);
  std::memset(attr, 0, attr_size);
  if (filled) *filled = 0;

  ib_uverbs_ex_query_device_resp response{};
  bool extended_form = attr_size > sizeof attr->orig_attr;
  if (extended_form) {
    ib_uverbs_ex_query_device request{};
    int error = legacy(ctx, extended(IB_USER_VERBS_EX_CMD_QUERY_DEVICE), request, response, udata);
    if (error && error != EOPNOTSUPP && error != ENOSYS) return error;
    extended_form = error == 0;
    if (extended_form && filled && udata) *filled = udata->out_length;
  }
  if (!extended_form) {
    ib_uverbs_query_device request{};
    if (int error = legacy(ctx, IB_USER_VERBS_CMD_QUERY_DEVICE, request, response.base)) return error;
    response.response_length = sizeof response.base;
  }

  copy_device(response.base, &attr->orig_attr);
  if (attr_size > sizeof attr->orig_attr) {
    ExtendedCopy(response, attr, attr_size).run();
    if (attr_size >= offsetof(ibv_device_attr_ex, phys_port_cnt_ex) + sizeof attr->phys_port_cnt_ex)
      attr->phys_port_cnt_ex = attr->orig_attr.phys_port_cnt;
  }
  return 0;
}
