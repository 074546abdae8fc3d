// A work request's wr_id as a value. A completion with an error keeps nothing but wr_id, status and queue pair
// (ibv_poll_cq(3)), so everything that its owner must know then stands in here.
//
//   63            60 59                           32 31                            0
//   +---------------+-------------------------------+-------------------------------+
//   |     kind      |             slot              |             epoch             |
//   +---------------+-------------------------------+-------------------------------+
#pragma once

#include <cstdint>

namespace verbatim::qp {

// What a work request was posted for. `control` is a send as well, from the slots that data may not use.
enum class WorkKind : std::uint8_t { send, control, receive, write, read, drain };

struct WorkId {
  static constexpr unsigned kind_bits = 4;
  static constexpr unsigned slot_bits = 28;
  static constexpr std::uint32_t slot_mask = (1U << slot_bits) - 1;

  WorkKind kind = WorkKind::send;
  std::uint32_t slot = 0;   // of a receive the caller's own number, of the others the ordinal of the post; 28 bits
  std::uint32_t epoch = 0;  // of the channel, or the round of a drain

  [[nodiscard]] constexpr std::uint64_t encode() const {
    return (std::uint64_t{static_cast<std::uint8_t>(kind)} << (slot_bits + 32)) |
           (std::uint64_t{slot & slot_mask} << 32) | epoch;
  }
  [[nodiscard]] static constexpr WorkId decode(std::uint64_t wr_id) {
    return {.kind = static_cast<WorkKind>(wr_id >> (slot_bits + 32)),
            .slot = static_cast<std::uint32_t>(wr_id >> 32) & slot_mask,
            .epoch = static_cast<std::uint32_t>(wr_id)};
  }
  friend constexpr bool operator==(const WorkId&, const WorkId&) = default;
};

static_assert(WorkId::kind_bits + WorkId::slot_bits == 32);
static_assert(static_cast<unsigned>(WorkKind::drain) < 1U << WorkId::kind_bits);
static_assert(WorkId::decode(WorkId{WorkKind::drain, WorkId::slot_mask, 0xffffffff}.encode()) ==
              WorkId{WorkKind::drain, WorkId::slot_mask, 0xffffffff});
static_assert(WorkId::decode(WorkId{WorkKind::receive, 5, 7}.encode()) == WorkId{WorkKind::receive, 5, 7});

}  // namespace verbatim::qp
