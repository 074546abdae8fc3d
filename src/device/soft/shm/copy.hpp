// Copies into memory that somebody polls.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace verbatim::soft::shm {

// Asks for the line that holds *address, to be written to soon. Harmless wherever the address points to.
inline void prefetch_for_writing(const std::byte* address) {
#if defined(__x86_64__)
  // The compiler's builtin fetches for reading unless it may take a newer processor for granted; to one that doesn't
  // know this instruction it means nothing.
  asm volatile("prefetchw %0" : : "m"(*address));
#else
  __builtin_prefetch(address, 1);
#endif
}

// Long copies, whose bytes too become visible in the order of their addresses.
void copy_long_in_order(std::byte* to, const std::byte* from, std::size_t bytes);

// Copies so that who polls the target sees the bytes in the order of their addresses: a later byte is there only if
// every earlier one is.
inline void copy_in_order(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes == 8 && reinterpret_cast<std::uintptr_t>(to) % 8 == 0) {
    std::uint64_t word;
    std::memcpy(&word, from, sizeof word);
    std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(to)).store(word, std::memory_order_release);
    return;
  }
  copy_long_in_order(to, from, bytes);
}

}  // namespace verbatim::soft::shm
