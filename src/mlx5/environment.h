// The environment variables of the provider, as rdma-core's users know them. Read when used, so that a program
// (or a test) may change them between objects; MLX5_SINGLE_THREADED and the UAR counts are read at open.
//
// Threads: any that do not run beside setenv().
#pragma once

#include <cstdint>

namespace verbena::mlx5::environment {

enum class AllocType : std::uint8_t { anonymous, huge, prefer_huge, contiguous, prefer_contiguous, all };

bool single_threaded();                                           // MLX5_SINGLE_THREADED=1: no locks at all
bool shut_up_blueflame();                                         // MLX5_SHUT_UP_BF
bool prefer_blueflame();                                          // MLX5_POST_SEND_PREFER_BF, on unless "0"
bool scatter_to_cqe();                                            // MLX5_SCATTER_TO_CQE, on unless "0"
int total_bfregs();                                               // MLX5_TOTAL_UUARS; negative errno if not usable
int low_latency_bfregs(int total);                                // MLX5_NUM_LOW_LAT_UUARS; the same
int cqe_size();                                                   // MLX5_CQE_SIZE, 64 or 128; negative errno otherwise
bool huge(const char* key);                                       // HUGE_RC, HUGE_CQ, ...: "y" asks for huge pages
AllocType alloc_type(const char* component, AllocType fallback);  // MLX_<component>_ALLOC_TYPE

}  // namespace verbena::mlx5::environment
