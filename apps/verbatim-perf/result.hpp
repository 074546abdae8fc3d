// What was measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan.hpp"
#include "statistics.hpp"

namespace verbatim::perf {

// What one side spent on a point: differences over it, but for pinned_bytes, which is what it had then.
struct SideUse {
  std::uint64_t cpu_ns = 0;
  std::uint64_t posts = 0;
  std::uint64_t signalled = 0;
  std::uint64_t receive_posts = 0;
  std::uint64_t rnr_naks = 0;
  std::uint64_t retransmits = 0;
  std::uint64_t pinned_bytes = 0;
  friend bool operator==(const SideUse&, const SideUse&) = default;
};

// What the machine itself needs, measured next to a point.
struct Yardstick {
  double handover_ns = 0;              // of a cache line to the other side's core
  double memcpy_bytes_per_second = 0;  // of messages as long as the point's; 0 for no bytes
};

struct PointResult {
  Point point;
  std::uint64_t messages = 0;    // that count: both sides' where both send
  std::uint64_t operations = 0;  // messages and the replies of the test
  double elapsed_ns = 0;
  Distribution latency_ns;  // of latency tests
  SideUse here;
  SideUse there;
  std::optional<Yardstick> yardstick;

  [[nodiscard]] bool is_latency() const { return traits(point.test).figure == Figure::latency; }
  [[nodiscard]] double messages_per_second() const { return static_cast<double>(messages) * 1e9 / elapsed_ns; }
  [[nodiscard]] double bytes_per_second() const { return messages_per_second() * static_cast<double>(point.bytes); }
  // Of both sides together.
  [[nodiscard]] double per_operation(std::uint64_t SideUse::*count) const;
  [[nodiscard]] double signalled_share() const;
  // Against the yardstick; nothing without one.
  [[nodiscard]] std::optional<double> times_handover() const;   // of latencies
  [[nodiscard]] std::optional<double> share_of_memcpy() const;  // of bandwidths
};

struct Conditions {
  std::string device;
  std::string place;  // "this host, cores 0 and 1", or who the peer is
  std::string wait;
  bool check = false;
};

struct Results {
  Conditions conditions;
  std::vector<PointResult> points;
};

}  // namespace verbatim::perf
