// What soft devices of one host share, byte by byte: one instance file per opened device and one ring file per ordered
// pair of devices that talk. Fixed width, no pointers; whatever is read from here may be garbage and is checked as a
// copy.
//
//   instance-<id>, also known as gid-<gid>
//   +-------------+------------------------------------------------------------------------------------+
//   | Instance    | magic, version, owner, state | doorbell | sleep word | arena segments              |
//   |             | PeerSlot[max_peers]            who sends to us, where it announces its ring          |
//   |             | RegionEntry[published_regions]   QueuePairEntry[published_queue_pairs]               |
//   +-------------+------------------------------------------------------------------------------------+
//   ring-<sender>-<receiver>
//   +-------------+------------------------------------------------------------------------------------+
//   | RingControl | slots of 64 bytes: ready word, encoded packet, payload or reference to it           |
//   +-------------+------------------------------------------------------------------------------------+
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "device/soft/shm/process_identity.hpp"

namespace verbatim::soft::shm {

inline constexpr std::uint64_t instance_magic = 0x31534e494d54'4256;  // "VBTMINS1"
inline constexpr std::uint64_t ring_magic = 0x31474e524d54'4256;      // "VBTMRNG1"
inline constexpr std::uint32_t layout_version = 1;
inline constexpr std::size_t cache_line = 64;
inline constexpr std::size_t page_bytes = 4096;

inline constexpr std::uint32_t max_peers = 1024;  // devices that may send to one device
inline constexpr std::uint32_t doorbell_words = max_peers / 64;
// Regions and queue pairs beyond these are not published: their traffic takes the ring, never a direct copy.
inline constexpr std::uint32_t published_regions = 4096;
inline constexpr std::uint32_t published_queue_pairs = 4096;
inline constexpr std::uint32_t max_segments = 64;  // files of mappable memory that a device may have at once

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free,
              "words shared between processes can't have locks");

// A random number that one opened device has for its life.
struct InstanceId {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(InstanceId, InstanceId) =
      default;  // NOLINT(modernize-use-nullptr): the 0 is the compiler's own
};

enum class InstanceState : std::uint32_t { opening, open, closed };

// Of a peer slot: free → claimed → announced → accepted or refused → leaving → free. The sender claims, announces and
// leaves; the receiver accepts or refuses, and frees.
enum class SlotState : std::uint8_t { free, claimed, announced, accepted, refused, leaving };

// The claimant's pid is in the same word, so that a claim whose owner died at once can be undone.
struct SlotClaim {
  static constexpr std::uint64_t make(pid_t pid, SlotState state) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(pid)) << 8 | static_cast<std::uint8_t>(state);
  }
  static constexpr SlotState state(std::uint64_t word) { return static_cast<SlotState>(word & 0xff); }
  static constexpr pid_t pid(std::uint64_t word) { return static_cast<pid_t>(word >> 8); }
};

// What a sender is copying into our memory just now; 0: nothing. It is set before our tables are looked at, so that we,
// having changed a table, wait for whoever may have seen the old entry.
struct Placement {
  static constexpr std::uint64_t busy = 1ULL << 63;
  static constexpr std::uint64_t make(std::uint32_t key, std::uint32_t qpn) {
    return busy | static_cast<std::uint64_t>(qpn & 0xffffff) << 32 | key;
  }
  static constexpr bool is_into(std::uint64_t word, std::uint32_t key) {
    return (word & busy) != 0 && static_cast<std::uint32_t>(word) == key;
  }
  static constexpr bool is_through(std::uint64_t word, std::uint32_t qpn) {
    return (word & busy) != 0 && (word >> 32 & 0xffffff) == qpn;
  }
};

struct alignas(cache_line) PeerSlot {
  std::atomic<std::uint64_t> claim;
  std::atomic<std::uint64_t> sender;      // InstanceId
  std::atomic<std::uint64_t> start_time;  // of the claimant's process
  std::atomic<std::uint64_t> placement;
};
static_assert(sizeof(PeerSlot) == cache_line);

