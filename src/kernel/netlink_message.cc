#include "kernel/netlink_message.h"

namespace verbena::kernel {

bool NetlinkRequest::parse(std::span<const std::byte> message) {
  std::memcpy(&header_, message.data(), sizeof header_);
  attributes_ = {};
  std::span<const std::byte> rest = message.subspan(NLMSG_HDRLEN);
  while (rest.size() >= NLA_HDRLEN) {
    nlattr attribute;
    std::memcpy(&attribute, rest.data(), sizeof attribute);
    if (attribute.nla_len < NLA_HDRLEN || attribute.nla_len > rest.size()) return false;
    const unsigned type = attribute.nla_type & NLA_TYPE_MASK;
    if (type < kMost) attributes_[type] = rest.subspan(NLA_HDRLEN, attribute.nla_len - NLA_HDRLEN);
    const std::size_t step = NLA_ALIGN(attribute.nla_len);
    if (step >= rest.size()) break;
    rest = rest.subspan(step);
  }
  return true;
}

bool NetlinkRequest::get(unsigned type, std::uint32_t* out) const {
  if (attributes_[type].size() < sizeof *out) return false;
  std::memcpy(out, attributes_[type].data(), sizeof *out);
  return true;
}

bool NetlinkRequest::get(unsigned type, std::string_view* out) const {
  if (!has(type)) return false;
  const auto* text = reinterpret_cast<const char*>(attributes_[type].data());
  *out = {text, strnlen(text, attributes_[type].size())};
  return true;
}

void NetlinkAnswer::append(const void* data, std::size_t length) {
  if (length) {
    const std::size_t at = message_.size();
    message_.resize(at + length);
    std::memcpy(message_.data() + at, data, length);
  }
  message_.resize(NLMSG_ALIGN(message_.size()));
}

template <class T>
void NetlinkAnswer::append(const T& value) {
  append(&value, sizeof value);
}

void NetlinkAnswer::begin(std::uint16_t type, std::uint16_t flags) {
  message_.clear();
  append(nlmsghdr{0, type, flags, request_.nlmsg_seq, port_});
}

void NetlinkAnswer::cancel() { message_.clear(); }

void NetlinkAnswer::end() {
  const auto length = static_cast<std::uint32_t>(message_.size());
  std::memcpy(message_.data(), &length, sizeof length);
  if (datagram_.size() + message_.size() > kDatagram) flush();
  datagram_.insert(datagram_.end(), message_.begin(), message_.end());
  message_.clear();
}

void NetlinkAnswer::put(unsigned type, const void* data, std::size_t length) {
  append(nlattr{static_cast<std::uint16_t>(NLA_HDRLEN + length), static_cast<std::uint16_t>(type)});
  append(data, length);
}

void NetlinkAnswer::put(unsigned type, std::string_view text) {
  append(nlattr{static_cast<std::uint16_t>(NLA_HDRLEN + text.size() + 1), static_cast<std::uint16_t>(type)});
  std::vector<char> terminated(text.begin(), text.end());
  terminated.push_back('\0');
  append(terminated.data(), terminated.size());
}

std::size_t NetlinkAnswer::open(unsigned type) {
  const std::size_t at = message_.size();
  append(nlattr{0, static_cast<std::uint16_t>(type)});
  return at;
}

void NetlinkAnswer::close(std::size_t nest) {
  const auto length = static_cast<std::uint16_t>(message_.size() - nest);
  std::memcpy(message_.data() + nest + offsetof(nlattr, nla_len), &length, sizeof length);
}

void NetlinkAnswer::done() {
  flush();
  begin(NLMSG_DONE, NLM_F_MULTI);
  append(int{0});
  end();
}

void NetlinkAnswer::acknowledge(int error, std::span<const std::byte> request, bool capped) {
  flush();
  capped = capped || error == 0;
  begin(NLMSG_ERROR, capped ? NLM_F_CAPPED : 0);
  append(int{-error});
  append(request.data(), capped ? std::size_t{NLMSG_HDRLEN} : request.size());
  end();
}

void NetlinkAnswer::flush() {
  if (!datagram_.empty()) sink_(datagram_);
  datagram_.clear();
}

}  // namespace verbena::kernel
