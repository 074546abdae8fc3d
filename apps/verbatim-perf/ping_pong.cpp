#include "ping_pong.hpp"

#include "stopwatch.hpp"

namespace verbatim::perf {
namespace {

struct BySend {
  static Request send(Exchange& exchange, std::uint64_t message) { return exchange.send(message); }
  static Request expect(Exchange& exchange, std::uint64_t message) { return exchange.expect(message); }
};

struct ByPut {
  static Request send(Exchange& exchange, std::uint64_t message) { return exchange.put_notify(message); }
  static Request expect(Exchange& exchange, std::uint64_t /*message*/) { return exchange.expect_reply(); }
};

// The receive is posted while the message is on its way, as a program's `send(); recv();` does it.
template <typename By>
Measured lead(Exchange& exchange, std::uint64_t iterations) {
  Measured measured;
  measured.messages = measured.operations = 2 * iterations;
  measured.round_trips.resize(iterations);
  const std::uint64_t start = ticks();
  std::uint64_t last = start;
  for (std::uint64_t i = 0; i < iterations; ++i) {
    const Request outgoing = By::send(exchange, i);
    const Request incoming = By::expect(exchange, i);
    exchange.await(incoming, "receive");
    exchange.verify(i);
    exchange.await(outgoing, "send");
    const std::uint64_t now = ticks();
    measured.round_trips[i] = now - last;
    last = now;
  }
  measured.elapsed_ns = static_cast<double>(last - start) * ns_per_tick();
  return measured;
}

template <typename By>
void follow(Exchange& exchange, std::uint64_t iterations, const Announce& announce) {
  Request incoming = By::expect(exchange, 0);
  announce();
  for (std::uint64_t i = 0; i < iterations; ++i) {
    exchange.await(incoming, "receive");
    exchange.verify(i);
    const Request outgoing = By::send(exchange, i);
    if (i + 1 < iterations) incoming = By::expect(exchange, i + 1);
    exchange.await(outgoing, "send");
  }
}

}  // namespace

Measured lead_ping_pong(Exchange& exchange, std::uint64_t iterations) {
  return lead<BySend>(exchange, iterations);
}
void follow_ping_pong(Exchange& exchange, std::uint64_t iterations, const Announce& announce) {
  follow<BySend>(exchange, iterations, announce);
}
Measured lead_put_ping_pong(Exchange& exchange, std::uint64_t iterations) {
  return lead<ByPut>(exchange, iterations);
}
void follow_put_ping_pong(Exchange& exchange, std::uint64_t iterations, const Announce& announce) {
  follow<ByPut>(exchange, iterations, announce);
}

}  // namespace verbatim::perf
