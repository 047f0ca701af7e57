// The device as its driver sees it (seam B): command mailboxes in, command mailboxes out, interrupts.
//
// One Device stands for one process's part of one NIC. Addresses in commands (pas[], dbr_addr, translations)
// are virtual addresses of this process: the device's bus address space is the process's own.
//
// Threads: every member may be called from any thread, except where noted.
#pragma once

#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "device/track.h"
#include "support/result.h"

namespace verbena::device {

struct Profile;  // profile.h
struct QpContext;
struct CqContext;

class Device {
 public:
  // Attaches this process to device `index` of the virtual host, creating the NIC segment if it is the first.
  // Errors: errno (no space in the run dir, all process slots taken, ...).
  static Result<std::unique_ptr<Device>> attach(const Profile& profile, const std::string& host, unsigned index);
  virtual ~Device() = default;

  // Executes one command mailbox. Writes status and syndrome into `out` as the hardware does; an `out` shorter
  // than the status header gets as much as fits. `in` is copied first: the guest may change it meanwhile.
  virtual void execute(std::span<const std::byte> in, std::span<std::byte> out) = 0;

  // What the driver's own UMR queue does on hardware: gives a memory key of this process the domain and rights of `mkc`
  // (a memory key context) and, with `range`, the start and length of a direct key. The key keeps its number.
  // 0, or EINVAL and nothing is changed.
  virtual int update_mkey(std::uint32_t key, std::span<const std::byte, 64> mkc, bool range) = 0;

  // Called when an event queue of completion vector `vector` has new entries; from any thread that runs the
  // device, without device locks held. Set once, before the first EQ exists.
  virtual void set_interrupt_handler(std::function<void(unsigned vector)> handler) = 0;
  // The driver consumed EQEs up to consumer index ci (free-running); `arm` asks for the next interrupt.
  virtual void eq_doorbell(std::uint32_t eqn, std::uint32_t ci, bool arm) = 0;

  // Page-aligned zeroed memory in the DMA arena, reachable by peers; null when full.
  virtual void* alloc_dma(std::size_t length) = 0;
  virtual void free_dma(void* addr, std::size_t length) = 0;

  // What lies behind [offset, offset + length) of the BAR: device memory. Null: nothing that a program could map.
  virtual void* behind_bar(std::uint64_t /*offset*/, std::size_t /*length*/) { return nullptr; }

  // Maps what lies behind [offset, offset + length) of the BAR where loads and stores are operations (MODIFY_MEMIC), as
  // mmap(2): MAP_FAILED and errno.
  virtual void* map_operations(void* addr, std::size_t length, int flags, std::uint64_t offset);

  // Maps the page of the device's clock (mlx5_init_seg.internal_timer), as mmap(2).
  virtual void* map_clock(void* addr, std::size_t length, int flags);

  // Where the driver says what it made, for all processes of the virtual host. Null: nowhere.
  virtual Tracker* tracker() { return nullptr; }

  // XRC domains that a file stands for, which the drivers of all processes of the virtual host agree on. This process holds
  // it until DEALLOC_XRCD. 0 or an errno: EAGAIN (none yet, and not to be made), EINVAL (there is one, and it was to be
  // new), ENOMEM.
  virtual int join_xrcd(std::uint64_t /*file_device*/, std::uint64_t /*file_inode*/, bool /*create*/,
                        bool /*exclusive*/, std::uint32_t* /*number*/) {
    return ENOMEM;
  }
  // Whether a process of the virtual host has an XRC queue pair of this number in this domain.
  virtual bool has_xrc_target(std::uint32_t /*qpn*/, std::uint32_t /*xrcd*/) { return false; }

  // A store to the send doorbell of a UAR page, in the name of a queue that has no doorbell record: the first 8 bytes of
  // the control segment.
  virtual void send_doorbell(std::span<const std::byte, 8> /*ctrl*/) {}

  // Doorbells. Tokens stay valid until the object is destroyed.
  virtual void* sq_token(std::uint32_t qpn) = 0;
  virtual void* cq_token(std::uint32_t cqn) = 0;
  virtual void ring_sq(void* token) = 0;
  virtual void arm_cq(void* token) = 0;
  virtual const std::uint32_t* pending() = 0;
  virtual void step() = 0;

  // After fork(2), in the child: lets go of everything without touching the parent's objects.
  virtual void abandon_in_child() = 0;
};

}  // namespace verbena::device
