// The whole table of commands: the documentation has every opcode of the PRM, and what it says of this device is so; no
// command serves a user context that does not exist, or lets one name another's objects.
#include <algorithm>
#include <fstream>
#include <map>

#include "prm/raw.h"
#include "tests/devx_table.h"
#include "tests/unit/device/command_fixture.h"
#include "tests/unit/device/field_list.h"

namespace verbena::device {
namespace {

using command::Access;

// The enumerators of prm::Opcode.
std::map<unsigned, std::string> opcodes() {
  std::ifstream file(VERBENA_SOURCE_DIR "/src/prm/command.h");
  std::map<unsigned, std::string> names;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    inside = inside ? line != "};" : line.starts_with("enum class Opcode ");
    char name[64];
    unsigned opcode = 0;
    if (!inside || std::sscanf(line.c_str(), " %63[a-z0-9_] = %x", name, &opcode) != 2) continue;
    std::string upper = name;
    std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
    names[opcode] = upper;
  }
  return names;
}

TEST(CommandTable, TheDocumentationHasEveryOpcodeAndTheTruth) {
  const auto rows = documented_commands();
  const auto names = opcodes();
  ASSERT_GT(names.size(), 190u);
  EXPECT_EQ(rows.size(), names.size());
  for (const auto& [opcode, name] : names) {
    SCOPED_TRACE(testing::Message() << name << " 0x" << std::hex << opcode);
    const auto row = rows.find(opcode);
    ASSERT_NE(row, rows.end());
    EXPECT_EQ(row->second.name, name);
    const command::Entry* entry = command::registry().find(static_cast<std::uint16_t>(opcode));
    EXPECT_EQ(row->second.device, !entry ? "no" : entry->access == Access::privileged ? "driver only" : "yes");
  }
  for (const command::Entry& entry : command::registry().entries())
    EXPECT_TRUE(names.contains(static_cast<unsigned>(entry.opcode))) << entry.name;
}

class UserContextTest : public CommandTest {
 protected:
  Syndrome run(const Command& c) {
    std::vector<std::byte> out(0x1100);
    device_->execute(c.in, out);
    number_ = prm::load_be32(out.data() + 8);
    return static_cast<Syndrome>(prm::load_be32(out.data() + 4));
  }
  std::uint32_t made(const Command& c) {
    EXPECT_EQ(run(c), Syndrome{}) << c.entry->name << ": " << reason(run(c));
    return number_ & 0xffffff;
  }
  std::uint32_t number_ = 0;
};

TEST_F(UserContextTest, NoCommandServesOneThatDoesNotExist) {
  for (const command::Entry& entry : command::registry().entries()) {
    const Syndrome expected = entry.access == Access::privileged ? Syndrome::uid_not_privileged : Syndrome::uid_unknown;
    EXPECT_EQ(run(Command(entry.opcode, 77)), expected) << entry.name;
  }
}

// What belongs to somebody else is as if it were not there.
TEST_F(UserContextTest, ObjectsOfOthersAreNotThere) {
  const auto uid = static_cast<std::uint16_t>(made(Command(Opcode::create_uctx)));
  struct Case {
    std::uint32_t number;
    const char* field;
    std::vector<Opcode> commands;
  };
  const std::uint32_t domain = made(Command(Opcode::alloc_transport_domain));
  const std::uint32_t tis = made(Command(Opcode::create_tis).set("transport_domain", domain));
  auto srq = Command(srq_request());
  auto rmp = Command(Opcode::create_rmp);
  rmp.set("ctx.state", static_cast<unsigned>(prm::RmpState::rdy)).set("log_wq_sz", 5).set("log_wq_stride", 6);
  rmp.set("wq.pd", pd_).set("wq.dbr_addr", doorbell(memory_, 3)).tail64(0, memory(0x5000));
  auto sq = Command(Opcode::create_sq);
  sq.set("cqn", cqn_).set("tis_lst_sz", 1).set("tis_num_0", tis).set("wq_type", 1).set("log_wq_stride", 6);
  sq.set("log_wq_sz", 5).set("wq.pd", pd_).set("uar_page", uar_).set("wq.dbr_addr", doorbell(memory_, 4));
  sq.tail64(0, memory(0x6000));
  const Case cases[] = {
      {pd_, "pd", {Opcode::dealloc_pd}},
      {domain, "transport_domain", {Opcode::dealloc_transport_domain}},
      {cqn_, "cqn", {Opcode::query_cq, Opcode::modify_cq, Opcode::destroy_cq}},
      {make_qp(), "qpn",
       {Opcode::query_qp, Opcode::rst2init_qp, Opcode::init2init_qp, Opcode::init2rtr_qp, Opcode::rtr2rts_qp,
        Opcode::rts2rts_qp, Opcode::sqerr2rts_qp, Opcode::qp_2err, Opcode::qp_2rst, Opcode::rts2sqd_qp,
        Opcode::sqd_rts_qp, Opcode::sqd2sqd_qp, Opcode::attach_to_mcg, Opcode::detach_from_mcg, Opcode::destroy_qp}},
      {made(srq), "srqn", {Opcode::query_srq, Opcode::destroy_srq}},
      {made(rmp), "rmpn", {Opcode::query_rmp, Opcode::modify_rmp, Opcode::destroy_rmp}},
      {made(Command(mkey_request(prm::MkeyAccessMode::pa))), "mkey_index", {Opcode::query_mkey, Opcode::destroy_mkey}},
      {tis, "tisn", {Opcode::query_tis, Opcode::modify_tis, Opcode::destroy_tis}},
      {made(sq), "sqn", {Opcode::query_sq, Opcode::modify_sq, Opcode::destroy_sq}},
  };
  for (const Case& c : cases)
    for (const Opcode opcode : c.commands) {
      Command theirs(opcode, uid), nobodys(opcode, uid);
      theirs.set(c.field, c.number);
      nobodys.set(c.field, 0xfffff);
      const Syndrome foreign = run(theirs), missing = run(nobodys);
      EXPECT_EQ(foreign, missing) << theirs.entry->name << ": " << reason(foreign);
      EXPECT_EQ(command::status_of(foreign), Status::bad_resource) << theirs.entry->name << ": " << reason(foreign);
      EXPECT_NE(run(theirs.uid(0)), foreign) << theirs.entry->name << " by the owner: " << reason(foreign);
    }
}

}  // namespace
}  // namespace verbena::device
