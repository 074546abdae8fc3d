// Registered memory and who owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/ids.hpp"
#include "mem/placement.hpp"
#include "mem/registrar.hpp"

namespace verbatim::mem {

// What the device may do with the memory. Each is verbs' own flags.
enum class Access : unsigned {
  source = 0,                        // is sent and written from; may be a read-only mapping
  receive = IBV_ACCESS_LOCAL_WRITE,  // is received into, and the target of our RDMA reads
  write_target = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,  // peers write into it
  shared = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
};

[[nodiscard]] constexpr bool covers(Access granted, Access needed) noexcept {
  return (static_cast<unsigned>(needed) & ~static_cast<unsigned>(granted)) == 0;
}

// Move-only. Deregisters, and gives back what it allocated, when it goes; work requests that use it must have ended.
class RegisteredRegion {
 public:
  RegisteredRegion() noexcept = default;

  // The caller's memory, which must stay mapped as long as the region lives. Exactly these bytes are reachable,
  // whatever else lies on their pages. Of 0 bytes it is a region of nothing, with no keys. Throws Error: permission
  // (the limit on locked memory), no_space (the device's or host's memory or tables), invalid_argument (not mapped, or
  // not writable though `access` writes), device_failure.
  [[nodiscard]] static RegisteredRegion of(const Registrar& registrar, void* address, std::size_t bytes, Access access);

  // Memory of its own: zeroed, on whole pages that hold nothing else (so a fork that copies or withholds them takes
  // nothing else along), placed, registered once. bytes() is what was asked for, rounded up to pages. Throws as of().
  [[nodiscard]] static RegisteredRegion allocate(const Registrar& registrar, std::size_t bytes, Access access,
                                                 const MemoryPlacement& placement);

  // As of(), for where traffic goes on without: an empty region and errno's value instead of an exception.
  [[nodiscard]] static std::pair<RegisteredRegion, int> try_of(const Registrar& registrar, void* address,
                                                               std::size_t bytes, Access access) noexcept;

  RegisteredRegion(RegisteredRegion&& other) noexcept { *this = std::move(other); }
  RegisteredRegion& operator=(RegisteredRegion&& other) noexcept;
  RegisteredRegion(const RegisteredRegion&) = delete;
  RegisteredRegion& operator=(const RegisteredRegion&) = delete;
  ~RegisteredRegion();

  [[nodiscard]] std::byte* address() const noexcept { return address_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] LKey lkey() const noexcept { return {mr_ == nullptr ? 0 : mr_->lkey}; }
  [[nodiscard]] RKey rkey() const noexcept { return {mr_ == nullptr ? 0 : mr_->rkey}; }
  [[nodiscard]] Access access() const noexcept { return access_; }
  [[nodiscard]] explicit operator bool() const noexcept { return mr_ != nullptr; }

 private:
  device::Context* context_ = nullptr;
  PinnedBytes* pinned_ = nullptr;
  ibv_mr* mr_ = nullptr;
  device::Memory own_;  // nothing where the memory is the caller's
  std::byte* address_ = nullptr;
  std::size_t bytes_ = 0;
  Access access_ = Access::source;
};

}  // namespace verbatim::mem
