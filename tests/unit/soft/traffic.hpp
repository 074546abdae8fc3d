// Many numbered messages of random sizes both ways over a pair, judged as they arrive: each once, in order, its bytes
// right. Everything random comes from a seed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/random.hpp"
#include "unit/soft/pair.hpp"

namespace verbatim::soft::testing {

class Traffic {
 public:
  static constexpr std::uint64_t window = 32;  // messages on the way in each direction
  static constexpr std::size_t slot_bytes = 4096;
  static constexpr std::uint32_t max_message_bytes = 3000;
  static_assert(window < Pair::depth);

  Traffic(Pair& pair, std::uint64_t messages, std::uint64_t seed)
      : pair_(pair), messages_(messages), flows_{Flow{pair.a, pair.b, seed}, Flow{pair.b, pair.a, ~seed}} {}

  // Until all messages of both directions have arrived and been acknowledged, nothing more happens, or one is wrong.
  void run() {
    for (Flow& flow : flows_) {
      for (std::uint64_t i = 0; i < window && i < messages_; ++i) post_receive(flow);
    }
    while (!done() && !::testing::Test::HasFailure()) {
      for (Flow& flow : flows_) send_more(flow);
      bool polled = false;
      for (Side* side : {&pair_.a, &pair_.b}) polled |= take_completions(*side);
      if (!polled && !pair_.network.step()) break;
    }
    for (const Flow& flow : flows_) {
      EXPECT_EQ(flow.received, messages_);
      EXPECT_EQ(flow.acknowledged, messages_);
    }
  }

  // A hash of when each completion was polled and what it said.
  [[nodiscard]] std::uint64_t trace() const { return trace_; }

 private:
  struct Flow {
    Flow(Side& sender, Side& receiver, std::uint64_t seed) : from(&sender), to(&receiver), random(seed) {}
    Side* from;
    Side* to;
    Random random;
    std::uint64_t posted = 0;  // receives
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    std::uint64_t acknowledged = 0;
    std::array<std::uint32_t, 2 * window> lengths{};  // acknowledged ones too, as long as nobody polled them
  };
  static constexpr std::size_t send_room = 0;
  static constexpr std::size_t receive_room = window * slot_bytes;
  static constexpr std::uint64_t is_receive = 1ULL << 63;

  static std::byte byte_of(std::uint64_t message, std::uint32_t at) {
    return static_cast<std::byte>(message * 131 + at * 7 + (at >> 8));
  }
  [[nodiscard]] bool done() const {
    return flows_[0].acknowledged == messages_ && flows_[1].acknowledged == messages_ &&
           flows_[0].received == messages_ && flows_[1].received == messages_;
  }
  void post_receive(Flow& flow) {
    const std::size_t slot = flow.posted % window;
    ASSERT_EQ(Pair::post_receive(*flow.to, is_receive | flow.posted, receive_room + slot * slot_bytes, slot_bytes), 0);
    ++flow.posted;
  }
  void send_more(Flow& flow) {
    // A slot is written again only once the message before it is acknowledged; the receive for it is posted by then or
    // an RNR NAK tells.
    while (flow.sent < messages_ && flow.sent - flow.acknowledged < window) {
      const std::size_t slot = flow.sent % window;
      const auto length = static_cast<std::uint32_t>(flow.random.below(max_message_bytes + 1));
      flow.lengths[flow.sent % flow.lengths.size()] = length;
      for (std::uint32_t at = 0; at < length; ++at) {
        flow.from->memory[send_room + slot * slot_bytes + at] = byte_of(flow.sent, at);
      }
      ASSERT_EQ(Pair::post_send(*flow.from, flow.sent, send_room + slot * slot_bytes, length), 0);
      ++flow.sent;
    }
  }
  bool take_completions(Side& side) {
    std::array<ibv_wc, 16> wcs{};
    const int count = ibv_poll_cq(side.cq, static_cast<int>(wcs.size()), wcs.data());
    for (int i = 0; i < count; ++i) take(side, wcs[static_cast<std::size_t>(i)]);
    return count > 0;
  }
  void take(Side& side, const ibv_wc& wc) {
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
    for (const std::uint64_t value : {static_cast<std::uint64_t>(pair_.network.now().time_since_epoch().count()),
                                      wc.wr_id, static_cast<std::uint64_t>(wc.opcode)}) {
      trace_ = (trace_ ^ value) * 0x100000001b3;
    }
    Flow& flow = flows_[((wc.wr_id & is_receive) != 0) == (&side == &pair_.b) ? 0 : 1];
    if ((wc.wr_id & is_receive) == 0) {
      ASSERT_EQ(wc.wr_id, flow.acknowledged++) << "completions of sends in order";
      return;
    }
    const std::uint64_t message = flow.received++;
    ASSERT_EQ(wc.wr_id & ~is_receive, message) << "receives in order";
    const std::size_t slot = message % window;
    ASSERT_EQ(wc.byte_len, flow.lengths[message % flow.lengths.size()]) << "message " << message;
    for (std::uint32_t at = 0; at < wc.byte_len; ++at) {
      ASSERT_EQ(side.memory[receive_room + slot * slot_bytes + at], byte_of(message, at)) << "message " << message;
    }
    if (flow.posted < messages_) post_receive(flow);
  }

  Pair& pair_;
  std::uint64_t messages_;
  std::array<Flow, 2> flows_;
  std::uint64_t trace_ = 0xcbf29ce484222325;
};

// Faults of every kind on every packet of both sides, each with probability `rate`.
inline FaultPlan everything_goes_wrong(double rate) {
  FaultPlan plan;
  for (const PacketFault fault :
       {PacketFault::drop, PacketFault::duplicate, PacketFault::reorder, PacketFault::delay, PacketFault::corrupt}) {
    plan.packets.push_back({.fault = fault, .rate = rate, .delay = std::chrono::microseconds(5)});
  }
  return plan;
}

}  // namespace verbatim::soft::testing
