// memcpy for sizes that are mostly tiny: a call costs more than the copy.
#pragma once

#include <cstddef>
#include <cstring>

namespace verbatim::soft {

inline void copy_small(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 32) {
    std::memcpy(to, from, bytes);
  } else if (bytes >= 16) {
    std::memcpy(to, from, 16);
    std::memcpy(to + bytes - 16, from + bytes - 16, 16);
  } else if (bytes >= 8) {
    std::memcpy(to, from, 8);
    std::memcpy(to + bytes - 8, from + bytes - 8, 8);
  } else {
    for (std::size_t i = 0; i < bytes; ++i) to[i] = from[i];
  }
}

}  // namespace verbatim::soft
