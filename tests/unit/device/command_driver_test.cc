// Commands that no program can give, because DEVX has no door to them: the driver's, each accepted and seen in its
// effect. The table in docs/devx.md says which there are; tests/programs/devx_commands.cc shows the others.
#include <set>
#include <string>

#include "device/command/memic.h"
#include "prm/flow.h"
#include "prm/port.h"
#include "prm/registers.h"
#include "tests/devx_table.h"
#include "tests/unit/device/command_fixture.h"
#include "tests/unit/device/field_list.h"

namespace verbena::device {
namespace {

class DriverTest : public CommandTest {
 protected:
  using Bytes = std::vector<std::byte>;
  Bytes done(const Command& c, std::size_t room = 0x300) {
    Bytes out(room);
    device_->execute(c.in, out);
    EXPECT_EQ(prm::load_be32(out.data()) >> 24, 0u)
        << c.entry->name << ": " << reason(static_cast<Syndrome>(prm::load_be32(out.data() + 4)));
    if (prm::load_be32(out.data()) >> 24 == 0) accepted_.insert(static_cast<unsigned>(c.entry->opcode));
    return out;
  }
  std::uint32_t made(const Command& c) { return prm::load_be32(done(c).data() + 8) & 0xffffff; }
  void gone(const Command& c) {
    Bytes out(0x300);
    device_->execute(c.in, out);
    EXPECT_NE(prm::load_be32(out.data()) >> 24, 0u) << c.entry->name;
  }

