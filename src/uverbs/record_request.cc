// A request as text (record.h).
#include <rdma/ib_user_verbs.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "uverbs/record.h"
#include "uverbs/record_names.h"

namespace verbena::uverbs {
namespace {

constexpr unsigned kMaxAttrs = 64;

// ---- JSON ----

class Json {
 public:
  void key(std::string_view name) {
    comma();
    text_.append(1, '"').append(name).append("\":");
    first_ = true;
  }
  void open(char bracket) {
    comma();
    text_ += bracket;
    first_ = true;
  }
  void close(char bracket) {
    text_ += bracket;
    first_ = false;
  }
  void string(std::string_view text) {
    comma();
    text_.append(1, '"').append(text).append(1, '"');
  }
  void number(std::uint64_t value) {
    comma();
    text_ += std::to_string(value);
  }
  void negative(std::int64_t value) {
    comma();
    text_ += std::to_string(value);
  }
  void hex(std::uint64_t value) {
    char digits[16];
    string("0x" + std::string(digits, std::to_chars(digits, digits + sizeof digits, value, 16).ptr));
  }
  void bytes(std::span<const std::byte> data) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (std::byte byte : data) {
      text += digits[std::to_integer<unsigned>(byte >> 4)];
      text += digits[std::to_integer<unsigned>(byte & std::byte{15})];
    }
    string(text);
  }
  std::string take() { return std::move(text_); }

 private:
  void comma() {
    if (!first_) text_ += ',';
    first_ = false;
  }
  std::string text_;
  bool first_ = true;
};

std::uint64_t little_endian(std::span<const std::byte> data) {
  std::uint64_t value = 0;
  std::memcpy(&value, data.data(), std::min(data.size(), sizeof value));
  return value;
}

// ---- structures ----

void print_field(Json& json, const FieldName& field, std::span<const std::byte> data) {
  json.key(field.name);
  if (field.bytes) return json.bytes(data);
  if (field.count == 1 && field.address) return json.hex(little_endian(data));
  if (field.count == 1) return json.number(little_endian(data));
  json.open('[');
  for (unsigned i = 0; i < field.count; ++i) json.number(little_endian(data.subspan(i * field.size, field.size)));
  json.close(']');
}

// One structure, which may have been cut short or have something behind it.
void print_struct(Json& json, const StructName& layout, std::span<const std::byte> data) {
  json.open('{');
  std::size_t end = 0;
  for (const FieldName& field : layout.fields) {
    const std::size_t size = std::size_t{field.size} * field.count;
    if (field.offset + size > data.size()) break;
    print_field(json, field, data.subspan(field.offset, size));
    end = field.offset + size;
  }
  if (end < data.size()) {
    json.key("more");
    json.bytes(data.subspan(end));
  }
  json.close('}');
}

void print_data(Json& json, const StructName* layout, bool array, std::span<const std::byte> data) {
  if (layout) {
    json.key("struct");
    json.string(layout->name);
    json.key("fields");
    if (!array) return print_struct(json, *layout, data);
    json.open('[');
    for (; data.size() >= layout->size; data = data.subspan(layout->size))
      print_struct(json, *layout, data.first(layout->size));
    return json.close(']');
  }
  if (data.size() <= sizeof(std::uint64_t)) {
    json.key("value");
    return json.number(little_endian(data));
  }
  json.key("bytes");
  json.bytes(data);
}

// ---- requests ----

struct Attribute {
  ib_uverbs_attr raw;
  std::string_view name;
  Carries carries = Carries::value;
  const StructName* layout = nullptr;
  bool many = false;  // an array of it
  bool named = false;
  std::vector<std::byte> data;  // of one that goes in

  bool goes_in() const {
    return named && (carries == Carries::value || carries == Carries::address || carries == Carries::data ||
                     carries == Carries::choice || carries == Carries::handles);
  }
  bool lies_inside() const { return raw.len <= sizeof raw.data; }
};

void print_handles(Json& json, std::span<const std::byte> data) {
  json.key("handles");
  json.open('[');
  for (; data.size() >= sizeof(std::uint32_t); data = data.subspan(sizeof(std::uint32_t)))
    json.number(little_endian(data.first(sizeof(std::uint32_t))));
  json.close(']');
}

void print_input(Json& json, const Attribute& attr) {
  json.key("len");
  json.number(attr.raw.len);
  if (attr.data.size() != attr.raw.len) {
    json.key("unreadable");
    return json.hex(attr.raw.data);
  }
  if (attr.carries == Carries::choice) {
    json.key("choice");
    json.number(attr.raw.attr_data.enum_data.elem_id);
  }
  if (attr.carries == Carries::handles) return print_handles(json, attr.data);
  if (attr.carries == Carries::address) {
    json.key("address");
    return json.hex(little_endian(attr.data));
  }
  print_data(json, attr.layout, attr.many, attr.data);
}

}  // namespace

struct RequestRecord::Copy {
  const UserMemory& memory;
  const ib_uverbs_ioctl_hdr* program;
  std::uint16_t object = 0, id = 0;  // of the method
  bool readable = false;
  const MethodName* method = nullptr;
  const CommandName* command = nullptr;
  std::vector<Attribute> attrs;

  std::vector<std::byte> fetch(std::uint64_t address, std::size_t length) const {
    std::vector<std::byte> bytes(length);
    if (length && !memory.read(bytes.data(), reinterpret_cast<const void*>(address), length)) bytes.clear();
    return bytes;
  }
  bool fetch_request();
  void find_command();
  void name(Attribute& attr) const;
  void print(Json& json, const Attribute& attr, const ib_uverbs_attr& answer, int error) const;
  void print_result(Json& json, const Attribute& attr, int error) const;
};

