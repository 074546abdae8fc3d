// How channels come and go: peers that differ, dials that cross, limits, and closes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "cluster.hpp"
#include "payload.hpp"
#include "transport/remote_region.hpp"

namespace verbatim::transport::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A message each way arrives whole.
void exchange(Cluster& cluster, Node& a, Channel& ab, Node& b, Channel& ba, std::size_t bytes) {
  const Bytes there = pattern(bytes, 1);
  const Bytes back = pattern(bytes, 2);
  Bytes at_a(bytes);
  Bytes at_b(bytes);
  std::vector<Request> requests;
  requests.push_back(b.engine->receive(at_b.data(), bytes, Tag{1}, exact_tag, ba.id()));
  requests.push_back(a.engine->receive(at_a.data(), bytes, Tag{1}, exact_tag, ab.id()));
  requests.push_back(ab.send(there.data(), bytes, Tag{1}));
  requests.push_back(ba.send(back.data(), bytes, Tag{1}));
  ASSERT_TRUE(cluster.run_until([&] { return all_done(requests); })) << bytes << " bytes";
  for (const Request& request : requests) ASSERT_TRUE(request.ok()) << bytes << " bytes";
  ASSERT_TRUE(at_b == there) << bytes << " bytes";
  ASSERT_TRUE(at_a == back) << bytes << " bytes";
}

[[nodiscard]] ibv_qp_attr attributes_of(Node& node, Channel& channel) {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  EXPECT_EQ(node.context->query_qp(channel.lane().queue().queue_pair().handle(), attributes,
                                   IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                       IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MTU | IBV_QP_MAX_QP_RD_ATOMIC |
                                       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_DEST_QPN | IBV_QP_PKEY_INDEX,
                                   init),
            0);
  return attributes;
}

TEST(Connect, EveryKnobOfAPathReachesTheQueuePair) {
  Config config = Cluster::plain_config();
  config.device.service_level = 3;
  config.device.traffic_class = 106;
  config.device.flow_label = 0xabcde;
  config.device.hop_limit = 7;
  config.rc.ack_timeout = milliseconds(33);  // code 13
  config.rc.retry_count = 5;
  config.rc.rnr_timer = microseconds(80);  // code 6
  config.rc.rnr_retry_count = 2;
  Cluster cluster;
  Node& a = cluster.add(config);
  config.device.service_level = 9;  // the dialler's counts, at both ends
  config.device.traffic_class = 1;
  Node& b = cluster.add(config);
  auto [ab, ba] = cluster.connect(a, b);
  for (const ibv_qp_attr& is : {attributes_of(a, *ab), attributes_of(b, *ba)}) {
    EXPECT_EQ(is.ah_attr.sl, 3);
    EXPECT_EQ(is.ah_attr.grh.traffic_class, 106);
    EXPECT_EQ(is.ah_attr.grh.flow_label, 0xabcdeU);
    EXPECT_EQ(is.ah_attr.grh.hop_limit, 7);
    EXPECT_EQ(is.timeout, 13);
    EXPECT_EQ(is.retry_cnt, 5);
    EXPECT_EQ(is.min_rnr_timer, 6);
    EXPECT_EQ(is.rnr_retry, 2);
  }
}

// -- dials that cross -----------------------------------------------------------------------------------------------

