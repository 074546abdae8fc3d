// What each end brings to a channel, and what the two come to. Pure: the same two offers give the same agreement at
// both ends, seen from either side.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "base/ids.hpp"
#include "device/gid.hpp"

namespace verbatim::transport::control {

struct Offer {
  Qpn queue_pair;  // in INIT, its receives posted
  Psn first_sent;  // fresh and random
  device::Gid gid;
  device::GidType gid_type = device::GidType::roce_v2;
  std::uint16_t lid = 0;        // 0 on Ethernet
  std::uint16_t pkey = 0xffff;  // the value; an index means nothing to a peer
  std::uint32_t mtu_bytes = 0;  // the smaller of the port's active MTU and the configured one

  std::uint8_t initiator_depth = 0;      // RDMA reads and atomics that this side wants outstanding, and can have
  std::uint8_t responder_resources = 0;  // … that it can be the target of

  std::uint32_t receive_depth = 0;      // receives posted for messages: the peer's credits at the start
  std::uint32_t control_slots = 0;      // receives posted on top for control messages
  std::uint32_t eager_max_bytes = 0;    // the longest payload sent eagerly
  std::uint64_t max_message_bytes = 0;  // the longest work request: the port's max_msg_sz

  std::uint8_t service_level = 0;  // 4 bits
  std::uint8_t traffic_class = 0;

  friend bool operator==(const Offer&, const Offer&) = default;
};

// The dialler's service level and traffic class hold for both directions, so that a flow is treated alike on its way
// there and back, whatever the acceptor has set for channels that it dials itself.
enum class Role : std::uint8_t { dialler, acceptor };

// What one end sets in its queue pair and keeps to.
struct Agreement {
  Offer peer;                            // queue pair, first PSN expected, GID, LID
  std::uint32_t mtu_bytes = 0;           // the smaller of both
  std::uint8_t initiator_depth = 0;      // min(own initiator_depth, peer's responder_resources)
  std::uint8_t responder_resources = 0;  // min(own responder_resources, peer's initiator_depth)
  std::uint32_t credits = 0;             // the peer's receive_depth
  std::uint32_t control_credits = 0;     // the peer's control_slots
  std::uint32_t eager_max_bytes = 0;     // the smaller of both
  std::uint64_t max_message_bytes = 0;   // the smaller of both
  std::uint8_t service_level = 0;        // the dialler's
  std::uint8_t traffic_class = 0;        // the dialler's
  friend bool operator==(const Agreement&, const Agreement&) = default;
};

// The agreement seen from `own`'s side, or a sentence that says what does not fit: kind of GID, address family, P_Key.
[[nodiscard]] std::variant<Agreement, std::string> agree(const Offer& own, const Offer& peer, Role role);

}  // namespace verbatim::transport::control
