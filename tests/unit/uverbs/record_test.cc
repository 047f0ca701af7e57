// What a record says about a request, and that recording is off unless asked for.
#include "uverbs/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "uverbs/bundle.h"

namespace verbena::uverbs {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::uint32_t kDriver = 1;

TEST(Record, NativeRequestByName) {
  mlx5_ib_create_cq driver{};
  driver.buf_addr = 0x7f0000001000;
  driver.cqe_size = 64;
  mlx5_ib_create_cq_resp answer{.cqn = 77, .reserved = 0};
  Bundle bundle(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
  const auto handle = bundle.out_object(UVERBS_ATTR_CREATE_CQ_HANDLE);
  bundle.in_u32(UVERBS_ATTR_CREATE_CQ_CQE, 100);
  bundle.in_u64(UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 0xabcd0000);
  bundle.optional(bundle.in_u32(UVERBS_ATTR_CREATE_CQ_FLAGS, 2));
  bundle.in_fd(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, 9);
  bundle.in_struct(UVERBS_ATTR_UHW_IN, driver);
  bundle.out_struct(UVERBS_ATTR_UHW_OUT, answer);
  ib_uverbs_ioctl_hdr* request = bundle.finish(kDriver);
  const RequestRecord record(request, kTrustedMemory);
  request->attrs[handle].data = 5;  // the kernel answers
  const std::string text = record.finish(0);
  EXPECT_THAT(text, HasSubstr(R"("object":"CQ","method":"CQ_CREATE","errno":0,)"));
  EXPECT_THAT(text, HasSubstr(R"("CREATE_CQ_HANDLE":{"new handle":5})"));
  EXPECT_THAT(text, HasSubstr(R"("CREATE_CQ_CQE":{"len":4,"value":100})"));
  EXPECT_THAT(text, HasSubstr(R"("CREATE_CQ_USER_HANDLE":{"len":8,"address":"0xabcd0000"})"));
  EXPECT_THAT(text, HasSubstr(R"("CREATE_CQ_FLAGS":{"optional":1,"len":4,"value":2})"));
  EXPECT_THAT(text, HasSubstr(R"("CREATE_CQ_COMP_CHANNEL":{"fd":9})"));
  EXPECT_THAT(text, HasSubstr(R"("struct":"mlx5_ib_create_cq","fields":{"buf_addr":"0x7f0000001000","db_addr":"0x0","cqe_size":64,)"));
  EXPECT_THAT(text, HasSubstr(R"("UHW_OUT":{"room":8,"struct":"mlx5_ib_create_cq_resp","fields":{"cqn":77,"reserved":0}})"));
  // Nothing is said about results that do not exist.
  EXPECT_THAT(record.finish(EINVAL), Not(HasSubstr("77")));
}

TEST(Record, WhatGoesInIsKeptThoughTheAnswerOverwritesIt) {
  ib_uverbs_ex_query_device in{.comp_mask = 0x1234, .reserved = 0};
  Bundle bundle(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
  bundle.in_const(UVERBS_ATTR_WRITE_CMD, IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_QUERY_DEVICE);
  char large[24] = "not only eight bytes";
  std::memcpy(large, &in, sizeof in);
  bundle.in(UVERBS_ATTR_CORE_IN, large, sizeof large);
  const RequestRecord record(bundle.finish(kDriver), kTrustedMemory);
  std::memset(large, 0, sizeof large);
  const std::string text = record.finish(0);
  EXPECT_THAT(text, HasSubstr(R"("command":"EX_QUERY_DEVICE")"));
  EXPECT_THAT(text, HasSubstr(R"("fields":{"comp_mask":4660,"reserved":0,"more":")"));
}

TEST(Record, PointersThatLeadNowhere) {
  constexpr UserMemory nothing{[](void*, const void*, std::size_t) { return false; },
                               [](void*, const void*, std::size_t) { return false; }};
  Bundle bundle(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
  bundle.in_u32(UVERBS_ATTR_CREATE_CQ_CQE, 100);
  EXPECT_THAT(RequestRecord(bundle.finish(kDriver), nothing).finish(EFAULT), HasSubstr("unreadable"));
  EXPECT_THAT(RequestRecord(nullptr, kTrustedMemory).finish(EFAULT), HasSubstr("unreadable"));

  constexpr UserMemory small{[](void* to, const void* from, std::size_t n) {
                               if (n > 64) return false;
                               std::memcpy(to, from, n);
                               return true;
                             },
                             [](void*, const void*, std::size_t) { return false; }};
  Bundle far(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
  const char bytes[100] = {};
  far.in(UVERBS_ATTR_UHW_IN, bytes, sizeof bytes);
  EXPECT_THAT(RequestRecord(far.finish(kDriver), small).finish(EFAULT), HasSubstr(R"("UHW_IN":{"len":100,"unreadable":"0x)"));
}

TEST(Record, UnknownMethodsAndAttributes) {
  Bundle bundle(99, 98);
  bundle.in_u32(97, 1);
  const std::string text = RequestRecord(bundle.finish(kDriver), kTrustedMemory).finish(EPROTONOSUPPORT);
  EXPECT_EQ(text, R"("object":99,"method":98,"errno":93,"attrs":{"attribute 97":{"len":4,"raw":"0x1"}})");
}

int answer(int, ib_uverbs_ioctl_hdr*) { return errno = EBUSY, -1; }

// The first half is that of most processes: no file named, and what was handed in comes back.
TEST(Record, OffUnlessAFileIsNamed) {
  static Backend backend{};
  backend.ioctl = answer;
  unsetenv("VERBENA_RECORD");
  EXPECT_EQ(&recorded(backend, kTrustedMemory), &backend);

  const std::string path = testing::TempDir() + "record-" + std::to_string(getpid());
  setenv("VERBENA_RECORD", path.c_str(), 1);
  const Backend& on = recorded(backend, kTrustedMemory);
  ASSERT_NE(&on, &backend);
  EXPECT_EQ(&recorded(backend, kTrustedMemory), &on);
  static Backend another{};
  EXPECT_EQ(&recorded(another, kTrustedMemory), &another);  // one a process
  Bundle bundle(UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY);
  bundle.in_object(UVERBS_ATTR_DESTROY_PD_HANDLE, 3);
  EXPECT_EQ(on.ioctl(4, bundle.finish(kDriver)), -1);
  EXPECT_EQ(errno, EBUSY);
  unsetenv("VERBENA_RECORD");

  std::stringstream lines;
  lines << std::ifstream(path).rdbuf();
  EXPECT_THAT(lines.str(), HasSubstr(R"("call":"start","program":)"));
  EXPECT_THAT(lines.str(),
              HasSubstr(R"("fd":4,"object":"PD","method":"PD_DESTROY","errno":16,"attrs":{"DESTROY_PD_HANDLE":{"handle":3}}})"));
  unlink(path.c_str());
}

}  // namespace
}  // namespace verbena::uverbs
