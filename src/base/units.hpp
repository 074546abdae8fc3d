// Durations and sizes as people write them: "640us", "8KiB". One parser for config, environment and command lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace verbatim {

// "10ns" "640us" "1.5ms" "3s" "2min". A bare number is refused: its unit would be a guess. Throws
// Error(invalid_argument) naming `what`, the text and the units that are known.
[[nodiscard]] Duration parse_duration(std::string_view what, std::string_view text);

// "0" "512" "8KiB" "64k" "2MiB" "1GiB" (k, M, G are powers of 1024 here, as in KiB). Bytes. Throws as above.
[[nodiscard]] std::uint64_t parse_size(std::string_view what, std::string_view text);

// The shortest exact way to write it: 640us, 8KiB, 1025.
[[nodiscard]] std::string format_duration(Duration duration);
[[nodiscard]] std::string format_size(std::uint64_t bytes);

}  // namespace verbatim
