// What stands on DEVX or beside it: device memory, reserved QP numbers, virtio doorbell pages, sharing between contexts,
// and what this device does not have.
#include <sys/mman.h>

#include <set>
#include <vector>

#include "devx_world.h"

namespace {

bool by_type = false;  // by the call that names the type of memory
ibv_dm* alloc(World* w, std::size_t length, std::uint32_t log_align = 0) {
  ibv_alloc_dm_attr attr = {};
  attr.length = length;
  attr.log_align_req = log_align;
  mlx5dv_alloc_dm_attr kind = {};
  kind.type = MLX5DV_DM_TYPE_MEMIC;
  errno = 0;
  return by_type ? mlx5dv_alloc_dm(w->context, &attr, &kind) : ibv_alloc_dm(w->context, &attr);
}

std::size_t max_dm(World* w) {
  ibv_device_attr_ex attr = {};
  CHECK(!ibv_query_device_ex(w->context, nullptr, &attr));
  return attr.max_dm_size;
}

// A peer writes into device memory, the program reads it through its mapping, and the other way round.
void device_memory(World* w) {
  CHECK(max_dm(w) == 131072);
  ibv_dm* dm = alloc(w, 4000);
  CHECK(dm);
  constexpr int access = static_cast<int>(kAllAccess) | IBV_ACCESS_ZERO_BASED;
  ibv_mr* mr = ibv_reg_dm_mr(w->pd, dm, 1024, 2048, access);
  CHECK(mr);
  char local[256], back[256];
  Queues a(w), b(w);
  a.connect(b.qpn);
  b.connect(a.qpn);
  std::memset(a.data(), 0x5a, 256);
  a.post(prm::WqeOpcode::rdma_write, 256, 512, mr->rkey, false);
  CHECK(a.next_cqe().get<prm::Cqe64::opcode>() == prm::CqeOpcode::req);
  CHECK(!ibv_memcpy_from_dm(back, dm, 1024 + 512, 256));
  CHECK(back[0] == 0x5a && back[255] == 0x5a);
  CHECK(!ibv_memcpy_from_dm(back, dm, 1024 + 512 + 256, 4) && back[0] == 0);
  // By the memory itself.
  mlx5dv_dm view = {};
  mlx5dv_obj object = {};
  object.dm.in = dm;
  object.dm.out = &view;
  CHECK(!mlx5dv_init_obj(&object, MLX5DV_OBJ_DM) && view.length == 4000);
  CHECK(static_cast<char*>(view.buf)[1024 + 512] == 0x5a);
  static_cast<char*>(view.buf)[1024 + 512] = 0x11;
  CHECK(!ibv_memcpy_from_dm(back, dm, 1024 + 512, 4) && back[0] == 0x11);
  // Past the end of the region: a remote access error.
  a.post(prm::WqeOpcode::rdma_write, 256, 2048 - 255, mr->rkey, false);
  const auto error = a.next_cqe();
  CHECK(error.get<prm::Cqe64::opcode>() == prm::CqeOpcode::req_err);

  CHECK(ibv_memcpy_to_dm(dm, 2, local, 4) == EINVAL && ibv_memcpy_to_dm(dm, 4, local, 6) == EINVAL);
  CHECK(ibv_memcpy_to_dm(dm, 3996, local, 8) == EFAULT && ibv_memcpy_from_dm(local, dm, 4000, 4) == EFAULT);
  errno = 0;
  CHECK(!ibv_reg_dm_mr(w->pd, dm, 0, 4004, access) && errno == EINVAL);
  CHECK(!ibv_reg_dm_mr(w->pd, dm, 4004, 0, access) && errno == EINVAL);
  CHECK(!ibv_reg_dm_mr(w->pd, dm, 0, 64, kAllAccess) && errno == EINVAL);  // not zero-based
  CHECK(!ibv_reg_dm_mr(w->pd, dm, 0, 64, access | static_cast<int>(IBV_ACCESS_MW_BIND)) && errno == EINVAL);
  CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, access) != 0);
  CHECK(ibv_free_dm(dm) == EBUSY);
  CHECK(!ibv_dereg_mr(mr) && !ibv_free_dm(dm));
}

