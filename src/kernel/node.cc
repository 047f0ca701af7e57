#include "kernel/node.h"

#include <rdma/ib_user_ioctl_verbs.h>

#include <algorithm>
#include <cerrno>

#include "kernel/command.h"
#include "kernel/event_queue.h"
#include "prm/eqe.h"
#include "prm/misc.h"
#include "prm/port.h"

namespace verbena::kernel {
namespace {

constexpr unsigned kLogCompletionEntries = 10;
constexpr unsigned kLogAsyncEntries = 12;
constexpr unsigned kMaxVectors = 31;  // interrupts are bits of one word, the first is the asynchronous one

constexpr std::uint64_t event_bit(prm::EventType type) { return std::uint64_t{1} << static_cast<unsigned>(type); }

// What the asynchronous EQ takes.
constexpr std::uint64_t kAsyncEvents =
    event_bit(prm::EventType::path_mig) | event_bit(prm::EventType::comm_est) |
    event_bit(prm::EventType::sq_drained) | event_bit(prm::EventType::cq_error) |
    event_bit(prm::EventType::wq_catas_error) | event_bit(prm::EventType::path_mig_failed) |
    event_bit(prm::EventType::port_change) | event_bit(prm::EventType::wq_inval_req_error) |
    event_bit(prm::EventType::wq_access_error) | event_bit(prm::EventType::srq_catas_error) |
    event_bit(prm::EventType::srq_last_wqe) | event_bit(prm::EventType::srq_rq_limit);

}  // namespace

Node::Node(std::unique_ptr<device::Device> device, const device::Profile& profile, unsigned index)
    : device_(std::move(device)), profile_(profile), index_(index) {}

Node::~Node() {
  if (!dead()) return;
  // In a forked child the device belongs to the parent.
  for (auto& eq : owned_) eq->abandon();
}

Result<std::shared_ptr<Node>> Node::create(const device::Profile& profile, const std::string& host, unsigned index) {
  auto device = device::Device::attach(profile, host, index);
  if (!device) return std::unexpected(device.error());
  return adopt(std::move(*device), profile, index);
}

Result<std::shared_ptr<Node>> Node::adopt(std::unique_ptr<device::Device> device, const device::Profile& profile,
                                          unsigned index) {
  std::shared_ptr<Node> node(new Node(std::move(device), profile, index));
  if (int error = node->initialise()) return fail(error, "the device refused its first commands");
  return node;
}

int Node::initialise() {
  if (int error = query_caps(*device_, profile_, &caps_)) return error;
  memic_pages_.resize(caps_.memic_bar_size / 4096);
  virtio_pages_.resize(caps_.virtio_pages);
  rates_.resize(caps_);
  vectors_ = std::clamp(profile_.limits.completion_vectors, 1u, kMaxVectors);
  device_->set_interrupt_handler([this](unsigned vector) { interrupt(vector); });
  Command<prm::AllocUarIn, prm::AllocUarOut> uar(prm::Opcode::alloc_uar);
  if (int error = uar.run(*device_)) return error;
  uar_ = uar.out().get<prm::AllocUarOut::uar>();
  Command<prm::AllocQCounterIn, prm::AllocQCounterOut> counters(prm::Opcode::alloc_q_counter);
  if (!counters.run(*device_)) counter_set_ = counters.out().get<prm::AllocQCounterOut::counter_set_id>();
  return 0;
}

// ---- event queues ----

int Node::make_eq(unsigned interrupt_number, std::unique_ptr<EventQueue>* eq) {
  const bool async = interrupt_number == 0;
  auto made = std::make_unique<EventQueue>(*device_, events_);
  // The interrupt may come before create() returns; it finds no queue then, and process() below catches up.
  int error = made->create(interrupt_number, async ? kLogAsyncEntries : kLogCompletionEntries,
                           async ? kAsyncEvents : event_bit(prm::EventType::comp), uar_);
  if (error) return error;
  eqs_[interrupt_number].store(made.get(), std::memory_order_release);
  made->process();
  *eq = std::move(made);
  return 0;
}

int Node::completion_eqn(unsigned vector, std::uint32_t* eqn) {
  if (vector >= vectors_) return EINVAL;
  std::lock_guard guard(lock_);
  EventQueue* eq = eqs_[vector + 1].load(std::memory_order_acquire);
  if (!eq) {
    std::unique_ptr<EventQueue> made;
    if (int error = make_eq(vector + 1, &made)) return error;
    eq = made.get();
    owned_.push_back(std::move(made));
  }
  *eqn = eq->eqn();
  return 0;
}

bool Node::is_completion_eqn(std::uint32_t eqn) const {
  return std::any_of(eqs_.begin() + 1, eqs_.end(), [eqn](const auto& slot) {
    const EventQueue* eq = slot.load(std::memory_order_acquire);
    return eq && eq->eqn() == eqn;
  });
}

int Node::start_async_events() {
  std::lock_guard guard(lock_);
  if (eqs_[0].load(std::memory_order_acquire)) return 0;
  std::unique_ptr<EventQueue> made;
  if (int error = make_eq(0, &made)) return error;
  owned_.push_back(std::move(made));
  return 0;
}

void Node::drain_events() {
  for (auto& slot : eqs_)
    if (EventQueue* eq = slot.load(std::memory_order_acquire)) eq->process();
}

void Node::interrupt(unsigned vector) {
  if (vector >= eqs_.size()) return;
  if (EventQueue* eq = eqs_[vector].load(std::memory_order_acquire)) eq->process();
}

// ---- port tables ----

int Node::gid(unsigned port, unsigned index, Gid* out) {
  if (port != 1 || index >= caps_.gid_table_size) return EINVAL;
  Command<prm::QueryRoceAddressIn, prm::QueryRoceAddressOut> query(prm::Opcode::query_roce_address);
  query.in().set<prm::QueryRoceAddressIn::roce_address_index>(index);
  query.in().set<prm::QueryRoceAddressIn::vhca_port_num>(1);
  if (int error = query.run(*device_)) return error;
  auto entry = query.out().sub<prm::QueryRoceAddressOut::roce_address>();
  auto raw = entry.bytes<prm::RoceAddrLayout::source_l3_address>();
  for (unsigned i = 0; i < 16; ++i) out->raw[i] = std::to_integer<std::uint8_t>(raw[i]);
  const std::uint64_t mac = std::uint64_t{entry.get<prm::RoceAddrLayout::source_mac_47_32>()} << 32 |
                            entry.get<prm::RoceAddrLayout::source_mac_31_0>();
  for (unsigned i = 0; i < 6; ++i) out->mac[i] = static_cast<std::uint8_t>(mac >> (40 - 8 * i));
  out->valid = std::any_of(out->raw.begin(), out->raw.end(), [](std::uint8_t b) { return b != 0; });
  out->type = entry.get<prm::RoceAddrLayout::roce_version>() == prm::RoceVersion::v1 ? IB_UVERBS_GID_TYPE_ROCE_V1
                                                                                     : IB_UVERBS_GID_TYPE_ROCE_V2;
  return 0;
}

int Node::node_guid(std::uint64_t* guid_be) {
  Command<prm::QueryNicVportContextIn, prm::QueryNicVportContextOut> query(prm::Opcode::query_nic_vport_context);
  if (int error = query.run(*device_)) return error;
  auto context = query.out().sub<prm::QueryNicVportContextOut::nic_vport_context>();
  *guid_be = __builtin_bswap64(context.get<prm::NicVportContext::node_guid>());
  return 0;
}

int Node::port_mac(unsigned port, std::array<std::uint8_t, 6>* mac) {
  if (port != 1) return EINVAL;
  Gid gid;
  if (int error = this->gid(port, 0, &gid)) return error;
  *mac = gid.mac;
  return 0;
}

int Node::port_state(unsigned port, bool* up) {
  if (port != 1) return EINVAL;
  Command<prm::QueryVportStateIn, prm::QueryVportStateOut> query(prm::Opcode::query_vport_state);
  if (int error = query.run(*device_)) return error;
  *up = query.out().get<prm::QueryVportStateOut::state>() == prm::VportState::up;
  return 0;
}

void Node::abandon_in_child() {
  dead_.store(true, std::memory_order_release);
  device_->abandon_in_child();
}

}  // namespace verbena::kernel
