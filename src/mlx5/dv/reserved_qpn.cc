#include "mlx5/dv/reserved_qpn.h"

#include <array>
#include <new>
#include <utility>

#include "mlx5/devx/command.h"
#include "mlx5/export.h"
#include "prm/general_object.h"
#include "support/at_fork.h"

namespace verbena::mlx5 {

namespace {

using Head = prm::GeneralObjInCmdHdr;
constexpr std::size_t kBody = 16;  // of the object: reserved

// A context gets its account with its first number.
ReservedQpns& account_of(Context* context) {
  std::lock_guard guard(mutex_over_fork<ForkRank::reserved_qpns>());
  if (!context->reserved_qpns) context->reserved_qpns = std::make_shared<ReservedQpns>(context);
  return *context->reserved_qpns;
}

}  // namespace

ReservedQpns::~ReservedQpns() {
  for (const auto& [first, block] : blocks) mlx5dv_devx_obj_destroy(block.object);
}

int ReservedQpns::add_block() {
  // Room for the account first: a block that it had no room for would be lost.
  std::map<std::uint32_t, Block> room;
  room[0].used.resize(std::size_t{1} << context->hca.log_reserved_qpns);
  std::array<std::byte, Head::size + kBody> in{};
  prm::Box<prm::GeneralObjOutCmdHdr> out;
  prm::View<Head> head(in.data());
  head.set<Head::opcode>(static_cast<std::uint16_t>(prm::Opcode::create_general_object));
  head.set<Head::obj_type>(prm::GeneralObjectType::reserved_qpn);
  head.set<Head::log_obj_range>(context->hca.log_reserved_qpns);
  mlx5dv_devx_obj* object =
      mlx5dv_devx_obj_create(context->ibv(), in.data(), in.size(), out.data(), prm::GeneralObjOutCmdHdr::size);
  if (!object) return command_errno(errno, out.data());
  newest = out.get<prm::GeneralObjOutCmdHdr::obj_id>();
  auto node = room.extract(0);
  node.key() = newest;
  node.mapped().object = object;
  blocks.insert(std::move(node));
  return 0;
}

int ReservedQpns::alloc(std::uint32_t* qpn) {
  std::lock_guard guard(lock);
  auto block = blocks.find(newest);
  if (block == blocks.end() || block->second.next == block->second.used.size()) {
    if (int error = add_block()) return error;
    block = blocks.find(newest);
  }
  Block& b = block->second;
  b.used[b.next] = true;
  ++b.users;
  *qpn = block->first + b.next++;
  return 0;
}

int ReservedQpns::free(std::uint32_t qpn) {
  std::lock_guard guard(lock);
  auto block = blocks.upper_bound(qpn);
  if (block == blocks.begin()) return EINVAL;
  auto& [first, b] = *--block;
  if (qpn - first >= b.used.size() || !b.used[qpn - first]) return EINVAL;
  b.used[qpn - first] = false;
  // A block goes when all its numbers were used and given back.
  if (--b.users || b.next < b.used.size()) return 0;
  mlx5dv_devx_obj_destroy(b.object);
  blocks.erase(block);
  return 0;
}

}  // namespace verbena::mlx5

using namespace verbena;
using namespace verbena::mlx5;

extern "C" {

VERBENA_MLX5_EXPORT int mlx5dv_reserved_qpn_alloc(ibv_context* ibv, std::uint32_t* qpn) {
  Context* context = mlx5_context(ibv);
  if (!context || !(context->hca.general_obj_types >> static_cast<unsigned>(prm::GeneralObjectType::reserved_qpn) & 1))
    return EOPNOTSUPP;
  try {
    return account_of(context).alloc(qpn);
  } catch (const std::bad_alloc&) {
    return fail(ENOMEM);
  }
}

VERBENA_MLX5_EXPORT int mlx5dv_reserved_qpn_dealloc(ibv_context* ibv, std::uint32_t qpn) {
  Context* context = mlx5_context(ibv);
  return context ? fail(account_of(context).free(qpn)) : EOPNOTSUPP;
}

}  // extern "C"
