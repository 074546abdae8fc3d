// The bytes of control messages. Fixed width, little endian, every message one frame: header, then a body by kind.
//
//   header, 24 bytes. The first 12 keep their places in every version.
//    0               4       6       7       8               12              16                              24
//   +---------------+-------+-------+-------+---------------+---------------+-------------------------------+
//   | magic         |version| kind  | 0     | bytes         | epoch         | session                       |
//   +---------------+-------+-------+-------+---------------+---------------+-------------------------------+
//   `bytes` counts the whole message. Reserved fields are 0.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace verbatim::transport::control::wire {

static_assert(std::endian::native == std::endian::little, "structs are copied to the wire as they are");

inline constexpr std::uint32_t magic = 0x4c435256;  // "VRCL"

struct Header {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint8_t kind;
  std::uint8_t reserved;
  std::uint32_t bytes;
  std::uint32_t epoch;
  std::uint64_t session;
};

inline constexpr std::size_t address_capacity = 64;
struct Hello {
  std::uint64_t incarnation;
  std::uint64_t fingerprint;
  std::uint32_t worker;
  std::uint8_t address_length;
  std::uint8_t reserved[3];
  char address[address_capacity];  // zeros behind its length
};

struct Offer {
  std::uint64_t max_message_bytes;
  std::uint8_t gid[16];
  std::uint32_t queue_pair;  // 24 bits
  std::uint32_t first_psn;   // 24 bits
  std::uint32_t mtu_bytes;
  std::uint32_t receive_depth;
  std::uint32_t control_slots;
  std::uint32_t eager_max_bytes;
  std::uint16_t lid;
  std::uint16_t pkey;
  std::uint8_t gid_type;  // 0 InfiniBand, 1 RoCE v1, 2 RoCE v2
  std::uint8_t initiator_depth;
  std::uint8_t responder_resources;
  std::uint8_t service_level;
  std::uint8_t traffic_class;
  std::uint8_t reserved[7];
};

struct Rehandshake {
  Offer offer;
  std::uint32_t next_expected;
  std::uint32_t reserved;
};

inline constexpr std::size_t sentence_capacity = 240;
struct Refusal {
  std::uint64_t winner;
  std::uint16_t sentence_length;
  std::uint8_t reason;
  std::uint8_t reserved[5];
  char sentence[sentence_capacity];  // zeros behind its length
};

static_assert(sizeof(Header) == 24 && offsetof(Header, bytes) == 8);
static_assert(sizeof(Hello) == 88 && offsetof(Hello, address) == 24);
static_assert(sizeof(Offer) == 64 && offsetof(Offer, queue_pair) == 24 && offsetof(Offer, lid) == 48);
static_assert(sizeof(Rehandshake) == 72);
static_assert(sizeof(Refusal) == 256 && offsetof(Refusal, sentence) == 16);
template <typename T>
inline constexpr bool no_padding = std::is_trivially_copyable_v<T>&& std::has_unique_object_representations_v<T>;
static_assert(no_padding<Header> && no_padding<Hello> && no_padding<Offer> && no_padding<Refusal> &&
              no_padding<Rehandshake>);

}  // namespace verbatim::transport::control::wire
