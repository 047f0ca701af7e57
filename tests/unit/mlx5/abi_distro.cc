#include <infiniband/mlx5dv.h>

#include "tests/unit/mlx5/abi_probe.h"
#ifdef VERBENA_INFINIBAND_MLX5DV_H_
#error "this file must see the distribution's header"
#endif
#include "tests/unit/mlx5/abi_table.inc"

std::span<const verbena::test::AbiProbe> verbena::test::distro_probes() { return kProbes; }
