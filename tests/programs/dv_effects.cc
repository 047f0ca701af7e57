// The calls of mlx5dv whose effect shows elsewhere: in another context over the same file, in what the library lets a
// program post, in queues that are built on what mlx5dv_init_obj() says.
#include <sys/mman.h>

#include <optional>

#include "devx_pieces.h"
#include "ethernet.h"
#include "prm/general_object.h"

namespace {

using prm::Opcode;

// ---- sharing between contexts ----

struct Imported {
  World w;
  explicit Imported(const World& from) : w(from) {
    CHECK((w.context = ibv_import_device(dup(from.context->cmd_fd))));
    CHECK((w.pd = ibv_import_pd(w.context, from.pd->handle)));
  }
  ~Imported() {
    ibv_unimport_pd(w.pd);
    CHECK(!ibv_close_device(w.context));
  }
};

// Queues that another context builds on an imported UMEM carry traffic.
void imported_memory(World* w) {
  Imported other(*w);
  auto* memory = static_cast<char*>(std::aligned_alloc(4096, Queues::kBytes));
  mlx5dv_devx_umem* umem = mlx5dv_devx_umem_reg(w->context, memory, Queues::kBytes, IBV_ACCESS_LOCAL_WRITE);
  char blob[64] = {};
  CHECK(umem && !mlx5dv_devx_umem_export(umem, blob));
  mlx5dv_devx_umem* imported = mlx5dv_devx_umem_import(other.w.context, blob);
  CHECK(imported);
  {
    Queues a(&other.w, memory, imported), b(w);
    CHECK(mlx5dv_devx_umem_dereg(umem) == EINVAL);  // its queues keep it
    a.connect(b.qpn);
    b.connect(a.qpn);
    for (unsigned i = 0; i < 40; ++i) {
      b.post_recv(64);
      std::memset(a.data(), static_cast<int>(i + 1), 64);
      a.post(prm::WqeOpcode::send, 64, 0, 0, i % 2);
      CHECK(a.next_cqe().get<prm::Cqe64::opcode>() == prm::CqeOpcode::req);
      CHECK(b.next_cqe().get<prm::Cqe64::byte_cnt>() == 64 && b.data()[63] == static_cast<char>(i + 1));
    }
  }
  mlx5dv_devx_umem_unimport(imported);
  {
    Queues still(w, memory, umem);  // giving an import back takes nothing away
  }
  CHECK(!mlx5dv_devx_umem_dereg(umem));
  std::free(memory);
}

std::uint32_t* map(const mlx5dv_var* var, const ibv_context* context) {
  void* page = mmap(nullptr, var->length, PROT_READ | PROT_WRITE, MAP_SHARED, context->cmd_fd, var->mmap_off);
  return page == MAP_FAILED ? nullptr : static_cast<std::uint32_t*>(page);
}

// An imported page is the same page.
void imported_page(World* w) {
  Imported other(*w);
  mlx5dv_var* var = mlx5dv_alloc_var(w->context, 0);
  char blob[64] = {};
  CHECK(var && !mlx5dv_var_export(var, blob));
  mlx5dv_var* imported = mlx5dv_var_import(other.w.context, blob);
  CHECK(imported);
  std::uint32_t *one = map(var, w->context), *two = map(imported, other.w.context);
  CHECK(one && two && one != two);
  *one = 0x1234;
  CHECK(*static_cast<volatile std::uint32_t*>(two) == 0x1234);
  CHECK(!munmap(one, var->length) && !munmap(two, imported->length));
  mlx5dv_var_unimport(imported);
  CHECK((one = map(var, w->context)));
  CHECK(!munmap(one, var->length));
  mlx5dv_free_var(var);
}

// A page that was given back is somebody else's next.
void pages_again(World* w) {
  std::vector<mlx5dv_var*> all;
  while (mlx5dv_var* var = mlx5dv_alloc_var(w->context, 0)) all.push_back(var);
  CHECK(errno == ENOSPC && all.size() > 3);
  const std::uint32_t gone = all[2]->page_id;
  mlx5dv_free_var(all[2]);
  CHECK((all[2] = mlx5dv_alloc_var(w->context, 0)) && all[2]->page_id == gone);
  std::uint32_t* page = map(all[2], w->context);
  CHECK(page);
  *page = 1;
  CHECK(!munmap(page, all[2]->length) && !mlx5dv_alloc_var(w->context, 0));
  for (mlx5dv_var* var : all) mlx5dv_free_var(var);
}

// Doorbell registers that were given back ring for others.
void registers_again(World* w) {
  for (const std::uint32_t type : {std::uint32_t{MLX5DV_UAR_ALLOC_TYPE_BF}, 1u << 31})
    for (unsigned i = 0; i < 20; ++i) {
      mlx5dv_devx_uar* uar = mlx5dv_devx_alloc_uar(w->context, type);
      CHECK(uar);
      mlx5dv_devx_free_uar(uar);
      Queues q(w, type);
      q.connect(q.qpn);
      q.post(prm::WqeOpcode::rdma_write, 8, reinterpret_cast<std::uintptr_t>(q.data()), q.mr->rkey, false);
      CHECK(q.next_cqe().get<prm::Cqe64::opcode>() == prm::CqeOpcode::req);
    }
}

// ---- an address that follows a queue pair ----

// What the device has on record of the mapping of any address handle: whoever shares the file may ask about all objects
// of it, if it finds their handle and their number.
std::optional<prm::Box<prm::AvQpMapping>> find_mapping(World* w) {
  using Head = prm::GeneralObjInCmdHdr;
  constexpr std::size_t answer = prm::GeneralObjOutCmdHdr::size + prm::AvQpMapping::size;
  for (std::uint32_t handle = 0; handle < 256; ++handle) {
    char blob[64] = {};
    std::memcpy(blob, &handle, sizeof handle);
    mlx5dv_devx_obj* object = mlx5dv_devx_obj_import(w->context, blob);
    CHECK(object);
    std::optional<prm::Box<prm::AvQpMapping>> found;
    for (std::uint32_t number = 0; number < 64 && !found; ++number) {
      prm::Box<Head> in;
      std::byte out[answer]{};
      in.set<Head::opcode>(static_cast<std::uint16_t>(Opcode::query_general_object)).set<Head::obj_id>(number);
      in.set<Head::obj_type>(prm::GeneralObjectType::av_qp_mapping);
      const int error = mlx5dv_devx_obj_query(object, in.data(), Head::size, out, sizeof out);
      if (error == ENOENT) break;
      if (error) continue;
      found.emplace();
      std::memcpy(found->data(), out + prm::GeneralObjOutCmdHdr::size, prm::AvQpMapping::size);
    }
    mlx5dv_devx_obj_unimport(object);
    if (found) return found;
  }
  return std::nullopt;
}

void mapped_address(World* w) {
  ibv_qp_attr to = attributes(w, 1);
  to.ah_attr.sl = 3;
  ibv_ah* ah = ibv_create_ah(w->pd, &to.ah_attr);
  ibv_cq* cq = ibv_create_cq(w->context, 4, nullptr, nullptr, 0);
  CHECK(ah && cq);
  ibv_qp* qp = make_qp(w, IBV_QPT_RC, cq, cq, nullptr);
  CHECK(!find_mapping(w) && !mlx5dv_map_ah_to_qp(ah, qp->qp_num) && !mlx5dv_map_ah_to_qp(ah, 0xfffff0));
  const auto mapping = find_mapping(w);
  CHECK(mapping && mapping->get<prm::AvQpMapping::qpn>() == qp->qp_num);  // the second call changed nothing
  const auto address = std::as_const(*mapping).view().sub<prm::AvQpMapping::remote_address_vector>();
  CHECK(!std::memcmp(address.bytes<prm::UdAv::rgid_or_rip>().data(), w->gid.raw, 16));
  CHECK(address.get<prm::UdAv::src_addr_index>() == static_cast<std::uint32_t>(w->gid_index));
  CHECK(address.get<prm::UdAv::sl_or_eth_prio>() == 3 << 1);  // as an address vector of RoCE has it
  CHECK(!ibv_destroy_ah(ah) && !find_mapping(w));
  CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}

// ---- what the library thinks of a queue pair that raw commands move ----

struct Poster {
  ibv_qp* qp;
  ibv_sge sge;
  int send() {
    ibv_send_wr wr = {}, *bad = nullptr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    const int error = ibv_post_send(qp, &wr, &bad);
    CHECK(!error || bad == &wr);
    return error;
  }
  int receive() {
    ibv_recv_wr wr = {}, *bad = nullptr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    const int error = ibv_post_recv(qp, &wr, &bad);
    CHECK(!error || bad == &wr);
    return error;
  }
};

template <class Fill>
void move(ibv_qp* qp, Opcode opcode, Fill fill) {
  Command<prm::Rst2initQpIn, prm::Rst2initQpOut> step(opcode);  // the others have its shape
  step.in.set<prm::Rst2initQpIn::qpn>(qp->qp_num);
  const auto qpc = step.in.sub<prm::Rst2initQpIn::qpc>();
  qpc.sub<prm::Qpc::primary_address_path>().set<prm::Ads::vhca_port_num>(1);
  fill(qpc);
  const bool brief = opcode == Opcode::qp_2err || opcode == Opcode::qp_2rst;  // no context
  const std::size_t length = brief ? std::size_t{prm::Qp2errIn::size} : step.in.size();
  CHECK(note(step, mlx5dv_devx_qp_modify(qp, step.in.data(), length, step.out.data(), step.out.size())));
}

void followed(World* w) {
  using Q = prm::Qpc;
  alignas(64) char data[64] = "by raw commands", got[64] = {};
  ibv_mr* mr = ibv_reg_mr(w->pd, data, sizeof data, kAllAccess);
  ibv_mr* target = ibv_reg_mr(w->pd, got, sizeof got, kAllAccess);
  ibv_cq* cq = ibv_create_cq(w->context, 64, nullptr, nullptr, 0);
  CHECK(mr && target && cq);
  ibv_qp* qp = make_qp(w, IBV_QPT_RC, cq, cq, nullptr);
  ibv_qp* peer = make_qp(w, IBV_QPT_RC, cq, cq, nullptr);
  connect_qp(w, peer, qp->qp_num);
  Poster own{qp, {reinterpret_cast<std::uintptr_t>(data), 32, mr->lkey}};
  Poster others{peer, {reinterpret_cast<std::uintptr_t>(got), 64, target->lkey}};
  CHECK(own.send() == ENOMEM && own.receive() == EINVAL);
  move(qp, Opcode::rst2init_qp, [](auto qpc) { qpc.template set<Q::rwe>(1); });
  CHECK(own.send() == ENOMEM && !own.receive());
  move(qp, Opcode::init2rtr_qp, [&](auto qpc) {
    qpc.template set<Q::mtu>(prm::QpMtu::mtu_1k).template set<Q::log_msg_max>(20);
    qpc.template set<Q::remote_qpn>(peer->qp_num).template set<Q::min_rnr_nak>(1).template set<Q::next_rcv_psn>(0x123);
    const auto path = qpc.template sub<Q::primary_address_path>();
    path.template set<prm::Ads::src_addr_index>(static_cast<std::uint32_t>(w->gid_index));
    path.template set<prm::Ads::hop_limit>(64).template set<prm::Ads::udp_sport>(0xc123);
    std::memcpy(path.template bytes<prm::Ads::rgid_rip>().data(), w->gid.raw, 16);
  });
  CHECK(own.send() == ENOMEM);
  move(qp, Opcode::rtr2rts_qp, [](auto qpc) {
    qpc.template set<Q::retry_count>(3).template set<Q::rnr_retry>(3).template set<Q::next_send_psn>(0x123);
    qpc.template sub<Q::primary_address_path>().template set<prm::Ads::ack_timeout>(12);
  });
  CHECK(!others.receive() && !own.send());
  for (int i = 0; i < 2; ++i) CHECK(next_wc(cq).status == IBV_WC_SUCCESS);
  CHECK(!std::strcmp(got, data));
  move(qp, Opcode::qp_2err, [](auto) {});
  CHECK(next_wc(cq).status == IBV_WC_WR_FLUSH_ERR);  // the receive of INIT
  CHECK(!own.send() && next_wc(cq).status == IBV_WC_WR_FLUSH_ERR);
  move(qp, Opcode::qp_2rst, [](auto) {});
  CHECK(own.send() == ENOMEM && own.receive() == EINVAL);
  CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_qp(peer) && !ibv_destroy_cq(cq) && !ibv_dereg_mr(mr) && !ibv_dereg_mr(target));
}

