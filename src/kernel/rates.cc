#include "kernel/rates.h"

#include <cerrno>
#include <cstring>

#include "kernel/command.h"

namespace verbena::kernel {

void RateTable::resize(const Caps& caps) {
  entries_.resize(caps.rate_entries);
  min_kbps_ = caps.min_rate_kbps;
  max_kbps_ = caps.max_rate_kbps;
}

RateTable::Entry* RateTable::find(const RateContents& contents, std::uint16_t uid, bool dedicated) {
  Entry* free = nullptr;
  for (Entry& entry : entries_) {
    if (!entry.users && !free) free = &entry;
    if (entry.users && !dedicated && !entry.dedicated && entry.uid == uid && entry.contents == contents) return &entry;
  }
  return free;
}

int RateTable::write(device::Device& device, const Entry& entry, bool on) {
  using In = prm::SetPpRateLimitIn;
  Command<In, prm::SetPpRateLimitOut> command(prm::Opcode::set_pp_rate_limit, entry.uid);
  command.in().set<In::rate_limit_index>(static_cast<std::uint32_t>(&entry - entries_.data() + 1));
  if (on) std::memcpy(command.in().sub<In::ctx>().data(), entry.contents.data(), entry.contents.size());
  return command.run(device);
}

int RateTable::take(device::Device& device, const RateContents& contents, std::uint16_t uid, bool dedicated,
                    std::uint16_t* index) {
  const auto kbps = prm::ConstView<prm::SetPpRateLimitContext>(contents.data()).get<prm::SetPpRateLimitContext::rate_limit>();
  std::lock_guard guard(lock_);
  if (entries_.empty()) return EOPNOTSUPP;
  if (!kbps || kbps < min_kbps_ || kbps > max_kbps_) return EINVAL;
  Entry* entry = find(contents, uid, dedicated);
  if (!entry) return ENOSPC;
  if (!entry->users) {
    *entry = {contents, uid, dedicated, 0};
    if (int error = write(device, *entry, true)) return error;
  }
  ++entry->users;
  *index = static_cast<std::uint16_t>(entry - entries_.data() + 1);
  return 0;
}

void RateTable::give_back(device::Device& device, std::uint16_t index) {
  std::lock_guard guard(lock_);
  if (index == 0 || index > entries_.size()) return;
  Entry& entry = entries_[index - 1];
  if (entry.users && --entry.users == 0) write(device, entry, false);
}

}  // namespace verbena::kernel
