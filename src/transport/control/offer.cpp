#include "transport/control/offer.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace verbatim::transport::control {
namespace {

// P_Keys match in their low 15 bits; of two partition members at least one is a full one, which bit 15 says
// (InfiniBand Architecture Specification, volume 1, 10.9.3).
bool pkeys_match(std::uint16_t a, std::uint16_t b) {
  constexpr unsigned full_member = 0x8000;
  return ((a ^ b) & ~full_member & 0xffffU) == 0 && ((a | b) & full_member) != 0;
}

const char* family(const device::Gid& gid) {
  return device::is_ipv4_mapped(gid) ? "IPv4" : "IPv6";
}

// Written so that it reads the same at both ends.
std::string differ(const char* what, const std::string& dialler, const std::string& acceptor) {
  return fmt::format("{}: the dialler has {}, the acceptor {}", what, dialler, acceptor);
}

std::string mismatch(const Offer& dialler, const Offer& acceptor) {
  const auto gid = [](const Offer& offer) {
    return fmt::format("{} with GID {}", device::to_string(offer.gid_type), device::to_string(offer.gid));
  };
  if (dialler.gid_type != acceptor.gid_type) {
    return differ("the peers can't reach each other", gid(dialler), gid(acceptor)) +
           "; choose GIDs of one kind (device.gid_index)";
  }
  if (dialler.gid_type == device::GidType::roce_v2 &&
      device::is_ipv4_mapped(dialler.gid) != device::is_ipv4_mapped(acceptor.gid)) {
    return differ("RoCE v2 address family", fmt::format("{}, {}", family(dialler.gid), gid(dialler)),
                  fmt::format("{}, {}", family(acceptor.gid), gid(acceptor))) +
           "; choose GIDs of one family (device.gid_index)";
  }
  if (!pkeys_match(dialler.pkey, acceptor.pkey)) {
    return differ("P_Key", fmt::format("{:#06x}", dialler.pkey), fmt::format("{:#06x}", acceptor.pkey)) +
           "; the low 15 bits must be equal, and one of the two a full member (device.pkey)";
  }
  return {};
}

}  // namespace

std::variant<Agreement, std::string> agree(const Offer& own, const Offer& peer, Role role) {
  const Offer& dialler = role == Role::dialler ? own : peer;
  const Offer& acceptor = role == Role::dialler ? peer : own;
  if (std::string sentence = mismatch(dialler, acceptor); !sentence.empty()) return sentence;
  return Agreement{.peer = peer,
                   .mtu_bytes = std::min(own.mtu_bytes, peer.mtu_bytes),
                   .initiator_depth = std::min(own.initiator_depth, peer.responder_resources),
                   .responder_resources = std::min(own.responder_resources, peer.initiator_depth),
                   .credits = peer.receive_depth,
                   .control_credits = peer.control_slots,
                   .eager_max_bytes = std::min(own.eager_max_bytes, peer.eager_max_bytes),
                   .max_message_bytes = std::min(own.max_message_bytes, peer.max_message_bytes),
                   .service_level = dialler.service_level,
                   .traffic_class = dialler.traffic_class};
}

}  // namespace verbatim::transport::control
