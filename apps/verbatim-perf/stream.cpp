#include "stream.hpp"

#include "stopwatch.hpp"
#include "window.hpp"

namespace verbatim::perf {
namespace {

// Keeps as many receives posted as there is room and need for.
class Receives {
 public:
  Receives(Exchange& exchange, std::uint64_t messages)
      : exchange_(exchange), window_(exchange, "receive"), messages_(messages) {
    while (!window_.full() && posted_ < messages_) post();
  }
  void take_next() {
    exchange_.verify(window_.await_oldest());
    if (posted_ < messages_) post();
  }

 private:
  void post() { window_.add(exchange_.expect(posted_++)); }

  Exchange& exchange_;
  Window window_;
  std::uint64_t messages_;
  std::uint64_t posted_ = 0;
};

Measured lead_stream(Exchange& exchange, std::uint64_t iterations, std::uint64_t reply_every) {
  Window sends(exchange, "send");
  Request reply = exchange.expect_reply();
  const std::uint64_t start = ticks();
  std::uint64_t until_reply = reply_every;
  for (std::uint64_t i = 0; i < iterations; ++i) {
    if (sends.full()) sends.await_oldest();
    sends.add(exchange.send(i));
    if (--until_reply != 0) continue;
    until_reply = reply_every;
    sends.await_all();
    exchange.await(reply, "reply");
    if (i + 1 < iterations) reply = exchange.expect_reply();
  }
  const double elapsed_ns = static_cast<double>(ticks() - start) * ns_per_tick();
  return {elapsed_ns, iterations, iterations + iterations / reply_every, {}};
}

void follow_stream(Exchange& exchange, std::uint64_t iterations, std::uint64_t reply_every, const Announce& announce) {
  Receives receives(exchange, iterations);
  announce();
  std::uint64_t until_reply = reply_every;
  for (std::uint64_t i = 0; i < iterations; ++i) {
    receives.take_next();
    if (--until_reply != 0) continue;
    until_reply = reply_every;
    exchange.await(exchange.send_reply(), "reply");
  }
}

void cross(Exchange& exchange, Receives& receives, std::uint64_t iterations) {
  const std::uint32_t window = exchange.point().window;
  Window sends(exchange, "send");
  for (std::uint64_t first = 0; first < iterations; first += window) {
    for (std::uint64_t i = first; i < first + window; ++i) sends.add(exchange.send(i));
    for (std::uint64_t i = first; i < first + window; ++i) receives.take_next();
    sends.await_all();
  }
}

}  // namespace

Measured lead_windows(Exchange& exchange, std::uint64_t iterations) {
  return lead_stream(exchange, iterations, exchange.point().window);
}
void follow_windows(Exchange& exchange, std::uint64_t iterations, const Announce& announce) {
  follow_stream(exchange, iterations, exchange.point().window, announce);
}
Measured lead_rate(Exchange& exchange, std::uint64_t iterations) {
  return lead_stream(exchange, iterations, iterations);
}
void follow_rate(Exchange& exchange, std::uint64_t iterations, const Announce& announce) {
  follow_stream(exchange, iterations, iterations, announce);
}

Measured lead_both_ways(Exchange& exchange, std::uint64_t iterations) {
  Receives receives(exchange, iterations);
  const Request reply = exchange.expect_reply();
  const std::uint64_t start = ticks();
  cross(exchange, receives, iterations);
  exchange.await(reply, "reply");
  const double elapsed_ns = static_cast<double>(ticks() - start) * ns_per_tick();
  return {elapsed_ns, 2 * iterations, 2 * iterations + 1, {}};
}

void follow_both_ways(Exchange& exchange, std::uint64_t iterations, const Announce& announce) {
  Receives receives(exchange, iterations);
  announce();
  cross(exchange, receives, iterations);
  exchange.await(exchange.send_reply(), "reply");
}

}  // namespace verbatim::perf
