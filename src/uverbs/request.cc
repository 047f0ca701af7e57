#include "uverbs/request.h"

#include <algorithm>
#include <cerrno>

#include "support/bytes.h"

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

bool copy(void* to, const void* from, std::size_t length) {
  std::memcpy(to, from, length);
  return true;
}

// Handles are not negative, descriptors are ints: what is neither is no name of anything, rather than that of nothing.
bool may_name(AttrKind kind, std::int64_t value) {
  return kind == AttrKind::idr ? value >= 0 : value >= INT32_MIN && value <= INT32_MAX;
}

// Whether the handler puts something into the attribute itself.
bool writes_attr(const AttrSpec& spec) {
  return spec.kind == AttrKind::ptr_out || spec.access == AttrAccess::create;
}

}  // namespace

const UserMemory kTrustedMemory{copy, copy};

bool Udata::tail_is_zero(std::size_t known) const { return in.size() <= known || is_zero(in.subspan(known)); }

int Request::fetch(ib_uverbs_ioctl_hdr* program, std::uint32_t driver_id) {
  ib_uverbs_ioctl_hdr head;
  if (!program || !user_.read(&head, program, sizeof head)) return EFAULT;
  if (head.length > kPage || head.length != sizeof head + head.num_attrs * sizeof(ib_uverbs_attr)) return EINVAL;
  if (head.reserved1 || head.reserved2) return EPROTONOSUPPORT;
  if (head.driver_id != driver_id) return EINVAL;
  if (head.num_attrs > kMaxAttrs) return EINVAL;
  std::memcpy(own_, &head, sizeof head);
  if (head.num_attrs && !user_.read(own_ + sizeof head, program->attrs, head.length - sizeof head)) return EFAULT;
  program_ = program;
  header_ = reinterpret_cast<ib_uverbs_ioctl_hdr*>(own_);
  return 0;
}

int Request::finish() {
  if (!program_ || !header_->num_attrs) return 0;
  return user_.write(program_->attrs, header_->attrs, header_->num_attrs * sizeof(ib_uverbs_attr)) ? 0 : EFAULT;
}

// Small data lies in the attribute. The rest is copied: the program may change it meanwhile.
int Request::fetch_data(unsigned index) {
  const ib_uverbs_attr& attr = header_->attrs[index];
  data_[index] = reinterpret_cast<const std::byte*>(attr.data);
  if (attr.len <= kInline || &user_ == &kTrustedMemory) return 0;
  auto bytes = std::make_unique_for_overwrite<std::byte[]>(attr.len);
  if (!user_.read(bytes.get(), data_[index], attr.len)) return EFAULT;
  data_[index] = bytes.get();
  copies_.push_back(std::move(bytes));
  return 0;
}

std::span<const std::byte> Request::data_of(const ib_uverbs_attr& attr) const {
  if (attr.len <= kInline) return {reinterpret_cast<const std::byte*>(&attr.data), attr.len};
  return {data_[&attr - header_->attrs], attr.len};
}

// Writes back what lies there, once a page: whether a result can be written is known before there is one.
bool Request::try_room(std::uint64_t address, std::size_t length) const {
  if (length == 0 || &user_ == &kTrustedMemory) return true;
  const std::uint64_t last = address + length - 1;
  if (last < address) return false;
  for (std::uint64_t at = address;; at = std::min(last, (at | (kPage - 1)) + 1)) {
    auto* p = reinterpret_cast<std::byte*>(at);
    std::byte kept;
    if (!user_.read(&kept, p, 1) || !user_.write(p, &kept, 1)) return false;
    if (at == last) return true;
  }
}

