// Every errno that the manual pages of mlx5dv list, of DEVX itself: commands, answers, events, memory. Each case names the
// function and the errno, and tests/docs/test_man.py compares all of dv_errors*.cc with the pages.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "dv_errors.h"
#include "prm/mkey.h"

namespace {

void commands(World* w, Foreign& foreign) {
  using prm::Opcode;
  Queues q(w);
  const auto create = [](ibv_context* c, Mailbox m, const char* field = "") {
    return refused(m.out, of(mlx5dv_devx_obj_create(c, m.in, m.length, m.out, m.room)), field);
  };
  const auto general = [](ibv_context* c, Mailbox m, const char* field = "") {
    return refused(m.out, mlx5dv_devx_general_cmd(c, m.in, m.length, m.out, m.room), field);
  };
  const auto query = [](mlx5dv_devx_obj* o, Mailbox m, const char* field = "") {
    return refused(m.out, mlx5dv_devx_obj_query(o, m.in, m.length, m.out, m.room), field);
  };
  const auto modify = [](mlx5dv_devx_obj* o, Mailbox m, const char* field = "") {
    return refused(m.out, mlx5dv_devx_obj_modify(o, m.in, m.length, m.out, m.room), field);
  };
  const auto general_obj = [](Opcode opcode, std::uint32_t number, auto change) {
    Mailbox m(opcode, number);
    m.length = 16;
    change(m);
    return m;
  };
  const auto brief = [](Mailbox& m) { m.length = 15; };
  const auto no_room = [](Mailbox& m) { m.room = 15; };
  const auto tunnelled = [](Mailbox& m) { prm::View<prm::GeneralObjInCmdHdr>(m.in).set<prm::GeneralObjInCmdHdr::vhca_tunnel_id>(1); };
  const auto nothing = [](Mailbox&) {};
  // The wrong kind of command, too little of one, a tunnel: each where the right one is granted.
  CASE(mlx5dv_devx_obj_create, EINVAL, create(w->context, Mailbox(Opcode::query_cq)));
  for (const auto& wrong : {general_obj(Opcode::alloc_pd, 0, brief), general_obj(Opcode::alloc_pd, 0, no_room),
                            general_obj(Opcode::alloc_pd, 0, tunnelled)})
    CASE(mlx5dv_devx_obj_create, EINVAL, create(w->context, wrong));
  Mailbox key(Opcode::create_mkey);
  key.length = prm::CreateMkeyIn::memory_key_mkey_entry::offset + prm::Mkc::size;
  CASE(mlx5dv_devx_obj_create, EREMOTEIO, create(w->context, key, "input length"));
  --key.length;  // the kernel reads the context of a key
  CASE(mlx5dv_devx_obj_create, EINVAL, create(w->context, key));
  std::uint32_t eqn = 0;
  CHECK(!mlx5dv_devx_query_eqn(w->context, 0, &eqn));
  Mailbox cq(Opcode::create_cq);
  const auto cqc = prm::View<prm::CreateCqIn>(cq.in).sub<prm::CreateCqIn::cq_context>();
  cqc.set<prm::Cqc::c_eqn_or_apu_element>(eqn).set<prm::Cqc::uar_page>(0xfffff0);
  CASE(mlx5dv_devx_obj_create, EREMOTEIO, create(w->context, cq, "cqc.uar_page"));
  // Memory that the device may not write holds no CQ.
  mlx5dv_devx_umem* constant = mlx5dv_devx_umem_reg(w->context, q.memory, Queues::kBytes, 0);
  CHECK(constant);
  cqc.set<prm::Cqc::uar_page>(q.uar->page_id).set<prm::Cqc::dbr_umem_id>(q.umem->umem_id);
  prm::View<prm::CreateCqIn>(cq.in).set<prm::CreateCqIn::cq_umem_id>(constant->umem_id);
  CASE(mlx5dv_devx_obj_create, EREMOTEIO, create(w->context, cq, "cq_umem_id"));
  CHECK(!mlx5dv_devx_umem_dereg(constant));
  cqc.set<prm::Cqc::c_eqn_or_apu_element>(eqn + 100);
  CASE(mlx5dv_devx_obj_create, ENOENT, create(w->context, cq));
  CASE(mlx5dv_devx_obj_create, EREMOTEIO, create(w->context, Mailbox(Opcode::create_dct), "opcode"));
  CASE(mlx5dv_devx_obj_create, EOPNOTSUPP, create(foreign(), Mailbox(Opcode::create_cq)));
  CASE(mlx5dv_devx_general_cmd, EINVAL, general(w->context, Mailbox(Opcode::create_cq)));
  for (const auto& wrong : {general_obj(Opcode::query_adapter, 0, brief), general_obj(Opcode::query_adapter, 0, no_room)})
    CASE(mlx5dv_devx_general_cmd, EINVAL, general(w->context, wrong));
  CHECK(!general(w->context, general_obj(Opcode::query_adapter, 0, nothing)));
  Command<prm::QueryHcaCapIn, prm::QueryHcaCapOut> page(Opcode::query_hca_cap);
  page.in.set<prm::QueryHcaCapIn::op_mod>(0x7e);
  CASE(mlx5dv_devx_general_cmd, EREMOTEIO, refused(page.out.span(), page.general(w->context), "op_mod"));
  CASE(mlx5dv_devx_general_cmd, EOPNOTSUPP, general(foreign(), Mailbox(Opcode::nop)));
  CHECK(!query(q.cq, general_obj(Opcode::query_cq, q.cqn, nothing)));
  for (const auto& wrong : {general_obj(Opcode::query_cq, q.cqn + 1, nothing), general_obj(Opcode::query_qp, q.cqn, nothing),
                            general_obj(Opcode::modify_cq, q.cqn, nothing), general_obj(Opcode::query_cq, q.cqn, brief),
                            general_obj(Opcode::query_cq, q.cqn, no_room), general_obj(Opcode::query_cq, q.cqn, tunnelled)})
    CASE(mlx5dv_devx_obj_query, EINVAL, query(q.cq, wrong));
  CASE(mlx5dv_devx_obj_query, EREMOTEIO, query(q.cq, Mailbox(Opcode::query_cq, q.cqn), "input length"));
  CASE(mlx5dv_devx_obj_query, EREMOTEIO,
       query(q.cq, general_obj(Opcode::query_cq, q.cqn, [](Mailbox& m) { m.room = 16; }), "output length"));
  for (const auto& wrong : {general_obj(Opcode::qp_2err, q.qpn + 1, nothing), general_obj(Opcode::modify_cq, q.qpn, nothing),
                            general_obj(Opcode::query_qp, q.qpn, nothing), general_obj(Opcode::qp_2err, q.qpn, brief),
                            general_obj(Opcode::qp_2err, q.qpn, no_room), general_obj(Opcode::qp_2err, q.qpn, tunnelled)})
    CASE(mlx5dv_devx_obj_modify, EINVAL, modify(q.qp, wrong));
  CASE(mlx5dv_devx_obj_modify, EREMOTEIO, modify(q.qp, Mailbox(Opcode::rtr2rts_qp, q.qpn), "qpn"));  // from RESET
  CHECK(!modify(q.qp, general_obj(Opcode::qp_2err, q.qpn, nothing)));
  CASE(mlx5dv_devx_obj_destroy, EINVAL, mlx5dv_devx_obj_destroy(q.cq));

  // One that is not there any more.
  char blob[64];
  AllocPd pd(Opcode::alloc_pd);
  mlx5dv_devx_obj* object = pd.create(w->context);
  CHECK(object && !mlx5dv_devx_obj_export(object, blob));
  mlx5dv_devx_obj* gone = mlx5dv_devx_obj_import(w->context, blob);
  CHECK(gone && !mlx5dv_devx_obj_destroy(object));
  CASE(mlx5dv_devx_obj_query, ENOENT, query(gone, Mailbox(Opcode::query_cq)));
  CASE(mlx5dv_devx_obj_modify, ENOENT, modify(gone, Mailbox(Opcode::modify_cq)));
  CASE(mlx5dv_devx_obj_destroy, ENOENT, mlx5dv_devx_obj_destroy(gone));
  CASE(mlx5dv_devx_obj_import, EOPNOTSUPP, of(mlx5dv_devx_obj_import(foreign(), blob)));

  auto* channel = mlx5dv_devx_create_event_channel(w->context, {});
  CHECK(channel);
  std::uint16_t event = 0;
  CASE(mlx5dv_devx_subscribe_devx_event, ENOENT,
       mlx5dv_devx_subscribe_devx_event(channel, gone, sizeof event, &event, 0));
  const int counter = eventfd(0, 0);
  CASE(mlx5dv_devx_subscribe_devx_event_fd, ENOENT, mlx5dv_devx_subscribe_devx_event_fd(channel, counter, gone, event));
  close(counter);
  auto* answers = mlx5dv_devx_create_cmd_comp(w->context);
  CHECK(answers);
  CASE(mlx5dv_devx_obj_query_async, ENOENT, [&] {
    Mailbox m(Opcode::query_cq);
    return mlx5dv_devx_obj_query_async(gone, m.in, prm::QueryCqIn::size, prm::QueryCqOut::size, 1, answers);
  }());
  mlx5dv_devx_destroy_cmd_comp(answers);
  mlx5dv_devx_destroy_event_channel(channel);
  mlx5dv_devx_obj_unimport(gone);

  CASE(mlx5dv_devx_query_eqn, ENOENT, mlx5dv_devx_query_eqn(w->context, 10000, &eqn));
  CASE(mlx5dv_devx_query_eqn, EOPNOTSUPP, mlx5dv_devx_query_eqn(foreign(), 0, &eqn));
  CASE(mlx5dv_devx_alloc_uar, EOPNOTSUPP, of(mlx5dv_devx_alloc_uar(w->context, 0x10)));
  CASE(mlx5dv_devx_alloc_uar, EOPNOTSUPP, of(mlx5dv_devx_alloc_uar(foreign(), 0)));
  CASE(mlx5dv_devx_uar_export_dmabuf_fd, EPROTONOSUPPORT, of_fd(mlx5dv_devx_uar_export_dmabuf_fd(q.uar)));
}

void async_answers(World* w, Foreign& foreign) {
  Queues q(w);
  Mailbox m(prm::Opcode::query_cq, q.cqn);
  auto* done = mlx5dv_devx_create_cmd_comp(w->context);
  CHECK(done && !fcntl(done->fd, F_SETFL, O_NONBLOCK));
  alignas(8) char room[0x400];
  auto* head = reinterpret_cast<mlx5dv_devx_async_cmd_hdr*>(room);
  const auto ask = [&](mlx5dv_devx_obj* object, std::size_t length, mlx5dv_devx_cmd_comp* channel) {
    return mlx5dv_devx_obj_query_async(object, m.in, prm::QueryCqIn::size, length, 1, channel);
  };
  CASE(mlx5dv_devx_get_async_cmd_comp, EAGAIN, mlx5dv_devx_get_async_cmd_comp(done, head, sizeof room));
  CHECK(!ask(q.cq, prm::QueryCqOut::size, done) && !mlx5dv_devx_get_async_cmd_comp(done, head, sizeof room));
  CASE(mlx5dv_devx_obj_query_async, EINVAL, ask(q.qp, 0x110, done));
  CASE(mlx5dv_devx_obj_query_async, EINVAL, mlx5dv_devx_obj_query_async(q.cq, m.in, 15, 0x110, 1, done));
  prm::View<prm::GeneralObjInCmdHdr> tunnel(m.in);
  tunnel.set<prm::GeneralObjInCmdHdr::vhca_tunnel_id>(1);
  CASE(mlx5dv_devx_obj_query_async, EINVAL, ask(q.cq, 0x110, done));
  tunnel.set<prm::GeneralObjInCmdHdr::vhca_tunnel_id>(0);
  mlx5dv_devx_cmd_comp none = {0};
  CASE(mlx5dv_devx_obj_query_async, EBADF, ask(q.cq, 0x110, &none));
  World elsewhere = open_devx();
  auto* theirs = mlx5dv_devx_create_cmd_comp(elsewhere.context);
  CHECK(theirs);
  CASE(mlx5dv_devx_obj_query_async, EBADF, ask(q.cq, 0x110, theirs));
  mlx5dv_devx_destroy_cmd_comp(theirs);
  close_world(&elsewhere);
  CASE(mlx5dv_devx_obj_query_async, EAGAIN, [&] {
    int error = 0;
    for (unsigned i = 0; i < 5000 && !error; ++i) error = ask(q.cq, 0x110, done);
    return error;
  }());
  CASE(mlx5dv_devx_get_async_cmd_comp, ENOSPC, mlx5dv_devx_get_async_cmd_comp(done, head, 16));
  int pipe[2];
  CHECK(!pipe2(pipe, O_CLOEXEC) && write(pipe[1], room, 4) == 4);
  mlx5dv_devx_cmd_comp other = {pipe[0]};
  CASE(mlx5dv_devx_get_async_cmd_comp, EINVAL, mlx5dv_devx_get_async_cmd_comp(&other, head, sizeof room));
  close(pipe[1]);
  close(pipe[0]);
  // A channel outlives its context: what was in it can be taken, then it says that it is gone.
  World gone = open_devx();
  static mlx5dv_devx_cmd_comp* orphan;  // there is no context to give it back to
  CHECK((orphan = mlx5dv_devx_create_cmd_comp(gone.context)) && !fcntl(orphan->fd, F_SETFL, O_NONBLOCK));
  CASE(mlx5dv_devx_get_async_cmd_comp, EAGAIN, mlx5dv_devx_get_async_cmd_comp(orphan, head, sizeof room));
  close_world(&gone);
  CASE(mlx5dv_devx_get_async_cmd_comp, EIO, mlx5dv_devx_get_async_cmd_comp(orphan, head, sizeof room));
  close(orphan->fd);
  mlx5dv_devx_destroy_cmd_comp(done);
  CASE(mlx5dv_devx_create_cmd_comp, EOPNOTSUPP, of(mlx5dv_devx_create_cmd_comp(foreign())));
}

void events(World* w, Foreign& foreign) {
  Queues q(w);
  auto* channel = mlx5dv_devx_create_event_channel(w->context, {});
  CHECK(channel && !fcntl(channel->fd, F_SETFL, O_NONBLOCK));
  std::uint16_t comp = 0, odd[2] = {0x300, 0};
  const auto subscribe = [&](mlx5dv_devx_event_channel* c, mlx5dv_devx_obj* o, std::uint16_t bytes, std::uint16_t* list) {
    return mlx5dv_devx_subscribe_devx_event(c, o, bytes, list, 7);
  };
  CASE(mlx5dv_devx_subscribe_devx_event, EINVAL, subscribe(channel, q.cq, 3, odd));
  CASE(mlx5dv_devx_subscribe_devx_event, EINVAL, subscribe(channel, q.cq, 2, odd));
  CASE(mlx5dv_devx_subscribe_devx_event, EINVAL, subscribe(channel, nullptr, 2, &comp));
  CASE(mlx5dv_devx_subscribe_devx_event_fd, EINVAL, mlx5dv_devx_subscribe_devx_event_fd(channel, 0, q.cq, comp));
  CASE(mlx5dv_devx_subscribe_devx_event_fd, EBADF, mlx5dv_devx_subscribe_devx_event_fd(channel, 12345, q.cq, comp));

  struct {
    std::uint64_t cookie;
    char eqe[64];
  } event;
  auto* head = reinterpret_cast<mlx5dv_devx_async_event_hdr*>(&event);
  CASE(mlx5dv_devx_get_event, EAGAIN, of_fd(mlx5dv_devx_get_event(channel, head, sizeof event)));
  CHECK(!subscribe(channel, q.cq, 2, &comp));
  q.arm();
  usleep(5000);
  q.connect(q.qpn);
  q.post(prm::WqeOpcode::rdma_write, 8, reinterpret_cast<std::uintptr_t>(q.data()), q.mr->rkey, false);
  q.next_cqe();
  for (int i = 0; i < 1000 && mlx5dv_devx_get_event(channel, head, 8) < 0 && errno == EAGAIN; ++i) usleep(1000);
  CASE(mlx5dv_devx_get_event, EINVAL, of_fd(mlx5dv_devx_get_event(channel, head, 8)));
  CHECK(mlx5dv_devx_get_event(channel, head, sizeof event) == sizeof event);  // it stayed
  const int keep = dup(channel->fd), null = open("/dev/null", O_RDONLY);
  CHECK(dup2(null, channel->fd) >= 0);
  CASE(mlx5dv_devx_subscribe_devx_event, EBADF, subscribe(channel, q.cq, 2, &comp));
  // The descriptor of a channel whose context was closed.
  World gone = open_devx();
  static mlx5dv_devx_event_channel* orphan;  // there is no context to give it back to
  CHECK((orphan = mlx5dv_devx_create_event_channel(gone.context, {})) && !fcntl(orphan->fd, F_SETFL, O_NONBLOCK));
  CHECK(dup2(orphan->fd, channel->fd) >= 0);
  CASE(mlx5dv_devx_get_event, EAGAIN, of_fd(mlx5dv_devx_get_event(channel, head, sizeof event)));
  CASE(mlx5dv_devx_subscribe_devx_event, EBADF, subscribe(channel, q.cq, 2, &comp));  // another context's
  close_world(&gone);
  CASE(mlx5dv_devx_get_event, EIO, of_fd(mlx5dv_devx_get_event(channel, head, sizeof event)));
  CHECK(dup2(keep, channel->fd) >= 0 && !close(keep) && !close(null) && !close(orphan->fd));
  mlx5dv_devx_destroy_event_channel(channel);
  CASE(mlx5dv_devx_create_event_channel, EINVAL,
       of(mlx5dv_devx_create_event_channel(w->context, static_cast<mlx5dv_devx_create_event_channel_flags>(2))));
  CASE(mlx5dv_devx_create_event_channel, EOPNOTSUPP, of(mlx5dv_devx_create_event_channel(foreign(), {})));
  // No descriptor left.
  rlimit before;
  CHECK(!getrlimit(RLIMIT_NOFILE, &before));
  const rlimit none = {3, before.rlim_max};
  CHECK(!setrlimit(RLIMIT_NOFILE, &none));
  CASE(mlx5dv_devx_create_event_channel, EMFILE, of(mlx5dv_devx_create_event_channel(w->context, {})));
  CASE(mlx5dv_devx_create_cmd_comp, EMFILE, of(mlx5dv_devx_create_cmd_comp(w->context)));
  CHECK(!setrlimit(RLIMIT_NOFILE, &before));
}

void memory(World* w, Foreign& foreign) {
  Queues q(w);
  constexpr unsigned write_access = IBV_ACCESS_LOCAL_WRITE;
  const auto reg = [&](void* at, std::size_t bytes, unsigned access) {
    mlx5dv_devx_umem* umem = mlx5dv_devx_umem_reg(w->context, at, bytes, access);
    return umem ? mlx5dv_devx_umem_dereg(umem) : errno;
  };
  mlx5dv_devx_umem_in in = {};
  const auto reg_this = [&](ibv_context* context) {
    mlx5dv_devx_umem* umem = mlx5dv_devx_umem_reg_ex(context, &in);
    return umem ? mlx5dv_devx_umem_dereg(umem) : errno;
  };
  const auto reg_ex = [&](std::uint64_t pages, std::uint64_t mask, int fd) {
    in.addr = q.memory, in.size = 4096, in.access = write_access;
    in.pgsz_bitmap = pages, in.comp_mask = mask, in.dmabuf_fd = fd;
    return reg_this(w->context);
  };
  const auto reg_at = [&](void* at, std::size_t bytes, unsigned access) {
    in = {};
    in.addr = at, in.size = bytes, in.access = access, in.pgsz_bitmap = 4096;
    return reg_this(w->context);
  };
  CASE(mlx5dv_devx_umem_reg, EINVAL, reg(q.memory, 0, write_access));
  CASE(mlx5dv_devx_umem_reg, EINVAL, reg(q.memory, ~std::size_t{0} - 100, write_access));
  CASE(mlx5dv_devx_umem_reg, EINVAL, reg(q.memory, 64, 1u << 6));
  CASE(mlx5dv_devx_umem_reg, EINVAL, reg(q.memory, 64, IBV_ACCESS_REMOTE_WRITE));
  CASE(mlx5dv_devx_umem_reg, EFAULT, reg(nullptr, 64, write_access));
  void* constant = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CASE(mlx5dv_devx_umem_reg, EFAULT, reg(constant, 64, write_access));
  CHECK(!reg(constant, 64, 0));
  constexpr std::size_t huge = (std::size_t{4} << 30) + 4096;  // an odd number of pages: small ones
  void* large = mmap(nullptr, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(large != MAP_FAILED);
  CASE(mlx5dv_devx_umem_reg, ENOMEM, reg(large, huge, write_access));
  CASE(mlx5dv_devx_umem_reg_ex, ENOMEM, reg_at(large, huge, write_access));
  munmap(large, huge);
  CASE(mlx5dv_devx_umem_reg_ex, EFAULT, reg_at(nullptr, 64, write_access));
  CASE(mlx5dv_devx_umem_reg_ex, EFAULT, reg_at(constant, 64, write_access));
  CASE(mlx5dv_devx_umem_reg_ex, EINVAL, reg_at(q.memory, 0, write_access));
  CASE(mlx5dv_devx_umem_reg_ex, EINVAL, reg_at(q.memory, ~std::size_t{0} - 100, write_access));
  CASE(mlx5dv_devx_umem_reg_ex, EINVAL, reg_at(q.memory, 64, 1u << 6));
  CASE(mlx5dv_devx_umem_reg_ex, EINVAL, reg_at(q.memory, 64, IBV_ACCESS_REMOTE_WRITE));
  CASE(mlx5dv_devx_umem_reg_ex, EOPNOTSUPP, reg_this(foreign()));
  CASE(mlx5dv_devx_umem_reg, EOPNOTSUPP, of(mlx5dv_devx_umem_reg(foreign(), q.memory, 64, write_access)));
  CHECK(!reg_ex(~std::uint64_t{0}, 0, 0) && !reg_ex(3 << 12, 0, 0));
  CASE(mlx5dv_devx_umem_reg_ex, EINVAL, reg_ex(4095, 0, 0));
  CASE(mlx5dv_devx_umem_reg_ex, EINVAL, reg_ex(1 << 13, 0, 0));  // more than the memory
  CASE(mlx5dv_devx_umem_reg_ex, EINVAL, reg_ex(std::uint64_t{1} << 60, 0, 0));
  CASE(mlx5dv_devx_umem_reg_ex, EBADF, reg_ex(4096, MLX5DV_UMEM_MASK_DMABUF, -1));
  CASE(mlx5dv_devx_umem_reg_ex, EBADF, reg_ex(4096, MLX5DV_UMEM_MASK_DMABUF, 12345));
  CASE(mlx5dv_devx_umem_reg_ex, EINVAL, reg_ex(4096, MLX5DV_UMEM_MASK_DMABUF, 0));  // no dma-buf
  CASE(mlx5dv_devx_umem_reg_ex, EOPNOTSUPP, reg_ex(4096, 1ull << 40, 0));
  CASE(mlx5dv_devx_umem_dereg, EINVAL, mlx5dv_devx_umem_dereg(q.umem));
  char blob[64] = {};
  CASE(mlx5dv_devx_umem_import, EOPNOTSUPP, of(mlx5dv_devx_umem_import(foreign(), blob)));

  const auto dmabuf = [](ibv_pd* pd, std::uint64_t iova, int fd, int vendor) {
    return of(mlx5dv_reg_dmabuf_mr(pd, 0, 4096, iova, fd, IBV_ACCESS_LOCAL_WRITE, vendor));
  };
  CASE(mlx5dv_reg_dmabuf_mr, EBADF, dmabuf(w->pd, 0, 12345, 0));
  CASE(mlx5dv_reg_dmabuf_mr, EINVAL, dmabuf(w->pd, 0, 0, 0));  // no dma-buf
  CASE(mlx5dv_reg_dmabuf_mr, EINVAL, dmabuf(w->pd, 8, 0, 0));
  CASE(mlx5dv_reg_dmabuf_mr, EINVAL, dmabuf(w->pd, 0, 0, 2));
  CASE(mlx5dv_reg_dmabuf_mr, EINVAL, dmabuf(w->pd, 0, 0, MLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT));
  CASE(mlx5dv_reg_dmabuf_mr, EOPNOTSUPP, dmabuf(&foreign.pd, 0, 0, 0));
  char path[64];
  CASE(mlx5dv_get_data_direct_sysfs_path, ENODEV, mlx5dv_get_data_direct_sysfs_path(w->context, path, sizeof path));
  CASE(mlx5dv_get_data_direct_sysfs_path, EOPNOTSUPP, mlx5dv_get_data_direct_sysfs_path(foreign(), path, 64));
}

}  // namespace

int main() {
  World w = open_devx();
  Foreign foreign;
  commands(&w, foreign);
  async_answers(&w, foreign);
  events(&w, foreign);
  memory(&w, foreign);
  close_world(&w);
  return finish();
}
