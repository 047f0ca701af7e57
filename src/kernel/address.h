// Address attributes: what a program says about the way to a peer, checked and resolved to Ethernet.
// Threads: any.
#pragma once

#include <rdma/ib_user_verbs.h>

#include <array>
#include <cstdint>

#include "kernel/node.h"
#include "prm/qp.h"

namespace verbena::kernel {

struct AddressAttr {
  std::array<std::uint8_t, 16> dgid{};
  std::uint32_t flow_label = 0;
  std::uint8_t sgid_index = 0, hop_limit = 0, traffic_class = 0, sl = 0, static_rate = 0, port = 0;
  bool is_global = false;
};
AddressAttr from_abi(const ib_uverbs_ah_attr& attr);
AddressAttr from_abi(const ib_uverbs_qp_dest& dest);
ib_uverbs_qp_dest to_abi(const AddressAttr& attr);

struct ResolvedAddress {
  AddressAttr attr;
  Gid source;
  std::array<std::uint8_t, 6> dmac{};
};

// Checks the attributes as the kernel does for a RoCE port and finds the destination's MAC. 0 or an errno: EINVAL for
// a wrong port, no global route or an index outside the table, ENODATA for an empty entry of the GID table.
int resolve_address(Node& node, const AddressAttr& attr, ResolvedAddress* out);

bool is_multicast(const std::array<std::uint8_t, 16>& gid);

// The device's code for a static rate (enum ib_rate): the nearest one that it has. 0 or EINVAL.
int stat_rate_of(const Caps& caps, std::uint8_t ib_rate, std::uint8_t* code);

// Fills the address path of a connected QP, but for its static rate. The UDP source port comes from the flow label, or from the QP numbers.
void set_path(const prm::View<prm::Ads>& path, const ResolvedAddress& address, std::uint32_t local_qpn,
              std::uint32_t remote_qpn);
// Reads it back, for QUERY_QP.
AddressAttr get_path(const prm::ConstView<prm::Ads>& path, std::uint8_t port);

}  // namespace verbena::kernel
