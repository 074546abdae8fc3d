// Messages of every size and protocol, word for word, between two simulated workers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "cluster.hpp"
#include "payload.hpp"

namespace verbatim::transport::test {
namespace {

// How messages travel: through receives alone, or through write queues as soon as there are some.
enum class Carrier { receives, write_queue };

class Messages : public testing::TestWithParam<Carrier> {
 protected:
  Messages() {
    Config config = Cluster::plain_config();
    if (GetParam() == Carrier::write_queue) {
      config.write_queue.enabled = Switch::on;
      config.write_queue.promote_after = 1;
    }
    a = &cluster.add(config);
    b = &cluster.add(config);
    std::tie(ab, ba) = cluster.connect(*a, *b);
    if (GetParam() == Carrier::write_queue) {
      // One message each way earns a write queue.
      exchange_one(*ab, *b, 1);
      exchange_one(*ba, *a, 1);
      cluster.run_for(std::chrono::milliseconds(1));
      EXPECT_TRUE(ab->lane().writes_to_ring());
      EXPECT_TRUE(ba->lane().writes_to_ring());
    }
  }
  ~Messages() override { EXPECT_EQ(a->counter("rnr_nak_sent") + b->counter("rnr_nak_sent"), 0U); }

  void exchange_one(Channel& from, Node& to, std::size_t bytes) {
    const Bytes sent = pattern(bytes, bytes + 1);
    Bytes received(bytes + 1, std::byte{0xee});
    Request receive = to.engine->receive(received.data(), bytes, Tag{7}, exact_tag, any_source);
    Request send = from.send(sent.data(), bytes, Tag{7});
    ASSERT_TRUE(cluster.run_until([&] { return send.done() && receive.done(); })) << bytes << " bytes";
    EXPECT_TRUE(receive.ok());
    EXPECT_EQ(receive.completion().bytes, bytes);
    EXPECT_EQ(received.back(), std::byte{0xee});
    received.pop_back();
    EXPECT_EQ(received, sent) << bytes << " bytes";
  }

