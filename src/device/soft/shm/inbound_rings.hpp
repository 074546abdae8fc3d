// The ways in: rings that peers announced to us, and the order in which they are looked at, which is what keeps polling
// as cheap with many silent peers as with none:
//   1. hot rings, which had traffic lately: each, starting with the one that spoke last;
//   2. the doorbell, one word: rings that are not hot and have something now;
//   3. one cold ring in turn, so that a doorbell lost on the way only costs time.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "device/soft/shm/paths.hpp"
#include "device/soft/shm/process_roll.hpp"
#include "device/soft/shm/ring.hpp"

namespace verbatim::soft::shm {

enum class Heat : std::uint8_t { cold, hot, abandoned };

struct InboundRing {
  RingReader reader;
  ShmPath* from = nullptr;         // the way back to the sender
  std::uint64_t last_traffic = 0;  // on the poll's count
  Heat heat = Heat::cold;
  std::uint32_t slot = 0;
  InstanceId sender;
  ProcessIdentity process;
  Mapping mapping;
};

class InboundRings {
 public:
  InboundRings(const Self& self, Paths& paths) : self_(self), paths_(paths) { hot_.reserve(max_peers); }

  // The ring whose next packet is to be looked at, and its ready word; nullptr if there is none.
  struct Found {
    InboundRing* ring = nullptr;
    std::uint64_t word = 0;
  };
  [[nodiscard]] Found poll() {
    // Only ever changed under the engine's lock; the helper looks at it without.
    const std::uint64_t polls = polls_.load(std::memory_order_relaxed) + 1;
    polls_.store(polls, std::memory_order_relaxed);
    for (std::size_t looked = 0; looked < hot_.size(); ++looked) {
      InboundRing* ring = hot_[cursor_];
      const std::uint64_t word = ring->reader.peek();
      if (word != 0) {
        ring->last_traffic = polls;
        return {ring, word};
      }
      look_elsewhere(*ring);
    }
    return poll_cold();
  }
  // The packet is done with; its slots go back.
  void release(InboundRing& ring, std::uint32_t slots) {
    ring.reader.release(slots);
    if (++burst_ >= burst_limit) [[unlikely]]
      next_hot();
  }
  // A ready word that no writer could have put there.
  void abandon(InboundRing& ring);

  // Lets go of rings whose sender left or died, once they are empty. `keep` is the ring of a packet still in use.
  void reap(const InboundRing* keep, ProcessRoll& roll);
  // Makes every sender ring the doorbell from now on.
  void cool_all();
  [[nodiscard]] bool anything_arrived();

  [[nodiscard]] std::uint64_t polls() const { return polls_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t abandoned() const { return abandoned_; }
  [[nodiscard]] std::uint64_t refused() const { return refused_; }
  [[nodiscard]] std::size_t size() const { return hot_.size() + cold_.size(); }

 private:
  static constexpr std::uint32_t burst_limit = 64;      // packets of one ring in a row while others may wait
  static constexpr std::uint64_t silence_limit = 4096;  // polls without traffic after which a ring is cold

  void look_elsewhere(InboundRing& ring) {
    if (hot_.size() > 1) [[unlikely]]
      look_at_next(ring);
  }
  void look_at_next(InboundRing& ring);
  void next_hot();
  Found poll_cold();
  void answer_doorbell();
  void accept(std::uint32_t slot);
  void refuse(std::uint32_t slot, std::uint64_t claim);
  void reap_without_ring(std::uint32_t slot);
  std::unique_ptr<InboundRing> open_ring(std::uint32_t slot, InstanceId sender);
  void heat_up(InboundRing& ring);
  void cool_down(InboundRing& ring);
  void detach(std::uint32_t slot);

  const Self& self_;
  Paths& paths_;
  std::vector<InboundRing*> hot_;
  std::size_t cursor_ = 0;
  std::uint32_t burst_ = 0;
  std::atomic<std::uint64_t> polls_{0};
  std::vector<InboundRing*> cold_;
  std::size_t cold_cursor_ = 0;
  std::array<std::unique_ptr<InboundRing>, max_peers> by_slot_;
  std::uint64_t abandoned_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace verbatim::soft::shm
