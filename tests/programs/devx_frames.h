// Frames from an SQ by flow tables, TIR and RQT to RQs, all made by commands in memory of the program.
#pragma once

#include "devx_pieces.h"
#include "prm/flow.h"

struct Frames {
  static constexpr unsigned kLogSq = 4, kLogRq = 4, kBytes = 100;
  World* w;
  Memory& m;
  CompletionQueue cq{m}, in{m};
  std::size_t sq_ring = m.take(64u << kLogSq), sq_record = m.take(64), data = m.take(1024);
  std::size_t rq_ring[2] = {m.take(16u << kLogRq), m.take(16u << kLogRq)}, rq_record[2] = {m.take(64), m.take(64)};
  Object domain, tis, sq, rq[2], rqt, tir, table, next, group, rest, counter, entry, rest_entry;
  std::uint32_t posted[2] = {};
  std::uint16_t pi = 0;

  Frames(World* world, Memory& memory) : w(world), m(memory) {
    Command<prm::AllocTransportDomainIn, prm::AllocTransportDomainOut> td(prm::Opcode::alloc_transport_domain);
    domain = made<prm::AllocTransportDomainOut::transport_domain>(w, td, prm::Opcode::dealloc_transport_domain);
    make_sender();
    for (unsigned i = 0; i < 2; ++i) make_receiver(i);
    make_steering();
  }
  void make_sender() {
    Command<prm::CreateTisIn, prm::CreateTisOut> create(prm::Opcode::create_tis);
    create.in.sub<prm::CreateTisIn::ctx>().set<prm::Tisc::transport_domain>(domain.number);
    tis = made<prm::CreateTisOut::tisn>(w, create, prm::Opcode::destroy_tis);
    Command<prm::CreateSqIn, prm::CreateSqOut> make(prm::Opcode::create_sq);
    const auto sqc = make.in.sub<prm::CreateSqIn::ctx>();
    sqc.set<prm::Sqc::cqn>(cq.object.number).set<prm::Sqc::tis_lst_sz>(1).set<prm::Sqc::tis_num_0>(tis.number);
    sqc.set<prm::Sqc::ts_format>(prm::TimestampFormat::standard);
    m.fill_wq(sqc.sub<prm::Sqc::wq>(), prm::WqType::cyclic, 6, kLogSq, sq_ring, sq_record);
    sq = made<prm::CreateSqOut::sqn>(w, make, prm::Opcode::destroy_sq);
    Command<prm::ModifySqIn, prm::ModifySqOut> ready(prm::Opcode::modify_sq);
    ready.in.set<prm::ModifySqIn::sqn>(sq.number).set<prm::ModifySqIn::sq_state>(prm::SqState::rst);
    ready.in.sub<prm::ModifySqIn::ctx>().set<prm::Sqc::state>(prm::SqState::rdy);
    MODIFY(ready, sq);
  }
  void make_receiver(unsigned i) {
    Command<prm::CreateRqIn, prm::CreateRqOut> create(prm::Opcode::create_rq);
    const auto rqc = create.in.sub<prm::CreateRqIn::ctx>();
    rqc.set<prm::Rqc::cqn>(in.object.number)
        .set<prm::Rqc::user_index>(0x50 + i)
        .set<prm::Rqc::ts_format>(prm::TimestampFormat::standard);
    m.fill_wq(rqc.sub<prm::Rqc::wq>(), prm::WqType::cyclic, 4, kLogRq, rq_ring[i], rq_record[i]);
    rq[i] = made<prm::CreateRqOut::rqn>(w, create, prm::Opcode::destroy_rq);
    Command<prm::ModifyRqIn, prm::ModifyRqOut> ready(prm::Opcode::modify_rq);
    ready.in.set<prm::ModifyRqIn::rqn>(rq[i].number).set<prm::ModifyRqIn::rq_state>(prm::RqState::rst);
    ready.in.sub<prm::ModifyRqIn::ctx>().set<prm::Rqc::state>(prm::RqState::rdy);
    MODIFY(ready, rq[i]);
    for (unsigned n = 0; n < 8; ++n) {
      m.fill_data(m.at(rq_ring[i] + n * 16), data + 256 + 256 * i, 256);
      store_be32(m.base + rq_record[i], ++posted[i]);
    }
  }
  Object make_table(unsigned level) {
    Command<prm::CreateFlowTableIn, prm::CreateFlowTableOut> create(prm::Opcode::create_flow_table);
    create.in.sub<prm::CreateFlowTableIn::flow_table_context>()
        .set<prm::FlowTableContext::log_size>(4)
        .set<prm::FlowTableContext::level>(level);
    return made<prm::CreateFlowTableOut::table_id>(w, create, prm::Opcode::destroy_flow_table);
  }
  // Matches by the type of Ethernet frames, or takes all.
  Object make_group(const Object& of, bool by_type) {
    using In = prm::CreateFlowGroupIn;
    Command<In, prm::CreateFlowGroupOut> create(prm::Opcode::create_flow_group);
    create.in.set<In::table_id>(of.number).set<In::end_flow_index>(7).set<In::match_criteria_enable>(by_type);
    if (by_type)
      create.in.sub<In::match_criteria>()
          .sub<prm::FteMatchParam::outer_headers>()
          .set<prm::FteMatchSetLyr24::ethertype>(0xffff);
    return made<prm::CreateFlowGroupOut::group_id>(w, create, prm::Opcode::destroy_flow_group);
  }
  Object make_entry(const Object& of, const Object& in_group, bool counts) {
    using C = prm::FlowContext;
    Command<prm::SetFteIn, prm::SetFteOut> set(prm::Opcode::set_flow_table_entry);
    set.in.set<prm::SetFteIn::table_id>(of.number).set<prm::SetFteIn::flow_index>(3);
    const auto flow = set.in.sub<prm::SetFteIn::flow_context>();
    flow.set<C::group_id>(in_group.number).set<C::destination_list_size>(1).set<C::flow_tag>(counts ? 0x77 : 0x88);
    flow.set<C::action>(counts ? prm::FlowAction::fwd_dest | prm::FlowAction::count : prm::FlowAction::fwd_dest)
        .set<C::flow_counter_list_size>(counts);
    if (counts)
      flow.sub<C::match_value>().sub<prm::FteMatchParam::outer_headers>().set<prm::FteMatchSetLyr24::ethertype>(0x88b5);
    std::byte tail[16]{};
    prm::View<prm::DestFormatStruct>(tail)
        .set<prm::DestFormatStruct::destination_type>(static_cast<unsigned>(prm::FlowDestination::tir))
        .set<prm::DestFormatStruct::destination_id>(tir.number);
    prm::store_be32(tail + 8, counter.number);
    return made_with(w, set, std::span(tail).first(counts ? 16 : 8), prm::Opcode::delete_flow_table_entry);
  }
  void make_steering() {
    using Rqtc = prm::Rqtc;
    Command<prm::CreateRqtIn, prm::CreateRqtOut> create(prm::Opcode::create_rqt);
    create.in.sub<prm::CreateRqtIn::rqt_context>().set<Rqtc::rqt_max_size>(1).set<Rqtc::rqt_actual_size>(1);
    std::byte one[4];
    prm::store_be32(one, rq[0].number);
    rqt = made_with(w, create, one, prm::Opcode::destroy_rqt);
    Command<prm::CreateTirIn, prm::CreateTirOut> make(prm::Opcode::create_tir);
    const auto tirc = make.in.sub<prm::CreateTirIn::ctx>();
    tirc.set<prm::Tirc::disp_type>(prm::TirDispType::indirect)
        .set<prm::Tirc::indirect_table>(rqt.number)
        .set<prm::Tirc::transport_domain>(domain.number);
    tirc.set<prm::Tirc::rx_hash_fn>(prm::RxHashFn::inverted_xor8);
    tir = made<prm::CreateTirOut::tirn>(w, make, prm::Opcode::destroy_tir);
    Command<prm::AllocFlowCounterIn, prm::AllocFlowCounterOut> alloc(prm::Opcode::alloc_flow_counter);
    counter = made<prm::AllocFlowCounterOut::flow_counter_id>(w, alloc, prm::Opcode::dealloc_flow_counter);
    table = make_table(40);
    next = make_table(41);
    group = make_group(table, true);
    rest = make_group(next, false);
    entry = make_entry(table, group, true);
    rest_entry = make_entry(next, rest, false);
  }
  ~Frames() {  // what others stand on goes last
    for (Object* o :
         {&entry, &rest_entry, &group, &rest, &table, &next, &counter, &tir, &rqt, &rq[0], &rq[1], &sq, &tis, &domain})
      o->drop();
  }
  Frames(const Frames&) = delete;
  Frames& operator=(const Frames&) = delete;

