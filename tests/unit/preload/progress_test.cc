// Contexts of other versions of libibverbs.
#include "preload/progress.h"

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cstring>
#include <vector>

namespace verbena::preload {
namespace {

// A context with `operations` more at its beginning than the headers have, as a newer libibverbs allocates it.
struct Grown {
  explicit Grown(std::size_t operations) : memory((operations + kWords + 64), 0x6e6577) {
    whole = reinterpret_cast<verbs_context*>(memory.data());
    known = reinterpret_cast<verbs_context*>(memory.data() + operations);
    known->sz = operations * sizeof(void*) + offsetof(verbs_context, context) + sizeof(ibv_context);
  }
  static constexpr std::size_t kWords = (sizeof(verbs_context) + 7) / 8;
  std::vector<std::uintptr_t> memory;
  verbs_context* whole;
  verbs_context* known;
};

TEST(KnownPart, IsTheEndOfAContextThatHasGrown) {
  for (std::size_t operations : {0, 1, 6, 40}) {
    const Grown context(operations);
    EXPECT_EQ(known_part(context.whole), context.known) << operations;
  }
}

TEST(KnownPart, IsNotGuessed) {
  const Grown context(2);
  context.known->sz += 8;
  EXPECT_EQ(known_part(context.whole), nullptr);
}

}  // namespace
}  // namespace verbena::preload
