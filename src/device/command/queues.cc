#include "device/command/queues.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "device/memory/guard.h"
#include "prm/command.h"

namespace verbena::device::command {
namespace {

constexpr unsigned kAdapterPage = 12;  // log_page_size 0 means 4 KiB
constexpr std::uint64_t kPageFlags = 0xfff;

Maybe<Backing> in_umem(State& state, const QueueMemory& memory, std::uint64_t bytes, std::uint16_t uid) {
  Umem* umem = state.umems.find(memory.umem_id);
  if (!umem || !may_use(*umem, uid)) return refuse(Syndrome::queue_umem_missing);
  const std::uint64_t page = 1ull << (memory.log_page_size + kAdapterPage);
  const std::uint64_t offset = memory.umem_offset + memory.page_offset * (page / 64);
  if (memory.umem_offset > umem->bytes || offset > umem->bytes || bytes > umem->bytes - offset)
    return refuse(Syndrome::queue_umem_short);
  if (memory.written && !umem->writable) return refuse(Syndrome::queue_umem_read_only);
  Backing backing;
  backing.wq_umem = memory.umem_id;
  backing.va = umem->va + offset;
  backing.log_page = memory.log_page_size + kAdapterPage;
  return backing;
}

Maybe<Backing> in_page_list(const QueueMemory& memory, std::uint64_t bytes) {
  const unsigned log_page = memory.log_page_size + kAdapterPage;
  const std::uint64_t page = 1ull << log_page;
  const std::uint64_t offset = memory.page_offset * (page / 64);
  const std::uint64_t needed = (offset + bytes + page - 1) >> log_page;
  if (memory.pages.size() / prm::Pas::size < needed) return refuse(Syndrome::queue_pages_short);
  if (needed == 0) return Backing{};
  const std::uint64_t first = prm::load_be64(memory.pages.data()) & ~kPageFlags;
  for (std::uint64_t i = 1; i < needed; ++i)
    if ((prm::load_be64(memory.pages.data() + i * prm::Pas::size) & ~kPageFlags) != first + (i << log_page))
      return refuse(Syndrome::queue_pages_scattered);
  if (first + (needed << log_page) < first) return refuse(Syndrome::queue_not_mapped);
  Backing backing;
  backing.va = first + offset;
  backing.first_page = first;
  backing.pages = static_cast<std::uint32_t>(needed);
  backing.log_page = log_page;
  return backing;
}

// The pages that a queue has from its command alone, UMEMs apart: the device reaches them as it does memory regions.
std::array<std::pair<std::uint64_t, std::uint64_t>, 2> named_pages(const Backing& backing) {
  constexpr std::uint64_t page = 1ull << kAdapterPage;
  const bool dbr = backing.dbr != 0 && backing.dbr_umem == Backing::kNone;
  return {{{backing.first_page, std::uint64_t{backing.pages} << backing.log_page},
           {backing.dbr & ~(page - 1), dbr ? page : 0}}};
}

}  // namespace

bool is_mapped(std::uint64_t va, std::uint64_t bytes) {
  static const std::uint64_t page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  if (bytes == 0) return true;
  if (va + bytes < va) return false;
  unsigned char resident[256];
  std::uint64_t at = va & ~(page - 1);
  const std::uint64_t end = va + bytes;
  while (at < end) {
    const std::uint64_t run = std::min<std::uint64_t>(end - at, sizeof resident * page);
    if (mincore(reinterpret_cast<void*>(at), run, resident) != 0) return false;
    at += sizeof resident * page;
    if (at == 0) return false;
  }
  return true;
}

std::optional<std::uint32_t> read_record(std::uint64_t va) {
  std::byte word[4];
  if (va == 0 || guarded_copy(word, reinterpret_cast<const void*>(va), sizeof word) != 0) return std::nullopt;
  return prm::load_be32(word);
}

Maybe<Backing> locate_queue(State& state, const QueueMemory& memory, std::uint64_t bytes, std::uint16_t uid) {
  if (memory.log_page_size > 31) return refuse(Syndrome::queue_page_size);
  auto backing = memory.umem_valid ? in_umem(state, memory, bytes, uid) : in_page_list(memory, bytes);
  if (!backing) return backing;
  if (backing->va % 64) return refuse(Syndrome::queue_unaligned);
  if (!is_mapped(backing->va, bytes)) return refuse(Syndrome::queue_not_mapped);
  return backing;
}

Maybe<std::uint64_t> locate_doorbell(State& state, bool umem_valid, std::uint32_t umem_id, std::uint64_t addr,
                                     std::uint16_t uid, Backing& backing) {
  if (umem_valid) {
    Umem* umem = state.umems.find(umem_id);
    if (!umem || !may_use(*umem, uid)) return refuse(Syndrome::dbr_umem_missing);
    if (addr > umem->bytes || 8 > umem->bytes - addr) return refuse(Syndrome::dbr_umem_short);
    addr += umem->va;
    backing.dbr_umem = umem_id;
  }
  if (addr % 8) return refuse(Syndrome::dbr_unaligned);
  if (!is_mapped(addr, 8)) return refuse(Syndrome::dbr_not_mapped);
  backing.dbr = addr;
  return addr;
}

QueueMemory memory_of(const prm::ConstView<prm::Wq>& wq, std::span<const std::byte> pages) {
  using prm::Wq;
  return {.umem_valid = wq.get<Wq::wq_umem_valid>() != 0,
          .umem_id = wq.get<Wq::wq_umem_id>(),
          .umem_offset = wq.get<Wq::wq_umem_offset>(),
          .log_page_size = wq.get<Wq::log_wq_pg_sz>(),
          .page_offset = wq.get<Wq::page_offset>(),
          .pages = pages};
}

Maybe<Backing> locate_work_queue(State& state, const prm::ConstView<prm::Wq>& wq, unsigned log_stride,
                                 std::span<const std::byte> pages, std::uint16_t uid) {
  using prm::Wq;
  auto backing = locate_queue(state, memory_of(wq, pages), 1ull << (wq.get<Wq::log_wq_sz>() + log_stride), uid);
  if (!backing) return backing;
  const auto dbr = locate_doorbell(state, wq.get<Wq::dbr_umem_valid>(), wq.get<Wq::dbr_umem_id>(),
                                   wq.get<Wq::dbr_addr>(), uid, *backing);
  if (!dbr) return refuse(dbr.error());
  return backing;
}

void hold(State& state, const Backing& backing) {
  for (auto id : {backing.wq_umem, backing.dbr_umem})
    if (Umem* umem = state.umems.find(id)) ++umem->uses;
  for (const auto& [va, bytes] : named_pages(backing)) state.engine.registered(va, bytes);
}

void let_go(State& state, const Backing& backing) {
  for (auto id : {backing.wq_umem, backing.dbr_umem})
    if (Umem* umem = state.umems.find(id); umem && umem->uses) --umem->uses;
  for (const auto& [va, bytes] : named_pages(backing)) state.engine.unregistered(va, bytes);
}

void list_pages(const Backing& backing, std::span<std::byte> tail) {
  const std::size_t room = tail.size() / prm::Pas::size;
  for (std::size_t i = 0; i < std::min<std::size_t>(room, backing.pages); ++i)
    prm::store_be64(tail.data() + i * prm::Pas::size, backing.first_page + (std::uint64_t{i} << backing.log_page));
}

}  // namespace verbena::device::command
