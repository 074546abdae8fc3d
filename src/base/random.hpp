// Seeded randomness. Everything random below the edge comes from one of these, so that a seed replays a run.
#pragma once

#include <cstdint>
#include <random>

namespace verbatim {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  [[nodiscard]] std::uint64_t bits() { return engine_(); }
  // Uniform in [0, bound); bound > 0. Not std::uniform_int_distribution, whose values differ between libraries.
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(engine_()) * bound) >> 64);
  }
  // True with probability `rate` (0 … 1).
  [[nodiscard]] bool chance(double rate) { return rate > 0 && static_cast<double>(engine_() >> 11) * 0x1.0p-53 < rate; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace verbatim
