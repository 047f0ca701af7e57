#include "kernel/command.h"

#include <cerrno>

namespace verbena::kernel {

int errno_of(prm::Status status) {
  using prm::Status;
  switch (status) {
    case Status::ok:
      return 0;
    case Status::bad_op:
    case Status::bad_param:
    case Status::bad_resource:
    case Status::bad_res_state:
    case Status::bad_index:
    case Status::bad_qp_state:
    case Status::bad_pkt:
    case Status::bad_size:
      return EINVAL;
    case Status::resource_busy:
      return EBUSY;
    case Status::exceed_lim:
      return ENOMEM;
    case Status::no_resources:
      return EAGAIN;
    case Status::internal_err:
    case Status::bad_sys_state:
    case Status::bad_input_len:
    case Status::bad_output_len:
      return EIO;
  }
  return EIO;
}

int run(device::Device& device, std::span<const std::byte> in, std::span<std::byte> out) {
  device.execute(in, out);
  return errno_of(prm::ConstView<prm::CommandOut>(out.data()).get<prm::CommandOut::status>());
}

bool page_run(std::uint64_t address, std::uint64_t length, PageRun* run) {
  std::uint64_t end = 0;
  if (address % 64 || __builtin_add_overflow(address, length, &end)) return false;
  run->first = address & ~std::uint64_t{4095};
  run->count = (end - run->first + 4095) / 4096;
  run->offset64 = static_cast<std::uint32_t>((address - run->first) / 64);
  return true;
}

}  // namespace verbena::kernel
