// Every command, every field of its layout, at the edges of what the field can say, and every reserved bit: an answer
// that can be explained, and a device that works on.
#include <map>

#include "tests/unit/device/command_fixture.h"
#include "tests/unit/device/field_list.h"

namespace verbena::device {
namespace {

class FieldTest : public CommandTest {
 protected:
  using Bytes = std::vector<std::byte>;

  void renew() {
    TearDown();
    SetUp();
    numbers_.clear();
    const auto number = [&](const Command& c) {
      std::byte out[0x20]{};
      device_->execute(c.in, out);
      EXPECT_EQ(prm::load_be32(out), 0u) << c.entry->name;
      return prm::load_be32(out + 8) & 0xffffff;
    };
    numbers_ = {{"pd", pd_}, {"uar", uar_}, {"eq_number", eqn_}, {"cqn", cqn_}};
    numbers_["qpn"] = number(Command(qp_request()));
    numbers_["srqn"] = numbers_["srq_number"] = number(Command(srq_request()));
    numbers_["mkey_index"] = number(Command(mkey_request(prm::MkeyAccessMode::pa)));
    numbers_["counter_set_id"] = number(Command(Opcode::alloc_q_counter)) & 0xff;
    numbers_["transport_domain"] = number(Command(Opcode::alloc_transport_domain));
    numbers_["umem_id"] = number(Command(Opcode::create_umem).set("num_of_mtt", 1).tail64(0, memory() | 3));
  }

  // A request that would succeed, or nearly: the fields that name objects do.
  Command good(Opcode opcode) {
    switch (opcode) {
      case Opcode::create_eq:
        return Command(eq_request());
      case Opcode::create_cq:
        return Command(cq_request());
      case Opcode::create_srq:
        return Command(srq_request());
      case Opcode::create_qp:
        return Command(qp_request());
      case Opcode::create_mkey:
        return Command(mkey_request(prm::MkeyAccessMode::pa));
      case Opcode::create_umem:
        return Command(opcode).set("num_of_mtt", 1).tail64(0, memory() | 3);
      default:
        break;
    }
    Command c(opcode);
    c.in.resize(c.entry->in_size + c.entry->tail * 4);
    for (const FieldInfo& f : fields_of(*c.entry))
      if (const auto it = numbers_.find(f.path); it != numbers_.end()) f.set(c.in, it->second);
    if (c.entry->in_size == prm::Rst2initQpIn::size) try {
        c.set("primary_address_path.vhca_port_num", 1).set("mtu", 3);
      } catch (const std::runtime_error&) {  // not a transition
      }
    return c;
  }

  // Returns the syndrome.
  std::uint32_t issue(const Command& c, const Bytes& in) {
    Bytes out(c.entry->out_size + 0x100, std::byte{0xee});
    device_->execute(in, out);
    const prm::ConstView<prm::CommandOut> head(out.data());
    const Status status = head.get<prm::CommandOut::status>();
    const std::uint32_t syndrome = head.get<prm::CommandOut::syndrome>();
    const auto refusal = find_refusal(syndrome);
    if (status == Status::ok)
      EXPECT_EQ(syndrome, 0u);
    else if (!refusal || refusal->status != status)
      ADD_FAILURE() << "status " << static_cast<unsigned>(status) << " syndrome " << std::hex << syndrome;
    return syndrome;
  }
  void works() {
    if (Request<prm::AllocPdIn, prm::AllocPdOut> alloc(Opcode::alloc_pd); alloc.run(*device_) != Status::ok) {
      // The HCA was torn down, which is what it was told.
      const Command init(Opcode::init_hca);
      EXPECT_EQ(issue(init, init.in), 0u);
      return;
    } else {
      Request<prm::DeallocPdIn, prm::DeallocPdOut> free(Opcode::dealloc_pd);
      free.in.set<prm::DeallocPdIn::pd>(alloc.out.get<prm::AllocPdOut::pd>());
      EXPECT_EQ(free.run(*device_), Status::ok);
    }
  }

  std::vector<std::uint64_t> values(const FieldInfo& f) const {
    const std::uint64_t top = f.max();
    std::vector<std::uint64_t> v{0, 1, 2, top, top - 1, top >> 1, (top >> 1) + 1};
    if (f.width >= 32) v.insert(v.end(), {0x7fffffff, 0x80000000, 0xfff, 0x1000});
    if (f.width >= 64) v.insert(v.end(), {memory(), memory() + 1, memory() + kMemory - 1, 1ull << 47, (1ull << 47) - 1});
    return v;
  }

  std::map<std::string, std::uint32_t> numbers_;
};

TEST_F(FieldTest, EdgesOfEveryField) {
  unsigned cases = 0, refused = 0;
  for (const auto& entry : command::registry().entries()) {
    SCOPED_TRACE(std::string(entry.name));
    renew();
    for (const FieldInfo& f : fields_of(entry)) {
      if (f.path == "opcode") continue;
      SCOPED_TRACE(f.path);
      for (const std::uint64_t value : values(f))
        for (const bool empty : {false, true}) {
          const Command c = empty ? Command(entry.opcode) : good(entry.opcode);
          Bytes in = c.in;
          f.set(in, value);
          ++cases;
          refused += issue(c, in) != 0;
        }
    }
    works();
  }
  RecordProperty("cases", static_cast<int>(cases));
  EXPECT_GT(refused, cases / 4);
}

// Reserved bits are refused, with the place where they are.
TEST_F(FieldTest, EveryReservedBit) {
  for (const auto& entry : command::registry().entries()) {
    SCOPED_TRACE(std::string(entry.name));
    renew();
    std::vector<std::uint32_t> covered(entry.in_size / 4);
    for (const FieldInfo& f : fields_of(entry))
      for (unsigned bit = 0; bit < f.width; ++bit) {
        // Above 32 bits the first dword is the high one.
        const bool wide = f.width > 32;
        covered[f.offset / 4 + (wide ? bit / 32 : 0)] |= 1u << (wide ? bit % 32 : f.lsb + bit);
      }
    const Command c = good(entry.opcode);
    for (unsigned dword = 1; dword < covered.size(); ++dword)
      for (unsigned bit = 0; bit < 32; ++bit) {
        if (covered[dword] >> bit & 1) continue;
        Bytes in = c.in;
        prm::store_be32(in.data() + dword * 4, prm::load_be32(in.data() + dword * 4) | 1u << bit);
        EXPECT_EQ(issue(c, in), command::rule_syndrome(static_cast<std::uint16_t>(entry.opcode), dword * 4)) << bit;
      }
    works();
  }
}

TEST_F(FieldTest, EveryLengthOfAGoodRequest) {
  for (const auto& entry : command::registry().entries()) {
    SCOPED_TRACE(std::string(entry.name));
    renew();
    const Command c = good(entry.opcode);
    const auto short_of = static_cast<std::uint32_t>(Syndrome::input_length);
    for (std::size_t n = 0; n < entry.in_size; ++n) EXPECT_EQ(issue(c, {c.in.begin(), c.in.begin() + static_cast<long>(n)}), short_of);
    // Longer, by bytes that are no whole element, and by a megabyte of elements.
    for (std::size_t more : {std::size_t{1}, std::size_t{3}, std::size_t{4}, std::size_t{0x1000}, std::size_t{1} << 20}) {
      Bytes in = c.in;
      in.resize(entry.in_size + more);
      const std::uint32_t got = issue(c, in);
      if (entry.tail == 0 || more % entry.tail != 0) {
        EXPECT_EQ(got, short_of) << more;
      }
    }
    works();
  }
}

}  // namespace
}  // namespace verbena::device