void device_memory_limits(World* w) {
  CHECK(!alloc(w, max_dm(w) + 1) && errno == EINVAL);
  CHECK(!alloc(w, 0) && errno == EINVAL);
  CHECK(!alloc(w, 64, 13) && errno == EINVAL);
  ibv_dm* aligned = alloc(w, 64, 12);
  CHECK(aligned && !ibv_free_dm(aligned));
  ibv_dm* half[2] = {alloc(w, max_dm(w) / 2), alloc(w, max_dm(w) / 2)};
  CHECK(half[0] && half[1]);
  CHECK(!alloc(w, 64) && errno == ENOMEM);
  CHECK(!ibv_free_dm(half[0]));
  ibv_dm* again = alloc(w, 64);
  CHECK(again && !ibv_free_dm(again) && !ibv_free_dm(half[1]));
  ibv_alloc_dm_attr attr = {};
  attr.length = 64;
  mlx5dv_alloc_dm_attr kind = {};
  kind.type = static_cast<mlx5dv_alloc_dm_type>(9);
  CHECK(!mlx5dv_alloc_dm(w->context, &attr, &kind) && errno == EOPNOTSUPP);
  kind.type = MLX5DV_DM_TYPE_STEERING_SW_ICM;
  CHECK(!mlx5dv_alloc_dm(w->context, &attr, &kind));  // dv_errors.cc says by which errno
  kind.type = MLX5DV_DM_TYPE_MEMIC;
  kind.comp_mask = 1;
  CHECK(!mlx5dv_alloc_dm(w->context, &attr, &kind) && errno == EINVAL);
}

// Loads and stores on the addresses of operations, beside remote access to the same memory.
void device_memory_operations(World* w) {
  ibv_dm* dm = alloc(w, 5000);
  CHECK(dm);
  CHECK(!mlx5dv_dm_map_op_addr(dm, 2) && errno == EOPNOTSUPP);
  CHECK(!mlx5dv_dm_map_op_addr(dm, 200) && errno == EOPNOTSUPP);
  auto* add = static_cast<volatile std::uint64_t*>(mlx5dv_dm_map_op_addr(dm, 0));
  auto* again = static_cast<volatile std::uint64_t*>(mlx5dv_dm_map_op_addr(dm, 0));
  auto* set = static_cast<volatile std::uint64_t*>(mlx5dv_dm_map_op_addr(dm, 1));
  CHECK(add && again && set && add != again);
  const std::uint64_t start = 40;
  CHECK(!ibv_memcpy_to_dm(dm, 4096, &start, sizeof start));
  add[512] = 1;
  again[512] = 1;
  std::uint64_t value = 0;
  CHECK(!ibv_memcpy_from_dm(&value, dm, 4096, sizeof value) && value == 42);
  CHECK(set[512] == 42 && set[512] == ~std::uint64_t{0} && add[512] == ~std::uint64_t{0});
  ibv_dm* other = alloc(w, 64);  // lies elsewhere, and so do its operations
  CHECK(other);
  auto* others = static_cast<volatile std::uint32_t*>(mlx5dv_dm_map_op_addr(other, 0));
  CHECK(others);
  others[0] = 7;
  std::uint32_t small = 0;
  CHECK(!ibv_memcpy_from_dm(&small, other, 0, sizeof small) && small == 7);
  for (const volatile void* page : {static_cast<const volatile void*>(add), static_cast<const volatile void*>(again),
                                    static_cast<const volatile void*>(set)})
    CHECK(!munmap(const_cast<void*>(page), 8192));
  CHECK(!ibv_free_dm(dm) && !ibv_free_dm(other));
}

