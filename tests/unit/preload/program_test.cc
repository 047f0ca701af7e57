// Programs of the system under the preload library, with the stub behind it.
#include <gtest/gtest.h>
#include <stdio.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#ifndef VERBENA_SANITIZER_RUNTIME
#define VERBENA_SANITIZER_RUNTIME ""
#endif

namespace verbena::preload {
namespace {

class ProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/verbena-preload-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    run_dir_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(run_dir_); }

  // Standard output and error of a shell command under the library.
  std::string run(const std::string& command) {
    const std::string line = "VERBENA_RUN_DIR=" + run_dir_ +
                             " ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=" VERBENA_SANITIZER_RUNTIME VERBENA_PRELOAD_STUB
                             " timeout 30 " + command + " 2>&1";
    FILE* pipe = popen(line.c_str(), "r");
    std::string out;
    char buffer[1024];
    while (std::size_t length = fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, length);
    pclose(pipe);
    return out;
  }
  bool touched() const { return !std::filesystem::is_empty(run_dir_); }

  std::string run_dir_;
};

TEST_F(ProgramTest, LeavesOthersAlone) {
  EXPECT_EQ(run("cat /proc/self/comm /sys/class/net/lo/address"), "cat\n00:00:00:00:00:00\n");
  EXPECT_FALSE(touched());
}

TEST_F(ProgramTest, ShowsSysfs) {
  EXPECT_EQ(run("ls /sys/class/infiniband"), "mlx5_0\nmlx5_1\n");
  EXPECT_EQ(run("cat /sys/class/infiniband/mlx5_0/ports/1/link_layer /sys/class/infiniband_verbs/uverbs1/dev"),
            "Ethernet\n231:193\n");
  EXPECT_EQ(run("readlink -f /sys/class/infiniband/mlx5_1/device"), "/sys/devices/pci0000:c8/0000:c8:01.0\n");
  EXPECT_NE(run("ls /sys/bus/pci/devices").find("0000:c8:00.0\n"), std::string::npos);
  EXPECT_NE(run("cat /sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/0").find("Invalid argument"),
            std::string::npos);
}

TEST_F(ProgramTest, AttributesAreFresh) {
  const std::string gid = "/sys/class/infiniband/mlx5_0/ports/1/gids/0";
  const std::string both = run("sh -c 'cat " + gid + "; cd /sys/class/infiniband/mlx5_0/ports/1; cat " + gid + "'");
  ASSERT_EQ(both.size(), 80u);
  EXPECT_EQ(both.find("fe80:"), 0u);
}

TEST_F(ProgramTest, NodesAreCharacterDevices) {
  EXPECT_EQ(run("stat -c '%F %t:%T' /dev/infiniband/uverbs1"), "character special file e7:c1\n");
  EXPECT_EQ(run("python3 -c 'import os,stat; s=os.fstat(os.dup(os.open(\"/dev/infiniband/uverbs1\", os.O_RDWR)));"
                "print(stat.S_ISCHR(s.st_mode), os.minor(s.st_rdev))'"),
            "True 193\n");
}

TEST_F(ProgramTest, RequestsReachTheBackend) {
  EXPECT_EQ(run("python3 -c 'import os,fcntl,struct\n"
                "fd=os.open(\"/dev/infiniband/uverbs0\", os.O_RDWR)\n"
                "try: fcntl.ioctl(fd, 0xc0181b01, struct.pack(\"=HHHHQII\", 24, 0, 77, 0, 0, 0, 0))\n"
                "except OSError as e: print(e.errno)\n"
                "for what in (lambda: os.write(fd, b\"legacy\"), lambda: os.write(fd, b\"legacy command\"),\n"
                "             lambda: os.read(fd, 8)):\n"
                "  try: what()\n"
                "  except OSError as e: print(e.errno)\n'"),
            "28\n22\n95\n22\n");
}

TEST_F(ProgramTest, NetlinkIsRefusedSoThatSysfsIsRead) {
  EXPECT_EQ(run("python3 -c 'import socket\n"
                "try: socket.socket(16, socket.SOCK_RAW, 20)\n"
                "except OSError as e: print(e.errno)\n'"),
            "93\n");
}

TEST_F(ProgramTest, StockLibraryFindsTheDevices) {
  if (access("/usr/bin/ibv_devices", X_OK) != 0) GTEST_SKIP() << "ibverbs-utils is not installed";
  const std::string out = run("ibv_devices");
  EXPECT_NE(out.find("mlx5_0"), std::string::npos) << out;
  EXPECT_NE(out.find("mlx5_1"), std::string::npos) << out;
}

}  // namespace
}  // namespace verbena::preload
