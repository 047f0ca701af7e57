// What a device is: part, ports, limits, addresses. A value; everything the device advertises is computed from it.
//
// default_profile() is a two-port ConnectX-7 in RoCE LAG mode. A TOML file overrides single keys
// (docs/profile.md lists them); an unknown key or a value the device cannot honour is an error that names the line.
// Threads: plain values and pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace verbena::device {

// One port as the profile states it. What is left empty gets a default that is distinct per virtual host
// (device/shared/nic.h says which).
struct PortProfile {
  std::array<std::uint8_t, 6> mac{};               // all zero: default
  std::vector<std::array<std::uint8_t, 4>> ipv4;   // first one is the port's main address
  std::vector<std::array<std::uint8_t, 16>> ipv6;  // global addresses; the link-local comes from the MAC
  bool up = true;                                  // link state
};

// Limits, as the capability pages state them. parse_profile() refuses more than the device can hold.
struct Limits {
  unsigned log_max_qp = 17;
  unsigned log_max_qp_sz = 15;  // WQEBBs of a send queue, WQEs of a receive queue
  unsigned log_max_cq = 18;
  unsigned log_max_cq_sz = 22;  // 4194304 CQEs (one is kept back by the library)
  unsigned log_max_srq = 16;
  unsigned log_max_srq_sz = 15;
  unsigned log_max_eq = 7;
  unsigned log_max_eq_sz = 22;
  unsigned log_max_mkey = 20;
  unsigned log_max_klm_list_size = 16;
  unsigned log_max_pd = 23;
  unsigned log_max_transport_domain = 16;
  unsigned log_max_uctx = 16;
  unsigned log_max_umem = 20;
  unsigned log_max_mcg = 12;
  unsigned max_qp_mcg = 240;       // QPs attached to one group
  unsigned log_max_msg = 30;       // largest message: 1 GiB
  unsigned log_max_rd_atomic = 4;  // outstanding reads and atomics of a QP, each direction
  unsigned max_wqe_sz_sq = 1024;   // bytes
  unsigned max_wqe_sz_rq = 512;    // bytes: 32 data segments
  unsigned max_uar = 1u << 16;
  unsigned max_q_counters = 255;
  unsigned packet_pacing_rates = 127;  // entries of the packet pacing table; none: the device does not pace
  unsigned cqe_compression = 1;        // CQs may have their CQEs compressed; 0: none may
  unsigned completion_vectors = 8;
};

// How the driver runs the switch between the NIC's ports and its functions (devlink calls it the mode).
enum class EswitchMode : std::uint8_t {
  legacy,     // by MAC address; the driver tells nothing of the switch
  switchdev,  // by rules; the driver tells what a rule must know of a port
};

struct Profile {
  std::uint16_t part_id = 0x1021;  // ConnectX-7
  std::uint32_t vendor_id = 0x02c9;
  std::uint32_t hw_rev = 0;
  std::string board_id = "MT_0000000838";  // PSID, at most 16 characters
  std::array<std::uint16_t, 3> firmware{28, 43, 1014};

  unsigned ports = 2;                     // physical ports
  bool lag = true;                        // both ports bonded into one RoCE device
  unsigned link_gbps = 200;               // per port: 10, 25, 40, 50, 100, 200 or 400
  unsigned mtu = 4200;                    // of the network interface; the RoCE path MTU is what fits into it
  unsigned gid_table_size = 256;          // entries per port
  unsigned pkey_table_size = 1;           // a RoCE port has the default partition only
  std::uint32_t frequency_khz = 1000000;  // of the timestamp counter: 1 GHz, so CQE timestamps are nanoseconds
  EswitchMode eswitch = EswitchMode::switchdev;
  std::array<PortProfile, 2> port{};
  Limits limits{};

  // IBTA code (1..5 for 256..4096) of the largest path MTU a port can carry.
  unsigned path_mtu_code() const;
  // One virtual device shows one verbs port; in LAG mode that port stands for both physical ones.
  unsigned lag_ports() const { return lag && ports == 2 ? 2 : 1; }
  // What lag_tx_port_affinity may say; 0: as the bond likes.
  bool has_lag_port(unsigned port) const { return port <= lag_ports(); }
  std::string firmware_text() const;
};

Profile default_profile();

// Reads a profile from TOML text on top of the defaults. `name` is used in messages: "name:line: reason".
Result<Profile> parse_profile(std::string_view text, std::string_view name);
// The same from a file; an empty path gives the defaults.
Result<Profile> load_profile(const std::string& path);

}  // namespace verbena::device
