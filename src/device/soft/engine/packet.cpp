#include "device/soft/engine/packet.hpp"

#include "device/soft/engine/checksum.hpp"

namespace verbatim::soft {

const char* refuse(const PacketHeader& header, std::size_t payload_available) {
  if (static_cast<std::uint8_t>(header.kind) >= packet_kinds) return "unknown kind";
  if (header.service() > Service::ud) return "unknown service";
  if (header.destination_qpn > Qpn::mask) return "destination QPN beyond 24 bits";
  if (header.packet_count == 0) return "stands for no packet";
  if (header.payload_bytes > payload_available) return "payload longer than what arrived";
  const bool carries_payload =
      header.kind == PacketKind::send || header.kind == PacketKind::write || header.kind == PacketKind::read_response;
  const std::uint32_t checksum = header.has(packet_flag::checksummed) ? checksum_bytes : 0;
  if (!carries_payload && header.payload_bytes != checksum) return "payload on a kind that has none";
  if (header.has(packet_flag::placed) && (header.kind != PacketKind::write || header.payload_bytes != 0)) {
    return "placed, and not a write without payload";
  }
  if (header.service() == Service::ud && header.kind != PacketKind::send) return "datagrams only send";
  if (header.service() == Service::uc && header.kind != PacketKind::send && header.kind != PacketKind::write) {
    return "unreliable connections only send and write";
  }
  return nullptr;
}

}  // namespace verbatim::soft
