// A message to the other side and one back, again and again: by sends, or by puts with a notice.
#pragma once

#include "exchange.hpp"

namespace verbatim::perf {

[[nodiscard]] Measured lead_ping_pong(Exchange& exchange, std::uint64_t iterations);
void follow_ping_pong(Exchange& exchange, std::uint64_t iterations, const Announce& announce);
[[nodiscard]] Measured lead_put_ping_pong(Exchange& exchange, std::uint64_t iterations);
void follow_put_ping_pong(Exchange& exchange, std::uint64_t iterations, const Announce& announce);

}  // namespace verbatim::perf
