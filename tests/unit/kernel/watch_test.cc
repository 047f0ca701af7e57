// Queues that are looked at, and who hears of an event: what must not depend on how many there are.
#include "kernel/watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "device/memory/guard.h"
#include "kernel/cq.h"
#include "kernel/events.h"
#include "kernel/qp.h"

namespace verbena::kernel {
namespace {

class WatchTest : public testing::Test {
 protected:
  static constexpr unsigned kCount = 3000;  // several looks

  void SetUp() override {
    device::ensure_guard();
    for (unsigned i = 0; i < kCount; ++i) {
      qps_.push_back(std::make_unique<Qp>());
      qps_[i]->qpn = i;
      qps_[i]->doorbell = reinterpret_cast<std::uintptr_t>(&records_[i]);
      list_.add(*qps_[i]);
    }
  }
  std::vector<WatchList::Ring> look_at_all() {
    std::vector<WatchList::Ring> rings;
    for (unsigned looks = 1; !list_.look(&rings); ++looks) EXPECT_LT(looks, kCount);
    return rings;
  }

  std::vector<std::unique_ptr<Qp>> qps_;
  std::vector<std::array<std::uint32_t, 2>> records_{kCount};
  WatchList list_;
};

TEST_F(WatchTest, EveryRecordIsSeenWhateverWasRemoved) {
  EXPECT_TRUE(look_at_all().empty());
  std::vector<WatchList::Ring> rings;
  EXPECT_FALSE(list_.look(&rings)) << "one look takes a part";
  for (unsigned i = 0; i < kCount; i += 2) list_.remove(*qps_[i]);
  list_.remove(*qps_[0]);
  list_.add(*qps_[1]);
  look_at_all();
  for (auto& record : records_) record[1] = 7;
  rings = look_at_all();
  ASSERT_EQ(rings.size(), kCount / 2);
  for (const auto& ring : rings) EXPECT_TRUE(ring.send && ring.number % 2 == 1);
  EXPECT_TRUE(look_at_all().empty());
  for (unsigned i = 1; i < kCount; i += 2) list_.remove(*qps_[i]);
  EXPECT_TRUE(list_.empty());
  EXPECT_TRUE(list_.look(&rings));
}

TEST_F(WatchTest, AQueueThatBeginsAnewIsLookedAtAnew) {
  for (unsigned i : {3u, 4u}) records_[i][1] = 7;
  EXPECT_EQ(look_at_all().size(), 2u);
  // Back to 0 and up to 7 again, unseen.
  list_.look_again(*qps_[3]);
  const auto rings = look_at_all();
  ASSERT_EQ(rings.size(), 1u);
  EXPECT_EQ(rings[0].number, 3u);
  EXPECT_TRUE(look_at_all().empty());
  list_.remove(*qps_[3]);
  list_.look_again(*qps_[3]);
  EXPECT_TRUE(look_at_all().empty());
  Cq cq;
  list_.add(cq);
  list_.look_again(cq);
  EXPECT_TRUE(look_at_all().empty()) << "it would be armed";
  list_.remove(cq);
}

TEST_F(WatchTest, ARegisterIsNewsOnlyWithoutItsRecord) {
  Cq cq;
  cq.cqn = 5;
  std::array<std::uint32_t, 2> record{};
  cq.doorbell = reinterpret_cast<std::uintptr_t>(&record);
  list_.add(cq);
  look_at_all();
  EXPECT_TRUE(list_.register_is_news(5));
  record[1] = 1;
  look_at_all();
  EXPECT_FALSE(list_.register_is_news(5)) << "the record said so already";
  EXPECT_TRUE(list_.register_is_news(5)) << "armed again with the same record";
  EXPECT_FALSE(list_.register_is_news(4)) << "a QP's number";
  list_.remove(cq);
  EXPECT_FALSE(list_.register_is_news(5));
}

TEST(Subscriptions, EndWithTheirObjectOrTheirChannel) {
  EventRegistry registry;
  const auto a = DevxEventChannel::create(true), b = DevxEventChannel::create(true);
  const int fd[2] = {a->take_user_fd(), b->take_user_fd()};
  int owners[2];
  std::vector<DevxSubscription> all;
  for (unsigned i = 0; i < 4; ++i) {
    DevxSubscription s;
    s.affiliated = true;
    s.source = EventSource::qp;
    s.event = 0x10;
    s.number = 100 + i / 2;
    s.owner = &owners[i / 2];
    s.channel = i % 2 ? b : a;
    s.cookie = i;
    all.push_back(std::move(s));
  }
  registry.subscribe(std::move(all));
  const std::array<std::byte, DevxEventChannel::kEqeBytes> eqe{};
  const auto both = [&] {
    for (std::uint32_t number : {100u, 101u}) registry.devx_event(0x10, true, EventSource::qp, number, eqe);
  };
  const auto heard = [&](int channel) {
    std::uint64_t cookie = 0;
    return read(fd[channel], &cookie, sizeof cookie) == sizeof cookie ? static_cast<int>(cookie) : -1;
  };
  registry.unsubscribe_object(&owners[0]);
  both();
  EXPECT_EQ(heard(0), 2);
  EXPECT_EQ(heard(1), 3);
  registry.unsubscribe_channel(a);
  both();
  EXPECT_EQ(heard(1), 3);
  registry.unsubscribe_object(&owners[1]);
  registry.unsubscribe_channel(b);
  both();
  for (int channel : {0, 1}) {
    fcntl(fd[channel], F_SETFL, O_NONBLOCK);
    EXPECT_EQ(heard(channel), -1);
    close(fd[channel]);
  }
}

}  // namespace
}  // namespace verbena::kernel
