// ALLOC_MEMIC, DEALLOC_MEMIC, MODIFY_MEMIC (addresses of operations): the driver says where in the BAR, the device keeps account.
#include "device/command/memic.h"

#include <cstring>

#include "device/command/dispatcher.h"
#include "device/command/families.h"
#include "device/command/state.h"
#include "prm/misc.h"

namespace verbena::device::command {

Memic::Area* Memic::holding(std::uint64_t address, std::uint64_t length, std::uint64_t* start) {
  auto it = areas.upper_bound(address);
  if (it == areas.begin()) return nullptr;
  --it;
  const std::uint64_t offset = address - it->first;
  if (offset > it->second.bytes || length > it->second.bytes - offset) return nullptr;
  *start = it->first;
  return &it->second;
}

namespace {

Outcome check_request(const prm::ConstView<prm::AllocMemicIn>& in) {
  using In = prm::AllocMemicIn;
  const std::uint64_t start = in.get<In::range_start_addr>(), bytes = in.get<In::range_size>();
  const std::uint32_t size = in.get<In::memic_size>();
  if (start < kMemicBarStart || start - kMemicBarStart > kMemicBarBytes ||
      bytes > kMemicBarBytes - (start - kMemicBarStart))
    return refuse(Syndrome::memic_range);
  if (!size || size % kMemicGranule || size > bytes) return refuse(Syndrome::memic_size);
  if (in.get<In::log_memic_addr_alignment>() > kMemicMaxAlignment) return refuse(Syndrome::memic_alignment);
  return {};
}

// The first place of the range that is free and aligned; 0: none.
std::uint64_t free_place(const Memic& memic, std::uint64_t start, std::uint64_t bytes, std::uint32_t size,
                         std::uint64_t align) {
  std::uint64_t at = (start + align - 1) & ~(align - 1);
  for (const auto& [address, area] : memic.areas) {
    if (address + area.bytes <= at) continue;
    if (at + size <= address) break;
    at = (address + area.bytes + align - 1) & ~(align - 1);
  }
  return at + size <= start + bytes ? at : 0;
}

Outcome alloc_memic(State& state, const Call<prm::AllocMemicIn, prm::AllocMemicOut>& call) {
  using In = prm::AllocMemicIn;
  if (auto ok = check_request(call.in); !ok) return ok;
  Memic& memic = state.memic;
  const std::uint32_t size = call.in.get<In::memic_size>();
  if (size > kMemicBytes - memic.used) return refuse(Syndrome::memic_full);
  const std::uint64_t align = std::uint64_t{kMemicGranule} << call.in.get<In::log_memic_addr_alignment>();
  const std::uint64_t at =
      free_place(memic, call.in.get<In::range_start_addr>(), call.in.get<In::range_size>(), size, align);
  if (!at) return refuse(Syndrome::memic_full);
  if (!memic.window && !(memic.window = static_cast<std::byte*>(state.nic.alloc_dma(kMemicBarBytes))))
    return refuse(Syndrome::memic_full);
  memic.areas[at] = {size, 0, 0};
  memic.used += size;
  std::memset(memic.at(at), 0, size);
  call.out.set<prm::AllocMemicOut::memic_start_addr>(at);
  return {};
}

Outcome dealloc_memic(State& state, const Call<prm::DeallocMemicIn, prm::DeallocMemicOut>& call) {
  using In = prm::DeallocMemicIn;
  const auto it = state.memic.areas.find(call.in.get<In::memic_start_addr>());
  if (it == state.memic.areas.end() || it->second.bytes != call.in.get<In::memic_size>())
    return refuse(Syndrome::memic_missing);
  if (it->second.uses || it->second.operations) return refuse(Syndrome::memic_busy);
  state.memic.used -= it->second.bytes;
  state.memic.areas.erase(it);
  return {};
}

Outcome modify_memic(State& state, const Call<prm::ModifyMemicIn, prm::ModifyMemicOut>& call) {
  using In = prm::ModifyMemicIn;
  constexpr unsigned alloc = 0, dealloc = 1;
  const auto op_mod = call.in.get<In::op_mod>();
  if (op_mod != alloc && op_mod != dealloc) return refuse(Syndrome::memic_op_mod);
  const std::uint32_t op = call.in.get<In::memic_operation_type>();
  if (op >= kMemoryOperations) return refuse(Syndrome::memic_operation);
  const std::uint64_t address = call.in.get<In::memic_start_addr>();
  const auto it = state.memic.areas.find(address);
  if (it == state.memic.areas.end()) return refuse(Syndrome::memic_missing);
  const bool has = it->second.operations >> op & 1;
  if (has == (op_mod == alloc)) return refuse(Syndrome::memic_operation_state);
  it->second.operations ^= 1u << op;
  if (op_mod == alloc)
    call.out.set<prm::ModifyMemicOut::memic_operation_addr>(Memic::operation_address(address, op));
  return {};
}

}  // namespace

void add_memic_commands(Registry& r) {
  using prm::Opcode;
  r.add<alloc_memic>(Opcode::alloc_memic, "ALLOC_MEMIC", 0, Access::privileged);
  r.add<dealloc_memic>(Opcode::dealloc_memic, "DEALLOC_MEMIC", 0, Access::privileged);
  r.add<modify_memic>(Opcode::modify_memic, "MODIFY_MEMIC", 0, Access::privileged);
}

}  // namespace verbena::device::command
