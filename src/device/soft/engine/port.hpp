// A port of the device as it is at this moment: its tables can be edited while it runs.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

#include "device/soft/config.hpp"

namespace verbatim::soft {

struct Port {
  std::vector<GidConfig> gids;  // an all-zero GID is an empty entry
  std::vector<std::uint16_t> pkeys;
  ibv_mtu max_mtu = IBV_MTU_4096;
  ibv_mtu active_mtu = IBV_MTU_4096;
  bool active = true;
};

[[nodiscard]] constexpr std::uint32_t mtu_bytes(ibv_mtu mtu) {
  return 128U << mtu;
}

[[nodiscard]] inline bool is_empty(const ibv_gid& gid) {
  return gid.global.subnet_prefix == 0 && gid.global.interface_id == 0;
}

}  // namespace verbatim::soft
