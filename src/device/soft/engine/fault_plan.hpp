// What goes wrong on purpose. A plan is data; engine/faulty_wire carries the packet part of it out, the engine the
// rest.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.hpp"

namespace verbatim::soft {

enum class PacketFault : std::uint8_t { drop, duplicate, reorder, delay, corrupt };
enum class PacketClass : std::uint8_t { any, request, response, acknowledge };

// One rule for packets that this device sends. A packet is struck when it matches and (rate says so, or it is the nth
// match).
struct PacketRule {
  PacketFault fault = PacketFault::drop;
  PacketClass packets = PacketClass::any;  // acknowledge + drop is "delivered, but the ACK is lost"
  std::uint32_t qpn = 0;                   // of the sending queue pair; 0: any
  double rate = 0;                         // 0 … 1
  std::uint64_t nth = 0;                   // strike exactly the nth matching packet, counted from 1; 0: by rate
  std::uint64_t limit = UINT64_MAX;        // strikes at most
  Duration delay{};                        // delay, reorder: how long it is held back
};

struct FaultPlan {
  std::vector<PacketRule> packets;
  bool stall_responder = false;          // requests are neither executed nor answered
  bool refuse_reset = false;             // modify to RESET fails with EIO
  bool endless_drain = false;            // a queue pair in ERR flushes nothing
  bool zero_length_is_2gib = false;      // an SGE of length 0 means 2^31 bytes, as one device has it
  std::uint32_t kill_qpn = 0;            // this queue pair goes to ERR …
  std::uint64_t kill_after_packets = 0;  // … after so many packets sent
};

}  // namespace verbatim::soft