// ---- what mlx5dv_init_obj() says of objects ----

// A receive that the program writes into the ring of a work queue gets a frame, from when a raw command has made the queue
// ready until one has reset it.
void described_work_queue() {
  Side server(false), client;
  ibv_wq_init_attr init = {};
  init.wq_type = IBV_WQT_RQ;
  init.max_wr = 8;
  init.max_sge = 1;
  init.pd = server.w.pd;
  init.cq = server.cq;
  ibv_wq* wq = ibv_create_wq(server.w.context, &init);
  CHECK(wq);
  mlx5dv_rwq view = {};
  mlx5dv_obj object = {};
  object.rwq = {wq, &view};
  CHECK(!mlx5dv_init_obj(&object, MLX5DV_OBJ_RWQ) && view.wqe_cnt >= 8 && view.stride >= sizeof(mlx5_wqe_data_seg));
  const auto turn = [&](prm::RqState from, prm::RqState to) {
    Command<prm::ModifyRqIn, prm::ModifyRqOut> step(Opcode::modify_rq);
    step.in.set<prm::ModifyRqIn::rqn>(wq->wq_num).set<prm::ModifyRqIn::rq_state>(from);
    step.in.sub<prm::ModifyRqIn::ctx>().set<prm::Rqc::state>(to);
    CHECK(note(step, mlx5dv_devx_wq_modify(wq, step.in.data(), step.in.size(), step.out.data(), step.out.size())));
  };
  ibv_rwq_ind_table_init_attr table_init = {};
  table_init.ind_tbl = &wq;
  ibv_rwq_ind_table* table = ibv_create_rwq_ind_table(server.w.context, &table_init);
  CHECK(table);
  std::uint8_t key[40] = {1, 2, 3};
  ibv_qp_init_attr_ex hash = {};
  hash.qp_type = IBV_QPT_RAW_PACKET;
  hash.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
  hash.pd = server.w.pd;
  hash.rwq_ind_tbl = table;
  hash.rx_hash_conf = {IBV_RX_HASH_FUNC_TOEPLITZ, sizeof key, key, IBV_RX_HASH_SRC_IPV4};
  ibv_qp* qp = ibv_create_qp_ex(server.w.context, &hash);
  CHECK(qp);
  {
    Flow flow(Rule().to(kServer), qp);
    const auto frame = make_frame(kServer);
    const auto post = [&](unsigned i) {
      auto* wqe = reinterpret_cast<mlx5_wqe_data_seg*>(static_cast<char*>(view.buf) + i % view.wqe_cnt * view.stride);
      std::memset(static_cast<void*>(wqe), 0, view.stride);
      mlx5dv_set_data_seg(wqe, kRoom, server.mr->lkey, reinterpret_cast<std::uintptr_t>(server.slot(i)));
      if (view.stride > sizeof *wqe) mlx5dv_set_data_seg(wqe + 1, 0, prm::kInvalidLkey, 0);
      store_be32(&view.dbrec[MLX5_RCV_DBR], i + 1);
    };
    CHECK(!client.send(frame));
    SILENT(server);  // it is not ready
    turn(prm::RqState::rst, prm::RqState::rdy);
    for (unsigned i = 0; i < 20; ++i) {
      post(i);
      CHECK(!client.send(frame));
      const ibv_wc wc = server.wait(kPatienceMs);
      CHECK(wc.opcode == IBV_WC_RECV && wc.byte_len == frame.size());
      CHECK(std::equal(frame.begin(), frame.end(), server.slot(i)));
    }
    post(20);
    turn(prm::RqState::rdy, prm::RqState::rst);
    CHECK(!client.send(frame));
    SILENT(server);
    CHECK(!server.slot(20)[0]);
  }
  CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_rwq_ind_table(table) && !ibv_destroy_wq(wq));
}

