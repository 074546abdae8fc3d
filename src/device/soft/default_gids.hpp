// The GIDs of a port that was configured without any.
#pragma once

#include <endian.h>

#include <cstdint>

#include "device/soft/config.hpp"

namespace verbatim::soft {

// Two for each port, both RoCE v2: link-local fe80::x, and fd76:6572:6261:7469::x, a routable unique local address
// (RFC 4193). x is made from the instance and the port.
inline void fill_default_gids(DeviceConfig& config, std::uint64_t instance) {
  constexpr std::uint64_t link_local = 0xfe80'0000'0000'0000;
  constexpr std::uint64_t unique_local = 0xfd76'6572'6261'7469;
  std::uint64_t number = instance * config.ports.size();
  for (PortConfig& port : config.ports) {
    const std::uint64_t interface_id = htobe64(number++);
    if (!port.gids.empty()) continue;
    for (const std::uint64_t prefix : {link_local, unique_local}) {
      GidConfig entry;
      entry.gid.global.subnet_prefix = htobe64(prefix);
      entry.gid.global.interface_id = interface_id;
      port.gids.push_back(entry);
    }
  }
}

}  // namespace verbatim::soft
