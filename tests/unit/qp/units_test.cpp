#include "device/queue_pair/units.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "base/error.hpp"
#include "oracle.hpp"

namespace verbatim::qp {
namespace {

using namespace std::chrono_literals;

std::string refusal(const std::function<void()>& attempt) {
  try {
    attempt();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "none";
}

std::map<int, Duration> rnr_timers() {
  std::map<int, Duration> timers;
  for (const auto& row : test::read_csv("rnr_timer.csv")) {
    timers[std::stoi(row.at(0))] = Duration(std::llround(std::stod(row.at(1)) * 1e6));
  }
  return timers;
}

TEST(RnrTimer, HasTheDurationsOfTheReference) {
  const auto timers = rnr_timers();
  ASSERT_EQ(timers.size(), 32U);
  for (const auto& [code, duration] : timers) {
    EXPECT_EQ(RnrTimer::from_code(static_cast<std::uint8_t>(code)).duration(), duration) << code;
    EXPECT_EQ(RnrTimer(duration).code(), code) << "there and back";
  }
}

TEST(RnrTimer, IsTheNearestThatIsNotBelow) {
  const auto timers = rnr_timers();
  for (const auto& [code, duration] : timers) {
    for (const auto asked : {duration - 1ns, duration, duration + 1ns}) {
      Duration nearest = Duration::max();
      for (const auto& [other, length] : timers) {
        if (length >= asked) nearest = std::min(nearest, length);
      }
      if (nearest == Duration::max()) continue;  // above the longest
      EXPECT_EQ(RnrTimer(asked).duration(), nearest) << asked.count();
    }
  }
}

TEST(RnrTimer, IsNotTheLongestByAccident) {
  EXPECT_EQ(RnrTimer(1ns).duration(), 10us);
  EXPECT_EQ(refusal([] { RnrTimer timer(0ns); }),
            "RNR timer: 0ns is not possible; give more than 0ns and at most 655360us");
  EXPECT_EQ(refusal([] { RnrTimer timer(-1us); }),
            "RNR timer: -1us is not possible; give more than 0ns and at most 655360us");
  EXPECT_EQ(refusal([] { RnrTimer timer(656ms); }),
            "RNR timer: 656ms is not possible; give more than 0ns and at most 655360us");
  EXPECT_EQ(refusal([] { (void)RnrTimer::from_code(32); }), "RNR timer: code 32 is not possible; codes are 0 to 31");
}

TEST(AckTimeout, DoublesFromCodeToCode) {
  for (int code = 1; code <= 31; ++code) {
    const auto timeout = AckTimeout::from_code(static_cast<std::uint8_t>(code));
    const Duration expected(std::llround(std::ldexp(4096.0, code)));
    EXPECT_EQ(timeout.duration(), expected);
    EXPECT_EQ(AckTimeout(expected).code(), code);
    EXPECT_EQ(AckTimeout(expected - 1ns).code(), code) << "never below what was asked for";
    if (code < 31) {
      EXPECT_EQ(AckTimeout(expected + 1ns).code(), code + 1);
    }
  }
  EXPECT_EQ(AckTimeout(500ms).duration(), 536'870'912ns);
}

TEST(AckTimeout, IsInfiniteOnlyWhenAskedFor) {
  EXPECT_EQ(AckTimeout(infinite).code(), 0);
  EXPECT_EQ(AckTimeout(infinite).duration(), std::nullopt);
  EXPECT_EQ(AckTimeout::from_code(0), AckTimeout(infinite));
  EXPECT_EQ(AckTimeout(1ns).code(), 1);
  const std::string allowed = " is not possible; give more than 0ns and at most 8796093022208ns, or ask for infinite";
  EXPECT_EQ(refusal([] { AckTimeout timeout(0ns); }), "ack timeout: 0ns" + allowed);
  EXPECT_EQ(refusal([] { AckTimeout timeout(-1ns); }), "ack timeout: -1ns" + allowed);
  EXPECT_EQ(refusal([] { AckTimeout timeout(Duration::max()); }), "ack timeout: 9223372036854775807ns" + allowed);
  EXPECT_EQ(refusal([] { (void)AckTimeout::from_code(32); }),
            "ack timeout: code 32 is not possible; codes are 0 to 31");
}

TEST(RetryCount, CountsToSeven) {
  for (unsigned count = 0; count <= 7; ++count) EXPECT_EQ(RetryCount(count).code(), count);
  EXPECT_EQ(refusal([] { RetryCount count(8); }), "retry count: 8 is not possible; give 0 to 7");
}

TEST(RnrRetry, IsInfiniteOnlyWhenAskedFor) {
  for (unsigned count = 0; count <= 6; ++count) EXPECT_EQ(RnrRetry(count).code(), count);
  EXPECT_EQ(RnrRetry(infinite).code(), 7);
  EXPECT_EQ(refusal([] { RnrRetry count(7); }), "RNR retry count: 7 is not possible; give 0 to 6, or ask for infinite");
}

TEST(PathMtu, IsOneOfFive) {
  const std::map<std::uint32_t, ibv_mtu> sizes{
      {256, IBV_MTU_256}, {512, IBV_MTU_512}, {1024, IBV_MTU_1024}, {2048, IBV_MTU_2048}, {4096, IBV_MTU_4096}};
  for (const auto& [bytes, code] : sizes) {
    EXPECT_EQ(PathMtu::from_bytes(bytes).code(), code);
    EXPECT_EQ(PathMtu::from_code(code).bytes(), bytes);
  }
  EXPECT_LT(PathMtu::from_bytes(1024), PathMtu::from_bytes(4096));
  for (const std::uint32_t bytes : {0, 255, 1023, 1500, 8192}) {
    EXPECT_EQ(refusal([&] { (void)PathMtu::from_bytes(bytes); }),
              "path MTU: " + std::to_string(bytes) + " bytes is not possible; give 256, 512, 1024, 2048 or 4096 bytes");
  }
  EXPECT_EQ(refusal([] { (void)PathMtu::from_code(static_cast<ibv_mtu>(6)); }),
            "path MTU: code 6 is not possible; codes are 1 (256 bytes) to 5 (4096 bytes)");
}

}  // namespace
}  // namespace verbatim::qp
