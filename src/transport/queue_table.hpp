// Which channel a queue pair's completions are for. Open addressing: devices number queue pairs one after another, so
// the first look nearly always hits.
#pragma once

#include <cstddef>
#include <vector>

#include "base/ids.hpp"

namespace verbatim::transport {

class Channel;

class QueueTable {
 public:
  explicit QueueTable(std::size_t most) {
    std::size_t size = 16;
    while (size < 2 * most) size *= 2;
    entries_.resize(size);
  }

  [[nodiscard]] Channel* find(Qpn number) const noexcept {
    for (std::size_t at = number.value;; ++at) {
      const Entry& entry = entries_[at & (entries_.size() - 1)];
      if (entry.channel == nullptr || entry.number == number) return entry.channel;
    }
  }
  // Replaces what is known of that number.
  void set(Qpn number, Channel& channel) noexcept {
    for (std::size_t at = number.value;; ++at) {
      Entry& entry = entries_[at & (entries_.size() - 1)];
      if (entry.channel != nullptr && entry.number != number) continue;
      entry = {number, &channel};
      return;
    }
  }
  // Those behind it that it had displaced move up.
  void remove(Qpn number) noexcept {
    const std::size_t mask = entries_.size() - 1;
    std::size_t hole = number.value & mask;
    while (entries_[hole].channel != nullptr && entries_[hole].number != number) hole = (hole + 1) & mask;
    if (entries_[hole].channel == nullptr) return;
    for (std::size_t at = (hole + 1) & mask; entries_[at].channel != nullptr; at = (at + 1) & mask) {
      const std::size_t home = entries_[at].number.value & mask;
      if (((at - home) & mask) < ((at - hole) & mask)) continue;
      entries_[hole] = entries_[at];
      hole = at;
    }
    entries_[hole] = {};
  }

 private:
  struct Entry {
    Qpn number;
    Channel* channel = nullptr;
  };
  std::vector<Entry> entries_;  // a power of two, at most half full
};

}  // namespace verbatim::transport
