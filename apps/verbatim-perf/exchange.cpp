#include "exchange.hpp"

#include "one_sided.hpp"
#include "ping_pong.hpp"
#include "stream.hpp"

namespace verbatim::perf {

Exchange::Exchange(Peer& peer, const Point& point)
    : peer_(peer),
      worker_(peer.worker()),
      channel_(peer.channel()),
      point_(point),
      slots_(point),
      outgoing_(worker_.allocate(slots_.bytes())),
      incoming_(worker_.allocate(slots_.bytes())) {}

void Exchange::fill_sources() {
  if (!point_.check) return;
  for (std::uint64_t slot = 0; slot < slots_.count; ++slot) {
    fill_pattern(outgoing_.data() + slots_.offset(slot), point_.bytes, slot);
  }
}

void Exchange::look_at(std::uint64_t message, std::uint64_t holds) {
  const auto found = find_mismatch(incoming_.data() + slots_.offset(message), point_.bytes, holds);
  if (!found || mismatch_) return;
  mismatch_ = found;
  mismatch_->message = first_message_ + message;
}

TestSides sides_of(TestKind test) {
  switch (test) {
    case TestKind::lat:
      return {lead_ping_pong, follow_ping_pong};
    case TestKind::put_lat:
      return {lead_put_ping_pong, follow_put_ping_pong};
    case TestKind::bw:
      return {lead_windows, follow_windows};
    case TestKind::rate:
      return {lead_rate, follow_rate};
    case TestKind::bibw:
      return {lead_both_ways, follow_both_ways};
    case TestKind::put_bw:
      return {lead_puts, follow_puts};
    case TestKind::get_bw:
      return {lead_gets, follow_gets};
    case TestKind::get_lat:
      break;
  }
  return {lead_get_latency, follow_gets, 1};  // a get is a round trip by itself, and there is no half of it
}

}  // namespace verbatim::perf
