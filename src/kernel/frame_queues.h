// The device's parts of Ethernet queues as the driver makes them: RQ, SQ, TIS, TIR, RQT.
//
// A work queue of the verbs is an RQ; a raw packet QP is an RQ with a TIR before it and an SQ on a TIS. All functions
// return 0 or an errno.
// Threads: under the File's lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernel/command.h"
#include "kernel/file.h"
#include "prm/raw.h"

namespace verbena::kernel {

// A ring in the program's memory and its doorbell record.
struct RingRequest {
  std::uint64_t buffer = 0, doorbell = 0;
  std::uint32_t entries = 0;  // a power of two
  std::uint32_t shift = 0;    // log2 of an entry
};
// Whether the memory is there: EINVAL or EFAULT if not.
int check_ring(const RingRequest& ring, PageRun* pages);

struct RqRequest {
  RingRequest ring;
  std::uint32_t pdn = 0, cqn = 0, user_index = 0;
  bool strip_vlan = false;
};
int make_rq(File& file, const RqRequest& request, std::uint32_t* rqn);
int destroy_rq(File& file, std::uint32_t rqn);

struct SqRequest {
  RingRequest ring;
  std::uint32_t pdn = 0, cqn = 0, user_index = 0, uar = 0, tisn = 0;
};
int make_sq(File& file, const SqRequest& request, std::uint32_t* sqn);
int destroy_sq(File& file, std::uint32_t sqn);

int make_tis(File& file, std::uint32_t domain, std::uint8_t lag_port, std::uint32_t* tisn);
int destroy_tis(File& file, std::uint32_t tisn);
int set_lag_port(File& file, std::uint32_t tisn, std::uint8_t lag_port);

// The key of a Toeplitz hash.
using TirKey = std::array<std::byte, prm::Tirc::rx_hash_toeplitz_key::bytes>;
// A TIR before one queue. `self_loopback`: bits of tirc.self_lb_block.
int make_direct_tir(File& file, std::uint32_t domain, std::uint32_t rqn, std::uint32_t self_loopback, std::uint32_t* tirn);
// A TIR before a table, as `fill` describes it further.
template <class Fill>
int make_tir(File& file, std::uint32_t domain, Fill fill, std::uint32_t* tirn) {
  Command<prm::CreateTirIn, prm::CreateTirOut> command(prm::Opcode::create_tir, file.context().uid);
  const auto tirc = command.in().sub<prm::CreateTirIn::ctx>();
  tirc.template set<prm::Tirc::transport_domain>(domain);
  fill(tirc);
  if (int error = command.run(file.device())) return error;
  *tirn = command.out().get<prm::CreateTirOut::tirn>();
  return 0;
}
int destroy_tir(File& file, std::uint32_t tirn);

int make_rqt(File& file, std::span<const std::uint32_t> rqns, std::uint32_t* rqtn);
int destroy_rqt(File& file, std::uint32_t rqtn);

// What changes of an RQ besides its state.
struct RqChange {
  std::uint64_t mask = 0;  // prm::RqModify
  bool strip_vlan = false;
  std::uint32_t counter_set = 0;
};
int modify_rq(File& file, std::uint32_t rqn, prm::RqState from, prm::RqState to, const RqChange& change = {});
// `rate`: entry of the packet pacing table from now on; null: as it is.
int modify_sq(File& file, std::uint32_t sqn, prm::SqState from, prm::SqState to, const std::uint16_t* rate = nullptr);
int query_rq_state(File& file, std::uint32_t rqn, prm::RqState* state);
int query_sq_state(File& file, std::uint32_t sqn, prm::SqState* state);

}  // namespace verbena::kernel
