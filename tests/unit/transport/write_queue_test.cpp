// The write queue's reader against a model, and against memory that a broken or hostile peer has written.
#include "transport/write_queue.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <vector>

#include "cluster.hpp"
#include "payload.hpp"

namespace verbatim::transport::test {
namespace {

constexpr std::uint32_t ring_lines = 64;
constexpr std::uint32_t longest_bytes = 900;  // behind a header
constexpr std::uint32_t longest = lines_of_record(sizeof(FrameHeader) + longest_bytes);

// A ring, and a writer that places records into it as a device would: byte for byte in address order.
class Ring {
 public:
  Ring() : memory_(ring_lines * line_bytes / sizeof(std::uint64_t)) {}

  [[nodiscard]] std::byte* memory() { return reinterpret_cast<std::byte*>(memory_.data()); }
  [[nodiscard]] WriteQueueReader reader() { return {memory(), ring_lines, longest}; }
  [[nodiscard]] std::uint32_t at() const { return written_ % ring_lines; }
  [[nodiscard]] std::uint32_t written() const { return written_; }
  void place(const FrameHeader& frame) { std::memcpy(memory() + at() * line_bytes, &frame, sizeof(frame)); }

  // A record whole but for its last `missing` bytes.
  void write(const FrameHeader& frame, const Bytes& body, std::uint32_t missing = 0) {
    Bytes record = record_of(frame, body);
    std::memcpy(memory() + at() * line_bytes, record.data(), record.size() - missing);
    if (missing != 0) return;
    written_ += static_cast<std::uint32_t>(record.size()) / line_bytes;
    if (at() + longest > ring_lines) written_ += ring_lines - at();
  }

 private:
  // What lies between the body and the mark is whatever was in the sender's memory.
  [[nodiscard]] static Bytes record_of(const FrameHeader& frame, const Bytes& body) {
    Bytes record(lines_of_record(static_cast<std::uint32_t>(sizeof(frame) + body.size())) * line_bytes,
                 std::byte{0xa5});
    std::memcpy(record.data(), &frame, sizeof(frame));
    std::ranges::copy(body, record.begin() + sizeof(frame));
    std::memcpy(record.data() + record.size() - sizeof(record_mark), &record_mark, sizeof(record_mark));
    return record;
  }

  std::vector<std::uint64_t> memory_;  // aligned as words are
  std::uint32_t written_ = 0;
};

// Bytes that look like marks and headers wherever a reader could look.
[[nodiscard]] Bytes deceptive(std::size_t bytes, Random& random) {
  constexpr FrameHeader header{.kind = FrameKind::eager, .length = 8};
  Bytes data(bytes);
  for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
    std::uint64_t word = record_mark;
    if (random.below(2) == 0) std::memcpy(&word, &header, sizeof(word));
    std::memcpy(data.data() + at, &word, std::min(sizeof(word), bytes - at));
  }
  return data;
}

TEST(WriteQueueReader, GivesEveryRecordOnceAndInOrderWhateverLayThereBefore) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Ring ring;
    WriteQueueReader reader = ring.reader();
    struct Sent {
      std::uint64_t tag;
      Bytes body;
    };
    std::deque<Sent> unread;
    for (std::uint64_t tag = 1; tag <= 2'000; ++tag) {
      const auto bytes = static_cast<std::uint32_t>(random.below(random.below(2) == 0 ? 40 : longest_bytes + 1));
      const std::uint32_t lines = lines_of_record(static_cast<std::uint32_t>(sizeof(FrameHeader)) + bytes);
      const auto room_for = [&] { return ring.written() - reader.consumed() + lines <= ring_lines; };
      while (!room_for() || (!unread.empty() && random.below(3) == 0)) {
        const FrameHeader* frame = reader.peek();
        ASSERT_NE(frame, nullptr);
        ASSERT_EQ(frame->tag, unread.front().tag);
        ASSERT_EQ(frame->length, unread.front().body.size());
        if (frame->length != 0) {
          ASSERT_EQ(std::memcmp(frame + 1, unread.front().body.data(), frame->length), 0);
        }
        reader.consume();
        unread.pop_front();
      }
      if (unread.empty()) {
        ASSERT_EQ(reader.peek(), nullptr) << "a frame that nobody sent";
      }
      const FrameHeader frame{.kind = FrameKind::eager, .length = bytes, .tag = tag};
      Sent sent{tag, deceptive(bytes, random)};
      // As much as has come at first: all but the mark is not enough.
      ring.write(frame, sent.body, 8 + static_cast<std::uint32_t>(random.below(lines * line_bytes - 8)));
      if (unread.empty()) {
        ASSERT_EQ(reader.peek(), nullptr) << "half a frame";
      }
      ring.write(frame, sent.body);
      unread.push_back(std::move(sent));
    }
    EXPECT_FALSE(reader.broken());
  }
}

