// The port that a worker uses, as its queue pairs and its peers must know it, and the way from it to a peer's.
#pragma once

#include <cstdint>
#include <string>

#include "base/ids.hpp"
#include "device/context.hpp"
#include "device/description.hpp"
#include "device/gid.hpp"
#include "device/selection.hpp"
#include "qp/connection.hpp"

namespace verbatim::qp {

// What of a port its peers must know to reach it.
struct PortAddress {
  device::Gid gid;
  device::GidType gid_type = device::GidType::infiniband;
  std::uint16_t lid = 0;  // 0 on Ethernet
  friend bool operator==(const PortAddress&, const PortAddress&) = default;
};

struct LocalPort {
  std::string device;
  PortNumber port;
  device::LinkLayer link_layer = device::LinkLayer::unspecified;
  PortAddress address;
  std::uint8_t gid_index = 0;
  std::uint16_t pkey = 0;
  std::uint16_t pkey_index = 0;
  std::uint32_t active_mtu_bytes = 0;
  std::uint32_t max_message_bytes = 0;
  std::uint8_t initiator_depth = 0;      // RDMA reads and atomics that a queue pair may have outstanding, at most
  std::uint8_t responder_resources = 0;  // … that its peer may have outstanding here, at most
};

// As the opened device has it now: on the soft device each opening has other GIDs. Throws Error: not_found if the GID
// or the P_Key is not in the port's table (with what is), device_failure if the device can't be asked.
[[nodiscard]] LocalPort read_local_port(device::Context& context, const device::Selection& selection,
                                        std::uint16_t pkey);

// What is written on packets for the fabric to read.
struct PacketMarks {
  std::uint8_t service_level = 0;
  std::uint8_t traffic_class = 0;
  std::uint32_t flow_label = 0;
  std::uint8_t hop_limit = 64;
};

// With a global route on Ethernet always, on InfiniBand where the peer is in another subnet. Throws
// Error(invalid_argument) if the two can't reach each other because their GIDs are of different types.
[[nodiscard]] Path path_to(const LocalPort& port, const PortAddress& peer, const PacketMarks& marks);

// RDMA writes and reads. Atomics are messages that the peer's worker executes.
inline constexpr unsigned peer_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

}  // namespace verbatim::qp
