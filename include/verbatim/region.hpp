// Memory that peers may write and read, and its description for them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "verbatim/types.hpp"

namespace verbatim {

// What a peer needs to reach a region: a value to be sent to it, in any message. It says nothing to anybody else, and
// is void once the Region is gone.
class RemoteRegion {
 public:
  static constexpr std::size_t encoded_bytes = 32;
  using Encoded = std::array<std::byte, encoded_bytes>;

  RemoteRegion() = default;  // of nothing: whatever uses it is refused
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] Encoded encode() const noexcept;
  // What is not a region's description decodes to one of nothing.
  [[nodiscard]] static RemoteRegion decode(const Encoded& encoded) noexcept;

 private:
  friend struct RemoteRegionAccess;
  std::uint64_t address_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint32_t rkey_ = 0;
};

// Registered memory. The bytes are the user's own, and must outlive it; or allocate() made them, and they go with it.
// Destroy it when no peer uses it any more: what a peer tries afterwards ends with Status::remote_access.
class Region {
 public:
  Region() = default;
  [[nodiscard]] std::byte* data() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] RemoteRegion remote() const noexcept;
  [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }

  struct State;
  explicit Region(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

}  // namespace verbatim