bool RequestRecord::Copy::fetch_request() {
  ib_uverbs_ioctl_hdr header{};
  if (!program || !memory.read(&header, program, sizeof header)) return false;
  object = header.object_id;
  id = header.method_id;
  const std::size_t room = header.length > sizeof header ? (header.length - sizeof header) / sizeof(ib_uverbs_attr) : 0;
  const std::size_t count = std::min({room, std::size_t{header.num_attrs}, std::size_t{kMaxAttrs}});
  std::vector<ib_uverbs_attr> raw(count);
  if (count && !memory.read(raw.data(), program->attrs, count * sizeof raw[0])) return false;
  attrs.resize(count);
  for (std::size_t i = 0; i < count; ++i) attrs[i].raw = raw[i];
  return true;
}

void RequestRecord::Copy::find_command() {
  if (object != UVERBS_OBJECT_DEVICE || id != UVERBS_METHOD_INVOKE_WRITE) return;
  for (const Attribute& attr : attrs)
    if (attr.raw.attr_id == UVERBS_ATTR_WRITE_CMD) command = find_command_name(attr.raw.data);
}

void RequestRecord::Copy::name(Attribute& attr) const {
  const std::uint16_t id = attr.raw.attr_id;
  if (!method) return;
  attr.named = true;
  if (const AttrName* row = find_attr_name(*method, id)) {
    attr.name = row->name;
    attr.carries = row->carries;
    attr.layout = row->layout;
    attr.many = row->many;
    if (command && id == UVERBS_ATTR_CORE_IN) attr.layout = command->in;
    if (command && id == UVERBS_ATTR_CORE_OUT) attr.layout = command->out;
  } else if (id == UVERBS_ATTR_UHW_IN || id == UVERBS_ATTR_UHW_OUT) {
    const bool in = id == UVERBS_ATTR_UHW_IN;
    attr.name = in ? "UHW_IN" : "UHW_OUT";
    attr.carries = in ? Carries::data : Carries::result;
    if (command) attr.layout = in ? command->driver_in : command->driver_out;
    else attr.layout = in ? method->driver_in : method->driver_out;
  } else {
    attr.named = false;
  }
  if (attr.layout) attr.layout = layout_of(attr.layout, attr.raw.len);
}

void RequestRecord::Copy::print_result(Json& json, const Attribute& attr, int error) const {
  json.key("room");
  json.number(attr.raw.len);
  if (error) return;
  const auto data = fetch(attr.raw.data, attr.raw.len);
  if (data.size() == attr.raw.len && !data.empty()) print_data(json, attr.layout, attr.many, data);
}

void RequestRecord::Copy::print(Json& json, const Attribute& attr, const ib_uverbs_attr& answer, int error) const {
  json.key(attr.named ? std::string(attr.name) : "attribute " + std::to_string(attr.raw.attr_id));
  json.open('{');
  if (!(attr.raw.flags & UVERBS_ATTR_F_MANDATORY)) {
    json.key("optional");
    json.number(1);
  }
  const bool done = error == 0;
  if (!attr.named) {
    json.key("len");
    json.number(attr.raw.len);
    json.key("raw");
    json.hex(attr.raw.data);
  } else if (attr.goes_in()) {
    print_input(json, attr);
  } else if (attr.carries == Carries::result) {
    print_result(json, attr, error);
  } else if (attr.carries == Carries::handle) {
    json.key("handle");
    json.number(attr.raw.data);
  } else if (attr.carries == Carries::fd) {
    json.key("fd");
    json.negative(attr.raw.data_s64);
  } else if (done) {
    json.key(attr.carries == Carries::created ? "new handle" : "new fd");
    json.negative(answer.data_s64);
  }
  json.close('}');
}

RequestRecord::RequestRecord(const ib_uverbs_ioctl_hdr* request, const UserMemory& memory)
    : copy_(new Copy{.memory = memory, .program = request, .attrs = {}}) {
  copy_->readable = copy_->fetch_request();
  if (!copy_->readable) return;
  copy_->method = find_method_name(copy_->object, copy_->id);
  copy_->find_command();
  for (Attribute& attr : copy_->attrs) {
    copy_->name(attr);
    if (!attr.goes_in()) continue;
    if (!attr.lies_inside()) {
      attr.data = copy_->fetch(attr.raw.data, attr.raw.len);
    } else {
      const auto* inside = reinterpret_cast<const std::byte*>(&attr.raw.data);
      attr.data.assign(inside, inside + attr.raw.len);
    }
  }
}

RequestRecord::~RequestRecord() = default;

std::string RequestRecord::finish(int error) const {
  Json json;
  if (!copy_->readable) {
    json.key("unreadable");
    json.hex(reinterpret_cast<std::uintptr_t>(copy_->program));
    json.key("errno");
    json.number(static_cast<unsigned>(error));
    return json.take();
  }
  const std::string_view object = object_name(copy_->object);
  json.key("object");
  object.empty() ? json.number(copy_->object) : json.string(object);
  json.key("method");
  copy_->method ? json.string(copy_->method->name) : json.number(copy_->id);
  if (copy_->command) {
    json.key("command");
    json.string(copy_->command->name);
  }
  json.key("errno");
  json.number(static_cast<unsigned>(error));
  json.key("attrs");
  json.open('{');
  for (std::size_t i = 0; i < copy_->attrs.size(); ++i) {
    ib_uverbs_attr answer{};
    const bool there = copy_->memory.read(&answer, &copy_->program->attrs[i], sizeof answer);
    copy_->print(json, copy_->attrs[i], there ? answer : copy_->attrs[i].raw, error);
  }
  json.close('}');
  return json.take();
}

}  // namespace verbena::uverbs
