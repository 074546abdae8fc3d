#include "one_sided.hpp"

#include "stopwatch.hpp"
#include "window.hpp"

namespace verbatim::perf {

Measured lead_puts(Exchange& exchange, std::uint64_t iterations) {
  const std::uint32_t window = exchange.point().window;
  std::uint64_t replies = 0;
  Window puts(exchange, "put");
  const std::uint64_t start = ticks();
  for (std::uint64_t i = 0; i < iterations; ++i) {
    if (puts.full()) puts.await_oldest();
    puts.add(exchange.put(i));
    if (!exchange.point().check || (i + 1) % window != 0) continue;
    puts.await_all();
    exchange.await(exchange.send_reply(), "asking to look at a window");
    exchange.await(exchange.expect_reply(), "reply");
    replies += 2;
  }
  puts.await_all();
  const double elapsed_ns = static_cast<double>(ticks() - start) * ns_per_tick();
  return {elapsed_ns, iterations, iterations + replies, {}};
}

void follow_puts(Exchange& exchange, std::uint64_t iterations, const Announce& announce) {
  announce();
  if (!exchange.point().check) return;
  const std::uint32_t window = exchange.point().window;
  for (std::uint64_t first = 0; first < iterations; first += window) {
    exchange.await(exchange.expect_reply(), "being asked to look at a window");
    for (std::uint64_t i = first; i < first + window; ++i) exchange.verify(i);
    exchange.await(exchange.send_reply(), "reply");
  }
}

Measured lead_gets(Exchange& exchange, std::uint64_t iterations) {
  Window gets(exchange, "get");
  const std::uint64_t start = ticks();
  for (std::uint64_t i = 0; i < iterations; ++i) {
    if (gets.full()) exchange.verify_got(gets.await_oldest());
    gets.add(exchange.get(i));
  }
  while (!gets.empty()) exchange.verify_got(gets.await_oldest());
  const double elapsed_ns = static_cast<double>(ticks() - start) * ns_per_tick();
  return {elapsed_ns, iterations, iterations, {}};
}

Measured lead_get_latency(Exchange& exchange, std::uint64_t iterations) {
  Measured measured;
  measured.messages = measured.operations = iterations;
  measured.round_trips.resize(iterations);
  const std::uint64_t start = ticks();
  std::uint64_t last = start;
  for (std::uint64_t i = 0; i < iterations; ++i) {
    exchange.await(exchange.get(i), "get");
    exchange.verify_got(i);
    const std::uint64_t now = ticks();
    measured.round_trips[i] = now - last;
    last = now;
  }
  measured.elapsed_ns = static_cast<double>(last - start) * ns_per_tick();
  return measured;
}

void follow_gets(Exchange& exchange, std::uint64_t /*iterations*/, const Announce& announce) {
  exchange.fill_sources();
  announce();
}

}  // namespace verbatim::perf
