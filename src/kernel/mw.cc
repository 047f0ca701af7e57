// Memory windows.
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <cerrno>

#include "kernel/ib.h"
#include "kernel/method.h"
#include "kernel/mr.h"

namespace verbena::kernel {
namespace {

struct Mw : Object {
  Mw() : Object(UVERBS_OBJECT_MW) {}
  int destroy(File& file) override {
    if (int error = destroy_mkey(file, key)) return error;
    --pd->users;
    return 0;
  }
  Pd* pd = nullptr;
  std::uint32_t key = 0;
};

int write_alloc_mw(File& file, WriteCall& call) {
  const auto cmd = call.read<ib_uverbs_alloc_mw>();
  int error = 0;
  Pd* pd = file.find<Pd>(cmd.pd_handle, UVERBS_OBJECT_PD, &error);
  if (!pd) return EINVAL;
  if (!file.node().caps().memory_windows) return EOPNOTSUPP;
  const auto type = static_cast<MwType>(cmd.mw_type);
  if (type != MwType::type_1 && type != MwType::type_2) return EINVAL;
  const auto driver = call.driver.read<mlx5_ib_alloc_mw>();
  if (driver.comp_mask || driver.reserved1 || driver.reserved2 || !call.driver.tail_is_zero(sizeof driver))
    return EOPNOTSUPP;

  // A window is an indirect key without content until a bind work request fills it.
  MkeyRequest request(file, pd->pdn, driver.num_klms ? driver.num_klms : 1);
  auto mkc = request.context();
  request.leave_empty();
  mkc.set<prm::Mkc::free>(1);
  mkc.set<prm::Mkc::lr>(1);
  mkc.set<prm::Mkc::en_rinval>(type == MwType::type_2 ? 1 : 0);
  auto mw = std::make_unique<Mw>();
  if ((error = request.run(&mw->key))) return error;
  mw->pd = pd;
  ++pd->users;
  ib_uverbs_alloc_mw_resp response{};
  response.rkey = mw->key;
  response.mw_handle = file.objects().add(std::move(mw));
  call.write(&response, sizeof response);
  return 0;
}

int write_dealloc_mw(File& file, WriteCall& call) {
  int error = 0;
  Mw* mw = file.find<Mw>(call.read<ib_uverbs_dealloc_mw>().mw_handle, UVERBS_OBJECT_MW, &error);
  return mw ? file.destroy(mw) : error;
}

constexpr AttrSpec kDestroyAttrs[] = {
    uverbs::object_attr(UVERBS_ATTR_DESTROY_MW_HANDLE, UVERBS_OBJECT_MW, AttrAccess::destroy)};
constexpr Method kMethods[] = {
    {{UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY, kDestroyAttrs},
     destroy_method<UVERBS_OBJECT_MW, UVERBS_ATTR_DESTROY_MW_HANDLE>},
};
constexpr WriteCommand kCommands[] = {
    {IB_USER_VERBS_CMD_ALLOC_MW, sizeof(ib_uverbs_alloc_mw), sizeof(ib_uverbs_alloc_mw_resp), write_alloc_mw},
    {IB_USER_VERBS_CMD_DEALLOC_MW, sizeof(ib_uverbs_dealloc_mw), 0, write_dealloc_mw},
};

}  // namespace

std::span<const Method> mw_methods() { return kMethods; }
std::span<const WriteCommand> mw_commands() { return kCommands; }

}  // namespace verbena::kernel
