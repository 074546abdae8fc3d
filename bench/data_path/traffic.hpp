// The operations of a phase, as both sides carry them out. Nothing in here allocates or enters the kernel: what is
// counted is the library's.
#pragma once

#include <array>
#include <cstdint>

#include "meeting.hpp"
#include "phase.hpp"
#include "shared_page.hpp"
#include "verbatim/verbatim.hpp"

namespace verbatim::data_path {

class End {
 public:
  End(Worker& worker, Channel channel, SharedPage& page, unsigned side)
      : worker_(worker), channel_(channel), page_(page), side_(side) {}

  [[nodiscard]] ChannelCounters counters() const { return channel_.counters(); }

  // What one side sends from, and what it receives into; the same of the other side is in one region.
  struct Buffers {
    std::byte* out;
    std::byte* in;
    RemoteRegion remote;
  };
  static constexpr std::uint64_t out_offset = 0;
  static constexpr std::uint64_t in_offset = most_bytes;

  // Both sides have come here, each progressing its worker meanwhile. Throws Error when the other one doesn't.
  void meet() {
    data_path::meet(page_, side_, [this] { worker_.progress(); });
  }

  // This side's part of `operations` of a phase; how many messages it sent, or operations it began.
  std::uint64_t carry_out(const Phase& phase, std::uint64_t operations, const Buffers& buffers);

 private:
  // What leads may send once both have met; what follows has its first receives posted before it meets.
  std::uint64_t lead(Traffic traffic, std::uint64_t operations);
  std::uint64_t lead_ping_pong(std::uint64_t operations);
  std::uint64_t lead_unexpected(std::uint64_t operations);
  std::uint64_t follow(Traffic traffic, std::uint64_t operations);
  std::uint64_t follow_ping_pong(std::uint64_t operations);
  std::uint64_t follow_stream(std::uint64_t operations);
  std::uint64_t follow_unexpected(std::uint64_t operations);
  // Begins them with a window under way, and waits for all.
  template <typename Begin>
  std::uint64_t begin_each(std::uint64_t operations, Begin&& begin);

  [[nodiscard]] Request send() { return channel_.send(buffers_.out, bytes_, message_tag); }
  [[nodiscard]] Request expect() { return worker_.recv(buffers_.in, bytes_, message_tag, exact_tag, channel_.id()); }
  // Throws Error if it ends badly, or does not end.
  void await(const Request& request);

  static constexpr Tag message_tag{1};
  static constexpr Tag last_tag{2};

  Worker& worker_;
  Channel channel_;
  SharedPage& page_;
  unsigned side_;
  Buffers buffers_{};
  std::uint64_t bytes_ = 0;
  std::array<Request, receives> requests_;
};

}  // namespace verbatim::data_path
