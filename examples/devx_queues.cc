// A completion queue and a queue pair made by device commands alone, in memory of the program: no ibv_create_cq, no
// ibv_create_qp. Work requests, doorbell records and doorbells are written by hand, completions read from the ring.
//
//   verbena run --host a -- build/dev/bin/examples/devx_queues &
//   verbena run --host b -- build/dev/bin/examples/devx_queues localhost
#include <sys/mman.h>
#include <verbena/prm/cqe.h>
#include <verbena/prm/wqe.h>

#include "peers.h"

namespace prm = verbena::prm;
using verbena::Command, verbena::Object;

namespace {

// Where things lie in the program's memory.
constexpr std::size_t kCqAt = 0, kQpAt = 4096, kDoorbellsAt = 8192, kDataAt = 12288, kBytes = 16384;
constexpr std::size_t kCqRecord = kDoorbellsAt, kQpRecord = kDoorbellsAt + 64;
constexpr unsigned kLogCq = 4, kLogRq = 3, kLogSq = 3;  // entries: of 64 bytes, of 16, of 64
constexpr std::size_t kSqAt = kQpAt + (16u << kLogRq);  // the send ring follows the receive ring

void store(void* record, std::uint32_t value) {
  __atomic_store_n(static_cast<std::uint32_t*>(record), htobe32(value), __ATOMIC_RELEASE);
}

class Queues {
 public:
  explicit Queues(const verbena::Context& context)
      : memory_(map()),
        pd_(context),
        mr_(pd_, memory_ + kDataAt, kBytes - kDataAt, IBV_ACCESS_LOCAL_WRITE),
        umem_(context, memory_, kBytes),
        uar_(context),
        cq_(context, cq_request(context)),
        qp_(context, qp_request()) {}

  std::uint32_t number() const { return qp_.reply().get<prm::CreateQpOut::qpn>(); }
  char* data() const { return memory_ + kDataAt; }

  // Reset to ready-to-send, in three commands.
  void connect(const example::Address& own, const ibv_gid& peer_gid, std::uint32_t peer) {
    using Q = prm::Qpc;
    using A = prm::Ads;
    using ToInit = prm::Rst2initQpIn;
    Command<ToInit> init;
    init.set<ToInit::qpn>(number());
    init.sub<ToInit::qpc>().sub<Q::primary_address_path>().set<A::vhca_port_num>(1);
    qp_.modify(init);
    using ToRtr = prm::Init2rtrQpIn;
    Command<ToRtr> rtr;
    rtr.set<ToRtr::qpn>(number());
    const auto qpc = rtr.sub<ToRtr::qpc>();
    qpc.set<Q::mtu>(prm::QpMtu::mtu_1k).set<Q::log_msg_max>(20).set<Q::remote_qpn>(peer).set<Q::min_rnr_nak>(12);
    const auto path = qpc.sub<Q::primary_address_path>();
    path.set<A::vhca_port_num>(1).set<A::src_addr_index>(own.index).set<A::hop_limit>(64).set<A::udp_sport>(0xc123);
    std::memcpy(path.bytes<A::rgid_rip>().data(), peer_gid.raw, 16);
    fill_mac(path, own, peer_gid);
    qp_.modify(rtr);
    using ToRts = prm::Rtr2rtsQpIn;
    Command<ToRts> rts;
    rts.set<ToRts::qpn>(number());
    rts.sub<ToRts::qpc>().set<Q::retry_count>(7).set<Q::rnr_retry>(7);
    rts.sub<ToRts::qpc>().sub<Q::primary_address_path>().set<A::vhca_port_num>(1).set<A::ack_timeout>(14);
    qp_.modify(rts);
  }

  // A receive request is its data segment.
  void post_recv() {
    data_segment(memory_ + kQpAt + receives_ % (1u << kLogRq) * 16);
    store(memory_ + kQpRecord, ++receives_);
  }

  // A send request: a control segment and a data segment; then the doorbell record, then the doorbell.
  void post_send(const char* text) {
    std::snprintf(data(), 64, "%s", text);
    char* wqe = memory_ + kSqAt + sends_ % (1u << kLogSq) * 64;
    std::memset(wqe, 0, 64);
    using C = prm::CtrlSeg;
    prm::View<C>(reinterpret_cast<std::byte*>(wqe))
        .set<C::wqe_index>(sends_)
        .set<C::opcode>(prm::WqeOpcode::send)
        .set<C::qpn>(number())
        .set<C::ds>(2)
        .set<C::ce>(prm::WqeCompletion::always);
    data_segment(wqe + 16);
    store(memory_ + kQpRecord + 4, ++sends_ & 0xffff);
    uar_.ring(wqe);
  }

  // The next entry of the completion ring: its owner bit tells when the device has written it.
  prm::CqeOpcode wait() {
    const char* entry = memory_ + kCqAt + (taken_ & ((1u << kLogCq) - 1)) * 64;
    for (;;) {
      const auto last = static_cast<std::uint8_t>(__atomic_load_n(entry + 63, __ATOMIC_ACQUIRE));
      if (last >> 4 != MLX5_CQE_INVALID && (last & 1) == (taken_ >> kLogCq & 1)) break;
    }
    const prm::ConstView<prm::Cqe64> cqe(reinterpret_cast<const std::byte*>(entry));
    store(memory_ + kCqRecord, ++taken_ & 0xffffff);
    return cqe.get<prm::Cqe64::opcode>();
  }

