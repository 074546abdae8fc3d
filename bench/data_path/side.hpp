// One of the two processes: goes through the phases with the other one, on the public interface alone, and leaves what
// it has counted in the shared page.
#pragma once

#include <cstdint>

#include "shared_page.hpp"

namespace verbatim::data_path {

// Most bytes that one phase moves: phases of large messages have fewer.
inline constexpr std::uint64_t most_bytes_moved = 8ULL << 30;

// The whole life of side `number`, on the soft device. Throws Error, also when nothing comes from the other side.
void run_side(SharedPage& page, unsigned number, std::uint64_t messages);

}  // namespace verbatim::data_path