TEST(WriteQueueReader, BreaksOnLengthsBeyondTheLongest) {
  for (const std::uint32_t length : {longest * line_bytes - 32 - 8 + 1, ring_lines * line_bytes,
                                     ring_lines * line_bytes + 1, 0x7fffffffU, UINT32_MAX - 31, UINT32_MAX}) {
    Ring ring;
    WriteQueueReader reader = ring.reader();
    ring.place({.kind = FrameKind::eager, .length = length});
    EXPECT_EQ(reader.peek(), nullptr) << length;
    EXPECT_TRUE(reader.broken()) << length;
  }
}

TEST(WriteQueueReader, GoesOnAtTheStartWhereTheLongestWouldNotFit) {
  Ring ring;
  WriteQueueReader reader = ring.reader();
  const FrameHeader shortest{.kind = FrameKind::credit};
  for (std::uint32_t line = 0; line <= ring_lines - longest; ++line) {
    EXPECT_EQ(reader.consumed(), line);
    ring.write(shortest, {});
    ASSERT_NE(reader.peek(), nullptr);
    reader.consume();
  }
  EXPECT_EQ(reader.consumed(), ring_lines);
  // What is behind the last place for a record is never looked at.
  std::memcpy(ring.memory() + (ring_lines - longest + 1) * line_bytes, &shortest, sizeof(shortest));
  EXPECT_EQ(reader.peek(), nullptr);
  ring.write(shortest, {});
  EXPECT_EQ(reinterpret_cast<const std::byte*>(reader.peek()), ring.memory());
}

TEST(WriteQueueReader, ReadsOnlyItsRingWhateverIsInIt) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    Ring ring;
    WriteQueueReader reader = ring.reader();
    for (std::uint32_t line = 0; line < ring_lines; ++line) {
      const FrameHeader frame{
          .kind = static_cast<FrameKind>(random.below(14)),
          .length = static_cast<std::uint32_t>(random.below(4) == 0 ? random.bits() : random.below(300))};
      std::memcpy(ring.memory() + line * line_bytes, &frame, sizeof(frame));
      std::memcpy(ring.memory() + (line + 1) * line_bytes - sizeof(record_mark), &record_mark, sizeof(record_mark));
    }
    std::uint32_t frames = 0;
    while (const FrameHeader* frame = reader.peek()) {
      const auto* begin = reinterpret_cast<const std::byte*>(frame);
      ASSERT_GE(begin, ring.memory());
      ASSERT_LE(begin + sizeof(FrameHeader) + frame->length, ring.memory() + ring_lines * line_bytes);
      reader.consume();
      ASSERT_LE(++frames, 2 * ring_lines) << "goes round for ever";
    }
  }
}