 private:
  static char* map() {
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw verbena::Error("mmap", errno);
    return static_cast<char*>(memory);
  }

  Command<prm::CreateCqIn> cq_request(const verbena::Context& context) const {
    // Entries that the device has not written yet must not look written.
    for (unsigned i = 0; i < 1u << kLogCq; ++i)
      memory_[kCqAt + i * 64 + 63] = static_cast<char>(MLX5_CQE_INVALID << 4 | 1);
    using In = prm::CreateCqIn;
    using C = prm::Cqc;
    Command<In> create;
    create.set<In::cq_umem_id>(umem_.id()).set<In::cq_umem_valid>(1).set<In::cq_umem_offset>(kCqAt);
    create.sub<In::cq_context>()
        .set<C::log_cq_size>(kLogCq)
        .set<C::uar_page>(uar_.page())
        .set<C::c_eqn_or_apu_element>(context.eqn())
        .set<C::dbr_umem_id>(umem_.id())
        .set<C::dbr_umem_valid>(1)
        .set<C::dbr_addr>(kCqRecord);
    return create;
  }

  Command<prm::CreateQpIn> qp_request() const {
    using In = prm::CreateQpIn;
    using Q = prm::Qpc;
    const std::uint32_t cqn = cq_.reply().get<prm::CreateCqOut::cqn>();
    Command<In> create;
    create.set<In::wq_umem_id>(umem_.id()).set<In::wq_umem_valid>(1).set<In::wq_umem_offset>(kQpAt);
    create.sub<In::qpc>()
        .set<Q::st>(prm::QpServiceType::rc)
        .set<Q::pm_state>(prm::PathMigrationState::migrated)
        .set<Q::pd>(pd_.number())
        .set<Q::uar_page>(uar_.page())
        .set<Q::cqn_snd>(cqn)
        .set<Q::cqn_rcv>(cqn)
        .set<Q::log_rq_size>(kLogRq)
        .set<Q::log_rq_stride>(0)
        .set<Q::log_sq_size>(kLogSq)
        .set<Q::ts_format>(prm::TimestampFormat::standard)
        .set<Q::dbr_umem_id>(umem_.id())
        .set<Q::dbr_umem_valid>(1)
        .set<Q::dbr_addr>(kQpRecord);
    return create;
  }

  // The peer's Ethernet address, as the library finds it when it makes an address handle.
  void fill_mac(const prm::View<prm::Ads>& path, const example::Address& own, const ibv_gid& peer_gid) const {
    ibv_ah_attr attr{};
    attr.is_global = 1;
    attr.port_num = 1;
    attr.grh.dgid = peer_gid;
    attr.grh.sgid_index = static_cast<std::uint8_t>(own.index);
    attr.grh.hop_limit = 64;
    ibv_ah* ah = ibv_create_ah(pd_.get(), &attr);
    if (!ah) throw verbena::Error("ibv_create_ah", errno);
    mlx5dv_ah out{};
    mlx5dv_obj object{};
    object.ah.in = ah;
    object.ah.out = &out;
    mlx5dv_init_obj(&object, MLX5DV_OBJ_AH);
    const std::uint8_t* mac = out.av->rmac;
    path.set<prm::Ads::rmac_47_32>(mac[0] << 8 | mac[1]);
    path.set<prm::Ads::rmac_31_0>(std::uint32_t{mac[2]} << 24 | mac[3] << 16 | mac[4] << 8 | mac[5]);
    ibv_destroy_ah(ah);
  }

  void data_segment(char* segment) const {
    using D = prm::DataSeg;
    prm::View<D>(reinterpret_cast<std::byte*>(segment))
        .set<D::byte_count>(64)
        .set<D::lkey>(mr_->lkey)
        .set<D::addr>(reinterpret_cast<std::uintptr_t>(data()));
  }

  char* memory_;
  verbena::Pd pd_;
  verbena::Mr mr_;
  verbena::Umem umem_;
  verbena::Uar uar_;
  Object<prm::CreateCqIn> cq_;
  Object<prm::CreateQpIn> qp_;
  std::uint32_t receives_ = 0, sends_ = 0, taken_ = 0;
};

void run(const example::Peers& peers) {
  const verbena::Context context;
  Queues queues(context);
  const example::Address own = example::roce_address(context);
  struct Hello {
    ibv_gid gid;
    std::uint32_t qpn;
  };
  const Hello peer = peers.exchange(Hello{own.gid, queues.number()});
  queues.connect(own, peer.gid, peer.qpn);
  for (int i = 0; i < 20; ++i) {  // round every ring
    if (!peers.sends()) queues.post_recv();
    peers.meet();
    const std::string text = "message " + std::to_string(i);
    if (peers.sends()) queues.post_send(text.c_str());
    const prm::CqeOpcode opcode = queues.wait();
    const prm::CqeOpcode wanted = peers.sends() ? prm::CqeOpcode::req : prm::CqeOpcode::resp_send;
    if (opcode != wanted || queues.data() != text) throw verbena::Error("a wrong completion or message", EIO);
  }
  if (!peers.sends()) std::printf("20 messages arrived, the last: \"%s\"\n", queues.data());
  peers.meet();
}

}  // namespace

int main(int argc, char** argv) { return example::main(argc, argv, run); }
