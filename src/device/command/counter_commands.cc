// ALLOC_Q_COUNTER, QUERY_Q_COUNTER, DEALLOC_Q_COUNTER.
//
// The transport counts per port, not per set: a set shows what the ports counted since it was made or cleared.
#include <array>
#include <cstddef>

#include "device/command/dispatcher.h"
#include "device/command/families.h"
#include "device/command/state.h"
#include "prm/misc.h"

namespace verbena::device::command {
namespace {

using Out = prm::QueryQCounterOut;

// Where each number of the reply comes from.
struct Source {
  std::atomic<std::uint64_t> PortCounters::*counter;
  void (*put)(const prm::View<Out>& out, std::uint32_t value);
};
template <class F>
void put(const prm::View<Out>& out, std::uint32_t value) {
  out.set<F>(value);
}
using P = PortCounters;
constexpr std::array kSources{
    Source{&P::rx_write_requests, put<Out::rx_write_requests>},
    Source{&P::rx_read_requests, put<Out::rx_read_requests>},
    Source{&P::rx_atomic_requests, put<Out::rx_atomic_requests>},
    Source{&P::out_of_buffer, put<Out::out_of_buffer>},
    Source{&P::out_of_sequence, put<Out::out_of_sequence>},
    Source{&P::duplicate_request, put<Out::duplicate_request>},
    Source{&P::rnr_nak_retry_err, put<Out::rnr_nak_retry_err>},
    Source{&P::packet_seq_err, put<Out::packet_seq_err>},
    Source{&P::implied_nak_seq_err, put<Out::implied_nak_seq_err>},
    Source{&P::local_ack_timeout_err, put<Out::local_ack_timeout_err>},
    Source{&P::resp_local_length_error, put<Out::resp_local_length_error>},
    Source{&P::resp_cqe_error, put<Out::resp_cqe_error>},
    Source{&P::resp_remote_access_errors, put<Out::resp_remote_access_errors>},
    Source{&P::req_cqe_error, put<Out::req_cqe_error>},
    Source{&P::req_remote_invalid_request, put<Out::req_remote_invalid_request>},
    Source{&P::req_remote_access_errors, put<Out::req_remote_access_errors>},
};

std::vector<std::uint64_t> read_all(const State& state) {
  std::vector<std::uint64_t> values(kSources.size());
  for (std::size_t i = 0; i < kSources.size(); ++i)
    for (unsigned port = 0; port < state.profile.lag_ports(); ++port)
      values[i] += (state.nic.segment().ports[port].counters.*kSources[i].counter).load(std::memory_order_relaxed);
  return values;
}

Outcome alloc_q_counter(State& state, const Call<prm::AllocQCounterIn, prm::AllocQCounterOut>& call) {
  const auto [number, set] = state.q_counters.create(call.uid);
  if (!set) return refuse(Syndrome::counter_none_left);
  set->base = read_all(state);
  call.out.set<prm::AllocQCounterOut::counter_set_id>(number);
  return {};
}

Outcome query_q_counter(State& state, const Call<prm::QueryQCounterIn, prm::QueryQCounterOut>& call) {
  using In = prm::QueryQCounterIn;
  QCounter* set = state.q_counters.find(call.in.get<In::counter_set_id>());
  if (!set || !may_use_shared(*set, call.uid)) return refuse(Syndrome::counter_missing);
  const bool clear = call.in.get<In::clear>();
  if (clear && !may_use(*set, call.uid)) return refuse(Syndrome::counter_not_own);
  const auto now = read_all(state);
  for (std::size_t i = 0; i < kSources.size(); ++i)
    kSources[i].put(call.out, static_cast<std::uint32_t>(now[i] - set->base[i]));
  if (clear) set->base = now;
  return {};
}

Outcome dealloc_q_counter(State& state, const Call<prm::DeallocQCounterIn, prm::DeallocQCounterOut>& call) {
  const auto number = call.in.get<prm::DeallocQCounterIn::counter_set_id>();
  const auto set = own(state.q_counters.find(number), call.uid, Syndrome::counter_missing);
  if (!set) return refuse(set.error());
  state.q_counters.erase(number);
  return {};
}

}  // namespace

void add_counter_commands(Registry& r) {
  using prm::Opcode;
  r.add<alloc_q_counter>(Opcode::alloc_q_counter, "ALLOC_Q_COUNTER");
  r.add<query_q_counter>(Opcode::query_q_counter, "QUERY_Q_COUNTER");
  r.add<dealloc_q_counter>(Opcode::dealloc_q_counter, "DEALLOC_Q_COUNTER");
}

}  // namespace verbena::device::command