// Both sides send without a pause while their channel is being given its write queues.
TEST(WriteQueue, PromotionUnderTrafficKeepsTheOrder) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Cluster cluster(seed);
    Config config = Cluster::plain_config();
    config.write_queue.enabled = Switch::on;
    config.write_queue.promote_after = 1 + static_cast<std::uint32_t>(random.below(60));
    config.write_queue.bytes = 16'384;
    config.eager.max_bytes = 1024;
    config.rc.receive_depth = 8;
    config.rc.send_depth = 16;
    config.rc.repost_batch = 2;
    soft::DeviceConfig device;
    device.faults.packets = {{.fault = soft::PacketFault::delay, .rate = 0.02, .delay = std::chrono::microseconds(50)}};
    Node& a = cluster.add(config, device);
    Node& b = cluster.add(config, device);
    auto [ab, ba] = cluster.connect(a, b);
    constexpr int count = 300;
    std::vector<Bytes> sent;
    std::vector<Bytes> received(2 * count, Bytes(1500));
    std::vector<Request> requests;
    for (int i = 0; i < 2 * count; ++i) {
      sent.push_back(pattern(random.below(random.below(4) == 0 ? 1500 : 100), static_cast<std::uint64_t>(i)));
    }
    for (int i = 0; i < count; ++i) {
      for (const bool there : {true, false}) {
        const int n = there ? i : count + i;
        Channel& out = there ? *ab : *ba;
        Node& to = there ? b : a;
        requests.push_back(to.engine->receive(received[n].data(), received[n].size(), Tag{1}, exact_tag, any_source));
        requests.push_back(out.send(sent[n].data(), sent[n].size(), Tag{1}));
      }
      if (random.below(3) == 0) cluster.run_for(std::chrono::microseconds(random.below(4)));
    }
    ASSERT_TRUE(cluster.run_until([&] { return all_done(requests); }));
    EXPECT_TRUE(ab->lane().writes_to_ring());
    EXPECT_TRUE(ba->lane().writes_to_ring());
    for (int i = 0; i < 2 * count; ++i) {
      received[i].resize(sent[i].size());
      ASSERT_EQ(received[i], sent[i]) << "message " << i;
    }
  }
}

// Wherever in the ring it is full: the room for credits is there too, or both would wait for each other's.
TEST(WriteQueue, FilledAtBothEndsAtOnceGoesOn) {
  Config config = Cluster::plain_config();
  config.write_queue.enabled = Switch::on;
  config.write_queue.promote_after = 1;
  config.write_queue.bytes = 4096;
  config.eager.max_bytes = 384;
  Cluster cluster;
  Node& a = cluster.add(config);
  Node& b = cluster.add(config);
  auto [ab, ba] = cluster.connect(a, b);
  for (std::uint64_t round = 0; round < 200; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    // More than the ring takes, and another number each time, so that the next round begins elsewhere.
    const std::uint64_t count = 3 * config.write_queue.bytes / line_bytes + round % 67;
    std::vector<Request> requests;
    for (std::uint64_t i = 0; i < count; ++i) {
      for (Channel* channel : {ab, ba}) requests.push_back(channel->send(&round, sizeof(round), Tag{1}));
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      for (Node* node : {&a, &b}) requests.push_back(node->engine->receive(nullptr, 0, Tag{1}, exact_tag, any_source));
    }
    ASSERT_TRUE(cluster.run_until([&] { return all_done(requests); }));
  }
  EXPECT_TRUE(ab->lane().writes_to_ring() && ba->lane().writes_to_ring());
}

TEST(WriteQueue, NoMoreArePolledThanTheConfigurationSays) {
  Config config = Cluster::plain_config();
  Cluster cluster;
  Node& sender = cluster.add(config);
  config.write_queue.enabled = Switch::on;
  config.write_queue.promote_after = 1;
  config.write_queue.max_per_worker = 2;
  Node& receiver = cluster.add(config);
  int with_ring = 0;
  for (int i = 0; i < 4; ++i) {
    Channel& channel = *cluster.connect(sender, receiver).first;
    for (int message = 0; message < 3; ++message) {
      Request receive = receiver.engine->receive(nullptr, 0, Tag{1}, exact_tag, any_source);
      Request send = channel.send(nullptr, 0, Tag{1});
      ASSERT_TRUE(cluster.run_until([&] { return receive.done() && send.done(); }));
      cluster.run_for(std::chrono::microseconds(50));
    }
    with_ring += channel.lane().writes_to_ring() ? 1 : 0;
  }
  EXPECT_EQ(with_ring, 2);
}

}  // namespace
}  // namespace verbatim::transport::test
