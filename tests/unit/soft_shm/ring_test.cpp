#include "device/soft/shm/ring.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "base/random.hpp"
#include "unit/soft_shm/support.hpp"

namespace verbatim::soft::shm {
namespace {

class Ring : public ::testing::Test {
 protected:
  void make(std::uint32_t bytes) {
    const Directory files(directory_.path());
    mapping_ = Mapping::ring(files.create("ring", ring_control_bytes + bytes), ring_control_bytes, bytes);
    control_ = new (mapping_.data()) RingControl;
    slots_ = bytes / slot_bytes;
    writer_ = RingWriter(control_, mapping_.data() + ring_control_bytes, slots_);
    reader_ = RingReader(control_, mapping_.data() + ring_control_bytes, slots_);
  }
  // A packet of so many slots, filled with a pattern of its number.
  bool write(std::uint32_t slots, std::uint8_t number) {
    std::byte* to = writer_.reserve(slots);
    if (to == nullptr) return false;
    std::memset(to, number, slots * slot_bytes - ready_word_bytes);
    writer_.publish(slots, PayloadForm::in_ring);
    return true;
  }
  // The slots of the next packet, all of whose bytes must be `number`; 0 if there is none.
  std::uint32_t read(std::uint8_t number) {
    const std::uint64_t word = reader_.peek();
    if (word == 0) return 0;
    EXPECT_TRUE(reader_.sane(word));
    const std::uint32_t slots = ReadyWord::slots(word);
    for (std::size_t i = 0; i < slots * slot_bytes - ready_word_bytes; ++i) {
      if (reader_.bytes()[i] != std::byte{number}) ADD_FAILURE() << "byte " << i << " of packet " << int{number};
    }
    reader_.release(slots);
    return slots;
  }

  TemporaryDirectory directory_;
  Mapping mapping_;
  RingControl* control_ = nullptr;
  std::uint32_t slots_ = 0;
  RingWriter writer_;
  RingReader reader_;
};

TEST_F(Ring, IsEmptyAtFirst) {
  make(min_ring_bytes);
  EXPECT_EQ(reader_.peek(), 0u);
}

TEST_F(Ring, AReservedPacketIsNotSeen) {
  make(min_ring_bytes);
  std::memset(writer_.reserve(3), 0xff, 3 * slot_bytes - ready_word_bytes);
  EXPECT_EQ(reader_.peek(), 0u);
  writer_.publish(3, PayloadForm::by_reference);
  EXPECT_EQ(ReadyWord::form(reader_.peek()), PayloadForm::by_reference);
  EXPECT_EQ(ReadyWord::slots(reader_.peek()), 3u);
}

TEST_F(Ring, EverySizeCrossesTheEndUnbroken) {
  make(min_ring_bytes);
  std::uint8_t number = 0;
  for (std::uint32_t slots = 1; slots <= slots_ / 2; ++slots) {
    for (int round = 0; round < 7; ++round) {
      ASSERT_TRUE(write(slots, ++number)) << slots;
      ASSERT_EQ(read(number), slots);
      ASSERT_EQ(reader_.peek(), 0u) << "old payload is taken for a packet after " << slots << " slots";
    }
  }
}

TEST_F(Ring, FullIsSaidAndPasses) {
  make(min_ring_bytes);
  std::uint8_t written = 0;
  while (write(1, static_cast<std::uint8_t>(written + 1))) ++written;
  EXPECT_GE(written, slots_ - 16) << "room is wasted";
  EXPECT_LT(written, slots_);
  EXPECT_EQ(writer_.reserve(1), nullptr);
  for (std::uint8_t number = 1; number <= written; ++number) ASSERT_EQ(read(number), 1u);
  EXPECT_EQ(reader_.peek(), 0u);
  EXPECT_TRUE(write(1, 1));
}

// The reader tells its position a quarter of the ring at a time; the largest packet must find room all the same.
TEST_F(Ring, TheLargestPacketFitsWheneverTheRingIsEmpty) {
  make(min_ring_bytes);
  for (std::uint32_t before = 0; before < slots_; ++before) {
    for (std::uint32_t i = 0; i < before; ++i) {
      ASSERT_TRUE(write(1, 1));
      ASSERT_EQ(read(1), 1u);
    }
    ASSERT_TRUE(write(slots_ / 2, 2)) << "after " << before;
    ASSERT_EQ(read(2), slots_ / 2);
  }
}

TEST_F(Ring, ASlowReaderLosesNothing) {
  make(min_ring_bytes);
  constexpr int packets = 50'000;
  std::thread sender([&] {
    Random random(1);
    for (int i = 0; i < packets; ++i) {
      const auto slots = static_cast<std::uint32_t>(1 + random.below(random.chance(0.1) ? slots_ / 2 : 3));
      while (!write(slots, static_cast<std::uint8_t>(i))) ::sched_yield();
    }
  });
  Random pace(2);
  for (int i = 0; i < packets;) {
    if (pace.chance(0.001)) ::sched_yield();
    if (read(static_cast<std::uint8_t>(i)) != 0) ++i;
  }
  sender.join();
  EXPECT_EQ(reader_.peek(), 0u);
}

TEST_F(Ring, APositionThatMakesNoSenseBreaksIt) {
  make(min_ring_bytes);
  while (write(1, 1)) {
  }
  control_->head = std::uint64_t{1} << 40;
  EXPECT_EQ(writer_.reserve(1), nullptr);
  EXPECT_TRUE(writer_.broken());
}

TEST(ReadyWordTest, OnlyWhatTheWriterCouldHavePutThereIsSane) {
  EXPECT_TRUE(ReadyWord::sane(ReadyWord::make(7, 3, PayloadForm::in_ring), 7, 64));
  EXPECT_FALSE(ReadyWord::sane(ReadyWord::make(8, 3, PayloadForm::in_ring), 7, 64)) << "another position";
  EXPECT_FALSE(ReadyWord::sane(ReadyWord::make(7, 0, PayloadForm::in_ring), 7, 64)) << "no slots";
  EXPECT_FALSE(ReadyWord::sane(ReadyWord::make(7, 33, PayloadForm::in_ring), 7, 64)) << "more than half of the ring";
  EXPECT_FALSE(ReadyWord::sane(ReadyWord::make(7, 3, PayloadForm{3}), 7, 64)) << "unknown form";
}

TEST(Layout, HotPartsOfARingShareNoLine) {
  EXPECT_EQ(offsetof(RingControl, head) % cache_line, 0u);
  EXPECT_EQ(offsetof(Instance, doorbell_summary) % cache_line, 0u);
  EXPECT_EQ(offsetof(Instance, sleeping) % cache_line, 0u);
  EXPECT_EQ(slots_for(sizeof(PacketHeader) + 24), 1u) << "a send of 24 bytes takes one line";
  EXPECT_EQ(slots_for(sizeof(PacketHeader) + 25), 2u);
}

}  // namespace
}  // namespace verbatim::soft::shm
