#include "kernel/dmabuf.h"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

#include "kernel/ib.h"

namespace verbena::kernel {

int DmaBuf::map(int fd, std::uint64_t offset, std::uint64_t length, bool writable, std::unique_ptr<DmaBuf>* out) {
  std::uint64_t end = 0;
  if (!length || __builtin_add_overflow(offset, length, &end)) return EINVAL;
  struct statfs where {};
  if (fstatfs(fd, &where)) return errno == EBADF ? EBADF : EINVAL;
  if (where.f_type != DMA_BUF_MAGIC) return EINVAL;
  // Asking for its end moves nothing: a dma-buf has no position.
  const off_t size = lseek(fd, 0, SEEK_END);
  if (size < 0 || end > static_cast<std::uint64_t>(size)) return EINVAL;
  const std::size_t skip = offset % kPageSize, bytes = length + skip;
  void* mapping = mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd,
                       static_cast<off_t>(offset - skip));
  if (mapping == MAP_FAILED) return errno == ENOMEM ? ENOMEM : EOPNOTSUPP;
  out->reset(new DmaBuf(mapping, bytes, skip));
  return 0;
}

DmaBuf::~DmaBuf() { munmap(mapping_, bytes_); }

}  // namespace verbena::kernel