int Request::check_attr(unsigned index, const AttrSpec& spec) {
  const ib_uverbs_attr& attr = header_->attrs[index];
  const bool elsewhere = attr.len > kInline;
  switch (spec.kind) {
    case AttrKind::idr:
    case AttrKind::fd:
      if (attr.attr_data.reserved || attr.len) return EINVAL;
      return spec.access == AttrAccess::create || may_name(spec.kind, attr.data_s64) ? 0 : EINVAL;
    case AttrKind::idrs_in:
      if (attr.attr_data.reserved || attr.len % sizeof(std::uint32_t)) return EINVAL;
      if (elsewhere && !attr.data) return EFAULT;
      return fetch_data(index);
    case AttrKind::enum_in:
      if (attr.attr_data.enum_data.elem_id >= spec.min_len) return EOPNOTSUPP;
      if (attr.attr_data.enum_data.reserved) return EINVAL;
      if (elsewhere && !attr.data) return EFAULT;
      return attr.len > spec.max_len ? EINVAL : fetch_data(index);
    case AttrKind::ptr_in:
      if (elsewhere && !attr.data) return EFAULT;
      if (attr.len > spec.max_len && spec.zero_tail) {
        if (int error = fetch_data(index)) return error;
        if (!is_zero(data_of(attr).subspan(spec.max_len))) return EOPNOTSUPP;
      }
      if (attr.len < spec.min_len || (!spec.zero_tail && attr.len > spec.max_len)) return EINVAL;
      if (attr.attr_data.reserved) return EINVAL;
      return attr.len > spec.max_len ? 0 : fetch_data(index);
    case AttrKind::ptr_out:
      if (attr.len < spec.min_len || (!spec.zero_tail && attr.len > spec.max_len)) return EINVAL;
      if (attr.attr_data.reserved) return EINVAL;
      return (attr.len && !attr.data) || !try_room(attr.data, attr.len) ? EFAULT : 0;
  }
  return EINVAL;
}

int Request::parse(ib_uverbs_ioctl_hdr* header, const MethodSpec& method) {
  header_ = header;
  known_ = 0;
  if (header->num_attrs > kMaxAttrs) return EINVAL;
  bool writes = false;
  for (unsigned i = 0; i < header->num_attrs; ++i) {
    const ib_uverbs_attr& attr = header->attrs[i];
    const AttrSpec* spec = spec_of(method, attr.attr_id);
    if (!spec) {
      if (attr.flags & UVERBS_ATTR_F_MANDATORY) return EPROTONOSUPPORT;
      continue;
    }
    if (find(attr.attr_id)) return EINVAL;
    if (int error = check_attr(i, *spec)) return error;
    writes = writes || writes_attr(*spec);
    known_ |= 1u << i;
  }
  for (const AttrSpec& spec : method.attrs)
    if (spec.mandatory && !find(spec.id)) return EINVAL;
  const auto attrs = reinterpret_cast<std::uint64_t>(program_ ? program_->attrs : nullptr);
  return writes && program_ && !try_room(attrs, header->num_attrs * sizeof(ib_uverbs_attr)) ? EFAULT : 0;
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
  const std::size_t n = std::min<std::size_t>(length, attr->len);
  if (n && !user_.write(reinterpret_cast<void*>(attr->data), data, n)) return EFAULT;
  header_->attrs[attr - header_->attrs].flags |= UVERBS_ATTR_F_VALID_OUTPUT;
  return 0;
}

int Request::write_or_zero(std::uint16_t id, const void* data, std::size_t length) {
  const ib_uverbs_attr* attr = find(id);
  if (!attr) return ENOENT;
  static constexpr std::byte zeros[256]{};
  for (std::size_t at = length; at < attr->len; at += sizeof zeros)
    if (!user_.write(reinterpret_cast<std::byte*>(attr->data) + at, zeros, std::min(sizeof zeros, attr->len - at)))
      return EFAULT;
  return write(id, data, length);
}

void Request::set_id(std::uint16_t id, std::int64_t value) {
  if (const ib_uverbs_attr* attr = find(id)) header_->attrs[attr - header_->attrs].data_s64 = value;
}

Udata Request::udata() const {
  Udata udata;
  udata.in = in(UVERBS_ATTR_UHW_IN);
  udata.user = &user_;
  if (const ib_uverbs_attr* attr = find(UVERBS_ATTR_UHW_OUT); attr && attr->len) {
    udata.out = reinterpret_cast<std::byte*>(attr->data);
    udata.out_length = attr->len;
  }
  return udata;
}

}  // namespace verbena::uverbs
