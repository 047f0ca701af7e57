#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "reference.h"

namespace verbena::test {
namespace {

// "(IBVERBS_1.0) ibv_open_device" for a hidden version, "IBVERBS_1.1 ibv_open_device" for a default one.
std::set<std::string> exports_of(const std::string& library) {
  std::set<std::string> result;
  std::string command = "LC_ALL=C objdump -T " + library + " 2>/dev/null";
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::array<char, 1024> line;
  while (pipe && std::fgets(line.data(), line.size(), pipe.get())) {
    std::string text = line.data();
    if (text.find("*UND*") != std::string::npos) continue;
    std::istringstream words(text);
    std::string word, version, name;
    while (words >> word) {
      version = name;
      name = word;
    }
    if (version.find("IBVERBS_") != std::string::npos) result.insert(version + ' ' + name);
  }
  return result;
}

TEST(Exports, AreDebiansToTheLastName) {
  if (!have_reference()) GTEST_SKIP() << "no libibverbs1 package here";
  std::set<std::string> theirs = exports_of(kReference);
  if (theirs.empty()) GTEST_SKIP() << "no objdump here";
  // What a newer rdma-core added is at nodes of its own.
  std::set<std::string> ours, newer;
  for (const std::string& name : exports_of(VERBENA_LIBIBVERBS)) {
    const bool later = theirs.count(name) == 0 && std::regex_search(name, std::regex("IBVERBS_(1[.]1[5-8]|PRIVATE_65)"));
    (later ? newer : ours).insert(name);
  }
  EXPECT_EQ(ours, theirs);
  EXPECT_TRUE(newer.contains("IBVERBS_1.15 ibv_reg_mr_ex"));
  EXPECT_TRUE(newer.contains("(IBVERBS_PRIVATE_65) ibv_query_gid_type"));
  std::size_t public_names = 0;
  for (const std::string& name : theirs)
    if (name.find("PRIVATE") == std::string::npos && name.find(" IBVERBS_") == std::string::npos) ++public_names;
  EXPECT_EQ(public_names, 109u);
}

}  // namespace
}  // namespace verbena::test
