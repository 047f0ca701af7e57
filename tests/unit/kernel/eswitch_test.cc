// What the kernel's role tells of a port in each mode of the e-switch, against what the device itself says.
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include "kernel/command.h"
#include "prm/caps.h"
#include "prm/port.h"
#include "tests/unit/kernel/node_fixture.h"

namespace verbena::kernel {
namespace {

class EswitchTest : public NodeTest {
 protected:
  int ask(std::uint32_t port, mlx5_ib_uapi_query_port* info) {
    Bundle bundle(UVERBS_OBJECT_DEVICE, MLX5_IB_METHOD_QUERY_PORT);
    bundle.in_u32(MLX5_IB_ATTR_QUERY_PORT_PORT_NUM, port);
    bundle.out_struct(MLX5_IB_ATTR_QUERY_PORT, *info);
    return run(bundle);
  }
  prm::Box<prm::QueryEswVportContextOut> context(std::uint32_t vport, int error = 0) {
    Command<prm::QueryEswVportContextIn, prm::QueryEswVportContextOut> query(prm::Opcode::query_esw_vport_context);
    query.in().set<prm::QueryEswVportContextIn::other_vport>(1).set<prm::QueryEswVportContextIn::vport_number>(vport);
    EXPECT_EQ(query.run(node_->device()), error);
    prm::Box<prm::QueryEswVportContextOut> out;
    std::memcpy(out.data(), query.out().data(), out.size());
    return out;
  }
  void switchdev() {
    mlx5_ib_uapi_query_port info{};
    ASSERT_EQ(ask(1, &info), 0);
    EXPECT_EQ(info.flags, 0x3fu) << "everything there is to tell";
    EXPECT_EQ(info.vport, 0);
    EXPECT_EQ(info.vport_vhca_id, node_->caps().vhca_id);
    EXPECT_EQ(info.esw_owner_vhca_id, node_->caps().vhca_id);
    auto out = context(0);
    const auto own = out.sub<prm::QueryEswVportContextOut::esw_vport_context>();
    EXPECT_EQ(info.vport_steering_icm_rx, own.get<prm::EswVportContext::sw_steering_vport_icm_address_rx>());
    EXPECT_EQ(info.vport_steering_icm_tx, own.get<prm::EswVportContext::sw_steering_vport_icm_address_tx>());
    EXPECT_NE(info.vport_steering_icm_rx, info.vport_steering_icm_tx);
    // <linux/mlx5/eswitch.h>: function, vport (1 is the uplink, so the first has 2), and 16 bits for the user's data.
    EXPECT_EQ(info.reg_c0.value, index_ << 28 | 2u << 16);
    EXPECT_EQ(info.reg_c0.mask, 0xffff0000u);
  }
};

class SecondDeviceTest : public EswitchTest {
 protected:
  void SetUp() override {
    profile_.lag = false;
    index_ = 1;
    EswitchTest::SetUp();
  }
};

class LegacyTest : public EswitchTest {
 protected:
  void SetUp() override {
    profile_.eswitch = device::EswitchMode::legacy;
    EswitchTest::SetUp();
  }
};

TEST_F(EswitchTest, SwitchdevTellsEverything) { switchdev(); }
TEST_F(SecondDeviceTest, SwitchdevTellsEverything) { switchdev(); }

TEST_F(LegacyTest, TellsNothing) {
  mlx5_ib_uapi_query_port info;
  std::memset(&info, 0xff, sizeof info);
  ASSERT_EQ(ask(1, &info), 0);
  const mlx5_ib_uapi_query_port nothing{};
  EXPECT_EQ(std::memcmp(&info, &nothing, sizeof info), 0);
  for (const std::uint32_t port : {0u, 2u, 257u, ~0u}) EXPECT_EQ(ask(port, &info), EINVAL);
  // The mode is the driver's: the device has its switch all the same.
  EXPECT_NE(context(0).sub<prm::QueryEswVportContextOut::esw_vport_context>()
                .get<prm::EswVportContext::sw_steering_vport_icm_address_rx>(),
            0u);
}

TEST_F(EswitchTest, ExactErrors) {
  mlx5_ib_uapi_query_port info{};
  for (const std::uint32_t port : {0u, 2u, 257u, ~0u}) EXPECT_EQ(ask(port, &info), EINVAL);
  for (const std::uint32_t vport : {1u, 0xfffeu, 0xffffu}) context(vport, EINVAL);
  Bundle no_port(UVERBS_OBJECT_DEVICE, MLX5_IB_METHOD_QUERY_PORT);
  no_port.out_struct(MLX5_IB_ATTR_QUERY_PORT, info);
  EXPECT_EQ(run(no_port), EINVAL);
  // Of a program that knows less (up to reg_c0, at least) or more: what fits, and zeros.
  std::uint8_t grown[sizeof info + 8];
  std::memset(grown, 0xff, sizeof grown);
  Bundle later(UVERBS_OBJECT_DEVICE, MLX5_IB_METHOD_QUERY_PORT);
  later.in_u32(MLX5_IB_ATTR_QUERY_PORT_PORT_NUM, 1);
  later.out(MLX5_IB_ATTR_QUERY_PORT, grown, sizeof grown);
  ASSERT_EQ(run(later), 0);
  ASSERT_EQ(ask(1, &info), 0);
  EXPECT_EQ(std::memcmp(grown, &info, sizeof info), 0);
  EXPECT_TRUE(std::all_of(grown + sizeof info, grown + sizeof grown, [](auto byte) { return byte == 0; }));
  Bundle earlier(UVERBS_OBJECT_DEVICE, MLX5_IB_METHOD_QUERY_PORT);
  earlier.in_u32(MLX5_IB_ATTR_QUERY_PORT_PORT_NUM, 1);
  earlier.out(MLX5_IB_ATTR_QUERY_PORT, &info, 16);
  EXPECT_EQ(run(earlier), EINVAL);
}

}  // namespace
}  // namespace verbena::kernel
