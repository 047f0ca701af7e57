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
#include "prm/wire.h"

namespace verbena::fabric {
namespace {

using prm::BthOpcode;

std::vector<std::byte> random_bytes(std::size_t count) {
  static std::mt19937 random(7);
  std::vector<std::byte> out(count);
  for (auto& b : out) b = static_cast<std::byte>(random());
  return out;
}

Packet packet(const Address& address, BthOpcode opcode, std::span<const std::byte> payload = {}) {
  Packet p;
  p.address = &address;
  p.opcode = static_cast<std::uint8_t>(opcode);
  p.dest_qpn = 0x51;
  p.psn = 0x123456;
  p.ack_request = true;
  p.payload = payload;
  p.payload_bytes = static_cast<std::uint32_t>(payload.size());
  return p;
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
    const std::string script = VERBENA_SOURCE_DIR "/tests/unit/fabric/check_capture.py";
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
  Address v1 = ipv6();
  v1.carrier = Carrier::roce_v1;
  std::vector<std::byte> frame;
  unsigned frames = 0;
  for (const Address& address : {ipv4(), ipv6(), v1}) {
    auto put = [&](BthOpcode opcode, std::size_t payload_bytes) {
      const auto payload = random_bytes(payload_bytes);
      Packet p = packet(address, opcode, payload);
      p.va = 0x7f0012345678;
      p.rkey = 0x1234;
      p.length = static_cast<std::uint32_t>(payload_bytes);
      p.qkey = 0x80010000;
      p.src_qpn = 0x44;
      p.syndrome = 0x1f;
      p.msn = 9;
      ASSERT_TRUE(encode_frame(p, frame));
      (*capture)->write(frames++ % 2, frame);
    };
    for (std::size_t size : {0, 1, 2, 3, 4, 255, 4096}) put(BthOpcode::rc_send_only, size);
    for (auto opcode :
         {BthOpcode::rc_send_first, BthOpcode::rc_send_last_imm, BthOpcode::rc_rdma_write_only,
          BthOpcode::rc_rdma_write_only_imm, BthOpcode::rc_rdma_read_response_only,
          BthOpcode::rc_rdma_read_response_middle, BthOpcode::uc_send_only, BthOpcode::uc_rdma_write_first,
          BthOpcode::ud_send_only, BthOpcode::ud_send_only_imm, BthOpcode::rc_send_only_inv})
      put(opcode, 64);
    for (auto opcode : {BthOpcode::rc_acknowledge, BthOpcode::rc_rdma_read_request, BthOpcode::rc_compare_swap,
                        BthOpcode::rc_fetch_add, BthOpcode::rc_atomic_acknowledge})
      put(opcode, 0);
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
        const Address address = ipv4();
        const std::vector<std::byte> payload(4 * i % 4096);
        if (!encode_frame(packet(address, BthOpcode::rc_send_only, payload), frame)) _exit(2);
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
  const Address address = ipv4();
  EXPECT_FALSE(encode_frame(Packet{}, out));
  EXPECT_FALSE(encode_frame(address, std::vector<std::byte>(3), {}, out));
  const std::vector<std::byte> huge(65536);
  EXPECT_FALSE(encode_frame(packet(address, BthOpcode::rc_send_only, huge), out));
  EXPECT_TRUE(out.empty());
}

}  // namespace
}  // namespace verbena::fabric
