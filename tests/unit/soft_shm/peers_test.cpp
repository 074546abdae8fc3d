// Peers that leave, die, or are too many.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "unit/soft_shm/support.hpp"

namespace verbatim::soft::shm {
namespace {

std::size_t files_of_kind(const TemporaryDirectory& directory, const std::string& prefix) {
  std::size_t count = 0;
  for (const std::string& name : directory.names()) count += name.starts_with(prefix) ? 1 : 0;
  return count;
}

class PeersTest : public ::testing::Test {
 protected:
  void SetUp() override { wire_ = open_wire(config_in(directory_, min_ring_bytes), gid(1)); }
  [[nodiscard]] Instance& instance() {
    mapping_ = *Registry(directory_.path()).find(gid(1));
    return *reinterpret_cast<Instance*>(mapping_.data());
  }
  [[nodiscard]] std::uint32_t slots_in_use() {
    const auto& slots = instance().slots;
    return static_cast<std::uint32_t>(std::count_if(slots.begin(), slots.end(), [](const PeerSlot& slot) {
      return SlotClaim::state(slot.claim) != SlotState::free;
    }));
  }
  TemporaryDirectory directory_;
  std::unique_ptr<ShmWire> wire_;
  SharedWords words_;
  Mapping mapping_;
};

TEST_F(PeersTest, WhatASenderLeftBehindIsDeliveredAfterItClosed) {
  {
    const auto sender = open_wire(config_in(directory_, min_ring_bytes), gid(2));
    Path& path = sender->path_to(gid(2), gid(1));
    for (std::uint32_t i = 0; i < 10; ++i) send(*sender, path, send_packet(0, i), piece(nullptr, 0));
  }
  for (std::uint32_t i = 0; i < 10; ++i) {
    const InboundPacket* inbound = receive(*wire_);
    ASSERT_NE(inbound, nullptr);
    ASSERT_EQ(inbound->packet.header.immediate, i);
    wire_->release();
    keep_house(*wire_);  // must not throw away what has not been read
  }
  EXPECT_EQ(slots_in_use(), 0u);
  EXPECT_EQ(files_of_kind(directory_, "ring-"), 0u);
}

TEST_F(PeersTest, ASenderKilledInTheMiddleLeavesOnlyWholePackets) {
  for (int round = 0; round < 10; ++round) {
    words_[0] = 0;
    ChildProcess sender([&]() -> int {
      const auto wire = open_wire(config_in(directory_, min_ring_bytes), gid(2));
      Path& path = wire->path_to(gid(2), gid(1));
      std::byte payload[1000];
      for (std::uint32_t i = 0;; ++i) {
        std::memset(payload, static_cast<int>(i), sizeof payload);
        while (send(*wire, path, send_packet(sizeof payload, i), piece(payload, sizeof payload)) == SendResult::full) {
        }
        words_[0] = i;
      }
    });
    std::uint32_t expected = 0;
    const auto take = [&](const InboundPacket& inbound) {
      ASSERT_EQ(inbound.packet.header.immediate, expected);
      for (std::uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(inbound.payload[i], static_cast<std::byte>(expected));
      ++expected;
      wire_->release();
    };
    while (expected < 500) take(*receive(*wire_));
    sender.kill();
    while (const InboundPacket* inbound = wire_->receive(now())) take(*inbound);
    keep_house(*wire_);
    ASSERT_EQ(slots_in_use(), 0u) << "the slot of the dead is still taken";
    ASSERT_EQ(wire_->counters().packets_refused, 0u);
  }
  Registry(directory_.path()).sweep();
  EXPECT_EQ(directory_.names().size(), 3u) << "lock, our instance and GID";
}

TEST_F(PeersTest, AReceiverThatWasKilledIsSilentAndItsSuccessorIsFoundByTheSamePath) {
  Path* path = nullptr;
  Time time = now();
  for (std::uint64_t incarnation = 1; incarnation <= 3; ++incarnation) {
    ChildProcess receiver([&] {
      const auto wire = open_wire(config_in(directory_, min_ring_bytes), gid(2));
      words_[0] = incarnation;
      return receive(*wire) != nullptr ? (words_[1] = incarnation, ::pause(), 0) : 1;
    });
    ASSERT_TRUE(eventually([&] { return words_[0] == incarnation; }));
    if (path == nullptr) path = &wire_->path_to(gid(1), gid(2));
    ASSERT_EQ(wire_->send(*path, send_packet(0), {}, Qpn{0x11}, time += std::chrono::seconds(1)), SendResult::sent);
    ASSERT_TRUE(eventually([&] { return words_[1] == incarnation; })) << "incarnation " << incarnation;
    receiver.kill();
    // However much is sent to the dead: never a hang, and never `full` for ever.
    ASSERT_TRUE(eventually([&] {
      return wire_->send(*path, send_packet(0), {}, Qpn{0x11}, time += std::chrono::milliseconds(1)) ==
                 SendResult::sent &&
             wire_->counters().packets_lost >= incarnation;
    }));
  }
}

TEST_F(PeersTest, HouseKeepingForgetsTheDead) {
  {
    ChildProcess receiver([&] {
      const auto wire = open_wire(config_in(directory_, min_ring_bytes), gid(2));
      words_[0] = 1;
      ::pause();
      return 0;
    });
    ASSERT_TRUE(eventually([&] { return words_[0] == 1; }));
    static_cast<void>(wire_->path_to(gid(1), gid(2)));
  }
  EXPECT_EQ(files_of_kind(directory_, "ring-"), 1u);
  keep_house(*wire_);
  EXPECT_EQ(files_of_kind(directory_, "ring-"), 0u);
}

TEST_F(PeersTest, ASlotWhoseClaimantDiedIsFreed) {
  ChildProcess claimant([] { return 0; });
  const pid_t pid = claimant.pid();
  claimant.wait();
  instance().slots[0].claim = SlotClaim::make(pid, SlotState::claimed);
  instance().slots_limit = 1;
  keep_house(*wire_);
  EXPECT_EQ(slots_in_use(), 0u);
}

TEST_F(PeersTest, OnePeerTooManyIsRefusedWithNumbersAndHarmsNobody) {
  const auto sender = open_wire(config_in(directory_, min_ring_bytes), gid(2));
  Path& path = sender->path_to(gid(2), gid(1));
  Instance& full = instance();
  for (std::uint32_t slot = 1; slot < max_peers; ++slot) {
    full.slots[slot].claim = SlotClaim::make(::getpid(), SlotState::accepted);
  }
  const auto refused = open_wire(config_in(directory_, min_ring_bytes), gid(3));
  try {
    static_cast<void>(refused->path_to(gid(3), gid(1)));
    FAIL() << "a peer beyond the bound was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_space);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("1024 of 1024 peers"));
  }
  EXPECT_EQ(send(*sender, path, send_packet(0, 5), piece(nullptr, 0)), SendResult::sent);
  EXPECT_EQ(receive(*wire_)->packet.header.immediate, 5u);
}

}  // namespace
}  // namespace verbatim::soft::shm
