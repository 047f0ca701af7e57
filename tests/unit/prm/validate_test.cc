// The validator and the printer.
#include "prm/validate.h"

#include <gtest/gtest.h>

#include "prm/caps.h"
#include "prm/eqe.h"
#include "prm/print.h"
#include "prm/qp.h"
#include "prm/wire.h"

namespace verbena::prm {
namespace {

struct Inner : Layout<0x8> {
  using small = Field<"small", At{0x00, 7, 0}, std::uint32_t, InRange<0, 9>>;
  using choice = Field<"choice", At{0x04, 31, 24}, std::uint32_t, OneOf<1, 2, 4>>;
  using fields = Fields<small, choice>;
};
struct Outer : Layout<0x20> {
  using head = Field<"head", At{0x00, 31, 16}>;
  using wide = Field64<"wide", 0x4, std::uint64_t, InRange<1, ~0ull>>;
  using pair = Array<"pair", 0xc, Inner, 2>;
  using raw = Bytes<"raw", 0x1c, 3>;
  using fields = Fields<head, wide, pair, raw>;
};
struct Either : Layout<0x8> {
  using inner = Sub<"inner", 0x0, Inner>;
  using whole = Sub<"whole", 0x0, Qword>;
  using fields = Fields<inner, whole>;
};

Box<Outer> good_outer() {
  Box<Outer> box;
  box.set<Outer::wide>(1);
  for (int i : {0, 1}) box.at<Outer::pair>(i).set<Inner::choice>(4);
  return box;
}

TEST(Validate, CleanBytesPass) { EXPECT_FALSE(validate<Outer>(good_outer().span())); }

TEST(Validate, EveryBitOutsideTheFieldsIsReserved) {
  std::size_t reserved = 0;
  for (std::size_t bit = 0; bit < Outer::size * 8; ++bit) {
    Box<Outer> box;
    box.data()[bit / 8] = static_cast<std::byte>(0x80 >> bit % 8);
    const auto v = check_reserved<Outer>(box.span());
    if (!v) continue;
    ++reserved;
    EXPECT_EQ(v->dword, bit / 32 * 4);
    EXPECT_EQ(v->bits, 0x80000000u >> bit % 32);
  }
  // 16 beside head, 24 + 24 in each of two Inner, 8 behind raw.
  EXPECT_EQ(reserved, 16u + 2 * 48 + 8);
}

TEST(Validate, NamesWhatItFinds) {
  auto box = good_outer();
  box.at<Outer::pair>(1).set<Inner::small>(10);
  auto v = validate<Outer>(box.span());
  ASSERT_TRUE(v);
  EXPECT_EQ(v->field, "small");
  EXPECT_EQ(v->dword, 0x14u);
  EXPECT_EQ(v->bits, 0xffu);

  box = good_outer();
  box.at<Outer::pair>(0).set<Inner::choice>(3);
  EXPECT_EQ(validate<Outer>(box.span())->field, "choice");
  box = good_outer();
  box.set<Outer::wide>(0);
  EXPECT_EQ(validate<Outer>(box.span())->field, "wide");
  box = good_outer();
  box.data()[0xc] = std::byte{1};
  EXPECT_EQ(validate<Outer>(box.span())->field, "pair");
  EXPECT_EQ(validate<Outer>(box.span().first(8))->reason, "too short");
}

TEST(Validate, OverlappingMembersCoverTogetherAndTheirRulesAreTheCallers) {
  EXPECT_EQ(kCoveredBits<Either>[0], ~0u);
  Box<Either> box;
  box.sub<Either::inner>().set<Inner::small>(200);
  EXPECT_FALSE(validate<Either>(box.span()));
  EXPECT_TRUE(validate<Inner>(box.span()));
}

TEST(Validate, RealLayouts) {
  Box<CreateQpIn, 64> in;  // the tail is not looked at
  in.set<CreateQpIn::opcode>(Opcode::create_qp);
  in.at<CreateQpIn::pas>(3).set<Pas::address>(~0ull);
  EXPECT_FALSE(validate<CreateQpIn>(in.span()));
  in.data()[0x18 + 0x74] = std::byte{1};
  const auto v = validate<CreateQpIn>(in.span());
  ASSERT_TRUE(v);
  EXPECT_EQ(v->field, "qpc");
  EXPECT_EQ(v->dword, 0x8cu);
  Box<Eth> eth;
  eth.set<Eth::ethertype>(0xffff);
  EXPECT_FALSE(validate<Eth>(eth.span()));
  EXPECT_EQ(kCoveredBits<Eqe>[8], ~0u);  // some event or other uses each bit of its first dword
}

TEST(Print, NamesFieldsAndIndentsSubLayouts) {
  Box<CreateQpIn, 16> in;
  in.set<CreateQpIn::opcode>(Opcode::create_qp);
  in.sub<CreateQpIn::qpc>().set<Qpc::st>(QpServiceType::ud);
  in.sub<CreateQpIn::qpc>().sub<Qpc::primary_address_path>().set<Ads::udp_sport>(7);
  in.at<CreateQpIn::pas>(1).set<Pas::address>(0xabc000);
  EXPECT_EQ(to_text<CreateQpIn>(in.span()),
            "opcode = 0x500\n"
            "qpc:\n"
            "  st = 0x2\n"
            "  primary_address_path:\n"
            "    udp_sport = 0x7\n"
            "pas[1]:\n"
            "  address = 0xabc000\n");
}

TEST(Print, ZerosBytesUnionsAndLongArrays) {
  EXPECT_EQ(to_text<Outer>(Box<Outer>().span()), "");
  const auto all = to_text<Outer>(good_outer().span(), {.zeros = true, .indent = 4});
  EXPECT_EQ(all,
            "    head = 0x0\n"
            "    wide = 0x1\n"
            "    pair[0]:\n"
            "      small = 0x0\n"
            "      choice = 0x4\n"
            "    pair[1]:\n"
            "      small = 0x0\n"
            "      choice = 0x4\n"
            "    raw = 000000\n");
  Box<Either> either;
  either.sub<Either::inner>().set<Inner::choice>(4);
  EXPECT_EQ(to_text<Either>(either.span()), "union = 0000000004000000\n");
  Box<CreateQpIn, 8 * 20> tail;
  EXPECT_EQ(to_text<CreateQpIn>(tail.span()), "... and 4 more\n");
  EXPECT_EQ(to_text<CreateQpIn>(tail.span().first(4)), "");
}

TEST(Layout, SetKeepsNeighboursAndTruncates) {
  Box<Qpc> qpc;
  std::ranges::fill(qpc.span(), std::byte{0xff});
  qpc.set<Qpc::pd>(0x1000000);  // one bit too wide
  EXPECT_EQ(qpc.get<Qpc::pd>(), 0u);
  EXPECT_EQ(qpc.get<Qpc::wq_signature>(), 1u);
  qpc.set<Qpc::dbr_addr>(0x0102030405060708);
  EXPECT_EQ(qpc.data()[Qpc::dbr_addr::offset], std::byte{1});
  EXPECT_EQ(qpc.get<Qpc::dbr_addr>(), 0x0102030405060708u);
  EXPECT_EQ(cap_op_mod(CapType::roce, CapMode::current), 9u);
}

}  // namespace
}  // namespace verbena::prm
