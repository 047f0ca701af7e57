// One device of this process: the attachment, its capabilities, its event queues. All open Files share it.
//
// Threads: any. Lock order: File, then Node, then EventRegistry; the device may be called under the first two only.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/profile.h"
#include "kernel/bar.h"
#include "kernel/caps.h"
#include "kernel/events.h"
#include "kernel/flow_tables.h"
#include "kernel/rates.h"
#include "kernel/xrcd.h"
#include "support/result.h"

namespace verbena::kernel {

class EventQueue;

struct Gid {
  std::array<std::uint8_t, 16> raw{};
  std::array<std::uint8_t, 6> mac{};
  std::uint32_t type = 0;  // ib_uverbs_gid_type
  bool valid = false;
};

class Node {
 public:
  // Attaches to device `index` of the virtual host.
  static Result<std::shared_ptr<Node>> create(const device::Profile& profile, const std::string& host, unsigned index);
  // For tests: a node over any device.
  static Result<std::shared_ptr<Node>> adopt(std::unique_ptr<device::Device> device, const device::Profile& profile,
                                             unsigned index);
  ~Node();

  device::Device& device() { return *device_; }
  const Caps& caps() const { return caps_; }
  const device::Profile& profile() const { return profile_; }
  unsigned index() const { return index_; }
  std::string name() const { return "mlx5_" + std::to_string(index_); }
  unsigned completion_vectors() const { return vectors_; }
  EventRegistry& events() { return events_; }

  // The EQ of a completion vector, made on first use. 0 or an errno.
  int completion_eqn(unsigned vector, std::uint32_t* eqn);
  // Whether that is the EQ of a completion vector.
  bool is_completion_eqn(std::uint32_t eqn) const;
  // Makes the EQ of asynchronous events if there is none yet.
  int start_async_events();
  // Takes in what lies in the event queues, so that nothing of a destroyed object is left in them.
  void drain_events();

  // Port tables, read from the device each time: another process may change them. 0 or an errno.
  int gid(unsigned port, unsigned index, Gid* out);
  int node_guid(std::uint64_t* guid_be);
  int port_mac(unsigned port, std::array<std::uint8_t, 6>* mac);
  int port_state(unsigned port, bool* up);
  unsigned path_mtu() const { return profile_.path_mtu_code(); }

  // The low byte of the next memory key, so that a stale key does not name its successor.
  std::uint8_t next_key_variant() { return key_variant_.fetch_add(1, std::memory_order_relaxed); }
  // The queue counter set of this process's queue pairs; 0 if the device has none to give.
  std::uint32_t counter_set() const { return counter_set_; }
  // Pages of the BAR, for all contexts together.
  BarPages& memic_pages() { return memic_pages_; }
  BarPages& virtio_pages() { return virtio_pages_; }
  RateTable& rates() { return rates_; }
  // Of what is received; of RoCE packets, received and sent.
  FlowTables& flow_tables() { return flow_tables_; }
  FlowTables& roce_tables(bool sent) { return sent ? roce_sent_ : roce_received_; }
  XrcState& xrc() { return xrc_; }
  // The UAR that the kernel's own rings use.
  std::uint32_t kernel_uar() const { return uar_; }

  // After fork, in the child: forgets the device without touching what the parent shares with it.
  void abandon_in_child();
  bool dead() const { return dead_.load(std::memory_order_acquire); }

 private:
  Node(std::unique_ptr<device::Device> device, const device::Profile& profile, unsigned index);
  int initialise();
  int make_eq(unsigned interrupt, std::unique_ptr<EventQueue>* eq);
  void interrupt(unsigned vector);

  std::unique_ptr<device::Device> device_;
  const device::Profile profile_;
  const unsigned index_;
  unsigned vectors_ = 1;
  Caps caps_;
  EventRegistry events_;
  BarPages memic_pages_, virtio_pages_;
  RateTable rates_;
  FlowTables flow_tables_{prm::FlowTableType::nic_rx};
  FlowTables roce_received_{prm::FlowTableType::rdma_rx}, roce_sent_{prm::FlowTableType::rdma_tx};
  XrcState xrc_;
  std::uint32_t uar_ = 0, counter_set_ = 0;
  std::mutex lock_;
  // By interrupt: 0 is the asynchronous one, vector v has v + 1. Never freed while the node lives.
  std::array<std::atomic<EventQueue*>, 32> eqs_{};
  std::vector<std::unique_ptr<EventQueue>> owned_;
  std::atomic<std::uint8_t> key_variant_{1};
  std::atomic<bool> dead_{false};
};

}  // namespace verbena::kernel
