#include "kernel/frame_queues.h"

#include <bit>
#include <cerrno>

#include "kernel/mr.h"

namespace verbena::kernel {
namespace {

template <class In, class Number>
int run_destroy(File& file, prm::Opcode opcode, std::uint32_t number) {
  Command<In, prm::CommandOut> command(opcode, file.context().uid);
  command.in().template set<Number>(number);
  return command.run(file.device());
}

// The part that the contexts of RQ and SQ share.
void fill_ring(const prm::View<prm::Wq>& wq, const RingRequest& ring, const PageRun& pages, std::uint32_t pdn) {
  wq.set<prm::Wq::wq_type>(prm::WqType::cyclic).set<prm::Wq::pd>(pdn);
  wq.set<prm::Wq::page_offset>(pages.offset64).set<prm::Wq::dbr_addr>(ring.doorbell);
  wq.set<prm::Wq::log_wq_stride>(ring.shift);
  wq.set<prm::Wq::log_wq_sz>(static_cast<std::uint32_t>(std::countr_zero(ring.entries)));
}

template <class In>
void list_pages(const prm::View<In>& in, const PageRun& pages) {
  for (std::size_t i = 0; i < pages.count; ++i)
    prm::View<prm::Pas>(in.data() + In::size + i * prm::Pas::size).template set<prm::Pas::address>(pages.first + i * 4096);
}

}  // namespace

int check_ring(const RingRequest& ring, PageRun* pages) {
  const std::uint64_t bytes = std::uint64_t{ring.entries} << ring.shift;
  if (int error = check_memory(ring.buffer, bytes, true)) return error;
  if (!page_run(ring.buffer, bytes, pages) || ring.doorbell % 8) return EINVAL;
  return check_memory(ring.doorbell, 8, true);
}

int make_rq(File& file, const RqRequest& request, std::uint32_t* rqn) {
  PageRun pages{};
  if (int error = check_ring(request.ring, &pages)) return error;
  using prm::Rqc;
  Command<prm::CreateRqIn, prm::CreateRqOut> command(prm::Opcode::create_rq, file.context().uid,
                                                     pages.count * prm::Pas::size);
  const auto rqc = command.in().sub<prm::CreateRqIn::ctx>();
  rqc.set<Rqc::mem_rq_type>(prm::MemRqType::inline_).set<Rqc::state>(prm::RqState::rst);
  rqc.set<Rqc::flush_in_error_en>(1).set<Rqc::vsd>(!request.strip_vlan);
  rqc.set<Rqc::user_index>(request.user_index).set<Rqc::cqn>(request.cqn);
  fill_ring(rqc.sub<Rqc::wq>(), request.ring, pages, request.pdn);
  list_pages(command.in(), pages);
  if (int error = command.run(file.device())) return error;
  *rqn = command.out().get<prm::CreateRqOut::rqn>();
  return 0;
}

int destroy_rq(File& file, std::uint32_t rqn) {
  return run_destroy<prm::DestroyRqIn, prm::DestroyRqIn::rqn>(file, prm::Opcode::destroy_rq, rqn);
}

int make_sq(File& file, const SqRequest& request, std::uint32_t* sqn) {
  PageRun pages{};
  if (int error = check_ring(request.ring, &pages)) return error;
  using prm::Sqc;
  Command<prm::CreateSqIn, prm::CreateSqOut> command(prm::Opcode::create_sq, file.context().uid,
                                                     pages.count * prm::Pas::size);
  const auto sqc = command.in().sub<prm::CreateSqIn::ctx>();
  sqc.set<Sqc::flush_in_error_en>(1).set<Sqc::state>(prm::SqState::rst);
  sqc.set<Sqc::user_index>(request.user_index).set<Sqc::cqn>(request.cqn);
  sqc.set<Sqc::tis_lst_sz>(1).set<Sqc::tis_num_0>(request.tisn);
  const auto wq = sqc.sub<Sqc::wq>();
  fill_ring(wq, request.ring, pages, request.pdn);
  wq.set<prm::Wq::uar_page>(request.uar);
  list_pages(command.in(), pages);
  if (int error = command.run(file.device())) return error;
  *sqn = command.out().get<prm::CreateSqOut::sqn>();
  return 0;
}

int destroy_sq(File& file, std::uint32_t sqn) {
  return run_destroy<prm::DestroySqIn, prm::DestroySqIn::sqn>(file, prm::Opcode::destroy_sq, sqn);
}

int make_tis(File& file, std::uint32_t domain, std::uint8_t lag_port, std::uint32_t* tisn) {
  Command<prm::CreateTisIn, prm::CreateTisOut> command(prm::Opcode::create_tis, file.context().uid);
  const auto tisc = command.in().sub<prm::CreateTisIn::ctx>();
  tisc.set<prm::Tisc::transport_domain>(domain).set<prm::Tisc::lag_tx_port_affinity>(lag_port);
  if (int error = command.run(file.device())) return error;
  *tisn = command.out().get<prm::CreateTisOut::tisn>();
  return 0;
}

int destroy_tis(File& file, std::uint32_t tisn) {
  return run_destroy<prm::DestroyTisIn, prm::DestroyTisIn::tisn>(file, prm::Opcode::destroy_tis, tisn);
}

int set_lag_port(File& file, std::uint32_t tisn, std::uint8_t lag_port) {
  using In = prm::ModifyTisIn;
  Command<In, prm::ModifyTisOut> command(prm::Opcode::modify_tis, file.context().uid);
  command.in().set<In::tisn>(tisn);
  command.in().sub<In::bitmask>().set<prm::ModifyTisBitmask::lag_tx_port_affinity>(1);
  command.in().sub<In::ctx>().set<prm::Tisc::lag_tx_port_affinity>(lag_port);
  return command.run(file.device());
}

int make_direct_tir(File& file, std::uint32_t domain, std::uint32_t rqn, std::uint32_t self_loopback, std::uint32_t* tirn) {
  return make_tir(
      file, domain,
      [&](const prm::View<prm::Tirc>& tirc) {
        tirc.set<prm::Tirc::disp_type>(prm::TirDispType::direct).set<prm::Tirc::inline_rqn>(rqn);
        tirc.set<prm::Tirc::self_lb_block>(self_loopback);
      },
      tirn);
}

int destroy_tir(File& file, std::uint32_t tirn) {
  return run_destroy<prm::DestroyTirIn, prm::DestroyTirIn::tirn>(file, prm::Opcode::destroy_tir, tirn);
}

int make_rqt(File& file, std::span<const std::uint32_t> rqns, std::uint32_t* rqtn) {
  using In = prm::CreateRqtIn;
  Command<In, prm::CreateRqtOut> command(prm::Opcode::create_rqt, file.context().uid, rqns.size() * prm::RqNum::size);
  const auto rqtc = command.in().sub<In::rqt_context>();
  rqtc.set<prm::Rqtc::rqt_max_size>(static_cast<std::uint32_t>(rqns.size()));
  rqtc.set<prm::Rqtc::rqt_actual_size>(static_cast<std::uint32_t>(rqns.size()));
  for (std::size_t i = 0; i < rqns.size(); ++i) rqtc.at<prm::Rqtc::rq_num>(i).set<prm::RqNum::rq_num>(rqns[i]);
  if (int error = command.run(file.device())) return error;
  *rqtn = command.out().get<prm::CreateRqtOut::rqtn>();
  return 0;
}

int destroy_rqt(File& file, std::uint32_t rqtn) {
  return run_destroy<prm::DestroyRqtIn, prm::DestroyRqtIn::rqtn>(file, prm::Opcode::destroy_rqt, rqtn);
}

int modify_rq(File& file, std::uint32_t rqn, prm::RqState from, prm::RqState to, const RqChange& change) {
  using In = prm::ModifyRqIn;
  Command<In, prm::ModifyRqOut> command(prm::Opcode::modify_rq, file.context().uid);
  command.in().set<In::rqn>(rqn).set<In::rq_state>(from).set<In::modify_bitmask>(change.mask);
  const auto rqc = command.in().sub<In::ctx>();
  rqc.set<prm::Rqc::state>(to).set<prm::Rqc::vsd>(!change.strip_vlan).set<prm::Rqc::counter_set_id>(change.counter_set);
  return command.run(file.device());
}

int modify_sq(File& file, std::uint32_t sqn, prm::SqState from, prm::SqState to, const std::uint16_t* rate) {
  using In = prm::ModifySqIn;
  Command<In, prm::ModifySqOut> command(prm::Opcode::modify_sq, file.context().uid);
  command.in().set<In::sqn>(sqn).set<In::sq_state>(from);
  const auto sqc = command.in().sub<In::ctx>();
  sqc.set<prm::Sqc::state>(to);
  if (rate) {
    command.in().set<In::modify_bitmask>(prm::SqModify::packet_pacing_rate_limit_index);
    sqc.set<prm::Sqc::packet_pacing_rate_limit_index>(*rate);
  }
  return command.run(file.device());
}

int query_rq_state(File& file, std::uint32_t rqn, prm::RqState* state) {
  Command<prm::QueryRqIn, prm::QueryRqOut> command(prm::Opcode::query_rq);
  command.in().set<prm::QueryRqIn::rqn>(rqn);
  if (int error = command.run(file.device())) return error;
  *state = command.out().sub<prm::QueryRqOut::rq_context>().get<prm::Rqc::state>();
  return 0;
}

int query_sq_state(File& file, std::uint32_t sqn, prm::SqState* state) {
  Command<prm::QuerySqIn, prm::QuerySqOut> command(prm::Opcode::query_sq);
  command.in().set<prm::QuerySqIn::sqn>(sqn);
  if (int error = command.run(file.device())) return error;
  *state = command.out().sub<prm::QuerySqOut::sq_context>().get<prm::Sqc::state>();
  return 0;
}

}  // namespace verbena::kernel
