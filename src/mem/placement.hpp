// Memory near the device: on its NUMA node, in huge pages where there are some.
#pragma once

#include <cstddef>
#include <optional>

#include "base/switch.hpp"
#include "device/context.hpp"
#include "device/placement.hpp"

namespace verbatim::mem {

struct MemoryPlacement {
  std::optional<int> numa_node;  // nothing: wherever the kernel likes
  Switch huge_pages = Switch::automatic;
};

// `numa_node` and `huge_pages` as in Config::Memory: -1 takes the device's node, which may be unknown. Throws
// Error(invalid_argument) naming the nodes there are if a node is named that this host hasn't got.
[[nodiscard]] MemoryPlacement place_memory(const device::Placement& device, int numa_node, Switch huge_pages);

// Context::allocate(), on the node of `placement` before anything is in it. Where the node is full or not allowed,
// pages come from elsewhere; where there are no huge pages, from normal ones. Either is said once per process
// (huge_pages on: a warning) and is no error. Empty with errno where Context::allocate() is. The calling thread's
// memory policy is as before.
[[nodiscard]] device::Memory allocate_placed(device::Context& context, std::size_t bytes,
                                             const MemoryPlacement& placement);

}  // namespace verbatim::mem
