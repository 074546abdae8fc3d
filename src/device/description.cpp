#include "device/description.hpp"

#include <endian.h>
#include <fmt/format.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.hpp"
#include "device/context.hpp"

namespace verbatim::device {
namespace {

static_assert(static_cast<int>(PortState::down) == IBV_PORT_DOWN);
static_assert(static_cast<int>(PortState::active) == IBV_PORT_ACTIVE);
static_assert(static_cast<int>(PortState::active_defer) == IBV_PORT_ACTIVE_DEFER);
static_assert(static_cast<int>(LinkLayer::ethernet) == IBV_LINK_LAYER_ETHERNET);
static_assert(static_cast<int>(AtomicScope::system) == IBV_ATOMIC_GLOB);
static_assert(static_cast<int>(GidType::roce_v2) == IBV_GID_TYPE_ROCE_V2);

void must(const Context& context, const std::string& question, int problem) {
  if (problem == 0) return;
  throw Error(ErrorCode::device_failure,
              fmt::format("{} does not say {}: {}", context.name(), question, std::strerror(problem)));
}

// The code of an MTU counts doublings of 128 bytes (specification, volume 1, table of path MTU encodings).
std::uint32_t bytes_of(ibv_mtu mtu) {
  static_assert(128u << IBV_MTU_256 == 256 && 128u << IBV_MTU_4096 == 4096);
  return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

std::string network_device_name(std::uint32_t interface) {
  std::array<char, IF_NAMESIZE> name{};
  return interface != 0 && if_indextoname(interface, name.data()) != nullptr ? name.data() : "";
}

GidEntry plain(const ibv_gid_entry& entry) {
  GidEntry result{entry.gid_index, {}, static_cast<GidType>(entry.gid_type), network_device_name(entry.ndev_ifindex)};
  std::memcpy(result.gid.bytes.data(), entry.gid.raw, result.gid.bytes.size());
  return result;
}

PortDescription describe_port(Context& context, PortNumber number, const std::vector<ibv_gid_entry>& gid_table) {
  ibv_port_attr attributes{};
  must(context, fmt::format("what port {} is", number.value), context.query_port(number.value, attributes));

  PortDescription port;
  port.number = number;
  port.state = static_cast<PortState>(attributes.state);
  port.link_layer = static_cast<LinkLayer>(attributes.link_layer);
  port.active_mtu_bytes = bytes_of(attributes.active_mtu);
  port.max_mtu_bytes = bytes_of(attributes.max_mtu);
  port.max_message_bytes = attributes.max_msg_sz;
  port.lid = attributes.lid;
  port.gid_table_length = static_cast<std::uint32_t>(attributes.gid_tbl_len);
  for (const auto& entry : gid_table) {
    if (entry.port_num == number.value) port.gids.push_back(plain(entry));
  }
  std::ranges::sort(port.gids, {}, &GidEntry::index);
  for (std::uint16_t index = 0; index < attributes.pkey_tbl_len; ++index) {
    std::uint16_t value = 0;
    must(context, fmt::format("P_Key {} of port {}", index, number.value),
         context.query_pkey(number.value, index, value));
    if (value != 0) port.pkeys.push_back({index, value});
  }
  return port;
}

DeviceLimits plain(const ibv_device_attr_ex& extended) {
  const auto& attributes = extended.orig_attr;
  const auto count = [](int value) { return static_cast<std::uint32_t>(std::max(value, 0)); };
  DeviceLimits limits;
  limits.max_qp = count(attributes.max_qp);
  limits.max_qp_wr = count(attributes.max_qp_wr);
  limits.max_sge = count(attributes.max_sge);
  limits.max_sge_rd = count(attributes.max_sge_rd);
  limits.max_cq = count(attributes.max_cq);
  limits.max_cqe = count(attributes.max_cqe);
  limits.max_srq = count(attributes.max_srq);
  limits.max_srq_wr = count(attributes.max_srq_wr);
  limits.max_srq_sge = count(attributes.max_srq_sge);
  limits.max_pd = count(attributes.max_pd);
  limits.max_ah = count(attributes.max_ah);
  limits.max_mr = count(attributes.max_mr);
  limits.max_mr_bytes = attributes.max_mr_size;
  limits.max_mw = count(attributes.max_mw);
  limits.max_rd_atomic = count(attributes.max_qp_init_rd_atom);
  limits.max_dest_rd_atomic = count(attributes.max_qp_rd_atom);
  limits.max_mcast_groups = count(attributes.max_mcast_grp);
  limits.atomics = static_cast<AtomicScope>(attributes.atomic_cap);
  limits.on_demand_paging = (extended.odp_caps.general_caps & IBV_ODP_SUPPORT) != 0;
  return limits;
}

}  // namespace

DeviceDescription describe(Context& context, ProviderKind provider, const std::filesystem::path& sysfs) {
  ibv_device_attr_ex attributes{};
  must(context, "what it can do", context.query_device(attributes));
  std::vector<ibv_gid_entry> gid_table;
  must(context, "its GIDs", context.query_gid_table(gid_table));

  DeviceDescription device;
  device.name = context.name();
  device.provider = provider;
  device.node_guid = be64toh(attributes.orig_attr.node_guid);
  const auto& firmware = attributes.orig_attr.fw_ver;
  device.firmware.assign(firmware, strnlen(firmware, sizeof firmware));
  device.limits = plain(attributes);
  for (int number = 1; number <= attributes.orig_attr.phys_port_cnt; ++number) {
    device.ports.push_back(describe_port(context, PortNumber{static_cast<std::uint8_t>(number)}, gid_table));
  }
  if (provider == ProviderKind::ibverbs) {
    device.placement = find_placement(device.name, sysfs);
    device.mlx5 = query_mlx5(context.handle());
  }
  return device;
}

bool is_active(const PortDescription& port) noexcept {
  return port.state == PortState::active || port.state == PortState::active_defer;
}

const char* to_string(ProviderKind provider) noexcept {
  switch (provider) {
    case ProviderKind::ibverbs:
      return "ibverbs";
    case ProviderKind::soft:
      return "soft";
  }
  return "unknown";
}

const char* to_string(PortState state) noexcept {
  switch (state) {
    case PortState::unknown:
      break;
    case PortState::down:
      return "down";
    case PortState::initialize:
      return "initialize";
    case PortState::armed:
      return "armed";
    case PortState::active:
      return "active";
    case PortState::active_defer:
      return "active-defer";
  }
  return "unknown";
}

const char* to_string(LinkLayer layer) noexcept {
  switch (layer) {
    case LinkLayer::unspecified:
      break;
    case LinkLayer::infiniband:
      return "InfiniBand";
    case LinkLayer::ethernet:
      return "Ethernet";
  }
  return "unspecified";
}

const char* to_string(AtomicScope scope) noexcept {
  switch (scope) {
    case AtomicScope::none:
      return "none";
    case AtomicScope::device:
      return "device";
    case AtomicScope::system:
      return "system";
  }
  return "unknown";
}

}  // namespace verbatim::device
