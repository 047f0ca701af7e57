// A device of its own for each test, and short ways to issue commands.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "device/command/refusals.h"
#include "device/device.h"
#include "device/profile.h"
#include "device/refusals.h"
#include "device/shared/contexts.h"
#include "prm/cq.h"
#include "prm/eq.h"
#include "prm/layout.h"
#include "prm/misc.h"
#include "prm/mkey.h"
#include "prm/qp.h"
#include "prm/srq.h"

namespace verbena::device {

using command::Syndrome;
using prm::Opcode;
using prm::Status;

// One command with room for a tail of Tail bytes.
template <class In, class Out, std::size_t Tail = 0>
struct Request {
  explicit Request(Opcode opcode, std::uint16_t uid = 0) {
    in.view().template set<typename In::opcode>(opcode);
    prm::View<prm::CommandIn>(in.data()).template set<prm::CommandIn::uid>(uid);
  }
  Status run(Device& device, std::size_t tail = Tail) {
    device.execute(in.span().first(In::size + tail), out.span());
    return out.template get<typename Out::status>();
  }
  Syndrome syndrome() const { return static_cast<Syndrome>(out.template get<typename Out::syndrome>()); }
  prm::Box<In, Tail> in;
  prm::Box<Out> out;
};

class CommandTest : public testing::Test {
 protected:
  void SetUp() override {
    char dir[] = "/dev/shm/verbena-test-XXXXXX";
    ASSERT_NE(mkdtemp(dir), nullptr);
    dir_ = dir;
    setenv("VERBENA_RUN_DIR", dir, 1);
    auto attached = Device::attach(profile_, "test", 0);
    ASSERT_TRUE(attached) << attached.error().reason;
    device_ = std::move(*attached);
    memory_ = static_cast<std::byte*>(device_->alloc_dma(kMemory));
    ASSERT_NE(memory_, nullptr);
    pd_ = make_pd();
    uar_ = make_uar();
    eqn_ = make_eq();
    cqn_ = make_cq();
  }
  void TearDown() override {
    device_.reset();
    std::filesystem::remove_all(dir_);
  }

  std::uint64_t memory(std::size_t offset = 0) const { return reinterpret_cast<std::uint64_t>(memory_ + offset); }
  static std::uint64_t doorbell(const std::byte* memory, unsigned i) {
    return reinterpret_cast<std::uint64_t>(memory + kMemory - 4096 + 64 * i);
  }

  std::uint32_t make_pd(std::uint16_t uid = 0) {
    Request<prm::AllocPdIn, prm::AllocPdOut> r(Opcode::alloc_pd, uid);
    EXPECT_EQ(r.run(*device_), Status::ok);
    return r.out.get<prm::AllocPdOut::pd>();
  }
  std::uint32_t make_uar() {
    Request<prm::AllocUarIn, prm::AllocUarOut> r(Opcode::alloc_uar);
    EXPECT_EQ(r.run(*device_), Status::ok);
    return r.out.get<prm::AllocUarOut::uar>();
  }

  using CreateEq = Request<prm::CreateEqIn, prm::CreateEqOut, 8>;
  CreateEq eq_request() {
    CreateEq r(Opcode::create_eq);
    const auto eqc = r.in.sub<prm::CreateEqIn::eq_context_entry>();
    eqc.set<prm::Eqc::log_eq_size>(5).set<prm::Eqc::uar_page>(uar_);
    prm::store_be64(r.in.data() + prm::CreateEqIn::size, memory());
    return r;
  }
  std::uint32_t make_eq() {
    auto r = eq_request();
    EXPECT_EQ(r.run(*device_), Status::ok);
    return r.out.get<prm::CreateEqOut::eq_number>();
  }

  using CreateCq = Request<prm::CreateCqIn, prm::CreateCqOut, 8>;
  CreateCq cq_request() {
    CreateCq r(Opcode::create_cq);
    const auto cqc = r.in.sub<prm::CreateCqIn::cq_context>();
    cqc.set<prm::Cqc::log_cq_size>(5).set<prm::Cqc::uar_page>(uar_).set<prm::Cqc::c_eqn_or_apu_element>(eqn_);
    cqc.set<prm::Cqc::dbr_addr>(doorbell(memory_, 0));
    prm::store_be64(r.in.data() + prm::CreateCqIn::size, memory(0x1000));
    return r;
  }
  std::uint32_t make_cq() {
    auto r = cq_request();
    EXPECT_EQ(r.run(*device_), Status::ok) << reason(r.syndrome());
    return r.out.get<prm::CreateCqOut::cqn>();
  }

