// From a QP's path to the peer's context: the fabric's answer, kept per QP.
#include <cstring>

#include "device/transport/impl.h"
#include "fabric/frame.h"

namespace verbena::device {

namespace {

// Whether the port (from 0) can carry packets. Two ports are a bond, in which one does the other's work.
bool carries(const NicSegment& segment, unsigned port) {
  return segment.ports[port].is_up() || (segment.ports_count == 2 && segment.ports[1 - port].is_up());
}

}  // namespace

unsigned egress_port(const NicSegment& segment, const QpContext& qp) {
  if (segment.ports_count != 2) return qp.port;
  const unsigned affinity = qp.path.lag_tx_port_affinity;
  const unsigned wanted = affinity == 1 || affinity == 2 ? affinity : qp.port == 2 ? 2 : 1;
  const unsigned other = 3 - wanted;
  return segment.ports[wanted - 1].is_up() || !segment.ports[other - 1].is_up() ? wanted : other;
}

NicMap* Engine::Impl::visit(std::uint32_t host, std::uint8_t device) {
  const NicSegment& own = nic_.segment();
  if (host == own.host_index && device == own.device_index) return &nic_;
  std::lock_guard guard(visits_mutex_);
  auto& slot = visits_[std::uint64_t{host} << 8 | device];
  if (!slot) {
    auto opened = NicMap::visit(nic_.run_dir(), registry_->host_name(host), device);
    if (!opened) return nullptr;
    slot = std::move(*opened);
  }
  return slot.get();
}

void Engine::Impl::for_each_nic(const std::function<void(NicMap&)>& visitor) {
  std::vector<NicMap*> all;
  const std::uint64_t version = registry_->version();
  bool look = false;
  {
    std::lock_guard guard(visits_mutex_);
    look = !all_visited_ || all_visited_version_ != version;
    all_visited_ = true;
    all_visited_version_ = version;
  }
  if (look)
    for (std::uint32_t host = 0; !registry_->host_name(host).empty(); ++host)
      for (std::uint8_t device = 0; device < 8; ++device) visit(host, device);
  all.push_back(&nic_);
  {
    std::lock_guard guard(visits_mutex_);
    for (auto& [key, map] : visits_)
      if (map) all.push_back(map.get());
  }
  for (NicMap* map : all) visitor(*map);
}

std::string Engine::Impl::host_name(std::uint32_t host) const { return registry_->host_name(host); }

bool Engine::Impl::address_from(const QpContext& qp, const Path& path, Way& way) {
  const NicSegment& segment = nic_.segment();
  way.egress = 0;
  const unsigned port = path.port - 1u;
  if (port >= kMaxPorts || port >= segment.ports_count || !carries(segment, port)) return false;
  const GidEntry& source = segment.gids[port][path.sgid_index];
  const auto type = static_cast<GidType>(source.type.load(std::memory_order_acquire));
  if (type != GidType::roce_v1 && type != GidType::roce_v2) return false;
  fabric::Address& a = way.address;
  std::memcpy(a.sgid.data(), source.gid, 16);
  std::memcpy(a.dgid.data(), path.rgid, 16);
  std::memcpy(a.smac.data(), source.mac, 6);
  std::memcpy(a.dmac.data(), path.rmac, 6);
  a.carrier = type == GidType::roce_v1  ? fabric::Carrier::roce_v1
              : source.l3_is_ipv6 != 0 ? fabric::Carrier::roce_v2_ipv6
                                       : fabric::Carrier::roce_v2_ipv4;
  a.hop_limit = path.hop_limit;
  a.traffic_class = path.traffic_class;
  a.sl = path.sl;
  a.flow_label = path.flow_label;
  a.udp_sport = path.udp_sport != 0 ? path.udp_sport : fabric::flow_label_to_udp_sport(path.flow_label);
  way.egress = static_cast<std::uint8_t>(egress_port(segment, qp));
  way.multicast = a.dgid[0] == 0xff;
  way.nic = nullptr;
  if (way.multicast) return true;
  const auto route = registry_->find(a.dgid);
  if (!route) return true;
  way.host = route->host;
  way.device = route->device;
  way.port = route->port;
  way.nic = visit(route->host, route->device);
  if (way.nic == nullptr) return true;
  const NicSegment& there = way.nic->segment();
  if (way.port == 0 || way.port > kMaxPorts || !carries(there, way.port - 1u)) way.nic = nullptr;
  return true;
}

bool Engine::Impl::find_way(QpContext& qp, QpLocal& local) {
  const std::uint64_t version = registry_->version() + 1;
  if (local.way != nullptr && local.way_version == version) [[likely]]
    return local.way->nic != nullptr;
  if (local.way == nullptr) {
    auto fresh = std::make_unique<Way>();
    local.way = fresh.get();
    std::lock_guard guard(mutex_);
    ways_.push_back(std::move(fresh));
  }
  Path path = qp.path;
  if (path.port == 0) path.port = qp.port;
  if (path.udp_sport == 0 && path.flow_label == 0) {
    // As Linux does: both QP numbers folded, so that flows spread over paths.
    std::uint64_t v = std::uint64_t{qp.qpn} * qp.dest_qpn;
    v ^= v >> 20;
    v ^= v >> 40;
    path.udp_sport = fabric::flow_label_to_udp_sport(v & 0xfffff);
  }
  local.peer = nullptr;
  if (!address_from(qp, path, *local.way)) {
    local.way->nic = nullptr;
    return false;
  }
  local.way_version = version;
  return local.way->nic != nullptr;
}

bool Engine::Impl::resolve(QpContext& qp, QpLocal& local) {
  if (!find_way(qp, local)) return false;
  const Way* const way = local.way;
  Peer* const known = local.peer;
  if (way == nullptr || way->nic == nullptr) return false;
  if (known != nullptr && local.remote->generation.load(std::memory_order_relaxed) == local.remote_generation &&
      way->nic->alive(*known)) [[likely]]
    return true;
  local.peer = nullptr;
  const auto found = way->nic->find_qp(qp.dest_qpn);
  if (!found || !way->nic->alive(*found.peer)) return false;
  const std::uint32_t generation = found.context->generation.load(std::memory_order_acquire);
  if ((generation & 1) == 0) return false;
  local.remote = found.context;
  local.remote_generation = generation;
  local.peer = found.peer;
  return true;
}

// Answers go where the responder's own path leads, whoever asked.
bool Engine::Impl::leads_back(const Way& way, const QpContext& responder) const {
  if (std::memcmp(responder.path.rgid, way.address.sgid.data(), way.address.sgid.size()) == 0) [[likely]]
    return true;
  fabric::Gid back;
  std::memcpy(back.data(), responder.path.rgid, back.size());
  const auto route = registry_->find(back);
  const NicSegment& own = nic_.segment();
  return route && route->host == own.host_index && route->device == own.device_index;
}

void Engine::Impl::invalidate_way(QpContext& qp) {
  QpLocal& l = local(qp);
  l.way_version = 0;
  l.peer = nullptr;
  l.held_ns = 0;
}

}  // namespace verbena::device
