#include "verbatim/region.hpp"

#include <cstring>

#include "transport/host/region_state.hpp"
#include "transport/remote_region.hpp"

namespace verbatim {
namespace {

// As it travels, little-endian: what it is, address, length, key.
struct Encoding {
  std::uint32_t mark = 0;
  std::uint32_t rkey = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t reserved = 0;
};
static_assert(sizeof(Encoding) == RemoteRegion::encoded_bytes);
constexpr std::uint32_t region_mark = 0x67725656;

}  // namespace

RemoteRegion::Encoded RemoteRegion::encode() const noexcept {
  const Encoding encoding{.mark = region_mark, .rkey = rkey_, .address = address_, .bytes = bytes_};
  Encoded encoded;
  std::memcpy(encoded.data(), &encoding, sizeof(encoding));
  return encoded;
}

RemoteRegion RemoteRegion::decode(const Encoded& encoded) noexcept {
  Encoding encoding;
  std::memcpy(&encoding, encoded.data(), sizeof(encoding));
  if (encoding.mark != region_mark || encoding.address > UINT64_MAX - encoding.bytes) return {};
  return RemoteRegionAccess::make(encoding.address, encoding.bytes, encoding.rkey);
}

std::byte* Region::data() const noexcept {
  return state_ ? state_->region.address() : nullptr;
}
std::size_t Region::size() const noexcept {
  return state_ ? state_->region.bytes() : 0;
}

RemoteRegion Region::remote() const noexcept {
  if (!state_) return {};
  return RemoteRegionAccess::make(reinterpret_cast<std::uintptr_t>(state_->region.address()), state_->region.bytes(),
                                  state_->region.rkey().value);
}

}  // namespace verbatim
