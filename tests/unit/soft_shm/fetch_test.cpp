// Payload that stays where it is until the receiver takes it, and where that is not possible.
#include "device/soft/shm/fetch.hpp"

#include <gtest/gtest.h>

#include "unit/soft_shm/support.hpp"

namespace verbatim::soft::shm {
namespace {

constexpr std::uint32_t lkey = 0x105;
constexpr std::uint32_t bytes = 40'000;

enum class SourceMemory { ordinary, mappable };

class FetchTest : public ::testing::TestWithParam<SourceMemory> {
 protected:
  void open(const DeviceConfig& config) {
    source_ = open_wire(config, gid(1));
    target_ = open_wire(config, gid(2));
    path_ = &source_->path_to(gid(1), gid(2));
    static_cast<void>(target_->receive(now()));  // accepts the ring, finds out what it can read
    if (GetParam() == SourceMemory::mappable) {
      data_ = static_cast<std::byte*>(source_->allocate(bytes).address);
    } else {
      ordinary_.resize(bytes);
      data_ = ordinary_.data();
    }
    for (std::size_t i = 0; i < bytes; ++i) data_[i] = static_cast<std::byte>(i * 13);
    source_->region_registered(region(lkey, data_, bytes));
    source_->queue_pair_changed(queue_pair(0x11, 0x22));
  }
  void SetUp() override { open(config_in(directory_, 256 * 1024)); }
  const InboundPacket* transfer(const Packet& packet, std::span<const Piece> pieces) {
    EXPECT_EQ(source_->send(*path_, packet, pieces, Qpn{0x11}, now()), SendResult::sent);
    return receive(*target_);
  }
  const InboundPacket* transfer() {
    const Piece whole = piece(data_, bytes, lkey);
    return transfer(send_packet(bytes), std::span(&whole, 1));
  }
  bool fetch(const InboundPacket& inbound, std::uint32_t offset = 0, std::uint32_t length = bytes) {
    got_.assign(length, std::byte{0});
    const Piece to = piece(got_.data(), length);
    return target_->fetch(inbound, offset, std::span(&to, 1)) && std::memcmp(got_.data(), data_ + offset, length) == 0;
  }

