#include "device/soft/engine/regions.hpp"

namespace verbatim::soft {

std::optional<std::uint32_t> RegionTable::add(DomainId domain, std::uint64_t address, std::uint64_t length,
                                              std::uint32_t access) {
  if (count_ >= max_regions_) return std::nullopt;
  std::uint32_t index;
  if (free_.empty()) {
    index = static_cast<std::uint32_t>(regions_.size());
    regions_.emplace_back();
    variants_.push_back(0);
  } else {
    index = free_.back();
    free_.pop_back();
  }
  const std::uint32_t key = index << 8 | ++variants_[index];
  regions_[index] = {.key = key, .protection_domain = domain, .access = access, .address = address, .length = length};
  ++count_;
  pinned_bytes_ += length;
  return key;
}

void RegionTable::remove(std::uint32_t key) {
  const std::uint32_t index = key >> 8;
  pinned_bytes_ -= regions_[index].length;
  --count_;
  regions_[index] = {};
  free_.push_back(index);
}

void RegionTable::change(std::uint32_t key, DomainId domain, std::uint64_t address, std::uint64_t length,
                         std::uint32_t access) {
  RegionView& region = regions_[key >> 8];
  pinned_bytes_ += length - region.length;
  region = {.key = key, .protection_domain = domain, .access = access, .address = address, .length = length};
}

}  // namespace verbatim::soft
