// What the three processes share: where to connect to, how far each side is, and what it has counted.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "phase.hpp"
#include "verbatim/region.hpp"

namespace verbatim::data_path {

inline constexpr unsigned sides = 2;  // 0 connects and leads, 1 listens and follows
inline constexpr unsigned memories = 2;

// Of one side in one phase; of posts and receives what its channel's counters say.
struct SideCounts {
  std::uint64_t messages = 0;  // sent, replies included; of puts, gets and atomics the operations begun
  std::uint64_t heap_calls = 0;
  std::uint64_t posts = 0;
  std::uint64_t credit_messages = 0;
  std::uint64_t signalled = 0;
  std::uint64_t receive_posts = 0;
  std::uint64_t preemptions = 0;  // how often the worker's thread lost its processor
};

struct SharedPage {
  struct alignas(64) Arrivals {
    std::atomic<std::uint64_t> count{0};
  };
  std::array<Arrivals, sides> arrivals;
  std::atomic<bool> go{false};  // the sides may begin
  char address[256]{};          // of the side that listens
  std::array<std::array<RemoteRegion::Encoded, memories>, sides> regions{};
  std::array<std::array<SideCounts, sides>, phases.size()> counts{};
};

}  // namespace verbatim::data_path
