#include "transport/control/framing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace verbatim::transport::control {
namespace {

std::string in_hexadecimal(std::span<const std::byte> bytes) {
  std::string text;
  for (std::byte byte : bytes)
    text += fmt::format("{}{:02x}", text.empty() ? "" : " ", std::to_integer<unsigned>(byte));
  return text;
}

}  // namespace

void append_frame(std::span<const std::byte> frame, std::vector<std::byte>& stream) {
  assert(!frame.empty() && frame.size() <= max_frame_bytes);
  for (std::size_t i = 0; i < length_bytes; ++i) stream.push_back(static_cast<std::byte>(frame.size() >> (8 * i)));
  stream.insert(stream.end(), frame.begin(), frame.end());
}

Unframer::State Unframer::feed(std::span<const std::byte> bytes, std::vector<ControlFrame>& frames) {
  if (state_ == State::stranger || state_ == State::broken) return state_;
  unread_.insert(unread_.end(), bytes.begin(), bytes.end());
  if (state_ == State::unidentified) state_ = read_preamble();
  if (state_ == State::frames) state_ = read_frames(frames);
  return state_;
}

Unframer::State Unframer::read_preamble() {
  // A stranger is known by his first wrong byte: he need not send all eight.
  const std::size_t known = std::min(unread_.size(), preamble.size());
  const std::span<const std::byte> heard(unread_.data(), known);
  const std::size_t magic_bytes = std::min(known, preamble.size() - 1);
  if (!std::equal(heard.begin(), heard.begin() + static_cast<std::ptrdiff_t>(magic_bytes), preamble.begin())) {
    problem_ = fmt::format("what speaks there is not Verbatim: it starts with {}", in_hexadecimal(heard));
    return State::stranger;
  }
  if (known < preamble.size()) return State::unidentified;
  if (heard.back() != preamble.back()) {
    problem_ = fmt::format(
        "framing of control links: one peer speaks version {}, the other version {}; both need the "
        "same release",
        std::to_integer<unsigned>(preamble.back()), std::to_integer<unsigned>(heard.back()));
    return State::stranger;
  }
  unread_.erase(unread_.begin(), unread_.begin() + static_cast<std::ptrdiff_t>(preamble.size()));
  return State::frames;
}

Unframer::State Unframer::read_frames(std::vector<ControlFrame>& frames) {
  std::size_t at = 0;
  const auto unread = [&] { return unread_.size() - at; };
  State state = State::frames;
  while (unread() >= length_bytes) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < length_bytes; ++i) length |= std::to_integer<std::size_t>(unread_[at + i]) << (8 * i);
    if (length == 0 || length > max_frame_bytes) {
      problem_ = fmt::format("a frame of {} bytes; 1 to {} are allowed", length, max_frame_bytes);
      state = State::broken;
      break;
    }
    if (unread() < length_bytes + length) break;
    const auto start = unread_.begin() + static_cast<std::ptrdiff_t>(at + length_bytes);
    frames.emplace_back(start, start + static_cast<std::ptrdiff_t>(length));
    at += length_bytes + length;
  }
  unread_.erase(unread_.begin(), unread_.begin() + static_cast<std::ptrdiff_t>(at));
  return state;
}

}  // namespace verbatim::transport::control