// Both kinds of entry are guarded by `sequence`: odd while the owner changes it.
struct alignas(cache_line) RegionEntry {
  std::atomic<std::uint32_t> sequence;
  std::atomic<std::uint32_t> key;  // 0: none
  std::atomic<std::uint32_t> protection_domain;
  std::atomic<std::uint32_t> access;
  std::atomic<std::uint64_t> address;
  std::atomic<std::uint64_t> length;
  std::atomic<std::uint64_t> segment_offset;
  std::atomic<std::uint32_t> segment;         // index + 1; 0: memory that peers can't map
  std::atomic<std::uint32_t> segment_serial;  // of the segment's file
};
static_assert(sizeof(RegionEntry) == cache_line);

struct alignas(32) QueuePairEntry {
  std::atomic<std::uint32_t> sequence;
  std::atomic<std::uint32_t> qpn;  // unpublished: none
  std::atomic<std::uint32_t> connected_to;
  std::atomic<std::uint32_t> protection_domain;
  std::atomic<std::uint32_t> access;
  std::atomic<std::uint32_t> generation;
  std::atomic<std::uint32_t> receiving;

  static constexpr std::uint32_t occupied = 1U << 31;  // set in `qpn` of an entry in use
};
static_assert(sizeof(QueuePairEntry) == 32);

struct SegmentEntry {
  std::atomic<std::uint64_t> bytes;
  std::atomic<std::uint32_t> serial;  // 0: none; names the file
};
static_assert(sizeof(SegmentEntry) == 16);

struct Instance {
  // The first four fields stay where they are in every version, so that any version can tell a dead owner's file.
  std::uint64_t magic;
  std::uint32_t version;
  std::int32_t owner_pid;
  std::uint64_t owner_start_time;
  std::uint64_t id;
  std::atomic<std::uint32_t> state;  // InstanceState
  // The owner can't make peers' processors pass a barrier: who places here must fence by itself.
  std::atomic<std::uint32_t> placing_needs_fence;
  std::atomic<std::uint32_t> slots_limit;  // slots from here on were never claimed

  alignas(cache_line) std::atomic<std::uint64_t> doorbell_summary;  // bit w: look at doorbell[w]
  alignas(cache_line) std::array<std::atomic<std::uint64_t>, doorbell_words> doorbell;
  alignas(cache_line) std::atomic<std::uint32_t> sleeping;  // futex: Sleep of the owner's helper
  alignas(cache_line) std::array<SegmentEntry, max_segments> segments;
  alignas(page_bytes) std::array<PeerSlot, max_peers> slots;
  std::array<RegionEntry, published_regions> regions;
  std::array<QueuePairEntry, published_queue_pairs> queue_pairs;

  [[nodiscard]] ProcessIdentity owner() const { return {owner_pid, owner_start_time}; }
};
static_assert(offsetof(Instance, version) == 8 && offsetof(Instance, owner_pid) == 12);
static_assert(sizeof(Instance) % page_bytes == 0 && sizeof(Instance) <= 512UL * 1024);

// How the receiver polls a ring. Written by the receiver, read by the sender after each packet.
enum class Attention : std::uint32_t {
  cold,       // the doorbell must be rung
  hot,        // looked at on every poll
  abandoned,  // was found in a state that makes no sense; nothing is read any more
};
// Whether the receiver can read the sender's memory.
enum class Reach : std::uint32_t { unknown, readable, refused };

struct RingControl {
  // constant once announced
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t slots;  // a power of two
  std::uint64_t sender;
  std::uint64_t receiver;
  std::int32_t sender_pid;
  std::uint32_t reserved;
  std::uint64_t sender_start_time;
  std::uint64_t
      probe_address;  // where the sender keeps its own id: what can be read there tells whether it can be read
  alignas(cache_line) ibv_gid sender_gid;

  // written by the receiver
  alignas(cache_line) std::atomic<std::uint64_t> head;  // slots consumed, told a quarter of the ring at a time
  std::atomic<std::uint32_t> attention;
  std::atomic<std::uint32_t> reach;
};
inline constexpr std::size_t ring_control_bytes = page_bytes;
static_assert(sizeof(RingControl) <= ring_control_bytes);

inline constexpr std::uint32_t min_ring_bytes = 16 * 1024;
inline constexpr std::uint32_t max_ring_bytes = 1U << 30;

}  // namespace verbatim::soft::shm