  void event_queues();
  void queue_pairs();
  void shared_queues();
  void vport();
  void memory_and_users();
  void whole_device();
  std::set<unsigned> accepted_;
};

void DriverTest::event_queues() {
  Command create(eq_request());
  create.tail64(0, memory(0x6000));
  const std::uint32_t eqn = made(create) & 0xff;
  Request<prm::QueryEqIn, prm::QueryEqOut> query(Opcode::query_eq);
  query.in.set<prm::QueryEqIn::eq_number>(eqn);
  const Bytes out = done(Command(query));
  EXPECT_EQ(
      prm::ConstView<prm::QueryEqOut>(out.data()).sub<prm::QueryEqOut::eq_context_entry>().get<prm::Eqc::log_eq_size>(),
      5u);
  done(Command(Opcode::destroy_eq).set("eq_number", eqn));
  gone(Command(query));
}

void DriverTest::queue_pairs() {
  const std::uint32_t qpn = make_qp();
  for (const Opcode step : {Opcode::rst2init_qp, Opcode::init2rtr_qp, Opcode::rtr2rts_qp})
    ASSERT_EQ(transit(step, qpn), Status::ok);
  ASSERT_EQ(transit(Opcode::rts2sqd_qp, qpn), Status::ok);
  EXPECT_EQ(qp_state(qpn), prm::QpState::sq_drained) << "there is nothing to drain";
  ASSERT_EQ(transit(Opcode::sqd2sqd_qp, qpn), Status::ok) << reason(syndrome_);
  ASSERT_EQ(transit(Opcode::sqd_rts_qp, qpn), Status::ok) << reason(syndrome_);
  EXPECT_EQ(qp_state(qpn), prm::QpState::rts);
  for (const Opcode step : {Opcode::rts2sqd_qp, Opcode::sqd2sqd_qp, Opcode::sqd_rts_qp})
    accepted_.insert(static_cast<unsigned>(step));
  done(Command(Opcode::destroy_qp).set("qpn", qpn));
}

void DriverTest::shared_queues() {
  const std::uint32_t srqn = made(Command(srq_request()));
  done(Command(Opcode::arm_rq).set("op_mod", 1).set("srq_number", srqn).set("lwm", 0));
  const Bytes out = done(Command(Opcode::query_srq).set("srqn", srqn));
  EXPECT_EQ(
      prm::ConstView<prm::QuerySrqOut>(out.data()).sub<prm::QuerySrqOut::srq_context_entry>().get<prm::Srqc::pd>(),
      pd_);
  done(Command(Opcode::destroy_srq).set("srqn", srqn));
  gone(Command(Opcode::query_srq).set("srqn", srqn));
}

void DriverTest::vport() {
  done(Command(Opcode::modify_nic_vport_context).set("field_select.mtu", 1).set("nic_vport_context.mtu", 1500));
  const Bytes nic = done(Command(Opcode::query_nic_vport_context));
  EXPECT_EQ(prm::ConstView<prm::QueryNicVportContextOut>(nic.data())
                .sub<prm::QueryNicVportContextOut::nic_vport_context>()
                .get<prm::NicVportContext::mtu>(),
            1500u);
  Command address(Opcode::set_roce_address);
  address.set("roce_address_index", 90)
      .set("vhca_port_num", 1)
      .set("roce_version", 2)
      .set("roce_l3_type", 1)
      .set("source_l3_address", 0x20);
  done(address.set("source_mac_31_0", 7));
  const Bytes gid = done(Command(Opcode::query_hca_vport_gid).set("port_num", 1).set("gid_index", 90));
  EXPECT_EQ(gid[prm::QueryHcaVportGidOut::size], std::byte{0x20});
  const Bytes pkey = done(Command(Opcode::query_hca_vport_pkey).set("port_num", 1).set("pkey_index", 0));
  EXPECT_EQ(prm::load_be32(pkey.data() + 0x10) & 0xffff, 0xffffu);
  Command pmtu =
      Command(Opcode::access_reg).set("op_mod", 1).set("register_id", static_cast<unsigned>(prm::RegisterId::pmtu));
  pmtu.tail64(0, 1ull << 48).tail64(1, 0);
  EXPECT_GE(prm::load_be32(done(pmtu).data() + 0x14) >> 16, 1500u) << "the largest frame";
  const std::uint32_t table = made(Command(Opcode::create_flow_table).set("log_size", 2));
  done(Command(Opcode::set_flow_table_root).set("table_id", table));
  gone(Command(Opcode::destroy_flow_table).set("table_id", table));
  done(Command(Opcode::set_flow_table_root).set("op_mod", 1).set("table_id", table));
  done(Command(Opcode::destroy_flow_table).set("table_id", table));
}

void DriverTest::memory_and_users() {
  const std::uint32_t uar = made(Command(Opcode::alloc_uar));
  done(Command(Opcode::dealloc_uar).set("uar", uar));
  gone(Command(Opcode::dealloc_uar).set("uar", uar));
  const auto uid = static_cast<std::uint16_t>(made(Command(Opcode::create_uctx)));
  Command create = Command(Opcode::create_umem, uid).set("num_of_mtt", 1);
  const std::uint32_t umem = made(create.tail64(0, memory() | 3));
  gone(Command(Opcode::destroy_uctx).set("uid", uid));  // it has a UMEM
  done(Command(Opcode::destroy_umem, uid).set("umem_id", umem));
  done(Command(Opcode::destroy_uctx).set("uid", uid));
  gone(Command(Opcode::alloc_pd, uid));
  const auto chip = Command(Opcode::alloc_memic)
                        .set("range_start_addr", command::kMemicBarStart)
                        .set("range_size", 4096)
                        .set("memic_size", 4096);
  const Bytes got = done(chip);
  const std::uint64_t at = prm::load_be64(got.data() + 8);
  ASSERT_NE(device_->behind_bar(at, 4096), nullptr);
  const auto operation = Command(Opcode::modify_memic).set("memic_operation_type", 0).set("memic_start_addr", at);
  EXPECT_NE(prm::load_be64(done(operation).data() + 0x10), at);  // where the operation is
  done(Command(Opcode::modify_memic).set("op_mod", 1).set("memic_operation_type", 0).set("memic_start_addr", at));
  done(Command(Opcode::dealloc_memic).set("memic_start_addr", at).set("memic_size", 4096));
  gone(Command(Opcode::dealloc_memic).set("memic_start_addr", at).set("memic_size", 4096));
  done(Command(Opcode::set_pp_rate_limit).set("rate_limit_index", 3).set("rate_limit", 40'000));
}

void DriverTest::whole_device() {
  done(Command(Opcode::set_issi).set("current_issi", 1));
  done(Command(Opcode::query_special_contexts));
  done(Command(Opcode::enable_hca));
  gone(Command(Opcode::teardown_hca));  // there is a CQ
  done(Command(Opcode::destroy_cq).set("cqn", cqn_));
  done(Command(Opcode::teardown_hca));
  gone(Command(Opcode::alloc_pd));
  done(Command(Opcode::init_hca));
  made(Command(Opcode::alloc_pd));
  done(Command(Opcode::disable_hca));
}

TEST_F(DriverTest, EveryCommandWithoutADoor) {
  event_queues();
  queue_pairs();
  shared_queues();
  vport();
  memory_and_users();
  whole_device();
  unsigned there = 0;
  for (const auto& [opcode, command] : documented_commands()) {
    // What undoes a program's object is shown with it.
    if (!command.doors.starts_with('-') || command.device.starts_with("no") || command.undoes()) continue;
    ++there;
    EXPECT_TRUE(accepted_.contains(opcode)) << command.name;
  }
  EXPECT_GT(there, 20u);
}

}  // namespace
}  // namespace verbena::device
