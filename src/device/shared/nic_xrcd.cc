// XRC domains of a NIC: numbers that its processes share, each for as long as one of them holds it.
#include <errno.h>

#include <algorithm>

#include "device/shared/nic.h"

namespace verbena::device {
namespace {

bool is_held(const XrcDomain& domain) {
  return std::ranges::any_of(domain.holders, [](std::uint64_t word) { return word != 0; });
}

void hold(XrcDomain& domain, std::uint32_t slot) { domain.holders[slot / 64] |= 1ull << (slot % 64); }

// Under the segment's lock; 0: none left.
std::uint32_t take(NicSegment& segment, std::uint32_t slot, std::uint64_t file_device, std::uint64_t file_inode) {
  for (std::uint32_t number = 1; number < kXrcDomains; ++number) {
    XrcDomain& domain = segment.xrcds[number];
    if (number < segment.xrcd_top.load() && is_held(domain)) continue;
    if (segment.xrcd_top.load() <= number) segment.xrcd_top.store(number + 1);
    domain.file_device = file_device;
    domain.file_inode = file_inode;
    hold(domain, slot);
    return number;
  }
  return 0;
}

}  // namespace

std::uint32_t Nic::alloc_xrcd() {
  SharedGuard guard(segment_->lock, me());
  return take(*segment_, slot(), 0, 0);
}

int Nic::join_xrcd(std::uint64_t file_device, std::uint64_t file_inode, bool create, bool exclusive,
                   std::uint32_t* number) {
  SharedGuard guard(segment_->lock, me());
  const std::uint32_t top = std::min<std::uint32_t>(segment_->xrcd_top.load(), kXrcDomains);
  for (std::uint32_t i = 1; i < top; ++i) {
    XrcDomain& domain = segment_->xrcds[i];
    if (domain.file_inode != file_inode || domain.file_device != file_device || !is_held(domain)) continue;
    if (exclusive) return EINVAL;
    hold(domain, slot());
    *number = i;
    return 0;
  }
  if (!create) return EAGAIN;
  *number = take(*segment_, slot(), file_device, file_inode);
  return *number ? 0 : ENOMEM;
}

void Nic::leave_xrcd(std::uint32_t number) {
  if (number >= kXrcDomains) return;
  SharedGuard guard(segment_->lock, me());
  segment_->xrcds[number].holders[slot() / 64] &= ~(1ull << (slot() % 64));
}

}  // namespace verbena::device
