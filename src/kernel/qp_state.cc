#include "kernel/qp_state.h"

namespace verbena::kernel {
namespace {

using A = QpAttr;

struct Masks {
  std::uint32_t required, optional;
};
// RC, UC, UD, the halves of XRC and raw packets are the types this device has.
struct Transition {
  QpState from, to;
  Masks rc, uc, ud, xrc_ini, xrc_tgt, raw = {0, 0};
};

constexpr Transition kTransitions[] = {
    {QpState::reset, QpState::init,
     {A::pkey_index | A::port | A::access_flags, 0},
     {A::pkey_index | A::port | A::access_flags, 0},
     {A::pkey_index | A::port | A::qkey, 0},
     {A::pkey_index | A::port | A::access_flags, 0},
     {A::pkey_index | A::port | A::access_flags, 0},
     {A::port, 0}},
    {QpState::init, QpState::init,
     {0, A::pkey_index | A::port | A::access_flags},
     {0, A::pkey_index | A::port | A::access_flags},
     {0, A::pkey_index | A::port | A::qkey},
     {0, A::pkey_index | A::port | A::access_flags},
     {0, A::pkey_index | A::port | A::access_flags}},
    {QpState::init, QpState::rtr,
     {A::av | A::path_mtu | A::dest_qpn | A::rq_psn | A::max_dest_rd_atomic | A::min_rnr_timer,
      A::alt_path | A::access_flags | A::pkey_index},
     {A::av | A::path_mtu | A::dest_qpn | A::rq_psn, A::alt_path | A::access_flags | A::pkey_index},
     {0, A::pkey_index | A::qkey},
     {A::av | A::path_mtu | A::dest_qpn | A::rq_psn, A::alt_path | A::access_flags | A::pkey_index},
     {A::av | A::path_mtu | A::dest_qpn | A::rq_psn | A::max_dest_rd_atomic | A::min_rnr_timer,
      A::alt_path | A::access_flags | A::pkey_index}},
    {QpState::rtr, QpState::rts,
     {A::timeout | A::retry_cnt | A::rnr_retry | A::sq_psn | A::max_qp_rd_atomic,
      A::cur_state | A::alt_path | A::access_flags | A::min_rnr_timer | A::path_mig_state},
     {A::sq_psn, A::cur_state | A::alt_path | A::access_flags | A::path_mig_state},
     {A::sq_psn, A::cur_state | A::qkey},
     {A::timeout | A::retry_cnt | A::rnr_retry | A::sq_psn | A::max_qp_rd_atomic,
      A::cur_state | A::alt_path | A::access_flags | A::path_mig_state},
     {A::timeout | A::sq_psn, A::cur_state | A::alt_path | A::access_flags | A::min_rnr_timer | A::path_mig_state},
     {0, A::rate_limit}},
    {QpState::rts, QpState::rts,
     {0, A::cur_state | A::access_flags | A::alt_path | A::path_mig_state | A::min_rnr_timer},
     {0, A::cur_state | A::access_flags | A::alt_path | A::path_mig_state},
     {0, A::cur_state | A::qkey},
     {0, A::cur_state | A::access_flags | A::alt_path | A::path_mig_state},
     {0, A::cur_state | A::access_flags | A::alt_path | A::path_mig_state | A::min_rnr_timer},
     {0, A::rate_limit}},
    {QpState::rts, QpState::sqd,
     {0, A::en_sqd_async_notify}, {0, A::en_sqd_async_notify}, {0, A::en_sqd_async_notify}, {0, A::en_sqd_async_notify},
     {0, A::en_sqd_async_notify}},
    {QpState::sqd, QpState::rts,
     {0, A::cur_state | A::alt_path | A::access_flags | A::min_rnr_timer | A::path_mig_state},
     {0, A::cur_state | A::alt_path | A::access_flags | A::path_mig_state},
     {0, A::cur_state | A::qkey},
     {0, A::cur_state | A::alt_path | A::access_flags | A::path_mig_state},
     {0, A::cur_state | A::alt_path | A::access_flags | A::min_rnr_timer | A::path_mig_state}},
    {QpState::sqd, QpState::sqd,
     {0, A::port | A::av | A::timeout | A::retry_cnt | A::rnr_retry | A::max_qp_rd_atomic | A::max_dest_rd_atomic |
             A::alt_path | A::access_flags | A::pkey_index | A::min_rnr_timer | A::path_mig_state},
     {0, A::av | A::alt_path | A::access_flags | A::pkey_index | A::path_mig_state},
     {0, A::pkey_index | A::qkey},
     {0, A::port | A::av | A::timeout | A::retry_cnt | A::rnr_retry | A::max_qp_rd_atomic | A::alt_path |
             A::access_flags | A::pkey_index | A::path_mig_state},
     {0, A::port | A::av | A::timeout | A::max_dest_rd_atomic | A::alt_path | A::access_flags | A::pkey_index |
             A::min_rnr_timer | A::path_mig_state}},
    {QpState::sqe, QpState::rts, {0, 0}, {0, A::cur_state | A::access_flags}, {0, A::cur_state | A::qkey}, {0, 0}, {0, 0}},
};

bool fits(const Masks& masks, std::uint32_t mask) {
  return (mask & masks.required) == masks.required && !(mask & ~(masks.required | masks.optional | A::state));
}

}  // namespace

bool modify_is_ok(QpState current, QpState next, QpType type, std::uint32_t mask) {
  if (mask & A::cur_state && current != QpState::rtr && current != QpState::rts && current != QpState::sqd &&
      current != QpState::sqe)
    return false;
  // Every state may go to RESET and to the error state, with nothing else to say.
  if (next == QpState::reset || next == QpState::err) return fits({0, 0}, mask);
  for (const Transition& t : kTransitions) {
    if (t.from != current || t.to != next) continue;
    if (current == QpState::sqe && (type == QpType::xrc_ini || type == QpType::xrc_tgt)) return false;
    switch (type) {
      case QpType::rc: return fits(t.rc, mask);
      case QpType::uc: return fits(t.uc, mask);
      case QpType::ud: return fits(t.ud, mask);
      case QpType::raw_packet: return fits(t.raw, mask);
      case QpType::xrc_ini: return fits(t.xrc_ini, mask);
      case QpType::xrc_tgt: return fits(t.xrc_tgt, mask);
      default: return false;
    }
  }
  return false;
}

}  // namespace verbena::kernel