TEST(Connect, DialsThatCrossMakeOneChannelAndNothingThatIsSentMeanwhileIsLost) {
  constexpr int count = 40;
  std::vector<std::uint64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Cluster cluster(seed);
    Node& a = cluster.add();
    Node& b = cluster.add();
    Channel& ab = a.engine->connect(b.links->advertised());
    std::vector<Request> requests;
    std::vector<std::vector<std::uint64_t>> words(2, std::vector<std::uint64_t>(count));
    const auto send = [&](Channel& channel, int from, int to) {
      for (int i = from; i < to; ++i) requests.push_back(channel.send(&numbers[i], sizeof(numbers[i]), Tag{1}));
    };
    send(ab, 0, count / 2);
    // The second dial starts at any moment of the first, and control frames are as slow as they like.
    const Time dial_at = cluster.now() + microseconds(random.below(400));
    cluster.run_until([&] {
      cluster.exchange().latency = microseconds(1 + random.below(200));
      return cluster.now() >= dial_at;
    });
    Channel& ba = b.engine->connect(a.links->advertised());
    send(ba, 0, count / 2);
    for (Node* node : {&a, &b}) {
      for (std::uint64_t& word : words[node == &a ? 0 : 1]) {
        requests.push_back(node->engine->receive(&word, sizeof(word), Tag{1}, exact_tag, any_source));
      }
    }
    ASSERT_TRUE(cluster.run_until([&] {
      cluster.exchange().latency = microseconds(1 + random.below(200));
      return ab.state() == ChannelState::open && ba.state() == ChannelState::open;
    })) << ab.reason_text()
        << ba.reason_text();
    send(ab, count / 2, count);
    send(ba, count / 2, count);
    ASSERT_TRUE(cluster.run_until([&] { return all_done(requests); }));
    for (const Request& request : requests) ASSERT_TRUE(request.ok()) << to_string(request.completion().status);
    for (const std::vector<std::uint64_t>& received : words) {
      ASSERT_EQ(received, numbers);
    }
    Channel* const also_b = b.engine->accept();
    Channel* const also_a = a.engine->accept();
    if (also_a == nullptr && also_b == nullptr) {  // one channel for the two dials
      EXPECT_EQ(attributes_of(a, ab).dest_qp_num, ba.lane().queue().number().value);
      EXPECT_EQ(attributes_of(b, ba).dest_qp_num, ab.lane().queue().number().value);
    } else {  // the first dial was through before the second began
      EXPECT_TRUE(also_a != nullptr && also_b != nullptr);
    }
  }
}

