/*
 * mlx5 direct verbs: the vendor interface of ConnectX-class devices, beside <infiniband/verbs.h>.
 *
 * Declares the whole interface of libmlx5.so.1 up to symbol node MLX5_1.27; names, values and layouts are those that
 * binaries built against rdma-core use. One header a subject; include this one and get them all.
 */
#ifndef VERBENA_INFINIBAND_MLX5DV_H_
#define VERBENA_INFINIBAND_MLX5DV_H_

#include <infiniband/mlx5dv/base.h>
#include <infiniband/mlx5dv/cqe.h>
#include <infiniband/mlx5dv/crypto.h>
#include <infiniband/mlx5dv/device.h>
#include <infiniband/mlx5dv/devx.h>
#include <infiniband/mlx5dv/dr.h>
#include <infiniband/mlx5dv/flow.h>
#include <infiniband/mlx5dv/object.h>
#include <infiniband/mlx5dv/queue.h>
#include <infiniband/mlx5dv/wqe.h>
#include <infiniband/mlx5dv/wr.h>

#endif
