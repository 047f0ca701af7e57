#include <dlfcn.h>
#include <gtest/gtest.h>

#include "fake_kernel.h"
#include "verbs/compat/types.h"

namespace verbena::test {
namespace {

using namespace verbena::verbs;

template <class Function>
Function old_entry(const char* name) {
  return reinterpret_cast<Function>(dlvsym(RTLD_DEFAULT, name, "IBVERBS_1.0"));
}

int posted;

// A QP of a 1.0 program, on a provider that refuses the third request of a list.
TEST(Compat, RebuildsAndRefusesWorkRequestsOfOldPrograms) {
  FakeKernel kernel;
  Ops ops{};
  ops.alloc_pd = [](ibv_context*) { return new ibv_pd{}; };
  ops.dealloc_pd = [](ibv_pd* pd) { return delete pd, 0; };
  ops.create_cq = [](ibv_context*, int cqe, ibv_comp_channel*, int) {
    auto* cq = new ibv_cq{};
    cq->cqe = cqe;
    return cq;
  };
  ops.create_qp = [](ibv_pd* pd, ibv_qp_init_attr* attr) {
    auto* qp = new ibv_qp{};
    qp->context = pd->context;
    qp->qp_context = attr->qp_context;
    qp->qp_num = 0x55;
    return qp;
  };
  ops.post_send = [](ibv_qp*, ibv_send_wr* wr, ibv_send_wr** bad) {
    for (posted = 0; wr; wr = wr->next) {
      if (++posted == 3) {
        EXPECT_EQ(wr->wr.rdma.rkey, 0xabcu);
        *bad = wr;
        return ENOMEM;
      }
    }
    return 0;
  };
  verbena_set_ops(&kernel.own_context(), &ops);

  v1_0::Device device{};
  device.real = kernel.device();
  auto* context = old_entry<v1_0::Context* (*)(v1_0::Device*)>("ibv_open_device")(&device);
  ASSERT_NE(context, nullptr);
  auto* pd = old_entry<v1_0::Pd* (*)(v1_0::Context*)>("ibv_alloc_pd")(context);
  ASSERT_NE(pd, nullptr);
  auto* cq = old_entry<v1_0::Cq* (*)(v1_0::Context*, int, void*, ibv_comp_channel*, int)>("ibv_create_cq")(
      context, 8, &device, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(cq->real->cq_context, cq);
  v1_0::QpInitAttr attr{};
  attr.send_cq = attr.recv_cq = cq;
  attr.qp_type = IBV_QPT_RC;
  auto* qp = old_entry<v1_0::Qp* (*)(v1_0::Pd*, v1_0::QpInitAttr*)>("ibv_create_qp")(pd, &attr);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(qp->qp_num, 0x55u);

  v1_0::SendWr list[4] = {};
  for (int i = 0; i < 3; ++i) list[i].next = &list[i + 1];
  list[2].wr.rdma.rkey = 0xabc;
  v1_0::SendWr* bad = nullptr;
  EXPECT_EQ(context->ops.post_send(qp, list, &bad), ENOMEM);
  EXPECT_EQ(bad, &list[2]);

  EXPECT_EQ(old_entry<int (*)(v1_0::Pd*)>("ibv_dealloc_pd")(pd), 0);
  delete qp->real;
  delete qp;
  delete cq->real;
  delete cq;
  delete context;
}

}  // namespace
}  // namespace verbena::test
