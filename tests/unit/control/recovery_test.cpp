// The machine that brings a channel back, alone and against another one, with failures at any moment.
#include "transport/control/recovery.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "offers.hpp"

namespace verbatim::transport::control {
namespace {

using namespace std::chrono_literals;

constexpr Recovery::Limits limits{.attempts = 4, .deadline = 10s};

// One end: carries actions out as an engine does, in its own time.
struct End {
  End(Role role, std::uint64_t seed) : machine(role, limits, Random(seed)) {}

  // As an engine does: at once, but for a drain, which takes its time.
  void take(const RecoveryActions& actions) {
    for (const RecoveryAction& action : actions) {
      std::visit([&](const auto& what) { carry_out(what); }, action);
    }
  }
  void carry_out(const recovery::Drain&) {
    EXPECT_NE(queue_pair, 0U) << "there is nothing to drain";
    queue_pair = 0;
    connected = false;
    draining = true;
  }
  void carry_out(const recovery::Prepare&) {
    EXPECT_FALSE(draining) << "what is under way could still touch memory";
    queue_pair = ++last_queue_pair;
    take(machine.on_prepared(offer_of(queue_pair), 7));
  }
  void carry_out(const recovery::Connect& action) {
    connected_to = action.agreement.peer.queue_pair.value;
    connected = true;
    connected_in = machine.epoch();
    take(machine.on_connected(Time{}));
  }
  void carry_out(const recovery::Say& say) {
    Message message{Session{1}, say.epoch, {}};
    std::visit([&](const auto& content) { message.content = content; }, say.content);
    peer->inbox.push_back(message);
  }
  void carry_out(const recovery::Resume& resume) {
    EXPECT_EQ(resume.next_expected_by_peer, 7U);
    // It may have failed since.
    EXPECT_TRUE(connected && peer->connected_in >= machine.epoch()) << "it may send before the other can receive";
    ++resumed;
  }
  void carry_out(const recovery::Lose& lose) { lost = lose.sentence; }

  Recovery machine;
  End* peer = nullptr;
  bool draining = false;
  std::deque<Message> inbox;
  std::uint32_t last_queue_pair = 100;
  std::uint32_t queue_pair = 100;
  std::uint32_t connected_to = 100;
  bool connected = true;
  Epoch connected_in{1};
  int resumed = 0;
  std::string lost;
};

struct Pair {
  explicit Pair(std::uint64_t seed) : random(seed), a(Role::dialler, seed), b(Role::acceptor, seed + 1) {
    a.peer = &b;
    b.peer = &a;
  }

  // Something happens somewhere, whatever comes first; false: nothing is left to happen.
  bool step() {
    const bool first = random.below(2) == 0;
    for (const bool at_a : {first, !first}) {
      End& end = at_a ? a : b;
      if (!end.inbox.empty() && (!end.draining || random.below(2) == 0)) {
        const Message message = end.inbox.front();
        end.inbox.pop_front();
        end.take(end.machine.on_message(message, progress, now));
        return true;
      }
      if (std::exchange(end.draining, false)) return end.take(end.machine.on_drained(now)), true;
    }
    const Time next = std::min(a.machine.next_tick(), b.machine.next_tick());
    if (next == never) return false;
    now = std::max(now, next);
    a.take(a.machine.on_tick(now));
    b.take(b.machine.on_tick(now));
    return true;
  }
  void fail(End& end) {
    // An end without a queue pair has none that fails.
    if (end.queue_pair != 0) end.take(end.machine.on_failure("it broke", ++progress, now));
  }
  void expect_connected() const {
    for (const End* end : {&a, &b}) {
      EXPECT_EQ(end->lost, "");
      EXPECT_EQ(end->machine.state(), RecoveryState::steady);
      EXPECT_TRUE(end->connected);
    }
    EXPECT_EQ(a.machine.epoch(), b.machine.epoch());
    EXPECT_EQ(a.connected_to, b.queue_pair);
    EXPECT_EQ(b.connected_to, a.queue_pair);
  }

  Random random;
  Time now{};
  std::uint64_t progress = 0;
  End a;
  End b;
};

TEST(RecoveryMachine, OneFailureGivesBothAnotherQueuePair) {
  Pair pair(1);
  pair.fail(pair.a);
  while (pair.step()) {
  }
  pair.expect_connected();
  EXPECT_EQ(pair.a.resumed, 1);
  EXPECT_EQ(pair.b.resumed, 1);
  EXPECT_EQ(pair.a.machine.epoch(), Epoch{2});
}

TEST(RecoveryMachine, FailuresAtBothEndsAtOnceAreOneRecovery) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Pair pair(seed);
    pair.fail(pair.a);
    pair.fail(pair.b);
    while (pair.step()) {
    }
    pair.expect_connected();
    EXPECT_EQ(pair.a.machine.epoch(), Epoch{2});
  }
}

