// Where messages wait that came before their receives: entries and, of eager ones, the bytes. Bounded by the worker's
// budget, in blocks of a few sizes that are kept for the next message once they have been made.
//
// The budget is a line, not a wall: what is on its way when it is crossed still has to be taken, which each channel's
// credits bound. Past it, full() tells the senders to keep their bytes.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "transport/matcher.hpp"

namespace verbatim::transport {

class UnexpectedStore {
 public:
  UnexpectedStore(std::uint64_t budget_bytes, std::uint32_t most_eager_bytes)
      : budget_(budget_bytes), most_eager_bytes_(most_eager_bytes) {}
  UnexpectedStore(const UnexpectedStore&) = delete;
  UnexpectedStore& operator=(const UnexpectedStore&) = delete;
  ~UnexpectedStore();

  // An entry with room for `payload_bytes` (at most the eager size; 0 of an offer). Throws std::bad_alloc.
  [[nodiscard]] Unexpected* take(std::uint32_t payload_bytes);
  void give_back(Unexpected& message) noexcept;

  [[nodiscard]] bool full() const noexcept { return used_ >= budget_; }
  [[nodiscard]] std::uint64_t used() const noexcept { return used_; }
  [[nodiscard]] std::uint64_t peak() const noexcept { return peak_; }

 private:
  // Classes of payload: none, then powers of two from smallest_block up to the eager size.
  static constexpr std::uint32_t smallest_block = 64;
  static constexpr std::size_t classes = 28;
  [[nodiscard]] static std::uint32_t class_of(std::uint32_t payload_bytes) noexcept {
    if (payload_bytes == 0) return 0;
    return payload_bytes <= smallest_block ? 1 : static_cast<std::uint32_t>(std::bit_width(payload_bytes - 1)) - 5;
  }
  [[nodiscard]] static std::uint64_t block_bytes(std::uint32_t block_class) noexcept {
    return sizeof(Unexpected) + (block_class == 0 ? 0 : std::uint64_t{smallest_block} << (block_class - 1));
  }
  static_assert(smallest_block == 1U << 6);

  using Blocks = IntrusiveList<Unexpected, &Unexpected::by_arrival>;
  void free_idle_blocks() noexcept;

  std::uint64_t budget_;
  std::uint32_t most_eager_bytes_;
  std::uint64_t used_ = 0;  // by messages
  std::uint64_t peak_ = 0;
  std::uint64_t idle_ = 0;  // by blocks that are kept
  std::array<Blocks, classes> kept_;
};

}  // namespace verbatim::transport
