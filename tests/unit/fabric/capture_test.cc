// Frames and captures, judged by tshark and scapy (check_capture.py).
#include "fabric/capture.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "fabric/frame.h"

namespace verbena::fabric {
namespace {

constexpr std::uint8_t kRcSendOnly = 0x04, kRcAck = 0x11, kUdSendOnly = 0x64, kRcWriteOnly = 0x0a;

std::vector<std::byte> bytes(std::initializer_list<unsigned> list) {
  std::vector<std::byte> out;
  for (unsigned v : list) out.push_back(static_cast<std::byte>(v));
  return out;
}

std::vector<std::byte> bth(unsigned opcode, std::size_t payload, std::initializer_list<unsigned> extension = {}) {
  const unsigned pad = (4 - payload % 4) % 4;
  auto out = bytes({opcode, pad << 4, 0xff, 0xff, 0, 0, 0, 0x51, 0x80, 0x12, 0x34, 0x56});
  for (unsigned v : extension) out.push_back(static_cast<std::byte>(v));
  return out;
}

Address ipv4() {
  Address a;
  a.smac = {2, 0, 0, 0, 0, 1};
  a.dmac = {2, 0, 0, 0, 0, 2};
  a.sgid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 18, 0, 1};
  a.dgid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 18, 1, 1};
  a.traffic_class = 0x68;
  a.flow_label = 0xabcde;
  return a;
}
Address ipv6() {
  Address a = ipv4();
  a.carrier = Carrier::roce_v2_ipv6;
  a.sgid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, 1};
  a.dgid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, 2};
  return a;
}

class CaptureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/verbena-capture-XXXXXX";
    dir_ = mkdtemp(name);
    path_ = dir_ + "/capture.pcapng";
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  void expect_good(unsigned frames, const std::string& interfaces) {
    const std::string script = std::filesystem::path(__FILE__).parent_path() / "check_capture.py";
    const std::string log = dir_ + "/log";
    const std::string command = "timeout 120 /usr/bin/python3 " + script + " " + path_ + " " + std::to_string(frames) +
                                " " + interfaces + " > " + log + " 2>&1";
    const int status = system(command.c_str());
    std::ifstream in(log);
    EXPECT_EQ(status, 0) << std::string(std::istreambuf_iterator<char>(in), {});
  }

  std::string dir_, path_;
};

TEST_F(CaptureTest, TsharkAndScapyAcceptEveryKindOfFrame) {
  auto capture = Capture::open(path_, {"mlx5_0/1", "mlx5_1/1"});
  ASSERT_TRUE(capture) << capture.error().reason;
  std::mt19937 random(7);
  Address v1 = ipv6();
  v1.carrier = Carrier::roce_v1;
  std::vector<std::byte> frame;
  unsigned frames = 0;
  auto put = [&](const Address& address, const std::vector<std::byte>& transport, std::size_t payload_bytes) {
    std::vector<std::byte> payload(payload_bytes);
    for (auto& b : payload) b = static_cast<std::byte>(random());
    ASSERT_TRUE(encode_frame(address, transport, payload, frame));
    (*capture)->write(frames++ % 2, frame);
  };
  for (const Address& address : {ipv4(), ipv6(), v1}) {
    for (std::size_t size : {0, 1, 2, 3, 4, 255, 4096}) put(address, bth(kRcSendOnly, size), size);
    put(address, bth(kRcAck, 0, {0, 0, 0, 1}), 0);
    put(address, bth(kRcWriteOnly, 5, {0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 1, 0, 0, 0, 0, 5}), 5);
    put(address, bth(kUdSendOnly, 8, {0x80, 1, 0, 0, 0, 0, 0, 0x44}), 8);
  }
  EXPECT_EQ((*capture)->lost(), 0u);
  expect_good(frames, "mlx5_0/1 mlx5_1/1");
}

TEST_F(CaptureTest, ProcessesAndHostsShareOneFile) {
  constexpr unsigned kProcesses = 4, kFrames = 500;
  std::vector<pid_t> children;
  for (unsigned p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto capture = Capture::open(path_, {Capture::port_name(p % 2 ? "b" : "localhost", 0, 1)});
      if (!capture) _exit(1);
      std::vector<std::byte> frame;
      for (unsigned i = 0; i < kFrames; ++i) {
        std::vector<std::byte> payload(4 * i % 4096);
        if (!encode_frame(ipv4(), bth(kRcSendOnly, payload.size()), payload, frame)) _exit(2);
        (*capture)->write(0, frame);
      }
      _exit((*capture)->lost() ? 3 : 0);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  expect_good(kProcesses * kFrames, "mlx5_0/1 b:mlx5_0/1");
}

TEST_F(CaptureTest, RefusesWhatIsNotACapture) {
  std::ofstream(path_) << "somebody's notes, which must not be touched";
  auto capture = Capture::open(path_, {"mlx5_0/1"});
  ASSERT_FALSE(capture);
  EXPECT_EQ(capture.error().code, EINVAL);
  EXPECT_EQ(Capture::open("/nonexistent/x", {"p"}).error().code, ENOENT);
}

TEST(Frame, RefusesWhatCannotBeAFrame) {
  std::vector<std::byte> out;
  EXPECT_FALSE(encode_frame(ipv4(), bytes({1, 2, 3}), {}, out));
  std::vector<std::byte> huge(65536);
  EXPECT_FALSE(encode_frame(ipv4(), bth(kRcSendOnly, huge.size()), huge, out));
  EXPECT_TRUE(out.empty());
}

}  // namespace
}  // namespace verbena::fabric
