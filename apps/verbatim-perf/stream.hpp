// Many messages one after the other: a window at a time, without a pause, or both ways at once.
#pragma once

#include "exchange.hpp"

namespace verbatim::perf {

// A reply after each window.
[[nodiscard]] Measured lead_windows(Exchange& exchange, std::uint64_t iterations);
void follow_windows(Exchange& exchange, std::uint64_t iterations, const Announce& announce);
// A reply after the last.
[[nodiscard]] Measured lead_rate(Exchange& exchange, std::uint64_t iterations);
void follow_rate(Exchange& exchange, std::uint64_t iterations, const Announce& announce);
// Windows that cross each other, and a reply after the last.
[[nodiscard]] Measured lead_both_ways(Exchange& exchange, std::uint64_t iterations);
void follow_both_ways(Exchange& exchange, std::uint64_t iterations, const Announce& announce);

}  // namespace verbatim::perf
