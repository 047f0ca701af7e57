// ALLOC_Q_COUNTER, QUERY_Q_COUNTER, DEALLOC_Q_COUNTER.
//
// A set counts what befalls the QPs that name it. The driver's sets are another matter: its every process has one for
// the QPs it makes, while on a machine there is one, so such a set shows what befell all QPs since the NIC was made.
#include <array>
#include <cstddef>

#include "device/command/dispatcher.h"
#include "device/command/families.h"
#include "device/command/state.h"
#include "device/shared/counters.h"
#include "prm/misc.h"

namespace verbena::device::command {
namespace {

using Out = prm::QueryQCounterOut;

// Where each number of the reply comes from.
struct Source {
  EventCounter counter;
  void (*put)(const prm::View<Out>& out, std::uint32_t value);
};
template <class F>
void put(const prm::View<Out>& out, std::uint32_t value) {
  out.set<F>(value);
}
using P = EventCounters;
constexpr std::array kSources{
    Source{&P::rx_write_requests, put<Out::rx_write_requests>},
    Source{&P::rx_read_requests, put<Out::rx_read_requests>},
    Source{&P::rx_atomic_requests, put<Out::rx_atomic_requests>},
    Source{&P::out_of_buffer, put<Out::out_of_buffer>},
    Source{&P::out_of_sequence, put<Out::out_of_sequence>},
    Source{&P::duplicate_request, put<Out::duplicate_request>},
    Source{&P::rnr_nak_retry_err, put<Out::rnr_nak_retry_err>},
    Source{&P::packet_seq_err, put<Out::packet_seq_err>},
    Source{&P::local_ack_timeout_err, put<Out::local_ack_timeout_err>},
    Source{&P::resp_local_length_error, put<Out::resp_local_length_error>},
    Source{&P::resp_cqe_error, put<Out::resp_cqe_error>},
    Source{&P::resp_cqe_flush_error, put<Out::resp_cqe_flush_error>},
    Source{&P::resp_remote_access_errors, put<Out::resp_remote_access_errors>},
    Source{&P::req_cqe_error, put<Out::req_cqe_error>},
    Source{&P::req_cqe_flush_error, put<Out::req_cqe_flush_error>},
    Source{&P::req_remote_invalid_request, put<Out::req_remote_invalid_request>},
    Source{&P::req_remote_access_errors, put<Out::req_remote_access_errors>},
};

std::vector<std::uint64_t> read_all(State& state, std::uint32_t number, std::uint16_t uid) {
  const Counted now = uid == 0 ? counted(state.nic) : counted(state.nic, number);
  std::vector<std::uint64_t> values;
  for (const Source& source : kSources) values.push_back(now[source.counter]);
  return values;
}

Outcome alloc_q_counter(State& state, const Call<prm::AllocQCounterIn, prm::AllocQCounterOut>& call) {
  const auto [number, set] = state.q_counters.create(call.uid);
  if (!set) return refuse(Syndrome::counter_none_left);
  set->base = call.uid == 0 ? std::vector<std::uint64_t>(kSources.size()) : read_all(state, number, call.uid);
  call.out.set<prm::AllocQCounterOut::counter_set_id>(number);
  return {};
}

Outcome query_q_counter(State& state, const Call<prm::QueryQCounterIn, prm::QueryQCounterOut>& call) {
  using In = prm::QueryQCounterIn;
  QCounter* set = state.q_counters.find(call.in.get<In::counter_set_id>());
  if (!set || !may_use_shared(*set, call.uid)) return refuse(Syndrome::counter_missing);
  const bool clear = call.in.get<In::clear>();
  if (clear && !may_use(*set, call.uid)) return refuse(Syndrome::counter_not_own);
  const auto now = read_all(state, call.in.get<In::counter_set_id>(), set->uid);
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
