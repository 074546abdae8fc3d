// The thread that stands in for an application that does not poll.
#include "device/soft/shm/helper.hpp"

#include <gtest/gtest.h>

#include <mutex>

#include "device/soft/shm/futex.hpp"
#include "unit/soft_shm/support.hpp"

namespace verbatim::soft::shm {
namespace {

// A device with an engine that counts packets.
class Device {
 public:
  Device(const TemporaryDirectory& directory, std::uint8_t number)
      : wire_(open_wire(config_in(directory, min_ring_bytes), gid(number))),
        helper_(std::make_unique<Helper>(*wire_, [this] {
          const std::lock_guard guard(lock_);
          ++visits_;
          drain();
          return next_;
        })) {}
  void poll() {
    const std::lock_guard guard(lock_);
    drain();
  }
  void send_to(const ibv_gid& from, const ibv_gid& to) {
    const std::lock_guard guard(lock_);
    Path& path = wire_->path_to(from, to);
    ASSERT_EQ(send(*wire_, path, send_packet(0), piece(nullptr, 0)), SendResult::sent);
  }
  void set_next(Time time) {
    const std::lock_guard guard(lock_);
    next_ = time;
  }
  [[nodiscard]] Helper& helper() { return *helper_; }
  void stop_helper() { helper_.reset(); }
  // As the device does in a child, before it does anything else.
  void forked() {
    wire_->forked();
    helper_->forked();
  }
  [[nodiscard]] std::uint64_t packets() const { return packets_; }
  [[nodiscard]] std::uint64_t visits() const { return visits_; }
  [[nodiscard]] bool stands_by() const {
    return wire_->sleep_word().load() == static_cast<std::uint32_t>(Sleep::standing_by);
  }

 private:
  void drain() {
    while (wire_->receive(now()) != nullptr) {
      wire_->release();
      ++packets_;
    }
  }
  std::mutex lock_;
  std::unique_ptr<ShmWire> wire_;
  Time next_ = never;
  std::atomic<std::uint64_t> packets_{0};
  std::atomic<std::uint64_t> visits_{0};
  std::unique_ptr<Helper> helper_;
};

class HelperTest : public ::testing::Test {
 protected:
  TemporaryDirectory directory_;
  Device sender_{directory_, 1};
  Device receiver_{directory_, 2};
};

TEST_F(HelperTest, PacketsAreTakenThoughTheApplicationNeverPolls) {
  sender_.send_to(gid(1), gid(2));
  EXPECT_TRUE(eventually([&] { return receiver_.packets() == 1; }));
}

// A wake-up that got lost would cost a second each here, and the test its patience.
TEST_F(HelperTest, NoWakeUpIsLost) {
  constexpr std::uint64_t packets = 3000;
  const Time start = now();
  for (std::uint64_t i = 1; i <= packets; ++i) {
    sender_.send_to(gid(1), gid(2));
    if (i % 3 == 0) receiver_.helper().application_sleeps();
    if (i % 50 == 0) {
      ASSERT_TRUE(eventually([&] { return receiver_.stands_by(); }));
    }
    ASSERT_TRUE(eventually([&] { return receiver_.packets() == i; })) << i;
  }
  EXPECT_LT(now() - start, patience) << "wake-ups come by the helper's own clock only";
}

TEST_F(HelperTest, ItTakesOverAgainWhenTheApplicationStopsPolling) {
  for (std::uint64_t round = 1; round <= 20; ++round) {
    for (int i = 0; i < 1000; ++i) receiver_.poll();
    sender_.send_to(gid(1), gid(2));
    ASSERT_TRUE(eventually([&] { return receiver_.packets() == round; })) << round;
  }
}

TEST_F(HelperTest, AnApplicationThatSleepsIsReplacedAtOnce) {
  for (std::uint64_t round = 1; round <= 20; ++round) {
    receiver_.poll();
    receiver_.helper().application_sleeps();
    ASSERT_TRUE(eventually([&] { return receiver_.stands_by(); }));
    sender_.send_to(gid(1), gid(2));
    ASSERT_TRUE(eventually([&] { return receiver_.packets() == round; })) << round;
  }
}

TEST_F(HelperTest, TimersRunOut) {
  ASSERT_TRUE(eventually([&] { return receiver_.stands_by(); }));
  receiver_.set_next(now() + std::chrono::milliseconds(3));
  const std::uint64_t before = receiver_.visits();
  receiver_.helper().due_by(now() + std::chrono::milliseconds(3));
  EXPECT_TRUE(eventually([&] { return receiver_.visits() >= before + 20; })) << "an overdue timer is not served";
  receiver_.set_next(never);
}

TEST_F(HelperTest, WhoeverSendsIsWatchedOver) {
  ASSERT_TRUE(eventually([&] { return sender_.stands_by(); }));
  const std::uint64_t before = sender_.visits();
  sender_.send_to(gid(1), gid(2));
  EXPECT_TRUE(eventually([&] { return sender_.visits() > before; }));
}

TEST_F(HelperTest, ItStopsWhenTold) {
  ASSERT_TRUE(eventually([&] { return receiver_.stands_by(); }));
  receiver_.stop_helper();
  sender_.stop_helper();
}

TEST_F(HelperTest, AForkedChildHasNoneAndSurvivesThat) {
  ChildProcess child([&] {
    sender_.forked();
    sender_.stop_helper();
    return 0;
  });
  EXPECT_EQ(child.wait(), 0);
  sender_.send_to(gid(1), gid(2));
  EXPECT_TRUE(eventually([&] { return receiver_.packets() == 1; }));
}

}  // namespace
}  // namespace verbatim::soft::shm
