// Descriptions of devices that tests of the selection rules choose from.
#pragma once

#include <arpa/inet.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "device/description.hpp"

namespace verbatim::device {

inline Gid gid(const std::string& address) {
  Gid gid;
  if (inet_pton(AF_INET6, address.c_str(), gid.bytes.data()) != 1) throw std::invalid_argument(address);
  return gid;
}

// A table without empty places.
inline std::vector<GidEntry> gid_table(const std::vector<std::pair<std::string, GidType>>& entries) {
  std::vector<GidEntry> table;
  for (const auto& [address, type] : entries) {
    table.push_back({static_cast<std::uint32_t>(table.size()), gid(address), type, "eth0"});
  }
  return table;
}

inline PortDescription ethernet_port(std::uint8_t number, PortState state, std::vector<GidEntry> gids) {
  PortDescription port;
  port.number = PortNumber{number};
  port.state = state;
  port.link_layer = LinkLayer::ethernet;
  port.gid_table_length = static_cast<std::uint32_t>(gids.size());
  port.gids = std::move(gids);
  return port;
}

inline PortDescription infiniband_port(std::uint8_t number, PortState state) {
  auto port = ethernet_port(number, state, {{0, gid("fe80::2:c903:1"), GidType::infiniband, ""}});
  port.link_layer = LinkLayer::infiniband;
  return port;
}

inline PortDescription usual_port(std::uint8_t number, PortState state = PortState::active) {
  return ethernet_port(number, state,
                       gid_table({{"fe80::1", GidType::roce_v2}, {"::ffff:10.0.0.1", GidType::roce_v2}}));
}

inline DeviceDescription device(const std::string& name, std::vector<PortDescription> ports,
                                ProviderKind provider = ProviderKind::ibverbs) {
  DeviceDescription device;
  device.name = name;
  device.provider = provider;
  device.ports = std::move(ports);
  return device;
}

}  // namespace verbatim::device
