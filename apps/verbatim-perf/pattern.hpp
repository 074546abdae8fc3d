// What checked messages hold: bytes that depend on the message's number and on where they stand, so that a message that
// is stale, late, shifted or torn is told from the right one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace verbatim::perf {

void fill_pattern(std::byte* data, std::uint64_t bytes, std::uint64_t message);

struct Mismatch {
  std::uint64_t message = 0;
  std::uint64_t offset = 0;
  std::uint8_t expected = 0;
  std::uint8_t found = 0;
};
[[nodiscard]] std::string to_string(const Mismatch& mismatch);

// The first byte that is not as fill_pattern() made it.
[[nodiscard]] std::optional<Mismatch> find_mismatch(const std::byte* data, std::uint64_t bytes, std::uint64_t message);

// Leaves no byte as fill_pattern() would make it for this message.
void spoil_pattern(std::byte* data, std::uint64_t bytes, std::uint64_t message);

}  // namespace verbatim::perf