TEST(RecoveryMachine, FailuresAtAnyMomentEndInOneConnection) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Pair pair(seed);
    for (std::uint64_t failures = 1 + pair.random.below(3); failures != 0; --failures) {
      pair.fail(pair.random.below(2) == 0 ? pair.a : pair.b);
      for (std::uint64_t steps = pair.random.below(12); steps != 0 && pair.step(); --steps) {
      }
    }
    int steps = 0;
    while (pair.step()) ASSERT_LT(++steps, 1000) << "it never ends";
    pair.expect_connected();
  }
}

TEST(RecoveryMachine, WhatIsOlderOrRepeatedIsIgnored) {
  Pair pair(1);
  pair.fail(pair.a);
  while (pair.step()) {
  }
  for (const std::uint32_t epoch : {1U, 2U}) {
    EXPECT_TRUE(
        pair.b.machine.on_message({Session{1}, Epoch{epoch}, Rehandshake{offer_of(9), 7}}, 0, pair.now).empty());
    EXPECT_TRUE(pair.b.machine.on_message({Session{1}, Epoch{epoch}, Reconnected{}}, 0, pair.now).empty());
  }
  pair.expect_connected();
}

TEST(RecoveryMachine, GivesUpAfterSoManyAttemptsThatMovedNothing) {
  Recovery machine(Role::dialler, limits, Random(1));
  Time now{};
  RecoveryActions actions = machine.on_failure("it broke", 5, now);
  for (std::uint32_t attempt = 1; attempt < limits.attempts; ++attempt) {
    ASSERT_TRUE(std::holds_alternative<recovery::Drain>(actions.at(0))) << attempt;
    actions = machine.on_drained(now);
    if (actions.empty()) {  // a pause
      ASSERT_EQ(machine.state(), RecoveryState::pausing);
      EXPECT_GT(machine.next_tick(), now);
      now = machine.next_tick();
      actions = machine.on_tick(now);
    }
    ASSERT_TRUE(std::holds_alternative<recovery::Prepare>(actions.at(0)));
    (void)machine.on_prepared(offer_of(2), 0);
    actions = machine.on_failure("it broke again", 5, now);
  }
  (void)machine.on_drained(now);
  (void)machine.on_tick(now = machine.next_tick());
  (void)machine.on_prepared(offer_of(2), 0);
  actions = machine.on_failure("it broke for the last time", 5, now);
  const auto* lose = std::get_if<recovery::Lose>(&actions.at(0));
  ASSERT_NE(lose, nullptr);
  EXPECT_NE(lose->sentence.find("it broke for the last time"), std::string::npos) << lose->sentence;
  EXPECT_NE(lose->sentence.find("recovery.attempts"), std::string::npos) << lose->sentence;
  EXPECT_TRUE(machine.on_failure("more", 6, now).empty());
}

TEST(RecoveryMachine, GivesUpAtItsDeadlineAndSaysWhatItWaitedFor) {
  Recovery machine(Role::dialler, limits, Random(1));
  const Time start{};
  (void)machine.on_failure("it broke", 0, start);
  (void)machine.on_drained(start);
  (void)machine.on_prepared(offer_of(2), 0);
  EXPECT_EQ(machine.next_tick(), start + limits.deadline);
  EXPECT_TRUE(machine.on_tick(start + limits.deadline - 1ns).empty());
  const RecoveryActions actions = machine.on_tick(start + limits.deadline);
  const auto* lose = std::get_if<recovery::Lose>(&actions.at(0));
  ASSERT_NE(lose, nullptr);
  EXPECT_NE(lose->sentence.find("recovery.deadline (10s)"), std::string::npos) << lose->sentence;
  EXPECT_NE(lose->sentence.find("the peer's queue pair"), std::string::npos) << lose->sentence;
}

TEST(RecoveryMachine, APeerThatNoLongerFitsEndsIt) {
  Recovery machine(Role::dialler, limits, Random(1));
  (void)machine.on_failure("it broke", 0, Time{});
  (void)machine.on_drained(Time{});
  (void)machine.on_prepared(offer_of(2), 0);
  Offer other = offer_of(3);
  other.pkey = 0x8123;
  const RecoveryActions actions = machine.on_message({Session{1}, Epoch{2}, Rehandshake{other, 0}}, 0, Time{});
  EXPECT_TRUE(std::holds_alternative<recovery::Lose>(actions.at(0)));
}

}  // namespace
}  // namespace verbatim::transport::control
