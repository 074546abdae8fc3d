// What travels between the two ends of a channel: a frame is a header and, behind it, as many bytes as it says. The
// same in a receive slot of a queue pair and in a write queue.
//
// Fixed width, little-endian, on every carrier:
//
//    0      1      2      3      4      5      6      7
//   +------+------+-------------+---------------------------+
//   | kind | flags|    epoch    |          length           |   the first word is never 0
//   +------+------+-------------+---------------------------+
//   |                          tag                          |
//   +---------------------------+---------------------------+
//   |         sequence          |      frames consumed      |
//   +---------------------------+---------------------------+
//   |      lines consumed       |         reserved          |
//   +---------------------------+---------------------------+
//
// `sequence` counts the frames of this direction, credit frames left out, whatever carries them. `frames
// consumed` and `lines consumed` are what the sender of this frame has taken, so far and in all, from the peer's queue
// pair and out of its own write queue: credits that are never lost, because the next frame says them again.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace verbatim::transport {

static_assert(std::endian::native == std::endian::little, "frames are laid out for little-endian hosts");

enum class FrameKind : std::uint8_t {
  none = 0,        // nothing has been written here yet
  eager,           // a whole message
  ready_to_send,   // RendezvousOffer: a message too long, or one that the receiver has no room for
  clear_to_send,   // RendezvousGrant: where its bytes may be written
  piece,           // Piece, and some of the bytes: where they can't be written
  finished,        // RendezvousEnd: all is there
  atomic_request,  // AtomicRequest
  atomic_reply,    // AtomicReply
  write_queue,     // WriteQueueOffer: send the following frames there
  flush,           // asks for a credit frame at once
  credit,          // only its header counts; not sequenced
};

enum class FrameFlag : std::uint8_t {
  none = 0,
  headers_only = 1,  // the sender of this frame has no room for unexpected messages: send it ready_to_send alone
};

struct FrameHeader {
  FrameKind kind = FrameKind::none;
  FrameFlag flags = FrameFlag::none;
  std::uint16_t epoch = 0;
  std::uint32_t length = 0;
  std::uint64_t tag = 0;
  std::uint32_t sequence = 0;
  std::uint32_t frames_consumed = 0;
  std::uint32_t lines_consumed = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(FrameHeader) == 32);
static_assert(offsetof(FrameHeader, tag) == 8);
static_assert(offsetof(FrameHeader, sequence) == 16);
static_assert(offsetof(FrameHeader, lines_consumed) == 24);

[[nodiscard]] inline std::byte* body_of(std::byte* frame) noexcept {
  return frame + sizeof(FrameHeader);
}

// Writes a header as it travels, in whole words: a device that reads it right afterwards can have them forwarded from
// the store buffer. Fields that were written one by one it could only read when they, and all that was written before,
// have left the core.
inline void write_header(std::byte* frame, const FrameHeader& header) noexcept {
  const auto pair = [](std::uint64_t low, std::uint64_t high) { return low | high << 32; };
  const auto write = [frame](std::size_t offset, std::uint64_t word) {
    std::memcpy(frame + offset, &word, sizeof(word));
  };
  write(0, pair(static_cast<std::uint32_t>(header.kind) | static_cast<std::uint32_t>(header.flags) << 8 |
                    static_cast<std::uint32_t>(header.epoch) << 16,
                header.length));
  write(offsetof(FrameHeader, tag), header.tag);
  write(offsetof(FrameHeader, sequence), pair(header.sequence, header.frames_consumed));
  write(offsetof(FrameHeader, lines_consumed), pair(header.lines_consumed, header.reserved));
}

// A request of the peer's, in its own numbering: handed back as it came.
struct PeerRequest {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  friend bool operator==(PeerRequest, PeerRequest) = default;
};

struct RendezvousOffer {
  std::uint64_t bytes = 0;
  PeerRequest send;
};
static_assert(sizeof(RendezvousOffer) == 16);

struct RendezvousGrant {
  PeerRequest send;
  PeerRequest receive;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  // what the receiver has room for, at most what was offered
  std::uint32_t rkey = 0;   // 0: the receiver can't be written to, or it isn't worth it; send pieces
  std::uint32_t reserved = 0;
};
static_assert(sizeof(RendezvousGrant) == 40);

struct Piece {
  PeerRequest receive;
  std::uint64_t offset = 0;  // in the message
};
static_assert(sizeof(Piece) == 16);

struct RendezvousEnd {
  PeerRequest receive;
};
static_assert(sizeof(RendezvousEnd) == 8);

enum class AtomicKind : std::uint32_t { fetch_add = 1, compare_swap = 2 };

struct AtomicRequest {
  PeerRequest request;
  std::uint64_t address = 0;
  std::uint64_t operand = 0;  // the addend, or what is expected
  std::uint64_t swap = 0;     // of compare_swap
  AtomicKind kind = AtomicKind::fetch_add;
  std::uint32_t rkey = 0;
};
static_assert(sizeof(AtomicRequest) == 40);

struct AtomicReply {
  PeerRequest request;
  std::uint64_t before = 0;
  std::uint32_t refused = 0;  // not 0: no region of the target allows it
  std::uint32_t reserved = 0;
};
static_assert(sizeof(AtomicReply) == 24);

struct WriteQueueOffer {
  std::uint64_t address = 0;
  std::uint32_t lines = 0;
  std::uint32_t rkey = 0;
};
static_assert(sizeof(WriteQueueOffer) == 16);

[[nodiscard]] constexpr bool carries_message(FrameKind kind) noexcept {
  return kind == FrameKind::eager || kind == FrameKind::piece;
}

[[nodiscard]] constexpr bool is_sequenced(FrameKind kind) noexcept {
  return kind != FrameKind::credit;
}

// What must follow a header of this kind. Eager frames and pieces have bytes of the message behind that.
[[nodiscard]] constexpr std::uint32_t body_bytes(FrameKind kind) noexcept {
  switch (kind) {
    case FrameKind::ready_to_send:
      return sizeof(RendezvousOffer);
    case FrameKind::clear_to_send:
      return sizeof(RendezvousGrant);
    case FrameKind::piece:
      return sizeof(Piece);
    case FrameKind::finished:
      return sizeof(RendezvousEnd);
    case FrameKind::atomic_request:
      return sizeof(AtomicRequest);
    case FrameKind::atomic_reply:
      return sizeof(AtomicReply);
    case FrameKind::write_queue:
      return sizeof(WriteQueueOffer);
    case FrameKind::none:
    case FrameKind::eager:
    case FrameKind::flush:
    case FrameKind::credit:
      return 0;
  }
  return 0;
}

}  // namespace verbatim::transport
