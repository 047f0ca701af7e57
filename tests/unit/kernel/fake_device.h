// A device that grants every command: hands out numbers, remembers mailboxes, refuses on request.
#pragma once

#include <cstdlib>
#include <map>
#include <vector>

#include "device/device.h"
#include "kernel/node.h"
#include "prm/caps.h"
#include "prm/command.h"
#include "prm/general_object.h"
#include "prm/port.h"

namespace verbena::kernel {

class FakeDevice : public device::Device {
 public:
  struct Log {
    std::vector<std::pair<prm::Opcode, std::vector<std::byte>>> commands;
    std::map<prm::Opcode, prm::Status> refuse;
    unsigned log_max_uctx = 4;
    unsigned count(prm::Opcode opcode) const {
      unsigned n = 0;
      for (const auto& c : commands) n += c.first == opcode;
      return n;
    }
    const std::vector<std::byte>& last(prm::Opcode opcode) const {
      for (auto it = commands.rbegin(); it != commands.rend(); ++it)
        if (it->first == opcode) return it->second;
      static const std::vector<std::byte> none(4096);
      return none;
    }
  };
  explicit FakeDevice(Log& log) : log_(log) {}

  void execute(std::span<const std::byte> in, std::span<std::byte> out) override {
    const auto opcode = prm::ConstView<prm::CommandIn>(in.data()).get<prm::CommandIn::opcode>();
    log_.commands.emplace_back(opcode, std::vector<std::byte>(in.begin(), in.end()));
    prm::View<prm::CommandOut> head(out.data());
    if (auto it = log_.refuse.find(opcode); it != log_.refuse.end()) {
      head.set<prm::CommandOut::status>(it->second);
      return;
    }
    if (opcode == prm::Opcode::query_hca_cap) return capabilities(in, out);
    if (opcode == prm::Opcode::query_roce_address) return address(in, out);
    if (opcode == prm::Opcode::query_vport_state) {
      prm::View<prm::QueryVportStateOut>(out.data()).set<prm::QueryVportStateOut::state>(prm::VportState::up);
      return;
    }
    if (out.size() == prm::CommandOut::size) prm::store_be32(out.data() + 8, next_++);  // a number of something
  }
  int update_mkey(std::uint32_t, std::span<const std::byte, 64>, bool) override { return 0; }
  void set_interrupt_handler(std::function<void(unsigned)>) override {}
  void eq_doorbell(std::uint32_t, std::uint32_t, bool) override {}
  void* alloc_dma(std::size_t length) override { return std::aligned_alloc(4096, length); }
  void free_dma(void* addr, std::size_t) override { std::free(addr); }
  void* sq_token(std::uint32_t) override { return nullptr; }
  void* cq_token(std::uint32_t) override { return nullptr; }
  void ring_sq(void*) override {}
  void arm_cq(void*) override {}
  const std::uint32_t* pending() override { return &zero_; }
  void step() override {}
  void abandon_in_child() override {}

 private:
  void capabilities(std::span<const std::byte> in, std::span<std::byte> out) {
    auto pages = prm::View<prm::QueryHcaCapOut>(out.data()).sub<prm::QueryHcaCapOut::capability>();
    const auto type = prm::ConstView<prm::QueryHcaCapIn>(in.data()).get<prm::QueryHcaCapIn::op_mod>() >> 1;
    if (type == static_cast<unsigned>(prm::CapType::roce)) {
      pages.sub<prm::HcaCapUnion::roce_cap>().set<prm::RoceCap::roce_address_table_size>(16);
      return;
    }
    if (type == static_cast<unsigned>(prm::CapType::qos)) {
      using C = prm::QosCap;
      pages.sub<prm::HcaCapUnion::qos_cap>().set<C::packet_pacing>(1).set<C::packet_pacing_uid>(1).set<C::packet_pacing_rate_table_size>(8);
      return;
    }
    if (type == static_cast<unsigned>(prm::CapType::vdpa_emulation)) {
      using C = prm::VirtioEmulationCap;
      pages.sub<prm::HcaCapUnion::virtio_emulation_cap>().set<C::log_doorbell_stride>(12).set<C::log_doorbell_bar_size>(16);
      return;
    }
    auto cap = pages.sub<prm::HcaCapUnion::cmd_hca_cap>();
    using C = prm::CmdHcaCap;
    cap.set<C::log_max_qp>(17).set<C::log_max_qp_sz>(15).set<C::log_max_cq>(17).set<C::log_max_cq_sz>(22);
    cap.set<C::log_max_srq>(16).set<C::log_max_srq_sz>(15).set<C::log_max_mkey>(20).set<C::log_max_pd>(23);
    cap.set<C::log_max_msg>(30).set<C::log_max_ra_req_qp>(4).set<C::log_max_ra_res_qp>(4);
    cap.set<C::max_wqe_sz_sq>(1024).set<C::max_wqe_sz_rq>(512).set<C::cqe_version>(1).set<C::imaicl>(1);
    cap.set<C::cqe_compression>(1).set<C::qos>(1);
    cap.set<C::general_obj_types>(1ull << static_cast<unsigned>(prm::GeneralObjectType::virtio_net_q));
    cap.set<C::log_max_uctx>(log_.log_max_uctx).set<C::log_bf_reg_size>(9).set<C::device_frequency_khz>(1000000);
  }
  // Entries 0 and 1: a link-local address as RoCE v1 and v2. The rest is empty.
  void address(std::span<const std::byte> in, std::span<std::byte> out) {
    const auto index =
        prm::ConstView<prm::QueryRoceAddressIn>(in.data()).get<prm::QueryRoceAddressIn::roce_address_index>();
    if (index > 1) return;
    auto entry = prm::View<prm::QueryRoceAddressOut>(out.data()).sub<prm::QueryRoceAddressOut::roce_address>();
    auto raw = entry.bytes<prm::RoceAddrLayout::source_l3_address>();
    raw[0] = std::byte{0xfe};
    raw[1] = std::byte{0x80};
    raw[15] = std::byte{1};
    entry.set<prm::RoceAddrLayout::roce_version>(index ? prm::RoceVersion::v2 : prm::RoceVersion::v1);
  }

  Log& log_;
  std::uint32_t next_ = 0x100;
  std::uint32_t zero_ = 0;
};

}  // namespace verbena::kernel
