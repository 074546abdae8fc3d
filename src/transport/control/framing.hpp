// A stream of bytes cut into frames: first who speaks, then each frame behind its length. Pure; any split of the bytes
// gives the same frames.
//
//    0                         7       8
//   +-------------------------+-------+   +-----------------------------+------------ … ---+
//   | "verbatm"               |version|   | length, 4 bytes             | content          |  …
//   +-------------------------+-------+   +-----------------------------+------------ … ---+
//                                           little endian, 1 to 64 KiB
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "transport/control/control_link.hpp"
#include "transport/control/messages.hpp"

namespace verbatim::transport::control {

inline constexpr std::array<std::byte, 8> preamble = {std::byte{'v'}, std::byte{'e'}, std::byte{'r'}, std::byte{'b'},
                                                      std::byte{'a'}, std::byte{'t'}, std::byte{'m'}, std::byte{1}};
inline constexpr std::size_t length_bytes = 4;

// Appends the frame with its length. It has 1 to max_frame_bytes.
void append_frame(std::span<const std::byte> frame, std::vector<std::byte>& stream);

class Unframer {
 public:
  enum class State : std::uint8_t {
    unidentified,  // not heard yet who speaks
    frames,
    stranger,  // the other end does not speak our protocol
    broken,    // it does, but made no sense
  };

  // Takes the next bytes of the stream, and appends the frames that are whole. Whatever comes after `stranger` or
  // `broken` is ignored.
  State feed(std::span<const std::byte> bytes, std::vector<ControlFrame>& frames);
  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }  // stranger, broken: a sentence

 private:
  [[nodiscard]] State read_preamble();
  [[nodiscard]] State read_frames(std::vector<ControlFrame>& frames);

  State state_ = State::unidentified;
  std::vector<std::byte> unread_;  // at most one frame that is not whole, and what came in one call
  std::string problem_;
};

}  // namespace verbatim::transport::control
