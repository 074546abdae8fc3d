// What is inside a RemoteRegion, for those who make it and those who use it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "verbatim/region.hpp"

namespace verbatim {

struct RemoteRegionAccess {
  [[nodiscard]] static RemoteRegion make(std::uint64_t address, std::uint64_t bytes, std::uint32_t rkey) noexcept {
    RemoteRegion region;
    region.address_ = address;
    region.bytes_ = bytes;
    region.rkey_ = rkey;
    return region;
  }
  [[nodiscard]] static std::uint64_t address(const RemoteRegion& region) noexcept { return region.address_; }
  [[nodiscard]] static std::uint32_t rkey(const RemoteRegion& region) noexcept { return region.rkey_; }
};

namespace transport {

struct RemoteRange {
  bool inside = false;  // the range lies in the region, which is one
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
};

[[nodiscard]] inline RemoteRange remote_range(const RemoteRegion& region, std::uint64_t bytes,
                                              std::uint64_t offset) noexcept {
  const bool inside =
      RemoteRegionAccess::rkey(region) != 0 && offset <= region.bytes() && bytes <= region.bytes() - offset;
  return {inside, RemoteRegionAccess::address(region) + offset, RemoteRegionAccess::rkey(region)};
}

}  // namespace transport
}  // namespace verbatim
