#include "device/profile.h"

#define TOML_EXCEPTIONS 0
#include <arpa/inet.h>
#include <toml++/toml.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <sstream>

#include "device/shared/segments.h"
#include "device/transport/shaping.h"

namespace verbena::device {
namespace {

constexpr unsigned kRoceOverhead =
    14 + 4 + 40 + 8 + 12 + 28 + 4;  // Ethernet, VLAN, IPv6, UDP, BTH, largest extra, ICRC

// Reads the keys of one document and remembers the first thing wrong with it.
class Reader {
 public:
  explicit Reader(std::string_view name) : name_(name) {}

  bool failed() const { return error_.has_value(); }
  std::string error() const { return error_.value_or(""); }

  void refuse(const toml::node& where, const std::string& reason) { refuse(where.source().begin.line, reason); }
  void refuse(std::size_t line, const std::string& reason) {
    if (error_) return;
    std::ostringstream out;
    out << name_ << ":" << line << ": " << reason;
    error_ = out.str();
  }

  // Refuses keys of `table` that are not in `known`.
  void only(const toml::table& table, const std::string& prefix, std::initializer_list<std::string_view> known) {
    for (const auto& [key, node] : table) {
      bool found = false;
      for (auto k : known) found = found || key.str() == k;
      if (!found) refuse(key.source().begin.line, "unknown key " + prefix + std::string(key.str()));
    }
  }

  template <class T>
  void number(const toml::table& table, const std::string& prefix, std::string_view key, std::int64_t low,
              std::int64_t high, T& out) {
    const toml::node* node = table.get(key);
    if (!node) return;
    const auto value = node->value_exact<std::int64_t>();
    if (!value) return refuse(*node, prefix + std::string(key) + " must be an integer");
    if (*value < low || *value > high)
      return refuse(*node, prefix + std::string(key) + " is " + std::to_string(*value) + ", must be " +
                               std::to_string(low) + " to " + std::to_string(high));
    out = static_cast<T>(*value);
  }
  void boolean(const toml::table& table, const std::string& prefix, std::string_view key, bool& out) {
    const toml::node* node = table.get(key);
    if (!node) return;
    const auto value = node->value_exact<bool>();
    if (!value) return refuse(*node, prefix + std::string(key) + " must be true or false");
    out = *value;
  }
  std::optional<std::string> text(const toml::table& table, const std::string& prefix, std::string_view key) {
    const toml::node* node = table.get(key);
    if (!node) return std::nullopt;
    auto value = node->value_exact<std::string>();
    if (!value) refuse(*node, prefix + std::string(key) + " must be a string");
    return value;
  }

