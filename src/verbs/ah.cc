// Address handles from received messages.
//
// A RoCE v2 UD message over IPv4 leaves its IP header in the last 20 of the 40 bytes where the GRH would be.
#include <endian.h>
#include <netinet/in.h>
#include <netinet/ip.h>

#include <cstring>

#include "verbs/internal.h"

namespace verbena::verbs {
namespace {

constexpr std::uint8_t kNextHeaderIba = 0x1b;  // BTH follows: RoCE v1
constexpr std::size_t kIpv4Offset = sizeof(ibv_grh) - sizeof(iphdr);

bool checksum_is_right(const iphdr& header) {
  std::uint16_t words[sizeof header / 2];
  std::memcpy(words, &header, sizeof header);
  std::uint32_t sum = 0;
  for (std::uint16_t word : words) sum += word;
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return sum == 0xffff;  // over a header that holds its own checksum
}

// 4 or 6; 0 if it is neither.
int ip_version(const ibv_grh& grh, const iphdr& ipv4) {
  if (be32toh(grh.version_tclass_flow) >> 28 != 6) return ipv4.version == 4 ? 4 : 0;
  // The first bytes are undefined over IPv4 and may look like version 6: only a valid header decides.
  return ipv4.version == 4 && ipv4.ihl == 5 && checksum_is_right(ipv4) ? 4 : 6;
}

ibv_gid mapped(std::uint32_t ipv4_be) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  std::memcpy(gid.raw + 12, &ipv4_be, sizeof ipv4_be);
  return gid;
}

// Index of our own GID that the message was sent to; -1 with errno.
int find_gid(ibv_context* context, std::uint8_t port, const ibv_gid& gid, bool roce_v2) {
  for (std::uint32_t index = 0;; ++index) {
    ibv_gid_entry entry{};
    int error = query_gid_entry(context, port, index, &entry, 0, sizeof entry, kGidValue | kGidType);
    if (error == ENODATA) continue;
    if (error) return -1;
    if (std::memcmp(&entry.gid, &gid, sizeof gid) == 0 && (entry.gid_type == IBV_GID_TYPE_ROCE_V2) == roce_v2)
      return static_cast<int>(index);
  }
}

int fail(int error) {
  errno = error;
  return -1;
}

int from_ipv4(ibv_context* context, std::uint8_t port, const iphdr& header, ibv_ah_attr* attr) {
  if (IN_MULTICAST(be32toh(header.daddr))) return fail(EINVAL);  // no group is in the GID table
  int index = find_gid(context, port, mapped(header.daddr), true);
  if (index < 0) return index;
  attr->grh.dgid = mapped(header.saddr);
  attr->grh.sgid_index = static_cast<std::uint8_t>(index);
  attr->grh.hop_limit = header.ttl;
  attr->grh.traffic_class = header.tos;
  return 0;
}

int from_ipv6(ibv_context* context, std::uint8_t port, const ibv_grh& grh, ibv_ah_attr* attr) {
  if (grh.dgid.raw[0] == 0xff) return fail(EINVAL);
  if (grh.next_hdr != IPPROTO_UDP && grh.next_hdr != kNextHeaderIba) return fail(EPROTONOSUPPORT);
  int index = find_gid(context, port, grh.dgid, grh.next_hdr == IPPROTO_UDP);
  if (index < 0) return index;
  attr->grh.dgid = grh.sgid;
  attr->grh.sgid_index = static_cast<std::uint8_t>(index);
  attr->grh.hop_limit = grh.hop_limit;
  attr->grh.traffic_class = be32toh(grh.version_tclass_flow) >> 20 & 0xff;
  return 0;
}

}  // namespace
}  // namespace verbena::verbs

using namespace verbena::verbs;

extern "C" {

int ibv_init_ah_from_wc(ibv_context* context, std::uint8_t port, ibv_wc* wc, ibv_grh* grh, ibv_ah_attr* attr) {
  *attr = {};
  attr->dlid = wc->slid;
  attr->sl = wc->sl;
  attr->src_path_bits = wc->dlid_path_bits;
  attr->port_num = port;
  attr->grh.flow_label = be32toh(grh->version_tclass_flow) & 0xfffff;
  if (!(wc->wc_flags & IBV_WC_GRH)) return 0;

  attr->is_global = 1;
  iphdr ipv4;
  std::memcpy(&ipv4, reinterpret_cast<const std::byte*>(grh) + kIpv4Offset, sizeof ipv4);
  switch (ip_version(*grh, ipv4)) {
    case 4:
      return from_ipv4(context, port, ipv4, attr);
    case 6:
      return from_ipv6(context, port, *grh, attr);
    default:
      return fail(EPROTONOSUPPORT);
  }
}

ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, std::uint8_t port) {
  ibv_ah_attr attr;
  if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr)) return nullptr;
  return ibv_create_ah(pd, &attr);
}

}  // extern "C"
