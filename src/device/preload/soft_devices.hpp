// The soft devices that a program has listed and opened, told apart from the real ones.
#pragma once

#include <infiniband/verbs.h>

#include "device/context.hpp"

namespace verbatim::preload {

// The one soft device of this process's settings; nullptr, said once on stderr, if they can't be read.
[[nodiscard]] ibv_device* soft_device() noexcept;
[[nodiscard]] bool is_soft(const ibv_device* device) noexcept;

// A process that opens it again gets the same context, which is closed as often: what is one device to a program has
// one table of GIDs and one space of queue pair numbers. A forked child gets one of its own. nullptr with errno.
[[nodiscard]] ibv_context* open_soft() noexcept;
// The device that is behind a context; nullptr: a real one.
[[nodiscard]] device::Context* soft_of(const ibv_context* context) noexcept;
// Whether a descriptor is an open soft device's cmd_fd, or a copy.
[[nodiscard]] bool is_of_soft(int command_descriptor) noexcept;
void close_soft(const ibv_context* context) noexcept;

}  // namespace verbatim::preload
