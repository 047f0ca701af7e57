#include "uverbs/request.h"

#include <algorithm>
#include <cerrno>

namespace verbena::uverbs {
namespace {

constexpr std::size_t kInline = sizeof(std::uint64_t);
constexpr std::size_t kPage = 4096;  // the kernel takes no longer request

const AttrSpec kUdataSpecs[] = {
    {UVERBS_ATTR_UHW_IN, AttrKind::ptr_in, false, 0, 0xffff, false, 0, AttrAccess::read},
    {UVERBS_ATTR_UHW_OUT, AttrKind::ptr_out, false, 0, 0xffff, false, 0, AttrAccess::write},
};

const AttrSpec* spec_of(const MethodSpec& method, std::uint16_t id) {
  for (const AttrSpec& spec : method.attrs)
    if (spec.id == id) return &spec;
  if (method.udata)
    for (const AttrSpec& spec : kUdataSpecs)
      if (spec.id == id) return &spec;
  return nullptr;
}

std::span<const std::byte> data_of(const ib_uverbs_attr& attr) {
  if (attr.len <= kInline) return {reinterpret_cast<const std::byte*>(&attr.data), attr.len};
  return {reinterpret_cast<const std::byte*>(attr.data), attr.len};
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

bool Udata::tail_is_zero(std::size_t known) const { return in.size() <= known || all_zero(in.subspan(known)); }

int Request::check_header(const ib_uverbs_ioctl_hdr* header, std::uint32_t driver_id) {
  if (!header) return EFAULT;
  if (header->length > kPage || header->length != sizeof *header + header->num_attrs * sizeof(ib_uverbs_attr))
    return EINVAL;
  if (header->reserved1 || header->reserved2) return EPROTONOSUPPORT;
  if (header->driver_id != driver_id) return EINVAL;
  return 0;
}

int Request::check_attr(const ib_uverbs_attr& attr, const AttrSpec& spec) {
  switch (spec.kind) {
    case AttrKind::idr:
    case AttrKind::fd:
      return attr.attr_data.reserved || attr.len ? EINVAL : 0;
    case AttrKind::idrs_in:
      if (attr.attr_data.reserved || attr.len % sizeof(std::uint32_t)) return EINVAL;
      if (attr.len > kInline && !attr.data) return EFAULT;
      return 0;
    case AttrKind::enum_in:
      if (attr.attr_data.enum_data.elem_id >= spec.min_len) return EOPNOTSUPP;
      if (attr.attr_data.enum_data.reserved) return EINVAL;
      if (attr.len > kInline && !attr.data) return EFAULT;
      return attr.len > spec.max_len ? EINVAL : 0;
    case AttrKind::ptr_in:
      if (attr.len > kInline && !attr.data) return EFAULT;
      if (attr.len > spec.max_len && spec.zero_tail && !all_zero(data_of(attr).subspan(spec.max_len)))
        return EOPNOTSUPP;
      [[fallthrough]];
    case AttrKind::ptr_out:
      if (attr.len < spec.min_len || (!spec.zero_tail && attr.len > spec.max_len)) return EINVAL;
      if (attr.attr_data.reserved) return EINVAL;
      if (spec.kind == AttrKind::ptr_out && attr.len && !attr.data) return EFAULT;
      return 0;
  }
  return EINVAL;
}

int Request::parse(ib_uverbs_ioctl_hdr* header, const MethodSpec& method) {
  header_ = header;
  known_ = 0;
  if (header->num_attrs > kMaxAttrs) return EINVAL;
  for (unsigned i = 0; i < header->num_attrs; ++i) {
    const ib_uverbs_attr& attr = header->attrs[i];
    const AttrSpec* spec = spec_of(method, attr.attr_id);
    if (!spec) {
      if (attr.flags & UVERBS_ATTR_F_MANDATORY) return EPROTONOSUPPORT;
      continue;
    }
    if (find(attr.attr_id)) return EINVAL;
    if (int error = check_attr(attr, *spec)) return error;
    known_ |= 1u << i;
  }
  for (const AttrSpec& spec : method.attrs)
    if (spec.mandatory && !find(spec.id)) return EINVAL;
  return 0;
}

const ib_uverbs_attr* Request::find(std::uint16_t id) const {
  for (unsigned i = 0; i < header_->num_attrs && i < kMaxAttrs; ++i)
    if ((known_ >> i & 1) && header_->attrs[i].attr_id == id) return &header_->attrs[i];
  return nullptr;
}

std::span<const std::byte> Request::in(std::uint16_t id) const {
  const ib_uverbs_attr* attr = find(id);
  return attr ? data_of(*attr) : std::span<const std::byte>{};
}

int Request::flags(std::uint16_t id, std::uint64_t allowed, std::uint32_t* out) const {
  std::uint64_t bits = value<std::uint64_t>(id);
  if (const ib_uverbs_attr* attr = find(id); attr && attr->len != 4 && attr->len != 8) return EINVAL;
  if (bits & ~allowed || bits > UINT32_MAX) return EINVAL;
  *out = static_cast<std::uint32_t>(bits);
  return 0;
}

std::uint32_t Request::handle(std::uint16_t id) const {
  const ib_uverbs_attr* attr = find(id);
  // A handle beyond 32 bits names no object; ~0 never does either.
  return attr && attr->data <= UINT32_MAX ? static_cast<std::uint32_t>(attr->data) : UINT32_MAX;
}

int Request::fd(std::uint16_t id) const {
  const ib_uverbs_attr* attr = find(id);
  return attr && attr->data_s64 >= 0 && attr->data_s64 <= INT32_MAX ? static_cast<int>(attr->data_s64) : -1;
}

std::size_t Request::out_length(std::uint16_t id) const {
  const ib_uverbs_attr* attr = find(id);
  return attr ? attr->len : 0;
}

int Request::write(std::uint16_t id, const void* data, std::size_t length) {
  const ib_uverbs_attr* attr = find(id);
  if (!attr) return ENOENT;
  if (std::size_t n = std::min<std::size_t>(length, attr->len)) std::memcpy(reinterpret_cast<void*>(attr->data), data, n);
  header_->attrs[attr - header_->attrs].flags |= UVERBS_ATTR_F_VALID_OUTPUT;
  return 0;
}

int Request::write_or_zero(std::uint16_t id, const void* data, std::size_t length) {
  const ib_uverbs_attr* attr = find(id);
  if (!attr) return ENOENT;
  if (length < attr->len) std::memset(reinterpret_cast<std::byte*>(attr->data) + length, 0, attr->len - length);
  return write(id, data, length);
}

void Request::set_id(std::uint16_t id, std::int64_t value) {
  if (const ib_uverbs_attr* attr = find(id)) header_->attrs[attr - header_->attrs].data_s64 = value;
}

Udata Request::udata() const {
  Udata udata;
  udata.in = in(UVERBS_ATTR_UHW_IN);
  if (const ib_uverbs_attr* attr = find(UVERBS_ATTR_UHW_OUT); attr && attr->len) {
    udata.out = reinterpret_cast<std::byte*>(attr->data);
    udata.out_length = attr->len;
  }
  return udata;
}

}  // namespace verbena::uverbs
