// A ring of 64-byte slots from one device to another: one writer, one reader, one cache line per small packet.
//
//   first slot of a packet
//   +----------------+---------------------------+----------------------------------------+
//   | ready word (8) | encoded packet (32 … 72)  | payload or Reference, over more slots  |
//   +----------------+---------------------------+----------------------------------------+
//   ready word:  position + 1 (32 bits) | form (8) | slots (24)
//
// What always holds: the ready word at the writer's position is 0 until the packet there is complete. The writer clears
// it well ahead, after publishing, which also brings the line to its cache before the next packet needs it. The
// reader's position comes back a quarter of the ring at a time, so that in the steady state only the packet's line
// moves.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "device/soft/shm/layout.hpp"

namespace verbatim::soft::shm {

inline constexpr std::size_t slot_bytes = cache_line;
inline constexpr std::size_t ready_word_bytes = 8;

// How the payload travels.
enum class PayloadForm : std::uint8_t { in_ring = 1, by_reference = 2 };

struct ReadyWord {
  static constexpr std::uint32_t slots_mask = 0xffffff;

  [[nodiscard]] static constexpr std::uint64_t make(std::uint64_t position, std::uint32_t slots, PayloadForm form) {
    return (position + 1) << 32 | static_cast<std::uint64_t>(form) << 24 | slots;
  }
  [[nodiscard]] static constexpr std::uint32_t slots(std::uint64_t word) {
    return static_cast<std::uint32_t>(word) & slots_mask;
  }
  [[nodiscard]] static constexpr PayloadForm form(std::uint64_t word) {
    return static_cast<PayloadForm>(word >> 24 & 0xff);
  }
  // Could the writer of a ring of `ring_slots` have put it at `position`?
  [[nodiscard]] static constexpr bool sane(std::uint64_t word, std::uint64_t position, std::uint32_t ring_slots) {
    return word >> 32 == ((position + 1) & 0xffffffff) && slots(word) != 0 && slots(word) <= ring_slots / 2 &&
           (form(word) == PayloadForm::in_ring || form(word) == PayloadForm::by_reference);
  }
};

[[nodiscard]] constexpr std::uint32_t slots_for(std::size_t bytes) {
  return static_cast<std::uint32_t>((ready_word_bytes + bytes + slot_bytes - 1) / slot_bytes);
}
// Bytes that a packet may have in a ring of `ring_bytes`.
[[nodiscard]] constexpr std::size_t largest_packet(std::size_t ring_bytes) {
  return ring_bytes / 2 - ready_word_bytes;
}

class RingWriter {
 public:
  RingWriter() = default;
  // `slots` as the writer knows it: the control page belongs to nobody's trust.
  RingWriter(RingControl* control, std::byte* data, std::uint32_t slots)
      : control_(control), data_(data), slots_(slots), mask_(slots - 1), limit_(slots) {}

  // Where the bytes of a packet of so many slots go, or nullptr if there is no room now. Nothing is seen until
  // publish().
  [[nodiscard]] std::byte* reserve(std::uint32_t slots) {
    if (tail_ + slots + clear_ahead > limit_) [[unlikely]] {
      if (!find_room(slots)) return nullptr;
    }
    return at(tail_) + ready_word_bytes;
  }

  void publish(std::uint32_t slots, PayloadForm form) {
    const std::uint64_t next = tail_ + slots;
    if (cleared_ <= next) [[unlikely]] {
      clear(next);
      cleared_ = next + 1;
    }
    ready(tail_).store(ReadyWord::make(tail_, slots, form), std::memory_order_release);
    tail_ = next;
    while (cleared_ < tail_ + clear_ahead) clear(cleared_++);
  }

  // Relaxed: a stale `hot` costs a wake-up's delay, never a packet (RingReader::peek finds it on the next look).
  [[nodiscard]] Attention attention() const {
    return static_cast<Attention>(control_->attention.load(std::memory_order_relaxed));
  }
  [[nodiscard]] Reach reach() const { return static_cast<Reach>(control_->reach.load(std::memory_order_relaxed)); }
  [[nodiscard]] std::uint64_t position() const { return tail_; }
  // The reader's position made no sense: the ring is dead for good.
  [[nodiscard]] bool broken() const { return broken_; }
  explicit operator bool() const { return control_ != nullptr; }

 private:
  // So far ahead of the packet that the line has come before it is needed, also in a stream.
  static constexpr std::uint64_t clear_ahead = 8;
  static_assert(clear_ahead < min_ring_bytes / slot_bytes / 4, "room for the largest packet must come back");

  [[nodiscard]] std::byte* at(std::uint64_t position) const { return data_ + (position & mask_) * slot_bytes; }
  [[nodiscard]] std::atomic_ref<std::uint64_t> ready(std::uint64_t position) const {
    return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(at(position)));
  }
  void clear(std::uint64_t position) { ready(position).store(0, std::memory_order_relaxed); }
  bool find_room(std::uint32_t slots);

  RingControl* control_ = nullptr;
  std::byte* data_ = nullptr;
  std::uint32_t slots_ = 0;
  std::uint64_t mask_ = 0;
  std::uint64_t tail_ = 0;     // where the next packet goes
  std::uint64_t limit_ = 0;    // the reader has left every slot before this
  std::uint64_t cleared_ = 1;  // ready words before this, from tail_ on, are 0 (a new file is)
  bool broken_ = false;
};

class RingReader {
 public:
  RingReader() = default;
  RingReader(RingControl* control, std::byte* data, std::uint32_t slots)
      : control_(control), next_(data), data_(data), slots_(slots), mask_(slots - 1) {}

  // The ready word of the next packet, or 0.
  [[nodiscard]] std::uint64_t peek() const {
    return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(next_)).load(std::memory_order_acquire);
  }
  [[nodiscard]] bool sane(std::uint64_t word) const { return ReadyWord::sane(word, head_, slots_); }
  [[nodiscard]] const std::byte* bytes() const { return next_ + ready_word_bytes; }

  // The packet's slots go back to the writer; nothing of them may be read any more.
  void release(std::uint32_t slots) {
    head_ += slots;
    next_ = data_ + (head_ & mask_) * slot_bytes;
    if (head_ - told_ >= slots_ / 4) [[unlikely]]
      tell();
  }
  void set_attention(Attention attention) {
    control_->attention.store(static_cast<std::uint32_t>(attention), std::memory_order_release);
  }
  void set_reach(Reach reach) { control_->reach.store(static_cast<std::uint32_t>(reach), std::memory_order_release); }

 private:
  void tell();

  RingControl* control_ = nullptr;
  std::byte* next_ = nullptr;  // the slot at head_
  std::byte* data_ = nullptr;
  std::uint32_t slots_ = 0;
  std::uint64_t mask_ = 0;
  std::uint64_t head_ = 0;  // where the next packet is
  std::uint64_t told_ = 0;  // what the writer knows of it
};

}  // namespace verbatim::soft::shm
