// Where memory is registered, and who counts what is pinned.
#pragma once

#include <atomic>
#include <cstdint>

#include "device/context.hpp"

namespace verbatim::mem {

// Bytes that a worker has registered.
class PinnedBytes {
 public:
  void add(std::uint64_t bytes) noexcept { bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  void remove(std::uint64_t bytes) noexcept { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t value() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> bytes_{0};
};

// Neither owned nor copied by what is made with it: all three must outlive every region and cache.
struct Registrar {
  device::Context& context;
  ibv_pd* pd;
  PinnedBytes& pinned;
};

}  // namespace verbatim::mem
