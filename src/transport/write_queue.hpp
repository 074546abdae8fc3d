// The RDMA-write queue: a ring of cache lines in the receiver's memory, which the sender fills by RDMA writes and the
// receiver polls as memory. No receive is used up and no completion is polled for: a small frame is one write of one
// line.
//
// A record is a frame header, its bytes, and a mark in the last word of its last line; records begin at a line and
// don't wrap: where the longest would not fit before the ring's end, both sides go on at its start, whatever comes. So
// each record is one write, and nothing says where the next one is. The device places a write's bytes in address order
// (the sender asks for that promise before it uses a ring), so whoever sees the mark sees the record. What tells a new
// record from an old one is that the reader zeroes the first and the last word of every line before it gives the line
// back: only those words can ever be a header or a mark.
//
// Both counters are of lines, cumulative and modulo 2^32. Lines that are left out before the ring's end are counted
// with the record before them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/frame.hpp"

namespace verbatim::transport {

inline constexpr std::uint32_t line_bytes = 64;
inline constexpr std::uint32_t most_lines = (64U << 20) / line_bytes;  // of the longest ring that can be configured
inline constexpr std::uint64_t record_mark = 0x7665726261746d21;

[[nodiscard]] constexpr std::uint32_t lines_of_record(std::uint32_t frame_bytes) noexcept {
  return (frame_bytes + static_cast<std::uint32_t>(sizeof(record_mark)) + line_bytes - 1) / line_bytes;
}

// Where the next record begins when the last one ended before `line`. `lines` of the ring, a power of two; `longest`
// record in lines, at most as many.
[[nodiscard]] constexpr std::uint32_t next_record(std::uint32_t line, std::uint32_t lines,
                                                  std::uint32_t longest) noexcept {
  const std::uint32_t to_end = lines - (line & (lines - 1));
  return to_end < longest ? line + to_end : line;
}

// The receiver's side. The memory is the caller's, zeroed at the start, lines * line_bytes long.
class WriteQueueReader {
 public:
  WriteQueueReader() = default;
  WriteQueueReader(std::byte* memory, std::uint32_t lines, std::uint32_t longest)
      : memory_(memory), lines_(lines), longest_(longest) {}

  // The frame at the head once it is whole; nullptr before, and when the ring is broken. Valid until consume().
  [[nodiscard]] const FrameHeader* peek() noexcept {
    std::byte* record = at(read_);
    const std::uint64_t first_word = load(record);
    if (first_word == 0) return nullptr;
    const auto length = static_cast<std::uint32_t>(first_word >> 32);
    head_lines_ = lines_of_record(static_cast<std::uint32_t>(sizeof(FrameHeader)) + length);
    if (length > lines_ * line_bytes || head_lines_ > longest_) return breaks();
    if (load(record + std::size_t{head_lines_} * line_bytes - sizeof(record_mark)) != record_mark) return nullptr;
    // In a stream the following record is on its way here already: its line comes while this one is dealt with. No more
    // than one, which would be taken away from a sender who is about to write it.
    __builtin_prefetch(at(read_ + head_lines_));
    return reinterpret_cast<const FrameHeader*>(record);
  }

  // Gives the lines of the frame that was peeked at back.
  void consume() noexcept {
    std::byte* record = at(read_);
    for (std::uint32_t line = 0; line < head_lines_; ++line) clear_line(record + std::size_t{line} * line_bytes);
    read_ = next_record(read_ + head_lines_, lines_, longest_);
  }

  // A record that no sender writes was found; nothing behind it can be read.
  [[nodiscard]] bool broken() const noexcept { return broken_; }
  [[nodiscard]] std::uint32_t consumed() const noexcept { return read_; }
  [[nodiscard]] std::uint32_t lines() const noexcept { return lines_; }
  [[nodiscard]] std::byte* memory() const noexcept { return memory_; }

 private:
  [[nodiscard]] std::byte* at(std::uint32_t line) const noexcept {
    return memory_ + std::size_t{line & (lines_ - 1)} * line_bytes;
  }
  static std::uint64_t load(std::byte* word) noexcept {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(word)).load(std::memory_order_acquire);
  }
  [[gnu::noinline]] const FrameHeader* breaks() noexcept {
    broken_ = true;
    return nullptr;
  }
  static void clear_line(std::byte* line) noexcept {
    *reinterpret_cast<std::uint64_t*>(line) = 0;
    *reinterpret_cast<std::uint64_t*>(line + line_bytes - sizeof(record_mark)) = 0;
  }

  std::byte* memory_ = nullptr;
  std::uint32_t lines_ = 0;
  std::uint32_t longest_ = 0;  // record
  std::uint32_t read_ = 0;
  std::uint32_t head_lines_ = 0;  // of the record that peek() gave
  bool broken_ = false;
};

}  // namespace verbatim::transport