// Receives that the program writes into the ring of a shared receive queue, and links as the library would, are taken.
void described_shared_queue(World* w) {
  ibv_srq_init_attr init = {};
  init.attr.max_wr = 8;
  init.attr.max_sge = 1;
  ibv_srq* srq = ibv_create_srq(w->pd, &init);
  CHECK(srq);
  mlx5dv_srq view = {};
  mlx5dv_obj object = {};
  object.srq = {srq, &view};
  CHECK(!mlx5dv_init_obj(&object, MLX5DV_OBJ_SRQ) && !view.comp_mask && view.tail - view.head >= 8);
  {
    ConnectedPair p(w, srq);
    Poster from{p.a, {reinterpret_cast<std::uintptr_t>(p.data), 8, p.mr->lkey}};
    std::uint32_t head = view.head;
    const auto wqe = [&](std::uint32_t at) { return static_cast<std::byte*>(view.buf) + std::size_t{at} * view.stride; };
    for (std::uint32_t i = 0; i < 40; ++i) {
      std::byte* at = wqe(head);
      auto* data = reinterpret_cast<mlx5_wqe_data_seg*>(at + prm::SrqNextSeg::size);
      mlx5dv_set_data_seg(data, 8, p.mr->lkey, reinterpret_cast<std::uintptr_t>(p.data) + 64 + i % 16 * 8);
      if (view.stride > prm::SrqNextSeg::size + sizeof *data) mlx5dv_set_data_seg(data + 1, 0, prm::kInvalidLkey, 0);
      head = prm::ConstView<prm::SrqNextSeg>(at).get<prm::SrqNextSeg::next_wqe_index>();
      store_be32(view.dbrec, i + 1);
      std::memset(p.data, static_cast<int>(i + 1), 8);
      CHECK(!from.send());
      for (int n = 0; n < 2; ++n) CHECK(next_wc(p.cq).status == IBV_WC_SUCCESS);
      CHECK(p.data[64 + i % 16 * 8] == static_cast<char>(i + 1) && p.data[71 + i % 16 * 8] == static_cast<char>(i + 1));
    }
  }
  CHECK(!ibv_destroy_srq(srq));
}

