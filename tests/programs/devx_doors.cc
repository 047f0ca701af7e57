// Every opcode through every door of DEVX, as docs/devx.md has it: by create, by general_cmd, and by query and modify with
// the handle of an object of every kind the device has. Wrong handles, wrong numbers, handles that are gone, and objects
// and uids of another context.
#include <fcntl.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "devx_world.h"
#include "prm/flow.h"
#include "prm/general_object.h"
#include "prm/mkey.h"
#include "prm/raw.h"
#include "prm/scheduling.h"
#include "prm/srq.h"
#include "xrc.h"
#include "../devx_table.h"

namespace {

using prm::Opcode;
using Head = prm::GeneralObjInCmdHdr;
constexpr std::uint16_t kForeignUid = 0x7777;  // what the program writes there means nothing

// ---- the table in the documentation ----

struct Row : verbena::DevxCommand {
  bool has(const char* which) const { return (", " + doors + ",").find(std::string(", ") + which + ",") != doors.npos; }
};

std::map<unsigned, Row> documented() {
  std::map<unsigned, Row> rows;
  for (const auto& [opcode, command] : verbena::documented_commands()) rows[opcode] = {command};
  CHECK(rows.size() > 150);
  return rows;
}

// ---- one object of every kind ----

struct Kind {
  const char* name;
  Opcode create;
  mlx5dv_devx_obj* object;
  std::uint32_t number;
};

template <class In, class Out, class Number>
Kind make(World* w, const char* name, Command<In, Out>& create, Opcode opcode) {
  mlx5dv_devx_obj* object = create.create(w->context);
  if (!object) std::fprintf(stderr, "%s: syndrome %#x\n", name, create.syndrome());
  CHECK(object);
  return {name, opcode, object, static_cast<std::uint32_t>(create.out.template get<Number>())};
}

std::vector<Kind> one_of_each(World* w, const Queues& q) {
  std::vector<Kind> kinds = {{"QP", Opcode::create_qp, q.qp, q.qpn}, {"CQ", Opcode::create_cq, q.cq, q.cqn}};
  AllocPd pd(Opcode::alloc_pd);
  kinds.push_back(make<prm::AllocPdIn, prm::AllocPdOut, prm::AllocPdOut::pd>(w, "PD", pd, Opcode::alloc_pd));
  const std::uint32_t pdn = kinds.back().number;
  Command<prm::AllocTransportDomainIn, prm::AllocTransportDomainOut> td(Opcode::alloc_transport_domain);
  kinds.push_back(make<prm::AllocTransportDomainIn, prm::AllocTransportDomainOut,
                       prm::AllocTransportDomainOut::transport_domain>(w, "TD", td, Opcode::alloc_transport_domain));
  const std::uint32_t domain = kinds.back().number;

  Command<prm::CreateMkeyIn, prm::CreateMkeyOut> mkey(Opcode::create_mkey);
  mkey.in.set<prm::CreateMkeyIn::mkey_umem_id>(q.umem->umem_id);
  const auto mkc = mkey.in.sub<prm::CreateMkeyIn::memory_key_mkey_entry>();
  prm::set_mkey_access_mode(mkc, prm::MkeyAccessMode::mtt);
  mkc.set<prm::Mkc::pd>(pdn).set<prm::Mkc::qpn>(0xffffff).set<prm::Mkc::lr>(1).set<prm::Mkc::len>(64);
  kinds.push_back(
      make<prm::CreateMkeyIn, prm::CreateMkeyOut, prm::CreateMkeyOut::mkey_index>(w, "MKEY", mkey, Opcode::create_mkey));

  Command<prm::CreateTisIn, prm::CreateTisOut> tis(Opcode::create_tis);
  tis.in.sub<prm::CreateTisIn::ctx>().set<prm::Tisc::transport_domain>(domain);
  kinds.push_back(make<prm::CreateTisIn, prm::CreateTisOut, prm::CreateTisOut::tisn>(w, "TIS", tis, Opcode::create_tis));

  const auto ring = [&](auto wq, std::size_t dbr) {
    wq.template set<prm::Wq::log_wq_stride>(6).template set<prm::Wq::log_wq_sz>(1).template set<prm::Wq::pd>(pdn);
    wq.template set<prm::Wq::wq_umem_id>(q.umem->umem_id).template set<prm::Wq::wq_umem_offset>(Queues::kDataAt);
    wq.template set<prm::Wq::dbr_umem_id>(q.umem->umem_id).template set<prm::Wq::dbr_addr>(dbr);
    wq.template set<prm::Wq::uar_page>(q.uar->page_id);
  };
  Command<prm::CreateSqIn, prm::CreateSqOut> sq(Opcode::create_sq);
  const auto sqc = sq.in.sub<prm::CreateSqIn::ctx>();
  sqc.set<prm::Sqc::cqn>(q.cqn).set<prm::Sqc::tis_lst_sz>(1).set<prm::Sqc::tis_num_0>(kinds.back().number);
  sqc.sub<prm::Sqc::wq>().set<prm::Wq::wq_type>(prm::WqType::cyclic);
  ring(sqc.sub<prm::Sqc::wq>(), Queues::kQpDbr + 64);
  kinds.push_back(make<prm::CreateSqIn, prm::CreateSqOut, prm::CreateSqOut::sqn>(w, "SQ", sq, Opcode::create_sq));

  Command<prm::CreateRqIn, prm::CreateRqOut> rq(Opcode::create_rq);
  const auto rqc = rq.in.sub<prm::CreateRqIn::ctx>();
  rqc.set<prm::Rqc::cqn>(q.cqn).sub<prm::Rqc::wq>().set<prm::Wq::wq_type>(prm::WqType::cyclic);
  ring(rqc.sub<prm::Rqc::wq>(), Queues::kQpDbr + 192);
  kinds.push_back(make<prm::CreateRqIn, prm::CreateRqOut, prm::CreateRqOut::rqn>(w, "RQ", rq, Opcode::create_rq));
  const std::uint32_t rqn = kinds.back().number;
  Command<prm::CreateTirIn, prm::CreateTirOut> tir(Opcode::create_tir);
  tir.in.sub<prm::CreateTirIn::ctx>().set<prm::Tirc::inline_rqn>(rqn).set<prm::Tirc::transport_domain>(domain);
  kinds.push_back(make<prm::CreateTirIn, prm::CreateTirOut, prm::CreateTirOut::tirn>(w, "TIR", tir, Opcode::create_tir));
  const std::uint32_t tirn = kinds.back().number;
  const auto behind = [&](auto& request, std::span<const std::byte> tail, Opcode kind, const char* name) {
    std::vector<std::byte> whole(request.in.span().begin(), request.in.span().end());
    whole.insert(whole.end(), tail.begin(), tail.end());
    mlx5dv_devx_obj* object =
        mlx5dv_devx_obj_create(w->context, whole.data(), whole.size(), request.out.data(), request.out.span().size());
    CHECK(object);
    kinds.push_back({name, kind, object, prm::load_be32(request.out.data() + 8) & 0xffffff});
  };
  std::byte tail[8]{};
  prm::store_be32(tail, rqn);
  Command<prm::CreateRqtIn, prm::CreateRqtOut> rqt(Opcode::create_rqt);
  rqt.in.sub<prm::CreateRqtIn::rqt_context>().set<prm::Rqtc::rqt_max_size>(1).set<prm::Rqtc::rqt_actual_size>(1);
  behind(rqt, std::span(tail).first(4), Opcode::create_rqt, "RQT");

  Command<prm::CreateFlowTableIn, prm::CreateFlowTableOut> table(Opcode::create_flow_table);
  table.in.sub<prm::CreateFlowTableIn::flow_table_context>().set<prm::FlowTableContext::log_size>(4);
  kinds.push_back(make<prm::CreateFlowTableIn, prm::CreateFlowTableOut, prm::CreateFlowTableOut::table_id>(
      w, "FLOW_TABLE", table, Opcode::create_flow_table));
  const std::uint32_t table_id = kinds.back().number;
  Command<prm::CreateFlowGroupIn, prm::CreateFlowGroupOut> group(Opcode::create_flow_group);
  group.in.set<prm::CreateFlowGroupIn::table_id>(table_id).set<prm::CreateFlowGroupIn::end_flow_index>(15);
  kinds.push_back(make<prm::CreateFlowGroupIn, prm::CreateFlowGroupOut, prm::CreateFlowGroupOut::group_id>(
      w, "FLOW_GROUP", group, Opcode::create_flow_group));
  Command<prm::AllocFlowCounterIn, prm::AllocFlowCounterOut> flow_counter(Opcode::alloc_flow_counter);
  const std::uint32_t group_id = kinds.back().number;
  kinds.push_back(make<prm::AllocFlowCounterIn, prm::AllocFlowCounterOut, prm::AllocFlowCounterOut::flow_counter_id>(
      w, "FLOW_COUNTER", flow_counter, Opcode::alloc_flow_counter));
  Command<prm::SetFteIn, prm::SetFteOut> entry(Opcode::set_flow_table_entry);
  entry.in.set<prm::SetFteIn::table_id>(table_id).set<prm::SetFteIn::flow_index>(5);
  const auto flow = entry.in.sub<prm::SetFteIn::flow_context>();
  flow.set<prm::FlowContext::group_id>(group_id).set<prm::FlowContext::action>(prm::FlowAction::fwd_dest);
  flow.set<prm::FlowContext::destination_list_size>(1);
  prm::View<prm::DestFormatStruct>(tail).set<prm::DestFormatStruct::destination_id>(tirn).set<
      prm::DestFormatStruct::destination_type>(static_cast<unsigned>(prm::FlowDestination::tir));
  behind(entry, tail, Opcode::set_flow_table_entry, "FLOW_ENTRY");
  kinds.back().number = 5;  // the reply has none

  Command<prm::CreateRmpIn, prm::CreateRmpOut> rmp(Opcode::create_rmp);
  const auto rmpc = rmp.in.sub<prm::CreateRmpIn::ctx>();
  rmpc.set<prm::Rmpc::state>(prm::RmpState::rdy);
  ring(rmpc.sub<prm::Rmpc::wq>(), Queues::kQpDbr + 128);
  kinds.push_back(make<prm::CreateRmpIn, prm::CreateRmpOut, prm::CreateRmpOut::rmpn>(w, "RMP", rmp, Opcode::create_rmp));

  Command<prm::AllocXrcdIn, prm::AllocXrcdOut> xrcd(Opcode::alloc_xrcd);
  kinds.push_back(make<prm::AllocXrcdIn, prm::AllocXrcdOut, prm::AllocXrcdOut::xrcd>(w, "XRCD", xrcd, Opcode::alloc_xrcd));
  Command<prm::CreateXrcSrqIn, prm::CreateXrcSrqOut> xrc_srq(Opcode::create_xrc_srq);
  xrc_srq.in.set<prm::CreateXrcSrqIn::xrc_srq_umem_id>(q.umem->umem_id);
  xrc_srq.in.set<prm::CreateXrcSrqIn::xrc_srq_umem_offset>(Queues::kDataAt);
  const auto xrc_srqc = xrc_srq.in.sub<prm::CreateXrcSrqIn::xrc_srq_context_entry>();
  xrc_srqc.set<prm::XrcSrqc::xrcd>(kinds.back().number).set<prm::XrcSrqc::cqn>(q.cqn).set<prm::XrcSrqc::pd>(pdn);
  xrc_srqc.set<prm::XrcSrqc::log_rq_stride>(2).set<prm::XrcSrqc::log_xrc_srq_size>(1);
  xrc_srqc.set<prm::XrcSrqc::dbr_umem_id>(q.umem->umem_id).set<prm::XrcSrqc::dbr_addr>(Queues::kQpDbr + 256);
  kinds.push_back(make<prm::CreateXrcSrqIn, prm::CreateXrcSrqOut, prm::CreateXrcSrqOut::xrc_srqn>(
      w, "XRC_SRQ", xrc_srq, Opcode::create_xrc_srq));
  Command<prm::CreateXrqIn, prm::CreateXrqOut> xrq(Opcode::create_xrq);
  const auto xrqc = xrq.in.sub<prm::CreateXrqIn::xrq_context>();
  xrqc.set<prm::Xrqc::cqn>(q.cqn);
  ring(xrqc.sub<prm::Xrqc::wq>(), Queues::kQpDbr + 320);
  kinds.push_back(make<prm::CreateXrqIn, prm::CreateXrqOut, prm::CreateXrqOut::xrqn>(w, "XRQ", xrq, Opcode::create_xrq));

  Command<prm::AllocQCounterIn, prm::AllocQCounterOut> counter(Opcode::alloc_q_counter);
  kinds.push_back(make<prm::AllocQCounterIn, prm::AllocQCounterOut, prm::AllocQCounterOut::counter_set_id>(
      w, "Q_COUNTER", counter, Opcode::alloc_q_counter));

  Command<prm::CreateSchedulingElementIn, prm::CreateSchedulingElementOut> element(Opcode::create_scheduling_element);
  element.in.set<prm::CreateSchedulingElementIn::scheduling_hierarchy>(
      static_cast<unsigned>(prm::SchedulingHierarchy::nic));
  kinds.push_back(make<prm::CreateSchedulingElementIn, prm::CreateSchedulingElementOut,
                       prm::CreateSchedulingElementOut::scheduling_element_id>(w, "SCHEDULING_ELEMENT", element,
                                                                               Opcode::create_scheduling_element));

  std::byte body[Head::size + 16]{};
  prm::View<Head> head(body);
  head.set<Head::opcode>(static_cast<std::uint16_t>(Opcode::create_general_object));
  head.set<Head::obj_type>(prm::GeneralObjectType::reserved_qpn);
  head.set<Head::log_obj_range>(6);
  prm::Box<prm::GeneralObjOutCmdHdr> out;
  mlx5dv_devx_obj* reserved =
      mlx5dv_devx_obj_create(w->context, body, sizeof body, out.data(), prm::GeneralObjOutCmdHdr::size);
  CHECK(reserved);
  kinds.push_back({"general object", Opcode::create_general_object, reserved,
                   out.get<prm::GeneralObjOutCmdHdr::obj_id>()});
  return kinds;
}

// ---- a command with nothing in it but what the kernel's role looks at ----

struct Bare {
  alignas(8) std::byte in[0x3f1]{}, out[0x400]{};  // no command has such a length: what gets through changes nothing
  explicit Bare(unsigned opcode) {
    prm::View<Head> head(in);
    head.set<Head::opcode>(opcode).set<Head::uid>(kForeignUid);
  }
  Bare& names(const Kind& kind, std::uint32_t number) {
    prm::View<Head> head(in);
    if (head.get<Head::opcode>() == static_cast<unsigned>(Opcode::query_q_counter))
      prm::View<prm::QueryQCounterIn>(in).set<prm::QueryQCounterIn::counter_set_id>(number);
    else if (kind.create == Opcode::create_flow_table)
      prm::View<prm::QueryFlowTableIn>(in).set<prm::QueryFlowTableIn::table_id>(number);
    else if (kind.create == Opcode::create_flow_group)
      prm::View<prm::QueryFlowGroupIn>(in).set<prm::QueryFlowGroupIn::group_id>(number);
    else if (kind.create == Opcode::set_flow_table_entry)
      prm::View<prm::SetFteIn>(in).set<prm::SetFteIn::flow_index>(number);
    else if (kind.create == Opcode::alloc_flow_counter)
      prm::View<prm::QueryFlowCounterIn>(in).set<prm::QueryFlowCounterIn::flow_counter_id>(number);
    else if (kind.create == Opcode::create_scheduling_element)
      prm::View<prm::QuerySchedulingElementIn>(in).set<prm::QuerySchedulingElementIn::scheduling_element_id>(number);
    else
      head.set<Head::obj_id>(number);
    if (head.get<Head::opcode>() == static_cast<unsigned>(Opcode::set_flow_table_entry))
      prm::View<prm::SetFteIn>(in).set<prm::SetFteIn::op_mod>(1);  // a change
    if (kind.create == Opcode::create_general_object) head.set<Head::obj_type>(prm::GeneralObjectType::reserved_qpn);
    return *this;
  }
  prm::Status status() const { return prm::ConstView<prm::CommandOut>(out).get<prm::CommandOut::status>(); }
  std::uint32_t syndrome() const { return prm::ConstView<prm::CommandOut>(out).get<prm::CommandOut::syndrome>(); }
  int query(mlx5dv_devx_obj* object) { return mlx5dv_devx_obj_query(object, in, sizeof in, out, sizeof out); }
  int modify(mlx5dv_devx_obj* object) { return mlx5dv_devx_obj_modify(object, in, sizeof in, out, sizeof out); }
  int general(ibv_context* c) { return mlx5dv_devx_general_cmd(c, in, sizeof in, out, sizeof out); }
  int create(ibv_context* c) {
    errno = 0;
    return mlx5dv_devx_obj_create(c, in, sizeof in, out, sizeof out) ? 0 : errno;
  }
  // Got to the device, which says whether it has the command and, if so, refuses what is wrong with this one.
  bool arrived(int error, bool known) const {
    constexpr std::uint32_t nowhere = 0x10001, not_here = 0x10002;
    return error == EREMOTEIO && syndrome() && (syndrome() != nowhere && syndrome() != not_here) == known;
  }
};

// A door lets an opcode through, or says EINVAL before the device hears of it.
void check(unsigned opcode, const char* door, bool open, bool known, const Bare& command, int error) {
  const bool good = open ? command.arrived(error, known) : error == EINVAL && !command.syndrome();
  EXPECT(good, "%#x by %s: error %d, status %#x, syndrome %#x", opcode, door, error,
         static_cast<unsigned>(command.status()), command.syndrome());
}

// Which kind of object a command is about, by the rules that the unit tests check opcode by opcode.
bool concerns(unsigned opcode, const Kind& kind, const std::map<unsigned, Row>& rows) {
  static const std::map<Opcode, std::vector<std::string>> words = {
      {Opcode::create_qp, {"QUERY_QP", "RST2INIT_QP", "INIT2RTR_QP", "INIT2INIT_QP", "RTR2RTS_QP", "RTS2RTS_QP",
                           "SQERR2RTS_QP", "QP_2ERR", "QP_2RST"}},
      {Opcode::create_cq, {"QUERY_CQ", "MODIFY_CQ"}},
      {Opcode::create_mkey, {"QUERY_MKEY"}},
      {Opcode::create_tis, {"QUERY_TIS", "MODIFY_TIS"}},
      {Opcode::create_sq, {"QUERY_SQ", "MODIFY_SQ"}},
      {Opcode::create_rq, {"QUERY_RQ", "MODIFY_RQ", "ARM_RQ"}},
      {Opcode::create_rqt, {"QUERY_RQT", "MODIFY_RQT"}},
      {Opcode::create_tir, {"QUERY_TIR", "MODIFY_TIR"}},
      {Opcode::create_flow_table, {"QUERY_FLOW_TABLE", "MODIFY_FLOW_TABLE"}},
      {Opcode::create_flow_group, {"QUERY_FLOW_GROUP"}},
      {Opcode::set_flow_table_entry, {"QUERY_FLOW_TABLE_ENTRY", "SET_FLOW_TABLE_ENTRY"}},
      {Opcode::alloc_flow_counter, {"QUERY_FLOW_COUNTER"}},
      {Opcode::create_rmp, {"QUERY_RMP", "MODIFY_RMP"}},
      {Opcode::create_xrc_srq, {"QUERY_XRC_SRQ", "ARM_XRC_SRQ"}},
      {Opcode::create_xrq, {"QUERY_XRQ", "ARM_XRQ", "QUERY_XRQ_DC_PARAMS_ENTRY", "SET_XRQ_DC_PARAMS_ENTRY",
                            "QUERY_XRQ_ERROR_PARAMS", "RELEASE_XRQ_ERROR", "MODIFY_XRQ"}},
      {Opcode::alloc_q_counter, {"QUERY_Q_COUNTER"}},
      {Opcode::create_scheduling_element, {"QUERY_SCHEDULING_ELEMENT", "MODIFY_SCHEDULING_ELEMENT"}},
      {Opcode::create_general_object, {"QUERY_GENERAL_OBJECT", "MODIFY_GENERAL_OBJECT"}}};
  const auto row = rows.find(opcode);
  const auto list = words.find(kind.create);
  if (row == rows.end() || list == words.end()) return false;
  for (const std::string& name : list->second)
    if (name == row->second.name) return true;
  return false;
}

void every_opcode(World* w, const std::vector<Kind>& kinds, const std::map<unsigned, Row>& rows) {
  unsigned tried = 0, met = 0;
  std::uint32_t eqn = 0;
  CHECK(!mlx5dv_devx_query_eqn(w->context, 0, &eqn));
  for (unsigned opcode = 0; opcode < 0x1000; ++opcode) {
    const auto found = rows.find(opcode);
    const Row row = found == rows.end() ? Row{} : found->second;
    const bool vendor = opcode >= 0xb00 && opcode < 0xd00, known = row.device == "yes" || row.device == "driver only";
    Bare create(opcode), general(opcode);
    if (opcode == 0x600) prm::View<prm::CreatePsvIn>(create.in).set<prm::CreatePsvIn::num_psv>(1);
    if (opcode == 0x400)  // the kernel keeps the CQs of its event queues
      prm::View<prm::CreateCqIn>(create.in).sub<prm::CreateCqIn::cq_context>().set<prm::Cqc::c_eqn_or_apu_element>(eqn);
    check(opcode, "create", row.has("create"), known, create, create.create(w->context));
    check(opcode, "general_cmd", row.has("general") || vendor, known, general, general.general(w->context));
    for (const Kind& kind : kinds) {
      const bool its_own = concerns(opcode, kind, rows);
      met += its_own && known;
      for (const std::uint32_t number : {kind.number, kind.number + 1}) {
        const bool right = its_own && number == kind.number;
        Bare query(opcode), modify(opcode);
        query.names(kind, number);
        modify.names(kind, number);
        check(opcode, "query", right && row.has("query"), known, query, query.query(kind.object));
        check(opcode, "modify", right && row.has("modify"), known, modify, modify.modify(kind.object));
        tried += 2;
      }
    }
  }
  // Every command that the device has and that a handle opens was let through once with the right one.
  unsigned expected = 0;
  for (const auto& [opcode, row] : rows)
    expected += row.device == "yes" && (row.has("query") || row.has("modify")) && row.name != "QUERY_SRQ";
  EXPECT(met == expected, "%u of %u commands met their object", met, expected);
  std::printf("%u opcodes, %zu kinds of objects, %u queries and changes\n", 0x1000, kinds.size(), tried);
}

// Verbs objects open the doors of their kind, under their own number only.
void verbs_objects(World* w) {
  ibv_cq* cq = ibv_create_cq(w->context, 16, nullptr, nullptr, 0);
  ibv_srq_init_attr init = {};
  init.attr.max_wr = init.attr.max_sge = 1;
  ibv_srq* srq = ibv_create_srq(w->pd, &init);
  CHECK(cq && srq);
  ibv_qp* qp = make_qp(w, IBV_QPT_RC, cq, cq, nullptr);
  const std::uint32_t srqn = srq_number(srq);
  const auto names = [](unsigned opcode, std::uint32_t number) {
    Bare command(opcode);
    prm::View<Head>(command.in).set<Head::obj_id>(number);
    return command;
  };
  Bare command = names(0x50b, qp->qp_num);
  CHECK(command.arrived(mlx5dv_devx_qp_query(qp, command.in, sizeof command.in, command.out, sizeof command.out), true));
  command = names(0x50b, qp->qp_num + 1);
  CHECK(mlx5dv_devx_qp_query(qp, command.in, sizeof command.in, command.out, sizeof command.out) == EINVAL);
  command = names(0x507, qp->qp_num + 1);
  CHECK(mlx5dv_devx_qp_modify(qp, command.in, sizeof command.in, command.out, sizeof command.out) == EINVAL);
  // To the device an SRQ is a receive memory pool, or an XRC SRQ.
  const auto query = [](ibv_srq* of, Bare c) { return c.arrived(mlx5dv_devx_srq_query(of, c.in, sizeof c.in, c.out, sizeof c.out), true); };
  const auto modify = [](ibv_srq* of, Bare c) { return c.arrived(mlx5dv_devx_srq_modify(of, c.in, sizeof c.in, c.out, sizeof c.out), true); };
  const auto refused = [](ibv_srq* of, Bare c) {
    return mlx5dv_devx_srq_query(of, c.in, sizeof c.in, c.out, sizeof c.out) == EINVAL &&
           mlx5dv_devx_srq_modify(of, c.in, sizeof c.in, c.out, sizeof c.out) == EINVAL;
  };
  CHECK(query(srq, names(0x90f, srqn)) && modify(srq, names(0x90d, srqn)));
  CHECK(refused(srq, names(0x90f, srqn + 1)) && refused(srq, names(0x90d, srqn + 1)));
  CHECK(refused(srq, names(0x702, srqn)) && refused(srq, names(0x703, srqn)));  // QUERY_SRQ, ARM_RQ
  CHECK(refused(srq, names(0x707, srqn)) && refused(srq, names(0x708, srqn)));

  ibv_xrcd* xrcd = open_xrcd(w);
  ibv_srq* xrc = make_xrc_srq(w, xrcd, cq, 1);
  std::uint32_t xrc_srqn = 0;
  CHECK(!ibv_get_srq_num(xrc, &xrc_srqn));
  CHECK(query(xrc, names(0x707, xrc_srqn)) && modify(xrc, names(0x708, xrc_srqn)));
  CHECK(refused(xrc, names(0x707, xrc_srqn + 1)) && refused(xrc, names(0x90f, xrc_srqn)));
  CHECK(ibv_close_xrcd(xrcd) == EBUSY && !ibv_destroy_srq(xrc) && !ibv_close_xrcd(xrcd));
  command = names(0x402, qp->qp_num);  // another kind
  CHECK(mlx5dv_devx_cq_query(cq, command.in, sizeof command.in, command.out, sizeof command.out) == EINVAL);
  command = names(0x403, 0xffffff);
  CHECK(mlx5dv_devx_cq_modify(cq, command.in, sizeof command.in, command.out, sizeof command.out) == EINVAL);
  CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_srq(srq) && !ibv_destroy_cq(cq));
}

