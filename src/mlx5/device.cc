// The devices this provider drives, and its registration with libibverbs.

#include <cstdlib>
#include <cstring>
#include <new>

#include "mlx5/context.h"
#include "mlx5/types.h"

namespace verbena::mlx5 {

namespace {

constexpr std::uint32_t kMellanox = 0x15b3;

// PCI device ids of the family, ConnectX-4 to ConnectX-9 and BlueField with their virtual functions.
constexpr std::uint16_t kPartIds[] = {
    0x1011, 0x1012, 0x1013, 0x1014, 0x1015, 0x1016, 0x1017, 0x1018, 0x1019, 0x101a, 0x101b, 0x101c,
    0x101d, 0x101e, 0x101f, 0x1021, 0x1023, 0x1025, 0x1027, 0xa2d2, 0xa2d3, 0xa2d6, 0xa2dc, 0xa2df,
};

// "pci:v000015B3d00001021sv...": the two numbers after v and d.
bool parse_pci(const char* modalias, std::uint32_t* vendor, std::uint32_t* device) {
  if (std::strncmp(modalias, "pci:v", 5)) return false;
  char* end;
  *vendor = static_cast<std::uint32_t>(std::strtoul(modalias + 5, &end, 16));
  if (*end != 'd') return false;
  *device = static_cast<std::uint32_t>(std::strtoul(end + 1, &end, 16));
  return true;
}

bool match(const uverbs::DeviceInfo& info) {
  std::uint32_t vendor, part;
  if (!parse_pci(info.modalias, &vendor, &part)) {
    // Sub-functions sit on the auxiliary bus and say their driver instead.
    if (!std::strncmp(info.modalias, "auxiliary:mlx5_core.", 20)) return true;
    vendor = info.vendor_id == 0x02c9 ? kMellanox : info.vendor_id;
    part = info.device_id;
  }
  if (vendor != kMellanox) return false;
  for (std::uint16_t id : kPartIds)
    if (id == part) return true;
  return false;
}

verbs::Device* alloc_device(const uverbs::DeviceInfo&) { return new (std::nothrow) verbs::Device(); }
void free_device(verbs::Device* device) { delete device; }

constexpr verbs::Provider kProvider = {
    .abi = verbs::kDriverAbi,
    .name = "mlx5",
    .match = match,
    .alloc_device = alloc_device,
    .free_device = free_device,
    .alloc_context = alloc_context,
    .import_context = import_context,
};

[[gnu::constructor]] void register_provider() { verbena_register_provider(&kProvider); }

}  // namespace

bool is_mlx5(ibv_device* device) { return device && verbs::derived<verbs::Device>(device)->provider == &kProvider; }

}  // namespace verbena::mlx5
