// GID and P_Key tables. The kernel's native queries first, the device's sysfs files where it has none.
#include <endian.h>
#include <net/if.h>

#include <cstdio>
#include <cstring>

#include "verbs/cmd/request.h"
#include "verbs/internal.h"

#undef ibv_query_port

namespace verbena::verbs {

// What sysfs can tell: RoCE v2 or not.
enum class SysfsGidType { ib_roce_v1, roce_v2 };

namespace {

bool is_zero(const ibv_gid& gid) { return gid.global.subnet_prefix == 0 && gid.global.interface_id == 0; }

int gid_from_sysfs(const Device& device, std::uint32_t port, std::uint32_t index, ibv_gid* gid) {
  char text[64];
  if (device_attribute(device, text, sizeof text, "ports/%u/gids/%u", port, index) < 0) return EINVAL;
  unsigned words[8];
  if (std::sscanf(text, "%4x:%4x:%4x:%4x:%4x:%4x:%4x:%4x", &words[0], &words[1], &words[2], &words[3], &words[4],
                  &words[5], &words[6], &words[7]) != 8)
    return EINVAL;
  for (int i = 0; i < 8; ++i) {
    gid->raw[2 * i] = static_cast<std::uint8_t>(words[i] >> 8);
    gid->raw[2 * i + 1] = static_cast<std::uint8_t>(words[i]);
  }
  return 0;
}

int type_from_sysfs(ibv_context* context, std::uint32_t port, std::uint32_t index, std::uint32_t* type) {
  char text[32];
  const Device& device = *device_of(context->device);
  int length = device_attribute(device, text, sizeof text, "ports/%u/gid_attrs/types/%u", port, index);
  if (length > 0 && std::strcmp(text, "RoCE v2") == 0) {
    *type = IBV_GID_TYPE_ROCE_V2;
    return 0;
  }
  if (length > 0 && std::strcmp(text, "IB/RoCE v1") != 0) return EINVAL;
  // An InfiniBand port answers EINVAL here, and an old kernel has no such file: both mean the first type.
  if (length <= 0 && errno != EINVAL && errno != ENOENT) return EINVAL;
  ibv_port_attr attr{};
  if (int error = ops(context).query_port(context, static_cast<std::uint8_t>(port), &attr)) return error;
  *type = attr.link_layer == IBV_LINK_LAYER_ETHERNET ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_IB;
  return 0;
}

int netdev_from_sysfs(const Device& device, std::uint32_t port, std::uint32_t index, std::uint32_t* ifindex) {
  char name[IF_NAMESIZE];
  *ifindex = 0;
  if (device_attribute(device, name, sizeof name, "ports/%u/gid_attrs/ndevs/%u", port, index) <= 0) return 0;
  *ifindex = if_nametoindex(name);
  return *ifindex ? 0 : errno;
}

int entry_from_sysfs(ibv_context* context, std::uint32_t port, std::uint32_t index, unsigned parts,
                     ibv_gid_entry* entry) {
  const Device& device = *device_of(context->device);
  entry->gid_index = index;
  entry->port_num = port;
  int error = 0;
  if (parts & kGidValue) {
    error = gid_from_sysfs(device, port, index, &entry->gid);
    if (error || is_zero(entry->gid)) return error;  // an empty entry has no attributes
  }
  if (parts & kGidType) error = type_from_sysfs(context, port, index, &entry->gid_type);
  if (!error && (parts & kGidNetdev)) error = netdev_from_sysfs(device, port, index, &entry->ndev_ifindex);
  return error;
}

// All non-empty entries of all ports; the count, or a negative errno.
ssize_t table_from_sysfs(ibv_context* context, ibv_gid_entry* entries, std::size_t max, std::size_t entry_size) {
  ibv_device_attr device{};
  if (int error = ibv_query_device(context, &device)) return -error;
  std::size_t count = 0;
  for (std::uint32_t port = 1; port <= device.phys_port_cnt; ++port) {
    ibv_port_attr attr{};
    if (int error = ops(context).query_port(context, static_cast<std::uint8_t>(port), &attr)) return -error;
    for (int index = 0; index < attr.gid_tbl_len; ++index) {
      ibv_gid_entry entry{};
      if (int error = entry_from_sysfs(context, port, static_cast<std::uint32_t>(index), kGidAll, &entry))
        return -error;
      if (is_zero(entry.gid)) continue;
      if (count == max) return -EINVAL;
      auto* to = reinterpret_cast<std::byte*>(entries) + count++ * entry_size;
      std::memcpy(to, &entry, entry_size < sizeof entry ? entry_size : sizeof entry);
    }
  }
  return static_cast<ssize_t>(count);
}

}  // namespace

int query_gid_entry(ibv_context* context, std::uint32_t port, std::uint32_t index, ibv_gid_entry* entry,
                    std::uint32_t flags, std::size_t entry_size, unsigned fallback_parts) {
  uverbs::Bundle bundle(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY);
  bundle.in_const(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, port);
  bundle.in_const(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, index);
  bundle.in_u32(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, flags);
  bundle.out(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, entry, entry_size);
  int error = 0;
  if (try_native(*context_of(context), Native::query_gid, bundle, &error) != Outcome::legacy) return error;
  if (flags) return report(EOPNOTSUPP);
  if ((error = entry_from_sysfs(context, port, index, fallback_parts, entry))) return report(error);
  if ((fallback_parts & kGidValue) && is_zero(entry->gid)) return report(ENODATA);
  return 0;
}

}  // namespace verbena::verbs

