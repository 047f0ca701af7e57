// The C++ interface, end to end on the emulated device: typed commands, what an Error carries, handles that give
// themselves back. Built twice: with our headers and libraries, and with those of the system.
#include <sys/mman.h>
#include <verbena/handles.h>

#include <cstdio>
#include <cstdlib>

namespace prm = verbena::prm;
using namespace verbena;

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (0)

namespace {

template <class Call>
Error failure(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  std::fprintf(stderr, "no error was thrown\n");
  std::exit(1);
}

void errors(const Context& context) {
  CHECK(failure([] { Context none("mlx5_77"); }).error() == ENODEV);
  // The device refuses: no protection domain.
  const Error refused = failure([&] { Object qp(context, Command<prm::CreateQpIn>()); });
  CHECK(refused.error() == EREMOTEIO && refused.status() != prm::Status::ok && refused.syndrome() != 0);
  CHECK(!refused.reason().empty() && std::string(refused.what()).find(refused.reason()) != std::string::npos);
  CHECK(refused.reason().find(':') != std::string::npos);  // names the field: the device's own words
  std::printf("%s\n", refused.what());
  // The kernel's role refuses: another object's number.
  Object pd(context, Command<prm::AllocPdIn>());
  Command<prm::QueryMkeyIn> query;
  const Error wrong = failure([&] { pd.query(query); });
  CHECK(wrong.error() == EINVAL && wrong.status() == prm::Status::ok && wrong.reason().empty());
}

void general(const Context& context) {
  using In = prm::QueryAdapterIn;
  const auto reply = context.general(Command<In>());
  CHECK(reply.get<prm::QueryAdapterOut::status>() == prm::Status::ok);
}

// An object that is in use stays, and close() says so.
void closing(const Context& context) {
  Pd pd(context);
  char data[64];
  Mr mr(pd, data, sizeof data, IBV_ACCESS_LOCAL_WRITE);
  CHECK(failure([&] { pd.close(); }).error() == EBUSY && pd);
  mr.close();
  CHECK(!mr);
  pd.close();
  Pd moved(context);
  Pd other(std::move(moved));
  CHECK(!moved && other && other.number() != 0);
}

// A queue pair of verbs, changed by commands in named fields.
void queue_pair(const Context& context) {
  Pd pd(context);
  Cq cq(context, 16);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq.get();
  init.cap.max_send_wr = init.cap.max_recv_wr = 1;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  init.qp_type = IBV_QPT_RC;
  Qp qp(pd, init);
  using Rst2init = prm::Rst2initQpIn;
  Command<Rst2init> to_init;
  to_init.sub<Rst2init::qpc>().set<prm::Qpc::rwe>(1).sub<prm::Qpc::primary_address_path>().set<prm::Ads::vhca_port_num>(
      1);
  qp.modify(to_init);
  const auto now = qp.query(Command<prm::QueryQpIn>());
  CHECK(now.sub<prm::QueryQpOut::qpc>().get<prm::Qpc::state>() == prm::QpState::init);
  // In this state the port cannot be changed.
  CHECK(failure([&] { qp.set_udp_sport(0xc001); }).error() == EOPNOTSUPP);
  using Rts2rts = prm::Rts2rtsQpIn;
  Command<Rts2rts> early;
  early.set<Rts2rts::opt_param_mask_95_32>(prm::QpExtOptParam::udp_sport);
  const Error refused = failure([&] { qp.modify(early); });
  CHECK(refused.error() == EREMOTEIO && refused.status() == prm::Status::bad_qp_state);
}

void memory_and_events(const Context& context) {
  constexpr std::size_t kBytes = 4096, kDbr = 2048;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Umem umem(context, memory, kBytes);
  Uar uar(context);
  using In = prm::CreateCqIn;
  Command<In> create;
  create.set<In::cq_umem_id>(umem.id()).set<In::cq_umem_valid>(1);
  create.sub<In::cq_context>()
      .set<prm::Cqc::log_cq_size>(3)
      .set<prm::Cqc::uar_page>(uar.page())
      .set<prm::Cqc::c_eqn_or_apu_element>(context.eqn())
      .set<prm::Cqc::dbr_umem_id>(umem.id())
      .set<prm::Cqc::dbr_umem_valid>(1)
      .set<prm::Cqc::dbr_addr>(kDbr);
  Object cq(context, create);
  Command<prm::QueryCqIn> query;
  query.set<prm::QueryCqIn::cqn>(cq.reply().get<prm::CreateCqOut::cqn>());
  CHECK(cq.query(query).sub<prm::QueryCqOut::cq_context>().get<prm::Cqc::log_cq_size>() == 3);
  CHECK(failure([&] { umem.close(); }).error() != 0 && umem);

  EventChannel channel(context);
  const std::uint16_t completion[] = {0};
  channel.subscribe(cq, completion, 42);
  const std::uint16_t unknown[] = {300};
  CHECK(failure([&] { channel.subscribe(cq, unknown, 42); }).error() == EINVAL);
  cq.close();
  umem.close();
  munmap(memory, kBytes);
}

}  // namespace

int main() {
  const Context context;
  errors(context);
  general(context);
  closing(context);
  queue_pair(context);
  memory_and_events(context);
  return 0;
}
