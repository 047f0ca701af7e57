// Every 16-bit opcode through every DEVX method: what the kernel's role lets pass, and to which object.
#include "kernel/devx_rules.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "prm/general_object.h"
#include "prm/mkey.h"
#include "prm/misc.h"
#include "tests/devx_table.h"

namespace verbena::kernel {
namespace {

using prm::Opcode;
using Head = prm::GeneralObjInCmdHdr;

// As the manual page of each method lists them: create, and what may be asked of and done to what it made.
const std::set<std::uint16_t> kCreates = {
    0x200, 0x400, 0x500, 0x600, 0x700, 0x705, 0x710, 0x717, 0x771, 0x782, 0x800, 0x806, 0x80e, 0x816, 0x827,
    0x829, 0x900, 0x904, 0x908, 0x90c, 0x912, 0x916, 0x930, 0x933, 0x936, 0x939, 0x93d, 0x940, 0xa00};
const std::map<std::uint16_t, std::uint16_t> kQueries = {
    {0x201, 0x200}, {0x402, 0x400}, {0x50b, 0x500}, {0x702, 0x700}, {0x707, 0x705}, {0x713, 0x710}, {0x719, 0x717},
    {0x725, 0x717}, {0x727, 0x717}, {0x773, 0x771}, {0x784, 0x782}, {0x82a, 0x829}, {0x903, 0x900}, {0x907, 0x904},
    {0x90b, 0x908}, {0x90f, 0x90c}, {0x915, 0x912}, {0x919, 0x916}, {0x932, 0x930}, {0x935, 0x933}, {0x937, 0x936},
    {0x93b, 0x939}, {0x93f, 0x93d}, {0x942, 0x940}, {0xa02, 0xa00}};
const std::map<std::uint16_t, std::uint16_t> kModifies = {
    {0x403, 0x400}, {0x502, 0x500}, {0x503, 0x500}, {0x504, 0x500}, {0x505, 0x500}, {0x506, 0x500}, {0x507, 0x500},
    {0x50a, 0x500}, {0x50e, 0x500}, {0x703, 0x908}, {0x708, 0x705}, {0x714, 0x710}, {0x71a, 0x717}, {0x726, 0x717},
    {0x729, 0x717}, {0x72a, 0x717}, {0x785, 0x782}, {0x827, 0x827}, {0x829, 0x829}, {0x901, 0x900}, {0x905, 0x904},
    {0x909, 0x908}, {0x90d, 0x90c}, {0x913, 0x912}, {0x917, 0x916}, {0x93c, 0x930}, {0xa01, 0xa00}};
const std::set<std::uint16_t> kGeneral = {0x100, 0x101, 0x10a, 0x740, 0x750, 0x752, 0x754, 0x760, 0x762,
                                          0x76f, 0x770, 0x80a, 0x80d, 0x822, 0x824, 0x826, 0x842};
// What needs no user context: QUERY_HCA_CAP, QUERY_ESW_FUNCTIONS, QUERY_ESW_VPORT_CONTEXT, QUERY_HCA_VPORT_CONTEXT.
const std::set<std::uint16_t> kOpenToAll = {0x100, 0x740, 0x752, 0x762};

struct Request {
  alignas(8) std::byte bytes[0x400]{};
  explicit Request(unsigned opcode, std::uint16_t modifier = 0) {
    prm::View<Head> head(bytes);
    head.set<Head::opcode>(opcode).set<Head::obj_type>(static_cast<prm::GeneralObjectType>(modifier));
    head.set<Head::obj_id>(0x1234);
  }
  Mailbox mailbox() const { return bytes; }
};

TEST(DevxRules, EveryOpcode) {
  for (unsigned opcode = 0; opcode <= 0xffff; ++opcode) {
    SCOPED_TRACE(testing::Message() << std::hex << opcode);
    const auto number = static_cast<std::uint16_t>(opcode);
    Request request(opcode);
    if (opcode == 0x600) prm::View<prm::CreatePsvIn>(request.bytes).set<prm::CreatePsvIn::num_psv>(1);
    EXPECT_EQ(is_object_create(request.mailbox()), kCreates.contains(number));
    const auto query = kQueries.find(number);
    const auto queried = queried_object(request.mailbox());
    ASSERT_EQ(queried.has_value(), query != kQueries.end());
    if (queried) {
      EXPECT_EQ(queried->kind, static_cast<Opcode>(query->second));
    }
    const auto modify = kModifies.find(number);
    const auto modified = modified_object(request.mailbox());
    ASSERT_EQ(modified.has_value(), modify != kModifies.end());
    if (modified) {
      EXPECT_EQ(modified->kind, static_cast<Opcode>(modify->second));
    }
    EXPECT_EQ(is_general_command(request.mailbox()),
              kGeneral.contains(number) || (opcode >= 0xb00 && opcode < 0xd00));
    EXPECT_EQ(is_open_to_all(request.mailbox()), kOpenToAll.contains(number));
  }
}

TEST(DevxRules, ModifiersDecide) {
  // One PSV a command; a flow table entry is made with op_mod 0 and changed with 1.
  for (unsigned n : {0u, 2u, 4u}) {
    Request psv(0x600);
    prm::View<prm::CreatePsvIn>(psv.bytes).set<prm::CreatePsvIn::num_psv>(n);
    EXPECT_FALSE(is_object_create(psv.mailbox()));
  }
  EXPECT_FALSE(modified_object(Request(0x936, 0).mailbox()));
  EXPECT_TRUE(modified_object(Request(0x936, 1).mailbox()));
  EXPECT_FALSE(is_object_create(Request(0x936, 1).mailbox()));
  EXPECT_FALSE(modified_object(Request(0x936, 2).mailbox()));
}

TEST(DevxRules, OtherFunctionsAreOutOfReach) {
  for (unsigned opcode : {0x400u, 0x402u, 0x403u}) {
    Request request(opcode);
    prm::View<Head>(request.bytes).set<Head::vhca_tunnel_id>(1);
    EXPECT_FALSE(is_object_create(request.mailbox()) || queried_object(request.mailbox()) ||
                 modified_object(request.mailbox()));
  }
  // Of general commands the kernel does not look, unless the device knows commands for other functions.
  Request general(0x100);
  prm::View<Head>(general.bytes).set<Head::vhca_tunnel_id>(1);
  EXPECT_TRUE(is_general_command(general.mailbox()) && is_tunnelled(general.mailbox()));
}

// Numbers have 24 bits, general objects 32 and a type, counter sets 8.
TEST(DevxRules, NumbersOfObjects) {
  Request cq(0x402);
  prm::View<Head>(cq.bytes).set<Head::obj_id>(0xff123456);
  EXPECT_EQ(queried_object(cq.mailbox()), (ObjectId{Opcode::create_cq, 0, 0x123456}));
  Request object(0xa02, 0x2c);
  prm::View<Head>(object.bytes).set<Head::obj_id>(0xff123456);
  EXPECT_EQ(queried_object(object.mailbox()), (ObjectId{Opcode::create_general_object, 0x2c, 0xff123456}));
  Request counter(0x773);
  prm::View<prm::QueryQCounterIn>(counter.bytes).set<prm::QueryQCounterIn::counter_set_id>(0x55);
  EXPECT_EQ(queried_object(counter.mailbox()), (ObjectId{Opcode::alloc_q_counter, 0, 0x55}));
}

// Each create has the request that undoes it, with the object's number and the owner's uid.
TEST(DevxRules, WhatUndoesACreate) {
  for (const auto& [create, destroy] : std::map<unsigned, unsigned>{{0x200, 0x202}, {0x400, 0x401}, {0x500, 0x501},
                                                                    {0x700, 0x701}, {0x771, 0x772}, {0x800, 0x801},
                                                                    {0x816, 0x817}, {0x90c, 0x90e}, {0xa00, 0xa03}}) {
    SCOPED_TRACE(testing::Message() << std::hex << create);
    Request in(create, create == 0xa00 ? 0x2c : 0);
    alignas(8) std::byte out[0x10]{};
    prm::View<prm::GeneralObjOutCmdHdr>(out).set<prm::GeneralObjOutCmdHdr::obj_id>(0x77);
    const ObjectId id = created_object(in.mailbox(), out);
    EXPECT_EQ(id.number, 0x77u);
    const auto undo = destroy_request(in.mailbox(), id, 9);
    const prm::ConstView<Head> head(undo.data());
    EXPECT_EQ(head.get<Head::opcode>(), destroy);
    EXPECT_EQ(head.get<Head::uid>(), 9u);
    EXPECT_EQ(head.get<Head::obj_id>(), 0x77u);
    EXPECT_EQ(static_cast<unsigned>(head.get<Head::obj_type>()), create == 0xa00 ? 0x2cu : 0u);
  }
}

// What steering makes is named and undone together with the table it is in.
TEST(DevxRules, FlowsAreUndoneWhereTheyAre) {
  const auto made = [](Request& in, std::uint32_t number) {
    alignas(8) std::byte out[0x10]{};
    prm::store_be32(out + 8, number);
    const ObjectId id = created_object(in.mailbox(), out);
    return std::pair{id, destroy_request(in.mailbox(), id, 9)};
  };
  Request table(0x930), group(0x933), entry(0x936);
  prm::store_be32(group.bytes + 0x14, 0x55);
  prm::store_be32(entry.bytes + 0x14, 0x55);
  prm::store_be32(entry.bytes + 0x20, 0x33);
  const auto [table_id, no_table] = made(table, 0x55);
  EXPECT_EQ(table_id.number, 0x55u);
  EXPECT_EQ(prm::load_be32(no_table.data()), 0x931u << 16 | 9);
  EXPECT_EQ(prm::load_be32(no_table.data() + 0x14), 0x55u);
  const auto [group_id, no_group] = made(group, 0x77);
  EXPECT_EQ(group_id.number, 0x77u);
  EXPECT_EQ(prm::load_be32(no_group.data() + 0x14), 0x55u);
  EXPECT_EQ(prm::load_be32(no_group.data() + 0x18), 0x77u);
  const auto [entry_id, no_entry] = made(entry, 0);
  EXPECT_EQ(entry_id.number, 0x33u);
  EXPECT_EQ(prm::load_be32(no_entry.data()), 0x938u << 16 | 9);
  EXPECT_EQ(prm::load_be32(no_entry.data() + 0x20), 0x33u);
  Request counter(0x93b);
  prm::store_be32(counter.bytes + 0x1c, 0x44);
  EXPECT_EQ(queried_object(counter.mailbox()), (ObjectId{Opcode::alloc_flow_counter, 0, 0x44}));
}

std::string door_of(std::uint16_t opcode) {
  std::string doors;
  const auto add = [&](const char* door) { doors += (doors.empty() ? "" : ", ") + std::string(door); };
  if (kCreates.contains(opcode)) add("create");
  if (kQueries.contains(opcode)) add("query");
  if (kModifies.contains(opcode) || opcode == 0x936) add("modify");
  if (kGeneral.contains(opcode) || (opcode >= 0xb00 && opcode < 0xd00)) add("general");
  return doors.empty() ? "-" : doors;
}

// The table in docs/devx.md says the same.
TEST(DevxRules, TheDocumentedTable) {
  const auto rows = documented_commands();
  ASSERT_FALSE(rows.empty());
  for (const auto& [opcode, command] : rows)
    EXPECT_EQ(command.doors, door_of(static_cast<std::uint16_t>(opcode))) << std::hex << opcode;
  std::set<std::uint16_t> all = kCreates;
  all.insert(kGeneral.begin(), kGeneral.end());
  for (const auto& [opcode, kind] : kQueries) all.insert(opcode);
  for (const auto& [opcode, kind] : kModifies) all.insert(opcode);
  for (const std::uint16_t opcode : all) EXPECT_TRUE(rows.contains(opcode)) << std::hex << opcode;
}

}  // namespace
}  // namespace verbena::kernel