// A handle outlives its object only in a program's mistake, and another context's handles and numbers are its own.
void gone_and_foreign(World* w, const std::vector<Kind>& kinds) {
  char blob[64];
  AllocPd pd(Opcode::alloc_pd);
  mlx5dv_devx_obj* object = pd.create(w->context);
  CHECK(object && !mlx5dv_devx_obj_export(object, blob));
  mlx5dv_devx_obj* shadow = mlx5dv_devx_obj_import(w->context, blob);
  CHECK(shadow && !mlx5dv_devx_obj_destroy(object));
  Bare query(0x402), modify(0x507);
  CHECK(query.query(shadow) == ENOENT && modify.modify(shadow) == ENOENT);
  mlx5dv_devx_obj_unimport(shadow);

  World other = open_devx();
  // The handles of one context mean nothing in another.
  mlx5dv_devx_obj* theirs = nullptr;
  for (const Kind& kind : kinds) {
    CHECK(!mlx5dv_devx_obj_export(kind.object, blob) && (theirs = mlx5dv_devx_obj_import(other.context, blob)));
    Bare command(0x402);
    command.names(kind, kind.number);
    const int error = command.query(theirs);
    EXPECT(error == ENOENT || error == EINVAL, "%s by another context: %d", kind.name, error);
    mlx5dv_devx_obj_unimport(theirs);
  }
  // Nor do their numbers inside of commands.
  auto queues = std::make_unique<Queues>(&other);
  const Queues& own = *queues;
  const auto refused = [&](auto change) {
    CreateQp create(Opcode::create_qp);
    using In = prm::CreateQpIn;
    using Q = prm::Qpc;
    create.in.set<In::wq_umem_id>(own.umem->umem_id).set<In::wq_umem_offset>(Queues::kDataAt);
    const auto qpc = create.in.sub<In::qpc>();
    qpc.set<Q::st>(prm::QpServiceType::rc).set<Q::pm_state>(prm::PathMigrationState::migrated);
    qpc.set<Q::pd>(pd_number(other.pd)).set<Q::uar_page>(own.uar->page_id).set<Q::cqn_snd>(own.cqn).set<Q::cqn_rcv>(own.cqn);
    qpc.set<Q::rq_type>(prm::RqType::zero_size).set<Q::log_sq_size>(1).set<Q::ts_format>(prm::TimestampFormat::standard);
    qpc.set<Q::dbr_umem_id>(own.umem->umem_id).set<Q::dbr_addr>(Queues::kQpDbr + 64);
    change(create.in, qpc);
    errno = 0;
    mlx5dv_devx_obj* qp = create.create(other.context);
    if (qp) {
      CHECK(!mlx5dv_devx_obj_destroy(qp));
      return false;
    }
    return errno == EREMOTEIO && create.status() == prm::Status::bad_resource && create.syndrome() != 0;
  };
  CHECK(!refused([](auto&, auto) {}));
  for (const Kind& kind : kinds) {
    if (kind.create == Opcode::alloc_pd) CHECK(refused([&](auto&, auto qpc) { qpc.template set<prm::Qpc::pd>(kind.number); }));
    if (kind.create == Opcode::create_cq)
      CHECK(refused([&](auto&, auto qpc) { qpc.template set<prm::Qpc::cqn_snd>(kind.number); }));
  }
  queues.reset();
  close_world(&other);
}

}  // namespace

int main() {
  const std::map<unsigned, Row> rows = documented();
  World w = open_devx();
  {
    Queues q(&w);
    std::vector<Kind> kinds = one_of_each(&w, q);
    every_opcode(&w, kinds, rows);
    gone_and_foreign(&w, kinds);
    while (kinds.size() > 2) {  // the queues go by themselves
      CHECK(!mlx5dv_devx_obj_destroy(kinds.back().object));
      kinds.pop_back();
    }
  }
  verbs_objects(&w);
  close_world(&w);
  if (failures) return 1;
  puts("ok");
  return 0;
}
