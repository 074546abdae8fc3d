// What the two processes of a ping-pong share besides the device: a page to exchange addresses on and to meet at.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "common/handover.hpp"

namespace verbatim::pingpong {

inline constexpr int sides = 2;

struct QueuePairAddress {
  std::uint32_t qpn;
  std::uint32_t psn;
};

// What one process tells the other.
struct SideAddress {
  ibv_gid gid;
  QueuePairAddress rc;
  QueuePairAddress ud;
  std::uint64_t buffer;
  std::uint32_t rkey;
};

struct SharedPage {
  std::array<SideAddress, sides> addresses;
  alignas(64) std::atomic<std::uint32_t> arrived;  // at the meeting point
  alignas(64) std::atomic<std::uint32_t> round;    // meetings so far
  bool one_processor;                              // for both sides: whoever waits gives it up
  alignas(64) std::atomic<bool> failed;            // one side gave up: the other follows
  std::atomic<bool> explained;                     // why, was said: what the other side meets is the same or its echo
  apps::HandoverLines lines;
};

// Both sides are here, or one has failed: false then. `while_waiting` is called over and over until it is known.
template <typename WhileWaiting>
[[nodiscard]] bool meet(SharedPage& page, WhileWaiting while_waiting) {
  const std::uint32_t round = page.round.load();
  if (page.arrived.fetch_add(1) + 1 == sides) {
    page.arrived.store(0);
    page.round.store(round + 1);
  }
  while (page.round.load() == round) {
    if (page.failed.load() && page.round.load() == round) return false;
    while_waiting();
  }
  return true;
}

}  // namespace verbatim::pingpong
