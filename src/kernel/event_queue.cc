#include "kernel/event_queue.h"

#include <cerrno>

#include "kernel/command.h"
#include "prm/eq.h"
#include "prm/eqe.h"
#include "prm/registers.h"

namespace verbena::kernel {
namespace {

constexpr std::size_t kEqeBytes = 64;
constexpr std::size_t kOwnerByte = 63;
constexpr unsigned kPhysicalPorts = 2;

// Physical ports that are up, a bit each. A device that does not tell has one.
unsigned ports_up(device::Device& device) {
  unsigned up = 0;
  for (unsigned port = 0; port < kPhysicalPorts; ++port) {
    prm::Box<prm::AccessRegisterIn, prm::PaosReg::size> in;
    prm::Box<prm::AccessRegisterOut, prm::PaosReg::size> out;
    in.set<prm::AccessRegisterIn::opcode>(prm::Opcode::access_reg);
    in.set<prm::AccessRegisterIn::op_mod>(static_cast<std::uint32_t>(prm::AccessRegisterOpMod::read));
    in.set<prm::AccessRegisterIn::register_id>(static_cast<std::uint32_t>(prm::RegisterId::paos));
    prm::View<prm::PaosReg>(in.data() + prm::AccessRegisterIn::size).set<prm::PaosReg::local_port>(port + 1);
    if (run(device, in.span(), out.span())) {
      if (port == 0) up |= 1;
      continue;
    }
    const prm::ConstView<prm::PaosReg> paos(out.data() + prm::AccessRegisterOut::size);
    if (paos.get<prm::PaosReg::oper_status>() == static_cast<std::uint32_t>(prm::PaosStatus::up)) up |= 1u << port;
  }
  return up;
}

}  // namespace

EventQueue::~EventQueue() {
  if (!ring_) return;
  Command<prm::DestroyEqIn, prm::DestroyEqOut> destroy(prm::Opcode::destroy_eq);
  destroy.in().set<prm::DestroyEqIn::eq_number>(eqn_);
  destroy.run(device_);
  device_.free_dma(ring_, kEqeBytes << log_entries_);
}

int EventQueue::create(unsigned interrupt, unsigned log_entries, std::uint64_t mask, std::uint32_t uar) {
  const std::size_t bytes = kEqeBytes << log_entries;
  auto* ring = static_cast<std::byte*>(device_.alloc_dma(bytes));
  if (!ring) return ENOMEM;
  for (std::size_t at = kOwnerByte; at < bytes; at += kEqeBytes) ring[at] = std::byte{1};

  PageRun pages{};
  page_run(reinterpret_cast<std::uintptr_t>(ring), bytes, &pages);
  Command<prm::CreateEqIn, prm::CreateEqOut> create(prm::Opcode::create_eq, 0, pages.count * prm::Pas::size);
  auto in = create.in();
  in.at<prm::CreateEqIn::event_bitmask>(0).set<prm::Qword::value>(mask);
  auto context = in.sub<prm::CreateEqIn::eq_context_entry>();
  context.set<prm::Eqc::log_eq_size>(log_entries);
  context.set<prm::Eqc::uar_page>(uar);
  context.set<prm::Eqc::intr>(interrupt);
  fill_pages<prm::CreateEqIn::pas>(in, pages);
  if (int error = create.run(device_)) {
    device_.free_dma(ring, bytes);
    return error;
  }
  ports_up_ = ports_up(device_);
  eqn_ = create.out().get<prm::CreateEqOut::eq_number>();
  log_entries_ = log_entries;
  ring_ = ring;
  device_.eq_doorbell(eqn_, 0, true);
  return 0;
}

void EventQueue::process() {
  if (calls_.fetch_add(1, std::memory_order_acq_rel)) return;
  for (std::uint32_t seen = 1;;) {
    while (take_one()) {
    }
    device_.eq_doorbell(eqn_, ci_, true);
    // Calls that came meanwhile may have seen entries that we had already looked for.
    std::uint32_t left = calls_.fetch_sub(seen, std::memory_order_acq_rel) - seen;
    if (!left) return;
    seen = left;
  }
}

bool EventQueue::take_one() {
  const std::uint32_t entries = 1u << log_entries_;
  std::byte* eqe = ring_ + kEqeBytes * (ci_ & (entries - 1));
  const auto owner =
      std::atomic_ref<std::uint8_t>(*reinterpret_cast<std::uint8_t*>(eqe + kOwnerByte)).load(std::memory_order_acquire);
  if ((owner & 1u) != (ci_ >> log_entries_ & 1)) return false;
  dispatch(eqe);
  ++ci_;
  // The device must not run into entries it thinks are unread.
  if (!(ci_ & (entries / 2 - 1))) device_.eq_doorbell(eqn_, ci_, false);
  return true;
}

// Programs that subscribed by DEVX see every event as the device wrote it.
void EventQueue::notify_devx(const prm::ConstView<prm::Eqe>& eqe) {
  using prm::EventType;
  const auto data = eqe.sub<prm::Eqe::event_data>();
  const EventType type = eqe.get<prm::Eqe::event_type>();
  const auto tell = [&](bool affiliated, EventSource source, std::uint32_t number) {
    events_.devx_event(static_cast<std::uint16_t>(type), affiliated, source, number,
                       std::span<const std::byte, kEqeBytes>(eqe.data(), kEqeBytes));
  };
  switch (type) {
    case EventType::comp:
      return tell(true, EventSource::cq, data.sub<prm::EventAuto::comp_event>().get<prm::CompEvent::cq_number>());
    case EventType::cq_error:
      return tell(true, EventSource::cq, data.sub<prm::EventAuto::cq_error>().get<prm::CqError::cqn>());
    case EventType::srq_rq_limit:
    case EventType::srq_catas_error:
      return tell(true, EventSource::srq, data.sub<prm::EventAuto::qp_events>().get<prm::QpEvents::qpn_rqn_sqn>());
    case EventType::port_change:
      return tell(false, EventSource::qp, 0);
    default:
      return tell(true, EventSource::qp, data.sub<prm::EventAuto::qp_events>().get<prm::QpEvents::qpn_rqn_sqn>());
  }
}

void EventQueue::dispatch(const std::byte* bytes) {
  using prm::EventType;
  prm::ConstView<prm::Eqe> eqe(bytes);
  auto data = eqe.sub<prm::Eqe::event_data>();
  auto queue_number = [&] { return data.sub<prm::EventAuto::qp_events>().get<prm::QpEvents::qpn_rqn_sqn>(); };
  notify_devx(eqe);
  switch (eqe.get<prm::Eqe::event_type>()) {
    case EventType::comp:
      return events_.completion(data.sub<prm::EventAuto::comp_event>().get<prm::CompEvent::cq_number>());
    case EventType::path_mig:
      return events_.object_event(EventSource::qp, queue_number(), Event::path_mig);
    case EventType::comm_est:
      return events_.object_event(EventSource::qp, queue_number(), Event::comm_est);
    case EventType::sq_drained:
      return events_.object_event(EventSource::qp, queue_number(), Event::sq_drained);
    case EventType::srq_last_wqe:
      return events_.object_event(EventSource::qp, queue_number(), Event::qp_last_wqe_reached);
    case EventType::wq_catas_error:
      events_.object_event(EventSource::wq, queue_number(), Event::wq_fatal);
      return events_.object_event(EventSource::qp, queue_number(), Event::qp_fatal);
    case EventType::path_mig_failed:
      return events_.object_event(EventSource::qp, queue_number(), Event::path_mig_err);
    case EventType::wq_inval_req_error:
      return events_.object_event(EventSource::qp, queue_number(), Event::qp_req_err);
    case EventType::wq_access_error:
      return events_.object_event(EventSource::qp, queue_number(), Event::qp_access_err);
    case EventType::srq_rq_limit:
      return events_.object_event(EventSource::srq, queue_number(), Event::srq_limit_reached);
    case EventType::srq_catas_error:
      return events_.object_event(EventSource::srq, queue_number(), Event::srq_err);
    case EventType::cq_error:
      return events_.object_event(EventSource::cq, data.sub<prm::EventAuto::cq_error>().get<prm::CqError::cqn>(),
                                  Event::cq_err);
    case EventType::port_change: {
      // Of the others, none happens to a RoCE port.
      const auto change = static_cast<prm::PortChange>(eqe.get<prm::Eqe::event_sub_type>());
      const unsigned port = data.sub<prm::EventAuto::port_state_change_event>().get<prm::PortStateChangeEvent::port_num>();
      if (change == prm::PortChange::active || change == prm::PortChange::down)
        port_changed(port, change == prm::PortChange::active);
      return;
    }
    default:
      return;
  }
}

// Programs know one port: in a bond it is up while one of the two is.
void EventQueue::port_changed(unsigned port, bool up) {
  const bool was = ports_up_ != 0;
  const unsigned bit = port <= 1 ? 1u : 1u << (port - 1);
  ports_up_ = up ? ports_up_ | bit : ports_up_ & ~bit;
  if (was != (ports_up_ != 0)) events_.device_event(up ? Event::port_active : Event::port_err, 1);
}

}  // namespace verbena::kernel
