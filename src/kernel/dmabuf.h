// Memory that another device's driver, or udmabuf, gives away by descriptor: a dma-buf, mapped into this process.
//
// Bus addresses are virtual addresses, so a dma-buf is of use where its exporter lets processes map it.
// Threads: under the File's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace verbena::kernel {

class DmaBuf {
 public:
  // Maps [offset, offset + length) of it. 0, or an errno: EBADF (not open), EINVAL (no dma-buf, or not that long),
  // EOPNOTSUPP (it cannot be mapped so).
  static int map(int fd, std::uint64_t offset, std::uint64_t length, bool writable, std::unique_ptr<DmaBuf>* out);
  ~DmaBuf();
  DmaBuf(const DmaBuf&) = delete;
  DmaBuf& operator=(const DmaBuf&) = delete;

  // Of the first byte.
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(mapping_) + skip_; }

 private:
  DmaBuf(void* mapping, std::size_t bytes, std::size_t skip) : mapping_(mapping), bytes_(bytes), skip_(skip) {}

  void* mapping_;
  std::size_t bytes_, skip_;
};

}  // namespace verbena::kernel
