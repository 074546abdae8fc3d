#include "pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace verbatim::perf {
namespace {

constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);

// Each word is a counter stirred once; the multipliers are odd, so different counters give different words.
std::uint64_t word_at(std::uint64_t message, std::uint64_t index) {
  const std::uint64_t stirred = (message + 1) * 0x9e3779b97f4a7c15ULL + index * 0xc2b2ae3d27d4eb4fULL;
  return stirred ^ (stirred >> 29);
}

// Calls visit(offset, expected word, bytes of it that count) from front to back until it returns false.
template <typename Visit>
void for_each_word(std::uint64_t bytes, std::uint64_t message, Visit visit) {
  for (std::uint64_t offset = 0; offset < bytes; offset += word_bytes) {
    if (!visit(offset, word_at(message, offset / word_bytes), std::min(word_bytes, bytes - offset))) return;
  }
}

}  // namespace

void fill_pattern(std::byte* data, std::uint64_t bytes, std::uint64_t message) {
  for_each_word(bytes, message, [&](std::uint64_t offset, std::uint64_t word, std::uint64_t length) {
    std::memcpy(data + offset, &word, length);
    return true;
  });
}

void spoil_pattern(std::byte* data, std::uint64_t bytes, std::uint64_t message) {
  for_each_word(bytes, message, [&](std::uint64_t offset, std::uint64_t word, std::uint64_t length) {
    word = ~word;
    std::memcpy(data + offset, &word, length);
    return true;
  });
}

std::optional<Mismatch> find_mismatch(const std::byte* data, std::uint64_t bytes, std::uint64_t message) {
  std::optional<Mismatch> mismatch;
  for_each_word(bytes, message, [&](std::uint64_t offset, std::uint64_t expected, std::uint64_t length) {
    if (std::memcmp(data + offset, &expected, length) == 0) return true;
    std::uint8_t expected_bytes[word_bytes];
    std::memcpy(expected_bytes, &expected, word_bytes);
    std::uint64_t i = 0;
    while (static_cast<std::uint8_t>(data[offset + i]) == expected_bytes[i]) ++i;
    mismatch = Mismatch{message, offset + i, expected_bytes[i], static_cast<std::uint8_t>(data[offset + i])};
    return false;
  });
  return mismatch;
}

std::string to_string(const Mismatch& mismatch) {
  return fmt::format("message {}, offset {}: expected {:#04x}, found {:#04x}", mismatch.message, mismatch.offset,
                     mismatch.expected, mismatch.found);
}

}  // namespace verbatim::perf
