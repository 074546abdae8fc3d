#include "unit/soft_fuzz/arena.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace verbatim::soft::fuzz {

Arena::Arena() : memory_(device::map_pages(arena_bytes)) {
  for (std::uint32_t i = 0; i < arena_bytes; ++i) *at(i) = static_cast<std::byte>(i * 37 + (i >> 8) * 11 + 5);
  grant(remote_zone.offset, remote_zone.bytes);
  for (const Zone zone : {receive_zone, landing_zone}) {
    for (std::uint32_t at = 0; at < zone.bytes; at += slot_bytes) grant(zone.offset + at + slot_guard, slot_room);
  }
  std::uint32_t end = 0;
  for (const Zone& zone : granted_) {
    forbidden_.push_back({end, zone.offset - end});
    end = zone.offset + zone.bytes;
  }
  forbidden_.push_back({end, arena_bytes - end});
  pristine_.assign(at(0), at(0) + arena_bytes);
}

Arena::~Arena() {
  device::unmap_pages(memory_);
}

void Arena::grant(std::uint32_t offset, std::uint32_t bytes) {
  granted_.push_back({offset, bytes});
}

bool Arena::writable(const std::byte* address, std::size_t bytes) const {
  return std::any_of(granted_.begin(), granted_.end(), [&](const Zone& zone) {
    const std::byte* begin = at(zone.offset);
    return address >= begin && bytes <= zone.bytes && static_cast<std::size_t>(address - begin) <= zone.bytes - bytes;
  });
}

std::optional<std::string> Arena::damage() const {
  for (const Zone& zone : forbidden_) {
    if (std::memcmp(at(zone.offset), &pristine_[zone.offset], zone.bytes) == 0) continue;
    const auto [found, expected] =
        std::mismatch(at(zone.offset), at(zone.offset) + zone.bytes, &pristine_[zone.offset]);
    return fmt::format("byte {} of the arena changed from {:#x} to {:#x}", found - at(0),
                       std::to_integer<int>(*expected), std::to_integer<int>(*found));
  }
  return std::nullopt;
}

}  // namespace verbatim::soft::fuzz
