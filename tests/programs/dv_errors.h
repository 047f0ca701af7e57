// What dv_errors is made of: cases, a context of another provider, raw commands and what their refusals leave.
#pragma once

#include <dlfcn.h>

#include <functional>

#include "devx_world.h"
#include "prm/general_object.h"

inline int cases = 0;

inline void expect(const char* function, int expected, const char* name, int line, const std::function<int()>& call) {
  errno = 0;
  const int got = call();
  ++cases;
  EXPECT(got == expected, "line %d: %s: %s expected, got %d (%s)", line, function, name, got, strerror(got));
}
#define CASE(function, error, ...) expect(#function, error, #error, __LINE__, [&]() -> int { return __VA_ARGS__; })

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

// What a refused command leaves: status and syndrome, and the device tells which field was wrong, and why.
inline int refused(std::span<const std::byte> out, int error) {
  if (error != EREMOTEIO) return error;
  const prm::ConstView<prm::CommandOut> head(out.data());
  const std::uint32_t syndrome = head.get<prm::CommandOut::syndrome>();
  if (head.get<prm::CommandOut::status>() == prm::Status::ok || !syndrome) return -1;
  using Explain = int (*)(std::uint32_t, char*, std::size_t);
  void* nic = dlopen("libverbena-nic.so", RTLD_LAZY | RTLD_NOLOAD);
  const auto explain = nic ? reinterpret_cast<Explain>(dlsym(nic, "verbena_explain")) : nullptr;
  char text[256];
  if (explain && (explain(syndrome, text, sizeof text) || !std::strstr(text, ": "))) return -2;
  return error;
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
  std::size_t length = sizeof in;
};
