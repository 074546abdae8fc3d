#include "device/soft/shm/copy.hpp"

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
constexpr std::size_t block_bytes = 16;

#else

void copy_blocks(std::byte* to, const std::byte* from, std::size_t blocks) {
  for (; blocks != 0; --blocks, to += 8, from += 8) store_in_order<std::uint64_t>(to, from);
}
constexpr std::size_t block_bytes = 8;

#endif

}  // namespace

void copy_long_in_order(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t head = bytes_to_boundary(to, block_bytes);
  if (bytes <= head) return copy_bytes(to, from, bytes);
  copy_bytes(to, from, head);
  const std::size_t blocks = (bytes - head) / block_bytes;
  copy_blocks(to + head, from + head, blocks);
  const std::size_t done = head + blocks * block_bytes;
  copy_bytes(to + done, from + done, bytes - done);
}

}  // namespace verbatim::soft::shm
