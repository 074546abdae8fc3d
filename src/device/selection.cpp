#include "device/selection.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <tuple>

#include "base/error.hpp"

namespace verbatim::device {
namespace {

[[noreturn]] void not_found(const std::string& sentence) {
  throw Error(ErrorCode::not_found, sentence);
}

std::string describe_gid(const GidEntry& entry) {
  return fmt::format("{} ({} {})", entry.index, to_string(entry.type), to_string(entry.gid));
}

std::string list_gids(const PortDescription& port) {
  std::vector<std::string> gids;
  for (const auto& entry : port.gids) gids.push_back(describe_gid(entry));
  return gids.empty() ? "none" : fmt::format("{}", fmt::join(gids, ", "));
}

// The smaller, the better.
auto rank(const GidEntry& entry) {
  return std::tuple(scope_of(entry.gid), entry.type != GidType::roce_v2, !is_ipv4_mapped(entry.gid), entry.index);
}

std::string reason_by_rule(const GidEntry& best, const PortDescription& port) {
  const char* family = is_ipv4_mapped(best.gid) ? "IPv4" : "IPv6";
  const auto among = port.gids.size() == 1 ? "the only entry" : fmt::format("best of {} entries", port.gids.size());
  switch (scope_of(best.gid)) {
    case GidScope::routable:
      return fmt::format("{} with a routable {} address, {}", to_string(best.type), family, among);
    case GidScope::link_local:
      break;
    case GidScope::loopback:
      return fmt::format("{} of this host only, {}: no other host is reached", family, among);
  }
  return fmt::format("{} with a link-local {} address, {}: no host beyond the link is reached", to_string(best.type),
                     family, among);
}

// Why the port can't carry data now; nothing if it can.
std::optional<std::string> obstacle(const PortDescription& port) {
  if (!is_active(port)) return fmt::format("is {}", to_string(port.state));
  if (port.gids.empty()) return "has no GID";
  return std::nullopt;
}

std::string list_ports(const DeviceDescription& device) {
  std::vector<std::string> ports;
  for (const auto& port : device.ports) {
    ports.push_back(fmt::format("{}:{} {}", device.name, port.number.value, obstacle(port).value_or("is usable")));
  }
  return ports.empty() ? fmt::format("{} has no port", device.name) : fmt::format("{}", fmt::join(ports, ", "));
}

std::string list_devices(const Inventory& inventory) {
  std::vector<std::string> devices;
  for (const auto& device : inventory.devices) devices.push_back(list_ports(device));
  for (const auto& skipped : inventory.skipped) {
    devices.push_back(fmt::format("{} can't be used ({})", skipped.name, skipped.reason));
  }
  return devices.empty() ? "none" : fmt::format("{}", fmt::join(devices, ", "));
}

const PortDescription* first_usable_port(const DeviceDescription& device) {
  const auto port = std::ranges::find_if(device.ports, [](const auto& each) { return !obstacle(each); });
  return port == device.ports.end() ? nullptr : &*port;
}

Selection complete(const DeviceDescription& device, const PortDescription& port, std::string reason,
                   const SelectionRule& rule) {
  return {device.name, device.provider, port.number, std::move(reason), choose_gid(device.name, port, rule.gid_index)};
}

Selection select_automatically(const Inventory& inventory, const SelectionRule& rule) {
  for (const auto& device : inventory.devices) {
    if (device.provider == ProviderKind::soft) continue;
    const auto* port = first_usable_port(device);
    if (port != nullptr) return complete(device, *port, "first RDMA port that is active", rule);
  }
  for (const auto& device : inventory.devices) {
    if (device.provider != ProviderKind::soft) continue;
    const auto* port = first_usable_port(device);
    if (port == nullptr) continue;
    auto others = inventory;
    std::erase_if(others.devices, [](const auto& each) { return each.provider == ProviderKind::soft; });
    const auto found = list_devices(others);
    return complete(device, *port, fmt::format("no RDMA port is active (found: {}), so the soft device", found), rule);
  }
  not_found(fmt::format("no device is usable; found: {}", list_devices(inventory)));
}

const DeviceDescription& find_device(const Inventory& inventory, const std::string& name) {
  for (const auto& device : inventory.devices) {
    if (device.name == name) return device;
  }
  for (const auto& skipped : inventory.skipped) {
    if (skipped.name == name) not_found(fmt::format("device '{}' can't be used: {}", name, skipped.reason));
  }
  not_found(fmt::format("there is no device '{}'; found: {}", name, list_devices(inventory)));
}

Selection select_port(const DeviceDescription& device, PortNumber number, const SelectionRule& rule) {
  const auto port = std::ranges::find(device.ports, number, &PortDescription::number);
  if (port == device.ports.end()) {
    not_found(fmt::format("device '{}' has no port {}; found: {}", device.name, number.value, list_ports(device)));
  }
  if (const auto why = obstacle(*port)) {
    not_found(fmt::format("port {} of device '{}' {}; found: {}", number.value, device.name, *why, list_ports(device)));
  }
  return complete(device, *port, "device and port asked for", rule);
}

}  // namespace

SelectionRule parse_selection_rule(std::string_view text, std::optional<std::uint32_t> gid_index) {
  if (text == "auto") return {std::nullopt, std::nullopt, gid_index};
  const auto colon = text.find(':');
  const auto name = text.substr(0, colon);
  SelectionRule rule{std::string(name), std::nullopt, gid_index};
  bool good = !name.empty();
  if (colon != std::string_view::npos) {
    const auto number = text.substr(colon + 1);
    PortNumber port;
    const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), port.value);
    good = good && name != "auto" && problem == std::errc{} && end == number.data() + number.size() && port.value != 0;
    rule.port = port;
  }
  if (good) return rule;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("device: '{}' is none of auto, NAME, NAME:PORT with a port of 1 to 255, such as mlx5_0:1", text));
}

GidChoice choose_gid(std::string_view device, const PortDescription& port, std::optional<std::uint32_t> index) {
  const std::uint32_t wanted = index.value_or(0);
  if (index || port.link_layer != LinkLayer::ethernet) {
    const auto entry = std::ranges::find(port.gids, wanted, &GidEntry::index);
    if (entry != port.gids.end()) return {*entry, index ? "index asked for" : "index 0, as always on InfiniBand"};
    const auto fault =
        wanted < port.gid_table_length ? "is empty" : fmt::format("is beyond the table of {}", port.gid_table_length);
    not_found(fmt::format("GID index {} of {} port {} {}; usable: {}", wanted, device, port.number.value, fault,
                          list_gids(port)));
  }
  const auto best = std::ranges::min_element(port.gids, {}, rank);
  if (best == port.gids.end()) {
    not_found(fmt::format("{} port {} has no GID; give its network device an address", device, port.number.value));
  }
  return {*best, reason_by_rule(*best, port)};
}

Selection select(const Inventory& inventory, const SelectionRule& rule) {
  if (!rule.device) return select_automatically(inventory, rule);
  const auto& device = find_device(inventory, *rule.device);
  if (rule.port) return select_port(device, *rule.port, rule);
  const auto* port = first_usable_port(device);
  if (port == nullptr)
    not_found(fmt::format("device '{}' has no usable port; found: {}", device.name, list_ports(device)));
  return complete(device, *port, "device asked for, its first active port", rule);
}

}  // namespace verbatim::device
