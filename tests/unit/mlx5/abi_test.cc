// Our mlx5dv.h against the distribution's, and our exports against its library's.

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include "tests/unit/mlx5/abi_probe.h"

namespace verbena::test {
namespace {

TEST(Mlx5dvHeader, AgreesWithTheDistributions) {
  const auto ours = our_probes(), theirs = distro_probes();
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (ours[i].may_grow)
      EXPECT_GE(ours[i].number, theirs[i].number) << ours[i].what;
    else
      EXPECT_EQ(ours[i].number, theirs[i].number) << ours[i].what;
  }
}

// "name@node" of every defined mlx5dv function of a library; @@ for the default one.
std::set<std::string> exports(const std::string& library) {
  const std::string command = "objdump -T " + library + " 2>/dev/null";
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  std::array<char, 4096> buffer;
  while (pipe && std::fgets(buffer.data(), buffer.size(), pipe.get())) text += buffer.data();
  std::set<std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word, node, name;
    while (words >> word) {
      node = name;
      name = word;
    }
    if (name.find("mlx5dv_") == std::string::npos || line.find("*UND*") != std::string::npos) continue;
    names.insert(name + "@" + node);
  }
  return names;
}

TEST(Mlx5Library, ExportsEveryNameOfTheDistributionsAtItsNode) {
  const auto theirs = exports(VERBENA_DISTRO_LIBMLX5);
  const auto ours = exports(VERBENA_LIBMLX5);
  if (theirs.empty()) GTEST_SKIP() << "no distribution library to compare with";
  for (const std::string& name : theirs) EXPECT_TRUE(ours.contains(name)) << name;
  EXPECT_TRUE(ours.contains("mlx5dv_init_obj@(MLX5_1.0)"));
  EXPECT_TRUE(ours.contains("mlx5dv_init_obj@MLX5_1.2"));
  std::set<std::string> names;
  for (const std::string& name : ours) names.insert(name.substr(0, name.find('@')));
  EXPECT_EQ(names.size(), 142u);
}

}  // namespace
}  // namespace verbena::test
