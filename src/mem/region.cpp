#include "mem/region.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/error.hpp"
#include "base/units.hpp"
#include "mem/registration_refusal.hpp"

namespace verbatim::mem {

std::pair<RegisteredRegion, int> RegisteredRegion::try_of(const Registrar& registrar, void* address, std::size_t bytes,
                                                          Access access) noexcept {
  std::pair<RegisteredRegion, int> made;
  auto& [region, error] = made;
  region.address_ = static_cast<std::byte*>(address);
  region.access_ = access;
  if (bytes == 0) return made;
  region.mr_ = registrar.context.reg_mr(registrar.pd, address, bytes, static_cast<int>(access));
  if (region.mr_ == nullptr) {
    error = errno;
    return made;
  }
  region.context_ = &registrar.context;
  region.pinned_ = &registrar.pinned;
  region.bytes_ = bytes;
  registrar.pinned.add(bytes);
  return made;
}

RegisteredRegion RegisteredRegion::of(const Registrar& registrar, void* address, std::size_t bytes, Access access) {
  if (bytes > UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(address)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("memory of {} bytes at {} ends beyond the address space; is the length right?", bytes,
                            fmt::ptr(address)));
  }
  auto [region, error] = try_of(registrar, address, bytes, access);
  if (error != 0) refuse_registration(error, address, bytes, access, registrar.pinned.value());
  return std::move(region);
}

RegisteredRegion RegisteredRegion::allocate(const Registrar& registrar, std::size_t bytes, Access access,
                                            const MemoryPlacement& placement) {
  if (bytes == 0) {
    throw Error(ErrorCode::invalid_argument, "memory of 0 bytes is asked for; at least 1 is allowed");
  }
  const device::Memory memory = allocate_placed(registrar.context, bytes, placement);
  if (!memory) {
    throw Error(ErrorCode::no_space, fmt::format("{} of memory for {} are refused: {}", format_size(bytes),
                                                 registrar.context.name(), std::strerror(errno)));
  }
  try {
    RegisteredRegion region = of(registrar, memory.address, memory.bytes, access);
    region.own_ = memory;
    return region;
  } catch (...) {
    registrar.context.release(memory);
    throw;
  }
}

RegisteredRegion& RegisteredRegion::operator=(RegisteredRegion&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(pinned_, other.pinned_);
  std::swap(mr_, other.mr_);
  std::swap(own_, other.own_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  std::swap(access_, other.access_);
  return *this;
}

RegisteredRegion::~RegisteredRegion() {
  if (mr_ == nullptr) return;
  context_->dereg_mr(mr_);
  pinned_->remove(bytes_);
  if (own_) context_->release(own_);
}

}  // namespace verbatim::mem
