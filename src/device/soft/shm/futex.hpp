// Sleeping on a word that processes share (futex(2)).
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.hpp"

namespace verbatim::soft::shm {

// What Instance::sleeping says of the owner's helper.
enum class Sleep : std::uint32_t {
  awake,
  standing_by,  // it has made sure that nothing waits for it; who brings something wakes it
  resting,      // it will look again by itself soon; only the owner may wake it
};

// Returns when the word is no longer `as`, at the latest after `limit`, sometimes for no reason.
void sleep_while(std::atomic<std::uint32_t>& word, Sleep as, Duration limit);
void wake_by_system_call(std::atomic<std::uint32_t>& word);

// A peer's call: a load unless the helper stands by.
inline void wake_if_standing_by(std::atomic<std::uint32_t>& word) {
  auto seen = static_cast<std::uint32_t>(Sleep::standing_by);
  if (word.load() == seen && word.compare_exchange_strong(seen, static_cast<std::uint32_t>(Sleep::awake))) {
    wake_by_system_call(word);
  }
}

// The owner's call.
inline void wake(std::atomic<std::uint32_t>& word) {
  if (word.exchange(static_cast<std::uint32_t>(Sleep::awake)) != static_cast<std::uint32_t>(Sleep::awake)) {
    wake_by_system_call(word);
  }
}

}  // namespace verbatim::soft::shm
