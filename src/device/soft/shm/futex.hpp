// Sleeping on a word that processes share (futex(2)): 1 while somebody sleeps there, 0 otherwise.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.hpp"

namespace verbatim::soft::shm {

// Returns when the word is no longer 1, at the latest after `limit`, sometimes for no reason.
void sleep_while_set(std::atomic<std::uint32_t>& word, Duration limit);
void wake_by_system_call(std::atomic<std::uint32_t>& word);

// Wakes who sleeps on the word, if anybody does; a load otherwise.
inline void wake_sleeper(std::atomic<std::uint32_t>& word) {
  if (word.load() != 0 && word.exchange(0) != 0) wake_by_system_call(word);
}

}  // namespace verbatim::soft::shm