  TemporaryDirectory directory_;
  std::unique_ptr<ShmWire> source_;
  std::unique_ptr<ShmWire> target_;
  Path* path_ = nullptr;
  std::vector<std::byte> ordinary_;
  std::byte* data_ = nullptr;
  std::vector<std::byte> got_;
};
INSTANTIATE_TEST_SUITE_P(Memory, FetchTest, ::testing::Values(SourceMemory::ordinary, SourceMemory::mappable),
                         [](const auto& param_info) {
                           return param_info.param == SourceMemory::ordinary ? "Ordinary" : "Mappable";
                         });

TEST_P(FetchTest, ALargePayloadStaysUntilItIsFetched) {
  const InboundPacket* inbound = transfer();
  ASSERT_NE(inbound, nullptr);
  ASSERT_EQ(inbound->payload, nullptr) << "it was copied into the ring";
  data_[5] = std::byte{0x77};  // harsh but legal: what is sent is what is there at delivery
  EXPECT_TRUE(fetch(*inbound));
  EXPECT_EQ(got_[5], std::byte{0x77});
  EXPECT_TRUE(fetch(*inbound, 12'345, 20'000));
  EXPECT_TRUE(fetch(*inbound, bytes - 1, 1));
}

TEST_P(FetchTest, PiecesAreOneRangeOfBytes) {
  const std::vector<Piece> from{piece(data_, 1, lkey), piece(data_ + 1, 0, lkey), piece(data_ + 1, 30'000, lkey),
                                piece(data_ + 30'001, bytes - 30'001, lkey)};
  const InboundPacket* inbound = transfer(send_packet(bytes), from);
  ASSERT_EQ(inbound->payload, nullptr);
  EXPECT_TRUE(fetch(*inbound, 0, bytes));
  EXPECT_TRUE(fetch(*inbound, 29'999, 5));
  got_.assign(bytes, std::byte{0});
  const std::vector<Piece> to{piece(got_.data(), 7), piece(got_.data() + 7, 0), piece(got_.data() + 7, bytes - 7)};
  EXPECT_TRUE(target_->fetch(*inbound, 0, to));
  EXPECT_EQ(std::memcmp(got_.data(), data_, bytes), 0);
  EXPECT_FALSE(fetch(*inbound, 1, bytes)) << "beyond the payload";
}

TEST_P(FetchTest, WithdrawnRequestsAreNotDelivered) {
  const InboundPacket* inbound = transfer();
  source_->queue_pair_changed(queue_pair(0x11, 0x22, 2));
  EXPECT_FALSE(fetch(*inbound));
  target_->release();
  inbound = transfer();
  EXPECT_TRUE(fetch(*inbound)) << "a request of the new generation";
  source_->queue_pair_gone(Qpn{0x11});
  EXPECT_FALSE(fetch(*inbound));
  EXPECT_EQ(target_->counters().fetches_failed, 2u);
}

TEST_P(FetchTest, MemoryThatIsRegisteredNoMoreIsNotRead) {
  const InboundPacket* inbound = transfer();
  source_->region_gone(lkey);
  EXPECT_FALSE(fetch(*inbound));
  source_->region_registered(region(lkey + 1, data_, bytes));
  EXPECT_FALSE(fetch(*inbound)) << "the key's index is used again by another region";
}

TEST_P(FetchTest, WhatMayChangeOrVanishIsCopiedAtOnce) {
  const auto copied = [&](const Packet& packet, Piece from) {
    const InboundPacket* inbound = transfer(packet, std::span(&from, 1));
    const bool in_ring = inbound != nullptr && inbound->payload != nullptr && fetch(*inbound);
    target_->release();
    return in_ring;
  };
  EXPECT_TRUE(copied(send_packet(bytes), piece(data_, bytes))) << "memory of no region";
  Packet unreliable = send_packet(bytes);
  unreliable.header.source = static_cast<std::uint32_t>(Service::uc) << 24 | 0x11;
  EXPECT_TRUE(copied(unreliable, piece(data_, bytes, lkey))) << "complete once it is sent";
  EXPECT_TRUE(copied(send_packet(bytes), piece(data_, bytes, 0xffff01))) << "a key that is not published";
  source_->queue_pair_gone(Qpn{0x11});
  EXPECT_TRUE(copied(send_packet(bytes), piece(data_, bytes, lkey))) << "a queue pair that is not published";
}

TEST_P(FetchTest, WithoutReferencesEverythingGoesThroughTheRing) {
  source_.reset();
  target_.reset();
  DeviceConfig config = config_in(directory_, 256 * 1024);
  config.payload_by_reference = false;
  open(config);
  for (int round = 0; round < 20; ++round) {
    const InboundPacket* inbound = transfer();
    ASSERT_NE(inbound, nullptr);
    ASSERT_NE(inbound->payload, nullptr);
    ASSERT_TRUE(fetch(*inbound));
    target_->release();
  }
}

TEST_P(FetchTest, AnotherProcessFetches) {
  SharedWords words;
  ChildProcess other([&] {
    const auto wire = open_wire(config_in(directory_, 256 * 1024), gid(3));
    words[0] = 1;
    if (!eventually([&] {
          static_cast<void>(wire->receive(now()));
          return words[0] == 2;
        })) {
      return 1;
    }
    const InboundPacket* inbound = receive(*wire);
    if (inbound == nullptr) return 2;
    if (inbound->payload != nullptr) return 3;
    std::vector<std::byte> got(bytes);
    const Piece to = piece(got.data(), bytes);
    if (!wire->fetch(*inbound, 0, std::span(&to, 1))) return 4;
    for (std::size_t i = 0; i < bytes; ++i) {
      if (got[i] != static_cast<std::byte>(i * 13)) return 5;
    }
    return 0;
  });
  ASSERT_TRUE(eventually([&] { return words[0] == 1; }));
  Path& path = source_->path_to(gid(1), gid(3));
  const Registry registry(directory_.path());
  const Mapping theirs = *registry.find(gid(3));
  const auto& claim = reinterpret_cast<const Instance*>(theirs.data())->slots[0].claim;
  ASSERT_TRUE(eventually([&] { return SlotClaim::state(claim) == SlotState::accepted; }));
  words[0] = 2;
  const Piece whole = piece(data_, bytes, lkey);
  EXPECT_EQ(source_->send(path, send_packet(bytes), std::span(&whole, 1), Qpn{0x11}, now()), SendResult::sent);
  EXPECT_EQ(other.wait(), 0);
}

TEST(Fetch, FromAProcessThatWasKilledItIsLost) {
  const TemporaryDirectory directory;
  const auto target = open_wire(config_in(directory, 256 * 1024), gid(2));
  SharedWords words;
  ChildProcess source([&] {
    const auto wire = open_wire(config_in(directory, 256 * 1024), gid(1));
    Path& path = wire->path_to(gid(1), gid(2));
    words[0] = 1;
    if (!eventually([&] { return words[0] == 2; })) return 1;
    std::vector<std::byte> data(bytes);
    wire->region_registered(region(lkey, data.data(), bytes));
    wire->queue_pair_changed(queue_pair(0x11, 0x22));
    send(*wire, path, send_packet(bytes), piece(data.data(), bytes, lkey));
    words[0] = 3;
    ::pause();
    return 0;
  });
  ASSERT_TRUE(eventually([&] { return words[0] == 1; }));
  static_cast<void>(target->receive(now()));
  words[0] = 2;
  ASSERT_TRUE(eventually([&] { return words[0] == 3; }));
  const InboundPacket* inbound = receive(*target);
  ASSERT_NE(inbound, nullptr);
  ASSERT_EQ(inbound->payload, nullptr);
  source.kill();
  std::vector<std::byte> got(bytes);
  const Piece to = piece(got.data(), bytes);
  EXPECT_FALSE(target->fetch(*inbound, 0, std::span(&to, 1)));
  target->release();
  keep_house(*target);
  EXPECT_EQ(target->receive(now()), nullptr);
}

}  // namespace
}  // namespace verbatim::soft::shm
