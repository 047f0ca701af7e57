// Every command with mailboxes of every wrong length and with every bit set: a clean status with a syndrome that can be
// explained, never a crash.
#include "device/command/dispatcher.h"
#include "tests/unit/device/command_fixture.h"

namespace verbena::device {
namespace {

class RobustCommandTest : public CommandTest {
 protected:
  // Issues the bytes and checks that the answer is one we can explain. Returns the syndrome.
  std::uint32_t issue(std::span<const std::byte> in, std::size_t out_size) {
    std::vector<std::byte> out(out_size, std::byte{0xee});
    device_->execute(in, out);
    if (out_size < 8) return 0;
    const prm::ConstView<prm::CommandOut> head(out.data());
    const Status status = head.get<prm::CommandOut::status>();
    const std::uint32_t syndrome = head.get<prm::CommandOut::syndrome>();
    if (status == Status::ok) {
      EXPECT_EQ(syndrome, 0u);
    } else {
      const auto refusal = find_refusal(syndrome);
      EXPECT_TRUE(refusal) << "unexplained syndrome " << std::hex << syndrome;
      if (refusal) {
        EXPECT_EQ(refusal->status, status) << refusal->reason;
      }
    }
    return syndrome;
  }

  // Sets each bit, and each dword as a whole, of a good request.
  void spoil(std::span<const std::byte> good, std::size_t out_size) {
    std::vector<std::byte> in(good.begin(), good.end());
    const auto restore = [&] {
      // Whatever the last request did to the HCA as a whole is undone, so that the next one is looked at.
      Request<prm::NopIn, prm::NopOut> init(Opcode::init_hca);
      std::byte again[0x20]{};
      std::memcpy(again, init.in.data(), 4);
      issue(again, 0x10);
      std::copy(good.begin(), good.end(), in.begin());
    };
    for (std::size_t dword = 4; dword + 4 <= in.size(); dword += 4) {
      const std::uint32_t before = prm::load_be32(in.data() + dword);
      prm::store_be32(in.data() + dword, ~0u);
      issue(in, out_size);
      for (unsigned bit = 0; bit < 32; ++bit) {
        prm::store_be32(in.data() + dword, before ^ 1u << bit);
        issue(in, out_size);
      }
      restore();
    }
  }
};

TEST_F(RobustCommandTest, EveryLength) {
  using command::registry;
  for (const auto& entry : registry().entries()) {
    SCOPED_TRACE(std::string(entry.name));
    std::vector<std::byte> in(entry.in_size + 64);
    prm::View<prm::CommandIn>(in.data()).set<prm::CommandIn::opcode>(entry.opcode);
    const auto input = static_cast<std::uint32_t>(Syndrome::input_length);
    for (std::size_t size = 0; size < entry.in_size; size += 4)
      EXPECT_EQ(issue(std::span(in).first(size), entry.out_size), input) << size;
    for (std::size_t size = 1; size < 4; ++size) issue(std::span(in).first(entry.in_size - size), entry.out_size);
    if (entry.tail == 0) {
      EXPECT_EQ(issue(std::span(in).first(entry.in_size + 4), entry.out_size), input);
    }
    for (std::size_t size = 0; size < entry.out_size; size += 4) {
      const auto syndrome = issue(std::span(in).first(entry.in_size), size);
      if (size >= 8) {
        EXPECT_EQ(syndrome, static_cast<std::uint32_t>(Syndrome::output_length)) << size;
      }
    }
  }
}

TEST_F(RobustCommandTest, EveryBitOfAnEmptyRequest) {
  for (const auto& entry : command::registry().entries()) {
    SCOPED_TRACE(std::string(entry.name));
    std::vector<std::byte> in(entry.in_size + (entry.tail ? entry.tail : 0));
    prm::View<prm::CommandIn>(in.data()).set<prm::CommandIn::opcode>(entry.opcode);
    spoil(in, entry.out_size);
  }
}

TEST_F(RobustCommandTest, EveryBitOfAGoodRequest) {
  const auto spoil_request = [&](auto request) {
    ASSERT_EQ(request.run(*device_), Status::ok) << reason(request.syndrome());
    spoil(request.in.span(), request.out.size());
  };
  spoil_request(eq_request());
  spoil_request(cq_request());
  spoil_request(srq_request());
  spoil_request(qp_request());
  spoil_request(mkey_request(prm::MkeyAccessMode::pa));
  auto klm = mkey_request(prm::MkeyAccessMode::klms);
  klm.in.set<prm::CreateMkeyIn::translations_octword_actual_size>(4);
  klm.in.sub<prm::CreateMkeyIn::memory_key_mkey_entry>().set<prm::Mkc::translations_octword_size>(4);
  spoil_request(klm);
}

TEST_F(RobustCommandTest, UnknownOpcodes) {
  for (unsigned opcode : {0u, 0x1u, 0x1ffu, 0x2ffu, 0xfffu, 0x1000u, 0xffffu}) {
    std::byte in[0x10]{};
    prm::store_be32(in, opcode << 16);
    EXPECT_EQ(issue(in, 0x10), static_cast<std::uint32_t>(Syndrome::unknown_opcode)) << opcode;
  }
  // Commands of later features are known, refused, and not advertised.
  for (const Opcode opcode : {Opcode::create_dct, Opcode::mad_ifc}) {
    std::byte in[0x10]{};
    prm::store_be32(in, static_cast<std::uint32_t>(opcode) << 16);
    EXPECT_EQ(issue(in, 0x10), static_cast<std::uint32_t>(Syndrome::not_supported));
  }
}

TEST_F(RobustCommandTest, RefusalsAreExplained) {
  std::uint32_t last = 0;
  for (const auto& row : refusal_table()) {
    EXPECT_GT(row.syndrome, last);
    last = row.syndrome;
    const auto found = find_refusal(row.syndrome);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->reason, row.reason);
    EXPECT_NE(row.status, Status::ok);
  }
  EXPECT_FALSE(find_refusal(0));
  EXPECT_FALSE(find_refusal(0x7fffffff));
  EXPECT_FALSE(find_refusal(0xffffffff));
  const auto rule = find_refusal(command::rule_syndrome(0x500, 0x1c));
  ASSERT_TRUE(rule);
  EXPECT_NE(rule->reason.find("CREATE_QP"), std::string::npos) << rule->reason;
}

}  // namespace
}  // namespace verbena::device
