#include "device/device.h"

#include <sys/mman.h>

#include <algorithm>
#include <bitset>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "device/command/dispatcher.h"
#include "device/command/mkey_update.h"
#include "device/command/state.h"
#include "device/profile.h"
#include "device/shared/nic.h"
#include "device/shared/nic_tracker.h"
#include "device/transport/engine.h"
#include "prm/wqe.h"

namespace verbena::device {
namespace {

NicConfig config_of(const Profile& profile, const std::string& host, unsigned index) {
  NicConfig config;
  config.host = host;
  config.index = index;
  config.ports = profile.lag_ports();
  for (unsigned i = 0; i < config.ports; ++i) {
    const PortProfile& from = profile.port[i];
    NicConfig::Port to;
    std::copy(from.mac.begin(), from.mac.end(), to.mac);
    for (const auto& a : from.ipv4)
      to.ipv4.push_back(std::uint32_t{a[0]} << 24 | std::uint32_t{a[1]} << 16 | std::uint32_t{a[2]} << 8 | a[3]);
    to.ipv6 = from.ipv6;
    config.port.push_back(to);
  }
  return config;
}

// Interrupts that a command raises are delivered after it, when no lock of the command interface is held any more.
class HeldInterrupts {
 public:
  explicit HeldInterrupts(const std::function<void(unsigned)>& deliver) : deliver_(deliver), outer_(current_) {
    current_ = this;
  }
  ~HeldInterrupts() {
    current_ = outer_;
    for (unsigned vector = 0; vector < pending_.size(); ++vector)
      if (pending_[vector] && deliver_) deliver_(vector);
  }
  HeldInterrupts(const HeldInterrupts&) = delete;
  HeldInterrupts& operator=(const HeldInterrupts&) = delete;

  // True if this thread executes a command, which then delivers the interrupt.
  static bool hold(unsigned vector) {
    if (!current_ || vector >= kVectors) return false;
    current_->pending_.set(vector);
    return true;
  }

 private:
  static constexpr unsigned kVectors = 128;
  static thread_local HeldInterrupts* current_;
  const std::function<void(unsigned)>& deliver_;
  HeldInterrupts* outer_;
  std::bitset<kVectors> pending_;
};
thread_local HeldInterrupts* HeldInterrupts::current_ = nullptr;

// The device of one process: its slice of the NIC, the engine that runs it, the command interface.
class AttachedDevice final : public Device {
 public:
  AttachedDevice(const Profile& profile, std::unique_ptr<Nic> nic)
      : nic_(std::move(nic)), tracker_(*nic_), engine_(*nic_), commands_(profile, *nic_, engine_) {
    for (unsigned i = 0; i < profile.lag_ports(); ++i)
      if (!profile.port[i].up) nic_->set_port(i, false);
    engine_.start_helper();
  }

  void execute(std::span<const std::byte> in, std::span<std::byte> out) override {
    // Most requests are short; a page list makes them longer.
    std::byte small[kSmall];
    std::vector<std::byte> large;
    std::span<std::byte> copy(small, std::min(in.size(), kSmall));
    if (in.size() > kSmall) {
      large.resize(in.size());
      copy = large;
    }
    std::copy(in.begin(), in.end(), copy.begin());
    const HeldInterrupts held(handler_);
    command::execute(commands_, copy, out);
  }

  int update_mkey(std::uint32_t key, std::span<const std::byte, 64> mkc, bool range) override {
    return command::update_mkey(commands_, key, prm::ConstView<prm::Mkc>(mkc.data()), range);
  }

  void set_interrupt_handler(std::function<void(unsigned)> handler) override {
    handler_ = std::move(handler);
    engine_.set_interrupt_handler([this](unsigned vector) {
      if (!HeldInterrupts::hold(vector)) handler_(vector);
    });
  }
  void eq_doorbell(std::uint32_t eqn, std::uint32_t ci, bool arm) override {
    if (EqContext* eq = nic_->own_eq(eqn)) engine_.eq_doorbell(*eq, ci, arm);
  }

  void* alloc_dma(std::size_t length) override { return nic_->alloc_dma(length); }
  void free_dma(void* addr, std::size_t length) override { nic_->free_dma(addr, length); }

