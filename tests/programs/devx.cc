// DEVX end to end by the public C interface: a QP and a CQ that the program builds in its own memory carry traffic with
// work requests written by hand; events and answers come on descriptors; every way of asking wrongly has its errno.
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "devx_world.h"

namespace {

bool readable(int fd, int ms) {
  pollfd wait{fd, POLLIN, 0};
  return poll(&wait, 1, ms) == 1 && (wait.revents & POLLIN);
}

struct Event {
  std::uint64_t cookie;
  std::byte eqe[64];
};
prm::EventType type_of(const Event& event) {
  return prm::ConstView<prm::Eqe>(event.eqe).get<prm::Eqe::event_type>();
}
mlx5dv_devx_async_event_hdr* header(Event* event) { return reinterpret_cast<mlx5dv_devx_async_event_hdr*>(event); }

mlx5dv_devx_event_channel* make_channel(World* w, bool omit = false) {
  auto* channel = mlx5dv_devx_create_event_channel(
      w->context, omit ? MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA
                       : static_cast<mlx5dv_devx_create_event_channel_flags>(0));
  CHECK(channel);
  return channel;
}

int subscribe(mlx5dv_devx_event_channel* channel, mlx5dv_devx_obj* object, std::uint16_t event, std::uint64_t cookie) {
  return mlx5dv_devx_subscribe_devx_event(channel, object, sizeof event, &event, cookie);
}

constexpr auto number(prm::EventType type) { return static_cast<std::uint16_t>(type); }

// Traffic in both directions, with plain doorbells and with BlueFlame copies, round the rings many times.
void traffic(Queues& a, Queues& b, bool may_copy) {
  a.connect(b.qpn);
  b.connect(a.qpn);
  for (unsigned i = 0; i < 200; ++i) {
    const bool blueflame = may_copy && i % 2;
    std::memset(a.data(), static_cast<int>(i), 64);
    b.post_recv(64);
    a.post(prm::WqeOpcode::send, 64, 0, 0, blueflame);
    const auto sent = a.next_cqe();
    CHECK(sent.get<prm::Cqe64::opcode>() == prm::CqeOpcode::req);
    CHECK(sent.get<prm::Cqe64::wqe_counter>() == static_cast<std::uint16_t>(i * 2));
    const auto received = b.next_cqe();
    CHECK(received.get<prm::Cqe64::opcode>() == prm::CqeOpcode::resp_send);
    CHECK(received.get<prm::Cqe64::byte_cnt>() == 64 && b.data()[63] == static_cast<char>(i));
    std::memset(a.data(), static_cast<int>(i + 100), 64);
    a.post(prm::WqeOpcode::rdma_write, 64, reinterpret_cast<std::uintptr_t>(b.data() + 128), b.mr->rkey, blueflame);
    CHECK(a.next_cqe().get<prm::Cqe64::opcode>() == prm::CqeOpcode::req && b.data()[191] == static_cast<char>(i + 100));
  }
  // The QP as the device sees it.
  QueryQp query(prm::Opcode::query_qp);
  query.in.set<prm::QueryQpIn::qpn>(a.qpn);
  CHECK(!query.query(a.qp));
  const auto qpc = query.out.sub<prm::QueryQpOut::qpc>();
  CHECK(qpc.get<prm::Qpc::state>() == prm::QpState::rts && qpc.get<prm::Qpc::remote_qpn>() == b.qpn);
  CHECK(qpc.get<prm::Qpc::hw_sq_wqebb_counter>() == 400);
}

void traffic(World* w, std::uint32_t uar_type) {
  Queues a(w, uar_type), b(w, uar_type);
  traffic(a, b, uar_type == MLX5DV_UAR_ALLOC_TYPE_BF);
}

// A queue pair that begins anew and comes to the same count of its record: nobody need have seen the zero between.
void traffic_after_reset(World* w) {
  Queues a(w), b(w);
  for (unsigned round = 0; round < 10; ++round) {
    for (Queues* q : {&a, &b}) {
      Command<prm::Qp2rstIn, prm::Qp2rstOut> reset(prm::Opcode::qp_2rst);
      reset.in.set<prm::Qp2rstIn::qpn>(q->qpn);
      CHECK(!reset.modify(q->qp));
      q->sq_pi = q->rq_pi = 0;
      std::memset(q->memory + Queues::kQpDbr, 0, 8);
    }
    a.connect(b.qpn);
    b.connect(a.qpn);
    a.post(prm::WqeOpcode::rdma_write, 64, reinterpret_cast<std::uintptr_t>(b.data()), b.mr->rkey, false);
    const auto done = a.next_cqe();
    CHECK(done.get<prm::Cqe64::opcode>() == prm::CqeOpcode::req && done.get<prm::Cqe64::wqe_counter>() == 0);
  }
}

// Queues without doorbell records for what they send: the stores to the UAR page say it all.
void traffic_without_records(World* w) {
  Queues a(w, Queues::NoRecord{}), b(w, Queues::NoRecord{});
  traffic(a, b, false);
  // A store may name the place behind the last WQE instead, and cover several.
  for (unsigned i = 0; i < 3; ++i) {
    b.post_recv(64);
    std::byte* wqe = a.at(Queues::kQpAt + Queues::kRqBytes + (a.sq_pi & ((1u << Queues::kLogSq) - 1)) * 64u);
    std::memset(wqe, 0, 64);
    prm::View<prm::CtrlSeg> ctrl(wqe);
    ctrl.set<prm::CtrlSeg::wqe_index>(a.sq_pi++).set<prm::CtrlSeg::opcode>(prm::WqeOpcode::send);
    ctrl.set<prm::CtrlSeg::qpn>(a.qpn).set<prm::CtrlSeg::ds>(2).set<prm::CtrlSeg::ce>(prm::WqeCompletion::always);
    a.fill_data(wqe + 16, 8);
  }
  alignas(8) std::byte doorbell[16]{};
  prm::View<prm::CtrlSeg>(doorbell).set<prm::CtrlSeg::wqe_index>(a.sq_pi).set<prm::CtrlSeg::qpn>(a.qpn);
  auto* page = static_cast<char*>(a.uar->base_addr);
  *reinterpret_cast<volatile std::uint64_t*>(page + prm::UarPage::send_without_record) = *reinterpret_cast<std::uint64_t*>(doorbell);
  for (unsigned i = 0; i < 3; ++i) CHECK(a.next_cqe().get<prm::Cqe64::opcode>() == prm::CqeOpcode::req);
}

// A completion event of a CQ that was armed by hand, once a time it was armed; an error event of a QP; a CQ overrun.
void events(World* w) {
  auto* channel = make_channel(w);
  auto* other = make_channel(w);
  Queues a(w), b(w);
  a.connect(b.qpn);
  b.connect(a.qpn);
  CHECK(!subscribe(channel, a.cq, number(prm::EventType::comp), 0xc0ffee));
  CHECK(!subscribe(other, b.cq, number(prm::EventType::comp), 1));
  const auto target = reinterpret_cast<std::uintptr_t>(b.data());
  Event event{};
  for (int i = 0; i < 3; ++i) {
    a.arm();
    usleep(3000);
    CHECK(!readable(channel->fd, 0));
    a.post(prm::WqeOpcode::rdma_write, 16, target, b.mr->rkey, false);
    CHECK(readable(channel->fd, 5000));
    CHECK(mlx5dv_devx_get_event(channel, header(&event), sizeof event) == sizeof event);
    CHECK(event.cookie == 0xc0ffee && type_of(event) == prm::EventType::comp);
    a.next_cqe();
    a.post(prm::WqeOpcode::rdma_write, 16, target, b.mr->rkey, false);  // not armed
    a.next_cqe();
    CHECK(!readable(channel->fd, 0));
  }
  CHECK(!readable(other->fd, 0));

  // The responder's error reaches its own subscriber only.
  CHECK(!subscribe(channel, a.qp, number(prm::EventType::wq_access_error), 7));
  CHECK(!subscribe(other, b.qp, number(prm::EventType::wq_access_error), 8));
  a.post(prm::WqeOpcode::rdma_write, 16, target, 0xdead00, false);
  CHECK(a.next_cqe().get<prm::Cqe64::opcode>() == prm::CqeOpcode::req_err);
  CHECK(readable(other->fd, 5000) && !readable(channel->fd, 0));
  CHECK(mlx5dv_devx_get_event(other, header(&event), sizeof event) == sizeof event);
  CHECK(event.cookie == 8 && type_of(event) == prm::EventType::wq_access_error);
  const auto data = prm::ConstView<prm::Eqe>(event.eqe).sub<prm::Eqe::event_data>();
  CHECK(data.sub<prm::EventAuto::qp_events>().get<prm::QpEvents::qpn_rqn_sqn>() == b.qpn);
  mlx5dv_devx_destroy_event_channel(channel);
  mlx5dv_devx_destroy_event_channel(other);
}

void cq_overrun(World* w) {
  auto* channel = make_channel(w);
  Queues a(w), b(w);
  a.connect(b.qpn);
  b.connect(a.qpn);
  CHECK(!subscribe(channel, a.cq, number(prm::EventType::cq_error), 5));
  // The CQ holds 32: completions that nobody takes.
  for (unsigned i = 0; i < 34; ++i) {
    a.post(prm::WqeOpcode::rdma_write, 16, reinterpret_cast<std::uintptr_t>(b.data()), b.mr->rkey, false);
    a.wait_for_device();
  }
  CHECK(readable(channel->fd, 5000));
  Event event{};
  CHECK(mlx5dv_devx_get_event(channel, header(&event), sizeof event) == sizeof event);
  CHECK(event.cookie == 5 && type_of(event) == prm::EventType::cq_error);
  const auto data = prm::ConstView<prm::Eqe>(event.eqe).sub<prm::Eqe::event_data>();
  CHECK(data.sub<prm::EventAuto::cq_error>().get<prm::CqError::cqn>() == a.cqn);
  QueryCq query(prm::Opcode::query_cq);
  query.in.set<prm::QueryCqIn::cqn>(a.cqn);
  CHECK(!query.query(a.cq));
  CHECK(query.out.sub<prm::QueryCqOut::cq_context>().get<prm::Cqc::status>() == prm::CqStatus::overflow);
  mlx5dv_devx_destroy_event_channel(channel);
}

// Channels without data tell a subscription once until it is read; eventfds count.
void events_without_data(World* w) {
  auto* channel = make_channel(w, true);
  const int counter = eventfd(0, EFD_NONBLOCK);
  Queues a(w), b(w);
  a.connect(b.qpn);
  b.connect(a.qpn);
  CHECK(!subscribe(channel, a.cq, number(prm::EventType::comp), 11));
  CHECK(!mlx5dv_devx_subscribe_devx_event_fd(channel, counter, a.cq, number(prm::EventType::comp)));
  for (int i = 0; i < 3; ++i) {
    a.arm();
    a.post(prm::WqeOpcode::rdma_write, 16, reinterpret_cast<std::uintptr_t>(b.data()), b.mr->rkey, false);
    a.next_cqe();
    std::uint64_t count = 0;
    CHECK(readable(counter, 5000) && read(counter, &count, sizeof count) == sizeof count && count == 1);
  }
  std::uint64_t cookie = 0;
  CHECK(readable(channel->fd, 5000));
  CHECK(mlx5dv_devx_get_event(channel, reinterpret_cast<mlx5dv_devx_async_event_hdr*>(&cookie), sizeof cookie) ==
        sizeof cookie);
  CHECK(cookie == 11 && !readable(channel->fd, 0));
  a.arm();
  a.post(prm::WqeOpcode::rdma_write, 16, reinterpret_cast<std::uintptr_t>(b.data()), b.mr->rkey, false);
  CHECK(readable(channel->fd, 5000));
  close(counter);
  mlx5dv_devx_destroy_event_channel(channel);
}

void event_errors(World* w) {
  errno = 0;
  CHECK(!mlx5dv_devx_create_event_channel(w->context, static_cast<mlx5dv_devx_create_event_channel_flags>(2)) &&
        errno == EINVAL);
  auto* channel = make_channel(w);
  Queues a(w);
  const auto comp = number(prm::EventType::comp);
  CHECK(subscribe(channel, a.cq, 0x0b, 0) == EINVAL);      // page request: the driver's alone
  CHECK(subscribe(channel, a.cq, 300, 0) == EINVAL);       // no such event
  CHECK(subscribe(channel, nullptr, comp, 0) == EINVAL);   // belongs to an object
  CHECK(subscribe(channel, a.cq, number(prm::EventType::port_change), 0) == EINVAL);  // belongs to none
  CHECK(!subscribe(channel, nullptr, number(prm::EventType::port_change), 0));
  std::uint16_t many[17] = {};
  CHECK(mlx5dv_devx_subscribe_devx_event(channel, a.cq, sizeof many, many, 0) == EINVAL);
  CHECK(mlx5dv_devx_subscribe_devx_event(channel, a.cq, 32, many, 0) == 0);
  CHECK(mlx5dv_devx_subscribe_devx_event(channel, a.cq, 3, many, 0) == EINVAL);
  CHECK(mlx5dv_devx_subscribe_devx_event(channel, a.cq, 0, many, 0) == EINVAL);
  CHECK(mlx5dv_devx_subscribe_devx_event_fd(channel, 12345, a.cq, comp) == EBADF);
  CHECK(mlx5dv_devx_subscribe_devx_event_fd(channel, 0, a.cq, comp) == EINVAL);  // no eventfd
  mlx5dv_devx_event_channel* no_channel = mlx5dv_devx_create_event_channel(w->context, {});
  CHECK(no_channel);
  close(no_channel->fd);
  CHECK((no_channel->fd = open("/dev/null", O_RDONLY)) >= 0);
  CHECK(subscribe(no_channel, a.cq, comp, 0) == EBADF);
  mlx5dv_devx_destroy_event_channel(no_channel);
  // Too little room: the event stays.
  CHECK(!fcntl(channel->fd, F_SETFL, O_NONBLOCK));
  Event event{};
  CHECK(mlx5dv_devx_get_event(channel, header(&event), sizeof event) == -1 && errno == EAGAIN);
  CHECK(mlx5dv_devx_get_event(channel, header(&event), 8) == -1 && errno == EAGAIN);
  mlx5dv_devx_destroy_event_channel(channel);

  std::uint32_t eqn = 0;
  CHECK(mlx5dv_devx_query_eqn(w->context, 10000, &eqn) == ENOENT);
}

// Queries that nobody waits for.
void async_queries(World* w) {
  Queues a(w);
  auto* done = mlx5dv_devx_create_cmd_comp(w->context);
  CHECK(done);
  prm::Box<prm::QueryCqIn> in;
  in.set<prm::QueryCqIn::opcode>(prm::Opcode::query_cq);
  in.set<prm::QueryCqIn::cqn>(a.cqn);
  struct Answer {
    std::uint64_t wr_id;
    std::byte out[prm::QueryCqOut::size];
  } answer{};
  auto* head = reinterpret_cast<mlx5dv_devx_async_cmd_hdr*>(&answer);
  for (std::uint64_t i = 0; i < 100; ++i)
    CHECK(!mlx5dv_devx_obj_query_async(a.cq, in.data(), prm::QueryCqIn::size, prm::QueryCqOut::size, i, done));
  for (std::uint64_t i = 0; i < 100; ++i) {
    CHECK(readable(done->fd, 1000));
    if (i == 50) CHECK(mlx5dv_devx_get_async_cmd_comp(done, head, 16) == ENOSPC);
    CHECK(!mlx5dv_devx_get_async_cmd_comp(done, head, sizeof answer) && answer.wr_id == i);
    const prm::ConstView<prm::QueryCqOut> out(answer.out);
    CHECK(out.get<prm::QueryCqOut::status>() == prm::Status::ok);
    CHECK(out.sub<prm::QueryCqOut::cq_context>().get<prm::Cqc::log_cq_size>() == Queues::kLogCq);
  }
  CHECK(!readable(done->fd, 0));
  // What the device refuses comes back the same way.
  CHECK(!mlx5dv_devx_obj_query_async(a.cq, in.data(), prm::QueryCqIn::size, 16, 1, done));
  CHECK(!mlx5dv_devx_get_async_cmd_comp(done, head, sizeof answer));
  CHECK(prm::ConstView<prm::CommandOut>(answer.out).get<prm::CommandOut::status>() == prm::Status::bad_output_len);
  // Not this object's number; not a query; an answer nobody can take; too many unread.
  in.set<prm::QueryCqIn::cqn>(a.cqn + 1);
  CHECK(mlx5dv_devx_obj_query_async(a.cq, in.data(), prm::QueryCqIn::size, 512, 1, done) == EINVAL);
  in.set<prm::QueryCqIn::cqn>(a.cqn);
  CHECK(mlx5dv_devx_obj_query_async(a.qp, in.data(), prm::QueryCqIn::size, 512, 1, done) == EINVAL);
  in.set<prm::QueryCqIn::opcode>(prm::Opcode::nop);
  CHECK(mlx5dv_devx_obj_query_async(a.cq, in.data(), prm::QueryCqIn::size, 512, 1, done) == EINVAL);
  in.set<prm::QueryCqIn::opcode>(prm::Opcode::query_cq);
  CHECK(mlx5dv_devx_obj_query_async(a.cq, in.data(), prm::QueryCqIn::size, 1 << 16, 1, done) == EINVAL);
  mlx5dv_devx_cmd_comp no_channel = {0};
  CHECK(mlx5dv_devx_obj_query_async(a.cq, in.data(), prm::QueryCqIn::size, 512, 1, &no_channel) == EBADF);
  int error = 0;
  unsigned taken = 0;
  for (; taken < 5000 && !error; ++taken)
    error = mlx5dv_devx_obj_query_async(a.cq, in.data(), prm::QueryCqIn::size, prm::QueryCqOut::size, taken, done);
  CHECK(error == EAGAIN && taken > 100);
  CHECK(!mlx5dv_devx_get_async_cmd_comp(done, head, sizeof answer) && answer.wr_id == 0);
  mlx5dv_devx_destroy_cmd_comp(done);
}

// The kernel's part: what may be asked through which door.
void command_errors(World* w) {
  Queues a(w), b(w);
  // The kernel wants an event queue that it knows; then the device looks, and a refusal leaves its status and syndrome.
  std::uint32_t eqn = 0;
  CHECK(!mlx5dv_devx_query_eqn(w->context, 0, &eqn));
  for (std::uint32_t other = 0; other < 300; ++other) {
    CreateCq create(prm::Opcode::create_cq);
    a.fill(create, other);
    create.in.sub<prm::CreateCqIn::cq_context>().set<prm::Cqc::uar_page>(0xfffff0);
    errno = 0;
    CHECK(!create.create(w->context) && errno == (other == eqn ? EREMOTEIO : ENOENT));
    if (other != eqn) CHECK(create.status() == prm::Status::ok && !create.syndrome());
    if (other == eqn) CHECK(create.status() == prm::Status::bad_resource && create.syndrome());
  }
  // Not a create, not general, not a query, not a change.
  QueryCq query(prm::Opcode::query_cq);
  query.in.set<prm::QueryCqIn::cqn>(a.cqn);
  CHECK(!query.create(w->context) && errno == EINVAL);
  CHECK(query.general(w->context) == EINVAL);
  CHECK(query.modify(a.cq) == EINVAL);
  CHECK(!query.query(a.cq));
  // The handle must be of the object that the command names.
  CHECK(query.query(b.cq) == EINVAL && query.query(a.qp) == EINVAL);
  Command<prm::Qp2errIn, prm::Qp2errOut> error(prm::Opcode::qp_2err);
  error.in.set<prm::Qp2errIn::qpn>(b.qpn);
  CHECK(error.modify(a.qp) == EINVAL && error.query(b.qp) == EINVAL);
  // Whatever uid the program writes, it is its own.
  Command<prm::NopIn, prm::NopOut> nop(prm::Opcode::nop);
  prm::View<prm::CommandIn>(nop.in.data()).set<prm::CommandIn::uid>(0x7777);
  CHECK(!nop.general(w->context));
  // Commands of the driver alone.
  for (const auto opcode : {prm::Opcode::create_eq, prm::Opcode::init_hca, prm::Opcode::create_uctx,
                            prm::Opcode::create_umem, prm::Opcode::alloc_uar, prm::Opcode::access_reg}) {
    Command<prm::NopIn, prm::NopOut> other(opcode);
    CHECK(other.general(w->context) == EINVAL);
    CHECK(!other.create(w->context) && errno == EINVAL);
  }
  // In use.
  CHECK(mlx5dv_devx_umem_dereg(a.umem) == EINVAL);
  CHECK(mlx5dv_devx_obj_destroy(a.cq) == EINVAL);
  // Memory: nothing there, no length, access that makes no sense, page sizes that the device has not.
  errno = 0;
  CHECK(!mlx5dv_devx_umem_reg(w->context, nullptr, 4096, IBV_ACCESS_LOCAL_WRITE) && errno == EFAULT);
  CHECK(!mlx5dv_devx_umem_reg(w->context, a.memory, 4096, IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL);
  mlx5dv_devx_umem_in in = {};
  in.addr = a.memory;
  in.size = 4096;
  in.access = IBV_ACCESS_LOCAL_WRITE;
  in.pgsz_bitmap = 512;
  CHECK(!mlx5dv_devx_umem_reg_ex(w->context, &in) && errno == EINVAL);
  in.comp_mask = 1ull << 40;
  CHECK(!mlx5dv_devx_umem_reg_ex(w->context, &in) && errno == EOPNOTSUPP);
  in.comp_mask = MLX5DV_UMEM_MASK_DMABUF;
  in.dmabuf_fd = -1;
  in.pgsz_bitmap = 4096;
  CHECK(!mlx5dv_devx_umem_reg_ex(w->context, &in) && errno == EBADF);
  CHECK(!mlx5dv_devx_alloc_uar(w->context, 0x10) && errno == EOPNOTSUPP);
}

}  // namespace

int main() {
  World w = open_devx();
  traffic(&w, MLX5DV_UAR_ALLOC_TYPE_BF);
  traffic(&w, MLX5DV_UAR_ALLOC_TYPE_NC);
  traffic(&w, 1u << 31);  // MLX5DV_UAR_ALLOC_TYPE_NC_DEDICATED, which Debian 12's header does not have
  traffic_after_reset(&w);
  traffic_without_records(&w);
  events(&w);
  cq_overrun(&w);
  events_without_data(&w);
  event_errors(&w);
  async_queries(&w);
  command_errors(&w);
  CHECK(!ibv_dealloc_pd(w.pd) && !ibv_close_device(w.context));
  puts("ok");
  return 0;
}
