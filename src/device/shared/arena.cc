#include "device/shared/arena.h"

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace verbena::device {

std::optional<std::uint64_t> Nic::Arena::find(std::uint64_t bytes) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (auto bin = bins_.find(bytes); bin != bins_.end()) {
      const std::uint64_t offset = bin->second.back();
      bin->second.pop_back();
      if (bin->second.empty()) bins_.erase(bin);
      return offset;
    }
    if (bytes <= kArenaBytes - top_) {
      const std::uint64_t offset = top_;
      top_ += bytes;
      return offset;
    }
    if (auto bin = bins_.lower_bound(bytes); bin != bins_.end()) {
      const std::uint64_t size = bin->first, offset = bin->second.back();
      bin->second.pop_back();
      if (bin->second.empty()) bins_.erase(bin);
      bins_[size - bytes].push_back(offset + bytes);
      return offset;
    }
    merge();
  }
  return std::nullopt;
}

void Nic::Arena::merge() {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> runs;
  for (const auto& [size, offsets] : bins_)
    for (const std::uint64_t offset : offsets) runs.emplace_back(offset, size);
  bins_.clear();
  std::sort(runs.begin(), runs.end());
  for (std::size_t i = 0; i < runs.size();) {
    auto [offset, size] = runs[i++];
    while (i < runs.size() && runs[i].first == offset + size) size += runs[i++].second;
    if (offset + size == top_)
      top_ = offset;
    else
      bins_[size].push_back(offset);
  }
}

std::optional<std::uint64_t> Nic::Arena::alloc_pages(std::uint64_t bytes) {
  if (bytes == 0 || bytes > kArenaBytes) return std::nullopt;
  bytes = round(bytes);
  const auto offset = find(bytes);
  if (!offset) return std::nullopt;
  int rc;
  do {
    rc = fallocate(fd_, 0, static_cast<off_t>(kArenaOffset + *offset), static_cast<off_t>(bytes));
  } while (rc != 0 && errno == EINTR);
  if (rc != 0) {
    bins_[bytes].push_back(*offset);
    return std::nullopt;
  }
  return offset;
}

void Nic::Arena::free_pages(std::uint64_t offset, std::uint64_t bytes) {
  if (bytes == 0 || bytes > kArenaBytes || offset > kArenaBytes - bytes || offset % kPage != 0) return;
  bytes = round(bytes);
  // A hole gives the memory back and reads as zeros when allocated again.
  if (fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(kArenaOffset + offset),
                static_cast<off_t>(bytes)) != 0)
    std::memset(base_ + offset, 0, bytes);
  bins_[bytes].push_back(offset);
}

std::optional<std::uint64_t> Nic::Arena::reserve(std::uint64_t bytes, std::uint64_t align) {
  bytes = round(bytes);
  if (bytes == 0 || bytes > kArenaBytes || align > kArenaBytes) return std::nullopt;
  if (align <= kPage) return find(bytes);
  if (auto bin = bins_.find(bytes); bin != bins_.end()) {
    auto& offsets = bin->second;
    const auto fit = std::find_if(offsets.begin(), offsets.end(), [align](auto o) { return o % align == 0; });
    if (fit != offsets.end()) {
      const std::uint64_t offset = *fit;
      *fit = offsets.back();
      offsets.pop_back();
      if (offsets.empty()) bins_.erase(bin);
      return offset;
    }
  }
  const std::uint64_t start = (top_ + align - 1) & ~(align - 1);
  if (start > kArenaBytes || bytes > kArenaBytes - start) return std::nullopt;
  if (start != top_) bins_[start - top_].push_back(top_);
  top_ = start + bytes;
  return start;
}

std::optional<std::uint64_t> Nic::Arena::alloc_small(std::uint64_t bytes) {
  if (bytes > kPage) return alloc_pages(bytes);
  const std::uint64_t size = std::bit_ceil(std::max(bytes, kSmallest));
  auto& list = small_[std::countr_zero(size / kSmallest)];
  if (list.empty()) {
    const auto page = alloc_pages(kPage);
    if (!page) return std::nullopt;
    for (std::uint64_t at = kPage; at != 0; at -= size) list.push_back(*page + at - size);
  }
  const std::uint64_t offset = list.back();
  list.pop_back();
  std::memset(base_ + offset, 0, size);
  return offset;
}

void Nic::Arena::free_small(std::uint64_t offset, std::uint64_t bytes) {
  if (bytes > kPage) return free_pages(offset, bytes);
  const std::uint64_t size = std::bit_ceil(std::max(bytes, kSmallest));
  small_[std::countr_zero(size / kSmallest)].push_back(offset);
}

}  // namespace verbena::device