// A datagram that the program addresses with the vector of an address handle arrives.
void described_address(World* w) {
  ibv_qp_attr to = attributes(w, 1);
  ibv_ah* ah = ibv_create_ah(w->pd, &to.ah_attr);
  CHECK(ah);
  mlx5dv_ah view = {};
  mlx5dv_obj object = {};
  object.ah = {ah, &view};
  CHECK(!mlx5dv_init_obj(&object, MLX5DV_OBJ_AH) && view.av && !view.comp_mask);
  {
    Memory m(w);
    CompletionQueue cq(m), other(m);
    QueuePair a(m, cq, prm::QpServiceType::ud, [](auto) {}), b(m, other, prm::QpServiceType::ud, [](auto) {});
    for (QueuePair* q : {&a, &b}) {
      q->to_init();
      q->go(Opcode::init2rtr_qp, 0, [](auto qpc) { qpc.template set<prm::Qpc::mtu>(prm::QpMtu::mtu_1k); });
      q->go(Opcode::rtr2rts_qp, 0, [](auto) {});
    }
    const std::size_t data = m.take(256);
    std::memcpy(m.at(data), "to whom it is addressed", 24);
    b.receive(data + 64, 128);
    a.post(prm::WqeOpcode::send, data, 24, [&](std::byte* at) {
      std::memcpy(at, view.av, sizeof *view.av);
      prm::View<prm::UdAdrsVector> av(at);
      av.set<prm::UdAdrsVector::qkey>(0x1234).set<prm::UdAdrsVector::ext>(1);
      av.set<prm::UdAdrsVector::destination_qp_dct>(b.object.number);
      return 3u;
    });
    CHECK(cq.next().get<prm::Cqe64::opcode>() == prm::CqeOpcode::req);
    CHECK(other.next().get<prm::Cqe64::byte_cnt>() == 24 + 40);
    CHECK(!std::memcmp(m.at(data + 64 + 40), "to whom it is addressed", 24));
  }
  CHECK(!ibv_destroy_ah(ah));
}

