// What the program on Ethernet is made of: frames, a side with a raw packet QP, flows.
#pragma once

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <vector>

#include "devx_world.h"

using Mac = std::array<std::uint8_t, 6>;
constexpr Mac kServer{0x02, 0xaa, 0, 0, 0, 1}, kOther{0x02, 0xaa, 0, 0, 0, 2}, kClient{0x02, 0xaa, 0, 0, 0, 3};
constexpr Mac kGroup{0x01, 0, 0x5e, 1, 2, 3};
constexpr std::size_t kFrame = 128, kSlots = 64, kRoom = 256;
constexpr double kPatienceMs = 2000, kSilenceMs = 20;

inline std::uint16_t sum_of(const std::uint8_t* bytes, std::size_t n, std::uint32_t sum = 0) {
  for (std::size_t i = 0; i + 1 < n; i += 2) sum += static_cast<std::uint32_t>(bytes[i] << 8 | bytes[i + 1]);
  if (n % 2) sum += static_cast<std::uint32_t>(bytes[n - 1] << 8);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

// An IPv4 UDP frame; checksums are zero.
inline std::vector<std::uint8_t> make_frame(const Mac& to, std::uint8_t source_ip = 1, std::uint16_t source_port = 1000,
                                     std::size_t bytes = kFrame) {
  std::vector<std::uint8_t> f(bytes);
  std::ranges::copy(to, f.begin());
  std::ranges::copy(kClient, f.begin() + 6);
  const auto be16 = [&](std::size_t at, std::size_t v) {
    f[at] = static_cast<std::uint8_t>(v >> 8);
    f[at + 1] = static_cast<std::uint8_t>(v);
  };
  be16(12, 0x0800);
  f[14] = 0x45;
  be16(16, bytes - 14);
  f[22] = 64;
  f[23] = 17;
  const std::uint8_t ips[] = {10, 0, 0, source_ip, 10, 0, 0, 99};
  std::ranges::copy(ips, f.begin() + 26);
  be16(34, source_port);
  be16(36, 2000);
  be16(38, bytes - 34);
  for (std::size_t i = 42; i < bytes; ++i) f[i] = static_cast<std::uint8_t>(i);
  return f;
}

// A context of its own, hence a transport domain of its own, with a raw packet QP.
struct Side {
  World w = open_devx();
  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;
  ibv_mr* mr = nullptr;
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(kSlots * kRoom);

  explicit Side(bool with_qp = true) {
    CHECK((cq = ibv_create_cq(w.context, 256, nullptr, nullptr, 0)));
    CHECK((mr = ibv_reg_mr(w.pd, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE)));
    if (!with_qp) return;
    qp = make();
    to_rts(qp);
    for (unsigned i = 0; i < kSlots / 2; ++i) receive(i);
  }
  ~Side() {
    if (qp) CHECK(!ibv_destroy_qp(qp));
    CHECK(!ibv_dereg_mr(mr) && !ibv_destroy_cq(cq));
    close_world(&w);
  }
  ibv_qp* make() {
    ibv_qp_init_attr init = {};
    init.send_cq = init.recv_cq = cq;
    init.cap = {kSlots, kSlots, 2, 2, 192};
    init.qp_type = IBV_QPT_RAW_PACKET;
    ibv_qp* made = ibv_create_qp(w.pd, &init);
    CHECK(made);
    return made;
  }
  static void to_rts(ibv_qp* qp) {
    ibv_qp_attr attr = {};
    attr.port_num = 1;
    CHECK(!go(qp, IBV_QPS_INIT, attr, IBV_QP_PORT) && !go(qp, IBV_QPS_RTR, attr, 0) && !go(qp, IBV_QPS_RTS, attr, 0));
  }
  std::uint8_t* slot(unsigned i) { return memory.data() + i * kRoom; }
  ibv_sge entry(unsigned i, std::size_t bytes) {
    return {reinterpret_cast<std::uintptr_t>(slot(i)), static_cast<std::uint32_t>(bytes), mr->lkey};
  }
  void receive(unsigned i) {
    ibv_sge sge = entry(i, kRoom);
    ibv_recv_wr wr = {}, *bad = nullptr;
    wr.wr_id = i;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    CHECK(!ibv_post_recv(qp, &wr, &bad));
  }
  int send(const std::vector<std::uint8_t>& frame, unsigned flags = IBV_SEND_SIGNALED) {
    const unsigned last = kSlots - 1;
    std::ranges::copy(frame, slot(last));
    ibv_sge sge = entry(last, frame.size());
    ibv_send_wr wr = {}, *bad = nullptr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = flags | IBV_SEND_SIGNALED;
    const int error = ibv_post_send(qp, &wr, &bad);
    if (!error) CHECK(wait(kPatienceMs).opcode == IBV_WC_SEND);
    return error;
  }
  ibv_wc wait(double ms) {
    ibv_wc wc = {};
    for (const double end = now_ms() + ms; now_ms() < end;) {
      if (!ibv_poll_cq(cq, 1, &wc)) continue;
      CHECK(wc.status == IBV_WC_SUCCESS);
      return wc;
    }
    wc.opcode = IBV_WC_DRIVER1;  // nothing came
    return wc;
  }
  // The next frame must be this one.
  ibv_wc expect(int line, const std::vector<std::uint8_t>& frame, bool same_sums = true) {
    const ibv_wc wc = wait(kPatienceMs);
    EXPECT(wc.opcode == IBV_WC_RECV, "line %d: no frame", line);
    if (wc.opcode != IBV_WC_RECV) return wc;
    const std::uint8_t* got = slot(static_cast<unsigned>(wc.wr_id));
    EXPECT(wc.byte_len == frame.size(), "line %d: %u bytes", line, wc.byte_len);
    EXPECT(!same_sums || std::equal(frame.begin(), frame.end(), got), "line %d: other data", line);
    if (qp) receive(static_cast<unsigned>(wc.wr_id));
    return wc;
  }
  void expect_nothing(int line) {
    const ibv_wc wc = wait(kSilenceMs);
    EXPECT(wc.opcode != IBV_WC_RECV, "line %d: a frame of %u bytes", line, wc.byte_len);
  }
};
#define RECEIVED(side, ...) (side).expect(__LINE__, __VA_ARGS__)
#define SILENT(side) (side).expect_nothing(__LINE__)

// ---- flows of the verbs ----

struct Rule {
  struct alignas(8) {
    ibv_flow_attr attr;
    std::byte specs[512];
  } all = {};
  std::size_t used = 0;
  explicit Rule(ibv_flow_attr_type type = IBV_FLOW_ATTR_NORMAL, unsigned priority = 0, unsigned flags = 0) {
    all.attr.type = type;
    all.attr.size = sizeof all.attr;
    all.attr.priority = static_cast<std::uint16_t>(priority);
    all.attr.port = 1;
    all.attr.flags = flags;
  }
  template <class Spec>
  Rule& add(const Spec& spec) {
    std::memcpy(reinterpret_cast<std::byte*>(&all.attr + 1) + used, &spec, sizeof spec);
    used += sizeof spec;
    all.attr.size = static_cast<std::uint16_t>(all.attr.size + sizeof spec);
    ++all.attr.num_of_specs;
    return *this;
  }
  Rule& to(const Mac& mac) {
    ibv_flow_spec_eth spec = {};
    spec.type = IBV_FLOW_SPEC_ETH;
    spec.size = sizeof spec;
    std::ranges::copy(mac, spec.val.dst_mac);
    std::memset(spec.mask.dst_mac, 0xff, 6);
    return add(spec);
  }
  Rule& from_ip(std::uint8_t last) {
    ibv_flow_spec_ipv4 spec = {};
    spec.type = IBV_FLOW_SPEC_IPV4;
    spec.size = sizeof spec;
    spec.val.src_ip = htonl(0x0a000000u | last);
    spec.mask.src_ip = ~0u;
    return add(spec);
  }
  Rule& udp(std::uint16_t port, ibv_flow_spec_type type = IBV_FLOW_SPEC_UDP) {
    ibv_flow_spec_tcp_udp spec = {};
    spec.type = type;
    spec.size = sizeof spec;
    spec.val.src_port = htons(port);
    spec.mask.src_port = 0xffff;
    return add(spec);
  }
  Rule& tag(std::uint32_t value) {
    ibv_flow_spec_action_tag spec = {};
    spec.type = IBV_FLOW_SPEC_ACTION_TAG;
    spec.size = sizeof spec;
    spec.tag_id = value;
    return add(spec);
  }
  Rule& drop() {
    ibv_flow_spec_action_drop spec = {};
    spec.type = IBV_FLOW_SPEC_ACTION_DROP;
    spec.size = sizeof spec;
    return add(spec);
  }
  Rule& count(ibv_counters* counters) {
    ibv_flow_spec_counter_action spec = {};
    spec.type = IBV_FLOW_SPEC_ACTION_COUNT;
    spec.size = sizeof spec;
    spec.counters = counters;
    return add(spec);
  }
  ibv_flow* make(ibv_qp* qp) {
    errno = 0;
    return ibv_create_flow(qp, &all.attr);
  }
  int error(ibv_qp* qp) {
    ibv_flow* flow = make(qp);
    if (flow) ibv_destroy_flow(flow);
    return flow ? 0 : errno;
  }
};
struct Flow {
  ibv_flow* flow;
  Flow(Rule rule, ibv_qp* qp) : flow(rule.make(qp)) { CHECK(flow); }
  ~Flow() { CHECK(!ibv_destroy_flow(flow)); }
};