  Cluster cluster;
  Node* a = nullptr;
  Node* b = nullptr;
  Channel* ab = nullptr;
  Channel* ba = nullptr;
};

TEST_P(Messages, OfEverySizeArriveWhole) {
  for (const std::size_t bytes : {0, 1, 8, 23, 24, 25, 63, 64, 65, 1000, 4096, 8191, 8192, 8193, 100'000, 3'000'000}) {
    exchange_one(*ab, *b, bytes);
    exchange_one(*ba, *a, bytes);
  }
}

// More than there is room for at once: each waits for its turn, and still travels once, in one post.
TEST_P(Messages, ThatWaitForRoomStayEager) {
  constexpr std::uint64_t count = 300;
  const Bytes sent = pattern(4000, 1);
  Bytes received(4000);
  std::vector<Request> receives;
  std::vector<Request> sends;
  for (std::uint64_t i = 0; i < count; ++i) {
    receives.push_back(b->engine->receive(received.data(), received.size(), Tag{4}, exact_tag, any_source));
  }
  const std::uint64_t posts = ab->counters().posts;
  for (std::uint64_t i = 0; i < count; ++i) sends.push_back(ab->send(sent.data(), sent.size(), Tag{4}));
  const auto done = [](const Request& request) { return request.done(); };
  ASSERT_TRUE(
      cluster.run_until([&] { return std::ranges::all_of(sends, done) && std::ranges::all_of(receives, done); }));
  for (const Request& send : sends) EXPECT_EQ(send.completion().outcome, Outcome::accepted);
  // One each, and one where the ring begins anew.
  EXPECT_LE(ab->counters().posts - posts, count + count / 16);
  EXPECT_EQ(received, sent);
}

// A size that went below zero somewhere is a long message, and no short one.
TEST_P(Messages, OfImpossibleSizesAreOfferedAndNotCopied) {
  const Bytes some(8);
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX / 2 + 1}) {
    Request send = ab->send(some.data(), bytes, Tag{9});
    cluster.run_for(std::chrono::milliseconds(1));
    EXPECT_FALSE(send.done());
    EXPECT_EQ(b->engine->probe(Tag{9}, exact_tag, any_source)->bytes, bytes);
    std::byte none{};
    Request receive = b->engine->receive(&none, 0, Tag{9}, exact_tag, any_source);
    ASSERT_TRUE(cluster.run_until([&] { return receive.done(); }));
    EXPECT_EQ(receive.completion().status, Status::truncated);
  }
  exchange_one(*ab, *b, 8);
}

TEST_P(Messages, ThatComeBeforeTheirReceiveWaitForIt) {
  for (const std::size_t bytes : {0, 8, 8192, 8193, 500'000}) {
    const Bytes sent = pattern(bytes, bytes);
    Request send = ab->send(sent.data(), bytes, Tag{1});
    ASSERT_TRUE(cluster.run_until([&] { return b->engine->probe(Tag{1}, exact_tag, any_source).has_value(); }));
    EXPECT_EQ(b->engine->probe(Tag{1}, exact_tag, any_source)->bytes, bytes);
    Bytes received(bytes);
    Request receive = b->engine->receive(received.data(), bytes, Tag{1}, exact_tag, ba->id());
    ASSERT_TRUE(cluster.run_until([&] { return receive.done() && send.done(); }));
    EXPECT_EQ(received, sent);
  }
  EXPECT_EQ(b->engine->counters().unexpected_bytes, 0U);
}

TEST_P(Messages, WithOneTagAreMatchedInTheOrderSentWhateverTheirSizes) {
  constexpr int count = 200;
  std::vector<Bytes> sent;
  std::vector<Bytes> received(count, Bytes(70'000));
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) {
    sent.push_back(pattern(i % 3 == 0 ? 70'000 : i % 3 == 1 ? 64 : 0, static_cast<std::uint64_t>(i)));
    requests.push_back(ab->send(sent.back().data(), sent.back().size(), Tag{5}));
    if (i % 7 == 0) cluster.run_for(std::chrono::microseconds(3));
  }
  for (int i = 0; i < count; ++i) {
    requests.push_back(b->engine->receive(received[i].data(), received[i].size(), Tag{5}, exact_tag, any_source));
  }
  ASSERT_TRUE(cluster.run_until([&] { return all_done(requests); }));
  for (int i = 0; i < count; ++i) {
    ASSERT_EQ(requests[count + i].completion().bytes, sent[i].size()) << "message " << i;
    received[i].resize(sent[i].size());
    ASSERT_EQ(received[i], sent[i]) << "message " << i;
  }
}

TEST_P(Messages, LongerThanTheReceiveAreCutAndSaidToBe) {
  for (const std::size_t bytes : {100, 8192, 50'000}) {
    for (const std::size_t capacity : {std::size_t{0}, std::size_t{1}, bytes - 1}) {
      for (const bool posted_before : {true, false}) {
        const Bytes sent = pattern(bytes, capacity);
        Bytes received(capacity + 16, std::byte{0xee});
        Request receive;
        if (posted_before) receive = b->engine->receive(received.data(), capacity, Tag{3}, exact_tag, any_source);
        Request send = ab->send(sent.data(), bytes, Tag{3});
        if (!posted_before) {
          cluster.run_for(std::chrono::milliseconds(1));
          receive = b->engine->receive(received.data(), capacity, Tag{3}, exact_tag, any_source);
        }
        ASSERT_TRUE(cluster.run_until([&] { return receive.done() && send.done(); }));
        EXPECT_EQ(receive.completion().status, Status::truncated);
        EXPECT_EQ(receive.completion().bytes, bytes);
        EXPECT_TRUE(std::equal(sent.begin(), sent.begin() + static_cast<std::ptrdiff_t>(capacity), received.begin()));
        EXPECT_TRUE(std::all_of(received.begin() + static_cast<std::ptrdiff_t>(capacity), received.end(),
                                [](std::byte byte) { return byte == std::byte{0xee}; }));
        exchange_one(*ab, *b, 100);  // the next one is whole
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Carriers, Messages, testing::Values(Carrier::receives, Carrier::write_queue),
                         [](const auto& shape) {
                           return shape.param == Carrier::receives ? std::string("Receives")
                                                                   : std::string("WriteQueue");
                         });

}  // namespace
}  // namespace verbatim::transport::test
