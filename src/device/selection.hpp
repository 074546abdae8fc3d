// Which device, port and GID to use: rules over descriptions, without a device. Every choice says why in words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "device/description.hpp"

namespace verbatim::device {

// What was asked for. Without a device: the first port of RDMA hardware that can carry data, else of the soft device.
struct SelectionRule {
  std::optional<std::string> device;       // exact name
  std::optional<PortNumber> port;          // only with a device; else its first port that can carry data
  std::optional<std::uint32_t> gid_index;  // else by rule, see choose_gid
};

// "auto", "NAME" or "NAME:PORT", and an index. Throws Error(invalid_argument) naming the text and the three forms.
[[nodiscard]] SelectionRule parse_selection_rule(std::string_view device,
                                                 std::optional<std::uint32_t> gid_index = std::nullopt);

struct GidChoice {
  GidEntry entry;
  std::string reason;
};

// The index of the GID holds for whoever opens the device; on the soft device its value is another at each opening.
struct Selection {
  std::string device;
  ProviderKind provider = ProviderKind::ibverbs;
  PortNumber port;
  std::string reason;  // of the device and port
  GidChoice gid;
};

// Throws Error(not_found): a device, port or GID that isn't there, can't be used or is down; the sentence lists what
// is.
[[nodiscard]] Selection select(const Inventory& inventory, const SelectionRule& rule);

// On InfiniBand index 0, which every port has. On Ethernet the best of the table: routable before link-local before
// loopback; of routable ones RoCE v2 before v1; then IPv4 before IPv6, then the lowest index. So hosts set up alike
// choose alike. A given index is taken as it is. Throws Error(not_found) with the usable indices.
[[nodiscard]] GidChoice choose_gid(std::string_view device, const PortDescription& port,
                                   std::optional<std::uint32_t> index);

}  // namespace verbatim::device
