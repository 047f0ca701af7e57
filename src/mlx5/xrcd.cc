// XRC domains.

#include <new>

#include "mlx5/ops.h"

namespace verbena::mlx5 {

ibv_xrcd* open_xrcd(ibv_context* ibv, ibv_xrcd_init_attr* attr) {
  auto* xrcd = new (std::nothrow) verbs::Xrcd();
  if (!xrcd) return fail_null(ENOMEM);
  if (int error = verbena_cmd_open_xrcd(ibv, xrcd, attr)) {
    delete xrcd;
    return fail_null(error);
  }
  return &xrcd->xrcd;
}

int close_xrcd(ibv_xrcd* ibxrcd) {
  auto* xrcd = verbs::derived<verbs::Xrcd>(ibxrcd);
  if (int error = verbena_cmd_close_xrcd(xrcd)) return error;
  delete xrcd;
  return 0;
}

}  // namespace verbena::mlx5
