// What the two sides tell each other between measurements: short JSON texts, each in one message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "plan.hpp"
#include "result.hpp"
#include "verbatim/region.hpp"

namespace verbatim::perf {

// Both sides must speak the same; it changes with the texts, and with what a test does.
inline constexpr std::uint32_t protocol_version = 1;
inline constexpr std::size_t max_text_bytes = 4096;

// Where a side's messages lie, for the other's puts and gets.
struct RemoteBuffers {
  RemoteRegion outgoing;
  RemoteRegion incoming;
};

enum class Ask : std::uint8_t {
  point,      // get ready for `point`, and tell where your buffers are
  run,        // take part in `iterations` of it
  report,     // that was it: what did it cost you?
  yardstick,  // hand a cache line to and fro, `iterations` times
  finish,     // all is done; a `problem` makes the other side fail too
};

// From the side that measures.
struct Order {
  Ask ask = Ask::finish;
  Point point{};
  std::uint64_t iterations = 0;
  RemoteBuffers buffers{};
  std::string problem{};
};

// From the other one, to each order but `yardstick` and `finish`. With a problem it says why it gives up.
struct Answer {
  RemoteBuffers buffers{};
  SideUse use{};
  std::string problem{};
};

[[nodiscard]] std::string encode(const Order& order);
[[nodiscard]] std::string encode(const Answer& answer);
// Throw Error(invalid_argument) for what no verbatim-perf of this version says.
[[nodiscard]] Order decode_order(std::string_view text);
[[nodiscard]] Answer decode_answer(std::string_view text);

}  // namespace verbatim::perf