 private:
  std::string name_;
  std::optional<std::string> error_;
};

void read_device(Reader& r, const toml::table& t, Profile& p) {
  r.only(t, "device.", {"part_id", "vendor_id", "hw_rev", "board_id", "firmware"});
  r.number(t, "device.", "part_id", 1, 0xffff, p.part_id);
  r.number(t, "device.", "vendor_id", 1, 0xffffff, p.vendor_id);
  r.number(t, "device.", "hw_rev", 0, 0xff, p.hw_rev);
  if (auto id = r.text(t, "device.", "board_id")) {
    if (id->empty() || id->size() > 16) r.refuse(*t.get("board_id"), "device.board_id must have 1 to 16 characters");
    p.board_id = *id;
  }
  if (auto fw = r.text(t, "device.", "firmware")) {
    unsigned major = 0, minor = 0, sub = 0;
    int end = 0;
    if (std::sscanf(fw->c_str(), "%5u.%5u.%5u%n", &major, &minor, &sub, &end) != 3 ||
        static_cast<std::size_t>(end) != fw->size() || major > 0xffff || minor > 0xffff || sub > 0xffff)
      return r.refuse(*t.get("firmware"), "device.firmware must look like \"28.43.1014\"");
    p.firmware = {static_cast<std::uint16_t>(major), static_cast<std::uint16_t>(minor),
                  static_cast<std::uint16_t>(sub)};
  }
}

void read_link(Reader& r, const toml::table& t, Profile& p) {
  r.only(t, "link.", {"ports", "lag", "speed_gbps", "mtu", "gid_table_size"});
  r.number(t, "link.", "ports", 1, kMaxPorts, p.ports);
  if (p.ports == 1) p.lag = false;
  r.boolean(t, "link.", "lag", p.lag);
  if (p.lag && p.ports != 2) r.refuse(*t.get("lag"), "link.lag needs link.ports = 2");
  r.number(t, "link.", "speed_gbps", 10, 400, p.link_gbps);
  bool known = false;
  for (unsigned speed : {10u, 25u, 40u, 50u, 100u, 200u, 400u}) known = known || speed == p.link_gbps;
  if (!known) r.refuse(*t.get("speed_gbps"), "link.speed_gbps must be 10, 25, 40, 50, 100, 200 or 400");
  r.number(t, "link.", "mtu", 576, 9978, p.mtu);
  r.number(t, "link.", "gid_table_size", 8, kGidTableSize, p.gid_table_size);
}

void read_eswitch(Reader& r, const toml::table& t, Profile& p) {
  r.only(t, "eswitch.", {"mode"});
  const auto mode = r.text(t, "eswitch.", "mode");
  if (!mode) return;
  if (*mode != "switchdev" && *mode != "legacy")
    return r.refuse(*t.get("mode"), "eswitch.mode must be \"switchdev\" or \"legacy\"");
  p.eswitch = *mode == "legacy" ? EswitchMode::legacy : EswitchMode::switchdev;
}

void read_limits(Reader& r, const toml::table& t, Limits& l) {
  const std::string in = "limits.";
  r.only(t, in, {"log_max_qp",   "log_max_qp_sz",         "log_max_cq",        "log_max_cq_sz",
                 "log_max_srq",  "log_max_srq_sz",        "log_max_eq",        "log_max_eq_sz",
                 "log_max_mkey", "log_max_klm_list_size", "log_max_pd",        "log_max_transport_domain",
                 "log_max_uctx", "log_max_umem",          "log_max_mcg",       "max_qp_mcg",
                 "log_max_msg",  "log_max_rd_atomic",     "max_wqe_sz_sq",     "max_wqe_sz_rq",
                 "max_uar",      "max_q_counters",        "packet_pacing_rates", "completion_vectors",
                 "cqe_compression"});
  r.number(t, in, "log_max_qp", 4, 18, l.log_max_qp);
  r.number(t, in, "log_max_qp_sz", 4, 15, l.log_max_qp_sz);
  r.number(t, in, "log_max_cq", 4, 18, l.log_max_cq);
  r.number(t, in, "log_max_cq_sz", 4, 22, l.log_max_cq_sz);
  r.number(t, in, "log_max_srq", 0, 16, l.log_max_srq);
  r.number(t, in, "log_max_srq_sz", 1, 15, l.log_max_srq_sz);
  r.number(t, in, "log_max_eq", 2, 8, l.log_max_eq);
  r.number(t, in, "log_max_eq_sz", 6, 22, l.log_max_eq_sz);
  r.number(t, in, "log_max_mkey", 4, 20, l.log_max_mkey);
  r.number(t, in, "log_max_klm_list_size", 1, 16, l.log_max_klm_list_size);
  r.number(t, in, "log_max_pd", 2, 23, l.log_max_pd);
  r.number(t, in, "log_max_transport_domain", 1, 23, l.log_max_transport_domain);
  r.number(t, in, "log_max_uctx", 0, 16, l.log_max_uctx);
  r.number(t, in, "log_max_umem", 1, 23, l.log_max_umem);
  r.number(t, in, "log_max_mcg", 0, 12, l.log_max_mcg);
  r.number(t, in, "max_qp_mcg", 1, kMulticastMembers, l.max_qp_mcg);
  r.number(t, in, "log_max_msg", 12, 30, l.log_max_msg);
  r.number(t, in, "log_max_rd_atomic", 0, 4, l.log_max_rd_atomic);
  r.number(t, in, "max_wqe_sz_sq", 128, 1024, l.max_wqe_sz_sq);
  r.number(t, in, "max_wqe_sz_rq", 32, 512, l.max_wqe_sz_rq);
  r.number(t, in, "max_uar", 4, 1 << 20, l.max_uar);
  r.number(t, in, "max_q_counters", 1, 255, l.max_q_counters);
  r.number(t, in, "packet_pacing_rates", 0, kRates - 1, l.packet_pacing_rates);
  r.number(t, in, "cqe_compression", 0, 1, l.cqe_compression);
  r.number(t, in, "completion_vectors", 1, 31, l.completion_vectors);
}

template <int Family, std::size_t N>
void read_addresses(Reader& r, const toml::table& t, std::string_view key,
                    std::vector<std::array<std::uint8_t, N>>& out) {
  const toml::node* node = t.get(key);
  if (!node) return;
  const toml::array* list = node->as_array();
  if (!list) return r.refuse(*node, "port." + std::string(key) + " must be a list of addresses");
  out.clear();
  for (const auto& element : *list) {
    const auto text = element.value_exact<std::string>();
    std::array<std::uint8_t, N> address{};
    if (!text || inet_pton(Family, text->c_str(), address.data()) != 1)
      return r.refuse(element, "port." + std::string(key) + " holds something that is not an address");
    out.push_back(address);
  }
  if (out.size() > 64) r.refuse(*node, "port." + std::string(key) + " has more than 64 addresses");
}

void read_port(Reader& r, const toml::table& t, PortProfile& port) {
  r.only(t, "port.", {"mac", "ipv4", "ipv6", "up"});
  r.boolean(t, "port.", "up", port.up);
  read_addresses<AF_INET>(r, t, "ipv4", port.ipv4);
  read_addresses<AF_INET6>(r, t, "ipv6", port.ipv6);
  const auto mac = r.text(t, "port.", "mac");
  if (!mac) return;
  unsigned b[6];
  int end = 0;
  const bool six =
      std::sscanf(mac->c_str(), "%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &end) == 6 &&
      static_cast<std::size_t>(end) == mac->size();
  if (!six) return r.refuse(*t.get("mac"), "port.mac must look like \"02:00:00:00:00:01\"");
  if (b[0] & 1) return r.refuse(*t.get("mac"), "port.mac is a multicast address");
  for (int i = 0; i < 6; ++i) port.mac[i] = static_cast<std::uint8_t>(b[i]);
}

void read_ports(Reader& r, const toml::table& root, Profile& p) {
  const toml::node* node = root.get("port");
  if (!node) return;
  const toml::array* list = node->as_array();
  if (!list || list->size() > p.ports) return r.refuse(*node, "port must be [[port]] tables, at most one a port");
  for (std::size_t i = 0; i < list->size(); ++i) {
    const toml::table* t = list->get(i)->as_table();
    if (!t) return r.refuse(*list->get(i), "port must be [[port]] tables");
    read_port(r, *t, p.port[i]);
  }
}

template <class Read>
void section(Reader& r, const toml::table& root, std::string_view name, Read read) {
  const toml::node* node = root.get(name);
  if (!node) return;
  if (const toml::table* t = node->as_table())
    read(*t);
  else
    r.refuse(*node, std::string(name) + " must be a table");
}

}  // namespace

unsigned Profile::path_mtu_code() const {
  for (unsigned code = 5; code > 1; --code)
    if ((128u << code) + kRoceOverhead - 14 - 4 <= mtu) return code;
  return 1;
}

std::string Profile::firmware_text() const {
  char text[32];
  std::snprintf(text, sizeof text, "%u.%u.%04u", firmware[0], firmware[1], firmware[2]);
  return text;
}

Profile default_profile() { return Profile{}; }

Result<Profile> parse_profile(std::string_view text, std::string_view name) {
  Profile profile;
  Reader reader(name);
  const auto parsed = toml::parse(text, name);
  if (!parsed) {
    reader.refuse(parsed.error().source().begin.line, std::string(parsed.error().description()));
    return fail(EINVAL, reader.error());
  }
  const toml::table& root = parsed.table();
  reader.only(root, "", {"device", "link", "eswitch", "limits", "port"});
  section(reader, root, "device", [&](const toml::table& t) { read_device(reader, t, profile); });
  section(reader, root, "link", [&](const toml::table& t) { read_link(reader, t, profile); });
  section(reader, root, "eswitch", [&](const toml::table& t) { read_eswitch(reader, t, profile); });
  section(reader, root, "limits", [&](const toml::table& t) { read_limits(reader, t, profile.limits); });
  read_ports(reader, root, profile);
  if (reader.failed()) return fail(EINVAL, reader.error());
  return profile;
}

Result<Profile> load_profile(const std::string& path) {
  if (path.empty()) return default_profile();
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return fail(errno ? errno : EIO, "cannot read profile " + path);
  return parse_profile(text.str(), path);
}

}  // namespace verbena::device
