// General objects (reserved QP numbers) and device memory: what is granted, and how each refusal reads.
#include <set>

#include "prm/general_object.h"
#include "prm/misc.h"
#include "device/command/memic.h"
#include "device/command/state.h"
#include "tests/unit/device/command_fixture.h"

namespace verbena::device::command {
namespace {

using prm::GeneralObjectType;
using prm::Opcode;
using prm::Status;

class GeneralTest : public CommandTest {
 protected:
  // The head of general commands has untyped fields, so that it fits every command.
  struct Object {
    prm::Box<prm::GeneralObjInCmdHdr, 16> in;
    prm::Box<prm::GeneralObjOutCmdHdr> out;
    std::size_t tail = 0;
    Status run(Device& device) {
      device.execute(in.span().first(prm::GeneralObjInCmdHdr::size + tail), out.span());
      return static_cast<Status>(out.get<prm::GeneralObjOutCmdHdr::status>());
    }
    Syndrome syndrome() const { return static_cast<Syndrome>(out.get<prm::GeneralObjOutCmdHdr::syndrome>()); }
  };
  Object object(Opcode opcode, GeneralObjectType type, std::uint32_t id = 0) {
    Object r;
    r.tail = opcode == Opcode::create_general_object ? 16 : 0;
    r.in.set<prm::GeneralObjInCmdHdr::opcode>(static_cast<std::uint16_t>(opcode));
    r.in.set<prm::GeneralObjInCmdHdr::obj_type>(type);
    r.in.set<prm::GeneralObjInCmdHdr::obj_id>(id);
    return r;
  }
  using Alloc = Request<prm::AllocMemicIn, prm::AllocMemicOut>;
  Alloc memic(std::uint64_t start, std::uint32_t range, std::uint32_t size, std::uint32_t align = 0) {
    Alloc r(Opcode::alloc_memic);
    r.in.set<prm::AllocMemicIn::range_start_addr>(start).set<prm::AllocMemicIn::range_size>(range);
    r.in.set<prm::AllocMemicIn::memic_size>(size).set<prm::AllocMemicIn::log_memic_addr_alignment>(align);
    return r;
  }
};

TEST_F(GeneralTest, ReservedNumbersAreApartFromQps) {
  std::set<std::uint32_t> blocks;
  for (int i = 0; i < 5; ++i) {
    auto r = object(Opcode::create_general_object, GeneralObjectType::reserved_qpn);
    r.in.set<prm::GeneralObjInCmdHdr::log_obj_range>(6);
    ASSERT_EQ(r.run(*device_), Status::ok) << reason(r.syndrome());
    const auto first = r.out.get<prm::GeneralObjOutCmdHdr::obj_id>();
    EXPECT_EQ(first % 64, 0u);
    EXPECT_TRUE(blocks.insert(first / 64).second);
  }
  for (int i = 0; i < 150; ++i) EXPECT_FALSE(blocks.contains(make_qp() / 64));
  for (const auto block : blocks) {
    auto destroy = object(Opcode::destroy_general_object, GeneralObjectType::reserved_qpn, block * 64);
    EXPECT_EQ(destroy.run(*device_), Status::ok);
    EXPECT_EQ(destroy.run(*device_), Status::bad_resource);
    EXPECT_EQ(destroy.syndrome(), Syndrome::object_missing);
  }
}

TEST_F(GeneralTest, Refusals) {
  auto wide = object(Opcode::create_general_object, GeneralObjectType::reserved_qpn);
  wide.in.set<prm::GeneralObjInCmdHdr::log_obj_range>(7);
  EXPECT_EQ(wide.run(*device_), Status::bad_param);
  EXPECT_EQ(wide.syndrome(), Syndrome::object_range);
  auto type = object(Opcode::create_general_object, GeneralObjectType::flow_sampler);
  EXPECT_EQ(type.run(*device_), Status::bad_param);
  EXPECT_EQ(type.syndrome(), Syndrome::object_type);
  auto virtio = object(Opcode::create_general_object, GeneralObjectType::virtio_net_q);
  EXPECT_EQ(virtio.run(*device_), Status::exceed_lim);
  EXPECT_EQ(virtio.syndrome(), Syndrome::object_virtio);
  auto body = object(Opcode::create_general_object, GeneralObjectType::reserved_qpn);
  body.in.data()[prm::GeneralObjInCmdHdr::size] = std::byte{1};
  EXPECT_EQ(body.run(*device_), Status::bad_param);
  EXPECT_EQ(body.syndrome(), Syndrome::object_body);
  auto fixed = object(Opcode::modify_general_object, GeneralObjectType::reserved_qpn, 0x999);
  EXPECT_EQ(fixed.run(*device_), Status::bad_resource);
  auto made = object(Opcode::create_general_object, GeneralObjectType::reserved_qpn);
  ASSERT_EQ(made.run(*device_), Status::ok);
  fixed = object(Opcode::modify_general_object, GeneralObjectType::reserved_qpn,
                 made.out.get<prm::GeneralObjOutCmdHdr::obj_id>());
  fixed.tail = 16;
  EXPECT_EQ(fixed.run(*device_), Status::bad_op);
  EXPECT_EQ(fixed.syndrome(), Syndrome::object_fixed);
}

// An address follows a QP: what was asked for can be read back, and outlives the QP.
TEST_F(GeneralTest, AddressesFollowQueuePairs) {
  TearDown();
  profile_.gid_table_size = 16;
  SetUp();
  using Mapping = prm::AvQpMapping;
  constexpr std::size_t head = prm::GeneralObjInCmdHdr::size;
  struct {
    prm::Box<prm::GeneralObjInCmdHdr, Mapping::size> in;
    prm::Box<prm::GeneralObjOutCmdHdr, Mapping::size> out;
    prm::View<Mapping> body() { return prm::View<Mapping>(in.data() + head); }
    Syndrome run(Device& device, Opcode opcode, std::uint32_t id = 0, std::uint16_t uid = 0) {
      in.set<prm::GeneralObjInCmdHdr::opcode>(static_cast<std::uint16_t>(opcode)).set<prm::GeneralObjInCmdHdr::obj_id>(id);
      in.set<prm::GeneralObjInCmdHdr::obj_type>(GeneralObjectType::av_qp_mapping).set<prm::GeneralObjInCmdHdr::uid>(uid);
      device.execute(in.span().first(opcode == Opcode::create_general_object ? head + Mapping::size : head), out.span());
      return static_cast<Syndrome>(out.get<prm::GeneralObjOutCmdHdr::syndrome>());
    }
  } r;
  const auto qpn = make_qp();
  r.body().set<Mapping::qpn>(qpn);
  const auto address = r.body().sub<Mapping::remote_address_vector>();
  address.set<prm::UdAv::sl_or_eth_prio>(6).set<prm::UdAv::src_addr_index>(3);
  address.bytes<prm::UdAv::rgid_or_rip>()[15] = std::byte{0x77};
  ASSERT_EQ(r.run(*device_, Opcode::create_general_object), Syndrome{});
  const auto id = r.out.get<prm::GeneralObjOutCmdHdr::obj_id>();
  ASSERT_EQ(transit(Opcode::qp_2rst, qpn), Status::ok);
  Request<prm::DestroyQpIn, prm::DestroyQpOut> destroy(Opcode::destroy_qp);
  destroy.in.set<prm::DestroyQpIn::qpn>(qpn);
  ASSERT_EQ(destroy.run(*device_), Status::ok);
  ASSERT_EQ(r.run(*device_, Opcode::query_general_object, id), Syndrome{});
  EXPECT_EQ(std::memcmp(r.out.data() + prm::GeneralObjOutCmdHdr::size, r.body().data(), Mapping::size), 0);
  EXPECT_EQ(r.run(*device_, Opcode::modify_general_object, id), Syndrome::object_fixed);
  EXPECT_EQ(r.run(*device_, Opcode::create_general_object), Syndrome::mapping_qp);
  r.body().set<Mapping::qpn>(make_qp());
  address.set<prm::UdAv::src_addr_index>(16);
  EXPECT_EQ(r.run(*device_, Opcode::create_general_object), Syndrome::mapping_sgid_index);
  address.set<prm::UdAv::src_addr_index>(15);
  for (unsigned i = 2; i < command::kMappings; ++i)
    ASSERT_EQ(r.run(*device_, Opcode::create_general_object), Syndrome{});
  EXPECT_EQ(r.run(*device_, Opcode::create_general_object), Syndrome::mapping_none_left);
  r.body().data()[8] = std::byte{1};
  EXPECT_EQ(r.run(*device_, Opcode::create_general_object), Syndrome::mapping_body);
  EXPECT_EQ(r.run(*device_, Opcode::destroy_general_object, id), Syndrome{});
  EXPECT_EQ(r.run(*device_, Opcode::query_general_object, id), Syndrome::object_missing);
}

TEST_F(GeneralTest, DeviceMemoryIsKeptAccountOf) {
  constexpr std::uint64_t bar = kMemicBarStart;
  auto first = memic(bar, 8192, 4096);
  ASSERT_EQ(first.run(*device_), Status::ok) << reason(first.syndrome());
  EXPECT_EQ(first.out.get<prm::AllocMemicOut::memic_start_addr>(), bar);
  auto second = memic(bar, 8192, 4096);
  ASSERT_EQ(second.run(*device_), Status::ok);
  EXPECT_EQ(second.out.get<prm::AllocMemicOut::memic_start_addr>(), bar + 4096);
  auto none = memic(bar, 8192, 64);
  EXPECT_EQ(none.run(*device_), Status::no_resources);
  EXPECT_EQ(none.syndrome(), Syndrome::memic_full);
  auto all = memic(bar + 8192, kMemicBytes, kMemicBytes - 8192 + 64);
  EXPECT_EQ(all.run(*device_), Status::no_resources);
  auto rest = memic(bar + 8192, kMemicBytes, kMemicBytes - 8192);
  EXPECT_EQ(rest.run(*device_), Status::ok);
  EXPECT_NE(device_->behind_bar(bar, 4096), nullptr);
  EXPECT_EQ(device_->behind_bar(bar + kMemicBarBytes, 4096), nullptr);
  EXPECT_EQ(device_->behind_bar(bar - 4096, 4096), nullptr);

  for (const auto& [request, why] : std::initializer_list<std::pair<Alloc, Syndrome>>{
           {memic(bar - 4096, 4096, 64), Syndrome::memic_range},
           {memic(bar + kMemicBarBytes - 4096, 8192, 64), Syndrome::memic_range},
           {memic(bar, 4096, 0), Syndrome::memic_size},
           {memic(bar, 4096, 65), Syndrome::memic_size},
           {memic(bar, 4096, 8192), Syndrome::memic_size},
           {memic(bar, 4096, 64, 7), Syndrome::memic_alignment}}) {
    auto r = request;
    EXPECT_NE(r.run(*device_), Status::ok);
    EXPECT_EQ(r.syndrome(), why);
  }
  const auto operation = [&](unsigned op_mod, unsigned op, std::uint64_t address) {
    Request<prm::ModifyMemicIn, prm::ModifyMemicOut> r(Opcode::modify_memic);
    r.in.set<prm::ModifyMemicIn::op_mod>(op_mod).set<prm::ModifyMemicIn::memic_operation_type>(op);
    r.in.set<prm::ModifyMemicIn::memic_start_addr>(address);
    return std::pair{r.run(*device_), r.syndrome()};
  };
  EXPECT_EQ(operation(2, 0, bar).second, Syndrome::memic_op_mod);
  EXPECT_EQ(operation(0, 2, bar).second, Syndrome::memic_operation);
  EXPECT_EQ(operation(0, 0, bar + 64).second, Syndrome::memic_missing);
  EXPECT_EQ(operation(1, 0, bar).second, Syndrome::memic_operation_state);
  EXPECT_EQ(operation(0, 0, bar).first, Status::ok);
  EXPECT_EQ(operation(0, 0, bar).second, Syndrome::memic_operation_state);
  Request<prm::DeallocMemicIn, prm::DeallocMemicOut> free(Opcode::dealloc_memic);
  free.in.set<prm::DeallocMemicIn::memic_start_addr>(bar).set<prm::DeallocMemicIn::memic_size>(4096);
  EXPECT_EQ(free.run(*device_), Status::bad_res_state);
  EXPECT_EQ(operation(1, 0, bar).first, Status::ok);
  free.in.set<prm::DeallocMemicIn::memic_start_addr>(bar).set<prm::DeallocMemicIn::memic_size>(64);
  EXPECT_EQ(free.run(*device_), Status::bad_resource);
  free.in.set<prm::DeallocMemicIn::memic_size>(4096);
  EXPECT_EQ(free.run(*device_), Status::ok);
  EXPECT_EQ(free.run(*device_), Status::bad_resource);
  EXPECT_EQ(free.syndrome(), Syndrome::memic_missing);
  // A key over memory that is not allocated.
  Request<prm::CreateMkeyIn, prm::CreateMkeyOut> key(Opcode::create_mkey);
  const auto mkc = key.in.sub<prm::CreateMkeyIn::memory_key_mkey_entry>();
  prm::set_mkey_access_mode(mkc, prm::MkeyAccessMode::memic);
  mkc.set<prm::Mkc::pd>(pd_).set<prm::Mkc::qpn>(0xffffff).set<prm::Mkc::start_addr>(bar).set<prm::Mkc::len>(64);
  EXPECT_EQ(key.run(*device_), Status::bad_resource);
  EXPECT_EQ(key.syndrome(), Syndrome::mkey_memic);
  mkc.set<prm::Mkc::start_addr>(bar + 4096 + 64).set<prm::Mkc::len>(64);
  EXPECT_EQ(key.run(*device_), Status::ok) << reason(key.syndrome());
  free.in.set<prm::DeallocMemicIn::memic_start_addr>(bar + 4096);
  EXPECT_EQ(free.run(*device_), Status::bad_res_state);
  EXPECT_EQ(free.syndrome(), Syndrome::memic_busy);
}

}  // namespace
}  // namespace verbena::device::command