void reserved_numbers(World* w) {
  std::set<std::uint32_t> numbers;
  std::uint32_t qpn = 0;
  for (int i = 0; i < 200; ++i) {
    CHECK(!mlx5dv_reserved_qpn_alloc(w->context, &qpn));
    CHECK(qpn >= 0x40 && qpn < 1u << 24 && numbers.insert(qpn).second);
  }
  // No QP gets one of them.
  ibv_cq* cq = ibv_create_cq(w->context, 16, nullptr, nullptr, 0);
  CHECK(cq);
  for (int i = 0; i < 100; ++i) {
    ibv_qp* qp = make_qp(w, IBV_QPT_RC, cq, cq, nullptr);
    CHECK(!numbers.contains(qp->qp_num));
    if (i % 2) continue;
    CHECK(!ibv_destroy_qp(qp));
  }
  CHECK(mlx5dv_reserved_qpn_dealloc(w->context, 0xfffff0) == EINVAL);
  for (const std::uint32_t number : numbers) CHECK(!mlx5dv_reserved_qpn_dealloc(w->context, number));
  CHECK(mlx5dv_reserved_qpn_dealloc(w->context, *numbers.begin()) == EINVAL);
}

void virtio_pages(World* w) {
  mlx5dv_var* first = mlx5dv_alloc_var(w->context, 0);
  mlx5dv_var* second = mlx5dv_alloc_var(w->context, 0);
  CHECK(first && second && first->page_id != second->page_id && first->mmap_off != second->mmap_off);
  const auto map = [&](mlx5dv_var* var) {
    return mmap(nullptr, var->length, PROT_READ | PROT_WRITE, MAP_SHARED, w->context->cmd_fd, var->mmap_off);
  };
  auto* one = static_cast<std::uint32_t*>(map(first));
  auto* two = static_cast<std::uint32_t*>(map(second));
  CHECK(one != MAP_FAILED && two != MAP_FAILED);
  *one = 1;
  CHECK(*two == 0);
  munmap(one, first->length);
  munmap(two, second->length);
  errno = 0;
  CHECK(!mlx5dv_alloc_var(w->context, 4) && errno == EOPNOTSUPP);
  mlx5dv_free_var(first);
  mlx5dv_free_var(second);
}

// The same file, another context.
void sharing(World* w) {
  ibv_context* other = ibv_import_device(dup(w->context->cmd_fd));
  CHECK(other);
  mlx5dv_export_sizes sizes = {};
  mlx5dv_get_export_sizes(&sizes);
  char blob[64];
  // Exports are as long as it says: the first bytes are all that an import needs, and no other is written.
  const auto exported = [&](std::size_t size, auto write) {
    CHECK(size && size < sizeof blob);
    std::memset(blob, 0x5e, sizeof blob);
    CHECK(!write(blob));
    for (std::size_t i = size; i < sizeof blob; ++i) CHECK(blob[i] == 0x5e);
    std::vector<char> kept(blob, blob + size);
    std::memset(blob, 0x7f, sizeof blob);
    std::memcpy(blob, kept.data(), size);
  };
  Queues q(w);
  exported(sizes.devx_obj_attrs_size, [&](void* to) { return mlx5dv_devx_obj_export(q.cq, to); });
  mlx5dv_devx_obj* cq = mlx5dv_devx_obj_import(other, blob);
  CHECK(cq);
  QueryCq query(prm::Opcode::query_cq);
  query.in.set<prm::QueryCqIn::cqn>(q.cqn);
  CHECK(!query.query(cq));
  mlx5dv_devx_obj_unimport(cq);
  // What is done through an import is done to the object itself.
  exported(sizes.devx_obj_attrs_size, [&](void* to) { return mlx5dv_devx_obj_export(q.qp, to); });
  mlx5dv_devx_obj* qp = mlx5dv_devx_obj_import(other, blob);
  CHECK(qp);
  q.connect(q.qpn);
  q.post_recv(8);
  Command<prm::Qp2errIn, prm::Qp2errOut> fail(prm::Opcode::qp_2err);
  fail.in.set<prm::Qp2errIn::qpn>(q.qpn);
  CHECK(!fail.modify(qp));
  CHECK(q.next_cqe().get<prm::Cqe64::opcode>() == prm::CqeOpcode::resp_err);
  mlx5dv_devx_obj_unimport(qp);
  AllocPd alloc_pd(prm::Opcode::alloc_pd);
  mlx5dv_devx_obj* pd = alloc_pd.create(w->context);
  CHECK(pd);
  exported(sizes.devx_obj_attrs_size, [&](void* to) { return mlx5dv_devx_obj_export(pd, to); });
  mlx5dv_devx_obj* same = mlx5dv_devx_obj_import(other, blob);
  CHECK(same && !mlx5dv_devx_obj_destroy(same) && mlx5dv_devx_obj_destroy(pd) == ENOENT);
  mlx5dv_devx_obj_unimport(pd);
  exported(sizes.devx_umem_attrs_size, [&](void* to) { return mlx5dv_devx_umem_export(q.umem, to); });
  mlx5dv_devx_umem* umem = mlx5dv_devx_umem_import(other, blob);
  CHECK(umem && umem->umem_id == q.umem->umem_id);
  mlx5dv_devx_umem_unimport(umem);
  mlx5dv_var* var = mlx5dv_alloc_var(w->context, 0);
  CHECK(var);
  exported(sizes.var_attrs_size, [&](void* to) { return mlx5dv_var_export(var, to); });
  mlx5dv_var* imported = mlx5dv_var_import(other, blob);
  CHECK(imported && imported->mmap_off == var->mmap_off && imported->page_id == var->page_id);
  mlx5dv_var_unimport(imported);
  mlx5dv_free_var(var);
  errno = 0;
  CHECK(mlx5dv_devx_uar_export_dmabuf_fd(q.uar) < 0 && errno == EPROTONOSUPPORT);
  CHECK(!ibv_close_device(other));
}