  void send(unsigned type) {
    const unsigned char head[14] = {2,
                                    0xbb,
                                    0,
                                    0,
                                    0,
                                    9,
                                    2,
                                    0xbb,
                                    0,
                                    0,
                                    0,
                                    1,
                                    static_cast<unsigned char>(type >> 8),
                                    static_cast<unsigned char>(type)};
    std::memcpy(m.base + data, head, sizeof head);
    std::byte* wqe = m.at(sq_ring + (pi & ((1u << kLogSq) - 1)) * 64);
    std::memset(wqe, 0, 64);
    prm::View<prm::CtrlSeg> ctrl(wqe);
    ctrl.set<prm::CtrlSeg::wqe_index>(pi)
        .set<prm::CtrlSeg::opcode>(prm::WqeOpcode::send)
        .set<prm::CtrlSeg::qpn>(sq.number);
    ctrl.set<prm::CtrlSeg::ds>(3).set<prm::CtrlSeg::ce>(prm::WqeCompletion::always);
    m.fill_data(wqe + 32, data, kBytes);
    store_be32(m.base + sq_record + 4, ++pi);
    *static_cast<volatile std::uint64_t*>(m.uar->reg_addr) = *reinterpret_cast<std::uint64_t*>(wqe);
    CHECK(cq.next().get<prm::Cqe64::opcode>() == prm::CqeOpcode::req);
  }
  // Which queue got the frame, and with which tag (it stands where other CQEs have a sender).
  void arrives(unsigned queue, std::uint32_t tag) {
    const auto cqe = in.next();
    CHECK(cqe.get<prm::Cqe64::opcode>() == prm::CqeOpcode::resp_send && cqe.get<prm::Cqe64::byte_cnt>() == kBytes);
    CHECK(cqe.get<prm::Cqe64::srqn_uidx>() == 0x50 + queue && cqe.get<prm::Cqe64::qpn>() == tag);
  }
  void nothing_arrives() {
    CHECK(!soon([&] { return in.ready(); }, 20));
  }
};

