// A device's GID and P_Key tables, read whole. Each throws Error(device_failure) naming what could not be read.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

#include "base/ids.hpp"
#include "device/context.hpp"

namespace verbatim::qp {

// The entries of all ports that are not empty.
[[nodiscard]] std::vector<ibv_gid_entry> gid_table(device::Context& context);
// By index, host byte order; an empty entry is 0.
[[nodiscard]] std::vector<std::uint16_t> pkey_table(device::Context& context, PortNumber port);

}  // namespace verbatim::qp
