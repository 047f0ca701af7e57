#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "kernel/ib.h"
#include "kernel/mr.h"

namespace verbena::kernel {
namespace {

constexpr std::uint32_t kAnyQp = 0xffffff;

#ifndef MADV_POPULATE_READ
constexpr int MADV_POPULATE_READ = 22;
constexpr int MADV_POPULATE_WRITE = 23;
#endif

bool populate_works() {
  static const bool works = [] {
    alignas(kPageSize) static char page[kPageSize];
    return !madvise(page, sizeof page, MADV_POPULATE_READ);
  }();
  return works;
}

bool page_is_usable(std::uint64_t address, bool writable) {
  void* page = reinterpret_cast<void*>(address & ~(kPageSize - 1));
  if (populate_works()) return !madvise(page, kPageSize, writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
  unsigned char resident;
  return !mincore(page, kPageSize, &resident);
}

}  // namespace

int check_access(std::uint32_t access) {
  if (access & (Access::remote_atomic | Access::remote_write) && !(access & Access::local_write)) return EINVAL;
  if (access & ~Access::known) return EINVAL;
  // Paging on demand is a capability this device does not have.
  return access & Access::on_demand ? EOPNOTSUPP : 0;
}

int check_memory(std::uint64_t address, std::uint64_t length, bool writable) {
  std::uint64_t end = 0;
  if (__builtin_add_overflow(address, length, &end) || end + (kPageSize - 1) < end) return EINVAL;
  if (!length && address % kPageSize == 0) return EINVAL;
  if (!page_is_usable(address, writable)) return EFAULT;
  return !length || page_is_usable(end - 1, writable) ? 0 : EFAULT;
}

MkeyRequest::MkeyRequest(File& file, std::uint32_t pdn, std::size_t klm_entries)
    : file_(file),
      variant_(file.node().next_key_variant()),
      // Translation tables are whole multiples of four entries.
      command_(prm::Opcode::create_mkey, file.context().uid, (klm_entries + 3) / 4 * 4 * prm::Klm::size) {
  auto mkc = context();
  mkc.set<prm::Mkc::qpn>(kAnyQp);
  mkc.set<prm::Mkc::mkey_7_0>(variant_);
  mkc.set<prm::Mkc::pd>(pdn);
  mkc.set<prm::Mkc::umr_en>(1);
  if (!klm_entries) return;
  const auto octwords = static_cast<std::uint32_t>((klm_entries + 3) / 4 * 4);
  mkc.set<prm::Mkc::translations_octword_size>(octwords);
  command_.in().set<prm::CreateMkeyIn::translations_octword_actual_size>(static_cast<std::uint32_t>(klm_entries));
  prm::set_mkey_access_mode(mkc, prm::MkeyAccessMode::klms);
}

prm::View<prm::Mkc> MkeyRequest::context() { return command_.in().sub<prm::CreateMkeyIn::memory_key_mkey_entry>(); }

prm::View<prm::Klm> MkeyRequest::klm(std::size_t i) { return command_.in().at<prm::CreateMkeyIn::klms>(i); }

int MkeyRequest::run(std::uint32_t* key) {
  if (int error = command_.run(file_.device())) return error;
  *key = command_.out().get<prm::CreateMkeyOut::mkey_index>() << 8 | variant_;
  return 0;
}

int destroy_mkey(File& file, std::uint32_t key) {
  Command<prm::DestroyMkeyIn, prm::DestroyMkeyOut> destroy(prm::Opcode::destroy_mkey, file.context().uid);
  destroy.in().set<prm::DestroyMkeyIn::mkey_index>(key >> 8);
  return destroy.run(file.device());
}

}  // namespace verbena::kernel
