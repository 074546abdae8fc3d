// What the machine itself needs to hand a cache line from one core to another: the yardstick for a small message.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace verbatim::apps {

// In memory that both sides share; zero at first. Each side writes its own line and looks at the other's.
struct HandoverLines {
  struct alignas(64) Line {
    std::atomic<std::uint64_t> value;
  };
  std::array<Line, 2> lines;
};

// Looks without a pause, as a thread has them that waits for another core.
inline constexpr unsigned handover_looks = 1024;

// Called by both sides, 0 and 1, with the same count: half a round trip in nanoseconds. Side 0 begins. `spend_patience`
// is called after each `looks_in_a_row` empty looks; it throws when the other side isn't coming.
template <typename SpendPatience>
[[nodiscard]] double time_handover(HandoverLines& shared, int side, std::uint64_t round_trips, unsigned looks_in_a_row,
                                   SpendPatience spend_patience) {
  std::atomic<std::uint64_t>& own = shared.lines[static_cast<std::size_t>(side)].value;
  const std::atomic<std::uint64_t>& other = shared.lines[static_cast<std::size_t>(1 - side)].value;
  const std::uint64_t base = own.load();
  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t round = base + 1; round <= base + round_trips; ++round) {
    if (side == 0) own.store(round, std::memory_order_release);
    for (unsigned looks = 1; other.load(std::memory_order_acquire) != round; ++looks) {
      if (looks % looks_in_a_row == 0) spend_patience();
    }
    if (side != 0) own.store(round, std::memory_order_release);
  }
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  return elapsed.count() / (2.0 * static_cast<double>(round_trips));
}

}  // namespace verbatim::apps
