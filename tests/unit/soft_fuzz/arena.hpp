// The memory of a device under fire: zones with every kind of grant, guard bytes between them, and a copy of what must
// never change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/pages.hpp"

namespace verbatim::soft::fuzz {

inline constexpr std::uint32_t own_domain = 1;
inline constexpr std::uint32_t foreign_domain = 2;

struct Zone {
  std::uint32_t offset;
  std::uint32_t bytes;
};

inline constexpr std::uint32_t kib = 1024;
// 16 KiB of guard before, between and behind.
inline constexpr Zone remote_zone{16 * kib, 64 * kib};     // every remote access, own domain
inline constexpr Zone read_only_zone{96 * kib, 16 * kib};  // remote read, own domain
inline constexpr Zone foreign_zone{128 * kib, 32 * kib};   // every access, another domain
inline constexpr Zone gone_zone{176 * kib, 16 * kib};      // was registered with every access
inline constexpr Zone receive_zone{208 * kib, 256 * kib};  // local write: slots for receives
inline constexpr Zone landing_zone{480 * kib, 64 * kib};   // local write: slots for READs and atomics
inline constexpr Zone source_zone{560 * kib, 32 * kib};    // local read: what is sent
inline constexpr std::uint32_t arena_bytes = 608 * kib;

// Receives and READs use the middle of a slot; the rest is guard.
inline constexpr std::uint32_t slot_bytes = 4 * kib;
inline constexpr std::uint32_t slot_guard = 64;
inline constexpr std::uint32_t slot_room = slot_bytes - 2 * slot_guard;

class Arena {
 public:
  Arena();
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  [[nodiscard]] std::byte* at(std::uint32_t offset) const { return static_cast<std::byte*>(memory_.address) + offset; }
  [[nodiscard]] std::uint64_t address(std::uint32_t offset) const {
    return reinterpret_cast<std::uint64_t>(at(offset));
  }
  [[nodiscard]] std::byte* slot(Zone zone, std::uint32_t index) const {
    return at(zone.offset + index * slot_bytes + slot_guard);
  }

  // Whether all of it may be written by somebody.
  [[nodiscard]] bool writable(const std::byte* address, std::size_t bytes) const;
  // What was written although nobody may; nothing if all is well.
  [[nodiscard]] std::optional<std::string> damage() const;

 private:
  void grant(std::uint32_t offset, std::uint32_t bytes);

  device::Memory memory_;
  std::vector<std::byte> pristine_;
  std::vector<Zone> granted_;    // in order
  std::vector<Zone> forbidden_;  // what lies between
};

}  // namespace verbatim::soft::fuzz
