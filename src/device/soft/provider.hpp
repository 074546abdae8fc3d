// The soft device of this host's processes: every context that is opened is an instance of its own, with GIDs of its
// own, and finds the others by theirs.
#pragma once

#include <memory>

#include "device/provider.hpp"
#include "device/soft/config.hpp"

namespace verbatim::soft {

// One device, by the name of the configuration. open() throws Error: no_space (with needed and available bytes),
// permission, busy (another process answers to a configured GID; with its pid), invalid_argument.
//
// A context stays its opener's: in a child of fork(2), calls that destroy release the child's own memory, every other
// call fails with EPERM, and nothing of it reaches the parent's connections. A child opens a device of its own.
[[nodiscard]] std::unique_ptr<device::Provider> make_provider(DeviceConfig config = {});

}  // namespace verbatim::soft
