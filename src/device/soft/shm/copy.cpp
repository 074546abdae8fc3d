#include "device/soft/shm/copy.hpp"

#include <algorithm>

#if defined(__SANITIZE_THREAD__)
#define VERBATIM_PORTABLE_COPY 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define VERBATIM_PORTABLE_COPY 1
#endif
#endif

namespace verbatim::soft::shm {
namespace {

template <typename Word>
void store_in_order(std::byte* to, const std::byte* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  std::atomic_ref<Word>(*reinterpret_cast<Word*>(to)).store(word, std::memory_order_release);
}

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) store_in_order<std::byte>(to + i, from + i);
}

// As long as a header that has just been written, with room to spare.
constexpr std::size_t fresh_blocks = 4;

std::size_t bytes_to_boundary(const std::byte* address, std::size_t boundary) {
  return (boundary - reinterpret_cast<std::uintptr_t>(address) % boundary) % boundary;
}

#if defined(__x86_64__) && !defined(VERBATIM_PORTABLE_COPY)

// Stores are seen in program order on this processor. The barrier after each keeps the compiler from another order, and
// from making a memcpy of the loop, which has an order of its own.
void copy_blocks(std::byte* to, const std::byte* from, std::size_t blocks) {
  for (; blocks != 0; --blocks, to += 16, from += 16) {
    _mm_store_si128(reinterpret_cast<__m128i*>(to), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
}

// The same, for what was written a moment ago word by word: a load of two words can't be forwarded from the stores of
// each, and would wait until they and all before them have left the core.
void copy_fresh_blocks(std::byte* to, const std::byte* from, std::size_t blocks) {
  for (; blocks != 0; --blocks, to += 16, from += 16) {
    const __m128i low = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    const __m128i high = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + 8));
    _mm_store_si128(reinterpret_cast<__m128i*>(to), _mm_unpacklo_epi64(low, high));
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
}
constexpr std::size_t block_bytes = 16;

#else

void copy_blocks(std::byte* to, const std::byte* from, std::size_t blocks) {
  for (; blocks != 0; --blocks, to += 8, from += 8) store_in_order<std::uint64_t>(to, from);
}
void copy_fresh_blocks(std::byte* to, const std::byte* from, std::size_t blocks) {
  copy_blocks(to, from, blocks);
}
constexpr std::size_t block_bytes = 8;

#endif

}  // namespace

void copy_long_in_order(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t head = bytes_to_boundary(to, block_bytes);
  if (bytes <= head) return copy_bytes(to, from, bytes);
  copy_bytes(to, from, head);
  to += head;
  from += head;
  bytes -= head;
  // A header and a trailer are what was written last.
  const std::size_t blocks = bytes / block_bytes;
  const std::size_t fresh = std::min(blocks, fresh_blocks);
  const std::size_t settled = blocks - fresh > 1 ? blocks - fresh - 1 : 0;
  const std::size_t settled_bytes = settled * block_bytes;
  copy_fresh_blocks(to, from, fresh);
  copy_blocks(to + fresh * block_bytes, from + fresh * block_bytes, settled);
  const std::size_t done = fresh * block_bytes + settled_bytes;
  copy_fresh_blocks(to + done, from + done, blocks - fresh - settled);
  copy_bytes(to + blocks * block_bytes, from + blocks * block_bytes, bytes - blocks * block_bytes);
}

}  // namespace verbatim::soft::shm
