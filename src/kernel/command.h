// Device commands as the driver sees them: build a mailbox, run it, get an errno.
// Threads: a Command belongs to one thread; run() may be called from any.
#pragma once

#include <span>
#include <vector>

#include "device/device.h"
#include "prm/command.h"

namespace verbena::kernel {

// The errno that mlx5_core reports for a command status.
int errno_of(prm::Status status);

// Runs one mailbox; returns errno_of() its status.
int run(device::Device& device, std::span<const std::byte> in, std::span<std::byte> out);

// A request with a tail of known length, and its reply.
template <class In, class Out>
class Command {
 public:
  explicit Command(prm::Opcode opcode, std::uint16_t uid = 0, std::size_t tail = 0)
      : in_((In::size + tail + 7) / 8), length_(In::size + tail) {
    prm::View<prm::CommandIn>(bytes()).set<prm::CommandIn::opcode>(opcode).template set<prm::CommandIn::uid>(uid);
  }
  prm::View<In> in() { return prm::View<In>(bytes()); }
  prm::ConstView<Out> out() const { return out_.view(); }
  int run(device::Device& device) {
    return kernel::run(device, std::span<const std::byte>(bytes(), length_), out_.span());
  }

 private:
  std::byte* bytes() { return reinterpret_cast<std::byte*>(in_.data()); }
  std::vector<std::uint64_t> in_;
  std::size_t length_;
  prm::Box<Out> out_;
};

// Page list of a virtually contiguous buffer: the device's bus addresses are this process's virtual addresses.
struct PageRun {
  std::uint64_t first;      // address of the first page
  std::size_t count;
  std::uint32_t offset64;   // where the buffer starts in it, in 64-byte units (page_offset)
};
// Returns false if the buffer does not start on a 64-byte boundary or wraps around.
bool page_run(std::uint64_t address, std::uint64_t length, PageRun* run);

template <class Array, class View>
void fill_pages(const View& in, const PageRun& pages) {
  for (std::size_t i = 0; i < pages.count; ++i)
    in.template at<Array>(i).template set<prm::Pas::address>(pages.first + i * 4096);
}

}  // namespace verbena::kernel
