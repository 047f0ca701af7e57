// Address handles. The kernel keeps them for their checks and for the destination MAC, which the provider writes into
// work requests itself.
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <cerrno>
#include <cstring>

#include "kernel/address.h"
#include "kernel/method.h"
#include "kernel/pd.h"

namespace verbena::kernel {
namespace {

struct Ah : Object {
  Ah() : Object(UVERBS_OBJECT_AH) {}
  int destroy(File&) override {
    --pd->users;
    return 0;
  }
  Pd* pd = nullptr;
};

int write_create_ah(File& file, WriteCall& call) {
  const auto cmd = call.read<ib_uverbs_create_ah>();
  if (cmd.attr.port_num != 1) return EINVAL;
  int error = 0;
  Pd* pd = file.find<Pd>(cmd.pd_handle, UVERBS_OBJECT_PD, &error);
  if (!pd) return EINVAL;
  ResolvedAddress address;
  if ((error = resolve_address(file.node(), from_abi(cmd.attr), &address))) return error;
  constexpr std::size_t needed = offsetof(mlx5_ib_create_ah_resp, reserved);
  if (call.driver.out_length < needed) return EINVAL;
  mlx5_ib_create_ah_resp driver{};
  driver.response_length = needed;
  std::memcpy(driver.dmac, address.dmac.data(), address.dmac.size());
  call.driver.write_bytes(&driver, needed);

  auto ah = std::make_unique<Ah>();
  ah->pd = pd;
  ++pd->users;
  ib_uverbs_create_ah_resp response{};
  response.ah_handle = file.objects().add(std::move(ah));
  call.write(&response, sizeof response);
  return 0;
}

int write_destroy_ah(File& file, WriteCall& call) {
  int error = 0;
  Ah* ah = file.find<Ah>(call.read<ib_uverbs_destroy_ah>().ah_handle, UVERBS_OBJECT_AH, &error);
  return ah ? file.destroy(ah) : error;
}

constexpr AttrSpec kDestroyAttrs[] = {
    uverbs::object_attr(UVERBS_ATTR_DESTROY_AH_HANDLE, UVERBS_OBJECT_AH, AttrAccess::destroy)};
constexpr Method kMethods[] = {
    {{UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY, kDestroyAttrs},
     destroy_method<UVERBS_OBJECT_AH, UVERBS_ATTR_DESTROY_AH_HANDLE>},
};
constexpr WriteCommand kCommands[] = {
    {IB_USER_VERBS_CMD_CREATE_AH, sizeof(ib_uverbs_create_ah), sizeof(ib_uverbs_create_ah_resp), write_create_ah},
    {IB_USER_VERBS_CMD_DESTROY_AH, sizeof(ib_uverbs_destroy_ah), 0, write_destroy_ah},
};

}  // namespace

std::span<const Method> ah_methods() { return kMethods; }
std::span<const WriteCommand> ah_commands() { return kCommands; }

}  // namespace verbena::kernel