using namespace verbena::verbs;

extern "C" {

int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port, std::uint32_t index, ibv_gid_entry* entry,
                      std::uint32_t flags, std::size_t entry_size) {
  return query_gid_entry(context, port, index, entry, flags, entry_size, kGidAll);
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t max, std::uint32_t flags,
                             std::size_t entry_size) {
  std::uint64_t count = 0;
  verbena_bundle bundle(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE);
  bundle.in_const(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, entry_size);
  bundle.in_u32(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, flags);
  bundle.out(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, entries, verbena_bundle::array_bytes(entry_size, max));
  bundle.out_struct(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, count);
  int error = 0;
  switch (try_native(*context_of(context), Native::query_gid, bundle, &error)) {
    case Outcome::done:
      return static_cast<ssize_t>(count);
    case Outcome::failed:
      return -error;
    case Outcome::legacy:
      break;
  }
  if (flags) return -EOPNOTSUPP;
  return table_from_sysfs(context, entries, max, entry_size);
}

int ibv_query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) {
  ibv_gid_entry entry{};
  int error = query_gid_entry(context, port, static_cast<std::uint32_t>(index), &entry, 0, sizeof entry, kGidValue);
  // An empty entry is no error in this interface.
  if (error && error != ENODATA) return -1;
  *gid = error ? ibv_gid{} : entry.gid;
  return 0;
}

// At the private node, for the programs that come with rdma-core.
int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index, SysfsGidType* type) {
  ibv_gid_entry entry{};
  int error = query_gid_entry(context, port, index, &entry, 0, sizeof entry, kGidType);
  if (error && error != ENODATA) return -1;
  *type = !error && entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? SysfsGidType::roce_v2 : SysfsGidType::ib_roce_v1;
  return 0;
}

int ibv_query_pkey(ibv_context* context, std::uint8_t port, int index, __be16* pkey) {
  char text[16];
  unsigned value = 0;
  if (device_attribute(*device_of(context->device), text, sizeof text, "ports/%u/pkeys/%d", port, index) < 0) return -1;
  if (std::sscanf(text, "%x", &value) != 1) return -1;
  *pkey = htobe16(static_cast<std::uint16_t>(value));
  return 0;
}

int ibv_get_pkey_index(ibv_context* context, std::uint8_t port, __be16 pkey) {
  for (int index = 0;; ++index) {
    __be16 entry;
    if (int error = ibv_query_pkey(context, port, index, &entry)) return error;  // past the end of the table
    if (entry == pkey) return index;
  }
}

}  // extern "C"
