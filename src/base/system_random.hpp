// A seed from the system, for runs that need no replay. Edge only: protocol code is handed a Random.
#pragma once

#include <cstdint>
#include <random>

namespace verbatim {

[[nodiscard]] inline std::uint64_t system_seed() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

}  // namespace verbatim
