// What there is to know about a device before it is used, as plain data. Made through a Context of any provider; the
// rules that choose (selection.hpp), the listing program and tests work on it without a device.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "device/gid.hpp"
#include "device/ibverbs/mlx5.hpp"
#include "device/placement.hpp"

namespace verbatim::device {

class Context;

enum class ProviderKind { ibverbs, soft };
// Logical states of a port (InfiniBand Architecture Specification, volume 1, 7.2.7). Only an active one carries data.
enum class PortState { unknown, down, initialize, armed, active, active_defer };
enum class LinkLayer { unspecified, infiniband, ethernet };
// What an atomic of the device is atomic with: nothing, other atomics of this device, or also the processor.
enum class AtomicScope { none, device, system };

struct GidEntry {
  std::uint32_t index = 0;
  Gid gid;
  GidType type = GidType::infiniband;
  std::string network_device;  // "" where the address has none, as on InfiniBand
};

struct PkeyEntry {
  std::uint16_t index = 0;
  std::uint16_t value = 0;  // bit 15: full member
};

struct PortDescription {
  PortNumber number;
  PortState state = PortState::unknown;
  LinkLayer link_layer = LinkLayer::unspecified;
  std::uint32_t active_mtu_bytes = 0;
  std::uint32_t max_mtu_bytes = 0;
  std::uint32_t max_message_bytes = 0;
  std::uint16_t lid = 0;
  std::uint32_t gid_table_length = 0;  // with the empty places
  std::vector<GidEntry> gids;          // the others, by index
  std::vector<PkeyEntry> pkeys;        // those with a value, by index
};

// Counts unless the name says bytes. What the device promises at most; what can be had at once may be less.
struct DeviceLimits {
  std::uint32_t max_qp = 0;
  std::uint32_t max_qp_wr = 0;
  std::uint32_t max_sge = 0;
  std::uint32_t max_sge_rd = 0;
  std::uint32_t max_cq = 0;
  std::uint32_t max_cqe = 0;
  std::uint32_t max_srq = 0;
  std::uint32_t max_srq_wr = 0;
  std::uint32_t max_srq_sge = 0;
  std::uint32_t max_pd = 0;
  std::uint32_t max_ah = 0;
  std::uint32_t max_mr = 0;
  std::uint64_t max_mr_bytes = 0;
  std::uint32_t max_mw = 0;
  std::uint32_t max_rd_atomic = 0;       // reads and atomics in flight from one QP
  std::uint32_t max_dest_rd_atomic = 0;  // … towards one QP
  std::uint32_t max_mcast_groups = 0;
  AtomicScope atomics = AtomicScope::none;
  bool on_demand_paging = false;
};

struct DeviceDescription {
  std::string name;
  ProviderKind provider = ProviderKind::ibverbs;
  std::uint64_t node_guid = 0;
  std::string firmware;
  DeviceLimits limits;
  std::vector<PortDescription> ports;
  Placement placement;
  std::optional<Mlx5Capabilities> mlx5;
};

// A device that exists and can't be used, and why.
struct SkippedDevice {
  std::string name;
  std::string reason;
};

struct Inventory {
  std::vector<DeviceDescription> devices;  // in the order of the system, the soft device last
  std::vector<SkippedDevice> skipped;
};

// Throws Error(device_failure) naming the device, what was asked of it and errno's words. `sysfs` is where the device's
// place is looked up.
[[nodiscard]] DeviceDescription describe(Context& context, ProviderKind provider, const std::filesystem::path& sysfs);

[[nodiscard]] bool is_active(const PortDescription& port) noexcept;

[[nodiscard]] const char* to_string(ProviderKind provider) noexcept;
[[nodiscard]] const char* to_string(PortState state) noexcept;
[[nodiscard]] const char* to_string(LinkLayer layer) noexcept;
[[nodiscard]] const char* to_string(AtomicScope scope) noexcept;

}  // namespace verbatim::device
