// The names a recorder prints by (uverbs/record_names.h) know everything that the kernel's role answers, and agree with it
// on what goes in, what comes out, and how long it is.
#include "uverbs/record_names.h"

#include <gtest/gtest.h>

#include "kernel/method.h"

namespace verbena::kernel {
namespace {

using uverbs::AttrKind;
using uverbs::Carries;

bool agree(const AttrSpec& spec, const uverbs::AttrName& name) {
  const bool creates = spec.access == AttrAccess::create;
  switch (spec.kind) {
    case AttrKind::idr: return name.carries == (creates ? Carries::created : Carries::handle);
    case AttrKind::fd: return name.carries == (creates ? Carries::created_fd : Carries::fd);
    case AttrKind::ptr_out: return name.carries == Carries::result;
    case AttrKind::enum_in: return name.carries == Carries::choice;
    case AttrKind::idrs_in: return name.carries == Carries::handles;
    case AttrKind::ptr_in:
      return name.carries == Carries::value || name.carries == Carries::address || name.carries == Carries::data ||
             name.carries == Carries::fd;  // a descriptor may travel as a number
  }
  return false;
}

TEST(RecordNames, EveryMethodAndAttribute) {
  for (const auto& table : method_tables()) {
    for (const Method& method : table) {
      const auto* name = uverbs::find_method_name(method.spec.object, method.spec.method);
      ASSERT_NE(name, nullptr) << method.spec.object << ' ' << method.spec.method;
      for (const AttrSpec& spec : method.spec.attrs) {
        const auto* attr = uverbs::find_attr_name(*name, spec.id);
        ASSERT_NE(attr, nullptr) << name->name << ' ' << spec.id;
        EXPECT_TRUE(agree(spec, *attr)) << name->name << ' ' << attr->name;
      }
    }
  }
}

TEST(RecordNames, EveryLegacyCommand) {
  for (const auto& table : command_tables()) {
    for (const WriteCommand& command : table) {
      const auto* name = uverbs::find_command_name(command.command);
      ASSERT_NE(name, nullptr) << std::hex << command.command;
      EXPECT_GE(name->in->size, command.in_size) << name->name;
      if (command.out_size) {
        ASSERT_NE(name->out, nullptr) << name->name;
        EXPECT_GE(name->out->size, command.out_size) << name->name;
      }
    }
  }
}

}  // namespace
}  // namespace verbena::kernel
