// What travels between two soft devices. Fixed width, host byte order (both ends share a machine), one base header,
// one extension by kind, then the payload.
//
//   base header, 32 bytes
//    0        8        16               32                               64
//   +--------+--------+----------------+--------+--------+----------------+
//   | kind   | flags  | P_Key          | SL     | tclass | packet count   |
//   +--------+--------+----------------+--------+--------+----------------+
//   | destination QPN (24)             | service (8), source QPN (24)     |
//   +----------------------------------+----------------------------------+
//   | hop limit (8), PSN (24)          | valid (1), piggybacked ACK (24)  |
//   +----------------------------------+----------------------------------+
//   | payload bytes                    | immediate, or syndrome           |
//   +----------------------------------+----------------------------------+
//   extension: RdmaHeader (write, read request), AtomicHeader, DatagramHeader (UD), AtomicResult, or none
//
// One packet stands for `packet count` consecutive PSNs: a wire without faults carries a whole message at once, as
// segmentation offload does; a wire with faults carries one path MTU at a time.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "base/ids.hpp"

namespace verbatim::soft {

enum class PacketKind : std::uint8_t {
  send,
  write,
  read_request,
  read_response,
  compare_swap,
  fetch_add,
  atomic_response,
  acknowledge,
  placed_writes,  // stands for PSNs of writes that are complete: their data was placed without the target's help
};
inline constexpr std::uint8_t packet_kinds = 9;

enum class Service : std::uint8_t { rc, uc, ud };

// Bits of PacketHeader::flags.
namespace packet_flag {
inline constexpr std::uint8_t first = 1 << 0;        // first packet of its message; the extension is present
inline constexpr std::uint8_t last = 1 << 1;         // last packet of its message
inline constexpr std::uint8_t immediate = 1 << 2;    // the immediate is meant (on the last packet)
inline constexpr std::uint8_t solicited = 1 << 3;    // IBV_SEND_SOLICITED
inline constexpr std::uint8_t ack_request = 1 << 4;  // the requester's application waits: acknowledge at once
inline constexpr std::uint8_t placed =
    1 << 5;  // write with immediate: the data is in the target's memory already, no payload follows
inline constexpr std::uint8_t checksummed =
    1 << 6;  // a CRC-32C of packet and payload follows the payload (wires with faults)
}  // namespace packet_flag

// AETH syndromes (specification, volume 1, 9.7.5.2.1 table 46): 0b000ccccc ACK, 0b001ttttt RNR NAK with timer code,
// 0b011nnnnn NAK.
namespace syndrome {
inline constexpr std::uint8_t ack = 0x1f;  // no end-to-end credits
inline constexpr std::uint8_t rnr_nak = 0x20;
inline constexpr std::uint8_t reserved = 0x40;
inline constexpr std::uint8_t nak_sequence = 0x60;
inline constexpr std::uint8_t nak_invalid_request = 0x61;
inline constexpr std::uint8_t nak_remote_access = 0x62;
inline constexpr std::uint8_t nak_remote_operational = 0x63;
inline constexpr std::uint8_t class_mask = 0x60;
inline constexpr std::uint8_t value_mask = 0x1f;
}  // namespace syndrome

struct PacketHeader {
  PacketKind kind;
  std::uint8_t flags;
  std::uint16_t pkey;
  std::uint8_t service_level;
  std::uint8_t traffic_class;
  std::uint16_t packet_count;
  std::uint32_t destination_qpn;
  std::uint32_t source;    // service << 24 | source QPN
  std::uint32_t sequence;  // hop limit << 24 | PSN
  std::uint32_t
      acknowledgement;  // acknowledgement_valid | PSN: everything up to here has arrived at the sender of this packet
  std::uint32_t payload_bytes;
  std::uint32_t immediate;  // immediate data (network byte order), or the syndrome of a response

  static constexpr std::uint32_t acknowledgement_valid = 1U << 31;

  [[nodiscard]] bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
  [[nodiscard]] Service service() const { return static_cast<Service>(source >> 24); }
  [[nodiscard]] Qpn source_qpn() const { return {source & Qpn::mask}; }
  [[nodiscard]] Qpn destination() const { return {destination_qpn}; }
  [[nodiscard]] Psn psn() const { return Psn(sequence); }
  [[nodiscard]] std::uint8_t hop_limit() const { return static_cast<std::uint8_t>(sequence >> 24); }
};
static_assert(sizeof(PacketHeader) == 32);

struct RdmaHeader {
  std::uint64_t remote_address;
  std::uint32_t rkey;
  std::uint32_t length;  // of the whole message
};
static_assert(sizeof(RdmaHeader) == 16);

struct AtomicHeader {
  std::uint64_t remote_address;
  std::uint32_t rkey;
  std::uint32_t reserved;
  std::uint64_t swap_or_add;
  std::uint64_t compare;
};
static_assert(sizeof(AtomicHeader) == 32);

struct DatagramHeader {
  std::uint32_t qkey;
  std::uint32_t flow_label;
  ibv_gid source_gid;
  ibv_gid destination_gid;
};
static_assert(sizeof(DatagramHeader) == 40);

struct AtomicResult {
  std::uint64_t original;
};

// A packet without its payload.
struct Packet {
  PacketHeader header;
  union {
    RdmaHeader rdma;
    AtomicHeader atomic;
    DatagramHeader datagram;
    AtomicResult result;
  };
};
static_assert(sizeof(Packet) == 72);

// Bytes of the extension that belongs to a header; the encoded packet is 32 + this.
[[nodiscard]] constexpr std::size_t extension_bytes(const PacketHeader& header) {
  switch (header.kind) {
    case PacketKind::send:
      return header.service() == Service::ud ? sizeof(DatagramHeader) : 0;
    case PacketKind::write:
      return header.has(packet_flag::first) ? sizeof(RdmaHeader) : 0;
    case PacketKind::read_request:
      return sizeof(RdmaHeader);
    case PacketKind::compare_swap:
    case PacketKind::fetch_add:
      return sizeof(AtomicHeader);
    case PacketKind::atomic_response:
      return sizeof(AtomicResult);
    case PacketKind::read_response:
    case PacketKind::acknowledge:
    case PacketKind::placed_writes:
      return 0;
  }
  return 0;
}
[[nodiscard]] constexpr std::size_t encoded_bytes(const PacketHeader& header) {
  return sizeof(PacketHeader) + extension_bytes(header);
}
inline constexpr std::size_t max_encoded_bytes = sizeof(Packet);

// Why a header that came in from outside can't be believed; nullptr if it can. `payload_available` is what the wire
// really holds behind the header. Only what no later check would notice is looked at here.
[[nodiscard]] const char* refuse(const PacketHeader& header, std::size_t payload_available);

}  // namespace verbatim::soft
