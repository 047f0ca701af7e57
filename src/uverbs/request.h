// Server side of RDMA_VERBS_IOCTL: checks a request against a method's attribute table by the kernel's rules and
// gives access to what it carries.
//
// What a program hands over is copied before it is looked at, and every pointer in it may be wrong: UserMemory follows
// them. Room for results is tried before anything is done, so that EFAULT leaves nothing behind.
//
// Threads: a Request belongs to the thread that handles it. The header and the attributes it points to stay the
// caller's; they must live as long as the Request.
#pragma once

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace verbena::uverbs {

enum class AttrKind : std::uint8_t {
  ptr_in,    // data; up to 8 bytes lie in the attribute itself
  ptr_out,   // room for a result
  idr,       // object handle
  fd,        // descriptor of an object
  enum_in,   // one alternative of several, perhaps with data
  idrs_in,   // array of handles
};
enum class AttrAccess : std::uint8_t { read, write, create, destroy };

// One row of a method's table.
struct AttrSpec {
  std::uint16_t id;
  AttrKind kind;
  bool mandatory;
  std::uint16_t min_len;   // ptr_in, ptr_out: shortest accepted; enum_in: number of alternatives
  std::uint16_t max_len;   // known length; what lies behind it must be zero (zero_tail) or is refused
  bool zero_tail;
  std::uint16_t object;    // idr, fd: object class (UVERBS_OBJECT_*)
  AttrAccess access;
};

constexpr AttrSpec in_attr(std::uint16_t id, std::uint16_t length, bool mandatory = true) {
  return {id, AttrKind::ptr_in, mandatory, length, length, false, 0, AttrAccess::read};
}
// Flags: 32 bits, or 64 bits with the high half zero.
constexpr AttrSpec flags_attr(std::uint16_t id, bool mandatory = false) {
  return {id, AttrKind::ptr_in, mandatory, 4, 8, false, 0, AttrAccess::read};
}
constexpr AttrSpec const_attr(std::uint16_t id, bool mandatory = true) { return in_attr(id, 8, mandatory); }
constexpr AttrSpec any_in_attr(std::uint16_t id, bool mandatory) {
  return {id, AttrKind::ptr_in, mandatory, 0, 0xffff, false, 0, AttrAccess::read};
}
// `length` bytes at least; with `exact` false a longer buffer is welcome.
constexpr AttrSpec out_attr(std::uint16_t id, std::uint16_t length, bool mandatory = true, bool exact = true) {
  return {id, AttrKind::ptr_out, mandatory, length, exact ? length : std::uint16_t{0xffff}, false, 0,
          AttrAccess::write};
}
constexpr AttrSpec any_out_attr(std::uint16_t id, bool mandatory) { return out_attr(id, 0, mandatory, false); }
constexpr AttrSpec object_attr(std::uint16_t id, std::uint16_t object, AttrAccess access, bool mandatory = true) {
  return {id, AttrKind::idr, mandatory, 0, 0, false, object, access};
}
constexpr AttrSpec fd_attr(std::uint16_t id, std::uint16_t object, AttrAccess access, bool mandatory = true) {
  return {id, AttrKind::fd, mandatory, 0, 0, false, object, access};
}

struct MethodSpec {
  std::uint16_t object;
  std::uint16_t method;
  std::span<const AttrSpec> attrs;
  bool udata = false;  // UVERBS_ATTR_UHW_IN/OUT are accepted
};

// How pointers of the program are followed. Both answer whether every byte was there.
struct UserMemory {
  bool (*read)(void* to, const void* from, std::size_t length);
  bool (*write)(void* to, const void* from, std::size_t length);
};
// For callers whose pointers are known to be good: plain copies.
extern const UserMemory kTrustedMemory;

// Driver data of a request: what the core hands through to the driver, whichever way the request came.
struct Udata {
  std::span<const std::byte> in;
  std::byte* out = nullptr;
  std::size_t out_length = 0;
  const UserMemory* user = &kTrustedMemory;

  // The first sizeof(T) bytes, the missing ones zero.
  template <class T>
  requires std::is_trivially_copyable_v<T> T read() const {
    T value{};
    if (!in.empty()) std::memcpy(&value, in.data(), in.size() < sizeof value ? in.size() : sizeof value);
    return value;
  }
  // Whether everything behind the first `known` bytes is zero.
  bool tail_is_zero(std::size_t known) const;
  // Copies as much as fits.
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void write(const T& value) const { write_bytes(&value, sizeof value); }
  void write_bytes(const void* data, std::size_t length) const {
    if (out && out_length) user->write(out, data, length < out_length ? length : out_length);
  }
};

class Request {
 public:
  static constexpr unsigned kMaxAttrs = 32;

  explicit Request(const UserMemory& user = kTrustedMemory) : user_(user) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // Copies a program's request in and checks its header: lengths, reserved fields, driver. 0 or an errno.
  int fetch(ib_uverbs_ioctl_hdr* program, std::uint32_t driver_id);
  // Copies handles, descriptors and marks of valid output back to where fetch() found the request. 0 or EFAULT.
  int finish();

  // Checks every attribute against the table. 0 or an errno: EPROTONOSUPPORT for an unknown mandatory attribute,
  // EINVAL for a wrong length, a duplicate or a missing mandatory one, EOPNOTSUPP for a nonzero tail, EFAULT for memory
  // that is not there.
  int parse(ib_uverbs_ioctl_hdr* header, const MethodSpec& method);
  int parse(const MethodSpec& method) { return parse(header_, method); }

  bool has(std::uint16_t id) const { return find(id) != nullptr; }
  // Data of a ptr_in or enum_in attribute; empty if absent.
  std::span<const std::byte> in(std::uint16_t id) const;
  // A value of exactly or at least sizeof(T) bytes; shorter data is zero-extended (little end first).
  template <class T>
  requires std::is_trivially_copyable_v<T> T value(std::uint16_t id, T absent = {}) const {
    const ib_uverbs_attr* attr = find(id);
    if (!attr) return absent;
    T result{};
    std::span<const std::byte> data = in(id);
    std::memcpy(&result, data.data(), data.size() < sizeof result ? data.size() : sizeof result);
    return result;
  }
  // Flags as uverbs_get_flags32 reads them: absent is 0; bits outside `allowed` are EINVAL.
  int flags(std::uint16_t id, std::uint64_t allowed, std::uint32_t* out) const;
  std::uint32_t handle(std::uint16_t id) const;
  int fd(std::uint16_t id) const;
  std::size_t out_length(std::uint16_t id) const;

  // Copies a result, cut to the room there is, and marks the attribute as valid output. Absent: ENOENT. Or EFAULT.
  int write(std::uint16_t id, const void* data, std::size_t length);
  template <class T>
  requires std::is_trivially_copyable_v<T>
  int write(std::uint16_t id, const T& value) { return write(id, &value, sizeof value); }
  // As write(), but zeroes the room behind a shorter result.
  int write_or_zero(std::uint16_t id, const void* data, std::size_t length);
  // Stores the handle or descriptor of a new object.
  void set_id(std::uint16_t id, std::int64_t value);

  Udata udata() const;
  ib_uverbs_ioctl_hdr* header() const { return header_; }

 private:
  const ib_uverbs_attr* find(std::uint16_t id) const;
  int check_attr(unsigned index, const AttrSpec& spec);
  int fetch_data(unsigned index);
  bool try_room(std::uint64_t address, std::size_t length) const;
  std::span<const std::byte> data_of(const ib_uverbs_attr& attr) const;

  const UserMemory& user_;
  ib_uverbs_ioctl_hdr* program_ = nullptr;  // where the copy in own_ came from
  ib_uverbs_ioctl_hdr* header_ = nullptr;
  std::uint32_t known_ = 0;  // bit per attribute: it is in the method's table
  const std::byte* data_[kMaxAttrs] = {};  // of attributes whose data lies elsewhere
  std::vector<std::unique_ptr<std::byte[]>> copies_;
  alignas(8) std::byte own_[sizeof(ib_uverbs_ioctl_hdr) + kMaxAttrs * sizeof(ib_uverbs_attr)];
};

}  // namespace verbena::uverbs
