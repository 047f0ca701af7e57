// The specialised calls where they end: on raw packet and XRC queue pairs, on memory whose pages are chosen, on ports.
// (What devices without user contexts say is in dv_errors.)
#include <fcntl.h>
#include <sys/mman.h>

#include <memory>

#include "ethernet.h"
#include "prm/general_object.h"
#include "prm/srq.h"
#include "xrc.h"

namespace {

mlx5dv_sched_attr under(mlx5dv_sched_node* parent, std::uint32_t mbit) {
  mlx5dv_sched_attr attr = {};
  attr.parent = parent;
  attr.flags = mbit ? MLX5DV_SCHED_ELEM_ATTR_FLAGS_MAX_AVG_BW : 0;
  attr.max_avg_bw = mbit;
  return attr;
}
mlx5dv_sched_leaf* make_leaf(World* w, mlx5dv_sched_node* root, std::uint32_t mbit) {
  const auto attr = under(root, mbit);
  mlx5dv_sched_leaf* leaf = mlx5dv_sched_leaf_create(w->context, &attr);
  CHECK(leaf);
  return leaf;
}
mlx5dv_sched_node* make_root(World* w) {
  const auto attr = under(nullptr, 0);
  mlx5dv_sched_node* root = mlx5dv_sched_node_create(w->context, &attr);
  CHECK(root);
  return root;
}

constexpr int kFrames = 150;
constexpr std::size_t kFrameBytes = 200;
constexpr double kAheadMs = 6;  // a limit holds on average: a pause earns 5 ms
double expected_ms(std::uint32_t mbit) { return (kFrames - 1) * kFrameBytes * 8.0 / (mbit * 1000.0) - kAheadMs; }
double run(Side& side) {
  const auto frame = make_frame(kOther, 1, 1000, kFrameBytes);
  const double begin = now_ms();
  for (int i = 0; i < kFrames; ++i) CHECK(!side.send(frame));
  return now_ms() - begin;
}
// Whether what nothing holds back takes less than so long: a busy machine may be slow at times, but not always.
bool faster_than(double ms, Side& side) {
  for (int i = 0; i < 20; ++i)
    if (run(side) < ms) return true;
  return false;
}

// The send queue of a raw packet QP under a leaf, its rates while it works, and what hangs on what.
void frames_under_a_leaf() {
  Side side;
  mlx5dv_sched_node* root = make_root(&side.w);
  mlx5dv_sched_leaf *slow = make_leaf(&side.w, root, 5), *other = make_leaf(&side.w, root, 10);
  CHECK(mlx5dv_modify_qp_sched_elem(side.qp, nullptr, slow) == EINVAL);  // frames have no responses
  CHECK(mlx5dv_modify_qp_sched_elem(side.qp, slow, slow) == EINVAL);
  CHECK(faster_than(expected_ms(5), side));
  CHECK(!mlx5dv_modify_qp_sched_elem(side.qp, slow, nullptr));
  const double took = run(side);
  EXPECT(took >= expected_ms(5), "%.1f ms", took);
  CHECK(mlx5dv_sched_leaf_destroy(slow) == EINVAL);
  CHECK(!mlx5dv_modify_qp_sched_elem(side.qp, other, nullptr));
  const double then = run(side);
  EXPECT(then >= expected_ms(10), "%.1f ms", then);
  CHECK(faster_than(expected_ms(5), side));
  CHECK(!mlx5dv_sched_leaf_destroy(slow));
  CHECK(!mlx5dv_modify_qp_sched_elem(side.qp, nullptr, nullptr));
  CHECK(faster_than(expected_ms(10), side));
  CHECK(!mlx5dv_sched_leaf_destroy(other));

  // States, and leaves of another context.
  ibv_qp* fresh = side.make();
  mlx5dv_sched_leaf* leaf = make_leaf(&side.w, root, 5);
  CHECK(mlx5dv_modify_qp_sched_elem(fresh, leaf, nullptr) == EOPNOTSUPP);
  ibv_qp_attr attr = {};
  attr.port_num = 1;
  CHECK(!go(fresh, IBV_QPS_INIT, attr, IBV_QP_PORT));
  CHECK(mlx5dv_modify_qp_sched_elem(fresh, leaf, nullptr) == EOPNOTSUPP);  // INIT will do for others only
  CHECK(mlx5dv_modify_qp_sched_elem(fresh, leaf, leaf) == EINVAL);
  World foreign = open_devx();
  mlx5dv_sched_node* their_root = make_root(&foreign);
  mlx5dv_sched_leaf* theirs = make_leaf(&foreign, their_root, 5);
  CHECK(mlx5dv_modify_qp_sched_elem(side.qp, theirs, nullptr) == EINVAL);
  CHECK(!mlx5dv_sched_leaf_destroy(theirs) && !mlx5dv_sched_node_destroy(their_root));
  close_world(&foreign);
  // What dies takes its leaf off.
  CHECK(!go(fresh, IBV_QPS_RTR, attr, 0) && !go(fresh, IBV_QPS_RTS, attr, 0));
  CHECK(!mlx5dv_modify_qp_sched_elem(fresh, leaf, nullptr) && mlx5dv_sched_leaf_destroy(leaf) == EINVAL);
  CHECK(!ibv_destroy_qp(fresh) && !mlx5dv_sched_leaf_destroy(leaf) && !mlx5dv_sched_node_destroy(root));
}

// The port of a bond that frames leave by is that of the TIS.
void lag_port_of_frames() {
  Side side;
  std::uint8_t port = 9, active = 9;
  ibv_qp* fresh = side.make();
  CHECK(mlx5dv_query_qp_lag_port(fresh, &port, &active) == EOPNOTSUPP && mlx5dv_modify_qp_lag_port(fresh, 1) == EOPNOTSUPP);
  Side::to_rts(fresh);
  CHECK(!mlx5dv_query_qp_lag_port(fresh, &port, &active));
  for (const std::uint8_t wanted : {2, 1, 2}) {
    CHECK(!mlx5dv_modify_qp_lag_port(fresh, wanted));
    CHECK(!mlx5dv_query_qp_lag_port(fresh, &port, &active) && port == wanted && active == wanted);
  }
  for (const std::uint8_t wanted : {3, 15}) CHECK(mlx5dv_modify_qp_lag_port(fresh, wanted) == EINVAL);
  CHECK(!mlx5dv_query_qp_lag_port(fresh, &port, &active) && port == 2);
  // 0: as the bond likes. Then there is no port to ask for, hence none to change.
  CHECK(!mlx5dv_modify_qp_lag_port(fresh, 0));
  CHECK(mlx5dv_query_qp_lag_port(fresh, &port, &active) == EOPNOTSUPP && port == 0);
  CHECK(mlx5dv_modify_qp_lag_port(fresh, 1) == EOPNOTSUPP);
  CHECK(!ibv_destroy_qp(fresh));
}

// The port of an XRC initiator can be asked for, not changed.
void lag_port_of_xrc(World* w) {
  ibv_xrcd* xrcd = open_xrcd(w);
  ibv_cq* cq = ibv_create_cq(w->context, 16, nullptr, nullptr, 0);
  CHECK(cq);
  ibv_qp *sender = make_xrc_initiator(w, cq, 4), *target = make_xrc_target(w, xrcd);
  std::uint8_t port = 0, active = 0;
  CHECK(mlx5dv_query_qp_lag_port(sender, &port, &active) == EOPNOTSUPP);  // has none yet
  connect_qp(w, target, sender->qp_num);
  connect_qp(w, sender, target->qp_num);
  CHECK(!mlx5dv_query_qp_lag_port(sender, &port, &active) && (port == 1 || port == 2) && active == port);
  const std::uint8_t before = port;
  for (const std::uint8_t wanted : {0, 1, 2, 3}) CHECK(mlx5dv_modify_qp_lag_port(sender, wanted) == EOPNOTSUPP);
  CHECK(!mlx5dv_query_qp_lag_port(sender, &port, &active) && port == before);
  CHECK(mlx5dv_query_qp_lag_port(target, &port, &active) == EOPNOTSUPP);
  CHECK(mlx5dv_modify_qp_lag_port(target, 1) == EOPNOTSUPP);
  CHECK(mlx5dv_modify_qp_sched_elem(sender, nullptr, nullptr) == EOPNOTSUPP);
  CHECK(!ibv_destroy_qp(sender) && !ibv_destroy_qp(target) && !ibv_close_xrcd(xrcd) && !ibv_destroy_cq(cq));
}

// Page sizes of a UMEM: none greater than the memory is of use, and what is left decides how many pages there are.
void pages_of_a_umem(World* w) {
  constexpr std::size_t kLarge = 2u << 20, kHuge = std::size_t{8} << 30;  // 2 Mi pages of 4 KiB: too many
  char* room = static_cast<char*>(mmap(nullptr, kHuge + kLarge, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  CHECK(room != MAP_FAILED);
  char* aligned = room + (-reinterpret_cast<std::uintptr_t>(room) & (kLarge - 1));
  const auto reg = [&](char* at, std::size_t bytes, std::uint64_t pages) {
    mlx5dv_devx_umem_in in = {};
    in.addr = at, in.size = bytes, in.access = IBV_ACCESS_LOCAL_WRITE, in.pgsz_bitmap = pages;
    mlx5dv_devx_umem* umem = mlx5dv_devx_umem_reg_ex(w->context, &in);
    return umem ? mlx5dv_devx_umem_dereg(umem) : errno;
  };
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  CHECK(!reg(aligned, 4096, kAll) && !reg(aligned + 64, 64, 4096) && !reg(aligned, 1, 4096));
  CHECK(reg(aligned, 4096, 1 << 13) == EINVAL && reg(aligned, 4096, kLarge) == EINVAL);
  CHECK(reg(aligned, 4096, 2048) == EINVAL && reg(aligned, 4096, 0) == EINVAL);
  CHECK(reg(aligned, 4096, std::uint64_t{1} << 60) == EINVAL);
  // The next power of two is still of use.
  CHECK(!reg(aligned, 4097, 1 << 13) && reg(aligned, 4097, 1 << 14) == EINVAL);
  CHECK(!reg(aligned, kLarge, kLarge) && !reg(aligned + 4096, kLarge, kLarge) && !reg(aligned + 1, kLarge, kLarge));
  CHECK(reg(aligned, kLarge / 2, kLarge) == EINVAL);
  CHECK(reg(aligned, kHuge, 4096) == ENOMEM && !reg(aligned, kHuge, 4096 | kLarge) && !reg(aligned, kHuge, kAll));
  CHECK(reg(aligned, kHuge - 4096, kAll) == ENOMEM);  // not whole pages of any other size
  mlx5dv_devx_umem* plain = mlx5dv_devx_umem_reg(w->context, aligned, kHuge, IBV_ACCESS_LOCAL_WRITE);
  CHECK(plain && !mlx5dv_devx_umem_dereg(plain));
  CHECK(!munmap(room, kHuge + kLarge));
}

// A queue in a UMEM of large pages is where it is.
void queue_in_large_pages(World* w) {
  constexpr std::size_t kLarge = 2u << 20;
  char* room = static_cast<char*>(std::aligned_alloc(kLarge, kLarge));
  std::memset(room, 0xff, kLarge);
  mlx5dv_devx_umem_in in = {};
  in.addr = room, in.size = kLarge, in.access = IBV_ACCESS_LOCAL_WRITE, in.pgsz_bitmap = kLarge | 4096;
  mlx5dv_devx_umem* umem = mlx5dv_devx_umem_reg_ex(w->context, &in);
  mlx5dv_devx_uar* uar = mlx5dv_devx_alloc_uar(w->context, MLX5DV_UAR_ALLOC_TYPE_NC);
  std::uint32_t eqn = 0;
  CHECK(umem && uar && !mlx5dv_devx_query_eqn(w->context, 0, &eqn));
  CreateCq create(prm::Opcode::create_cq);
  create.in.set<prm::CreateCqIn::cq_umem_id>(umem->umem_id).set<prm::CreateCqIn::cq_umem_offset>(kLarge - 8192);
  const auto cqc = create.in.sub<prm::CreateCqIn::cq_context>();
  cqc.set<prm::Cqc::log_cq_size>(6).set<prm::Cqc::uar_page>(uar->page_id).set<prm::Cqc::c_eqn_or_apu_element>(eqn);
  cqc.set<prm::Cqc::dbr_umem_id>(umem->umem_id).set<prm::Cqc::dbr_addr>(kLarge - 64);
  mlx5dv_devx_obj* cq = create.create(w->context);
  CHECK(cq);
  create.in.set<prm::CreateCqIn::cq_umem_offset>(kLarge - 2048);  // 64 entries need twice as much
  CHECK(!create.create(w->context) && errno == EREMOTEIO && create.syndrome());
  CHECK(!mlx5dv_devx_obj_destroy(cq) && !mlx5dv_devx_umem_dereg(umem));
  mlx5dv_devx_free_uar(uar);
  std::free(room);
}

// What has page lists only is no program's.
void srq_by_pages(World* w) {
  prm::Box<prm::CreateSrqIn, 8> in;
  prm::Box<prm::CreateSrqOut> out;
  in.set<prm::CreateSrqIn::opcode>(prm::Opcode::create_srq);
  alignas(4096) static char page[4096];
  const auto srqc = in.sub<prm::CreateSrqIn::srq_context_entry>();
  srqc.set<prm::Srqc::log_srq_size>(5).set<prm::Srqc::log_rq_stride>(1).set<prm::Srqc::pd>(pd_number(w->pd));
  srqc.set<prm::Srqc::dbr_addr>(reinterpret_cast<std::uintptr_t>(page));
  prm::store_be64(in.data() + prm::CreateSrqIn::size, reinterpret_cast<std::uintptr_t>(page));
  errno = 0;
  CHECK(!mlx5dv_devx_obj_create(w->context, in.data(), in.size(), out.data(), prm::CreateSrqOut::size));
  CHECK(errno == EREMOTEIO && out.get<prm::CreateSrqOut::status>() == prm::Status::bad_op);
  CHECK(out.get<prm::CreateSrqOut::syndrome>());
}

// What a port is in the embedded switch, as the device itself says.
void ports(World* w) {
  Command<prm::QueryHcaCapIn, prm::QueryHcaCapOut> cap(prm::Opcode::query_hca_cap);
  cap.in.set<prm::QueryHcaCapIn::op_mod>(1);
  CHECK(!cap.general(w->context));
  const auto vhca = prm::ConstView<prm::CmdHcaCap>(cap.out.data() + 16).get<prm::CmdHcaCap::vhca_id>();
  mlx5dv_port port;
  std::memset(&port, 0xff, sizeof port);
  CHECK(!mlx5dv_query_port(w->context, 1, &port));
  CHECK(port.flags == (MLX5DV_QUERY_PORT_VPORT | MLX5DV_QUERY_PORT_VPORT_VHCA_ID | MLX5DV_QUERY_PORT_ESW_OWNER_VHCA_ID |
                       MLX5DV_QUERY_PORT_VPORT_STEERING_ICM_RX | MLX5DV_QUERY_PORT_VPORT_STEERING_ICM_TX |
                       MLX5DV_QUERY_PORT_VPORT_REG_C0));
  CHECK(!port.vport && port.vport_vhca_id == vhca && port.esw_owner_vhca_id == vhca);
  using Context = prm::EswVportContext;
  Command<prm::QueryEswVportContextIn, prm::QueryEswVportContextOut> esw(prm::Opcode::query_esw_vport_context);
  esw.in.set<prm::QueryEswVportContextIn::other_vport>(1).set<prm::QueryEswVportContextIn::vport_number>(port.vport);
  CHECK(!esw.general(w->context));
  const auto context = esw.out.sub<prm::QueryEswVportContextOut::esw_vport_context>();
  CHECK(port.vport_steering_icm_rx == context.get<Context::sw_steering_vport_icm_address_rx>());
  CHECK(port.vport_steering_icm_tx == context.get<Context::sw_steering_vport_icm_address_tx>());
  CHECK(port.vport_steering_icm_rx && port.vport_steering_icm_tx && port.vport_steering_icm_rx != port.vport_steering_icm_tx);
  CHECK(port.reg_c0.mask == 0xffff0000 && port.reg_c0.value >> 28 == vhca && (port.reg_c0.value & 0x0fff0000) > 0x10000);
  CHECK(!(port.reg_c0.value & ~port.reg_c0.mask));
  for (const std::uint32_t number : {0u, 2u, 257u}) CHECK(mlx5dv_query_port(w->context, number, &port) == EINVAL);
}

// Descriptors that are to grant a context rights: no node here stands for any.
void rights(ibv_device* nic) {
  struct {
    int* arr;
    std::uint32_t count;
  } list = {};
  mlx5dv_context_attr attr = {};
  attr.comp_mask = MLX5DV_CONTEXT_ATTR_MASK_FD_ARRAY;
  const auto open = [&](std::vector<int> fds, bool devx) {
    list = {fds.data(), static_cast<std::uint32_t>(fds.size())};
    attr.flags = devx ? MLX5DV_CONTEXT_FLAGS_DEVX : 0;
    attr.fds = reinterpret_cast<ibv_fd_arr*>(&list);
    errno = 0;
    ibv_context* context = mlx5dv_open_device(nic, &attr);
    return context ? ibv_close_device(context) : errno;
  };
  for (const bool devx : {true, false}) {
    CHECK(open({12345}, devx) == EBADF && open({-1}, devx) == EBADF && open({0}, devx) == EINVAL);
    CHECK(open({0, 12345, 0}, devx) == EINVAL && open({12345, 0, 0}, devx) == EBADF);  // the first decides
  }
  attr.fds = nullptr;
  ibv_context* context = mlx5dv_open_device(nic, &attr);
  CHECK(context && !ibv_close_device(context));
}

// What a tunnel to another function means at each door.
void open_to_all(ibv_device* nic) {
  ibv_context* context = ibv_open_device(nic);
  CHECK(context);
  Command<prm::QueryHcaCapIn, prm::QueryHcaCapOut> cap(prm::Opcode::query_hca_cap);
  cap.in.set<prm::QueryHcaCapIn::op_mod>(1);
  CHECK(!cap.general(context));
  // The kernel leaves a tunnel to a device that has no commands for it, as this: there the bits are reserved.
  using Head = prm::GeneralObjInCmdHdr;
  CHECK(!prm::ConstView<prm::CmdHcaCap>(cap.out.data() + 16).get<prm::CmdHcaCap::vhca_tunnel_commands>());
  prm::View<Head>(cap.in.data()).set<Head::vhca_tunnel_id>(5);
  CHECK(cap.general(context) == EREMOTEIO && cap.status() == prm::Status::bad_param && cap.syndrome());
  AllocPd pd(prm::Opcode::alloc_pd);
  prm::View<Head>(pd.in.data()).set<Head::vhca_tunnel_id>(5);
  CHECK(!pd.create(context) && errno == EINVAL && !pd.syndrome());
  CHECK(!ibv_close_device(context));
}

}  // namespace

int main() {
  World w = open_devx();
  lag_port_of_xrc(&w);
  pages_of_a_umem(&w);
  queue_in_large_pages(&w);
  srq_by_pages(&w);
  ports(&w);
  rights(w.context->device);
  open_to_all(w.context->device);
  close_world(&w);
  lag_port_of_frames();
  frames_under_a_leaf();
  if (failures) return 1;
  puts("ok");
  return 0;
}
