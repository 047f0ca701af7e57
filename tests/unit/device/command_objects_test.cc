// Capabilities, keys, completion queues, shared receive queues, user contexts, ports: create, query, modify, destroy.
#include <set>

#include "prm/general_object.h"
#include "prm/admin.h"
#include "prm/caps.h"
#include "prm/port.h"
#include "prm/registers.h"
#include "tests/unit/device/command_fixture.h"

namespace verbena::device {
namespace {

using ObjectCommandTest = CommandTest;
using prm::CapMode;
using prm::CapType;

prm::Box<prm::QueryHcaCapOut> caps(Device& device, CapType type, CapMode mode, Status expected = Status::ok) {
  Request<prm::QueryHcaCapIn, prm::QueryHcaCapOut> r(Opcode::query_hca_cap);
  r.in.set<prm::QueryHcaCapIn::op_mod>(prm::cap_op_mod(type, mode));
  EXPECT_EQ(r.run(device), expected);
  return r.out;
}

TEST_F(ObjectCommandTest, CapabilityPagesAgreeWithTheProfile) {
  for (const auto type :
       {CapType::general, CapType::general_2, CapType::atomic, CapType::roce, CapType::odp, CapType::qos,
        CapType::device_mem, CapType::device_event, CapType::flow_table, CapType::crypto, CapType::ethernet_offloads,
        CapType::eswitch_flow_table, CapType::eswitch}) {
    const auto now = caps(*device_, type, CapMode::current), most = caps(*device_, type, CapMode::max);
    EXPECT_EQ(std::memcmp(now.span().data(), most.span().data(), now.size()), 0);
  }
  caps(*device_, CapType::ipsec, CapMode::current, Status::bad_param);
  auto page = caps(*device_, CapType::general, CapMode::current);
  const auto cap = page.sub<prm::QueryHcaCapOut::capability>().sub<prm::HcaCapUnion::cmd_hca_cap>();
  using C = prm::CmdHcaCap;
  EXPECT_EQ(cap.get<C::log_max_qp>(), profile_.limits.log_max_qp);
  EXPECT_EQ(cap.get<C::port_type>(), 1u);
  EXPECT_EQ(cap.get<C::num_lag_ports>(), 2u);
  EXPECT_EQ(cap.get<C::cqe_version>(), 1u);
  EXPECT_EQ(cap.get<C::device_frequency_khz>(), profile_.frequency_khz);
  // What is not there must not be advertised.
  EXPECT_EQ(cap.get<C::dct>() | cap.get<C::pg>() | cap.get<C::apm>() |
                cap.get<C::crypto>() | cap.get<C::sho>() | cap.get<C::enhanced_cqe_compression>() | cap.get<C::null_mkey>(),
            0u);
  // And virtio queues, of which there are none: they come with doorbell pages (VAR).
  std::uint64_t types = 0;
  using Type = prm::GeneralObjectType;
  for (Type type : {Type::reserved_qpn, Type::scheduling_element, Type::av_qp_mapping, Type::virtio_net_q})
    types |= std::uint64_t{1} << static_cast<unsigned>(type);
  EXPECT_EQ(cap.get<C::general_obj_types>(), types);
  EXPECT_EQ(cap.get<C::device_memory>(), 1u);
  // 30 data segments fit into a send WQE as the driver counts: control, remote address, data.
  EXPECT_GE((std::min(cap.get<C::max_wqe_sz_sq>(), 512u) - 32) / 16, 30u);
}

TEST_F(ObjectCommandTest, PlacesOfTheSwitch) {
  using Cap = prm::FlowTableEswitchCap;
  using Context = prm::EswVportContext;
  auto pages = caps(*device_, CapType::eswitch_flow_table, CapMode::current);
  const auto cap = pages.sub<prm::QueryHcaCapOut::capability>().sub<prm::HcaCapUnion::flow_table_eswitch_cap>();
  Request<prm::QueryEswVportContextIn, prm::QueryEswVportContextOut> query(Opcode::query_esw_vport_context);
  ASSERT_EQ(query.run(*device_), Status::ok) << reason(query.syndrome());
  const auto own = query.out.sub<prm::QueryEswVportContextOut::esw_vport_context>();
  const std::set<std::uint64_t> addresses{
      cap.get<Cap::sw_steering_fdb_action_drop_icm_address_rx>(), cap.get<Cap::sw_steering_fdb_action_drop_icm_address_tx>(),
      cap.get<Cap::sw_steering_uplink_icm_address_rx>(), cap.get<Cap::sw_steering_uplink_icm_address_tx>(),
      own.get<Context::sw_steering_vport_icm_address_rx>(), own.get<Context::sw_steering_vport_icm_address_tx>()};
  EXPECT_EQ(addresses.size(), 6u);
  for (const std::uint64_t address : addresses) EXPECT_TRUE(address != 0 && address % 64 == 0) << address;
  // No rules, so nothing that they would need.
  const auto fdb = cap.sub<Cap::flow_table_properties_nic_esw_fdb>();
  EXPECT_EQ(fdb.get<prm::FlowTablePropLayout::ft_support>() | fdb.get<prm::FlowTablePropLayout::sw_owner>() |
                fdb.get<prm::FlowTablePropLayout::sw_owner_v2>() | cap.get<Cap::fdb_to_vport_reg_c_id>() |
                cap.get<Cap::flow_source>(),
            0u);
  auto manager = caps(*device_, CapType::eswitch, CapMode::current);
  const auto esw = manager.sub<prm::QueryHcaCapOut::capability>().sub<prm::HcaCapUnion::e_switch_cap>();
  EXPECT_EQ(esw.get<prm::ESwitchCap::esw_manager_vport_number_valid>(), 1u);
  EXPECT_EQ(esw.get<prm::ESwitchCap::esw_manager_vport_number>(), 0u);

  // The manager of the switch may name itself as any other: the same answers.
  auto plain = query.out;
  query.in.set<prm::QueryEswVportContextIn::other_vport>(1);
  ASSERT_EQ(query.run(*device_), Status::ok);
  EXPECT_EQ(std::memcmp(plain.data(), query.out.data(), query.out.size()), 0);
  Request<prm::QueryHcaCapIn, prm::QueryHcaCapOut> general(Opcode::query_hca_cap);
  general.in.set<prm::QueryHcaCapIn::op_mod>(prm::cap_op_mod(CapType::general, CapMode::current));
  general.in.set<prm::QueryHcaCapIn::other_function>(1);
  ASSERT_EQ(general.run(*device_), Status::ok);
  auto self = caps(*device_, CapType::general, CapMode::current);
  EXPECT_EQ(std::memcmp(self.data(), general.out.data(), self.size()), 0);
  using C = prm::CmdHcaCap;
  const auto hca = self.sub<prm::QueryHcaCapOut::capability>().sub<prm::HcaCapUnion::cmd_hca_cap>();
  EXPECT_TRUE(hca.get<C::eswitch_manager>() && hca.get<C::vport_group_manager>());
}

TEST_F(ObjectCommandTest, MemoryKeys) {
  auto direct = mkey_request(prm::MkeyAccessMode::pa);
  ASSERT_EQ(direct.run(*device_), Status::ok) << reason(direct.syndrome());
  const auto index = direct.out.get<prm::CreateMkeyOut::mkey_index>();
  Request<prm::QueryMkeyIn, prm::QueryMkeyOut> query(Opcode::query_mkey);
  query.in.set<prm::QueryMkeyIn::mkey_index>(index);
  ASSERT_EQ(query.run(*device_), Status::ok);
  const auto mkc = query.out.sub<prm::QueryMkeyOut::memory_key_mkey_entry>();
  EXPECT_EQ(mkc.get<prm::Mkc::mkey_7_0>(), 0x5au);
  EXPECT_EQ(mkc.get<prm::Mkc::start_addr>(), memory());
  EXPECT_EQ(mkc.get<prm::Mkc::len>(), 0x2000u);
  EXPECT_EQ(mkc.get<prm::Mkc::lr>(), 1u);

  const auto refused = [&](auto request, Syndrome why) {
    EXPECT_NE(request.run(*device_), Status::ok);
    EXPECT_EQ(request.syndrome(), why) << reason(request.syndrome());
  };
  auto mtt = mkey_request(prm::MkeyAccessMode::mtt);
  refused(mtt, Syndrome::mkey_table_empty);
  const auto context = mtt.in.sub<prm::CreateMkeyIn::memory_key_mkey_entry>();
  context.set<prm::Mkc::log_page_size>(12).set<prm::Mkc::translations_octword_size>(1);
  mtt.in.set<prm::CreateMkeyIn::translations_octword_actual_size>(1);
  prm::store_be64(mtt.in.data() + prm::CreateMkeyIn::size, memory());
  prm::store_be64(mtt.in.data() + prm::CreateMkeyIn::size + 8, memory(0x1000));
  EXPECT_EQ(mtt.run(*device_), Status::ok) << reason(mtt.syndrome());
  context.set<prm::Mkc::len>(0x2001);
  refused(mtt, Syndrome::mkey_table_cover);
  mtt.in.set<prm::CreateMkeyIn::translations_octword_actual_size>(8);
  refused(mtt, Syndrome::mkey_table_short);
  refused(mkey_request(prm::MkeyAccessMode::memic), Syndrome::mkey_memic);
  refused(mkey_request(prm::MkeyAccessMode::sw_icm), Syndrome::mkey_device_memory);
  auto window = mkey_request(prm::MkeyAccessMode::klms);
  window.in.sub<prm::CreateMkeyIn::memory_key_mkey_entry>().set<prm::Mkc::free>(1).set<prm::Mkc::umr_en>(1);
  EXPECT_EQ(window.run(*device_), Status::ok) << reason(window.syndrome());

  Request<prm::DestroyMkeyIn, prm::DestroyMkeyOut> destroy(Opcode::destroy_mkey);
  destroy.in.set<prm::DestroyMkeyIn::mkey_index>(index);
  EXPECT_EQ(destroy.run(*device_), Status::ok);
  EXPECT_EQ(destroy.run(*device_), Status::bad_resource);
  EXPECT_EQ(query.run(*device_), Status::bad_resource);
}

TEST_F(ObjectCommandTest, CompletionQueueModeration) {
  Request<prm::ModifyCqIn, prm::ModifyCqOut> modify(Opcode::modify_cq);
  using Select = prm::ModifyCqSelect;
  modify.in.set<prm::ModifyCqIn::cqn>(cqn_);
  modify.in.set<prm::ModifyCqIn::modify_field_select_resize_field_select>(Select::period | Select::max_count);
  modify.in.sub<prm::ModifyCqIn::cq_context>().set<prm::Cqc::cq_period>(9).set<prm::Cqc::cq_max_count>(17);
  ASSERT_EQ(modify.run(*device_), Status::ok);
  EXPECT_EQ(live_cq(cqn_).period_us, 9);
  EXPECT_EQ(live_cq(cqn_).features, kCqModerated);
  Request<prm::QueryCqIn, prm::QueryCqOut> query(Opcode::query_cq);
  query.in.set<prm::QueryCqIn::cqn>(cqn_);
  ASSERT_EQ(query.run(*device_), Status::ok);
  EXPECT_EQ(query.out.sub<prm::QueryCqOut::cq_context>().get<prm::Cqc::cq_max_count>(), 17u);
  modify.in.set<prm::ModifyCqIn::modify_field_select_resize_field_select>(Select::period_mode);
  modify.in.sub<prm::ModifyCqIn::cq_context>().set<prm::Cqc::cq_period_mode>(prm::CqPeriodMode::from_cqe);
  ASSERT_EQ(modify.run(*device_), Status::ok);
  EXPECT_EQ(live_cq(cqn_).features, kCqModerated | kCqPeriodFromCqe);
  EXPECT_EQ(live_cq(cqn_).max_count, 17) << "what is not selected stays";
  ASSERT_EQ(query.run(*device_), Status::ok);
  EXPECT_EQ(query.out.sub<prm::QueryCqOut::cq_context>().get<prm::Cqc::cq_period_mode>(), prm::CqPeriodMode::from_cqe);
  modify.in.set<prm::ModifyCqIn::modify_field_select_resize_field_select>(Select::max_count);
  modify.in.sub<prm::ModifyCqIn::cq_context>().set<prm::Cqc::cq_max_count>(0);
  ASSERT_EQ(modify.run(*device_), Status::ok);
  EXPECT_EQ(live_cq(cqn_).features, 0) << "a count of 0 ends it";
}

class WithoutCompression : public ObjectCommandTest {
 protected:
  WithoutCompression() { profile_.limits.cqe_compression = 0; }
};

TEST_F(WithoutCompression, CompletionQueueOfCompressedEntries) {
  auto request = cq_request();
  prm::store_be64(request.in.data() + prm::CreateCqIn::size, memory(0x5000));
  const auto cqc = request.in.sub<prm::CreateCqIn::cq_context>();
  cqc.set<prm::Cqc::dbr_addr>(doorbell(memory_, 5));
  cqc.set<prm::Cqc::cqe_comp_en>(1);
  EXPECT_EQ(request.run(*device_), Status::bad_param);
  EXPECT_EQ(request.syndrome(), Syndrome::cq_compression);
  cqc.set<prm::Cqc::cqe_comp_en>(0);
  EXPECT_EQ(request.run(*device_), Status::ok);
}

TEST_F(ObjectCommandTest, CompletionQueueOfCompressedEntries) {
  auto request = cq_request();
  prm::store_be64(request.in.data() + prm::CreateCqIn::size, memory(0x5000));
  const auto cqc = request.in.sub<prm::CreateCqIn::cq_context>();
  cqc.set<prm::Cqc::dbr_addr>(doorbell(memory_, 5));
  cqc.set<prm::Cqc::cqe_comp_en>(1).set<prm::Cqc::mini_cqe_res_format>(prm::MiniCqeFormat::checksum_stride_index);
  ASSERT_EQ(request.run(*device_), Status::ok) << reason(request.syndrome());
  const auto cqn = request.out.get<prm::CreateCqOut::cqn>();
  EXPECT_EQ(live_cq(cqn).features, kCqCompressed);
  EXPECT_EQ(live_cq(cqn).mini_format, 3);
  // What a sender left open is closed before anybody is told how far the queue is.
  live_cq(cqn).gathered = 1;
  Request<prm::QueryCqIn, prm::QueryCqOut> query(Opcode::query_cq);
  query.in.set<prm::QueryCqIn::cqn>(cqn);
  ASSERT_EQ(query.run(*device_), Status::ok);
  const auto told = query.out.sub<prm::QueryCqOut::cq_context>();
  EXPECT_EQ(told.get<prm::Cqc::producer_counter>(), 1u);
  EXPECT_EQ(told.get<prm::Cqc::cqe_comp_en>(), 1u);
  EXPECT_EQ(live_cq(cqn).gathered, 0u);
  // Resized, it has it in the old ring.
  live_cq(cqn).gathered = 1;
  Request<prm::ModifyCqIn, prm::ModifyCqOut, 8> resize(Opcode::modify_cq);
  resize.in.set<prm::ModifyCqIn::cqn>(cqn).set<prm::ModifyCqIn::op_mod>(1);
  resize.in.set<prm::ModifyCqIn::modify_field_select_resize_field_select>(prm::ResizeCqSelect::log_cq_size);
  resize.in.sub<prm::ModifyCqIn::cq_context>().set<prm::Cqc::log_cq_size>(4);
  prm::store_be64(resize.in.data() + prm::ModifyCqIn::size, memory(0x7000));
  ASSERT_EQ(resize.run(*device_), Status::ok) << reason(resize.syndrome());
  EXPECT_EQ(live_cq(cqn).pi, 3u) << "two completions and the marker";
  EXPECT_EQ(live_cq(cqn).gathered, 0u);
  EXPECT_EQ(std::to_integer<unsigned>(memory_[0x5000 + 2 * 64 + 63]) >> 4, 5u);
}

TEST_F(ObjectCommandTest, CompletionQueueResize) {
  Request<prm::ModifyCqIn, prm::ModifyCqOut, 8> resize(Opcode::modify_cq);
  resize.in.set<prm::ModifyCqIn::cqn>(cqn_).set<prm::ModifyCqIn::op_mod>(1);
  resize.in.set<prm::ModifyCqIn::modify_field_select_resize_field_select>(prm::ResizeCqSelect::log_cq_size);
  resize.in.sub<prm::ModifyCqIn::cq_context>().set<prm::Cqc::log_cq_size>(6);
  prm::store_be64(resize.in.data() + prm::ModifyCqIn::size, memory(0x6000));
  ASSERT_EQ(resize.run(*device_), Status::ok) << reason(resize.syndrome());
  EXPECT_EQ(live_cq(cqn_).ring.va, memory(0x6000));
  EXPECT_EQ(live_cq(cqn_).pi, 1u) << "the marker takes an index";
  const auto marker = std::to_integer<unsigned>(memory_[0x1000 + 63]);
  EXPECT_EQ(marker >> 4, 5u);
  EXPECT_EQ(marker & 1, 0u);
  resize.in.set<prm::ModifyCqIn::op_mod>(2);
  EXPECT_EQ(resize.run(*device_), Status::bad_param);
}

TEST_F(ObjectCommandTest, SharedReceiveQueueLimit) {
  auto srq = srq_request();
  ASSERT_EQ(srq.run(*device_), Status::ok) << reason(srq.syndrome());
  Request<prm::ArmRqIn, prm::ArmRqOut> arm(Opcode::arm_rq);
  arm.in.set<prm::ArmRqIn::op_mod>(1).set<prm::ArmRqIn::srq_number>(srq.out.get<prm::CreateSrqOut::srqn>());
  arm.in.set<prm::ArmRqIn::lwm>(32);
  EXPECT_EQ(arm.run(*device_), Status::exceed_lim);
  auto qp = qp_request();
  const auto qpc = qp.in.sub<prm::CreateQpIn::qpc>();
  qpc.set<prm::Qpc::rq_type>(prm::RqType::srq_rmp_xrq);
  qpc.set<prm::Qpc::srqn_rmpn_xrqn>(srq.out.get<prm::CreateSrqOut::srqn>());
  ASSERT_EQ(qp.run(*device_), Status::ok) << reason(qp.syndrome());
  EXPECT_EQ(live_qp(qp.out.get<prm::CreateQpOut::qpn>()).sq.va, memory(0x2000)) << "no receive ring before it";
  Request<prm::DestroySrqIn, prm::DestroySrqOut> destroy(Opcode::destroy_srq);
  destroy.in.set<prm::DestroySrqIn::srqn>(srq.out.get<prm::CreateSrqOut::srqn>());
  EXPECT_EQ(destroy.run(*device_), Status::bad_res_state);
}

TEST_F(ObjectCommandTest, UserContextsOwnWhatTheyMake) {
  Request<prm::CreateUctxIn, prm::CreateUctxOut> create(Opcode::create_uctx);
  ASSERT_EQ(create.run(*device_), Status::ok);
  const auto uid = static_cast<std::uint16_t>(create.out.get<prm::CreateUctxOut::uid>());
  const auto pd = make_pd(uid);
  Request<prm::DeallocPdIn, prm::DeallocPdOut> other(Opcode::dealloc_pd, static_cast<std::uint16_t>(uid + 1));
  other.in.set<prm::DeallocPdIn::pd>(pd);
  other.run(*device_);
  EXPECT_EQ(other.syndrome(), Syndrome::uid_unknown);
  ASSERT_EQ(create.run(*device_), Status::ok);
  EXPECT_EQ(other.run(*device_), Status::bad_resource);
  EXPECT_EQ(other.syndrome(), Syndrome::pd_missing);
  Request<prm::DestroyUctxIn, prm::DestroyUctxOut> destroy(Opcode::destroy_uctx);
  destroy.in.set<prm::DestroyUctxIn::uid>(uid);
  EXPECT_EQ(destroy.run(*device_), Status::bad_res_state);
  Request<prm::CreateUctxIn, prm::CreateUctxOut> inner(Opcode::create_uctx, uid);
  EXPECT_EQ(inner.run(*device_), Status::bad_op);
  Request<prm::DeallocPdIn, prm::DeallocPdOut> mine(Opcode::dealloc_pd, uid);
  mine.in.set<prm::DeallocPdIn::pd>(pd);
  EXPECT_EQ(mine.run(*device_), Status::ok);
  EXPECT_EQ(destroy.run(*device_), Status::ok);
}

TEST_F(ObjectCommandTest, QueueInUserMemory) {
  Request<prm::CreateUctxIn, prm::CreateUctxOut> create(Opcode::create_uctx);
  ASSERT_EQ(create.run(*device_), Status::ok);
  const auto uid = static_cast<std::uint16_t>(create.out.get<prm::CreateUctxOut::uid>());
  Request<prm::CreateUmemIn, prm::CreateUmemOut, 16> umem(Opcode::create_umem, uid);
  const auto layout = umem.in.sub<prm::CreateUmemIn::umem>();
  layout.set<prm::Umem::num_of_mtt>(2).set<prm::Umem::page_offset>(0);
  prm::store_be64(umem.in.data() + prm::CreateUmemIn::size, memory(0x8000) | 3);
  prm::store_be64(umem.in.data() + prm::CreateUmemIn::size + 8, memory(0x9000) | 3);
  ASSERT_EQ(umem.run(*device_), Status::ok) << reason(umem.syndrome());
  const auto id = umem.out.get<prm::CreateUmemOut::umem_id>();
  Request<prm::CreateCqIn, prm::CreateCqOut> cq(Opcode::create_cq, uid);
  const auto cqc = cq.in.sub<prm::CreateCqIn::cq_context>();
  cqc.set<prm::Cqc::log_cq_size>(6).set<prm::Cqc::uar_page>(uar_).set<prm::Cqc::c_eqn_or_apu_element>(eqn_);
  cqc.set<prm::Cqc::dbr_umem_valid>(1).set<prm::Cqc::dbr_umem_id>(id).set<prm::Cqc::dbr_addr>(0x1000);
  cq.in.set<prm::CreateCqIn::cq_umem_valid>(1).set<prm::CreateCqIn::cq_umem_id>(id);
  ASSERT_EQ(cq.run(*device_), Status::ok) << reason(cq.syndrome());
  const auto cqn = cq.out.get<prm::CreateCqOut::cqn>();
  EXPECT_EQ(live_cq(cqn).ring.va, memory(0x8000));
  EXPECT_EQ(live_cq(cqn).dbrec_va, memory(0x9000));
  cqc.set<prm::Cqc::log_cq_size>(8);
  EXPECT_EQ(cq.run(*device_), Status::bad_param);
  EXPECT_EQ(cq.syndrome(), Syndrome::queue_umem_short);
  Request<prm::DestroyUmemIn, prm::DestroyUmemOut> destroy(Opcode::destroy_umem, uid);
  destroy.in.set<prm::DestroyUmemIn::umem_id>(id);
  EXPECT_EQ(destroy.run(*device_), Status::bad_res_state);
}

TEST_F(ObjectCommandTest, AddressTable) {
  Request<prm::SetRoceAddressIn, prm::SetRoceAddressOut> set(Opcode::set_roce_address);
  set.in.set<prm::SetRoceAddressIn::roce_address_index>(100).set<prm::SetRoceAddressIn::vhca_port_num>(1);
  const auto address = set.in.sub<prm::SetRoceAddressIn::roce_address>();
  address.bytes<prm::RoceAddrLayout::source_l3_address>()[0] = std::byte{0x20};
  address.set<prm::RoceAddrLayout::source_mac_31_0>(0x01020304)
      .set<prm::RoceAddrLayout::roce_version>(prm::RoceVersion::v2);
  address.set<prm::RoceAddrLayout::roce_l3_type>(prm::RoceL3Type::ipv6);
  ASSERT_EQ(set.run(*device_), Status::ok) << reason(set.syndrome());
  Request<prm::QueryRoceAddressIn, prm::QueryRoceAddressOut> query(Opcode::query_roce_address);
  query.in.set<prm::QueryRoceAddressIn::roce_address_index>(100).set<prm::QueryRoceAddressIn::vhca_port_num>(1);
  ASSERT_EQ(query.run(*device_), Status::ok);
  EXPECT_EQ(std::memcmp(query.out.sub<prm::QueryRoceAddressOut::roce_address>().data(), address.data(),
                        prm::RoceAddrLayout::size),
            0);
  query.in.set<prm::QueryRoceAddressIn::roce_address_index>(256);
  EXPECT_EQ(query.run(*device_), Status::bad_index);
}

TEST_F(ObjectCommandTest, PortRegisters) {
  Request<prm::AccessRegisterIn, prm::AccessRegisterOut, prm::PtysReg::size> r(Opcode::access_reg);
  r.in.set<prm::AccessRegisterIn::op_mod>(1).set<prm::AccessRegisterIn::register_id>(
      static_cast<unsigned>(prm::RegisterId::ptys));
  const prm::View<prm::PtysReg> ptys(r.in.data() + prm::AccessRegisterIn::size);
  ptys.set<prm::PtysReg::local_port>(1).set<prm::PtysReg::proto_mask>(prm::PtysProto::ethernet);
  std::byte out[prm::AccessRegisterOut::size + prm::PtysReg::size];
  device_->execute(r.in.span(), out);
  const prm::View<prm::PtysReg> answer(out + prm::AccessRegisterOut::size);
  EXPECT_EQ(answer.get<prm::PtysReg::ext_eth_proto_oper>(), 1u << 12) << "200 Gb/s";
  r.in.set<prm::AccessRegisterIn::register_id>(static_cast<unsigned>(prm::RegisterId::mcia));
  device_->execute(r.in.span(), out);
  EXPECT_EQ(prm::load_be32(out + 4), static_cast<std::uint32_t>(Syndrome::register_no_module));
}

TEST(ProfileTest, ErrorsNameTheLine) {
  const auto bad = [](std::string_view text, std::string_view message) {
    const auto profile = parse_profile(text, "p.toml");
    ASSERT_FALSE(profile) << text;
    EXPECT_EQ(profile.error().reason, message);
  };
  bad("[limits]\nlog_max_qp = 30\n", "p.toml:2: limits.log_max_qp is 30, must be 4 to 18");
  bad("[link]\n\nlga = true\n", "p.toml:3: unknown key link.lga");
  bad("[link]\nports = 1\nlag = true\n", "p.toml:3: link.lag needs link.ports = 2");
  bad("[[port]]\nmac = \"1:2\"\n", "p.toml:2: port.mac must look like \"02:00:00:00:00:01\"");
  bad("[[port]]\nipv4 = [\"10.0.0.300\"]\n", "p.toml:2: port.ipv4 holds something that is not an address");
  bad("[eswitch]\nmode = \"offloads\"\n", "p.toml:2: eswitch.mode must be \"switchdev\" or \"legacy\"");
  bad("[eswitch]\nmode = 1\n", "p.toml:2: eswitch.mode must be a string");
  bad("[eswitch]\nencap = true\n", "p.toml:2: unknown key eswitch.encap");
  EXPECT_FALSE(parse_profile("[link\n", "p.toml"));
  const auto good = parse_profile("[device]\nfirmware = \"28.40.1000\"\n[link]\nports = 1\nspeed_gbps = 100\n", "p");
  ASSERT_TRUE(good) << good.error().reason;
  EXPECT_EQ(good->lag_ports(), 1u);
  EXPECT_EQ(good->firmware_text(), "28.40.1000");
  EXPECT_EQ(default_profile().path_mtu_code(), 5u);
  EXPECT_EQ(default_profile().eswitch, EswitchMode::switchdev);
  const auto legacy = parse_profile("[eswitch]\nmode = \"legacy\"\n", "p");
  ASSERT_TRUE(legacy) << legacy.error().reason;
  EXPECT_EQ(legacy->eswitch, EswitchMode::legacy);
}

}  // namespace
}  // namespace verbena::device
