#include "kernel/pd.h"

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>

#include <cerrno>

#include "kernel/command.h"
#include "kernel/method.h"
#include "prm/misc.h"

namespace verbena::kernel {

int Pd::destroy(File& file) {
  Command<prm::DeallocPdIn, prm::DeallocPdOut> command(prm::Opcode::dealloc_pd, file.context().uid);
  command.in().set<prm::DeallocPdIn::pd>(pdn);
  return command.run(file.device());
}

namespace {

int write_alloc_pd(File& file, WriteCall& call) {
  Command<prm::AllocPdIn, prm::AllocPdOut> command(prm::Opcode::alloc_pd, file.context().uid);
  if (int error = command.run(file.device())) return error;
  auto pd = std::make_unique<Pd>();
  pd->pdn = command.out().get<prm::AllocPdOut::pd>();
  call.driver.write(mlx5_ib_alloc_pd_resp{pd->pdn});
  ib_uverbs_alloc_pd_resp response{};
  response.pd_handle = file.objects().add(std::move(pd));
  call.write(&response, sizeof response);
  return 0;
}

int write_dealloc_pd(File& file, WriteCall& call) {
  int error = 0;
  Pd* pd = file.find<Pd>(call.read<ib_uverbs_dealloc_pd>().pd_handle, UVERBS_OBJECT_PD, &error);
  return pd ? file.destroy(pd) : error;
}

constexpr AttrSpec kDestroyAttrs[] = {
    uverbs::object_attr(UVERBS_ATTR_DESTROY_PD_HANDLE, UVERBS_OBJECT_PD, AttrAccess::destroy)};

constexpr AttrSpec kQueryAttrs[] = {
    uverbs::object_attr(MLX5_IB_ATTR_QUERY_PD_HANDLE, UVERBS_OBJECT_PD, AttrAccess::read),
    uverbs::out_attr(MLX5_IB_ATTR_QUERY_PD_RESP_PDN, 4),
};

int native_query_pd(File& file, Request& request) {
  int error = 0;
  Pd* pd = file.find<Pd>(request.handle(MLX5_IB_ATTR_QUERY_PD_HANDLE), UVERBS_OBJECT_PD, &error);
  return pd ? request.write(MLX5_IB_ATTR_QUERY_PD_RESP_PDN, pd->pdn) : error;
}

constexpr Method kMethods[] = {
    {{UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, kDestroyAttrs},
     destroy_method<UVERBS_OBJECT_PD, UVERBS_ATTR_DESTROY_PD_HANDLE>},
    {{UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY, kQueryAttrs}, native_query_pd},
};
constexpr WriteCommand kCommands[] = {
    {IB_USER_VERBS_CMD_ALLOC_PD, sizeof(ib_uverbs_alloc_pd), sizeof(ib_uverbs_alloc_pd_resp), write_alloc_pd},
    {IB_USER_VERBS_CMD_DEALLOC_PD, sizeof(ib_uverbs_dealloc_pd), 0, write_dealloc_pd},
};

}  // namespace

std::span<const Method> pd_methods() { return kMethods; }
std::span<const WriteCommand> pd_commands() { return kCommands; }

}  // namespace verbena::kernel
