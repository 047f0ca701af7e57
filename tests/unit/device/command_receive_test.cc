// Frames from a raw send queue to receive queues: by flow tables, TIRs and tables of queues; and what commands refuse.
#include <unistd.h>

#include <atomic>
#include <set>

#include "device/shared/segments.h"
#include "prm/cqe.h"
#include "prm/flow.h"
#include "prm/misc.h"
#include "prm/raw.h"
#include "prm/wire.h"
#include "prm/wqe.h"
#include "tests/unit/device/command_fixture.h"
#include "tests/unit/device/field_list.h"

namespace verbena::device {
namespace {

class ReceiveTest : public CommandTest {
 protected:
  static constexpr std::size_t kSqAt = 0x5000, kFrameAt = 0x6000, kRqAt = 0x8000, kBufferAt = 0xa000;

  void SetUp() override {
    CommandTest::SetUp();
    domain_ = done(Command(Opcode::alloc_transport_domain));
    tisn_ = done(Command(Opcode::create_tis).set("transport_domain", domain_));
    auto key = mkey_request(prm::MkeyAccessMode::pa);
    const auto mkc = key.in.sub<prm::CreateMkeyIn::memory_key_mkey_entry>();
    mkc.set<prm::Mkc::start_addr>(memory()).set<prm::Mkc::len>(kMemory).set<prm::Mkc::lw>(1).set<prm::Mkc::lr>(1);
    lkey_ = done(Command(key)) << 8 | 0x5a;
    sqn_ = done(Command(Opcode::create_sq).set("cqn", cqn_).set("tis_lst_sz", 1).set("tis_num_0", tisn_)
                    .set("wq_type", 1).set("log_wq_stride", 6).set("log_wq_sz", 4).set("wq.pd", pd_)
                    .set("uar_page", uar_).set("wq.dbr_addr", doorbell(memory_, 3)).tail64(0, memory(kSqAt)));
    done(Command(Opcode::modify_sq).set("sqn", sqn_).set("ctx.state", 1));
  }

  std::vector<std::byte> run(const Command& c, std::size_t room = 0x500) {
    std::vector<std::byte> out(room);
    device_->execute(c.in, out);
    return out;
  }
  Syndrome syndrome(const Command& c, std::size_t room = 0x500) {
    return static_cast<Syndrome>(prm::load_be32(run(c, room).data() + 4));
  }
  std::uint32_t done(const Command& c) {
    const auto out = run(c);
    EXPECT_EQ(prm::load_be32(out.data()), 0u) << c.entry->name << ": "
                                              << reason(static_cast<Syndrome>(prm::load_be32(out.data() + 4)));
    return prm::load_be32(out.data() + 8) & 0xffffff;
  }
  void refused(Syndrome why, const Command& c, std::size_t room = 0x500) {
    const Syndrome got = syndrome(c, room);
    EXPECT_EQ(got, why) << c.entry->name << ": " << reason(got);
  }

  // Receive queue `i`, with one cache line of WQEs and a kilobyte of buffer.
  Command rq(unsigned i) {
    return Command(Opcode::create_rq).set("cqn", cqn_).set("user_index", 0x100 + i).set("vsd", 1).set("wq_type", 1)
        .set("log_wq_stride", 4).set("log_wq_sz", 2).set("wq.pd", pd_).set("wq.dbr_addr", doorbell(memory_, 8 + i))
        .tail64(0, memory(kRqAt + 0x1000 * (i / 8))).set("page_offset", i % 8 * 8);
  }
  std::uint32_t make_rq(unsigned i) {
    const std::uint32_t rqn = done(rq(i));
    done(Command(Opcode::modify_rq).set("rqn", rqn).set("ctx.state", 1));
    return rqn;
  }
  void post_recv(unsigned i, std::uint32_t length = 0x400) {
    const std::uint32_t at = posted_[i] % 4;
    prm::View<prm::DataSeg> seg(memory_ + kRqAt + 0x1000 * (i / 8) + i % 8 * 512 + at * 16);
    seg.set<prm::DataSeg::byte_count>(length).set<prm::DataSeg::lkey>(lkey_);
    seg.set<prm::DataSeg::addr>(memory(kBufferAt + 0x400 * i));
    // At once, as a program does: the device's helper thread may be looking.
    std::atomic_ref(*reinterpret_cast<std::uint32_t*>(memory_ + kMemory - 4096 + 64 * (8 + i)))
        .store(__builtin_bswap32(++posted_[i]), std::memory_order_release);
  }
  std::uint32_t direct_tir(std::uint32_t rqn, unsigned self_loopback = 3) {
    return done(Command(Opcode::create_tir).set("inline_rqn", rqn).set("transport_domain", domain_).set("self_lb_block", self_loopback));
  }
  Command table(unsigned level = 0) {
    return Command(Opcode::create_flow_table).set("log_size", 4).set("level", level);
  }
  Command group(std::uint32_t table, unsigned first, unsigned last, bool by_mac = true) {
    Command c = Command(Opcode::create_flow_group).set("table_id", table).set("start_flow_index", first).set("end_flow_index", last);
    if (by_mac) c.set("match_criteria_enable", 1).set("dmac_47_16", ~0u).set("dmac_15_0", 0xffff);
    return c;
  }
  Command entry(std::uint32_t table, std::uint32_t group, unsigned index, unsigned type, std::uint32_t id) {
    return Command(Opcode::set_flow_table_entry).set("table_id", table).set("flow_index", index).set("group_id", group)
        .set("action", 4).set("destination_list_size", 1).set("dmac_47_16", 0x02112233).set("dmac_15_0", 0x4455)
        .tail64(0, std::uint64_t{type} << 56 | std::uint64_t{id} << 32);
  }
  // A root table with one entry, for 02:11:22:33:44:55.
  void root_to(std::uint32_t tirn, std::uint32_t tag = 0) {
    const std::uint32_t t = done(table());
    done(entry(t, done(group(t, 0, 3)), 2, 2, tirn).set("flow_tag", tag));
    done(Command(Opcode::set_flow_table_root).set("table_id", t));
  }

