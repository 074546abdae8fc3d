#include "qp/local_port.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.hpp"
#include "qp/device_failure.hpp"
#include "qp/path_cache.hpp"
#include "qp/tables.hpp"

namespace verbatim::qp {
namespace {

SourceGid find_own_gid(device::Context& context, PortNumber port, std::uint32_t index) {
  const auto gids = gid_table(context);
  if (const auto* entry = find_gid(gids, port, index)) return SourceGid::of(*entry);
  std::vector<std::uint32_t> there;
  for (const auto& entry : gids) {
    if (entry.port_num == port.value) there.push_back(entry.gid_index);
  }
  throw Error(ErrorCode::not_found, fmt::format("{} port {} has no GID at index {}; it has some at: {}", context.name(),
                                                port.value, index, fmt::join(there, ", ")));
}

std::uint16_t find_pkey(device::Context& context, PortNumber port, std::uint16_t pkey) {
  const auto pkeys = pkey_table(context, port);
  const auto found = std::find(pkeys.begin(), pkeys.end(), pkey);
  if (pkey != 0 && found != pkeys.end()) return static_cast<std::uint16_t>(found - pkeys.begin());
  std::vector<std::string> there;
  for (const auto value : pkeys) {
    if (value != 0) there.push_back(fmt::format("{:#06x}", value));
  }
  throw Error(ErrorCode::not_found, fmt::format("{} port {} has no P_Key {:#06x}; it has: {}", context.name(),
                                                port.value, pkey, fmt::join(there, ", ")));
}

device::LinkLayer link_layer_of(const ibv_port_attr& port) {
  switch (port.link_layer) {
    case IBV_LINK_LAYER_ETHERNET:
      return device::LinkLayer::ethernet;
    case IBV_LINK_LAYER_INFINIBAND:
      return device::LinkLayer::infiniband;
    default:
      return device::LinkLayer::unspecified;
  }
}

// A count of a device in the 8 bits that a queue pair's attribute has for it.
std::uint8_t attribute_count(int count) {
  return static_cast<std::uint8_t>(std::clamp(count, 0, 255));
}

bool same_subnet(const device::Gid& a, const device::Gid& b) {
  constexpr std::size_t prefix_bytes = 8;
  return std::equal(a.bytes.begin(), a.bytes.begin() + prefix_bytes, b.bytes.begin());
}

}  // namespace

LocalPort read_local_port(device::Context& context, const device::Selection& selection, std::uint16_t pkey) {
  ibv_device_attr_ex device{};
  if (const int problem = context.query_device(device)) fail("limits of " + context.name(), problem);
  ibv_port_attr attributes{};
  if (const int problem = context.query_port(selection.port.value, attributes)) {
    fail(fmt::format("{} port {}", context.name(), selection.port.value), problem);
  }
  const auto gid = find_own_gid(context, selection.port, selection.gid.entry.index);
  return {.device = context.name(),
          .port = selection.port,
          .link_layer = link_layer_of(attributes),
          .address = {.gid = gid.gid, .gid_type = gid.type, .lid = attributes.lid},
          .gid_index = static_cast<std::uint8_t>(selection.gid.entry.index),
          .pkey = pkey,
          .pkey_index = find_pkey(context, selection.port, pkey),
          .active_mtu_bytes = PathMtu::from_code(attributes.active_mtu).bytes(),
          .max_message_bytes = attributes.max_msg_sz,
          .initiator_depth = attribute_count(device.orig_attr.max_qp_init_rd_atom),
          .responder_resources = attribute_count(device.orig_attr.max_qp_rd_atom)};
}

Path path_to(const LocalPort& port, const PortAddress& peer, const PacketMarks& marks) {
  if (port.address.gid_type != peer.gid_type) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} port {} has a GID for {}, the peer one for {}: choose GIDs of the same type", port.device,
                    port.port.value, device::to_string(port.address.gid_type), device::to_string(peer.gid_type)));
  }
  Path path{.port = port.port,
            .route = std::nullopt,
            .destination_lid = peer.lid,
            .source_path_bits = 0,
            .service_level = marks.service_level};
  if (port.link_layer == device::LinkLayer::ethernet || !same_subnet(port.address.gid, peer.gid)) {
    Route route{.destination = {},
                .source_gid_index = port.gid_index,
                .flow_label = marks.flow_label,
                .hop_limit = marks.hop_limit,
                .traffic_class = marks.traffic_class};
    std::memcpy(route.destination.raw, peer.gid.bytes.data(), sizeof(route.destination.raw));
    path.route = route;
  }
  return path;
}

}  // namespace verbatim::qp
