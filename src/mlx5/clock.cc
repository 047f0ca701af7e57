// The device's clock page and the kernel's page that relates it to wall time.

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "mlx5/ops.h"

namespace verbena::mlx5 {

namespace {

std::size_t page_size() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

void* map_page(Context* context, mlx5_ib_mmap_cmd command) {
  void* page = verbena_mmap(context, page_size(), PROT_READ,
                            static_cast<std::int64_t>((std::uint64_t{command} << 8) * page_size()));
  return page == MAP_FAILED ? nullptr : page;
}

// Two big-endian halves, high first; the high one is read again because the low one may have wrapped between.
std::uint64_t read_cycles(const char* clock) {
  const auto half = [clock](unsigned at) { return be(*reinterpret_cast<const volatile std::uint32_t*>(clock + at)); };
  std::uint32_t high = half(0), low = half(4);
  if (const std::uint32_t again = half(0); again != high) {
    high = again;
    low = half(4);
  }
  return (std::uint64_t{high} << 32) | low;
}

}  // namespace

void map_clocks(Context* context) {
  if (context->caps.comp_mask & MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_CORE_CLOCK_OFFSET) {
    context->core_clock_map = map_page(context, MLX5_IB_MMAP_CORE_CLOCK);
    if (context->core_clock_map)
      context->core_clock = static_cast<char*>(context->core_clock_map) +
                            (context->caps.hca_core_clock_offset & (page_size() - 1) & ~std::uint64_t{7});
  }
  if (context->caps.clock_info_versions & (1 << MLX5_IB_CLOCK_INFO_V1))
    context->clock_info = static_cast<mlx5_ib_clock_info*>(map_page(context, MLX5_IB_MMAP_CLOCK_INFO));
}

void unmap_clocks(Context* context) {
  if (context->core_clock_map) verbena_munmap(context, context->core_clock_map, page_size());
  if (context->clock_info) verbena_munmap(context, context->clock_info, page_size());
  context->core_clock_map = nullptr;
  context->core_clock = nullptr;
  context->clock_info = nullptr;
}

// The kernel updates the page under a sequence number whose low bit says "being written".
int read_clock_info(const Context* context, mlx5dv_clock_info* out) {
  const mlx5_ib_clock_info* page = context->clock_info;
  if (!page) return EINVAL;
  // Acquiring loads throughout: the second look at the sign comes after the values.
  const auto load = [](const auto& word) { return __atomic_load_n(&word, __ATOMIC_ACQUIRE); };
  for (int attempt = 0; attempt < 10; ++attempt) {
    const std::uint32_t before = load(page->sign);
    if (before & MLX5_IB_CLOCK_INFO_KERNEL_UPDATING) continue;
    *out = {load(page->nsec), load(page->cycles), load(page->frac), load(page->mult), load(page->shift), load(page->mask)};
    if (load(page->sign) == before) return 0;
  }
  return EBUSY;
}

int query_rt_values(ibv_context* ibv, ibv_values_ex* values) {
  constexpr std::uint32_t kKnown = IBV_VALUES_MASK_RAW_CLOCK;
  if (values->comp_mask & ~kKnown) return EINVAL;
  const std::uint32_t wanted = values->comp_mask;
  values->comp_mask = 0;
  if (!wanted) return 0;
  const Context* context = context_of(ibv);
  values->raw_clock.tv_sec = 0;
  if (mlx5dv_clock_info info; context->backend->step && !read_clock_info(context, &info) && info.mult) {
    // A look at the embedded device's clock is a fault; what relates its cycles to the time of day does so both ways.
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    const auto ns = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
    const auto passed = static_cast<std::uint64_t>((static_cast<unsigned __int128>(ns - info.nsec) << info.shift) / info.mult);
    values->raw_clock.tv_nsec = static_cast<long>(info.last_cycles + passed);
  } else if (context->core_clock) {
    values->raw_clock.tv_nsec = static_cast<long>(read_cycles(context->core_clock));
  } else {
    return EOPNOTSUPP;
  }
  values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  return 0;
}

}  // namespace verbena::mlx5
