// Protection domains, thread domains and parent domains.

#include <rdma/mlx5_user_ioctl_cmds.h>

#include <memory>

#include "mlx5/ops.h"
#include "mlx5/uar.h"

namespace verbena::mlx5 {

ibv_pd* alloc_pd(ibv_context* ibv) {
  auto pd = std::make_unique<Pd>();
  mlx5_ib_alloc_pd_resp response = {};
  const verbs::Udata udata{.out = &response, .out_length = sizeof response};
  if (verbena_cmd_alloc_pd(ibv, &pd->pd, &udata)) return nullptr;
  pd->pdn = response.pdn;
  return &pd.release()->pd;
}

namespace {

int dealloc_parent_domain(ParentDomain* domain) {
  if (domain->users.load() > 1) return EBUSY;
  domain->parent_of->users.fetch_sub(1);
  if (domain->thread) domain->thread->users.fetch_sub(1);
  delete domain;
  return 0;
}

}  // namespace

int dealloc_pd(ibv_pd* ibpd) {
  if (ParentDomain* domain = parent_domain_of(ibpd)) return dealloc_parent_domain(domain);
  Pd* pd = pd_of(ibpd);
  if (pd->users.load() > 1) return EBUSY;
  if (int error = verbena_cmd_dealloc_pd(ibpd)) return error;
  delete pd;
  return 0;
}

ibv_td* alloc_td(ibv_context* ibv, ibv_td_init_attr* attr) {
  if (attr->comp_mask) return fail_null(EINVAL);
  Context* context = context_of(ibv);
  auto td = std::make_unique<Td>();
  td->uar = take_thread_uar(context);
  if (!td->uar) return nullptr;
  td->td.context = ibv;
  return &td.release()->td;
}

int dealloc_td(ibv_td* ibtd) {
  Td* td = td_of(ibtd);
  if (td->users.load() > 1) return EBUSY;
  give_thread_uar(context_of(ibtd->context), td->uar);
  delete td;
  return 0;
}

ibv_pd* alloc_parent_domain(ibv_context* ibv, ibv_parent_domain_init_attr* attr) {
  // ALLOW_CC_UNPROTECTED_ALLOC of newer programs: a licence that only confidential guests need.
  constexpr std::uint32_t kMayShare = 1u << 2;
  constexpr std::uint32_t kKnown =
      IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT | kMayShare;
  if (!attr->pd || (attr->comp_mask & ~kKnown)) return fail_null(EINVAL);
  // Both allocators or neither: memory must go back where it came from.
  if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) && (!attr->alloc || !attr->free))
    return fail_null(EINVAL);
  auto domain = std::make_unique<ParentDomain>();
  Pd* pd = pd_of(attr->pd);
  domain->parent_of = pd;
  domain->pdn = pd->pdn;
  pd->users.fetch_add(1);
  if (attr->td) {
    domain->thread = td_of(attr->td);
    domain->thread->users.fetch_add(1);
  }
  domain->pd.context = ibv;
  domain->pd.handle = attr->pd->handle;
  if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
    domain->alloc = attr->alloc;
    domain->free = attr->free;
  }
  if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) domain->pd_context = attr->pd_context;
  return &domain.release()->pd;
}

ibv_pd* import_pd(ibv_context* ibv, std::uint32_t handle) {
  auto pd = std::make_unique<Pd>();
  uverbs::Bundle bundle(UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY);
  bundle.in_object(MLX5_IB_ATTR_QUERY_PD_HANDLE, handle);
  bundle.out_struct(MLX5_IB_ATTR_QUERY_PD_RESP_PDN, pd->pdn);
  if (verbena_execute(context_of(ibv), &bundle)) return nullptr;
  pd->pd.context = ibv;
  pd->pd.handle = handle;
  return &pd.release()->pd;
}

// The kernel's PD stays: it belongs to the context it was made on.
void unimport_pd(ibv_pd* ibpd) {
  if (!parent_domain_of(ibpd)) delete pd_of(ibpd);
}

}  // namespace verbena::mlx5