  using CreateQp = Request<prm::CreateQpIn, prm::CreateQpOut, 16>;
  CreateQp qp_request(prm::QpServiceType type = prm::QpServiceType::rc) {
    CreateQp r(Opcode::create_qp);
    const auto qpc = r.in.sub<prm::CreateQpIn::qpc>();
    qpc.set<prm::Qpc::st>(type).set<prm::Qpc::pd>(pd_).set<prm::Qpc::uar_page>(uar_);
    qpc.set<prm::Qpc::pm_state>(prm::PathMigrationState::migrated);
    qpc.set<prm::Qpc::cqn_snd>(cqn_).set<prm::Qpc::cqn_rcv>(cqn_);
    qpc.set<prm::Qpc::log_rq_size>(5).set<prm::Qpc::log_rq_stride>(1).set<prm::Qpc::log_sq_size>(5);
    qpc.set<prm::Qpc::user_index>(0x1234).set<prm::Qpc::dbr_addr>(doorbell(memory_, 1));
    prm::store_be64(r.in.data() + prm::CreateQpIn::size, memory(0x2000));
    prm::store_be64(r.in.data() + prm::CreateQpIn::size + 8, memory(0x3000));
    return r;
  }
  std::uint32_t make_qp(prm::QpServiceType type = prm::QpServiceType::rc) {
    auto r = qp_request(type);
    EXPECT_EQ(r.run(*device_), Status::ok) << reason(r.syndrome());
    return r.out.get<prm::CreateQpOut::qpn>();
  }

  using CreateSrq = Request<prm::CreateSrqIn, prm::CreateSrqOut, 8>;
  CreateSrq srq_request() {
    CreateSrq r(Opcode::create_srq);
    const auto srqc = r.in.sub<prm::CreateSrqIn::srq_context_entry>();
    srqc.set<prm::Srqc::log_srq_size>(5).set<prm::Srqc::log_rq_stride>(1).set<prm::Srqc::pd>(pd_);
    srqc.set<prm::Srqc::dbr_addr>(doorbell(memory_, 2));
    prm::store_be64(r.in.data() + prm::CreateSrqIn::size, memory(0x4000));
    return r;
  }

  using CreateMkey = Request<prm::CreateMkeyIn, prm::CreateMkeyOut, 64>;
  CreateMkey mkey_request(prm::MkeyAccessMode mode) {
    CreateMkey r(Opcode::create_mkey);
    const auto mkc = r.in.sub<prm::CreateMkeyIn::memory_key_mkey_entry>();
    prm::set_mkey_access_mode(mkc, mode);
    mkc.set<prm::Mkc::pd>(pd_).set<prm::Mkc::qpn>(0xffffff).set<prm::Mkc::mkey_7_0>(0x5a).set<prm::Mkc::lr>(1);
    mkc.set<prm::Mkc::start_addr>(memory()).set<prm::Mkc::len>(0x2000);
    return r;
  }

  // Any transition that carries a context: fields are set by `fill`.
  template <class Fill>
  Status transit(Opcode opcode, std::uint32_t qpn, std::uint32_t mask, Fill fill) {
    Request<prm::Rst2initQpIn, prm::Rst2initQpOut> r(opcode);
    r.in.set<prm::Rst2initQpIn::qpn>(qpn).set<prm::Rst2initQpIn::opt_param_mask>(mask);
    const auto qpc = r.in.sub<prm::Rst2initQpIn::qpc>();
    qpc.sub<prm::Qpc::primary_address_path>().set<prm::Ads::vhca_port_num>(1);
    qpc.set<prm::Qpc::mtu>(prm::QpMtu::mtu_1k).set<prm::Qpc::log_msg_max>(30);
    fill(qpc);
    const Status status = r.run(*device_);
    syndrome_ = r.syndrome();
    return status;
  }
  Status transit(Opcode opcode, std::uint32_t qpn) {
    if (opcode == Opcode::qp_2err || opcode == Opcode::qp_2rst) {
      Request<prm::Qp2errIn, prm::Qp2errOut> r(opcode);
      r.in.set<prm::Qp2errIn::qpn>(qpn);
      const Status status = r.run(*device_);
      syndrome_ = r.syndrome();
      return status;
    }
    return transit(opcode, qpn, 0, [](auto) {});
  }

  prm::Box<prm::QueryQpOut> query_qp(std::uint32_t qpn) {
    Request<prm::QueryQpIn, prm::QueryQpOut> r(Opcode::query_qp);
    r.in.set<prm::QueryQpIn::qpn>(qpn);
    EXPECT_EQ(r.run(*device_), Status::ok);
    return r.out;
  }
  prm::QpState qp_state(std::uint32_t qpn) { return query_qp(qpn).sub<prm::QueryQpOut::qpc>().get<prm::Qpc::state>(); }

  // The live context, as the data path has it.
  QpContext& live_qp(std::uint32_t qpn) { return *static_cast<QpContext*>(device_->sq_token(qpn)); }
  CqContext& live_cq(std::uint32_t cqn) { return *static_cast<CqContext*>(device_->cq_token(cqn)); }

  static std::string reason(Syndrome syndrome) {
    const auto refusal = find_refusal(static_cast<std::uint32_t>(syndrome));
    return refusal ? refusal->reason : "no such syndrome";
  }

  static constexpr std::size_t kMemory = 0x10000;
  Profile profile_ = default_profile();
  std::string dir_;
  std::unique_ptr<Device> device_;
  std::byte* memory_ = nullptr;
  std::uint32_t pd_ = 0, uar_ = 0, eqn_ = 0, cqn_ = 0;
  Syndrome syndrome_{};
};

}  // namespace verbena::device
