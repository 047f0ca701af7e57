// One event queue: a ring that the device fills and an interrupt handler empties.
// Threads: any; whoever comes while another thread is at it leaves the work to that one.
#pragma once

#include <atomic>
#include <cstdint>

#include "device/device.h"
#include "kernel/events.h"
#include "prm/eqe.h"

namespace verbena::kernel {

class EventQueue {
 public:
  EventQueue(device::Device& device, EventRegistry& events) : device_(device), events_(events) {}
  ~EventQueue();

  // Allocates the ring and creates the EQ on the device, armed. `mask` has a bit per event type. 0 or an errno.
  int create(unsigned interrupt, unsigned log_entries, std::uint64_t mask, std::uint32_t uar);
  std::uint32_t eqn() const { return eqn_; }
  void process();
  // In a forked child: the ring and the EQ are the parent's.
  void abandon() { ring_ = nullptr; }

 private:
  bool take_one();
  void dispatch(const std::byte* eqe);
  void notify_devx(const prm::ConstView<prm::Eqe>& eqe);
  void port_changed(unsigned port, bool up);

  device::Device& device_;
  EventRegistry& events_;
  std::byte* ring_ = nullptr;
  unsigned log_entries_ = 0;
  std::uint32_t eqn_ = 0;
  std::uint32_t ci_ = 0;
  unsigned ports_up_ = 0;  // a bit per physical port, from 0
  std::atomic<std::uint32_t> calls_{0};
};

}  // namespace verbena::kernel