inline void read_back(Frames& f) {
  Command<prm::QuerySqIn, prm::QuerySqOut> sq(prm::Opcode::query_sq);
  sq.in.set<prm::QuerySqIn::sqn>(f.sq.number);
  QUERY(sq, f.sq);
  CHECK(sq.out.sub<prm::QuerySqOut::sq_context>().get<prm::Sqc::state>() == prm::SqState::rdy);
  Command<prm::QueryRqIn, prm::QueryRqOut> rq(prm::Opcode::query_rq);
  rq.in.set<prm::QueryRqIn::rqn>(f.rq[0].number);
  QUERY(rq, f.rq[0]);
  CHECK(rq.out.sub<prm::QueryRqOut::rq_context>().get<prm::Rqc::user_index>() == 0x50);
  Command<prm::QueryTirIn, prm::QueryTirOut> tir(prm::Opcode::query_tir);
  tir.in.set<prm::QueryTirIn::tirn>(f.tir.number);
  QUERY(tir, f.tir);
  CHECK(tir.out.sub<prm::QueryTirOut::tir_context>().get<prm::Tirc::indirect_table>() == f.rqt.number);
  Command<prm::QueryFlowTableIn, prm::QueryFlowTableOut> table(prm::Opcode::query_flow_table);
  table.in.set<prm::QueryFlowTableIn::table_id>(f.table.number);
  QUERY(table, f.table);
  CHECK(table.out.sub<prm::QueryFlowTableOut::flow_table_context>().get<prm::FlowTableContext::level>() == 40);
  Command<prm::QueryFlowGroupIn, prm::QueryFlowGroupOut> group(prm::Opcode::query_flow_group);
  group.in.set<prm::QueryFlowGroupIn::table_id>(f.table.number).set<prm::QueryFlowGroupIn::group_id>(f.group.number);
  QUERY(group, f.group);
  CHECK(group.out.get<prm::QueryFlowGroupOut::end_flow_index>() == 7);
  Command<prm::QueryFteIn, prm::QueryFteOut> entry(prm::Opcode::query_flow_table_entry);
  entry.in.set<prm::QueryFteIn::table_id>(f.table.number).set<prm::QueryFteIn::flow_index>(3);
  QUERY(entry, f.entry);
  CHECK(entry.out.sub<prm::QueryFteOut::flow_context>().get<prm::FlowContext::flow_tag>() == 0x77);
}

