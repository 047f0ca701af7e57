// Commands of the device per second, issued through DEVX, with 10 objects alive and with many; queries that are not
// waited for. Prints "name value" lines for bench/run.py: microseconds of one call.
//
//   bench_devx OBJECTS
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/programs/devx_world.h"

namespace {

constexpr unsigned kFew = 10, kSample = 500, kAsyncQueries = 8192;
constexpr std::size_t kSlot = 256;  // of the memory, for an object: rings, then its doorbell record
constexpr std::size_t kDbrAt = 192;

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<long>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

struct Bed {
  World world;
  mlx5dv_devx_umem* umem;
  mlx5dv_devx_uar* uar;
  std::uint32_t eqn, pdn, cqn;
};

mlx5dv_devx_obj* create_cq(const Bed& bed, std::size_t slot, std::uint32_t* cqn) {
  CreateCq create(prm::Opcode::create_cq);
  using In = prm::CreateCqIn;
  create.in.set<In::cq_umem_id>(bed.umem->umem_id).set<In::cq_umem_valid>(1).set<In::cq_umem_offset>(slot * kSlot);
  const auto cqc = create.in.sub<In::cq_context>();
  cqc.set<prm::Cqc::log_cq_size>(1).set<prm::Cqc::uar_page>(bed.uar->page_id);
  cqc.set<prm::Cqc::c_eqn_or_apu_element>(bed.eqn);
  cqc.set<prm::Cqc::dbr_umem_id>(bed.umem->umem_id).set<prm::Cqc::dbr_umem_valid>(1);
  cqc.set<prm::Cqc::dbr_addr>(slot * kSlot + kDbrAt);
  mlx5dv_devx_obj* cq = create.create(bed.world.context);
  CHECK(cq);
  *cqn = create.out.get<prm::CreateCqOut::cqn>();
  return cq;
}

mlx5dv_devx_obj* create_qp(const Bed& bed, std::size_t slot, std::uint32_t* qpn) {
  CreateQp create(prm::Opcode::create_qp);
  using In = prm::CreateQpIn;
  create.in.set<In::wq_umem_id>(bed.umem->umem_id).set<In::wq_umem_valid>(1).set<In::wq_umem_offset>(slot * kSlot);
  const auto qpc = create.in.sub<In::qpc>();
  using Q = prm::Qpc;
  qpc.set<Q::st>(prm::QpServiceType::rc).set<Q::pm_state>(prm::PathMigrationState::migrated);
  qpc.set<Q::pd>(bed.pdn).set<Q::uar_page>(bed.uar->page_id).set<Q::cqn_snd>(bed.cqn).set<Q::cqn_rcv>(bed.cqn);
  qpc.set<Q::rq_type>(prm::RqType::zero_size).set<Q::log_sq_size>(1);
  qpc.set<Q::ts_format>(prm::TimestampFormat::standard);
  qpc.set<Q::dbr_umem_id>(bed.umem->umem_id).set<Q::dbr_umem_valid>(1).set<Q::dbr_addr>(slot * kSlot + kDbrAt);
  mlx5dv_devx_obj* qp = create.create(bed.world.context);
  CHECK(qp);
  *qpn = create.out.get<prm::CreateQpOut::qpn>();
  return qp;
}

// ---- one call after another ----

template <class Make>
void create_and_destroy(const char* name, const char* load, Make make) {
  std::vector<double> create_us, destroy_us;
  for (unsigned i = 0; i < kSample; ++i) {
    const double start = now_us();
    mlx5dv_devx_obj* object = make();
    const double made = now_us();
    CHECK(!mlx5dv_devx_obj_destroy(object));
    create_us.push_back(made - start);
    destroy_us.push_back(now_us() - made);
  }
  std::printf("create_%s_%s %.3f\ndestroy_%s_%s %.3f\n", name, load, median(create_us), name, load, median(destroy_us));
}

template <class Call>
void time_call(const char* name, const char* load, Call call) {
  std::vector<double> us;
  for (unsigned i = 0; i < kSample; ++i) {
    const double start = now_us();
    call();
    us.push_back(now_us() - start);
  }
  std::printf("%s_%s %.3f\n", name, load, median(us));
}

void measure(const Bed& bed, const char* load, std::size_t free_slot, std::pair<mlx5dv_devx_obj*, std::uint32_t> qp,
             std::pair<mlx5dv_devx_obj*, std::uint32_t> cq) {
  std::uint32_t number;
  create_and_destroy("cq", load, [&] { return create_cq(bed, free_slot, &number); });
  create_and_destroy("qp", load, [&] { return create_qp(bed, free_slot, &number); });
  Command<prm::Init2initQpIn, prm::Init2initQpOut> modify(prm::Opcode::init2init_qp);
  modify.in.set<prm::Init2initQpIn::qpn>(qp.second);
  modify.in.sub<prm::Init2initQpIn::qpc>().sub<prm::Qpc::primary_address_path>().set<prm::Ads::vhca_port_num>(1);
  time_call("modify_qp", load, [&] { CHECK(!modify.modify(qp.first)); });
  QueryQp query_qp(prm::Opcode::query_qp);
  query_qp.in.set<prm::QueryQpIn::qpn>(qp.second);
  time_call("query_qp", load, [&] { CHECK(!query_qp.query(qp.first)); });
  QueryCq query_cq(prm::Opcode::query_cq);
  query_cq.in.set<prm::QueryCqIn::cqn>(cq.second);
  time_call("query_cq", load, [&] { CHECK(!query_cq.query(cq.first)); });
}

// ---- many on the way ----

void measure_async(const Bed& bed, mlx5dv_devx_obj* qp, std::uint32_t qpn, unsigned depth) {
  mlx5dv_devx_cmd_comp* results = mlx5dv_devx_create_cmd_comp(bed.world.context);
  CHECK(results);
  QueryQp query(prm::Opcode::query_qp);
  query.in.set<prm::QueryQpIn::qpn>(qpn);
  std::vector<char> room(sizeof(mlx5dv_devx_async_cmd_hdr) + prm::QueryQpOut::size);
  auto* result = reinterpret_cast<mlx5dv_devx_async_cmd_hdr*>(room.data());
  const double start = now_us();
  std::uint64_t asked = 0, got = 0;
  while (got < kAsyncQueries) {
    while (asked < kAsyncQueries && asked - got < depth) {
      const int error = mlx5dv_devx_obj_query_async(qp, query.in.data(), prm::QueryQpIn::size, prm::QueryQpOut::size,
                                                    asked, results);
      if (error == EAGAIN && asked != got) break;  // an unprivileged process has less room
      CHECK(!error);
      ++asked;
    }
    CHECK(!mlx5dv_devx_get_async_cmd_comp(results, result, room.size()) && result->wr_id == got);
    ++got;
  }
  std::printf("async_%u %.3f\n", depth, (now_us() - start) / kAsyncQueries);
  mlx5dv_devx_destroy_cmd_comp(results);
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned count = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 100000;
  Bed bed{};
  bed.world = open_devx();
  const std::size_t bytes = (count + 1) * kSlot;
  void* memory = std::aligned_alloc(4096, (bytes + 4095) & ~std::size_t{4095});
  std::memset(memory, 0, bytes);
  CHECK((bed.umem = mlx5dv_devx_umem_reg(bed.world.context, memory, bytes, IBV_ACCESS_LOCAL_WRITE)));
  CHECK((bed.uar = mlx5dv_devx_alloc_uar(bed.world.context, MLX5DV_UAR_ALLOC_TYPE_NC)));
  CHECK(!mlx5dv_devx_query_eqn(bed.world.context, 0, &bed.eqn));
  bed.pdn = pd_number(bed.world.pd);

  // Half of the objects are CQs, half are QPs of the first of those.
  std::vector<std::pair<mlx5dv_devx_obj*, std::uint32_t>> cqs, qps;
  while (cqs.size() + qps.size() < count) {
    const std::size_t slot = cqs.size() + qps.size();
    std::uint32_t number = 0;
    if (slot % 2) {
      mlx5dv_devx_obj* qp = create_qp(bed, slot, &number);
      qps.emplace_back(qp, number);
    } else {
      mlx5dv_devx_obj* cq = create_cq(bed, slot, &number);
      cqs.emplace_back(cq, number);
      if (!slot) bed.cqn = number;
    }
    if (slot == 1) {
      Command<prm::Rst2initQpIn, prm::Rst2initQpOut> init(prm::Opcode::rst2init_qp);
      init.in.set<prm::Rst2initQpIn::qpn>(qps[0].second);
      init.in.sub<prm::Rst2initQpIn::qpc>().sub<prm::Qpc::primary_address_path>().set<prm::Ads::vhca_port_num>(1);
      CHECK(!init.modify(qps[0].first));
    }
    if (slot + 1 == kFew) measure(bed, "few", count, qps[0], cqs[0]);
  }
  measure(bed, "many", count, qps[0], cqs.back());
  for (unsigned depth : {1u, 64u, 1024u}) measure_async(bed, qps.back().first, qps.back().second, depth);
  for (const auto& [qp, number] : qps) CHECK(!mlx5dv_devx_obj_destroy(qp));
  for (const auto& [cq, number] : cqs) CHECK(!mlx5dv_devx_obj_destroy(cq));
  return 0;
}