  // UDP over IPv4 to 02:11:22:33:44:`last`, sent from the queue's memory.
  std::vector<std::byte> frame(unsigned last = 0x55, unsigned sport = 1000, bool tagged = false) {
    std::vector<std::byte> f(tagged ? 18 : 14);
    const std::uint8_t macs[] = {0x02, 0x11, 0x22, 0x33, 0x44, static_cast<std::uint8_t>(last), 2, 0, 0, 0, 0, 1};
    std::memcpy(f.data(), macs, 12);
    std::size_t at = 12;
    const auto put = [&](unsigned v) {
      f[at++] = static_cast<std::byte>(v >> 8);
      f[at++] = static_cast<std::byte>(v);
    };
    if (tagged) put(0x8100), put(0x6123);
    put(0x0800);
    f.resize(at + 20 + 8 + 32);
    const prm::View<prm::Ipv4> ip(f.data() + at);
    ip.set<prm::Ipv4::version>(4).set<prm::Ipv4::ihl>(5).set<prm::Ipv4::total_length>(60).set<prm::Ipv4::ttl>(64);
    ip.set<prm::Ipv4::protocol>(17);
    prm::store_be32(ip.data() + 12, 0x420995bb);  // 66.9.149.187 to 161.142.100.80
    prm::store_be32(ip.data() + 16, 0xa18e6450);
    std::uint32_t sum = 0;
    for (unsigned i = 0; i < 20; i += 2) sum += prm::load_be32(ip.data() + i / 4 * 4) >> (i % 4 ? 0 : 16) & 0xffff;
    ip.set<prm::Ipv4::checksum>(~((sum & 0xffff) + (sum >> 16)) & 0xffff);
    const prm::View<prm::Udp> udp(f.data() + at + 20);
    udp.set<prm::Udp::sport>(sport).set<prm::Udp::dport>(1766).set<prm::Udp::length>(40);
    f.back() = std::byte{0x7e};
    return f;
  }
  void send(const std::vector<std::byte>& f) {
    std::memcpy(memory_ + kFrameAt, f.data(), f.size());
    std::byte* wqe = memory_ + kSqAt + sent_ % 16 * 64;
    std::memset(wqe, 0, 64);
    prm::View<prm::CtrlSeg> ctrl(wqe);
    ctrl.set<prm::CtrlSeg::opcode>(prm::WqeOpcode::send).set<prm::CtrlSeg::wqe_index>(sent_);
    ctrl.set<prm::CtrlSeg::qpn>(sqn_).set<prm::CtrlSeg::ds>(3);  // no completion unless it fails
    prm::View<prm::DataSeg> seg(wqe + 32);
    seg.set<prm::DataSeg::byte_count>(static_cast<std::uint32_t>(f.size())).set<prm::DataSeg::lkey>(lkey_);
    seg.set<prm::DataSeg::addr>(memory(kFrameAt));
    prm::store_be32(memory_ + kMemory - 4096 + 64 * 3 + 4, ++sent_);
    device_->ring_sq(device_->sq_token(sqn_));
  }
  // The CQE that came, if one did.
  const std::byte* cqe() {
    const std::byte* at = memory_ + 0x1000 + ci_ % 32 * 64;
    const unsigned own =
        std::atomic_ref(*reinterpret_cast<std::uint8_t*>(memory_ + (at - memory_) + 63)).load(std::memory_order_acquire);
    // A ring of zeros looks new, but no receive, and no error, has the opcode 0.
    if (own >> 4 == 0 || own >> 4 == 0xf || (own & 1) != (ci_ >> 5 & 1)) return nullptr;
    ++ci_;
    prm::store_be32(memory_ + kMemory - 4096, ci_);
    return at;
  }
  prm::ConstView<prm::Cqe64> received(unsigned i) { return received(i, cqe()); }
  prm::ConstView<prm::Cqe64> received(unsigned i, const std::byte* at) {
    EXPECT_NE(at, nullptr);
    static const std::byte none[64]{};
    const prm::ConstView<prm::Cqe64> v(at ? at : none);
    EXPECT_EQ(v.get<prm::Cqe64::opcode>(), prm::CqeOpcode::resp_send);
    EXPECT_EQ(v.get<prm::Cqe64::srqn_uidx>(), 0x100 + i);
    return v;
  }

