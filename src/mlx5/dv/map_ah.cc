// mlx5dv: an address whose packets are to be treated as those of a queue pair: one general object, for as long as the
// address handle lives.

#include <array>
#include <cstring>
#include <mutex>

#include "mlx5/devx/command.h"
#include "mlx5/export.h"
#include "mlx5/wire.h"
#include "prm/general_object.h"

using namespace verbena;
using namespace verbena::mlx5;

extern "C" {

VERBENA_MLX5_EXPORT int mlx5dv_map_ah_to_qp(ibv_ah* ibah, std::uint32_t qp_num) {
  const Context* context = mlx5_context(ibah->context);
  if (!context) return EOPNOTSUPP;
  Ah* ah = ah_of(ibah);
  const auto type = prm::GeneralObjectType::av_qp_mapping;
  if (!(context->hca.general_obj_types >> static_cast<unsigned>(type) & 1) || !ah->global) return EOPNOTSUPP;

  using Head = prm::GeneralObjInCmdHdr;
  std::array<std::byte, Head::size + prm::AvQpMapping::size> in{};
  prm::Box<prm::GeneralObjOutCmdHdr> out;
  const prm::View<Head> head(in.data());
  head.set<Head::opcode>(static_cast<std::uint16_t>(prm::Opcode::create_general_object)).set<Head::obj_type>(type);
  const prm::View<prm::AvQpMapping> body(in.data() + Head::size);
  body.set<prm::AvQpMapping::qpn>(qp_num);
  const auto address = body.sub<prm::AvQpMapping::remote_address_vector>();
  address.set<prm::UdAv::sl_or_eth_prio>(ah->av.stat_rate_sl & 0xf);
  address.set<prm::UdAv::src_addr_index>(be(ah->av.grh_gid_fl) >> 20 & 0xff);
  const auto gid = address.bytes<prm::UdAv::rgid_or_rip>();
  std::memcpy(gid.data(), ah->av.rgid, gid.size());

  std::lock_guard guard(ah->mutex);
  if (ah->mapping) return 0;
  ah->mapping = mlx5dv_devx_obj_create(ibah->context, in.data(), in.size(), out.data(), out.size());
  return ah->mapping ? 0 : command_errno(errno, out.data());
}

}  // extern "C"
