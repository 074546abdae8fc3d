// What the machine itself needs, to hold a result against.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "common/handover.hpp"

namespace verbatim::perf {

inline constexpr std::uint64_t handover_round_trips = 9600;
// The median of so many parts of them counts: what else the machine does in one of them is no property of its caches.
inline constexpr std::uint64_t handover_batches = 15;
static_assert(handover_round_trips % handover_batches == 0);

// Bytes per second of copying as many to and fro on this core; of much, what a part of it gives. 0 for none.
[[nodiscard]] double memcpy_bandwidth(std::uint64_t bytes);

// apps::time_handover(), for at most as long as a side waits for the other. Throws Error when that is over, and what
// `look_after` throws.
[[nodiscard]] double handover_ns(apps::HandoverLines& lines, int side, std::uint64_t round_trips,
                                 const std::function<void()>& look_after);

}  // namespace verbatim::perf
