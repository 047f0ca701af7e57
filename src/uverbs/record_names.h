// Names of what passes seam A: methods, legacy commands, attributes and the fields of their structures, as the kernel's
// headers have them. A recorder prints by these tables; nothing is answered by them.
//
// Threads: constants only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace verbena::uverbs {

struct FieldName {
  std::string_view name;  // "dest.sgid_index"
  std::uint16_t offset;
  std::uint16_t size;
  std::uint16_t count;  // elements; of an array of bytes 1, and `bytes` is set
  bool bytes;           // printed in hexadecimal: addresses of ports, keys
  bool address;         // of the program's memory, or a number the program takes for one
};
struct StructName {
  std::string_view name;
  std::uint16_t size;
  std::span<const FieldName> fields;  // they cover the structure without a gap
};

// What an attribute carries; `created` ones are numbers that the kernel fills in.
enum class Carries : std::uint8_t { handle, created, fd, created_fd, value, address, data, result, choice, handles };

struct AttrName {
  std::uint16_t id;
  std::string_view name;
  Carries carries;
  const StructName* layout = nullptr;  // of data and results
  bool many = false;                   // an array of it
};
struct MethodName {
  std::uint16_t object;
  std::string_view object_name;
  std::uint16_t method;
  std::string_view name;
  std::span<const AttrName> attrs;
  const StructName* driver_in = nullptr;  // of UHW_IN and UHW_OUT
  const StructName* driver_out = nullptr;
};
// A legacy command inside INVOKE_WRITE.
struct CommandName {
  std::uint32_t command;
  std::string_view name;
  const StructName* in;
  const StructName* out = nullptr;
  const StructName* driver_in = nullptr;
  const StructName* driver_out = nullptr;
};

std::span<const MethodName> method_names();
std::span<const CommandName> command_names();

// Null if there is none.
const MethodName* find_method_name(std::uint16_t object, std::uint16_t method);
const CommandName* find_command_name(std::uint64_t command);
const AttrName* find_attr_name(const MethodName& method, std::uint16_t id);
// A QP that spreads packets has driver data of its own, known by its length.
const StructName* layout_of(const StructName* expected, std::size_t length);
// "CQ"; empty if unknown.
std::string_view object_name(std::uint16_t object);
// What a driver offset of mmap(2) stands for ("NC_PAGE"); empty if unknown.
std::string_view mmap_name(std::uint64_t offset);

}  // namespace verbena::uverbs
