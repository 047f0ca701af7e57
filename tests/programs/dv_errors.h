// What the programs dv_errors* are made of: cases, a context of another provider, raw commands and what their refusals
// leave.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "devx_world.h"
#include "prm/general_object.h"

inline int cases = 0;

inline int of(const void* made) { return made ? 0 : errno; }
inline int of_fd(long result) { return result < 0 ? errno : 0; }

// A context, and a device, of another provider.
struct Foreign {
  struct {
    char before[4096];
    ibv_device device;
    char after[4096];
  } device = {};
  struct {
    char before[4096];
    ibv_context context;
    char after[4096];
  } context = {};
  ibv_pd pd = {};
  Foreign() {
    context.context.device = &device.device;
    pd.context = &context.context;
  }
  ibv_context* operator()() { return &context.context; }
};

// What `verbena explain` says about that syndrome: its status, the field that was wrong (or several, of which it is one),
// and why.
inline bool is_explained(unsigned status, std::uint32_t syndrome, std::string_view field) {
  char self[4096] = {}, head[64];
  CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  const std::string folder = std::string(self).substr(0, std::string(self).rfind('/'));
  std::snprintf(head, sizeof head, "0x%08x  status 0x%02x  ", syndrome, status);
  // The answer is the same everywhere: no need of this program's network.
  FILE* answer = popen(("env -u LD_PRELOAD " + folder + "/../verbena explain " + std::to_string(syndrome)).c_str(), "r");
  CHECK(answer);
  char text[512] = {};
  const bool said = std::fgets(text, sizeof text, answer);
  if (pclose(answer) || !said || std::strncmp(text, head, std::strlen(head))) return false;
  const std::string rule = text + std::strlen(head);
  const auto colon = rule.find(": ");
  return colon != std::string::npos && colon + 3 < rule.size() && std::string_view(rule).substr(0, colon).contains(field);
}

// What a refused command leaves in its output: status and syndrome, and they can be explained by the field that the caller
// knows to be wrong. Each case of EREMOTEIO must have come through here. (What the kernel refuses leaves nothing there.)
inline int explained = 0;
inline int refused(std::span<const std::byte> out, int error, const char* field) {
  if (error != EREMOTEIO) {
    const bool untouched = std::ranges::all_of(out, [](std::byte b) { return b == std::byte{}; });
    return error && !untouched ? -3 : error;
  }
  const prm::ConstView<prm::CommandOut> head(out.data());
  const std::uint32_t syndrome = head.get<prm::CommandOut::syndrome>();
  if (head.get<prm::CommandOut::status>() == prm::Status::ok || !syndrome) return -1;
  if (!*field || !is_explained(static_cast<unsigned>(head.get<prm::CommandOut::status>()), syndrome, field)) return -2;
  ++explained;
  return error;
}

inline void expect(const char* function, int expected, const char* name, int line, const std::function<int()>& call) {
  errno = 0;
  const int before = explained, got = call();
  ++cases;
  EXPECT(got == expected, "line %d: %s: %s expected, got %d (%s)", line, function, name, got, strerror(got));
  if (got == EREMOTEIO) EXPECT(explained > before, "line %d: %s: nobody looked at the output", line, function);
}
#define CASE(function, error, ...) expect(#function, error, #error, __LINE__, [&]() -> int { return __VA_ARGS__; })

// The end of a program of cases.
inline int finish(const char* mode = "") {
  std::printf("%s%s%d cases, %d refusals of the device explained\n", mode, *mode ? ": " : "", cases, explained);
  if (failures) return 1;
  if (!*mode) puts("ok");
  return 0;
}

// A work queue, and a table of it alone.
struct WorkQueue {
  World& w;
  ibv_wq_init_attr init = {};
  ibv_wq* wq;
  ibv_rwq_ind_table* table;
  WorkQueue(World& world, ibv_cq* cq) : w(world) {
    init.wq_type = IBV_WQT_RQ;
    init.max_wr = init.max_sge = 1;
    init.pd = w.pd;
    init.cq = cq;
    CHECK((wq = ibv_create_wq(w.context, &init)));
    ibv_rwq_ind_table_init_attr table_init = {};
    table_init.ind_tbl = &wq;
    CHECK((table = ibv_create_rwq_ind_table(w.context, &table_init)));
  }
  ~WorkQueue() { CHECK(!ibv_destroy_rwq_ind_table(table) && !ibv_destroy_wq(wq)); }
  int striding(std::uint64_t mask, unsigned stride) {
    mlx5dv_wq_init_attr vendor = {};
    vendor.comp_mask = mask;
    vendor.striding_rq_attrs.single_stride_log_num_of_bytes = stride;
    errno = 0;
    return of(mlx5dv_create_wq(w.context, &init, &vendor));
  }
};

struct Mailbox {
  alignas(8) std::byte in[0x110]{}, out[0x400]{};
  explicit Mailbox(prm::Opcode opcode, std::uint32_t number = 0) {
    prm::View<prm::GeneralObjInCmdHdr> head(in);
    head.set<prm::GeneralObjInCmdHdr::opcode>(static_cast<unsigned>(opcode));
    head.set<prm::GeneralObjInCmdHdr::obj_id>(number);
  }
  std::size_t length = sizeof in, room = sizeof out;
};
