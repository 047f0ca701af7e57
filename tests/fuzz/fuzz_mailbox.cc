// Command mailboxes: several to an input, so that objects are made, moved through their states and destroyed.
//
// Grammar of a command: a well-formed request of some kind, object numbers from what earlier commands gave, then edits
// (whole dwords, bits, addresses, lengths). Whatever comes back must be explainable.
#include <algorithm>
#include <array>

#include "device/command/dispatcher.h"
#include "tests/fuzz/confine.h"
#include "tests/fuzz/input.h"
#include "tests/unit/device/command_fixture.h"

namespace verbena::device {
namespace {

using Bytes = std::vector<std::byte>;

class MailboxFuzz : public CommandTest {
 public:
  void TestBody() override {}
  ~MailboxFuzz() override { TearDown(); }
  MailboxFuzz() { SetUp(); }

  void run(fuzz::Input in) {
    numbers_ = {pd_, uar_, eqn_, cqn_};
    for (unsigned i = 0; i < kCommands && in.more(); ++i) command(in);
    clean();
  }

 private:
  static constexpr unsigned kCommands = 24;
  static constexpr std::size_t kNumberAt = 8;  // where nearly every layout has its object's number

  template <class R>
  static Bytes bytes_of(const R& request) {
    const auto all = request.in.span();
    return {all.begin(), all.end()};
  }

  Bytes good_request(fuzz::Input& in) {
    switch (in.below(10)) {
      case 0:
        return bytes_of(eq_request());
      case 1:
        return bytes_of(cq_request());
      case 2:
        return bytes_of(srq_request());
      case 3:
      case 4:
        return bytes_of(qp_request(static_cast<prm::QpServiceType>(in.below(4))));
      case 5: {
        static constexpr std::array modes{prm::MkeyAccessMode::pa, prm::MkeyAccessMode::mtt, prm::MkeyAccessMode::klms,
                                          prm::MkeyAccessMode::ksm};
        auto r = mkey_request(modes[in.below(modes.size())]);
        r.in.set<prm::CreateMkeyIn::translations_octword_actual_size>(4);
        r.in.sub<prm::CreateMkeyIn::memory_key_mkey_entry>().set<prm::Mkc::translations_octword_size>(4);
        return bytes_of(r);
      }
      case 6:
      case 7:
        return transition(in);
      default: {
        const auto entries = command::registry().entries();
        const auto& entry = entries[in.below(static_cast<std::uint32_t>(entries.size()))];
        Bytes request(entry.in_size + entry.tail * in.below(4));
        prm::View<prm::CommandIn>(request.data()).set<prm::CommandIn::opcode>(entry.opcode);
        place_number(in, request, kNumberAt);
        return request;
      }
    }
  }

  Bytes transition(fuzz::Input& in) {
    static constexpr std::array opcodes{Opcode::rst2init_qp, Opcode::init2rtr_qp,  Opcode::rtr2rts_qp,
                                        Opcode::rts2rts_qp,  Opcode::init2init_qp, Opcode::sqerr2rts_qp,
                                        Opcode::qp_2err,     Opcode::qp_2rst};
    Request<prm::Rst2initQpIn, prm::Rst2initQpOut> r(opcodes[in.below(opcodes.size())]);
    const auto qpc = r.in.sub<prm::Rst2initQpIn::qpc>();
    qpc.sub<prm::Qpc::primary_address_path>().set<prm::Ads::vhca_port_num>(1);
    qpc.set<prm::Qpc::mtu>(prm::QpMtu::mtu_1k).set<prm::Qpc::log_msg_max>(30);
    Bytes request = bytes_of(r);
    const auto opcode = r.in.view().get<prm::Rst2initQpIn::opcode>();
    if (opcode == Opcode::qp_2err || opcode == Opcode::qp_2rst) request.resize(prm::Qp2errIn::size);
    place_number(in, request, kNumberAt);
    return request;
  }

  // Keeps the high byte, as numbers of 24 bits lie beside flags.
  void place_number(fuzz::Input& in, Bytes& request, std::size_t at) {
    if (at + 4 > request.size()) return;
    const std::uint32_t number = numbers_[in.take() % numbers_.size()];
    prm::store_be32(request.data() + at, (prm::load_be32(request.data() + at) & 0xff000000u) | (number & 0xffffff));
  }