// The handle of a DEVX object is the one that the kernel knows it by.
void described_object(World* w) {
  Queues q(w);
  mlx5dv_devx view = {};
  mlx5dv_obj object = {};
  object.devx = {q.cq, &view};
  CHECK(!mlx5dv_init_obj(&object, MLX5DV_OBJ_DEVX));
  char blob[64] = {};
  std::memcpy(blob, &view.handle, sizeof view.handle);
  mlx5dv_devx_obj* same = mlx5dv_devx_obj_import(w->context, blob);
  CHECK(same);
  QueryCq query(Opcode::query_cq);
  query.in.set<prm::QueryCqIn::cqn>(q.cqn);
  CHECK(!query.query(same));
  CHECK(query.out.sub<prm::QueryCqOut::cq_context>().get<prm::Cqc::log_cq_size>() == Queues::kLogCq);
  mlx5dv_devx_obj_unimport(same);
}

}  // namespace

int main() {
  World w = open_devx();
  imported_memory(&w);
  imported_page(&w);
  pages_again(&w);
  registers_again(&w);
  mapped_address(&w);
  followed(&w);
  described_work_queue();
  described_shared_queue(&w);
  described_address(&w);
  described_object(&w);
  close_world(&w);
  if (failures) return 1;
  puts("ok");
  return 0;
}
