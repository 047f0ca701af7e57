// Memory regions and what they need: access rules, a look at the program's memory, memory keys.
// Threads: under the File's lock; the free functions from any thread.
#pragma once

#include <rdma/ib_user_ioctl_cmds.h>

#include "kernel/command.h"
#include "kernel/dm.h"
#include "kernel/dmabuf.h"
#include "kernel/dmah.h"
#include "kernel/file.h"
#include "kernel/pd.h"
#include "prm/mkey.h"

namespace verbena::kernel {

// Whether a combination of access flags is one the verbs allow. 0 or EINVAL / EOPNOTSUPP.
int check_access(std::uint32_t access);

// Whether the first and the last page of [address, address + length) are mapped and, if need be, writable.
// 0, EINVAL (no such range) or EFAULT. The pages between are looked at when the device touches them.
int check_memory(std::uint64_t address, std::uint64_t length, bool writable);

// Creates a memory key with the given context. 0 or an errno.
class MkeyRequest {
 public:
  MkeyRequest(File& file, std::uint32_t pdn, std::size_t klm_entries = 0);
  prm::View<prm::Mkc> context();
  prm::View<prm::Klm> klm(std::size_t i);
  // The table is made for its entries but has none yet.
  void leave_empty() { command_.in().set<prm::CreateMkeyIn::translations_octword_actual_size>(0); }
  int run(std::uint32_t* key);

 private:
  File& file_;
  std::uint8_t variant_;
  Command<prm::CreateMkeyIn, prm::CreateMkeyOut> command_;
};
int destroy_mkey(File& file, std::uint32_t key);
// A key over device memory at `address` of the BAR; it counts from zero.
int create_memic_key(File& file, const Pd& pd, std::uint64_t address, std::uint64_t length, std::uint32_t access,
                     std::uint32_t* key);

struct Mr : Object {
  Mr() : Object(UVERBS_OBJECT_MR) {}
  int destroy(File& file) override;
  bool track(device::TrackFacts* facts) const override {
    facts->kind = device::TrackKind::mr;
    facts->pd = pd ? pd->track_id() : 0;
    facts->key = key;
    facts->length = length;
    return true;
  }

  Pd* pd = nullptr;
  Dm* dm = nullptr;            // of device memory
  Dmah* dmah = nullptr;        // came with hints
  std::unique_ptr<DmaBuf> dmabuf;
  std::uint32_t key = 0;       // lkey and rkey
  std::uint32_t inner = 0;     // key of the memory itself if it has another address in the region; 0: none
  std::uint64_t start = 0, length = 0, iova = 0;
  std::uint32_t access = 0;
};

}  // namespace verbena::kernel
