// Packets between two devices; both in this process unless a test says otherwise.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "unit/soft_shm/support.hpp"

namespace verbatim::soft::shm {
namespace {

class WireTest : public ::testing::Test {
 protected:
  void open(std::uint32_t ring_bytes = 64 * 1024) {
    a_ = open_wire(config_in(directory_, ring_bytes), gid(1));
    b_ = open_wire(config_in(directory_, ring_bytes), gid(2));
    to_b_ = &a_->path_to(gid(1), gid(2));
  }
  TemporaryDirectory directory_;
  std::unique_ptr<ShmWire> a_;
  std::unique_ptr<ShmWire> b_;
  Path* to_b_ = nullptr;
};

std::vector<std::byte> pattern(std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 7 + bytes);
  return data;
}

TEST_F(WireTest, EverySizeArrivesWordForWord) {
  open();
  const std::uint32_t largest = a_->train_limit() * 4096;
  for (std::uint32_t bytes = 0; bytes <= largest; bytes += bytes < 300 ? 1 : 997) {
    auto data = pattern(bytes);
    ASSERT_EQ(send(*a_, *to_b_, send_packet(bytes, bytes), piece(data.data(), bytes)), SendResult::sent);
    const InboundPacket* inbound = receive(*b_);
    ASSERT_NE(inbound, nullptr) << bytes;
    ASSERT_EQ(inbound->packet.header.payload_bytes, bytes);
    ASSERT_EQ(inbound->packet.header.immediate, bytes);
    ASSERT_NE(inbound->payload, nullptr);
    ASSERT_TRUE(std::equal(data.begin(), data.end(), inbound->payload)) << bytes;
    b_->release();
    ASSERT_EQ(b_->receive(now()), nullptr);
  }
}

TEST_F(WireTest, ATrainOfTheLargestMtuFits) {
  for (const std::uint32_t ring_bytes : {min_ring_bytes, 64U * 1024, 256U * 1024}) {
    open(ring_bytes);
    ASSERT_GE(a_->train_limit(), 1U);
    Packet packet = write_packet(nullptr, 0x100, a_->train_limit() * 4096);
    auto data = pattern(packet.header.payload_bytes);
    // Whatever lies before it in the ring.
    for (int round = 0; round < 40; ++round) {
      ASSERT_EQ(send(*a_, *to_b_, packet, piece(data.data(), data.size())), SendResult::sent);
      ASSERT_NE(receive(*b_), nullptr);
      b_->release();
    }
    a_.reset();
    b_.reset();
  }
}

TEST_F(WireTest, ExtensionsArriveWhole) {
  open();
  std::vector<Packet> packets;
  packets.push_back(send_packet(0));
  packets.back().header.source = static_cast<std::uint32_t>(Service::ud) << 24 | 0x11;
  packets.back().datagram = {.qkey = 5, .flow_label = 6, .source_gid = gid(1), .destination_gid = gid(2)};
  packets.push_back(write_packet(&packets, 0x101, 0));
  packets.push_back(send_packet(0));
  packets.back().header.kind = PacketKind::compare_swap;
  packets.back().atomic = {.remote_address = 8, .rkey = 9, .reserved = 0, .swap_or_add = 10, .compare = 11};
  packets.push_back(send_packet(0));
  packets.back().header.kind = PacketKind::atomic_response;
  packets.back().result = {.original = 12};
  for (const Packet& packet : packets) {
    ASSERT_EQ(send(*a_, *to_b_, packet, piece(nullptr, 0)), SendResult::sent);
    const InboundPacket* inbound = receive(*b_);
    ASSERT_NE(inbound, nullptr);
    EXPECT_EQ(std::memcmp(&inbound->packet, &packet, encoded_bytes(packet.header)), 0);
    b_->release();
  }
}

TEST_F(WireTest, PiecesAreGatheredAndScattered) {
  open();
  auto data = pattern(1000);
  const std::vector<Piece> from{piece(data.data(), 1), piece(data.data() + 1, 0), piece(data.data() + 1, 700),
                                piece(data.data() + 701, 299)};
  ASSERT_EQ(a_->send(*to_b_, send_packet(1000), from, Qpn{0x11}, now()), SendResult::sent);
  const InboundPacket* inbound = receive(*b_);
  ASSERT_NE(inbound, nullptr);
  std::vector<std::byte> got(990);
  const std::vector<Piece> to{piece(got.data(), 333), piece(got.data() + 333, 657)};
  ASSERT_TRUE(b_->fetch(*inbound, 10, to));
  EXPECT_TRUE(std::equal(got.begin(), got.end(), data.begin() + 10));
}

TEST_F(WireTest, APacketStaysUntilItIsReleased) {
  open();
  for (std::uint32_t number : {1U, 2U}) {
    ASSERT_EQ(send(*a_, *to_b_, send_packet(0, number), piece(nullptr, 0)), SendResult::sent);
  }
  EXPECT_EQ(receive(*b_)->packet.header.immediate, 1u);
  EXPECT_EQ(receive(*b_)->packet.header.immediate, 1u);
  b_->release();
  EXPECT_EQ(receive(*b_)->packet.header.immediate, 2u);
}

TEST_F(WireTest, ThePathOfAPacketLeadsBack) {
  open();
  ASSERT_EQ(send(*a_, *to_b_, send_packet(0), piece(nullptr, 0)), SendResult::sent);
  Path& back = *receive(*b_)->from;
  ASSERT_EQ(send(*b_, back, send_packet(0, 7), piece(nullptr, 0)), SendResult::sent);
  EXPECT_EQ(receive(*a_)->packet.header.immediate, 7u);
}

TEST_F(WireTest, OneDeviceReachesItself) {
  open();
  Path& self = a_->path_to(gid(1), gid(1));
  ASSERT_EQ(send(*a_, self, send_packet(0, 9), piece(nullptr, 0)), SendResult::sent);
  EXPECT_EQ(receive(*a_)->packet.header.immediate, 9u);
}

TEST_F(WireTest, AFullRingSaysSoAndKeepsTheOrder) {
  open(min_ring_bytes);
  std::byte payload[512]{};
  std::uint32_t sent = 0;
  while (send(*a_, *to_b_, send_packet(sizeof payload, sent), piece(payload, sizeof payload)) == SendResult::sent)
    ++sent;
  EXPECT_GT(sent, 10u);
  const std::uint32_t total = 10 * sent;
  for (std::uint32_t got = 0; got < total; ++got) {
    const InboundPacket* inbound = receive(*b_);
    ASSERT_NE(inbound, nullptr);
    ASSERT_EQ(inbound->packet.header.immediate, got);
    b_->release();
    const Packet next = send_packet(sizeof payload, sent);
    if (send(*a_, *to_b_, next, piece(payload, sizeof payload)) == SendResult::sent) ++sent;
  }
}

TEST_F(WireTest, WhatIsSentToNobodyIsLostUntilSomebodyAppears) {
  a_ = open_wire(config_in(directory_), gid(1));
  Path& path = a_->path_to(gid(1), gid(2));
  Time time{};
  const Packet packet = send_packet(0, 1);
  EXPECT_EQ(a_->send(path, packet, {}, Qpn{0x11}, time), SendResult::sent);
  EXPECT_EQ(a_->counters().packets_lost, 1u);
  b_ = open_wire(config_in(directory_), gid(2));
  EXPECT_EQ(b_->receive(time), nullptr);
  EXPECT_EQ(a_->send(path, packet, {}, Qpn{0x11}, time + std::chrono::milliseconds(50)), SendResult::sent);
  EXPECT_NE(receive(*b_), nullptr);
}

TEST_F(WireTest, AFloodDoesNotHideAnotherPeer) {
  open();
  const auto c = open_wire(config_in(directory_), gid(3));
  Path& c_to_b = c->path_to(gid(3), gid(2));
  const auto flood = [&] {
    while (send(*a_, *to_b_, send_packet(0, 1), piece(nullptr, 0)) == SendResult::sent) {
    }
  };
  flood();
  ASSERT_EQ(send(*c, c_to_b, send_packet(0, 2), piece(nullptr, 0)), SendResult::sent);
  int before = 0;
  while (receive(*b_)->packet.header.immediate != 2) {
    b_->release();
    flood();
    ASSERT_LT(++before, 1000);
  }
}

// A ring without traffic is looked at less; what comes through it at last is still found, and in order.
TEST_F(WireTest, ARingThatWentColdIsHeardAgain) {
  open();
  const auto c = open_wire(config_in(directory_), gid(3));
  Path& c_to_b = c->path_to(gid(3), gid(2));
  for (std::uint32_t round = 1; round <= 5; ++round) {
    ASSERT_EQ(send(*c, c_to_b, send_packet(0, round), piece(nullptr, 0)), SendResult::sent);
    ASSERT_EQ(receive(*b_)->packet.header.immediate, round);
    b_->release();
    for (int i = 0; i < 10'000; ++i) {
      ASSERT_EQ(send(*a_, *to_b_, send_packet(0, 0), piece(nullptr, 0)), SendResult::sent);
      ASSERT_NE(receive(*b_), nullptr);
      b_->release();
    }
  }
}

TEST_F(WireTest, OneLookFindsWhatTheDoorbellTellsOf) {
  open();
  ASSERT_EQ(send(*a_, *to_b_, send_packet(0, 1), piece(nullptr, 0)), SendResult::sent);
  EXPECT_NE(b_->receive(now()), nullptr) << "the first packet of a ring that was just announced";
}

TEST_F(WireTest, TwoThreadsTalkBothWays) {
  open(min_ring_bytes);
  constexpr std::uint32_t messages = 20'000;
  const auto talk = [](ShmWire& wire, const ibv_gid& here, const ibv_gid& there) {
    Path& path = wire.path_to(here, there);
    std::uint32_t sent = 0;
    std::uint32_t received = 0;
    std::byte payload[200];
    while (sent < messages || received < messages) {
      if (sent < messages) {
        const std::uint32_t bytes = sent % sizeof payload;
        std::memset(payload, static_cast<int>(sent), bytes);
        if (send(wire, path, send_packet(bytes, sent), piece(payload, bytes)) == SendResult::sent) ++sent;
      }
      const InboundPacket* inbound = wire.receive(now());
      if (inbound == nullptr) {
        ::sched_yield();
        continue;
      }
      ASSERT_EQ(inbound->packet.header.immediate, received);
      for (std::uint32_t i = 0; i < inbound->packet.header.payload_bytes; ++i) {
        ASSERT_EQ(inbound->payload[i], static_cast<std::byte>(received));
      }
      wire.release();
      ++received;
    }
  };
  std::thread other([&] { talk(*b_, gid(2), gid(1)); });
  talk(*a_, gid(1), gid(2));
  other.join();
}

TEST_F(WireTest, TwoProcessesTalk) {
  constexpr std::uint32_t messages = 10'000;
  SharedWords words;
  ChildProcess echo([&] {
    const auto wire = open_wire(config_in(directory_), gid(2));
    words[0] = 1;
    for (std::uint32_t i = 0; i < messages; ++i) {
      const InboundPacket* inbound = receive(*wire);
      if (inbound == nullptr || inbound->packet.header.immediate != i) return 1;
      Path& back = *inbound->from;
      wire->release();
      if (send(*wire, back, send_packet(0, i), piece(nullptr, 0)) != SendResult::sent) return 2;
    }
    return eventually([&] { return words[0] == 2; }) ? 0 : 3;
  });
  ASSERT_TRUE(eventually([&] { return words[0] == 1; }));
  a_ = open_wire(config_in(directory_), gid(1));
  Path& path = a_->path_to(gid(1), gid(2));
  for (std::uint32_t i = 0; i < messages; ++i) {
    ASSERT_EQ(send(*a_, path, send_packet(0, i), piece(nullptr, 0)), SendResult::sent);
    const InboundPacket* inbound = receive(*a_);
    ASSERT_NE(inbound, nullptr);
    ASSERT_EQ(inbound->packet.header.immediate, i);
    a_->release();
  }
  words[0] = 2;
  EXPECT_EQ(echo.wait(), 0);
}

}  // namespace
}  // namespace verbatim::soft::shm
