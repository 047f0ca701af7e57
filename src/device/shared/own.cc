#include "device/shared/own.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "device/shared/sparse.h"

namespace verbena::device {

std::shared_ptr<Own> Own::make() {
  void* p = map_sparse(sizeof(Maps), MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (p == MAP_FAILED) return nullptr;
  madvise(p, sizeof(Maps), MADV_DONTDUMP);
  return std::shared_ptr<Own>(new Own(static_cast<Maps*>(p)));
}

Own::~Own() { munmap(static_cast<void*>(maps_), sizeof(Maps)); }

void Own::note(std::uint32_t index, const MkeyContext& shared, const std::byte* slice) {
  MkeyContext& mine = maps_->keys[index];
  // By fields: a reader that comes too late may still look (and then at the generation).
  mine.flags.store(shared.flags.load(std::memory_order_relaxed), std::memory_order_release);
  mine.mode = shared.mode;
  mine.log_page = shared.log_page;
  mine.start = shared.start;
  mine.length = shared.length;
  mine.translations = shared.translations;
  mine.entries = shared.entries;
  if (mine.mode != MkeyMode::mtt || mine.entries == 0) return;
  if (mine.translations > kSliceBytes || mine.entries * sizeof(Translation) > kSliceBytes - mine.translations) {
    mine.entries = 0;  // somebody was faster
    return;
  }
  std::lock_guard guard(mutex_);
  std::vector<Translation>& table = tables_[index];
  if (table.size() != mine.entries) {
    if (!table.empty()) spare_.emplace(table.size(), std::move(table));
    table.clear();
    if (const auto it = spare_.find(mine.entries); it != spare_.end()) {
      table = std::move(it->second);
      spare_.erase(it);
    }
    table.resize(mine.entries);
  }
  const auto* from = reinterpret_cast<const Translation*>(slice + mine.translations);
  std::copy(from, from + table.size(), table.begin());
  mine.translations = reinterpret_cast<std::uint64_t>(table.data()) - reinterpret_cast<std::uint64_t>(slice);
}

void Own::forget(std::uint32_t index) {
  std::lock_guard guard(mutex_);
  const auto it = tables_.find(index);
  if (it == tables_.end()) return;
  spare_.emplace(it->second.size(), std::move(it->second));
  tables_.erase(it);
}

}  // namespace verbena::device
