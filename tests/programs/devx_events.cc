// Events of DEVX: each reaches who subscribed to it, for the object that it is of, and nobody else. (Completions and CQ
// errors: devx.cc; limits of shared receive queues: devx_commands.cc.)
//
// Takes a port down and up again: run it on a virtual host of its own.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include <string>

#include "devx_pieces.h"

namespace {

using prm::EventType;
using prm::QpServiceType;

// The first packet for a queue pair that is ready to receive; a request that it cannot carry out.
void of_queue_pairs(World* w, Memory& m) {
  CompletionQueue cq(m), other(m);
  QueuePair a(m, cq, QpServiceType::rc, [](auto) {}), b(m, other, QpServiceType::rc, [](auto) {});
  const Channel established(w, b.object.handle, EventType::comm_est, 1),
      invalid(w, b.object.handle, EventType::wq_inval_req_error, 2);
  const Channel sibling(w, a.object.handle, EventType::comm_est, 3),
      failed(w, a.object.handle, EventType::wq_inval_req_error, 4);
  const std::size_t data = m.take(256);
  for (QueuePair* q : {&a, &b}) q->to_init();
  b.to_rtr(a.object.number);
  a.connect(b.object.number);
  b.receive(data + 128, 64);
  a.send(data, 64);
  CHECK(cq.next().get<prm::Cqe64::opcode>() == prm::CqeOpcode::req);
  established.expect(EventType::comm_est, 1, b.object.number);
  b.to_rts();
  a.post(prm::WqeOpcode::rdma_read, data, 64, [](std::byte*) { return 1u; });  // it allows none
  CHECK(cq.next().get<prm::Cqe64::opcode>() == prm::CqeOpcode::req_err);
  invalid.expect(EventType::wq_inval_req_error, 2, b.object.number);
  CHECK(!sibling.readable(0) && !failed.readable(0) && !established.readable(0));
}

// The last receive that a queue pair takes from a pool.
void of_pools(World* w, Memory& m) {
  CompletionQueue cq(m);
  Pool pool(m);
  Command<prm::CreateRmpIn, prm::CreateRmpOut> create(prm::Opcode::create_rmp);
  const auto rmpc = create.in.sub<prm::CreateRmpIn::ctx>();
  rmpc.set<prm::Rmpc::state>(prm::RmpState::rdy);
  m.fill_wq(rmpc.sub<prm::Rmpc::wq>(), prm::WqType::linked_list, 6, Pool::kLog, pool.ring, pool.record);
  pool.object = made<prm::CreateRmpOut::rmpn>(w, create, prm::Opcode::destroy_rmp);
  const auto on_pool = [&](auto qpc) {
    qpc.template set<prm::Qpc::rq_type>(prm::RqType::srq_rmp_xrq)
        .template set<prm::Qpc::srqn_rmpn_xrqn>(pool.object.number);
  };
  QueuePair a(m, cq, QpServiceType::rc, on_pool), b(m, cq, QpServiceType::rc, on_pool);
  for (QueuePair* q : {&a, &b}) q->to_init();
  a.connect(b.object.number);
  b.connect(a.object.number);
  const Channel last(w, b.object.handle, EventType::srq_last_wqe, 5),
      others(w, a.object.handle, EventType::srq_last_wqe, 6);
  Command<prm::Qp2errIn, prm::Qp2errOut> error(prm::Opcode::qp_2err);
  error.in.set<prm::Qp2errIn::qpn>(b.object.number);
  MODIFY(error, b.object);
  last.expect(EventType::srq_last_wqe, 5, b.object.number);
  CHECK(!others.readable(0));
}

// As an operator does it.
void set_port(const char* port, const char* state) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (!child) {
    char path[4096];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    std::string program(path, n > 0 ? static_cast<std::size_t>(n) : 0);
    for (int up = 0; up < 2; ++up) program.resize(program.rfind('/'));
    program += "/verbena";
    unsetenv("LD_PRELOAD");
    execl(program.c_str(), "verbena", "port", "mlx5_0", port, state, static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

// Of no object: all contexts that subscribed have it, and channels that subscribed to something else have not.
void of_ports(World* w, Memory& m) {
  CompletionQueue cq(m);
  QueuePair a(m, cq, QpServiceType::rc, [](auto) {});
  World other = open_devx();
  {
    const Channel mine(w, nullptr, EventType::port_change, 7), theirs(&other, nullptr, EventType::port_change, 8);
    const Channel of_qp(w, a.object.handle, EventType::wq_access_error, 9),
        of_cq(w, cq.object.handle, EventType::comp, 10);
    const int counter = eventfd(0, EFD_NONBLOCK);
    CHECK(!mlx5dv_devx_subscribe_devx_event_fd(mine.fd, counter, nullptr,
                                               static_cast<std::uint16_t>(EventType::port_change)));
    const auto expect = [](const Channel& channel, std::uint64_t cookie, prm::PortChange what) {
      const Channel::Event event = channel.take();
      const prm::ConstView<prm::Eqe> eqe(event.eqe);
      CHECK(event.cookie == cookie && eqe.get<prm::Eqe::event_type>() == EventType::port_change);
      CHECK(eqe.get<prm::Eqe::event_sub_type>() == static_cast<unsigned>(what));
      const auto change = eqe.sub<prm::Eqe::event_data>().sub<prm::EventAuto::port_state_change_event>();
      CHECK(change.get<prm::PortStateChangeEvent::port_num>() == 2 && !channel.readable(0));
    };
    for (const auto& [state, what] : {std::pair{"down", prm::PortChange::down}, {"up", prm::PortChange::active}}) {
      set_port("2", state);
      expect(mine, 7, what);
      expect(theirs, 8, what);
    }
    CHECK(!of_qp.readable(0) && !of_cq.readable(0));
    std::uint64_t count = 0;
    CHECK(read(counter, &count, sizeof count) == sizeof count && count == 2);
    close(counter);
  }
  close_world(&other);
}

// A program with verbs knows one port, which is up while a physical one is.
void of_the_bond(World* w) {
  const auto takes = [&](const char* port, const char* state, const ibv_event_type* what, ibv_port_state after) {
    set_port(port, state);
    pollfd p{w->context->async_fd, POLLIN, 0};
    CHECK(poll(&p, 1, what ? 3000 : 100) == (what ? 1 : 0));
    if (what) {
      ibv_async_event event;
      CHECK(!ibv_get_async_event(w->context, &event));
      CHECK(event.event_type == *what && event.element.port_num == 1);
      ibv_ack_async_event(&event);
    }
    ibv_port_attr attr;
    CHECK(!ibv_query_port(w->context, 1, &attr) && attr.state == after);
  };
  const ibv_event_type lost = IBV_EVENT_PORT_ERR, back = IBV_EVENT_PORT_ACTIVE;
  takes("1", "down", nullptr, IBV_PORT_ACTIVE);
  takes("2", "down", &lost, IBV_PORT_DOWN);
  takes("1", "up", &back, IBV_PORT_ACTIVE);
  takes("2", "up", nullptr, IBV_PORT_ACTIVE);
}

}  // namespace

int main() {
  World w = open_devx();
  {
    Memory m(&w);
    of_queue_pairs(&w, m);
    of_pools(&w, m);
    of_ports(&w, m);
    of_the_bond(&w);
  }
  close_world(&w);
  puts("ok");
  return 0;
}
