#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "fake_kernel.h"

namespace verbena::test {
namespace {

using namespace verbena::verbs;

TEST(Requests, CarryLegacyCommandsInsideInvokeWrite) {
  FakeKernel kernel;
  kernel.answer = [](const Request& request) {
    EXPECT_TRUE(request.is_write(IB_USER_VERBS_CMD_ALLOC_PD));
    // Four bytes of answer; the eight of the request are inside the attribute.
    EXPECT_EQ(request.attrs.at(UVERBS_ATTR_CORE_IN).len, sizeof(ib_uverbs_alloc_pd));
    EXPECT_EQ(request.attrs.at(UVERBS_ATTR_UHW_OUT).len, 4);
    request.pointer<ib_uverbs_alloc_pd_resp>(UVERBS_ATTR_CORE_OUT)->pd_handle = 5;
    *request.pointer<std::uint32_t>(UVERBS_ATTR_UHW_OUT) = 0x77;
    return 0;
  };
  std::uint32_t pdn = 0;
  Udata udata{.out = &pdn, .out_length = sizeof pdn};
  ibv_pd pd{};
  ASSERT_EQ(verbena_cmd_alloc_pd(kernel.context(), &pd, &udata), 0);
  EXPECT_EQ(pd.handle, 5u);
  EXPECT_EQ(pd.context, kernel.context());
  EXPECT_EQ(pdn, 0x77u);
}

TEST(Requests, CreateACqByTheNativeMethod) {
  FakeKernel kernel;
  kernel.answer = [](const Request& request) {
    EXPECT_EQ(request.object, UVERBS_OBJECT_CQ);
    EXPECT_EQ(request.method, UVERBS_METHOD_CQ_CREATE);
    EXPECT_EQ(request.value(UVERBS_ATTR_CREATE_CQ_CQE), 63u);
    EXPECT_EQ(request.value(UVERBS_ATTR_CREATE_CQ_EVENT_FD), 78u);
    EXPECT_EQ(request.attrs.at(UVERBS_ATTR_CREATE_CQ_EVENT_FD).flags, 0) << "old kernels do not know it";
    EXPECT_FALSE(request.has(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL));
    EXPECT_EQ(request.value(UVERBS_ATTR_CREATE_CQ_FLAGS), std::uint64_t{IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION});
    *request.pointer<std::uint32_t>(UVERBS_ATTR_CREATE_CQ_RESP_CQE) = 64;
    return 0;
  };
  ibv_cq_init_attr_ex attr{};
  attr.cqe = 63;
  attr.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
  Cq cq{};
  ASSERT_EQ(verbena_cmd_create_cq(kernel.context(), &attr, &cq, nullptr), 0);
  EXPECT_EQ(cq.cq.handle, 100u);
  EXPECT_EQ(cq.cq.cqe, 64);
}

TEST(Requests, RememberWhichNativeMethodsAKernelLacks) {
  FakeKernel kernel;
  kernel.answer = [](const Request& request) {
    if (request.object == UVERBS_OBJECT_PD) return EPROTONOSUPPORT;
    EXPECT_TRUE(request.is_write(IB_USER_VERBS_CMD_DEALLOC_PD));
    return 0;
  };
  ibv_pd pd{.context = kernel.context(), .handle = 9};
  EXPECT_EQ(verbena_cmd_dealloc_pd(&pd), 0);
  EXPECT_EQ(verbena_cmd_dealloc_pd(&pd), 0);
  ASSERT_EQ(kernel.requests.size(), 3u) << "native, legacy, then legacy at once";

  kernel.answer = [](const Request&) { return EBUSY; };
  ibv_mr mr{};
  mr.context = kernel.context();
  Mr own{mr, MrKind::normal, 0};
  EXPECT_EQ(verbena_cmd_dereg_mr(&own), EBUSY) << "a refusal is no reason to try again";
  EXPECT_EQ(kernel.requests.size(), 4u);
}

TEST(Requests, CheckAQpsAttributesBeforeTheKernelSeesThem) {
  FakeKernel kernel;
  ibv_qp_init_attr_ex attr{};
  attr.qp_type = IBV_QPT_RC;
  Qp qp{};
  EXPECT_EQ(verbena_cmd_create_qp(kernel.context(), &qp, &attr, nullptr), EINVAL) << "no PD";
  ibv_pd pd{};
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  attr.pd = &pd;
  EXPECT_EQ(verbena_cmd_create_qp(kernel.context(), &qp, &attr, nullptr), EINVAL) << "no CQ";
  EXPECT_TRUE(kernel.requests.empty());

  ibv_cq cq{};
  cq.handle = 7;
  attr.send_cq = attr.recv_cq = &cq;
  attr.sq_sig_all = 1;
  attr.cap = {10, 20, 1, 2, 64};
  kernel.answer = [](const Request& request) {
    EXPECT_EQ(request.value(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE), 7u);
    EXPECT_EQ(request.value(UVERBS_ATTR_CREATE_QP_FLAGS), std::uint64_t{IB_UVERBS_QP_CREATE_SQ_SIG_ALL});
    EXPECT_EQ(request.pointer<ib_uverbs_qp_cap>(UVERBS_ATTR_CREATE_QP_CAP)->max_recv_wr, 20u);
    *request.pointer<ib_uverbs_qp_cap>(UVERBS_ATTR_CREATE_QP_RESP_CAP) = {16, 32, 4, 4, 128};
    *request.pointer<std::uint32_t>(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM) = 0x123;
    return 0;
  };
  ASSERT_EQ(verbena_cmd_create_qp(kernel.context(), &qp, &attr, nullptr), 0);
  EXPECT_EQ(qp.qp.qp_num, 0x123u);
  EXPECT_EQ(attr.cap.max_inline_data, 128u);
  EXPECT_EQ(qp.qp.state, IBV_QPS_RESET);
  EXPECT_EQ(ibv_qp_to_qp_ex(&qp.qp), nullptr);
}

TEST(Requests, DestroyingWaitsForEveryEventToBeAcknowledged) {
  FakeKernel kernel;
  kernel.answer = [](const Request& request) {
    request.pointer<ib_uverbs_destroy_cq_resp>(UVERBS_ATTR_DESTROY_CQ_RESP)->comp_events_reported = 2;
    return 0;
  };
  ibv_cq cq{};
  cq.context = kernel.context();
  pthread_mutex_init(&cq.mutex, nullptr);
  pthread_cond_init(&cq.cond, nullptr);
  ibv_ack_cq_events(&cq, 1);
  std::atomic<bool> destroyed = false;
  std::thread destroyer([&] {
    EXPECT_EQ(verbena_cmd_destroy_cq(&cq), 0);
    destroyed = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(destroyed);
  ibv_ack_cq_events(&cq, 1);
  destroyer.join();
  EXPECT_TRUE(destroyed);
}

TEST(Requests, ReadTheGidTableFromSysfsWhereTheKernelHasNoQuery) {
  FakeKernel kernel;
  kernel.answer = [](const Request& request) {
    return request.method == UVERBS_METHOD_QUERY_GID_ENTRY ? EPROTONOSUPPORT : 0;
  };
  kernel.files["ports/1/gids/3"] = "fe80:0000:0000:0000:0211:22ff:fe33:4455\n";
  kernel.files["ports/1/gids/4"] = "0000:0000:0000:0000:0000:0000:0000:0000\n";
  kernel.files["ports/1/gid_attrs/types/3"] = "RoCE v2\n";
  kernel.files["ports/1/pkeys/0"] = "0xffff\n";
  ibv_gid_entry entry{};
  ASSERT_EQ(_ibv_query_gid_ex(kernel.context(), 1, 3, &entry, 0, sizeof entry), 0);
  EXPECT_EQ(entry.gid.raw[15], 0x55);
  EXPECT_EQ(entry.gid_type, static_cast<std::uint32_t>(IBV_GID_TYPE_ROCE_V2));
  ibv_gid gid;
  gid.raw[0] = 1;
  EXPECT_EQ(ibv_query_gid(kernel.context(), 1, 4, &gid), 0) << "an empty entry reads as zero";
  EXPECT_EQ(gid.raw[0], 0);
  EXPECT_EQ(_ibv_query_gid_ex(kernel.context(), 1, 4, &entry, 0, sizeof entry), ENODATA);
  EXPECT_EQ(ibv_query_gid(kernel.context(), 1, 5, &gid), -1) << "past the end";
  EXPECT_EQ(ibv_get_pkey_index(kernel.context(), 1, 0xffff), 0);
}

TEST(Requests, VerbsThatNobodyImplementsSaySo) {
  FakeKernel kernel;
  errno = 0;
  EXPECT_EQ(ibv_alloc_pd(kernel.context()), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  ibv_alloc_dm_attr attr{};
  EXPECT_EQ(ibv_alloc_dm(kernel.context(), &attr), nullptr);
  ibv_values_ex values{};
  EXPECT_EQ(ibv_query_rt_values_ex(kernel.context(), &values), EOPNOTSUPP);
  ibv_cq cq{};
  cq.context = kernel.context();
  EXPECT_LT(ibv_poll_cq(&cq, 1, nullptr), 0) << "a positive result would count completions";
}

TEST(Flows, ArePackedInTheKernelsForm) {
  FakeKernel kernel;
  struct {
    ibv_flow_attr attr;
    ibv_flow_spec_eth eth;
    ibv_flow_spec_ipv6 ipv6;
  } rule{};
  rule.attr.num_of_specs = 2;
  rule.attr.port = 1;
  rule.eth = {
      .type = IBV_FLOW_SPEC_ETH, .size = sizeof rule.eth, .val = {.dst_mac = {1, 2, 3}}, .mask = {.vlan_tag = 9}};
  rule.ipv6 = {.type = IBV_FLOW_SPEC_IPV6, .size = sizeof rule.ipv6, .val = {}, .mask = {.hop_limit = 8}};
  kernel.answer = [](const Request& request) {
    EXPECT_TRUE(request.is_write(IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_FLOW));
    struct Specs {
      ib_uverbs_flow_spec_eth eth;
      ib_uverbs_flow_spec_ipv6 ipv6;
    };
    auto* head = request.pointer<ib_uverbs_create_flow>(UVERBS_ATTR_CORE_IN);
    EXPECT_EQ(request.attrs.at(UVERBS_ATTR_CORE_IN).len, sizeof *head + sizeof(Specs));
    EXPECT_EQ(head->flow_attr.size, sizeof(Specs));
    auto* wire = reinterpret_cast<Specs*>(head + 1);
    EXPECT_EQ(wire->eth.size, sizeof wire->eth);
    EXPECT_EQ(wire->eth.val.dst_mac[1], 2);
    EXPECT_EQ(wire->eth.mask.vlan_tag, 9);
    EXPECT_EQ(wire->ipv6.mask.hop_limit, 8);
    return 0;
  };
  ibv_qp qp{};
  qp.context = kernel.context();
  ibv_flow flow{};
  EXPECT_EQ(verbena_cmd_create_flow(&qp, &flow, &rule.attr, nullptr, 0), 0);
  rule.ipv6.size = sizeof rule.ipv6 - 4;
  EXPECT_EQ(verbena_cmd_create_flow(&qp, &flow, &rule.attr, nullptr, 0), EINVAL) << "filter cut short";
}

}  // namespace
}  // namespace verbena::test