  void* behind_bar(std::uint64_t offset, std::size_t length) override {
    std::lock_guard guard(commands_.mutex);
    const std::uint64_t inside = offset - command::kMemicBarStart;
    if (!commands_.memic.window || inside > command::kMemicBarBytes || length > command::kMemicBarBytes - inside)
      return nullptr;
    return commands_.memic.at(offset);
  }

  void* map_operations(void* addr, std::size_t length, int flags, std::uint64_t offset) override {
    std::lock_guard guard(commands_.mutex);
    constexpr std::uint64_t window = command::kMemicBarBytes;
    const std::uint64_t inside = offset - command::kMemicBarStart, op = inside / window - 1;
    if (!commands_.memic.window || inside < window || op >= kMemoryOperations || length > window - inside % window) {
      errno = EINVAL;
      return MAP_FAILED;
    }
    return commands_.memic.operation_pages.map(addr, length, flags, commands_.memic.window,
                                               static_cast<MemoryOperation>(op),
                                               static_cast<std::uint32_t>(inside % window));
  }

  void* map_clock(void* addr, std::size_t length, int flags) override { return map_clock_page(addr, length, flags); }

  Tracker* tracker() override { return &tracker_; }

  int join_xrcd(std::uint64_t file_device, std::uint64_t file_inode, bool create, bool exclusive,
                std::uint32_t* number) override {
    std::lock_guard guard(commands_.mutex);
    const int error = nic_->join_xrcd(file_device, file_inode, create, exclusive, number);
    if (!error && !commands_.xrcds.find(*number)) commands_.xrcds.create(*number, 0);
    return error;
  }
  bool has_xrc_target(std::uint32_t qpn, std::uint32_t xrcd) override {
    const auto found = nic_->find_qp(qpn);
    return found && Nic::in_use(*found.context) && found.context->qpn == qpn && found.context->type == QpType::xrc &&
           found.context->xrcd == xrcd && found.context->sq.va == 0;
  }

  void send_doorbell(std::span<const std::byte, 8> ctrl) override {
    alignas(8) std::byte copy[prm::CtrlSeg::size]{};
    std::copy(ctrl.begin(), ctrl.end(), copy);
    const prm::ConstView<prm::CtrlSeg> segment(copy);
    QpContext* qp = nic_->own_qp(segment.get<prm::CtrlSeg::qpn>());
    if (!qp || qp->no_send_record == 0) return;
    // It may say how long the WQE is that it names; else it names the one behind it.
    const std::uint32_t blocks = (segment.get<prm::CtrlSeg::ds>() + 3) / 4;
    qp->rung.store((segment.get<prm::CtrlSeg::wqe_index>() + blocks) & 0xffff, std::memory_order_release);
    engine_.ring_sq(*qp);
  }

  void* sq_token(std::uint32_t qpn) override { return nic_->own_qp(qpn); }
  void* cq_token(std::uint32_t cqn) override { return nic_->own_cq(cqn); }
  void ring_sq(void* token) override { engine_.ring_sq(*static_cast<QpContext*>(token)); }
  void arm_cq(void* token) override { engine_.arm_cq(*static_cast<CqContext*>(token)); }
  const std::uint32_t* pending() override { return engine_.pending(); }
  void step() override { engine_.step(); }

  void abandon_in_child() override {
    commands_.memic.operation_pages.withdraw();
    engine_.abandon_in_child();
    nic_->abandon_in_child();
  }

 private:
  static constexpr std::size_t kSmall = 0x400;
  std::function<void(unsigned)> handler_;
  std::unique_ptr<Nic> nic_;
  NicTracker tracker_;
  Engine engine_;
  command::State commands_;
};

}  // namespace

void* Device::map_operations(void* /*addr*/, std::size_t /*length*/, int /*flags*/, std::uint64_t /*offset*/) {
  errno = EINVAL;
  return MAP_FAILED;
}

void* Device::map_clock(void* /*addr*/, std::size_t /*length*/, int /*flags*/) {
  errno = EINVAL;
  return MAP_FAILED;
}

Result<std::unique_ptr<Device>> Device::attach(const Profile& profile, const std::string& host, unsigned index) {
  auto nic = Nic::attach(config_of(profile, host, index));
  if (!nic) return std::unexpected(nic.error());
  return std::make_unique<AttachedDevice>(profile, std::move(*nic));
}

}  // namespace verbena::device
