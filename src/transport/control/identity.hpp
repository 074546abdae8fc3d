// Who takes part in a handshake, and what both must have set alike.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace verbatim::transport::control {

// A worker of a process. The incarnation is the process's 64-bit random id: a restarted one has another.
struct Identity {
  std::uint64_t incarnation = 0;
  std::uint32_t worker = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the defaulted comparison for a literal
  friend constexpr auto operator<=>(const Identity&, const Identity&) = default;
};

// One attempt to make a channel: 64 random bits, chosen by the dialler. 0 is none.
struct Session {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(Session, Session) = default;
};

// Count of a channel's (re)handshakes.
struct Epoch {
  std::uint32_t value = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the defaulted comparison for a literal
  friend constexpr auto operator<=>(Epoch, Epoch) = default;
};

// What is not negotiated: two workers that differ here would misread each other's messages.
struct SharedSettings {
  std::uint32_t message_format = 0;        // version of the data path's headers
  std::uint32_t message_header_bytes = 0;  // of the header in front of each message
  std::uint32_t ring_alignment_bytes = 0;  // of entries in the ring of a write queue
};

[[nodiscard]] std::uint64_t fingerprint(const SharedSettings& settings) noexcept;
[[nodiscard]] std::string describe(const SharedSettings& settings);  // "message format 1, header of 32 bytes, …"

}  // namespace verbatim::transport::control
