// ENOMEM of the mlx5dv calls for want of memory in the process: each call is made again and again, and each time another one
// of its allocations fails. It says ENOMEM then, whoever wanted the memory, library, kernel's role or device; and once all
// allocations succeed, so does the call.
#include <new>

#include "dv_errors.h"

namespace {

thread_local bool armed = false;
thread_local unsigned allowed = 0;  // allocations before the one that fails
thread_local bool failed = false;

bool fails() {
  if (!armed || failed) return false;
  if (allowed--) return false;
  return failed = true;
}

}  // namespace

void* operator new(std::size_t bytes) {
  void* memory = fails() ? nullptr : std::malloc(bytes);
  if (!memory) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return fails() ? nullptr : std::malloc(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace {

unsigned swept = 0;

// ENOMEM if that is what every failure but none led to, 0 if nothing could fail; else what `call` said. `undo` takes back
// what it made.
template <class Call, class Undo>
int when_memory_fails(Call call, Undo undo) {
  for (unsigned n = 0; n < 200; ++n) {
    allowed = n;
    failed = false;
    errno = 0;
    armed = true;
    const auto made = call();
    armed = false;
    const int error = errno;
    if (made) {
      undo(made);
      if (!failed) return n ? ENOMEM : 0;
      continue;  // it did without
    }
    if (!failed || error != ENOMEM) return error ? error : -1;
    ++swept;
  }
  return -1;
}
// The same of calls that return the errno.
template <class Call, class Undo>
int when_memory_fails_of(Call call, Undo undo) {
  return when_memory_fails(
      [&] {
        const int error = call();
        errno = error;
        return !error;
      },
      [&](bool) { undo(); });
}

void objects(World* w) {
  using prm::Opcode;
  Queues q(w);
  AllocPd pd(Opcode::alloc_pd);
  CASE(mlx5dv_devx_obj_create, ENOMEM, when_memory_fails([&] { return pd.create(w->context); }, mlx5dv_devx_obj_destroy));
  mlx5dv_devx_obj* doomed = pd.create(w->context);
  CHECK(doomed);
  CASE(mlx5dv_devx_obj_destroy, ENOMEM, when_memory_fails_of([&] { return mlx5dv_devx_obj_destroy(doomed); }, [] {}));
  Command<prm::NopIn, prm::NopOut> nop(Opcode::nop);
  CASE(mlx5dv_devx_general_cmd, ENOMEM, when_memory_fails_of([&] { return nop.general(w->context); }, [] {}));
  QueryCq query(Opcode::query_cq);
  query.in.set<prm::QueryCqIn::cqn>(q.cqn);
  CASE(mlx5dv_devx_obj_query, ENOMEM, when_memory_fails_of([&] { return query.query(q.cq); }, [] {}));
  Command<prm::ModifyCqIn, prm::ModifyCqOut> modify(Opcode::modify_cq);
  modify.in.set<prm::ModifyCqIn::cqn>(q.cqn);
  CASE(mlx5dv_devx_obj_modify, ENOMEM, when_memory_fails_of([&] { return modify.modify(q.cq); }, [] {}));
  char blob[64];
  CHECK(!mlx5dv_devx_obj_export(q.cq, blob));
  CASE(mlx5dv_devx_obj_import, ENOMEM,
       when_memory_fails([&] { return mlx5dv_devx_obj_import(w->context, blob); }, mlx5dv_devx_obj_unimport));
  CHECK(!mlx5dv_devx_umem_export(q.umem, blob));
  CASE(mlx5dv_devx_umem_import, ENOMEM,
       when_memory_fails([&] { return mlx5dv_devx_umem_import(w->context, blob); }, mlx5dv_devx_umem_unimport));
  alignas(4096) static char page[4096];
  CASE(mlx5dv_devx_umem_reg, ENOMEM,
       when_memory_fails([&] { return mlx5dv_devx_umem_reg(w->context, page, sizeof page, IBV_ACCESS_LOCAL_WRITE); },
                         mlx5dv_devx_umem_dereg));
  mlx5dv_devx_umem* umem = mlx5dv_devx_umem_reg(w->context, page, sizeof page, IBV_ACCESS_LOCAL_WRITE);
  CHECK(umem);
  CASE(mlx5dv_devx_umem_dereg, ENOMEM, when_memory_fails_of([&] { return mlx5dv_devx_umem_dereg(umem); }, [] {}));
  CASE(mlx5dv_devx_alloc_uar, ENOMEM,
       when_memory_fails([&] { return mlx5dv_devx_alloc_uar(w->context, 1u << 31); }, mlx5dv_devx_free_uar));
  auto* done = mlx5dv_devx_create_cmd_comp(w->context);
  CHECK(done);
  CASE(mlx5dv_devx_obj_query_async, ENOMEM,
       when_memory_fails_of(
           [&] { return mlx5dv_devx_obj_query_async(q.cq, query.in.data(), query.in.size(), query.out.size(), 1, done); },
           [&] {
             alignas(8) char answer[prm::QueryCqOut::size + 8];
             CHECK(!mlx5dv_devx_get_async_cmd_comp(done, reinterpret_cast<mlx5dv_devx_async_cmd_hdr*>(answer), sizeof answer));
           }));
  mlx5dv_devx_destroy_cmd_comp(done);
}

void channels(World* w) {
  CASE(mlx5dv_devx_create_cmd_comp, ENOMEM,
       when_memory_fails([&] { return mlx5dv_devx_create_cmd_comp(w->context); }, mlx5dv_devx_destroy_cmd_comp));
  CASE(mlx5dv_devx_create_event_channel, ENOMEM,
       when_memory_fails([&] { return mlx5dv_devx_create_event_channel(w->context, {}); }, mlx5dv_devx_destroy_event_channel));
}

void pages(World* w) {
  CASE(mlx5dv_alloc_var, ENOMEM, when_memory_fails([&] { return mlx5dv_alloc_var(w->context, 0); }, mlx5dv_free_var));
  mlx5dv_var* var = mlx5dv_alloc_var(w->context, 0);
  char blob[64];
  CHECK(var && !mlx5dv_var_export(var, blob));
  CASE(mlx5dv_var_import, ENOMEM, when_memory_fails([&] { return mlx5dv_var_import(w->context, blob); }, mlx5dv_var_unimport));
  mlx5dv_free_var(var);
  ibv_alloc_dm_attr attr = {64, 0, 0};
  mlx5dv_alloc_dm_attr kind = {};
  CASE(mlx5dv_alloc_dm, ENOMEM, when_memory_fails([&] { return mlx5dv_alloc_dm(w->context, &attr, &kind); }, ibv_free_dm));
}

void rates_and_numbers(World* w) {
  std::uint32_t qpn = 0;
  CASE(mlx5dv_reserved_qpn_alloc, ENOMEM,
       when_memory_fails_of([&] { return mlx5dv_reserved_qpn_alloc(w->context, &qpn); },
                            [&] { CHECK(!mlx5dv_reserved_qpn_dealloc(w->context, qpn)); }));
  mlx5dv_sched_attr attr = {};
  CASE(mlx5dv_sched_node_create, ENOMEM,
       when_memory_fails([&] { return mlx5dv_sched_node_create(w->context, &attr); }, mlx5dv_sched_node_destroy));
  mlx5dv_sched_node* root = mlx5dv_sched_node_create(w->context, &attr);
  CHECK(root);
  attr.parent = root;
  CASE(mlx5dv_sched_leaf_create, ENOMEM,
       when_memory_fails([&] { return mlx5dv_sched_leaf_create(w->context, &attr); }, mlx5dv_sched_leaf_destroy));
  mlx5dv_sched_leaf* leaf = mlx5dv_sched_leaf_create(w->context, &attr);
  CHECK(leaf);
  attr.flags = MLX5DV_SCHED_ELEM_ATTR_FLAGS_MAX_AVG_BW;
  attr.max_avg_bw = 5;
  CASE(mlx5dv_sched_leaf_modify, ENOMEM, when_memory_fails_of([&] { return mlx5dv_sched_leaf_modify(leaf, &attr); }, [] {}));
  mlx5dv_sched_attr plain = {};
  CASE(mlx5dv_sched_node_modify, ENOMEM, when_memory_fails_of([&] { return mlx5dv_sched_node_modify(root, &plain); }, [] {}));
  CASE(mlx5dv_sched_leaf_destroy, ENOMEM, when_memory_fails_of([&] { return mlx5dv_sched_leaf_destroy(leaf); }, [] {}));
  CASE(mlx5dv_sched_node_destroy, ENOMEM, when_memory_fails_of([&] { return mlx5dv_sched_node_destroy(root); }, [] {}));
}

// Nothing of what failed is left, and the device goes on.
void still_works(World* w) {
  Queues a(w), b(w);
  a.connect(b.qpn);
  b.connect(a.qpn);
  for (unsigned i = 0; i < 40; ++i) {
    b.post_recv(64);
    a.post(prm::WqeOpcode::send, 64, 0, 0, i % 2);
    CHECK(a.next_cqe().get<prm::Cqe64::opcode>() == prm::CqeOpcode::req);
    CHECK(b.next_cqe().get<prm::Cqe64::byte_cnt>() == 64);
  }
}

}  // namespace

int main() {
  World w = open_devx();
  objects(&w);
  channels(&w);
  pages(&w);
  rates_and_numbers(&w);
  still_works(&w);
  close_world(&w);
  std::printf("%u allocations failed\n", swept);
  CHECK(swept > 50);
  return finish();
}
