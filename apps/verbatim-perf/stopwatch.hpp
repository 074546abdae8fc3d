// A time stamp for each of millions of round trips: the processor's own counter where it has one, which costs a
// third of what asking the system's clock does. It is read without waiting for earlier instructions to finish, which
// blurs a stamp by a few nanoseconds and shifts none against the next.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#else
#include <chrono>
#endif

namespace verbatim::perf {

[[nodiscard]] inline std::uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

// Measured against the system's clock at the first call, which takes some milliseconds.
[[nodiscard]] double ns_per_tick();

}  // namespace verbatim::perf
