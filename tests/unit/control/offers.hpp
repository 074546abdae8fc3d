// Offers and hellos as a worker would make them.
#pragma once

#include <cstdint>

#include "transport/control/identity.hpp"
#include "transport/control/messages.hpp"
#include "transport/control/offer.hpp"

namespace verbatim::transport::control {

inline device::Gid ipv4_gid(std::uint8_t last) {
  return {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last}};
}

inline Offer offer_of(std::uint32_t queue_pair) {
  return {.queue_pair = Qpn{queue_pair},
          .first_sent = Psn(queue_pair * 7919),
          .gid = ipv4_gid(static_cast<std::uint8_t>(queue_pair)),
          .gid_type = device::GidType::roce_v2,
          .lid = 0,
          .pkey = 0xffff,
          .mtu_bytes = 4096,
          .initiator_depth = 16,
          .responder_resources = 16,
          .receive_depth = 128,
          .control_slots = 8,
          .eager_max_bytes = 8192,
          .max_message_bytes = 1U << 30,
          .service_level = 0,
          .traffic_class = 0};
}

inline constexpr SharedSettings shared_settings{
    .message_format = 1, .message_header_bytes = 32, .ring_alignment_bytes = 64};

inline Hello hello_of(std::uint64_t incarnation) {
  return {.sender = {incarnation, 3}, .fingerprint = fingerprint(shared_settings), .address = "10.0.0.1:7000"};
}

}  // namespace verbatim::transport::control
