// A TcpControl with somebody who takes its events.
#pragma once

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/monotonic_clock.hpp"
#include "transport/host/tcp_control.hpp"

namespace verbatim::transport::host {

using control::LinkEvent;
using control::LinkEventKind;
using control::LinkId;

inline std::vector<std::byte> frame_of(std::string_view text) {
  std::vector<std::byte> bytes;
  for (char c : text) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

inline Time in(Duration duration) {
  return MonotonicClock().now() + duration;
}

struct Party {
  TcpControl control;
  std::vector<LinkEvent> events = {};  // all so far

  Party() = default;
  explicit Party(const TcpControl::Settings& settings) : control(settings) {}

  std::string listen() { return control.listen("127.0.0.1", 0, 0); }

  // Takes events, sleeping on event_fd() between, until `enough` says so. False: `patience` ran out.
  template <typename Enough>
  bool wait(Enough enough, Duration patience = std::chrono::seconds(20)) {
    const Time end = in(patience);
    while (!enough()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - MonotonicClock().now()).count();
      if (left <= 0) return false;
      pollfd ready{control.event_fd(), POLLIN, 0};
      (void)::poll(&ready, 1, static_cast<int>(left));
      if (!control.has_events()) continue;
      for (LinkEvent& event : control.take_events()) events.push_back(std::move(event));
    }
    return true;
  }

  [[nodiscard]] std::size_t count(LinkEventKind kind) const {
    return static_cast<std::size_t>(
        std::count_if(events.begin(), events.end(), [&](const LinkEvent& event) { return event.kind == kind; }));
  }
  // The first of a kind; waits for it.
  [[nodiscard]] std::optional<LinkEvent> expect(LinkEventKind kind, Duration patience = std::chrono::seconds(20)) {
    if (!wait([&] { return count(kind) > 0; }, patience)) return std::nullopt;
    return *std::find_if(events.begin(), events.end(), [&](const LinkEvent& event) { return event.kind == kind; });
  }
  bool expect_count(LinkEventKind kind, std::size_t wanted, Duration patience = std::chrono::seconds(20)) {
    return wait([&] { return count(kind) >= wanted; }, patience);
  }
};

}  // namespace verbatim::transport::host
