// Words that every other header uses.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace verbatim {

// What a receive is matched by, next to the channel that the message came through. The library gives it no meaning.
struct Tag {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(Tag, Tag) = default;
};

// Which bits of a tag a receive looks at.
struct TagMask {
  std::uint64_t bits = ~std::uint64_t{0};
  friend constexpr bool operator==(TagMask, TagMask) = default;
};
inline constexpr TagMask exact_tag{};
inline constexpr TagMask any_tag{0};

// A channel's number within its worker; never used twice.
struct ChannelId {
  std::uint32_t value = 0;
  friend constexpr auto operator<=>(ChannelId, ChannelId) = default;
};
inline constexpr ChannelId any_source{0};

// How a request ended, or why a call was refused.
enum class Status : std::uint8_t {
  ok,
  truncated,         // the message was longer than the receive: as much as fits was written, `bytes` is its length
  canceled,          // by cancel(), or because the worker was closed
  invalid_argument,  // refused at once: a pointer, length, alignment or region that can't be right
  no_resources,      // max_requests are under way, memory can't be registered, or queue pairs are used up; try later
  not_connected,     // the channel is closed, or never opened
  peer_gone,         // the peer's process ended or closed the channel
  timed_out,         // a bound of the configuration ran out
  device_failed,     // the device or a queue pair failed, or the peer broke the protocol
  remote_access,     // the target's region doesn't allow it: outside of it, gone, or not for this
};
[[nodiscard]] const char* to_string(Status status) noexcept;

// What became of what a request was for.
enum class Outcome : std::uint8_t {
  pending,
  accepted,  // of a short send: the library has it, and delivers it unless a process dies; flush() tells
  delivered,
  not_delivered,  // the peer did not and will not see it
  unknown,        // only where an operation's description names it
};
[[nodiscard]] const char* to_string(Outcome outcome) noexcept;

}  // namespace verbatim