inline void changes(Frames& f) {
  // The table leads to the other queue.
  using In = prm::ModifyRqtIn;
  prm::Box<In, 4> spread;
  prm::Box<prm::ModifyRqtOut> done;
  spread.set<In::opcode>(prm::Opcode::modify_rqt).set<In::rqtn>(f.rqt.number);
  spread.sub<In::bitmask>().set<prm::RqtBitmask::rqn_list>(1);
  spread.sub<In::ctx>().set<prm::Rqtc::rqt_actual_size>(1);
  spread.sub<In::ctx>().at<prm::Rqtc::rq_num>(0).set<prm::RqNum::rq_num>(f.rq[1].number);
  CHECK(!mlx5dv_devx_obj_modify(f.rqt.handle, spread.data(), spread.size(), done.data(), done.size()));
  accepted.insert(static_cast<unsigned>(prm::Opcode::modify_rqt));
  f.send(0x88b5);
  f.arrives(1, 0x77);
  Command<prm::QueryRqtIn, prm::QueryRqtOut> query(prm::Opcode::query_rqt);
  query.in.set<prm::QueryRqtIn::rqtn>(f.rqt.number);
  prm::Box<prm::QueryRqtOut, 4> listed;
  CHECK(!mlx5dv_devx_obj_query(f.rqt.handle, query.in.data(), query.in.size(), listed.data(), listed.size()));
  accepted.insert(static_cast<unsigned>(prm::Opcode::query_rqt));
  CHECK(std::as_const(listed)
            .view()
            .sub<prm::QueryRqtOut::rqt_context>()
            .at<prm::Rqtc::rq_num>(0)
            .get<prm::RqNum::rq_num>() == f.rq[1].number);
  // What the first table misses goes on to the second.
  Command<prm::ModifyFlowTableIn, prm::ModifyFlowTableOut> miss(prm::Opcode::modify_flow_table);
  miss.in.set<prm::ModifyFlowTableIn::table_id>(f.table.number)
      .set<prm::ModifyFlowTableIn::modify_field_select>(prm::kFlowTableModifyMiss);
  const auto context = miss.in.sub<prm::ModifyFlowTableIn::flow_table_context>();
  context.set<prm::FlowTableContext::table_miss_action>(prm::FlowMissAction::forward)
      .set<prm::FlowTableContext::table_miss_id>(f.next.number);
  MODIFY(miss, f.table);
  f.send(0x88b6);
  f.arrives(1, 0x88);
  context.set<prm::FlowTableContext::table_miss_action>(prm::FlowMissAction::default_)
      .set<prm::FlowTableContext::table_miss_id>(0);
  MODIFY(miss, f.table);
  f.send(0x88b6);
  f.nothing_arrives();
  // Frames of its own transport domain are kept out of a TIR.
  Command<prm::ModifyTirIn, prm::ModifyTirOut> tir(prm::Opcode::modify_tir);
  tir.in.set<prm::ModifyTirIn::tirn>(f.tir.number);
  tir.in.sub<prm::ModifyTirIn::bitmask>().set<prm::ModifyTirBitmask::self_lb_en>(1);
  MODIFY(tir, f.tir);
  f.send(0x88b5);
  f.nothing_arrives();
  // A TIS on the second port.
  Command<prm::ModifyTisIn, prm::ModifyTisOut> tis(prm::Opcode::modify_tis);
  tis.in.set<prm::ModifyTisIn::tisn>(f.tis.number);
  tis.in.sub<prm::ModifyTisIn::bitmask>().set<prm::ModifyTisBitmask::lag_tx_port_affinity>(1);
  tis.in.sub<prm::ModifyTisIn::ctx>().set<prm::Tisc::lag_tx_port_affinity>(2);
  MODIFY(tis, f.tis);
  Command<prm::QueryTisIn, prm::QueryTisOut> asked(prm::Opcode::query_tis);
  asked.in.set<prm::QueryTisIn::tisn>(f.tis.number);
  QUERY(asked, f.tis);
  CHECK(asked.out.sub<prm::QueryTisOut::tis_context>().get<prm::Tisc::lag_tx_port_affinity>() == 2);
}