  void edit(fuzz::Input& in, Bytes& request) {
    if (request.size() < 8) return;
    const std::size_t at = in.below(static_cast<std::uint32_t>(std::min<std::size_t>(request.size() / 4, 0x4000))) * 4;
    std::byte* p = request.data() + at;
    switch (in.below(7)) {
      case 0:
        return prm::store_be32(p, prm::load_be32(p) ^ 1u << (in.take() & 31));
      case 1:
        return prm::store_be32(p, static_cast<std::uint32_t>(in.number()));
      case 2:
        return place_number(in, request, at);
      case 3:
        if (at + 8 <= request.size()) prm::store_be64(p, memory(in.take<std::uint16_t>() % kMemory & ~63u));
        return;
      case 4:
        if (at + 8 <= request.size()) prm::store_be64(p, in.number());
        return;
      case 5:
        p[in.take() & 3] = static_cast<std::byte>(in.take());
        return;
      default:
        request.resize(
            std::min<std::size_t>(in.one_in(4) ? in.take<std::uint16_t>() : request.size() + in.take() % 65, 0x4000));
    }
  }

  void command(fuzz::Input& in) {
    Bytes request = good_request(in);
    for (unsigned edits = in.below(8); edits > 2 && in.more(); --edits) edit(in, request);
    std::size_t out_size = 0x1100;
    if (in.one_in(16)) out_size = in.take<std::uint16_t>() % 0x1100;
    const std::uint32_t opcode = request.size() >= 4 ? prm::load_be32(request.data()) >> 16 : 0;
    // Without the HCA everything else is refused; its own tests cover that.
    if (opcode == static_cast<std::uint32_t>(Opcode::teardown_hca) && !in.one_in(8)) return;
    const Bytes out = issue(request, out_size);
    if (opcode == static_cast<std::uint32_t>(Opcode::teardown_hca)) restore_hca();
    if (out.size() < 16 || prm::ConstView<prm::CommandOut>(out.data()).get<prm::CommandOut::status>() != Status::ok)
      return;
    const std::uint32_t number = prm::load_be32(out.data() + 8) & 0xffffff;
    if (number == 0) return;
    numbers_.push_back(number);
    made_.push_back({opcode, number, prm::load_be32(request.data()) & 0xffff});
  }

  Bytes issue(std::span<const std::byte> in, std::size_t out_size) {
    Bytes out(out_size, std::byte{0xee});
    device_->execute(in, out);
    if (out_size < 8) return out;
    const prm::ConstView<prm::CommandOut> head(out.data());
    const std::uint32_t syndrome = head.get<prm::CommandOut::syndrome>();
    const Status status = head.get<prm::CommandOut::status>();
    if (status == Status::ok ? syndrome != 0 : !find_refusal(syndrome)) __builtin_trap();
    device_->step();
    return out;
  }

  void restore_hca() {
    const auto* entry = command::registry().find(static_cast<std::uint16_t>(Opcode::init_hca));
    Bytes request(entry->in_size);
    prm::View<prm::CommandIn>(request.data()).set<prm::CommandIn::opcode>(Opcode::init_hca);
    issue(request, entry->out_size);
  }

  // Destroys whatever the input left, in the order that references allow; inputs do not build on one another.
  void clean() {
    restore_hca();
    static constexpr std::array<std::pair<Opcode, Opcode>, 12> pairs{
        {{Opcode::create_qp, Opcode::destroy_qp},
         {Opcode::create_srq, Opcode::destroy_srq},
         {Opcode::create_rmp, Opcode::destroy_rmp},
         {Opcode::create_cq, Opcode::destroy_cq},
         {Opcode::create_eq, Opcode::destroy_eq},
         {Opcode::create_mkey, Opcode::destroy_mkey},
         {Opcode::alloc_q_counter, Opcode::dealloc_q_counter},
         {Opcode::alloc_transport_domain, Opcode::dealloc_transport_domain},
         {Opcode::alloc_pd, Opcode::dealloc_pd},
         {Opcode::alloc_uar, Opcode::dealloc_uar},
         {Opcode::create_umem, Opcode::destroy_umem},
         {Opcode::create_uctx, Opcode::destroy_uctx}}};
    for (const auto& [create, destroy] : pairs)
      for (const Made& m : made_) {
        if (m.opcode != static_cast<std::uint32_t>(create)) continue;
        std::array<std::byte, 16> request{};
        prm::store_be32(request.data(), static_cast<std::uint32_t>(destroy) << 16 | m.uid);
        prm::store_be32(request.data() + kNumberAt, m.number);
        issue(request, 16);
      }
    made_.clear();
  }

  struct Made {
    std::uint32_t opcode, number, uid;
  };
  std::vector<std::uint32_t> numbers_;
  std::vector<Made> made_;

 public:
  const std::byte* dma() const { return memory_; }
};

MailboxFuzz* world = nullptr;

}  // namespace
}  // namespace verbena::device

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  setenv("VERBENA_PROMOTE", "0", 1);
  using verbena::device::world;
  world = new verbena::device::MailboxFuzz;
  verbena::fuzz::confine_allow(world->dma(), 0x10000);
  std::atexit([] {
    delete world;
    world = nullptr;
  });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  verbena::device::world->run({data, size});
  return 0;
}
