// Puts and gets, which the other side takes no part in but to look at what has come.
#pragma once

#include "exchange.hpp"

namespace verbatim::perf {

// Checked puts come a window at a time: the other side looks at it and replies before the next may overwrite it.
[[nodiscard]] Measured lead_puts(Exchange& exchange, std::uint64_t iterations);
void follow_puts(Exchange& exchange, std::uint64_t iterations, const Announce& announce);
[[nodiscard]] Measured lead_gets(Exchange& exchange, std::uint64_t iterations);
[[nodiscard]] Measured lead_get_latency(Exchange& exchange, std::uint64_t iterations);
void follow_gets(Exchange& exchange, std::uint64_t iterations, const Announce& announce);

}  // namespace verbatim::perf
