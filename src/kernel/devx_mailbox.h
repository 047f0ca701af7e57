// Mailboxes that a program brings: their attributes in a request, and the way to the device and back.
// Threads: under the File's lock.
#pragma once

#include <cerrno>
#include <cstring>
#include <vector>

#include "kernel/method.h"
#include "prm/general_object.h"

namespace verbena::kernel {

// Requests and replies have the head of the general commands at least.
constexpr AttrSpec command_in(std::uint16_t id) {
  return {id, uverbs::AttrKind::ptr_in, true, prm::GeneralObjInCmdHdr::size, 0xffff, false, 0, AttrAccess::read};
}
constexpr AttrSpec command_out(std::uint16_t id) {
  return uverbs::out_attr(id, prm::GeneralObjOutCmdHdr::size, true, false);
}
// A handle of any class.
constexpr AttrSpec any_object(std::uint16_t id, AttrAccess access, bool mandatory = true) {
  return uverbs::object_attr(id, 0xffff, access, mandatory);
}

// One command under way. The reply goes back to the program whether the device granted it or not.
class DevxCommand {
 public:
  DevxCommand(std::span<const std::byte> in, std::size_t out_length, std::uint16_t uid)
      : in_(in.begin(), in.end()), out_(out_length) {
    prm::View<prm::GeneralObjInCmdHdr>(in_.data()).set<prm::GeneralObjInCmdHdr::uid>(uid);
  }
  std::span<std::byte> in() { return in_; }
  std::span<const std::byte> out() const { return out_; }
  // 0, or EREMOTEIO: the device refused, and the reply says how.
  int run(device::Device& device) {
    device.execute(in_, out_);
    if (out_.size() < sizeof(std::uint32_t)) return EREMOTEIO;
    return prm::ConstView<prm::CommandOut>(out_.data()).get<prm::CommandOut::status>() == prm::Status::ok ? 0
                                                                                                         : EREMOTEIO;
  }

 private:
  std::vector<std::byte> in_, out_;
};

}  // namespace verbena::kernel