// An address handle follows a QP until it is destroyed; a second mapping of the same handle changes nothing.
void mapped_addresses(World* w) {
  ibv_ah_attr attr = {};
  attr.is_global = 1;
  attr.port_num = 1;
  attr.grh.dgid = w->gid;
  attr.grh.sgid_index = static_cast<std::uint8_t>(w->gid_index);
  attr.grh.hop_limit = 64;
  ibv_ah* ah = ibv_create_ah(w->pd, &attr);
  ibv_cq* cq = ibv_create_cq(w->context, 4, nullptr, nullptr, 0);
  CHECK(ah && cq);
  ibv_qp* qp = make_qp(w, IBV_QPT_RC, cq, cq, nullptr);
  CHECK(mlx5dv_map_ah_to_qp(ah, 0xfffff0) == EINVAL);
  CHECK(!mlx5dv_map_ah_to_qp(ah, qp->qp_num));
  CHECK(!mlx5dv_map_ah_to_qp(ah, 0xfffff0));  // it has one
  CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_destroy_ah(ah));
}

void not_there(World* w) {
  errno = 0;
  CHECK(!mlx5dv_devx_alloc_msi_vector(w->context) && errno == EOPNOTSUPP);
  errno = 0;
  CHECK(!mlx5dv_devx_create_eq(w->context, nullptr, 0, nullptr, 0) && errno == EOPNOTSUPP);
  mlx5dv_vfio_context_attr vfio = {};
  errno = 0;
  CHECK(!mlx5dv_get_vfio_device_list(&vfio) && errno == EOPNOTSUPP);
  errno = 0;
  CHECK(mlx5dv_vfio_get_events_fd(w->context) == -1 && errno == EOPNOTSUPP);
}

}  // namespace

int main() {
  World w = open_devx();
  for (by_type = false;; by_type = true) {
    device_memory(&w);
    device_memory_limits(&w);
    device_memory_operations(&w);
    if (by_type) break;
  }
  reserved_numbers(&w);
  virtio_pages(&w);
  sharing(&w);
  mapped_addresses(&w);
  not_there(&w);
  puts("ok");
  return 0;
}
