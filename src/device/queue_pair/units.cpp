#include "device/queue_pair/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.hpp"
#include "base/units.hpp"

namespace verbatim::qp {
namespace {

using std::chrono::microseconds;

// By code. The shortest is code 1; code 0 is the longest.
constexpr std::array<Duration, RnrTimer::highest_code + 1> rnr_timers{
    microseconds(655360), microseconds(10),    microseconds(20),     microseconds(30),     microseconds(40),
    microseconds(60),     microseconds(80),    microseconds(120),    microseconds(160),    microseconds(240),
    microseconds(320),    microseconds(480),   microseconds(640),    microseconds(960),    microseconds(1280),
    microseconds(1920),   microseconds(2560),  microseconds(3840),   microseconds(5120),   microseconds(7680),
    microseconds(10240),  microseconds(15360), microseconds(20480),  microseconds(30720),  microseconds(40960),
    microseconds(61440),  microseconds(81920), microseconds(122880), microseconds(163840), microseconds(245760),
    microseconds(327680), microseconds(491520)};
static_assert(std::is_sorted(rnr_timers.begin() + 1, rnr_timers.end()) && rnr_timers.back() < rnr_timers.front());

constexpr Duration ack_timeout_unit{4096};
constexpr Duration ack_timeout(std::uint8_t code) {
  return ack_timeout_unit * (std::int64_t{1} << code);
}

[[noreturn]] void refuse(std::string_view what, std::string_view value, std::string_view allowed) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {} is not possible; {}", what, value, allowed));
}

void expect_code(std::string_view what, unsigned code, unsigned highest) {
  if (code > highest) refuse(what, fmt::format("code {}", code), fmt::format("codes are 0 to {}", highest));
}

void expect_duration(std::string_view what, Duration duration, Duration longest, std::string_view advice) {
  if (duration > Duration::zero() && duration <= longest) return;
  refuse(what, format_duration(duration),
         fmt::format("give more than 0ns and at most {}{}", format_duration(longest), advice));
}

}  // namespace

RnrTimer::RnrTimer(Duration at_least) {
  expect_duration("RNR timer", at_least, rnr_timers.front(), "");
  const auto nearest = std::lower_bound(rnr_timers.begin() + 1, rnr_timers.end(), at_least);
  code_ = nearest == rnr_timers.end() ? 0 : static_cast<std::uint8_t>(nearest - rnr_timers.begin());
}

RnrTimer RnrTimer::from_code(std::uint8_t code) {
  expect_code("RNR timer", code, highest_code);
  return RnrTimer(Code{code});
}

Duration RnrTimer::duration() const {
  return rnr_timers[code_];
}

AckTimeout::AckTimeout(Duration at_least) {
  expect_duration("ack timeout", at_least, ack_timeout(highest_code), ", or ask for infinite");
  code_ = 1;
  while (ack_timeout(code_) < at_least) ++code_;
}

AckTimeout AckTimeout::from_code(std::uint8_t code) {
  expect_code("ack timeout", code, highest_code);
  return AckTimeout(Code{code});
}

std::optional<Duration> AckTimeout::duration() const {
  if (code_ == infinite_code) return std::nullopt;
  return ack_timeout(code_);
}

RetryCount::RetryCount(unsigned count) {
  if (count > highest) refuse("retry count", fmt::format("{}", count), fmt::format("give 0 to {}", highest));
  count_ = static_cast<std::uint8_t>(count);
}

RnrRetry::RnrRetry(unsigned count) {
  if (count >= infinite_code) {
    refuse("RNR retry count", fmt::format("{}", count),
           fmt::format("give 0 to {}, or ask for infinite", infinite_code - 1));
  }
  code_ = static_cast<std::uint8_t>(count);
}

PathMtu PathMtu::from_bytes(std::uint32_t bytes) {
  for (const auto code : {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096}) {
    if (PathMtu(code).bytes() == bytes) return PathMtu(code);
  }
  refuse("path MTU", fmt::format("{} bytes", bytes), "give 256, 512, 1024, 2048 or 4096 bytes");
}

PathMtu PathMtu::from_code(ibv_mtu code) {
  if (code < IBV_MTU_256 || code > IBV_MTU_4096) {
    refuse("path MTU", fmt::format("code {}", static_cast<int>(code)), "codes are 1 (256 bytes) to 5 (4096 bytes)");
  }
  return PathMtu(code);
}

}  // namespace verbatim::qp
