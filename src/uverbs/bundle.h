// Client side of RDMA_VERBS_IOCTL: builds one request, a header followed by attributes, as rdma_user_ioctl_cmds.h
// lays them out. Attributes are mandatory unless made optional. Buffers passed by pointer must live until the
// request was executed.
//
// Threads: a Bundle belongs to one thread.
#pragma once

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace verbena::uverbs {

class Bundle {
 public:
  static constexpr unsigned kMaxAttrs = 32;
  // Index of an attribute in this bundle, to read its result or to make it optional.
  using Slot = unsigned;
  static constexpr Slot kNone = ~0u;

  Bundle(std::uint16_t object, std::uint16_t method) {
    std::memset(storage_, 0, sizeof(ib_uverbs_ioctl_hdr));
    header().object_id = object;
    header().method_id = method;
  }

  // ---- objects and descriptors ----

  Slot in_object(std::uint16_t id, std::uint32_t handle) { return add(id, 0, handle); }
  Slot out_object(std::uint16_t id) { return add(id, 0, 0); }
  // A negative fd leaves the attribute out.
  Slot in_fd(std::uint16_t id, int fd) { return fd < 0 ? kNone : add(id, 0, static_cast<std::uint64_t>(fd)); }
  Slot out_fd(std::uint16_t id) { return add(id, 0, 0); }

  // ---- data ----

  // Up to 8 bytes travel inside the attribute, more by pointer.
  Slot in(std::uint16_t id, const void* data, std::size_t length) {
    std::uint64_t word = reinterpret_cast<std::uintptr_t>(data);
    if (length <= sizeof word) {
      word = 0;
      if (length) std::memcpy(&word, data, length);
    }
    return add(id, length, word);
  }
  template <class T>
  requires std::is_trivially_copyable_v<T> Slot in_struct(std::uint16_t id, const T& value) {
    return in(id, &value, sizeof value);
  }
  Slot in_u32(std::uint16_t id, std::uint32_t value) { return in(id, &value, sizeof value); }
  Slot in_u64(std::uint16_t id, std::uint64_t value) { return in(id, &value, sizeof value); }
  // UVERBS_ATTR_CONST_IN and enumerations without data.
  Slot in_const(std::uint16_t id, std::uint64_t value) { return in_u64(id, value); }
  // UVERBS_ATTR_TYPE_ENUM_IN: which alternative, and its data.
  Slot in_enum(std::uint16_t id, std::uint8_t element, const void* data, std::size_t length) {
    Slot slot = in(id, data, length);
    if (slot != kNone) attrs()[slot].attr_data.enum_data.elem_id = element;
    return slot;
  }
  Slot in_objects(std::uint16_t id, const std::uint32_t* handles, std::size_t count) {
    return in(id, handles, array_bytes(sizeof *handles, count));
  }
  // Results are always by pointer.
  Slot out(std::uint16_t id, void* data, std::size_t length) {
    return add(id, length, reinterpret_cast<std::uintptr_t>(data));
  }
  template <class T>
  requires std::is_trivially_copyable_v<T> Slot out_struct(std::uint16_t id, T& value) {
    return out(id, &value, sizeof value);
  }

  static std::size_t array_bytes(std::size_t element, std::size_t count) {
    std::size_t bytes = 0;
    return __builtin_mul_overflow(element, count, &bytes) ? SIZE_MAX : bytes;
  }

  // ---- composition ----

  void optional(Slot slot) {
    if (slot != kNone) attrs()[slot].flags &= static_cast<std::uint16_t>(~UVERBS_ATTR_F_MANDATORY);
  }
  // Appends copies of `other`'s attributes; returns the slot of the first one, for read_back().
  Slot append(const Bundle& other) {
    Slot first = count_;
    for (unsigned i = 0; i < other.count_; ++i) {
      if (count_ == kMaxAttrs) {
        bad_ = true;
        break;
      }
      attrs()[count_++] = other.attrs()[i];
    }
    bad_ = bad_ || other.bad_;
    return first;
  }
  // Copies results of appended attributes back to the bundle they came from.
  void read_back(Slot first, Bundle& other) const {
    for (unsigned i = 0; i < other.count_ && first + i < count_; ++i) other.attrs()[i] = attrs()[first + i];
  }
  bool has_mandatory() const {
    for (unsigned i = 0; i < count_; ++i)
      if (attrs()[i].flags & UVERBS_ATTR_F_MANDATORY) return true;
    return false;
  }

  // ---- execution and results ----

  // The finished request, or null if something did not fit.
  ib_uverbs_ioctl_hdr* finish(std::uint32_t driver_id) {
    if (bad_) return nullptr;
    header().length = static_cast<std::uint16_t>(sizeof(ib_uverbs_ioctl_hdr) + count_ * sizeof(ib_uverbs_attr));
    header().num_attrs = static_cast<std::uint16_t>(count_);
    header().driver_id = driver_id;
    return &header();
  }
  std::uint32_t object(Slot slot) const { return static_cast<std::uint32_t>(attrs()[slot].data); }
  int fd(Slot slot) const { return static_cast<int>(attrs()[slot].data_s64); }
  bool valid_output(Slot slot) const { return attrs()[slot].flags & UVERBS_ATTR_F_VALID_OUTPUT; }
  const ib_uverbs_attr& attr(Slot slot) const { return attrs()[slot]; }
  unsigned count() const { return count_; }

 private:
  Slot add(std::uint16_t id, std::size_t length, std::uint64_t data) {
    if (count_ == kMaxAttrs || length > UINT16_MAX) {
      bad_ = true;
      return kNone;
    }
    ib_uverbs_attr& attr = attrs()[count_];
    attr = {};
    attr.attr_id = id;
    attr.len = static_cast<std::uint16_t>(length);
    attr.flags = UVERBS_ATTR_F_MANDATORY;
    attr.data = data;
    return count_++;
  }

  ib_uverbs_ioctl_hdr& header() { return *reinterpret_cast<ib_uverbs_ioctl_hdr*>(storage_); }
  ib_uverbs_attr* attrs() { return header().attrs; }
  const ib_uverbs_attr* attrs() const { return reinterpret_cast<const ib_uverbs_ioctl_hdr*>(storage_)->attrs; }

  // Bytes, because the header ends in a flexible array.
  alignas(ib_uverbs_ioctl_hdr) unsigned char storage_[sizeof(ib_uverbs_ioctl_hdr) + kMaxAttrs * sizeof(ib_uverbs_attr)];
  unsigned count_ = 0;
  bool bad_ = false;
};

}  // namespace verbena::uverbs