inline void frames(World* w, Memory& m) {
  Frames f(w, m);
  struct alignas(8) {
    std::size_t size = prm::FteMatchParam::size;
    std::byte bytes[prm::FteMatchParam::size] = {};
  } mask, value;
  const unsigned char to[6] = {2, 0xbb, 0, 0, 0, 9};
  std::memset(mask.bytes + prm::FteMatchSetLyr24::dmac_47_16::offset, 0xff, 6);
  std::memcpy(value.bytes + prm::FteMatchSetLyr24::dmac_47_16::offset, to, 6);
  mlx5dv_flow_matcher_attr attr = {};
  attr.type = IBV_FLOW_ATTR_NORMAL;
  attr.match_criteria_enable = 1;
  attr.match_mask = reinterpret_cast<mlx5dv_flow_match_parameters*>(&mask);
  mlx5dv_flow_matcher* matcher = mlx5dv_create_flow_matcher(w->context, &attr);
  mlx5dv_flow_action_attr go_on = {};
  go_on.type = MLX5DV_FLOW_ACTION_DEST_DEVX;
  go_on.obj = f.table.handle;
  ibv_flow* flow = mlx5dv_create_flow(matcher, reinterpret_cast<mlx5dv_flow_match_parameters*>(&value), 1, &go_on);
  CHECK(matcher && flow);
  // A raw SQ's own frames come back only where a TIR lets them in.
  Command<prm::ModifyTirIn, prm::ModifyTirOut> open(prm::Opcode::modify_tir);
  open.in.set<prm::ModifyTirIn::tirn>(f.tir.number);
  open.in.sub<prm::ModifyTirIn::bitmask>().set<prm::ModifyTirBitmask::self_lb_en>(1);
  open.in.sub<prm::ModifyTirIn::ctx>().set<prm::Tirc::self_lb_block>(3);
  MODIFY(open, f.tir);
  f.send(0x88b5);
  f.arrives(0, 0x77);
  f.send(0x88b6);
  f.nothing_arrives();
  prm::Box<prm::QueryFlowCounterIn> ask;
  ask.set<prm::QueryFlowCounterIn::opcode>(prm::Opcode::query_flow_counter)
      .set<prm::QueryFlowCounterIn::flow_counter_id>(f.counter.number);
  prm::Box<prm::QueryFlowCounterOut, prm::TrafficCounter::size> told;
  CHECK(!mlx5dv_devx_obj_query(f.counter.handle, ask.data(), ask.size(), told.data(), told.size()));
  accepted.insert(static_cast<unsigned>(prm::Opcode::query_flow_counter));
  CHECK(
      std::as_const(told).view().at<prm::QueryFlowCounterOut::flow_statistics>(0).get<prm::TrafficCounter::octets>() ==
      Frames::kBytes);
  read_back(f);
  changes(f);
  CHECK(!ibv_destroy_flow(flow) && !mlx5dv_destroy_flow_matcher(matcher));
}
