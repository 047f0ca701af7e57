#include "mlx5/environment.h"

#include <strings.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

namespace verbena::mlx5::environment {

namespace {

constexpr int kBfregsPerUar = 2;
constexpr int kMaxBfregs = 512;
constexpr int kMediumThreshold = 12;  // at most so many bfregs are shared

bool equals(const char* name, const char* value) {
  const char* given = std::getenv(name);
  return given && !std::strcmp(given, value);
}

}  // namespace

bool single_threaded() { return equals("MLX5_SINGLE_THREADED", "1"); }
bool shut_up_blueflame() {
  const char* value = std::getenv("MLX5_SHUT_UP_BF");
  return value && std::strcmp(value, "0");
}
bool prefer_blueflame() { return !equals("MLX5_POST_SEND_PREFER_BF", "0"); }
bool scatter_to_cqe() { return !equals("MLX5_SCATTER_TO_CQE", "0"); }
bool huge(const char* key) { return equals(key, "y"); }

int total_bfregs() {
  const char* value = std::getenv("MLX5_TOTAL_UUARS");
  int total = value ? std::atoi(value) : 16;
  if (total < 1) return -EINVAL;
  total = (std::max(total, kBfregsPerUar) + kBfregsPerUar - 1) / kBfregsPerUar * kBfregsPerUar;
  return total > kMaxBfregs ? -ENOMEM : total;
}

int low_latency_bfregs(int total) {
  const char* value = std::getenv("MLX5_NUM_LOW_LAT_UUARS");
  int count = value ? std::atoi(value) : 4;
  if (count < 0) return -EINVAL;
  count = std::max(count, total - kMediumThreshold);
  return count > total - 1 ? -ENOMEM : count;
}

int cqe_size() {
  const char* value = std::getenv("MLX5_CQE_SIZE");
  const int size = value ? std::atoi(value) : 64;
  return size == 64 || size == 128 ? size : -EINVAL;
}

AllocType alloc_type(const char* component, AllocType fallback) {
  static constexpr struct {
    const char* name;
    AllocType type;
  } kNames[] = {{"ANON", AllocType::anonymous},          {"HUGE", AllocType::huge},
                {"CONTIG", AllocType::contiguous},       {"PREFER_CONTIG", AllocType::prefer_contiguous},
                {"PREFER_HUGE", AllocType::prefer_huge}, {"ALL", AllocType::all}};
  const std::string name = std::string("MLX_") + component + "_ALLOC_TYPE";
  if (const char* value = std::getenv(name.c_str()))
    for (const auto& known : kNames)
      if (!strcasecmp(value, known.name)) return known.type;
  return fallback;
}

}  // namespace verbena::mlx5::environment
