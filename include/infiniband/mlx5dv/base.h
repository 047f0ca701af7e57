/* mlx5 direct verbs. What every part of the interface stands on. */
#ifndef VERBENA_INFINIBAND_MLX5DV_BASE_H_
#define VERBENA_INFINIBAND_MLX5DV_BASE_H_

#include <endian.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#if defined(__SSE3__)
#include <emmintrin.h>
#include <tmmintrin.h>
#endif

#include <infiniband/verbs.h>

#ifdef __GNUC__
#define MLX5DV_ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define MLX5DV_ALWAYS_INLINE inline
#endif

#ifndef ETHERNET_LL_SIZE
#define ETHERNET_LL_SIZE 6
#endif

/* Newer than some installed verbs.h; only pointers to it are passed here. */
struct ibv_fd_arr;

#endif
