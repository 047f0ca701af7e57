// Steering rules, flow actions and counters.
//
// A steering rule travels as ib_uverbs_create_flow and a packed list of kernel specifications. Most verbs
// specifications hold exactly the kernel's filter, so they are copied; those that programs may have compiled with a
// longer filter are shortened, provided that what is cut off matches nothing.
#include <algorithm>
#include <cstring>
#include <vector>

#include "support/c_enum.h"
#include "verbs/cmd/request.h"

namespace verbena::verbs {
namespace {

struct SpecHeader {  // of ibv_flow_spec_*
  std::uint32_t type;
  std::uint16_t size;
};
constexpr std::size_t kVerbsHeader = 8;   // SpecHeader with padding where the filter is 4-aligned
constexpr std::size_t kKernelHeader = 8;  // ib_uverbs_flow_spec_hdr

// How one type of specification is translated.
struct Rule {
  std::uint32_t type;  // verbs
  std::uint32_t kernel_type;
  std::size_t val_offset;   // of the filter in the verbs structure
  std::size_t filter;       // bytes of one kernel filter
  std::size_t kernel_size;  // of the whole kernel specification
  bool extensible;          // the program's filter may be longer than the kernel's
};

#define VERBENA_FILTER(verbs, member) offsetof(verbs, member), sizeof(verbs::member)
constexpr Rule kRules[] = {
    {IBV_FLOW_SPEC_ETH, IBV_FLOW_SPEC_ETH, VERBENA_FILTER(ibv_flow_spec_eth, val), sizeof(ib_uverbs_flow_spec_eth),
     false},
    {IBV_FLOW_SPEC_IPV4, IBV_FLOW_SPEC_IPV4, VERBENA_FILTER(ibv_flow_spec_ipv4, val),
     kKernelHeader + 2 * sizeof(ibv_flow_ipv4_filter), false},
    {IBV_FLOW_SPEC_IPV4_EXT, IBV_FLOW_SPEC_IPV4, offsetof(ibv_flow_spec_ipv4_ext, val),
     sizeof(ib_uverbs_flow_ipv4_filter), sizeof(ib_uverbs_flow_spec_ipv4), true},
    {IBV_FLOW_SPEC_IPV6, IBV_FLOW_SPEC_IPV6, offsetof(ibv_flow_spec_ipv6, val), sizeof(ib_uverbs_flow_ipv6_filter),
     sizeof(ib_uverbs_flow_spec_ipv6), true},
    {IBV_FLOW_SPEC_ESP, IBV_FLOW_SPEC_ESP, offsetof(ibv_flow_spec_esp, val), sizeof(ib_uverbs_flow_spec_esp_filter),
     sizeof(ib_uverbs_flow_spec_esp), false},
    {IBV_FLOW_SPEC_TCP, IBV_FLOW_SPEC_TCP, VERBENA_FILTER(ibv_flow_spec_tcp_udp, val),
     sizeof(ib_uverbs_flow_spec_tcp_udp), false},
    {IBV_FLOW_SPEC_UDP, IBV_FLOW_SPEC_UDP, VERBENA_FILTER(ibv_flow_spec_tcp_udp, val),
     sizeof(ib_uverbs_flow_spec_tcp_udp), false},
    {IBV_FLOW_SPEC_GRE, IBV_FLOW_SPEC_GRE, VERBENA_FILTER(ibv_flow_spec_gre, val), sizeof(ib_uverbs_flow_spec_gre),
     false},
    {IBV_FLOW_SPEC_MPLS, IBV_FLOW_SPEC_MPLS, VERBENA_FILTER(ibv_flow_spec_mpls, val), sizeof(ib_uverbs_flow_spec_mpls),
     false},
    {IBV_FLOW_SPEC_VXLAN_TUNNEL, IBV_FLOW_SPEC_VXLAN_TUNNEL, offsetof(ibv_flow_spec_tunnel, val),
     sizeof(ib_uverbs_flow_tunnel_filter), sizeof(ib_uverbs_flow_spec_tunnel), true},
};
#undef VERBENA_FILTER

class SpecWriter {
 public:
  // Appends the kernel form of `spec`; 0 or an errno.
  int add(const std::byte* spec, std::size_t size) {
    SpecHeader header;
    std::memcpy(&header, spec, sizeof header);
    std::uint32_t inner = header.type & IBV_FLOW_SPEC_INNER;
    std::uint32_t type = header.type & ~static_cast<std::uint32_t>(IBV_FLOW_SPEC_INNER);
    for (const Rule& rule : kRules)
      if (rule.type == type) return add_filter(rule, inner, spec, size);
    return inner ? EINVAL : add_action(type, spec, size);
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  int add_filter(const Rule& rule, std::uint32_t inner, const std::byte* spec, std::size_t size) {
    if (size < rule.val_offset) return EINVAL;
    // The mask lies behind the value, wherever the program's filter ends.
    std::size_t own = rule.extensible ? (size - rule.val_offset) / 2 : rule.filter;
    if (own < rule.filter || size < rule.val_offset + own + rule.filter) return EINVAL;
    const std::byte* val = spec + rule.val_offset;
    const std::byte* mask = val + own;
    auto matters = [](std::byte b) { return b != std::byte{0}; };
    if (std::any_of(mask + rule.filter, mask + own, matters)) return EOPNOTSUPP;
    std::byte* to = begin(rule.kernel_type | inner, rule.kernel_size);
    std::memcpy(to, val, rule.filter);
    std::memcpy(to + (rule.kernel_size - kKernelHeader) / 2, mask, rule.filter);
    return 0;
  }

  int add_action(std::uint32_t type, const std::byte* spec, std::size_t size) {
    std::uint32_t argument = 0;
    switch (type) {
      case IBV_FLOW_SPEC_ACTION_DROP:
        begin(type, sizeof(ib_uverbs_flow_spec_action_drop));
        return 0;
      case IBV_FLOW_SPEC_ACTION_TAG:
        if (size < sizeof(ibv_flow_spec_action_tag)) return EINVAL;
        std::memcpy(&argument, spec + offsetof(ibv_flow_spec_action_tag, tag_id), sizeof argument);
        break;
      case IBV_FLOW_SPEC_ACTION_HANDLE: {
        if (size < sizeof(ibv_flow_spec_action_handle)) return EINVAL;
        const FlowAction* action = nullptr;
        std::memcpy(&action, spec + offsetof(ibv_flow_spec_action_handle, action), sizeof action);
        argument = action->handle;
        break;
      }
      case IBV_FLOW_SPEC_ACTION_COUNT: {
        if (size < sizeof(ibv_flow_spec_counter_action)) return EINVAL;
        const Counters* counters = nullptr;
        std::memcpy(&counters, spec + offsetof(ibv_flow_spec_counter_action, counters), sizeof counters);
        argument = counters->handle;
        break;
      }
      default:
        return EINVAL;
    }
    static_assert(sizeof(ib_uverbs_flow_spec_action_tag) == sizeof(ib_uverbs_flow_spec_action_handle) &&
                  sizeof(ib_uverbs_flow_spec_action_tag) == sizeof(ib_uverbs_flow_spec_action_count));
    std::memcpy(begin(type, sizeof(ib_uverbs_flow_spec_action_tag)), &argument, sizeof argument);
    return 0;
  }

  // Starts a kernel specification; returns where its body goes.
  std::byte* begin(std::uint32_t type, std::size_t size) {
    std::size_t start = bytes_.size();
    bytes_.resize(start + size);
    ib_uverbs_flow_spec_hdr header{};
    header.type = type;
    header.size = static_cast<std::uint16_t>(size);
    std::memcpy(bytes_.data() + start, &header, kKernelHeader);
    return bytes_.data() + start + kKernelHeader;
  }

  std::vector<std::byte> bytes_;
};

int translate(const ibv_flow_attr& attr, SpecWriter* writer) {
  // `size` covers the attribute and its specifications; older programs leave it out, so each one's size is trusted.
  const auto* spec = reinterpret_cast<const std::byte*>(&attr + 1);
  for (unsigned i = 0; i < attr.num_of_specs; ++i) {
    SpecHeader header;
    std::memcpy(&header, spec, sizeof header);
    if (header.size < kVerbsHeader) return EINVAL;
    if (int error = writer->add(spec, header.size)) return error;
    spec += header.size;
  }
  return 0;
}

int execute_action(Context& context, verbena_bundle& bundle, const ibv_flow_action_esp_attr& esp,
                   verbena_bundle* driver) {
  if (esp.comp_mask & IBV_FLOW_ACTION_ESP_MASK_ESN) bundle.in_struct(UVERBS_ATTR_FLOW_ACTION_ESP_ESN, esp.esn);
  if (esp.keymat_ptr)
    bundle.in_enum(UVERBS_ATTR_FLOW_ACTION_ESP_KEYMAT, static_cast<std::uint8_t>(esp.keymat_proto), esp.keymat_ptr,
                   esp.keymat_len);
  if (esp.replay_ptr)
    bundle.in_enum(UVERBS_ATTR_FLOW_ACTION_ESP_REPLAY, static_cast<std::uint8_t>(esp.replay_proto), esp.replay_ptr,
                   esp.replay_len);
  if (esp.esp_encap) bundle.in(UVERBS_ATTR_FLOW_ACTION_ESP_ENCAP, esp.esp_encap, sizeof *esp.esp_encap);
  if (esp.esp_attr) bundle.in(UVERBS_ATTR_FLOW_ACTION_ESP_ATTRS, esp.esp_attr, sizeof *esp.esp_attr);
  return execute_with(context, bundle, driver);
}

}  // namespace
}  // namespace verbena::verbs

using namespace verbena::verbs;

int verbena_cmd_create_flow(ibv_qp* qp, ibv_flow* flow, const ibv_flow_attr* attr, const void* driver_data,
                            std::size_t driver_length) {
  SpecWriter specs;
  if (int error = translate(*attr, &specs)) return report(error);
  ib_uverbs_create_flow head{};
  head.qp_handle = qp->handle;
  head.flow_attr.type = verbena::number_of(attr->type);
  head.flow_attr.size = static_cast<std::uint16_t>(specs.bytes().size());
  head.flow_attr.priority = attr->priority;
  head.flow_attr.num_of_specs = attr->num_of_specs;
  head.flow_attr.port = attr->port;
  head.flow_attr.flags = attr->flags;
  std::vector<std::byte> request(sizeof head + specs.bytes().size());
  std::memcpy(request.data(), &head, sizeof head);
  if (!specs.bytes().empty()) std::memcpy(request.data() + sizeof head, specs.bytes().data(), specs.bytes().size());

  Udata udata{.in = driver_data, .in_length = driver_length};
  ib_uverbs_create_flow_resp response{};
  int error = verbena_write(context_of(qp->context), extended(IB_USER_VERBS_EX_CMD_CREATE_FLOW), request.data(),
                            request.size(), &response, sizeof response, &udata);
  if (error) return error;
  flow->comp_mask = 0;
  flow->context = qp->context;
  flow->handle = response.flow_handle;
  return 0;
}

int verbena_cmd_destroy_flow(ibv_flow* flow) {
  return destroy_by_handle(*context_of(flow->context), Native::destroy_flow, UVERBS_OBJECT_FLOW,
                           UVERBS_METHOD_FLOW_DESTROY, UVERBS_ATTR_DESTROY_FLOW_HANDLE, flow->handle,
                           extended(IB_USER_VERBS_EX_CMD_DESTROY_FLOW),
                           ib_uverbs_destroy_flow{.comp_mask = 0, .flow_handle = flow->handle});
}

int verbena_cmd_create_flow_action_esp(ibv_context* context, ibv_flow_action_esp_attr* attr, FlowAction* action,
                                       verbena_bundle* driver) {
  verbena_bundle bundle(UVERBS_OBJECT_FLOW_ACTION, UVERBS_METHOD_FLOW_ACTION_ESP_CREATE);
  auto handle = bundle.out_object(UVERBS_ATTR_CREATE_FLOW_ACTION_ESP_HANDLE);
  if (int error = execute_action(*context_of(context), bundle, *attr, driver)) return error;
  action->action.context = context;
  action->handle = bundle.object(handle);
  return 0;
}

int verbena_cmd_modify_flow_action_esp(FlowAction* action, ibv_flow_action_esp_attr* attr, verbena_bundle* driver) {
  verbena_bundle bundle(UVERBS_OBJECT_FLOW_ACTION, UVERBS_METHOD_FLOW_ACTION_ESP_MODIFY);
  bundle.in_object(UVERBS_ATTR_MODIFY_FLOW_ACTION_ESP_HANDLE, action->handle);
  return execute_action(*context_of(action->action.context), bundle, *attr, driver);
}

int verbena_cmd_destroy_flow_action(FlowAction* action) {
  verbena_bundle bundle(UVERBS_OBJECT_FLOW_ACTION, UVERBS_METHOD_FLOW_ACTION_DESTROY);
  bundle.in_object(UVERBS_ATTR_DESTROY_FLOW_ACTION_HANDLE, action->handle);
  int error = verbena_execute(context_of(action->action.context), &bundle);
  return treat_as_destroyed(error) ? 0 : error;
}

// ---- counters ----

int verbena_cmd_create_counters(ibv_context* context, const ibv_counters_init_attr* attr, Counters* counters,
                                verbena_bundle* driver) {
  if (attr->comp_mask) return report(EOPNOTSUPP);
  verbena_bundle bundle(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE);
  auto handle = bundle.out_object(UVERBS_ATTR_CREATE_COUNTERS_HANDLE);
  if (int error = execute_with(*context_of(context), bundle, driver)) return error;
  counters->counters.context = context;
  counters->handle = bundle.object(handle);
  return 0;
}

int verbena_cmd_destroy_counters(Counters* counters) {
  verbena_bundle bundle(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_DESTROY);
  bundle.in_object(UVERBS_ATTR_DESTROY_COUNTERS_HANDLE, counters->handle);
  int error = verbena_execute(context_of(counters->counters.context), &bundle);
  return treat_as_destroyed(error) ? 0 : error;
}

int verbena_cmd_read_counters(Counters* counters, std::uint64_t* values, std::uint32_t count, std::uint32_t flags,
                              verbena_bundle* driver) {
  verbena_bundle bundle(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_READ);
  bundle.in_object(UVERBS_ATTR_READ_COUNTERS_HANDLE, counters->handle);
  bundle.out(UVERBS_ATTR_READ_COUNTERS_BUFF, values, verbena_bundle::array_bytes(sizeof *values, count));
  bundle.in_u32(UVERBS_ATTR_READ_COUNTERS_FLAGS, flags);
  return execute_with(*context_of(counters->counters.context), bundle, driver);
}
