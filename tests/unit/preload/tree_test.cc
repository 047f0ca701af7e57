// Paths and the tree of files.
#include "preload/tree.h"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "preload/paths.h"
#include "tests/unit/preload/stub_nic.h"

namespace verbena::preload {
namespace {

TEST(Paths, TidiesWithoutTouchingDotDot) {
  EXPECT_EQ(tidy("/sys//class/./infiniband/"), "/sys/class/infiniband");
  EXPECT_EQ(tidy("/sys/class/infiniband/../net"), "/sys/class/infiniband/../net");
  EXPECT_EQ(tidy("/"), "/");
  EXPECT_EQ(tidy("//"), "/");
  EXPECT_EQ(tidy("/dev/.hidden"), "/dev/.hidden");
}

TEST(Paths, KnowsRdmaFromTheRest) {
  for (const char* path : {"/dev/infiniband", "/dev/infiniband/uverbs0", "/sys/class/infiniband_verbs/uverbs0/dev"}) {
    EXPECT_TRUE(worth_a_look(path)) << path;
    EXPECT_TRUE(is_rdma_path(path)) << path;
  }
  for (const char* path : {"/dev/infinibandx", "/sys/class/net", "/sys/class", "/dev"})
    EXPECT_FALSE(is_rdma_path(path)) << path;
  for (const char* path : {"", "/", "/s", "/de", "relative", "/usr/lib", "/dev/null"})
    EXPECT_FALSE(worth_a_look(path)) << path;
  EXPECT_FALSE(worth_a_look(nullptr));
}

class TreeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/verbena-tree-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    run_dir_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(run_dir_); }
  std::string run_dir_;
};

TEST_F(TreeTest, HasTheShapeOfSysfs) {
  const auto tree = Tree::build(testing::stub_backend(), run_dir_, "box");
  ASSERT_TRUE(tree) << tree.error().reason;
  ASSERT_EQ(tree->devices().size(), 2u);
  EXPECT_EQ(tree->devices()[0].gids, 5u);
  EXPECT_EQ(tree->devices()[0].ports, 1u);
  namespace fs = std::filesystem;
  const fs::path root = tree->root();
  EXPECT_EQ(fs::canonical(root / "sys/class/infiniband/mlx5_1/device"), root.string() + tree->devices()[1].directory);
  EXPECT_EQ(fs::canonical(root / "sys/bus/pci/devices" / tree->devices()[0].slot / "infiniband_verbs/uverbs0"),
            fs::canonical(root / "sys/class/infiniband_verbs/uverbs0"));
  EXPECT_TRUE(fs::exists(root / "sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/4"));
  EXPECT_FALSE(fs::exists(root / "sys/class/infiniband/mlx5_0/ports/1/gids/5"));
}

TEST_F(TreeTest, ProcessesShareOne) {
  const auto first = Tree::build(testing::stub_backend(), run_dir_, "box");
  const auto second = Tree::build(testing::stub_backend(), run_dir_, "box");
  const auto other = Tree::build(testing::stub_backend(), run_dir_, "other");
  ASSERT_TRUE(first && second && other);
  EXPECT_EQ(first->root(), second->root());
  EXPECT_NE(first->root(), other->root());
}

TEST_F(TreeTest, RefusesAFolderOthersMayWrite) {
  const auto first = Tree::build(testing::stub_backend(), run_dir_, "box");
  ASSERT_TRUE(first);
  std::filesystem::permissions(first->root(), std::filesystem::perms(0777));
  EXPECT_FALSE(Tree::build(testing::stub_backend(), run_dir_, "box"));
}

TEST_F(TreeTest, TranslatesPathsBothWays) {
  const auto tree = Tree::build(testing::stub_backend(), run_dir_, "box");
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->real_path("/dev/infiniband"), tree->root() + "/dev/infiniband");
  EXPECT_FALSE(tree->real_path("/sys/bus/pci/devices/0000:00:00.0"));
  EXPECT_FALSE(tree->real_path("/sys/devices/system/cpu"));
  EXPECT_TRUE(tree->real_path(tree->devices()[0].directory + "/vendor"));
  EXPECT_EQ(tree->virtual_path(tree->root() + "/sys/class"), "/sys/class");
  EXPECT_FALSE(tree->virtual_path("/etc"));
  EXPECT_EQ(tree->node_of("/dev/infiniband/uverbs1"), 1);
  EXPECT_EQ(tree->node_of("/dev/infiniband/rdma_cm"), -1);
}

TEST_F(TreeTest, AsksTheBackendForAttributes) {
  const auto tree = Tree::build(testing::stub_backend(), run_dir_, "box");
  ASSERT_TRUE(tree);
  const auto& backend = testing::stub_backend();
  const std::string ib = tree->devices()[0].directory + "/infiniband/mlx5_0";
  EXPECT_EQ(tree->attribute(backend, ib + "/ports/1/state").value(), "4: ACTIVE\n");
  EXPECT_EQ(tree->attribute(backend, tree->devices()[0].directory + "/numa_node").value(), "0\n");
  EXPECT_EQ(tree->attribute(backend, ib + "/ports/1/gid_attrs/types/3").error().code, EINVAL);
  EXPECT_EQ(tree->attribute(backend, ib).error().code, ENOENT);
  EXPECT_EQ(tree->attribute(backend, "/sys/class").error().code, ENOENT);
}

TEST_F(TreeTest, StandInsLookLikeNodes) {
  const auto tree = Tree::build(testing::stub_backend(), run_dir_, "box");
  ASSERT_TRUE(tree);
  struct stat status;
  ASSERT_EQ(stat((tree->root() + "/dev/infiniband/uverbs1").c_str(), &status), 0);
  EXPECT_TRUE(tree->disguise(&status));
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  EXPECT_EQ(status.st_rdev, makedev(231, 193));
  ASSERT_EQ(stat(tree->root().c_str(), &status), 0);
  EXPECT_FALSE(tree->disguise(&status));
}

}  // namespace
}  // namespace verbena::preload