  std::uint32_t domain_ = 0, tisn_ = 0, lkey_ = 0, sqn_ = 0, posted_[16]{}, sent_ = 0, ci_ = 0;
};

TEST_F(ReceiveTest, AFrameReachesTheQueueThatItsAddressLeadsTo) {
  const std::uint32_t rqn = make_rq(0);
  send(frame());
  EXPECT_EQ(cqe(), nullptr) << "no root table";
  root_to(direct_tir(rqn), 0x5a5a5);
  post_recv(0);
  send(frame(0x56));
  EXPECT_EQ(cqe(), nullptr) << "another address";
  const auto f = frame();
  send(f);
  const auto v = received(0);
  EXPECT_EQ(v.get<prm::Cqe64::byte_cnt>(), f.size());
  EXPECT_EQ(v.get<prm::Cqe64::qpn>(), 0x5a5a5u);
  EXPECT_EQ(v.get<prm::Cqe64::l3_ok>(), 1u);
  EXPECT_EQ(v.get<prm::Cqe64::l4_ok>(), 1u);
  EXPECT_EQ(v.get<prm::Cqe64::l3_hdr_type>(), prm::CqeL3Header::ipv4);
  EXPECT_EQ(v.get<prm::Cqe64::l4_hdr_type>(), 2u);
  EXPECT_EQ(std::memcmp(memory_ + kBufferAt, f.data(), f.size()), 0);
  send(f);
  EXPECT_EQ(cqe(), nullptr) << "no receive WQE yet";
  post_recv(0, 20);
  send(f);
  const std::byte* error = cqe();
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(prm::ConstView<prm::ErrCqe>(error).get<prm::ErrCqe::syndrome>(), prm::CqeSyndrome::local_length_err);
  EXPECT_EQ(prm::load_be32(run(Command(Opcode::query_rq).set("rqn", rqn)).data() + 0x20) >> 20 & 0xf, 3u) << "in error";
  refused(Syndrome::rq_busy, Command(Opcode::destroy_rq).set("rqn", rqn));
}

TEST_F(ReceiveTest, TagsComeOffWhereTheyAreNotKept) {
  const std::uint32_t rqn = make_rq(0);
  root_to(direct_tir(rqn));
  post_recv(0);
  const auto tagged = frame(0x55, 1000, true), plain = frame();
  send(tagged);
  EXPECT_EQ(received(0).get<prm::Cqe64::byte_cnt>(), tagged.size());
  done(Command(Opcode::modify_rq).set("rqn", rqn).set("rq_state", 1).set("ctx.state", 1).set("modify_bitmask", 2));
  post_recv(0);
  send(tagged);
  const auto v = received(0);
  EXPECT_EQ(v.get<prm::Cqe64::byte_cnt>(), plain.size());
  EXPECT_EQ(v.get<prm::Cqe64::cv>(), 1u);
  EXPECT_EQ(v.get<prm::Cqe64::vlan_info>(), 0x6123u);
  EXPECT_EQ(std::memcmp(memory_ + kBufferAt, plain.data(), plain.size()), 0);
}

// The Toeplitz function by the values that its inventors published, and the spread over queues that follows from it.
TEST_F(ReceiveTest, QueuesShareByHash) {
  static constexpr std::uint8_t kKey[40] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
                                            0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
                                            0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};
  std::uint32_t rqns[4];
  Command rqt = Command(Opcode::create_rqt).set("rqt_max_size", 4).set("rqt_actual_size", 4);
  for (unsigned i = 0; i < 4; ++i) rqns[i] = make_rq(i);
  rqt.tail64(0, std::uint64_t{rqns[0]} << 32 | rqns[1]).tail64(1, std::uint64_t{rqns[2]} << 32 | rqns[3]);
  const std::uint32_t table = done(rqt);
  Command tir = Command(Opcode::create_tir).set("disp_type", 1).set("indirect_table", table).set("transport_domain", domain_).set("self_lb_block", 3)
                    .set("rx_hash_fn", 2).set("rx_hash_field_selector_outer.l4_prot_type", 1)
                    .set("rx_hash_field_selector_outer.selected_fields", 0xf);
  std::memcpy(tir.in.data() + 0x20 + prm::Tirc::rx_hash_toeplitz_key::offset, kKey, sizeof kKey);
  const std::uint32_t tirn = done(tir);
  root_to(tirn);
  for (unsigned i = 0; i < 4; ++i) post_recv(i), post_recv(i);
  send(frame(0x55, 2794));
  constexpr std::uint32_t kPublished = 0x51ccc178;
  auto v = received(kPublished % 4);
  EXPECT_EQ(v.get<prm::Cqe64::rss_hash_result>(), kPublished);
  EXPECT_EQ(v.get<prm::Cqe64::rss_hash_type>(), 1u << 2 | 2u << 6);
  // By addresses alone.
  done(Command(Opcode::modify_tir).set("tirn", tirn).set("bitmask.hash", 1).set("rx_hash_fn", 2)
           .set("rx_hash_field_selector_outer.selected_fields", 3));
  send(frame(0x55, 2794));
  EXPECT_EQ(received(0).get<prm::Cqe64::rss_hash_result>(), 0u) << "a key of zeros";
  std::set<std::uint32_t> queues;
  Command back = Command(Opcode::modify_tir).set("tirn", tirn).set("bitmask.hash", 1);
  std::memcpy(back.in.data() + 0x20, tir.in.data() + 0x20, prm::Tirc::size);
  done(back);
  post_recv(0);
  for (unsigned port = 0; port < 32; ++port) {
    send(frame(0x55, 1000 + port));
    const std::byte* at = cqe();
    ASSERT_NE(at, nullptr);
    const std::uint32_t queue = prm::ConstView<prm::Cqe64>(at).get<prm::Cqe64::srqn_uidx>() - 0x100;
    queues.insert(queue);
    post_recv(queue);
  }
  EXPECT_EQ(queues.size(), 4u);
  // The table shrinks to one queue.
  done(Command(Opcode::modify_rqt).set("rqtn", table).set("rqn_list", 1).set("rqt_actual_size", 1)
           .tail64(0, std::uint64_t{rqns[2]} << 32));
  for (unsigned port = 0; port < 4; ++port) {
    post_recv(2);
    send(frame(0x55, 1000 + port));
    received(2);
  }
  refused(Syndrome::rqt_busy, Command(Opcode::destroy_rqt).set("rqtn", table));
  done(Command(Opcode::destroy_rq).set("rqn", rqns[0]));
}

TEST_F(ReceiveTest, CountersComeInBulk) {
  const auto query = [](std::uint32_t first, unsigned many) {
    return Command(Opcode::query_flow_counter).set("flow_counter_id", first).set("num_of_counters", many);
  };
  const std::uint32_t bulk = done(Command(Opcode::alloc_flow_counter).set("flow_counter_bulk_log_size", 2));
  const std::uint32_t tir = direct_tir(make_rq(0)), root = done(table()), all = done(group(root, 0, 3, false));
  done(entry(root, all, 0, 2, tir).set("action", 12).set("flow_counter_list_size", 1)
           .tail64(1, std::uint64_t{bulk + 2} << 32));
  done(Command(Opcode::set_flow_table_root).set("table_id", root));
  post_recv(0);
  send(frame());
  received(0);
  const auto counts = run(query(bulk, 4), 0x10 + 4 * 0x10);
  for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(prm::load_be64(counts.data() + 0x10 + 0x10 * i), i == 2 ? 1u : 0u) << i;
  EXPECT_EQ(prm::load_be64(run(query(bulk + 2, 1)).data() + 0x10), 1u);
  refused(Syndrome::flow_counter_bulk, query(bulk, 5), 0x10 + 5 * 0x10);
  refused(Syndrome::flow_counter_bulk, query(bulk + 1, 4), 0x10 + 4 * 0x10);
  refused(Syndrome::output_length, query(bulk, 4), 0x10 + 3 * 0x10);
  refused(Syndrome::flow_counter_missing, Command(Opcode::dealloc_flow_counter).set("flow_counter_id", bulk + 1));
  refused(Syndrome::flow_counter_busy, Command(Opcode::dealloc_flow_counter).set("flow_counter_id", bulk));
  done(Command(Opcode::delete_flow_table_entry).set("table_id", root).set("flow_index", 0));
  done(Command(Opcode::dealloc_flow_counter).set("flow_counter_id", bulk));
  // A bit of the older field stands for 128 counters and their doubles. Holes are filled again.
  const std::uint32_t first = done(Command(Opcode::alloc_flow_counter).set("flow_counter_bulk", 0x20));
  const std::uint32_t second = done(Command(Opcode::alloc_flow_counter).set("flow_counter_bulk", 0x10));
  run(query(first + 4095, 1));
  refused(Syndrome::flow_counter_none_left, Command(Opcode::alloc_flow_counter).set("flow_counter_bulk_log_size", 12));
  done(Command(Opcode::dealloc_flow_counter).set("flow_counter_id", first));
  EXPECT_EQ(done(Command(Opcode::alloc_flow_counter).set("flow_counter_bulk_log_size", 12)), bulk);  // with those before
  done(Command(Opcode::dealloc_flow_counter).set("flow_counter_id", second));
  refused(Syndrome::flow_counter_bulk, Command(Opcode::alloc_flow_counter).set("flow_counter_bulk_log_size", 13));
  refused(Syndrome::flow_counter_bulk, Command(Opcode::alloc_flow_counter).set("flow_counter_bulk", 0x40));
}

TEST_F(ReceiveTest, TablesLeadToTablesAndCount) {
  const std::uint32_t tirs[] = {direct_tir(make_rq(0)), direct_tir(make_rq(1))};
  const std::uint32_t counter = done(Command(Opcode::alloc_flow_counter));
  const std::uint32_t next = done(table(2)), miss = done(table(1));
  const std::uint32_t root = done(table().set("table_miss_action", 1).set("table_miss_id", miss));
  const std::uint32_t groups[] = {done(group(root, 0, 3)), done(group(next, 0, 3, false)), done(group(miss, 0, 3, false))};
  done(entry(root, groups[0], 0, 1, next).set("action", 12).set("flow_counter_list_size", 1)
           .tail64(1, std::uint64_t{counter} << 32));
  // Any frame of the second table to both TIRs; of the table of misses to the second.
  done(entry(next, groups[1], 0, 2, tirs[0]).set("destination_list_size", 2).tail64(1, 2ull << 56 | std::uint64_t{tirs[1]} << 32));
  done(entry(miss, groups[2], 1, 2, tirs[1]));
  done(Command(Opcode::set_flow_table_root).set("table_id", root));
  for (unsigned i = 0; i < 2; ++i) post_recv(i), post_recv(i);
  const auto f = frame();
  send(f);
  received(0);
  received(1);
  send(frame(0x99));
  received(1);
  EXPECT_EQ(cqe(), nullptr);
  const auto count = run(Command(Opcode::query_flow_counter).set("flow_counter_id", counter).set("clear", 1));
  EXPECT_EQ(prm::load_be64(count.data() + 0x10), 1u);
  EXPECT_EQ(prm::load_be64(count.data() + 0x18), f.size());
  EXPECT_EQ(prm::load_be64(run(Command(Opcode::query_flow_counter).set("flow_counter_id", counter)).data() + 0x10), 0u);
  // Dropped, once the entry is changed.
  Command drop = entry(root, groups[0], 0, 1, next).set("op_mod", 1).set("modify_enable_mask", 0xd).set("action", 2)
                     .set("destination_list_size", 0);
  drop.in.resize(drop.entry->in_size);
  done(drop);
  send(f);
  EXPECT_EQ(cqe(), nullptr);
  done(Command(Opcode::dealloc_flow_counter).set("flow_counter_id", counter));
  done(Command(Opcode::delete_flow_table_entry).set("table_id", root).set("flow_index", 0));
  post_recv(1);
  send(f);
  received(1);  // a miss now
  refused(Syndrome::flow_table_busy, Command(Opcode::destroy_flow_table).set("table_id", miss));
  done(Command(Opcode::set_flow_table_root).set("op_mod", 1).set("table_id", root));
  send(f);
  EXPECT_EQ(cqe(), nullptr) << "no root any more";
  done(Command(Opcode::destroy_flow_group).set("table_id", root).set("group_id", groups[0]));
  done(Command(Opcode::destroy_flow_table).set("table_id", root));
}

// Two queues take their WQEs from one pool: as each names the next (wq_type 0), or in their order (1).
class PoolTest : public ReceiveTest, public testing::WithParamInterface<unsigned> {};
INSTANTIATE_TEST_SUITE_P(WqType, PoolTest, testing::Values(0u, 1u));

TEST_P(PoolTest, QueuesShareAPool) {
  const bool cyclic = GetParam() == 1;
  const std::uint32_t rmpn = done(Command(Opcode::create_rmp).set("ctx.state", 1).set("wq_type", GetParam()).set("log_wq_sz", 2).set("log_wq_stride", 6)
                                      .set("wq.pd", pd_).set("wq.dbr_addr", doorbell(memory_, 6)).tail64(0, memory(0x4000)));
  const auto pooled = [&](unsigned i) {
    const std::uint32_t rqn = done(Command(Opcode::create_rq).set("cqn", cqn_).set("user_index", 0x100 + i)
                                       .set("mem_rq_type", 1).set("rmpn", rmpn));
    done(Command(Opcode::modify_rq).set("rqn", rqn).set("ctx.state", 1));
    return direct_tir(rqn);
  };
  const std::uint32_t tirs[] = {pooled(0), pooled(1)};
  for (unsigned i = 0; i < 2; ++i) {
    std::byte* wqe = memory_ + 0x4000 + i * 64;
    prm::View<prm::SrqNextSeg>(wqe).set<prm::SrqNextSeg::next_wqe_index>(cyclic ? 3 : i + 1);
    prm::View<prm::DataSeg> seg(wqe + 16);
    seg.set<prm::DataSeg::byte_count>(0x400).set<prm::DataSeg::lkey>(lkey_).set<prm::DataSeg::addr>(memory(kBufferAt + 0x400 * i));
    prm::View<prm::DataSeg>(wqe + 32).set<prm::DataSeg::lkey>(prm::kInvalidLkey);
  }
  prm::store_be32(memory_ + kMemory - 4096 + 64 * 6, 2);
  const std::uint32_t t = done(table()), g = done(group(t, 0, 3, false));
  done(entry(t, g, 0, 2, tirs[0]).set("destination_list_size", 2).tail64(1, 2ull << 56 | std::uint64_t{tirs[1]} << 32));
  done(Command(Opcode::set_flow_table_root).set("table_id", t));
  const auto f = frame();
  send(f);
  EXPECT_EQ(received(0).get<prm::Cqe64::wqe_counter>(), 0u);
  EXPECT_EQ(received(1).get<prm::Cqe64::wqe_counter>(), 1u);
  EXPECT_EQ(std::memcmp(memory_ + kBufferAt + 0x400, f.data(), f.size()), 0);
  send(f);
  EXPECT_EQ(cqe(), nullptr) << "the pool is empty";
  refused(Syndrome::srq_busy, Command(Opcode::destroy_rmp).set("rmpn", rmpn));
}

TEST_F(ReceiveTest, AFrameWaitsForAReceiverThatIsLate) {
  root_to(direct_tir(make_rq(0)));
  send(frame());
  post_recv(0);
  EXPECT_EQ(cqe(), nullptr) << "nothing was ever posted: lost at once";
  const std::uint32_t set = done(Command(Opcode::alloc_q_counter));
  const auto counts = run(Command(Opcode::query_q_counter).set("counter_set_id", set));
  EXPECT_EQ(prm::ConstView<prm::QueryQCounterOut>(counts.data()).get<prm::QueryQCounterOut::out_of_buffer>(), 1u);
  send(frame());
  received(0);
  send(frame(0x55, 2000));
  EXPECT_EQ(cqe(), nullptr);
  post_recv(0);
  // The link looks again when its timer says so, not at every ring.
  const std::byte* came = nullptr;
  for (int i = 0; i < 2000 && !(came = cqe()); ++i) {
    usleep(20);
    device_->ring_sq(device_->sq_token(sqn_));
  }
  received(0, came);
  EXPECT_EQ(std::memcmp(memory_ + kBufferAt + 34, frame(0x55, 2000).data() + 34, 2), 0) << "the frame that waited";
  EXPECT_EQ(cqe(), nullptr) << "once";
}

TEST_F(ReceiveTest, OwnFramesComeInOnlyWhereTheyAreLetIn) {
  const std::uint32_t tirn = direct_tir(make_rq(0), 2);
  root_to(tirn);
  post_recv(0);
  send(frame());
  EXPECT_EQ(cqe(), nullptr);
  done(Command(Opcode::modify_tir).set("tirn", tirn).set("bitmask.self_lb_en", 1).set("self_lb_block", 1));
  send(frame());
  received(0);
}

TEST_F(ReceiveTest, NoMoreReceiveQueuesThanTheDeviceSays) {
  TearDown();
  profile_.limits.log_max_qp = 4;
  SetUp();
  for (unsigned i = 0; i < 16; ++i) done(rq(i));
  refused(Syndrome::rq_none_left, rq(0));
}

TEST_F(ReceiveTest, WhatIsNoReceiveQueue) {
  const auto rqn = make_rq(0);
  refused(Syndrome::rq_initial_state, rq(1).set("ctx.state", 1));
  for (const char* f : {"hairpin", "scatter_fcs", "delay_drop_en", "rlky"}) refused(Syndrome::rq_offload, rq(1).set(f, 1));
  refused(Syndrome::rq_ts_format, rq(1).set("ts_format", 2));
  refused(Syndrome::rq_wq_type, rq(1).set("wq_type", 3));
  refused(Syndrome::rq_mem_type, rq(1).set("mem_rq_type", 7));
  refused(Syndrome::rq_wq_type, rq(1).set("wq_signature", 1));
  refused(Syndrome::rq_size, rq(1).set("log_wq_sz", 31));
  refused(Syndrome::rq_size, rq(1).set("log_wq_stride", 3));
  refused(Syndrome::rq_pd, rq(1).set("wq.pd", 4711));
  refused(Syndrome::rq_cq, rq(1).set("cqn", 4711));
  refused(Syndrome::rq_rmp, rq(1).set("mem_rq_type", 1).set("rmpn", 4711));
  refused(Syndrome::rq_counter, rq(1).set("counter_set_id", 99));
  const auto modify = [&] { return Command(Opcode::modify_rq).set("rqn", rqn).set("rq_state", 1).set("ctx.state", 1); };
  refused(Syndrome::rq_missing, modify().set("rqn", make_qp()));
  refused(Syndrome::rq_current_state, modify().set("rq_state", 0));
  refused(Syndrome::rq_bitmask, modify().set("modify_bitmask", 4));
  refused(Syndrome::rq_counter, modify().set("modify_bitmask", 8).set("counter_set_id", 99));
  done(modify().set("ctx.state", 3));
  refused(Syndrome::rq_new_state, modify().set("rq_state", 3));
  refused(Syndrome::rq_new_state, modify().set("rq_state", 3).set("ctx.state", 2));

  const auto rqt = [&] { return Command(Opcode::create_rqt).set("rqt_max_size", 2).set("rqt_actual_size", 1).tail64(0, std::uint64_t{rqn} << 32); };
  refused(Syndrome::rqt_kind, rqt().set("list_q_type", 1));
  refused(Syndrome::rqt_size, rqt().set("rqt_max_size", 0));
  refused(Syndrome::rqt_size, rqt().set("rqt_max_size", 513));
  refused(Syndrome::rqt_actual_size, rqt().set("rqt_max_size", 4).set("rqt_actual_size", 3));
  refused(Syndrome::rqt_actual_size, rqt().set("rqt_actual_size", 4));
  refused(Syndrome::rqt_list_short, Command(Opcode::create_rqt).set("rqt_max_size", 2).set("rqt_actual_size", 1));
  refused(Syndrome::rqt_rq, rqt().tail64(0, std::uint64_t{4711} << 32));
  refused(Syndrome::rqt_missing, Command(Opcode::query_rqt).set("rqtn", 77));
  const std::uint32_t table = done(rqt());
  for (unsigned i = 2; i < kMaxRqTables; ++i) done(rqt());
  refused(Syndrome::rqt_none_left, rqt());

  const auto tir = [&] { return Command(Opcode::create_tir).set("inline_rqn", rqn).set("transport_domain", domain_); };
  const auto spread = [&] { return tir().set("disp_type", 1).set("indirect_table", table).set("rx_hash_fn", 1); };
  for (const char* f : {"tls_en", "tunneled_offload_en", "packet_merge_mask"}) refused(Syndrome::tir_offload, tir().set(f, 1));
  refused(Syndrome::tir_domain, tir().set("transport_domain", 4711));
  refused(Syndrome::tir_rq, tir().set("inline_rqn", 4711));
  refused(Syndrome::tir_rqt, spread().set("indirect_table", 4711));
  refused(Syndrome::tir_disp_type, spread().set("disp_type", 2));
  refused(Syndrome::tir_hash, spread().set("rx_hash_fn", 0));
  refused(Syndrome::tir_hash, spread().set("rx_hash_fn", 3));
  refused(Syndrome::tir_hash, spread().set("rx_hash_field_selector_outer.selected_fields", 0x10));
  refused(Syndrome::tir_missing, Command(Opcode::query_tir).set("tirn", 77));
  const std::uint32_t tirn = done(spread());
  refused(Syndrome::tir_bitmask, Command(Opcode::modify_tir).set("tirn", tirn).set("packet_merge", 1));
  root_to(tirn);
  refused(Syndrome::tir_busy, Command(Opcode::destroy_tir).set("tirn", tirn));
  for (unsigned i = 2; i < kMaxTirs; ++i) done(tir());
  refused(Syndrome::tir_none_left, tir());
  refused(Syndrome::td_busy, Command(Opcode::dealloc_transport_domain).set("transport_domain", domain_));
}

// Tables of RoCE packets are a world of their own: they lead to each other only, and may allow.
TEST_F(ReceiveTest, RocePacketsHaveTablesOfTheirOwn) {
  constexpr unsigned kReceived = 7, kSent = 8;
  const std::uint32_t tirn = direct_tir(make_rq(0)), frames = done(table(60));
  const std::uint32_t sent = done(table(200).set("table_type", kSent)), next = done(table(201).set("table_type", kSent));
  const std::uint32_t received = done(table(255).set("table_type", kReceived));
  refused(Syndrome::flow_table_size, table(65));
  refused(Syndrome::flow_table_missing, Command(Opcode::query_flow_table).set("table_id", sent));
  done(Command(Opcode::query_flow_table).set("table_type", kSent).set("table_id", sent));
  refused(Syndrome::flow_miss_table,
          table(1).set("table_type", kReceived).set("table_miss_action", 1).set("table_miss_id", sent));
  refused(Syndrome::flow_table_missing, group(sent, 0, 3, false));
  const std::uint32_t g = done(group(sent, 0, 3, false).set("table_type", kSent));
  const auto fte = [&](unsigned index, unsigned type, std::uint32_t id) {
    return entry(sent, g, index, type, id).set("table_type", kSent);
  };
  refused(Syndrome::flow_destination, fte(0, 2, tirn));
  refused(Syndrome::flow_destination, fte(0, 1, frames));
  refused(Syndrome::flow_destination, fte(0, 1, received));
  done(fte(0, 1, next));
  refused(Syndrome::flow_action, fte(1, 1, next).set("action", 5));
  done(Command(Opcode::set_flow_table_entry).set("table_type", kSent).set("table_id", sent).set("group_id", g)
           .set("flow_index", 1).set("action", 1));
  const auto root = [&](std::uint32_t id, unsigned op) {
    return Command(Opcode::set_flow_table_root).set("table_type", kSent).set("table_id", id).set("op_mod", op);
  };
  done(root(sent, 0));
  done(Command(Opcode::delete_flow_table_entry).set("table_type", kSent).set("table_id", sent).set("flow_index", 0));
  done(Command(Opcode::delete_flow_table_entry).set("table_type", kSent).set("table_id", sent).set("flow_index", 1));
  done(Command(Opcode::destroy_flow_group).set("table_type", kSent).set("table_id", sent).set("group_id", g));
  const auto destroy = Command(Opcode::destroy_flow_table).set("table_type", kSent).set("table_id", sent);
  refused(Syndrome::flow_table_busy, destroy);
  done(root(next, 1));  // is not the root
  refused(Syndrome::flow_table_busy, destroy);
  done(root(sent, 1));
  done(destroy);
}

TEST_F(ReceiveTest, WhatIsNoFlow) {
  const std::uint32_t tirn = direct_tir(make_rq(0));
  refused(Syndrome::flow_vport, table().set("vport_number", 1));
  refused(Syndrome::flow_table_type, table().set("table_type", 1));
  for (const char* f : {"reformat_en", "decap_en", "sw_owner", "termination_table"}) refused(Syndrome::flow_table_flags, table().set(f, 1));
  refused(Syndrome::flow_table_size, table().set("log_size", 14));
  refused(Syndrome::flow_miss_table, table().set("table_miss_action", 1).set("table_miss_id", 77));
  const std::uint32_t t = done(table(3));
  refused(Syndrome::flow_miss_table, table(3).set("table_miss_action", 1).set("table_miss_id", t));
  refused(Syndrome::flow_table_missing, Command(Opcode::query_flow_table).set("table_id", 77));
  refused(Syndrome::flow_modify_select, Command(Opcode::modify_flow_table).set("table_id", t).set("modify_field_select", 2));
  refused(Syndrome::flow_root, Command(Opcode::set_flow_table_root).set("table_id", t).set("underlay_qpn", 5));
  refused(Syndrome::flow_group_type, group(t, 0, 1).set("match_definer_id", 1));
  refused(Syndrome::flow_group_range, group(t, 2, 1));
  refused(Syndrome::flow_group_range, group(t, 0, 16));
  refused(Syndrome::flow_criteria, group(t, 0, 1).set("match_criteria_enable", 3));
  refused(Syndrome::flow_criteria, group(t, 0, 1).set("match_criteria_enable", 0));
  const std::uint32_t g = done(group(t, 0, 3));
  refused(Syndrome::flow_group_range, group(t, 3, 4));
  refused(Syndrome::flow_group_missing, Command(Opcode::query_flow_group).set("table_id", t).set("group_id", 77));
  const auto fte = [&] { return entry(t, g, 1, 2, tirn); };
  refused(Syndrome::flow_op_mod, fte().set("op_mod", 2));
  refused(Syndrome::flow_entry_missing, fte().set("op_mod", 1));
  refused(Syndrome::flow_group_missing, fte().set("group_id", 77));
  refused(Syndrome::flow_index, fte().set("flow_index", 4));
  for (const unsigned action : {0u, 1u, 6u, 0x44u}) refused(Syndrome::flow_action, fte().set("action", action));
  for (const char* f : {"push_vlan.vid", "packet_reformat_id", "modify_header_id", "extended_destination"})
    refused(Syndrome::flow_unsupported, fte().set(f, 1));
  refused(Syndrome::flow_lists, fte().set("destination_list_size", 2));
  refused(Syndrome::flow_lists, fte().set("action", 12));
  refused(Syndrome::flow_destination, entry(t, g, 1, 0, 0));
  refused(Syndrome::flow_destination, entry(t, g, 1, 1, t));
  refused(Syndrome::flow_destination_missing, entry(t, g, 1, 2, 77));
  refused(Syndrome::flow_counter_missing, fte().set("action", 12).set("flow_counter_list_size", 1).tail64(1, 77ull << 32));
  done(fte());
  refused(Syndrome::flow_entry_exists, fte());
  refused(Syndrome::flow_modify_mask, fte().set("op_mod", 1).set("modify_enable_mask", 0x10));
  refused(Syndrome::flow_group_busy, Command(Opcode::destroy_flow_group).set("table_id", t).set("group_id", g));
  refused(Syndrome::flow_table_busy, Command(Opcode::destroy_flow_table).set("table_id", t));
  refused(Syndrome::flow_counter_bulk, Command(Opcode::alloc_flow_counter).set("flow_counter_bulk", 3));
  refused(Syndrome::flow_counter_missing, Command(Opcode::query_flow_counter).set("flow_counter_id", 77));
  const std::uint32_t counter = done(Command(Opcode::alloc_flow_counter));
  refused(Syndrome::output_length, Command(Opcode::query_flow_counter).set("flow_counter_id", counter), 0x18);
  done(entry(t, g, 2, 2, tirn).set("action", 12).set("flow_counter_list_size", 1).tail64(1, std::uint64_t{counter} << 32));
  refused(Syndrome::flow_counter_busy, Command(Opcode::dealloc_flow_counter).set("flow_counter_id", counter));
  for (unsigned i = 2; i < kMaxFlowCounters; ++i) done(Command(Opcode::alloc_flow_counter));
  refused(Syndrome::flow_counter_none_left, Command(Opcode::alloc_flow_counter));
  const std::uint32_t wide = done(table(4).set("log_size", 13));
  const std::uint32_t all = done(group(wide, 0, 8191, false));
  for (unsigned i = 2; i < kMaxFlowEntries; ++i) done(entry(wide, all, i, 2, tirn));
  refused(Syndrome::flow_entry_none_left, entry(wide, all, 0, 2, tirn));
  for (unsigned i = 3; i < kMaxFlowTables; ++i) done(table());
  refused(Syndrome::flow_table_none_left, table());
}

}  // namespace
}  // namespace verbena::device
