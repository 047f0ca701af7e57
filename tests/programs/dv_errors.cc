// Every errno that the manual pages of mlx5dv list, of the functions this library has: each case names the function and
// the errno, and tests/docs/test_man.py compares them with the pages.
//
//   dv_errors           all, with the default device; then itself again on devices that lack something:
//   dv_errors nodevx    without user contexts
//   dv_errors small     with few of everything
//   dv_errors oneport   without a bond
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <string>
#include <vector>

#include "dv_errors.h"

namespace {

void commands(World* w, Foreign& foreign) {
  using prm::Opcode;
  Queues q(w);
  const auto create = [](ibv_context* c, Mailbox m) {
    return refused(m.out, of(mlx5dv_devx_obj_create(c, m.in, m.length, m.out, sizeof m.out)));
  };
  const auto general = [](ibv_context* c, Mailbox m) {
    return refused(m.out, mlx5dv_devx_general_cmd(c, m.in, m.length, m.out, sizeof m.out));
  };
  const auto query = [](mlx5dv_devx_obj* o, Mailbox m) {
    return refused(m.out, mlx5dv_devx_obj_query(o, m.in, m.length, m.out, sizeof m.out));
  };
  const auto modify = [](mlx5dv_devx_obj* o, Mailbox m) {
    return refused(m.out, mlx5dv_devx_obj_modify(o, m.in, m.length, m.out, sizeof m.out));
  };
  const auto brief = [](Opcode opcode) {
    Mailbox m(opcode);
    m.length = 8;
    return m;
  };
  CASE(mlx5dv_devx_obj_create, EINVAL, create(w->context, Mailbox(Opcode::query_cq)));
  CASE(mlx5dv_devx_obj_create, EINVAL, create(w->context, brief(Opcode::alloc_pd)));
  CASE(mlx5dv_devx_obj_create, EREMOTEIO, create(w->context, Mailbox(Opcode::create_cq)));
  CASE(mlx5dv_devx_obj_create, EREMOTEIO, create(w->context, Mailbox(Opcode::create_dct)));
  CASE(mlx5dv_devx_obj_create, EOPNOTSUPP, create(foreign(), Mailbox(Opcode::create_cq)));
  CASE(mlx5dv_devx_general_cmd, EINVAL, general(w->context, Mailbox(Opcode::create_cq)));
  CASE(mlx5dv_devx_general_cmd, EREMOTEIO, general(w->context, Mailbox(Opcode::query_esw_functions)));
  CASE(mlx5dv_devx_general_cmd, EOPNOTSUPP, general(foreign(), Mailbox(Opcode::nop)));
  CASE(mlx5dv_devx_obj_query, EINVAL, query(q.cq, Mailbox(Opcode::query_cq, q.cqn + 1)));
  CASE(mlx5dv_devx_obj_query, EREMOTEIO, query(q.cq, Mailbox(Opcode::query_cq, q.cqn)));  // too long
  CASE(mlx5dv_devx_obj_modify, EINVAL, modify(q.cq, Mailbox(Opcode::query_cq, q.cqn)));
  CASE(mlx5dv_devx_obj_modify, EREMOTEIO, modify(q.qp, Mailbox(Opcode::rtr2rts_qp, q.qpn)));
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
  mlx5dv_devx_destroy_event_channel(channel);
  mlx5dv_devx_obj_unimport(gone);

  std::uint32_t eqn;
  CASE(mlx5dv_devx_query_eqn, ENOENT, mlx5dv_devx_query_eqn(w->context, 10000, &eqn));
  CASE(mlx5dv_devx_query_eqn, EOPNOTSUPP, mlx5dv_devx_query_eqn(foreign(), 0, &eqn));
  CASE(mlx5dv_devx_alloc_uar, EOPNOTSUPP, of(mlx5dv_devx_alloc_uar(w->context, 0x10)));
  CASE(mlx5dv_devx_uar_export_dmabuf_fd, EOPNOTSUPP, of_fd(mlx5dv_devx_uar_export_dmabuf_fd(q.uar)));
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
  CASE(mlx5dv_devx_obj_query_async, EINVAL, ask(q.qp, 0x110, done));
  mlx5dv_devx_cmd_comp none = {0};
  CASE(mlx5dv_devx_obj_query_async, EBADF, ask(q.cq, 0x110, &none));
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
  CASE(mlx5dv_devx_get_async_cmd_comp, EIO, mlx5dv_devx_get_async_cmd_comp(&other, head, sizeof room));
  close(pipe[0]);
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
  const int keep = dup(channel->fd), null = open("/dev/null", O_RDONLY);
  CHECK(dup2(null, channel->fd) >= 0);
  CASE(mlx5dv_devx_get_event, EIO, of_fd(mlx5dv_devx_get_event(channel, head, sizeof event)));
  CASE(mlx5dv_devx_subscribe_devx_event, EBADF, subscribe(channel, q.cq, 2, &comp));
  CHECK(dup2(keep, channel->fd) >= 0 && !close(keep) && !close(null));
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
  const auto reg_ex = [&](std::uint64_t pages, std::uint64_t mask, int fd) {
    in.addr = q.memory, in.size = 4096, in.access = write_access;
    in.pgsz_bitmap = pages, in.comp_mask = mask, in.dmabuf_fd = fd;
    mlx5dv_devx_umem* umem = mlx5dv_devx_umem_reg_ex(w->context, &in);
    return umem ? mlx5dv_devx_umem_dereg(umem) : errno;
  };
  CASE(mlx5dv_devx_umem_reg, EINVAL, reg(q.memory, 0, write_access));
  CASE(mlx5dv_devx_umem_reg, EINVAL, reg(q.memory, ~std::size_t{0} - 100, write_access));
  CASE(mlx5dv_devx_umem_reg, EINVAL, reg(q.memory, 64, 1u << 6));
  CASE(mlx5dv_devx_umem_reg, EINVAL, reg(q.memory, 64, IBV_ACCESS_REMOTE_WRITE));
  CASE(mlx5dv_devx_umem_reg, EFAULT, reg(nullptr, 64, write_access));
  void* constant = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CASE(mlx5dv_devx_umem_reg, EFAULT, reg(constant, 64, write_access));
  CHECK(!reg(constant, 64, 0));
  constexpr std::size_t huge = (std::size_t{4} << 30) + 8192;
  void* large = mmap(nullptr, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(large != MAP_FAILED);
  CASE(mlx5dv_devx_umem_reg, ENOMEM, reg(large, huge, write_access));
  munmap(large, huge);
  CASE(mlx5dv_devx_umem_reg, EOPNOTSUPP, of(mlx5dv_devx_umem_reg(foreign(), q.memory, 64, write_access)));
  CHECK(!reg_ex(~std::uint64_t{0}, 0, 0) && !reg_ex(1 << 21, 0, 0));
  CASE(mlx5dv_devx_umem_reg_ex, EINVAL, reg_ex(4095, 0, 0));
  CASE(mlx5dv_devx_umem_reg_ex, EINVAL, reg_ex(std::uint64_t{1} << 60, 0, 0));
  CASE(mlx5dv_devx_umem_reg_ex, EBADF, reg_ex(4096, MLX5DV_UMEM_MASK_DMABUF, -1));
  CASE(mlx5dv_devx_umem_reg_ex, EBADF, reg_ex(4096, MLX5DV_UMEM_MASK_DMABUF, 12345));
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

void device_memory(World* w, Foreign& foreign) {
  const auto alloc = [&](ibv_context* c, std::size_t length, std::uint32_t align, int type, std::uint64_t mask = 0) {
    ibv_alloc_dm_attr attr = {length, align, 0};
    mlx5dv_alloc_dm_attr kind = {static_cast<mlx5dv_alloc_dm_type>(type), mask};
    return mlx5dv_alloc_dm(c, &attr, &kind);
  };
  CASE(mlx5dv_alloc_dm, EINVAL, of(alloc(w->context, 0, 0, 0)));
  CASE(mlx5dv_alloc_dm, EINVAL, of(alloc(w->context, 1 << 20, 0, 0)));
  CASE(mlx5dv_alloc_dm, EINVAL, of(alloc(w->context, 64, 13, 0)));
  CASE(mlx5dv_alloc_dm, EINVAL, of(alloc(w->context, 64, 0, 0, 1)));
  CASE(mlx5dv_alloc_dm, EOPNOTSUPP, of(alloc(w->context, 64, 0, 9)));
  CASE(mlx5dv_alloc_dm, EOPNOTSUPP, of(alloc(foreign(), 64, 0, 0)));
  ibv_dm* all = alloc(w->context, 1 << 17, 0, 0);
  CHECK(all);
  CASE(mlx5dv_alloc_dm, ENOMEM, of(alloc(w->context, 64, 0, 0)));
  CASE(mlx5dv_dm_map_op_addr, EOPNOTSUPP, of(mlx5dv_dm_map_op_addr(all, 200)));
  ibv_context* other = ibv_import_device(dup(w->context->cmd_fd));
  ibv_dm* shadow = other ? ibv_import_dm(other, all->handle) : nullptr;
  CHECK(shadow && !ibv_free_dm(all));
  CASE(mlx5dv_dm_map_op_addr, ENOENT, of(mlx5dv_dm_map_op_addr(shadow, 0)));
  ibv_unimport_dm(shadow);
  CHECK(!ibv_close_device(other));
  // Without capabilities.
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct before[2], none[2] = {};
  CHECK(!syscall(SYS_capget, &header, before));
  none[0].permitted = before[0].permitted, none[1].permitted = before[1].permitted;
  CHECK(!syscall(SYS_capset, &header, none));
  CASE(mlx5dv_alloc_dm, EPERM, of(alloc(w->context, 64, 0, MLX5DV_DM_TYPE_STEERING_SW_ICM)));
  CHECK(!syscall(SYS_capset, &header, before));

  CASE(mlx5dv_alloc_var, EOPNOTSUPP, of(mlx5dv_alloc_var(w->context, 4)));
  CASE(mlx5dv_alloc_var, EOPNOTSUPP, of(mlx5dv_alloc_var(foreign(), 0)));
  CASE(mlx5dv_alloc_var, ENOSPC, [&] {
    std::vector<mlx5dv_var*> pages;
    while (mlx5dv_var* var = mlx5dv_alloc_var(w->context, 0)) pages.push_back(var);
    const int error = errno;
    for (mlx5dv_var* var : pages) mlx5dv_free_var(var);
    return error;
  }());
  char blob[64] = {};
  CASE(mlx5dv_var_import, EOPNOTSUPP, of(mlx5dv_var_import(foreign(), blob)));
}

void queues(World* w, Foreign& foreign) {
  ibv_cq_init_attr_ex attr = {};
  mlx5dv_cq_init_attr vendor = {};
  const auto cq = [&](ibv_context* c) {
    ibv_cq_ex* made = mlx5dv_create_cq(c, &attr, &vendor);
    return made ? ibv_destroy_cq(ibv_cq_ex_to_cq(made)) : errno;
  };
  CASE(mlx5dv_create_cq, EINVAL, cq(w->context));  // no entries
  attr.cqe = 1 << 24;
  CASE(mlx5dv_create_cq, EINVAL, cq(w->context));
  attr.cqe = 16;
  CHECK(!cq(w->context));
  CASE(mlx5dv_create_cq, EOPNOTSUPP, cq(foreign()));
  vendor.comp_mask = 1ull << 40;
  CASE(mlx5dv_create_cq, EINVAL, cq(w->context));
  vendor.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE;
  vendor.cqe_size = 32;
  CASE(mlx5dv_create_cq, EINVAL, cq(w->context));
  vendor.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE;
  vendor.cqe_comp_res_format = 1;
  CASE(mlx5dv_create_cq, EINVAL, cq(w->context));
  vendor = {};
  attr.wc_flags = 1ull << 40;
  CASE(mlx5dv_create_cq, ENOTSUP, cq(w->context));

  ibv_cq* plain = ibv_create_cq(w->context, 16, nullptr, nullptr, 0);
  CHECK(plain);
  ibv_qp_init_attr_ex init = {};
  mlx5dv_qp_init_attr special = {};
  const auto qp = [&](ibv_context* c) {
    ibv_qp* made = mlx5dv_create_qp(c, &init, &special);
    return made ? ibv_destroy_qp(made) : errno;
  };
  init.qp_type = IBV_QPT_RC;
  init.send_cq = init.recv_cq = plain;
  init.cap = {1, 1, 1, 1, 0};
  CASE(mlx5dv_create_qp, EINVAL, qp(w->context));  // no PD
  init.comp_mask = IBV_QP_INIT_ATTR_PD;
  init.pd = w->pd;
  CHECK(!qp(w->context));
  CASE(mlx5dv_create_qp, EOPNOTSUPP, qp(foreign()));
  special.comp_mask = 1ull << 40;
  CASE(mlx5dv_create_qp, EINVAL, qp(w->context));
  special.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
  special.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE | MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE;
  CASE(mlx5dv_create_qp, EINVAL, qp(w->context));
  special.create_flags = MLX5DV_QP_CREATE_SIG_PIPELINING;
  CASE(mlx5dv_create_qp, EOPNOTSUPP, qp(w->context));
  special = {};
  init.cap.max_send_sge = 1000;
  CASE(mlx5dv_create_qp, EINVAL, qp(w->context));
  init.cap.max_send_sge = 1;
  init.qp_type = IBV_QPT_DRIVER;
  CASE(mlx5dv_create_qp, EOPNOTSUPP, qp(w->context));
  init.qp_type = static_cast<ibv_qp_type>(99);
  CASE(mlx5dv_create_qp, EINVAL, qp(w->context));
  CHECK(!ibv_destroy_cq(plain));
}

// A QP, CQ, SRQ of the verbs: raw commands on them, and the calls that are one command.
void verbs_objects(World* w, Foreign& foreign) {
  using prm::Opcode;
  ibv_cq* cq = ibv_create_cq(w->context, 16, nullptr, nullptr, 0);
  ibv_srq_init_attr srq_init = {};
  srq_init.attr.max_wr = srq_init.attr.max_sge = 1;
  ibv_srq* srq = ibv_create_srq(w->pd, &srq_init);
  CHECK(cq && srq);
  ibv_qp* qp = make_qp(w, IBV_QPT_RC, cq, cq, nullptr);
  ibv_qp* uc = make_qp(w, IBV_QPT_UC, cq, cq, nullptr);
  ibv_qp strange_qp = *qp;
  ibv_cq strange_cq = *cq;
  ibv_srq strange_srq = *srq;
  ibv_wq strange_wq = {};
  ibv_rwq_ind_table strange_table = {};
  strange_qp.context = strange_cq.context = strange_srq.context = strange_wq.context = strange_table.context = foreign();
  mlx5dv_cq cq_view = {};
  mlx5dv_obj view = {};
  CHECK((view.cq = {cq, &cq_view}, !mlx5dv_init_obj(&view, MLX5DV_OBJ_CQ)));
  const auto call = [](auto function, auto* object, Mailbox m) {
    return refused(m.out, function(object, m.in, m.length, m.out, sizeof m.out));
  };
  CASE(mlx5dv_devx_qp_query, EINVAL, call(mlx5dv_devx_qp_query, qp, Mailbox(Opcode::query_cq, qp->qp_num)));
  CASE(mlx5dv_devx_qp_query, EREMOTEIO, call(mlx5dv_devx_qp_query, qp, Mailbox(Opcode::query_qp, qp->qp_num)));
  CASE(mlx5dv_devx_qp_query, EOPNOTSUPP, call(mlx5dv_devx_qp_query, &strange_qp, Mailbox(Opcode::query_qp)));
  CASE(mlx5dv_devx_qp_modify, EINVAL, call(mlx5dv_devx_qp_modify, qp, Mailbox(Opcode::qp_2err, qp->qp_num + 1)));
  CASE(mlx5dv_devx_qp_modify, EREMOTEIO, call(mlx5dv_devx_qp_modify, qp, Mailbox(Opcode::rtr2rts_qp, qp->qp_num)));
  CASE(mlx5dv_devx_qp_modify, EOPNOTSUPP, call(mlx5dv_devx_qp_modify, &strange_qp, Mailbox(Opcode::qp_2err)));
  CASE(mlx5dv_devx_cq_query, EINVAL, call(mlx5dv_devx_cq_query, cq, Mailbox(Opcode::query_cq, cq_view.cqn + 1)));
  CASE(mlx5dv_devx_cq_query, EREMOTEIO, call(mlx5dv_devx_cq_query, cq, Mailbox(Opcode::query_cq, cq_view.cqn)));
  CASE(mlx5dv_devx_cq_query, EOPNOTSUPP, call(mlx5dv_devx_cq_query, &strange_cq, Mailbox(Opcode::query_cq)));
  CASE(mlx5dv_devx_cq_modify, EINVAL, call(mlx5dv_devx_cq_modify, cq, Mailbox(Opcode::query_cq, cq_view.cqn)));
  CASE(mlx5dv_devx_cq_modify, EREMOTEIO, [&] {
    Mailbox m(Opcode::modify_cq, cq_view.cqn);
    m.length = 0x20;
    return call(mlx5dv_devx_cq_modify, cq, m);
  }());
  CASE(mlx5dv_devx_cq_modify, EOPNOTSUPP, call(mlx5dv_devx_cq_modify, &strange_cq, Mailbox(Opcode::modify_cq)));
  CASE(mlx5dv_devx_srq_query, EINVAL, call(mlx5dv_devx_srq_query, srq, Mailbox(Opcode::query_srq, 0xffffff)));
  CASE(mlx5dv_devx_srq_query, EOPNOTSUPP, call(mlx5dv_devx_srq_query, &strange_srq, Mailbox(Opcode::query_srq)));
  CASE(mlx5dv_devx_srq_modify, EINVAL, call(mlx5dv_devx_srq_modify, srq, Mailbox(Opcode::arm_rq)));
  CASE(mlx5dv_devx_srq_modify, EOPNOTSUPP, call(mlx5dv_devx_srq_modify, &strange_srq, Mailbox(Opcode::arm_rq)));
  {
    WorkQueue own(*w, cq);
    const std::uint32_t rqn = own.wq->wq_num, rqtn = static_cast<std::uint32_t>(own.table->ind_tbl_num);
    CASE(mlx5dv_devx_wq_query, EINVAL, call(mlx5dv_devx_wq_query, own.wq, Mailbox(Opcode::query_rq, rqn + 1)));
    CASE(mlx5dv_devx_wq_query, EREMOTEIO, call(mlx5dv_devx_wq_query, own.wq, Mailbox(Opcode::query_rq, rqn)));
    CASE(mlx5dv_devx_wq_modify, EINVAL, call(mlx5dv_devx_wq_modify, own.wq, Mailbox(Opcode::query_rq, rqn)));
    CASE(mlx5dv_devx_ind_tbl_query, EINVAL, call(mlx5dv_devx_ind_tbl_query, own.table, Mailbox(Opcode::query_rq, rqtn)));
    CASE(mlx5dv_devx_ind_tbl_modify, EINVAL, call(mlx5dv_devx_ind_tbl_modify, own.table, Mailbox(Opcode::query_rqt, rqtn)));
    CASE(mlx5dv_create_wq, EINVAL, own.striding(MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ, 6));
    CASE(mlx5dv_create_wq, EINVAL, own.striding(2, 0));
    CASE(mlx5dv_create_wq, EOPNOTSUPP, of(mlx5dv_create_wq(foreign(), &own.init, nullptr)));
  }
  CASE(mlx5dv_devx_wq_query, EOPNOTSUPP, call(mlx5dv_devx_wq_query, &strange_wq, Mailbox(Opcode::query_rq)));
  CASE(mlx5dv_devx_wq_modify, EOPNOTSUPP, call(mlx5dv_devx_wq_modify, &strange_wq, Mailbox(Opcode::modify_rq)));
  CASE(mlx5dv_devx_ind_tbl_query, EOPNOTSUPP,
       call(mlx5dv_devx_ind_tbl_query, &strange_table, Mailbox(Opcode::query_rqt)));
  CASE(mlx5dv_devx_ind_tbl_modify, EOPNOTSUPP,
       call(mlx5dv_devx_ind_tbl_modify, &strange_table, Mailbox(Opcode::modify_rqt)));

  std::uint8_t port = 0, active = 0;
  CASE(mlx5dv_modify_qp_udp_sport, EOPNOTSUPP, mlx5dv_modify_qp_udp_sport(qp, 50000));  // not in RTS
  CASE(mlx5dv_modify_qp_udp_sport, EOPNOTSUPP, mlx5dv_modify_qp_udp_sport(&strange_qp, 50000));
  CASE(mlx5dv_query_qp_lag_port, EOPNOTSUPP, mlx5dv_query_qp_lag_port(qp, &port, &active));  // has none yet
  CASE(mlx5dv_modify_qp_lag_port, EOPNOTSUPP, mlx5dv_modify_qp_lag_port(qp, 1));
  CASE(mlx5dv_query_qp_lag_port, EOPNOTSUPP, mlx5dv_query_qp_lag_port(&strange_qp, &port, &active));
  CASE(mlx5dv_modify_qp_sched_elem, EOPNOTSUPP, mlx5dv_modify_qp_sched_elem(qp, nullptr, nullptr));  // in RESET
  connect_qp(w, qp, qp->qp_num);
  CHECK(!mlx5dv_query_qp_lag_port(qp, &port, &active));
  CASE(mlx5dv_modify_qp_lag_port, EINVAL, mlx5dv_modify_qp_lag_port(qp, 3));
  mlx5dv_sched_attr root = {};
  mlx5dv_sched_node* node = mlx5dv_sched_node_create(w->context, &root);
  mlx5dv_sched_attr under = {};
  under.parent = node;
  mlx5dv_sched_leaf* leaf = mlx5dv_sched_leaf_create(w->context, &under);
  CHECK(node && leaf);
  CASE(mlx5dv_modify_qp_sched_elem, EINVAL, mlx5dv_modify_qp_sched_elem(uc, nullptr, leaf));
  CHECK(!mlx5dv_sched_leaf_destroy(leaf) && !mlx5dv_sched_node_destroy(node));

  ibv_ah_attr to = {};
  to.port_num = 1;
  to.is_global = 1;
  to.grh.dgid = w->gid;
  to.grh.sgid_index = static_cast<std::uint8_t>(w->gid_index);
  ibv_ah* ah = ibv_create_ah(w->pd, &to);
  CHECK(ah);
  CASE(mlx5dv_map_ah_to_qp, EINVAL, mlx5dv_map_ah_to_qp(ah, 0xfffff0));
  ibv_ah strange_ah = *ah;
  strange_ah.context = foreign();
  CASE(mlx5dv_map_ah_to_qp, EOPNOTSUPP, mlx5dv_map_ah_to_qp(&strange_ah, qp->qp_num));
  mlx5dv_qp qp_view = {};
  view.qp = {&strange_qp, &qp_view};
  CASE(mlx5dv_init_obj, EOPNOTSUPP, mlx5dv_init_obj(&view, MLX5DV_OBJ_QP));
  CASE(mlx5dv_init_obj, EOPNOTSUPP, mlx5dv_init_obj(&view, 0));
  CHECK(!ibv_destroy_ah(ah) && !ibv_destroy_qp(qp) && !ibv_destroy_qp(uc) && !ibv_destroy_srq(srq) && !ibv_destroy_cq(cq));
}

void device(World* w, Foreign& foreign) {
  ibv_device* nic = w->context->device;
  mlx5dv_context_attr attr = {};
  attr.flags = 1u << 30;
  CASE(mlx5dv_open_device, EINVAL, of(mlx5dv_open_device(nic, &attr)));
  attr.flags = 0;
  attr.comp_mask = 1ull << 40;
  CASE(mlx5dv_open_device, EINVAL, of(mlx5dv_open_device(nic, &attr)));
  CASE(mlx5dv_open_device, EOPNOTSUPP, of(mlx5dv_open_device(&foreign.device.device, &attr)));
  mlx5dv_context out = {};
  CASE(mlx5dv_query_device, EOPNOTSUPP, mlx5dv_query_device(foreign(), &out));
  mlx5dv_port port = {};
  CASE(mlx5dv_query_port, EINVAL, mlx5dv_query_port(w->context, 2, &port));
  CASE(mlx5dv_query_port, EOPNOTSUPP, mlx5dv_query_port(foreign(), 1, &port));
  mlx5dv_clock_info clock;
  CASE(mlx5dv_get_clock_info, EOPNOTSUPP, mlx5dv_get_clock_info(foreign(), &clock));
  CASE(mlx5dv_set_context_attr, ENOTSUP,
       mlx5dv_set_context_attr(w->context, static_cast<mlx5dv_set_ctx_attr_type>(99), nullptr));
  CASE(mlx5dv_set_context_attr, EOPNOTSUPP,
       mlx5dv_set_context_attr(foreign(), MLX5DV_CTX_ATTR_BUF_ALLOCATORS, nullptr));
  std::uint32_t qpn;
  CASE(mlx5dv_reserved_qpn_alloc, EOPNOTSUPP, mlx5dv_reserved_qpn_alloc(foreign(), &qpn));
  CASE(mlx5dv_reserved_qpn_dealloc, EINVAL, mlx5dv_reserved_qpn_dealloc(w->context, 0xfffff0));
}

void rates(World* w, Foreign& foreign) {
  alignas(8) std::byte contents[64] = {};
  const auto pp = [&](ibv_context* c, std::uint32_t kbps, std::uint32_t flags, std::size_t length) {
    store_be32(contents, kbps);
    return mlx5dv_pp_alloc(c, length, contents, flags);
  };
  CASE(mlx5dv_pp_alloc, EOPNOTSUPP, of(pp(w->context, 100, 2, 48)));
  CASE(mlx5dv_pp_alloc, EOPNOTSUPP, of(pp(foreign(), 100, 0, 48)));
  CASE(mlx5dv_pp_alloc, EINVAL, of(pp(w->context, 0, 0, 48)));
  CASE(mlx5dv_pp_alloc, EINVAL, of(pp(w->context, 100, 0, 49)));
  CASE(mlx5dv_pp_alloc, EINVAL, of(pp(w->context, 100, 0, 0)));
  CASE(mlx5dv_pp_alloc, ENOSPC, [&] {
    std::vector<mlx5dv_pp*> all;
    while (mlx5dv_pp* one = pp(w->context, 100, 1, 48)) all.push_back(one);
    const int error = errno;
    for (mlx5dv_pp* one : all) mlx5dv_pp_free(one);
    return error;
  }());
  mlx5dv_sched_attr attr = {};
  mlx5dv_sched_node* root = mlx5dv_sched_node_create(w->context, &attr);
  attr.parent = root;
  mlx5dv_sched_leaf* leaf = mlx5dv_sched_leaf_create(w->context, &attr);
  CHECK(root && leaf);
  CASE(mlx5dv_sched_node_destroy, EINVAL, mlx5dv_sched_node_destroy(root));
  CASE(mlx5dv_sched_node_create, EINVAL, of(mlx5dv_sched_node_create(w->context, nullptr)));
  CASE(mlx5dv_sched_node_create, EOPNOTSUPP, of(mlx5dv_sched_node_create(foreign(), &attr)));
  CASE(mlx5dv_sched_leaf_create, EOPNOTSUPP, of(mlx5dv_sched_leaf_create(foreign(), &attr)));
  CASE(mlx5dv_sched_leaf_create, EAGAIN, [&] {
    std::vector<mlx5dv_sched_leaf*> all;
    while (mlx5dv_sched_leaf* one = mlx5dv_sched_leaf_create(w->context, &attr)) all.push_back(one);
    const int error = errno;
    for (mlx5dv_sched_leaf* one : all) CHECK(!mlx5dv_sched_leaf_destroy(one));
    return error;
  }());
  attr.flags = MLX5DV_SCHED_ELEM_ATTR_FLAGS_BW_SHARE;
  attr.bw_share = 101;
  CASE(mlx5dv_sched_leaf_modify, EINVAL, mlx5dv_sched_leaf_modify(leaf, &attr));
  attr.comp_mask = 1;
  CASE(mlx5dv_sched_leaf_create, EINVAL, of(mlx5dv_sched_leaf_create(w->context, &attr)));
  CASE(mlx5dv_sched_node_modify, EINVAL, mlx5dv_sched_node_modify(root, &attr));
  CHECK(!mlx5dv_sched_leaf_destroy(leaf) && !mlx5dv_sched_node_destroy(root));
}

void whole_device() {
  World w = open_devx();
  Foreign foreign;
  commands(&w, foreign);
  async_answers(&w, foreign);
  events(&w, foreign);
  memory(&w, foreign);
  device_memory(&w, foreign);
  queues(&w, foreign);
  verbs_objects(&w, foreign);
  device(&w, foreign);
  rates(&w, foreign);
  close_world(&w);
}

void without_devx() {
  World w = open_world();
  mlx5dv_context_attr attr = {};
  attr.flags = MLX5DV_CONTEXT_FLAGS_DEVX;
  CASE(mlx5dv_open_device, EINVAL, of(mlx5dv_open_device(w.context->device, &attr)));
  Mailbox m(prm::Opcode::alloc_pd);
  CASE(mlx5dv_devx_obj_create, EINVAL, of(mlx5dv_devx_obj_create(w.context, m.in, 16, m.out, 16)));
  char page[4096] = {};
  CASE(mlx5dv_devx_umem_reg, EINVAL, of(mlx5dv_devx_umem_reg(w.context, page, 64, IBV_ACCESS_LOCAL_WRITE)));
  alignas(8) std::byte contents[48] = {};
  store_be32(contents, 100);
  CASE(mlx5dv_pp_alloc, EINVAL, of(mlx5dv_pp_alloc(w.context, sizeof contents, contents, 0)));
  ibv_cq* cq = ibv_create_cq(w.context, 16, nullptr, nullptr, 0);
  ibv_qp* qp = make_qp(&w, IBV_QPT_RC, cq, cq, nullptr);
  connect_qp(&w, qp, qp->qp_num);
  CASE(mlx5dv_modify_qp_udp_sport, EINVAL, mlx5dv_modify_qp_udp_sport(qp, 50000));
  CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
  close_world(&w);
}

void small_device() {
  World w = open_devx();
  mlx5dv_context_attr attr = {};
  attr.flags = MLX5DV_CONTEXT_FLAGS_DEVX;
  CASE(mlx5dv_open_device, ENOMEM, [&] {
    std::vector<ibv_context*> all;
    while (ibv_context* one = all.size() < 64 ? mlx5dv_open_device(w.context->device, &attr) : nullptr) all.push_back(one);
    const int error = errno;
    for (ibv_context* one : all) CHECK(!ibv_close_device(one));
    return error;
  }());
  alignas(4096) static char memory[4096];
  CASE(mlx5dv_devx_umem_reg, ENOMEM, [&] {
    std::vector<mlx5dv_devx_umem*> all;
    while (auto* one = all.size() < 64 ? mlx5dv_devx_umem_reg(w.context, memory, 64, IBV_ACCESS_LOCAL_WRITE) : nullptr)
      all.push_back(one);
    const int error = errno;
    for (mlx5dv_devx_umem* one : all) CHECK(!mlx5dv_devx_umem_dereg(one));
    return error;
  }());
  CASE(mlx5dv_devx_alloc_uar, EAGAIN, [&] {
    std::vector<mlx5dv_devx_uar*> all;
    while (auto* one = all.size() < 256 ? mlx5dv_devx_alloc_uar(w.context, MLX5DV_UAR_ALLOC_TYPE_NC_DEDICATED) : nullptr)
      all.push_back(one);
    const int error = errno;
    for (mlx5dv_devx_uar* one : all) mlx5dv_devx_free_uar(one);
    return error;
  }());
  close_world(&w);
}

void one_port() {
  World w = open_world();
  ibv_cq* cq = ibv_create_cq(w.context, 16, nullptr, nullptr, 0);
  ibv_qp* qp = make_qp(&w, IBV_QPT_RC, cq, cq, nullptr);
  connect_qp(&w, qp, qp->qp_num);
  std::uint8_t port, active;
  CASE(mlx5dv_query_qp_lag_port, EOPNOTSUPP, mlx5dv_query_qp_lag_port(qp, &port, &active));
  CASE(mlx5dv_modify_qp_lag_port, EOPNOTSUPP, mlx5dv_modify_qp_lag_port(qp, 1));
  CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
  close_world(&w);
}

// This program again, on a virtual host of its own with another device.
void again(const char* mode, const char* profile) {
  char path[] = "/tmp/verbena-profile-XXXXXX";
  const int fd = mkstemp(path);
  CHECK(fd >= 0 && write(fd, profile, std::strlen(profile)) == static_cast<ssize_t>(std::strlen(profile)));
  const pid_t child = fork();
  CHECK(child >= 0);
  if (!child) {
    setenv("VERBENA_PROFILE", path, 1);
    setenv("VERBENA_HOST", mode, 1);
    execl("/proc/self/exe", "dv_errors", mode, nullptr);
    _exit(127);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: status %#x", mode, status);
  close(fd);
  unlink(path);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "nodevx") {
    without_devx();
  } else if (mode == "small") {
    small_device();
  } else if (mode == "oneport") {
    one_port();
  } else {
    again("nodevx", "[limits]\nlog_max_uctx = 0\n");
    again("small", "[limits]\nlog_max_uctx = 2\nlog_max_umem = 3\nmax_uar = 16\n");
    again("oneport", "[link]\nports = 1\nlag = false\n");
    whole_device();
  }
  std::printf("%s%s%d cases\n", mode.c_str(), mode.empty() ? "" : ": ", cases);
  if (failures) return 1;
  if (mode.empty()) puts("ok");
  return 0;
}
