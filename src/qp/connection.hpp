// What a queue pair is connected with, in types that can't be mixed up, and the modifies that bring it from RESET to
// RTS. Pure: whoever owns the queue pair makes the calls.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>

#include "base/ids.hpp"
#include "device/queue_pair/units.hpp"
#include "qp/modification.hpp"

namespace verbatim::qp {

// The global route (GRH): always on Ethernet, across subnets on InfiniBand.
struct Route {
  ibv_gid destination{};
  std::uint8_t source_gid_index = 0;
  std::uint32_t flow_label = 0;  // 20 bits
  std::uint8_t hop_limit = 64;   // more than 1, or no router lets the packet through
  std::uint8_t traffic_class = 0;
};

struct Path {
  PortNumber port;
  std::optional<Route> route;
  std::uint16_t destination_lid = 0;  // 0 on Ethernet
  std::uint8_t source_path_bits = 0;
  std::uint8_t service_level = 0;  // 4 bits

  // For ibv_modify_qp and ibv_create_ah alike.
  [[nodiscard]] ibv_ah_attr address() const;
};

// What the two connected services, RC and UC, have in common.
struct Peer {
  Path path;
  PathMtu path_mtu;
  Qpn number;
  Psn first_expected;  // the first packet that the peer sends
  Psn first_sent;      // … and that we send; both fresh and random each time
};

struct RcConnection {
  Peer peer;
  std::uint16_t pkey_index = 0;
  unsigned access = 0;               // ibv_access_flags that the peer is granted
  std::uint8_t initiator_depth = 0;  // RDMA reads and atomics we may have outstanding: min(ours, the peer's resources)
  std::uint8_t responder_resources = 0;  // … that the peer may have outstanding here
  RnrTimer rnr_timer;                    // how long we ask the peer to wait when it meets no receive
  AckTimeout ack_timeout;
  RetryCount retries;
  RnrRetry rnr_retries;
};

struct UcConnection {
  Peer peer;
  std::uint16_t pkey_index = 0;
  unsigned access = 0;
};

struct UdSettings {
  PortNumber port;
  std::uint16_t pkey_index = 0;
  std::uint32_t qkey = 0;
  Psn first_sent;
};

// Of RC and UC: all that the first step takes, which a queue pair can go before its peer is known.
[[nodiscard]] Modification to_init(PortNumber port, std::uint16_t pkey_index, unsigned access);

[[nodiscard]] Modification to_init(const RcConnection& connection);
[[nodiscard]] Modification to_rtr(const RcConnection& connection);
[[nodiscard]] Modification to_rts(const RcConnection& connection);

[[nodiscard]] Modification to_init(const UcConnection& connection);
[[nodiscard]] Modification to_rtr(const UcConnection& connection);
[[nodiscard]] Modification to_rts(const UcConnection& connection);

[[nodiscard]] Modification to_init(const UdSettings& settings);
[[nodiscard]] Modification to_rtr(const UdSettings& settings);
[[nodiscard]] Modification to_rts(const UdSettings& settings);

}  // namespace verbatim::qp
