// Names of enumerators, in the words programs have printed since libibverbs 1.1.
#include <infiniband/verbs.h>

#include <cstddef>
#include <iterator>

namespace {

template <std::size_t N>
const char* name_of(const char* const (&names)[N], int value, int first = 0) {
  int index = value - first;
  return index >= 0 && static_cast<std::size_t>(index) < N ? names[index] : "unknown";
}

// Each table lists the enumerators in order from the first.
constexpr const char* kNodeTypes[] = {
    "InfiniBand channel adapter",
    "InfiniBand switch",
    "InfiniBand router",
    "iWARP NIC",
    "usNIC",
    "usNIC UDP",
    "unspecified",
};
static_assert(std::size(kNodeTypes) == IBV_NODE_UNSPECIFIED - IBV_NODE_CA + 1);

constexpr const char* kPortStates[] = {"no state change (NOP)", "down", "init", "armed", "active", "active defer"};
static_assert(std::size(kPortStates) == IBV_PORT_ACTIVE_DEFER + 1);

constexpr const char* kEvents[] = {
    "CQ error",
    "local work queue catastrophic error",
    "invalid request local work queue error",
    "local access violation work queue error",
    "communication established",
    "send queue drained",
    "path migrated",
    "path migration request error",
    "local catastrophic error",
    "port active",
    "port error",
    "LID change",
    "P_Key change",
    "SM change",
    "SRQ catastrophic error",
    "SRQ limit reached",
    "last WQE reached",
    "client reregistration",
    "GID table change",
    "WQ fatal",
};
static_assert(std::size(kEvents) == IBV_EVENT_WQ_FATAL + 1);

constexpr const char* kCompletions[] = {
    "success",
    "local length error",
    "local QP operation error",
    "local EE context operation error",
    "local protection error",
    "Work Request Flushed Error",
    "memory management operation error",
    "bad response error",
    "local access error",
    "remote invalid request error",
    "remote access error",
    "remote operation error",
    "transport retry counter exceeded",
    "RNR retry counter exceeded",
    "local RDD violation error",
    "remote invalid RD request",
    "aborted error",
    "invalid EE context number",
    "invalid EE context state",
    "fatal error",
    "response timeout error",
    "general error",
    "TM error",
    "TM software rendezvous",
};
static_assert(std::size(kCompletions) == IBV_WC_TM_RNDV_INCOMPLETE + 1);

}  // namespace

extern "C" {

const char* ibv_node_type_str(ibv_node_type type) { return name_of(kNodeTypes, type, IBV_NODE_CA); }
const char* ibv_port_state_str(ibv_port_state state) { return name_of(kPortStates, state); }
const char* ibv_event_type_str(ibv_event_type event) { return name_of(kEvents, event); }
const char* ibv_wc_status_str(ibv_wc_status status) { return name_of(kCompletions, status); }

}  // extern "C"