// What a peer sends as soon as its end is open comes before this end knows that the channel is the one it dials.
TEST(Connect, WhatComesBeforeADialLearnsThatItIsServedBelongsToThatDial) {
  for (int us = 0; us < 400; us += 7) {
    SCOPED_TRACE("second dial after " + std::to_string(us) + " us");
    Cluster cluster;
    Node& a = cluster.add();
    Node& b = cluster.add();
    Channel& ab = a.engine->connect(b.links->advertised());
    const Bytes long_one = pattern(50'000, 3);
    Bytes at_b(long_one.size());
    Request receive = b.engine->receive(at_b.data(), at_b.size(), Tag{2}, exact_tag, any_source);
    const std::uint64_t word = 7;
    std::vector<Request> sends;
    sends.push_back(ab.send(&word, sizeof(word), Tag{1}));
    sends.push_back(ab.send(long_one.data(), long_one.size(), Tag{2}));
    cluster.run_for(microseconds(us));
    // Its own dial hangs: b hears nothing of a for a while, but what b is asked, it answers.
    cluster.exchange().latency = milliseconds(5);
    Channel& ba = b.engine->connect(a.links->advertised());
    cluster.exchange().latency = microseconds(50);
    ASSERT_TRUE(cluster.run_until([&] { return receive.done() && all_done(sends); })) << "something hangs";
    EXPECT_TRUE(receive.ok()) << to_string(receive.completion().status);
    ASSERT_TRUE(at_b == long_one);
    ASSERT_TRUE(cluster.run_until([&] { return ba.state() == ChannelState::open; })) << ba.reason_text();
    std::uint64_t got = 0;
    Channel* const accepted = b.engine->accept();
    const ChannelId source = accepted == nullptr ? ba.id() : accepted->id();
    EXPECT_EQ(receive.completion().source, source);
    Request short_one = b.engine->receive(&got, sizeof(got), Tag{1}, exact_tag, source);
    ASSERT_TRUE(cluster.run_until([&] { return short_one.done(); })) << "the message is another channel's";
    EXPECT_EQ(got, 7U);
    Bytes at_a(long_one.size());
    Request back = accepted == nullptr ? ba.send(long_one.data(), long_one.size(), Tag{3})
                                       : accepted->send(long_one.data(), long_one.size(), Tag{3});
    Request answer = a.engine->receive(at_a.data(), at_a.size(), Tag{3}, exact_tag, ab.id());
    ASSERT_TRUE(cluster.run_until([&] { return back.done() && answer.done(); })) << "something hangs";
    EXPECT_TRUE(at_a == long_one);
  }
}

// -- peers that differ ----------------------------------------------------------------------------------------------

TEST(Connect, PeersWithDifferentMtusBothUseTheSmaller) {
  for (const bool small_dials : {false, true}) {
    Cluster cluster;
    soft::DeviceConfig small;
    small.ports[0].active_mtu = IBV_MTU_1024;
    Node& a = cluster.add(Cluster::plain_config(), small_dials ? small : soft::DeviceConfig{});
    Node& b = cluster.add(Cluster::plain_config(), small_dials ? soft::DeviceConfig{} : small);
    auto [ab, ba] = cluster.connect(a, b);
    EXPECT_EQ(attributes_of(a, *ab).path_mtu, IBV_MTU_1024);
    EXPECT_EQ(attributes_of(b, *ba).path_mtu, IBV_MTU_1024);
    Bytes memory((1U << 20) + 1);
    const mem::RegisteredRegion region = b.engine->register_memory(memory.data(), memory.size());
    const RemoteRegion remote =
        RemoteRegionAccess::make(reinterpret_cast<std::uintptr_t>(memory.data()), memory.size(), region.rkey().value);
    for (const std::size_t bytes : {0, 1, 1023, 1024, 1025, 4096, 4097, 1 << 20}) {
      exchange(cluster, a, *ab, b, *ba, bytes);
      const Bytes source = pattern(bytes, 5);
      Bytes target(bytes);
      Request put = ab->put(source.data(), bytes, remote, 1, std::nullopt);
      Request get = ab->get(target.data(), bytes, remote, 1);
      ASSERT_TRUE(cluster.run_until([&] { return put.done() && get.done(); }));
      EXPECT_TRUE(put.ok() && get.ok());
      EXPECT_TRUE(target == source) << bytes;
    }
  }
}

TEST(Connect, AConfiguredMtuCountsToo) {
  Cluster cluster;
  Config config = Cluster::plain_config();
  config.device.mtu_bytes = 512;
  Node& a = cluster.add(config);
  Node& b = cluster.add();
  auto [ab, ba] = cluster.connect(a, b);
  EXPECT_EQ(attributes_of(a, *ab).path_mtu, IBV_MTU_512);
  EXPECT_EQ(attributes_of(b, *ba).path_mtu, IBV_MTU_512);
  exchange(cluster, a, *ab, b, *ba, 100'000);
}

TEST(Connect, ReadsOnTheWayAreNoMoreThanTheOtherEndAnswers) {
  Cluster cluster;
  soft::DeviceConfig few;
  few.limits.max_rd_atomic = few.limits.max_dest_rd_atomic = 8;
  Node& a = cluster.add();
  Node& b = cluster.add(Cluster::plain_config(), few);
  auto [ab, ba] = cluster.connect(a, b);
  EXPECT_EQ(attributes_of(a, *ab).max_rd_atomic, 8);
  EXPECT_EQ(attributes_of(b, *ba).max_rd_atomic, 8);
  EXPECT_GE(attributes_of(b, *ba).max_dest_rd_atomic, 8);
  const Bytes source = pattern(64 * 1000, 9);
  const mem::RegisteredRegion region = b.engine->register_memory(const_cast<std::byte*>(source.data()), source.size());
  const RemoteRegion remote =
      RemoteRegionAccess::make(reinterpret_cast<std::uintptr_t>(source.data()), source.size(), region.rkey().value);
  Bytes target(source.size());
  std::vector<Request> gets;
  for (std::size_t i = 0; i < 64; ++i) gets.push_back(ab->get(target.data() + 1000 * i, 1000, remote, 1000 * i));
  ASSERT_TRUE(cluster.run_until([&] { return all_done(gets); }));
  for (const Request& get : gets) EXPECT_TRUE(get.ok());
  EXPECT_TRUE(target == source);
}

TEST(Connect, PeersWithDifferentEagerSizesAndDepthsKeepToEachOthers) {
  Cluster cluster;
  Config small = Cluster::plain_config();
  small.eager.max_bytes = 64;
  small.rc.receive_depth = 4;
  small.rc.send_depth = 8;
  small.rc.control_slots = 8;
  small.rc.repost_batch = 1;
  Config large = Cluster::plain_config();
  large.eager.max_bytes = 65'536;
  large.rc.receive_depth = 256;
  Node& a = cluster.add(small);
  Node& b = cluster.add(large);
  auto [ab, ba] = cluster.connect(a, b);
  for (const std::size_t bytes : {0, 63, 64, 65, 8192, 65'536, 65'537, 300'000}) {
    for (int i = 0; i < 20; ++i) exchange(cluster, a, *ab, b, *ba, bytes);
  }
  EXPECT_EQ(a.counter("rnr_nak_sent") + b.counter("rnr_nak_sent"), 0U);
}

TEST(Connect, PeersMeetByTheValueOfAPkeyNotByItsIndex) {
  Cluster cluster;
  Config config = Cluster::plain_config();
  config.device.pkey = 0x8123;
  soft::DeviceConfig first;
  first.ports[0].pkeys = {0xffff, 0x8001, 0x8123};
  soft::DeviceConfig second;
  second.ports[0].pkeys = {0xffff, 0x8123};
  Node& a = cluster.add(config, first);
  Node& b = cluster.add(config, second);
  auto [ab, ba] = cluster.connect(a, b);
  EXPECT_EQ(attributes_of(a, *ab).pkey_index, 2);
  EXPECT_EQ(attributes_of(b, *ba).pkey_index, 1);
  exchange(cluster, a, *ab, b, *ba, 100'000);
}

// -- limits and strangers -------------------------------------------------------------------------------------------

TEST(Connect, PeersBeyondTheDevicesQueuePairsAreRefusedAndTheOthersGoOn) {
  Cluster cluster;
  soft::DeviceConfig few;
  few.limits.max_qp = 8;
  Node& hub = cluster.add(Cluster::plain_config(), few);
  std::vector<Node*> nodes;
  std::vector<Channel*> channels;
  for (int i = 0; i < 12; ++i) {
    nodes.push_back(&cluster.add());
    channels.push_back(&nodes.back()->engine->connect(hub.links->advertised()));
  }
  ASSERT_TRUE(cluster.run_until([&] {
    return std::ranges::none_of(channels,
                                [](const Channel* channel) { return channel->state() == ChannelState::connecting; });
  }));
  std::vector<Channel*> accepted;
  while (Channel* const channel = hub.engine->accept()) accepted.push_back(channel);
  EXPECT_EQ(accepted.size(), 8U);
  std::size_t open = 0;
  for (std::size_t i = 0; i < channels.size(); ++i) {
    if (channels[i]->state() == ChannelState::open) {
      exchange(cluster, *nodes[i], *channels[i], hub, *accepted[open++], 20'000);
      continue;
    }
    EXPECT_EQ(channels[i]->reason(), Status::no_resources);
    EXPECT_THAT(channels[i]->reason_text(), testing::HasSubstr("8 of 8")) << "used and limit";
  }
  EXPECT_EQ(open, 8U);
  // One that goes makes room for another.
  const auto leaves =
      std::ranges::find_if(channels, [](const Channel* channel) { return channel->state() == ChannelState::open; });
  Request close = (*leaves)->close();
  ASSERT_TRUE(cluster.run_until([&] { return close.done(); }));
  cluster.run_for(milliseconds(10));
  const auto stays_out =
      std::ranges::find_if(channels, [](const Channel* channel) { return channel->reason() == Status::no_resources; });
  Node& next = *nodes[static_cast<std::size_t>(stays_out - channels.begin())];
  auto [there, back] = cluster.connect(next, hub);
  exchange(cluster, next, *there, hub, *back, 20'000);
}

TEST(Connect, ToNobodyEndsWithAReason) {
  Cluster cluster;
  Config config = Cluster::plain_config();
  config.bootstrap.connect_timeout = seconds(2);
  Node& a = cluster.add(config);
  const Time start = cluster.now();
  Channel& nobody = a.engine->connect("node77:1");
  const std::uint64_t word = 1;
  Request send = nobody.send(&word, sizeof(word), Tag{1});
  Request receive = a.engine->receive(nullptr, 0, Tag{1}, exact_tag, nobody.id());
  ASSERT_TRUE(cluster.run_until([&] { return nobody.state() == ChannelState::closed; }));
  EXPECT_LE(cluster.now() - start, seconds(3));
  EXPECT_EQ(nobody.reason(), Status::not_connected);
  EXPECT_THAT(nobody.reason_text(), testing::HasSubstr("node77:1"));
  EXPECT_EQ(send.completion().status, nobody.reason());
  EXPECT_EQ(send.completion().outcome, Outcome::not_delivered);
  EXPECT_EQ(receive.completion().status, nobody.reason());
}

// -- the end --------------------------------------------------------------------------------------------------------

TEST(Close, DeliversWhatWasAcceptedThoughTheSenderIsGoneWhenItIsReceived) {
  for (const bool write_queue : {false, true}) {
    Cluster cluster;
    Config config = Cluster::plain_config();
    config.write_queue.enabled = write_queue ? Switch::on : Switch::off;
    config.write_queue.promote_after = 1;
    Node& a = cluster.add(config);
    Node& b = cluster.add(config);
    auto [ab, ba] = cluster.connect(a, b);
    exchange(cluster, a, *ab, b, *ba, 8);
    constexpr std::uint64_t count = 500;  // more than there are credits
    Bytes longest = pattern(config.eager.max_bytes, 4);
    {
      std::vector<std::uint64_t> words(count);
      std::iota(words.begin(), words.end(), 0);
      std::vector<Request> sends;
      for (const std::uint64_t& word : words) sends.push_back(ab->send(&word, sizeof(word), Tag{1}));
      sends.push_back(ab->send(longest.data(), longest.size(), Tag{2}));
      Request close = ab->close();
      Request late = ab->send(&count, sizeof(count), Tag{1});
      EXPECT_EQ(late.completion().status, Status::not_connected);
      ASSERT_TRUE(cluster.run_until([&] { return close.done(); }));
      EXPECT_TRUE(close.ok());
      for (const Request& send : sends) EXPECT_EQ(send.completion().outcome, Outcome::accepted);
    }
    Request again = ab->close();
    EXPECT_TRUE(again.ok()) << "closed is closed";
    a.engine.reset();
    a.links->vanish();
    ASSERT_TRUE(cluster.run_until([&] { return ba->state() == ChannelState::closed; }));
    EXPECT_EQ(ba->reason(), Status::peer_gone);
    for (std::uint64_t i = 0; i < count; ++i) {
      std::uint64_t word = 0;
      Request receive = b.engine->receive(&word, sizeof(word), Tag{1}, exact_tag, ba->id());
      ASSERT_TRUE(receive.ok()) << i;
      ASSERT_EQ(word, i);
    }
    Bytes received(longest.size());
    Request receive = b.engine->receive(received.data(), received.size(), Tag{2}, exact_tag, ba->id());
    EXPECT_TRUE(receive.ok());
    EXPECT_EQ(received, longest);
  }
}

TEST(Close, WaitsForLongMessagesAndPutsAndEndsThePeersReceives) {
  Cluster cluster;
  Node& a = cluster.add();
  Node& b = cluster.add();
  auto [ab, ba] = cluster.connect(a, b);
  const Bytes sent = pattern(1'000'000, 1);
  Bytes received(sent.size());
  Request send = ab->send(sent.data(), sent.size(), Tag{1});
  Request close = ab->close();
  Request never_comes = b.engine->receive(nullptr, 0, Tag{2}, exact_tag, ba->id());
  cluster.run_for(milliseconds(50));
  EXPECT_FALSE(close.done()) << "nobody has received the message";
  EXPECT_EQ(ab->state(), ChannelState::closing);
  Request receive = b.engine->receive(received.data(), received.size(), Tag{1}, exact_tag, ba->id());
  ASSERT_TRUE(cluster.run_until([&] { return close.done() && never_comes.done(); }));
  EXPECT_TRUE(send.ok());
  EXPECT_TRUE(receive.ok());
  EXPECT_TRUE(received == sent);
  EXPECT_EQ(never_comes.completion().status, Status::peer_gone);
}

TEST(Close, OfAChannelThatIsStillConnectingCancelsIt) {
  Cluster cluster;
  Node& a = cluster.add();
  Node& b = cluster.add();
  Channel& ab = a.engine->connect(b.links->advertised());
  cluster.run_for(microseconds(60));
  ASSERT_EQ(ab.state(), ChannelState::connecting);
  Request close = ab.close();
  EXPECT_TRUE(cluster.run_until([&] { return close.done(); }));
  EXPECT_TRUE(close.ok());
  EXPECT_EQ(ab.state(), ChannelState::closed);
  Request late = ab.send(nullptr, 0, Tag{1});
  EXPECT_EQ(late.completion().status, Status::not_connected);
  EXPECT_TRUE(cluster.run_until([&] { return a.engine->closed() && b.engine->closed(); }));
}

TEST(Close, BehindMessagesThatWaitForTheChannelToOpenIsDoneWhenTheyHaveArrived) {
  Cluster cluster;
  Node& a = cluster.add();
  Node& b = cluster.add();
  Channel& ab = a.engine->connect(b.links->advertised());
  const std::uint64_t word = 5;
  Request send = ab.send(&word, sizeof(word), Tag{1});
  Request close = ab.close();
  Request late = ab.send(&word, sizeof(word), Tag{1});
  EXPECT_TRUE(late.done()) << "nothing can be sent after a close";
  EXPECT_EQ(late.completion().status, Status::not_connected);
  ASSERT_TRUE(cluster.run_until([&] { return close.done(); }));
  EXPECT_TRUE(close.ok());
  EXPECT_EQ(send.completion().outcome, Outcome::accepted);
  std::uint64_t got = 0;
  Request receive = b.engine->receive(&got, sizeof(got), Tag{1}, exact_tag, any_source);
  EXPECT_TRUE(receive.done());
  EXPECT_EQ(got, word);
  EXPECT_FALSE(b.engine->probe(Tag{}, any_tag, any_source).has_value()) << "what was sent after the close came too";
}

TEST(Close, ByBothAtOnceEndsWell) {
  Cluster cluster;
  Node& a = cluster.add();
  Node& b = cluster.add();
  auto [ab, ba] = cluster.connect(a, b);
  const std::uint64_t word = 1;
  (void)ab->send(&word, sizeof(word), Tag{1});
  (void)ba->send(&word, sizeof(word), Tag{1});
  Request one = ab->close();
  Request other = ba->close();
  ASSERT_TRUE(cluster.run_until([&] { return one.done() && other.done(); }));
  EXPECT_TRUE(cluster.run_until([&] { return a.engine->closed() && b.engine->closed(); }));
  EXPECT_TRUE(a.engine->probe(Tag{1}, exact_tag, any_source).has_value());
  EXPECT_TRUE(b.engine->probe(Tag{1}, exact_tag, any_source).has_value());
}

TEST(Flush, IsDoneWhenThePeersLibraryHasEverything) {
  Cluster cluster;
  Node& a = cluster.add();
  Node& b = cluster.add();
  auto [ab, ba] = cluster.connect(a, b);
  cluster.asleep = {&b};
  const std::uint64_t word = 1;
  (void)ab->send(&word, sizeof(word), Tag{1});
  Request first = ab->flush();
  Request second = ab->flush();
  cluster.run_for(milliseconds(10));
  EXPECT_FALSE(first.done()) << "the peer's library sleeps";
  cluster.asleep.clear();
  ASSERT_TRUE(cluster.run_until([&] { return first.done() && second.done(); }));
  EXPECT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(b.engine->probe(Tag{1}, exact_tag, ba->id()).has_value());
  Request of_nothing = ab->flush();
  EXPECT_TRUE(of_nothing.done());
}

}  // namespace
}  // namespace verbatim::transport::test
