// Bytes to send, and what has become of many requests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/random.hpp"
#include "verbatim/request.hpp"

namespace verbatim::transport::test {

using Bytes = std::vector<std::byte>;

[[nodiscard]] inline Bytes pattern(std::size_t bytes, std::uint64_t seed) {
  Random random(seed);
  Bytes data(bytes);
  for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random.bits();
    std::memcpy(data.data() + at, &word, std::min(sizeof(word), bytes - at));
  }
  return data;
}

[[nodiscard]] inline bool all_done(const std::vector<Request>& requests) {
  return std::ranges::all_of(requests, [](const Request& request) { return request.done(); });
}

}  // namespace verbatim::transport::test
