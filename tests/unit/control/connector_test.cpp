// Workers that connect to each other over a simulated network: one connection of two dials that cross, whatever is
// late or lost, and an end with a reason of everything that can't be connected.
#include "transport/control/connector.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "unit/control/offers.hpp"
#include "unit/control/sim_links.hpp"

namespace verbatim::transport::control {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr Duration connect_timeout = 10s;
constexpr Duration handshake_timeout = 5s;

// A worker with as much of an owner as handshakes need: queue pairs are numbers.
class Node {
 public:
  Node(SimNetwork& network, std::uint64_t incarnation, const std::string& address)
      : network_(network),
        links_(network, address),
        connector_({.self = {incarnation, 1},
                    .shared = shared_settings,
                    .connect_timeout = connect_timeout,
                    .handshake_timeout = handshake_timeout},
                   links_, Random(network.random.bits())),
        next_queue_pair_(static_cast<std::uint32_t>(incarnation) * 1000) {}

  struct Channel {
    std::uint32_t own = 0;   // queue pair
    std::uint32_t peer = 0;  // … of the other end, once connected
    bool open = false;
    bool incoming = false;
    Session session;
    std::optional<step::Closed> closed = {};
  };

  ConnectionId connect(const std::string& address) {
    const ConnectionId id = connector_.connect(address, network_.clock.now());
    channels[id];
    dialled.insert(id);
    return id;
  }
  void close(ConnectionId id) { connector_.close(id); }
  void say(ConnectionId id, Epoch epoch, const decltype(Message::content)& content) {
    connector_.send(id, epoch, content);
  }
  void progress() {
    while (connector_.has_work(network_.clock.now())) {
      for (const Step& one : connector_.progress(network_.clock.now())) {
        std::visit([this](const auto& what) { carry_out(what); }, one);
      }
    }
  }
  [[nodiscard]] Time next_deadline() const { return connector_.next_deadline(); }

  [[nodiscard]] std::vector<Channel> open_channels() const {
    std::vector<Channel> open;
    for (const auto& [id, channel] : channels) {
      if (channel.open && !channel.closed) open.push_back(channel);
    }
    return open;
  }
  [[nodiscard]] SimLinks& links() { return links_; }

  std::map<ConnectionId, Channel> channels;
  std::set<ConnectionId> dialled;
  std::vector<step::Refused> refused;
  std::vector<step::Recover> heard;  // of recoveries
  std::uint32_t queue_pairs_left = 1000;
  int leased = 0;
  std::uint16_t pkey = 0xffff;

 private:
  void carry_out(const step::Prepare& prepare) {
    if (queue_pairs_left == 0) {
      connector_.give_up(prepare.connection, RefusalReason::no_resources, "4 of 4 queue pairs are in use");
      channels.erase(prepare.connection);
      return;
    }
    --queue_pairs_left;
    ++leased;
    Channel& channel = channels[prepare.connection];
    if (channel.own != 0) {
      ASSERT_NE(channel.peer, 0U) << "asked for another, but has one that is good";
      --leased;
      channel.peer = 0;
    }
    channel.own = ++next_queue_pair_;
    Offer offer = offer_of(channel.own);
    offer.pkey = pkey;
    connector_.queue_pair_prepared(prepare.connection, offer);
  }
  void carry_out(const step::Connect& connect) {
    Channel& channel = channels.at(connect.connection);
    ASSERT_EQ(channel.peer, 0U) << "connected twice";
    ASSERT_NE(channel.own, 0U);
    channel.peer = connect.agreement.peer.queue_pair.value;
    connector_.queue_pair_connected(connect.connection);
  }
  void carry_out(const step::TakeOver& take_over) {
    Channel& into = channels.at(take_over.into);
    if (into.own != 0) --leased;
    ASSERT_FALSE(channels.at(take_over.from).open);
    into = channels.at(take_over.from);
    channels.erase(take_over.from);
  }
  void carry_out(const step::Recover& step) { heard.push_back(step); }
  void carry_out(const step::Opened& opened) {
    Channel& channel = channels.at(opened.connection);
    ASSERT_FALSE(channel.open);
    channel.open = true;
    channel.incoming = opened.incoming;
    channel.session = opened.session;
    ASSERT_EQ(opened.agreement.peer.queue_pair.value, channel.peer);
  }
  void carry_out(const step::Closed& closed) {
    Channel& channel = channels.at(closed.connection);
    ASSERT_EQ(channel.open, closed.was_open);
    if (channel.own != 0) --leased;
    channel.closed = closed;
  }
  void carry_out(const step::Refused& one) { refused.push_back(one); }

  SimNetwork& network_;
  SimLinks links_;
  Connector connector_;
  std::uint32_t next_queue_pair_;
};

class ConnectorTest : public ::testing::Test {
 protected:
  explicit ConnectorTest(std::uint64_t seed = 1) : network(seed) {}

  // Until nothing is under way and no deadline is left, at most to `end`.
  void run(std::vector<Node*> nodes, Duration at_most = 60s) {
    const Time end = network.clock.now() + at_most;
    while (true) {
      for (Node* node : nodes) node->progress();
      Time next = network.next();
      for (Node* node : nodes) next = std::min(next, node->next_deadline());
      if (next == never || next > end) return;
      if (next == network.next()) {
        network.step();
      } else {
        network.clock.advance_to(next);
      }
    }
  }

  SimNetwork network;
};

// The two ends of one channel point at each other, and each channel of one is a channel of the other.
void expect_paired(const Node& a, const Node& b, std::size_t count, const std::string& context) {
  const auto at_a = a.open_channels();
  const auto at_b = b.open_channels();
  ASSERT_EQ(at_a.size(), count) << context;
  ASSERT_EQ(at_b.size(), count) << context;
  for (const Node::Channel& one : at_a) {
    const auto other =
        std::find_if(at_b.begin(), at_b.end(), [&](const Node::Channel& c) { return c.own == one.peer; });
    ASSERT_NE(other, at_b.end()) << context << ": a queue pair that nobody has";
    ASSERT_EQ(other->peer, one.own) << context << ": crossed pairs";
    ASSERT_EQ(other->session, one.session) << context;
  }
}

TEST_F(ConnectorTest, ADialGivesOneChannelAtEachEnd) {
  Node a(network, 1, "a:1");
  Node b(network, 2, "b:1");
  const ConnectionId id = a.connect("b:1");
  run({&a, &b});
  expect_paired(a, b, 1, "");
  EXPECT_FALSE(a.channels.at(id).incoming);
  EXPECT_TRUE(b.open_channels().front().incoming);
  EXPECT_EQ(a.next_deadline(), never);
}

TEST_F(ConnectorTest, EachDialIsAChannelOfItsOwn) {
  Node a(network, 1, "a:1");
  Node b(network, 2, "b:1");
  for (int i = 0; i < 5; ++i) a.connect("b:1");
  run({&a, &b});
  expect_paired(a, b, 5, "");
  b.connect("a:1");
  run({&a, &b});
  expect_paired(a, b, 6, "a dial when all others are open crosses with none of them");
}

TEST_F(ConnectorTest, AWorkerCanDialItself) {
  Node a(network, 1, "a:1");
  a.connect("a:1");
  run({&a});
  expect_paired(a, a, 2, "");
}

TEST_F(ConnectorTest, WhatIsSaidOfARecoveryReachesTheOtherEndInItsEpoch) {
  Node a(network, 1, "a:1");
  Node b(network, 2, "b:1");
  const ConnectionId id = a.connect("b:1");
  run({&a, &b});
  a.say(id, Epoch{2}, Rehandshake{offer_of(50), 9});
  a.say(id, Epoch{2}, Reconnected{});
  run({&a, &b});
  ASSERT_EQ(b.heard.size(), 2U);
  const Node::Channel at_b = b.open_channels().front();
  for (const step::Recover& heard : b.heard) {
    EXPECT_EQ(heard.message.epoch, Epoch{2});
    EXPECT_EQ(heard.message.session, at_b.session);
  }
  EXPECT_EQ(std::get<Rehandshake>(b.heard[0].message.content).next_expected, 9U);
}

TEST_F(ConnectorTest, ByeClosesBothEndsAndFreesEverything) {
  Node a(network, 1, "a:1");
  Node b(network, 2, "b:1");
  const ConnectionId id = a.connect("b:1");
  run({&a, &b});
  a.close(id);
  run({&a, &b});
  ASSERT_EQ(b.channels.size(), 1U);
  const Node::Channel& at_b = b.channels.begin()->second;
  ASSERT_TRUE(at_b.closed.has_value());
  EXPECT_EQ(at_b.closed->status, Status::ok);
  EXPECT_EQ(a.links().links(), 0U);
  EXPECT_EQ(b.links().links(), 0U);
}

TEST_F(ConnectorTest, NobodyThereEndsAtTheDeadlineWithTheAddress) {
  Node a(network, 1, "a:1");
  const Time start = network.clock.now();
  const ConnectionId id = a.connect("nobody:1");
  run({&a});
  ASSERT_TRUE(a.channels.at(id).closed.has_value());
  EXPECT_EQ(a.channels.at(id).closed->status, Status::timed_out);
  EXPECT_THAT(a.channels.at(id).closed->sentence, HasSubstr("nobody:1"));
  EXPECT_LE(network.clock.now() - start, connect_timeout);
}

TEST_F(ConnectorTest, APeerWithoutQueuePairsRefusesTheNewAndKeepsTheOld) {
  Node a(network, 1, "a:1");
  Node b(network, 2, "b:1");
  b.queue_pairs_left = 4;
  std::vector<ConnectionId> dials;
  for (int i = 0; i < 6; ++i) {
    dials.push_back(a.connect("b:1"));
    run({&a, &b});
  }
  expect_paired(a, b, 4, "");
  for (std::size_t late : {4U, 5U}) {
    ASSERT_TRUE(a.channels.at(dials[late]).closed.has_value());
    EXPECT_EQ(a.channels.at(dials[late]).closed->status, Status::no_resources);
    EXPECT_THAT(a.channels.at(dials[late]).closed->sentence, HasSubstr("4 of 4 queue pairs"));
  }
  EXPECT_EQ(a.leased, 4) << "what was prepared in vain is given back";
}

TEST_F(ConnectorTest, PeersThatDoNotMatchFailAtBothEnds) {
  Node a(network, 1, "a:1");
  Node b(network, 2, "b:1");
  a.pkey = 0x8001;
  b.pkey = 0x8002;
  const ConnectionId id = a.connect("b:1");
  run({&a, &b});
  ASSERT_TRUE(a.channels.at(id).closed.has_value());
  EXPECT_THAT(a.channels.at(id).closed->sentence, HasSubstr("0x8002"));
  ASSERT_EQ(b.channels.size(), 1U);
  EXPECT_THAT(b.channels.begin()->second.closed->sentence, HasSubstr("0x8001"));
}

TEST_F(ConnectorTest, ALinkThatBreaksBeforeAnythingIsAgreedIsDialledAgain) {
  int left = 3;
  network.breaks = [&](const std::string& from, std::span<const std::byte>) { return from == "b:1" && left-- > 0; };
  Node a(network, 1, "a:1");
  Node b(network, 2, "b:1");
  a.connect("b:1");
  run({&a, &b});
  expect_paired(a, b, 1, "");
  EXPECT_EQ(left, -3) << "hello, accept, ready_ack, after three hellos were lost";
  EXPECT_EQ(a.leased, 1);
}

// ---- dials that cross
// ------------------------------------------------------------------------------------------------

struct Variant {
  const char* name;
  void (*set_up)(SimNetwork& network, std::uint64_t seed);
};

void plain(SimNetwork&, std::uint64_t) {}
// Each message takes anything from nothing to longer than the handshake may.
void very_late(SimNetwork& network, std::uint64_t) {
  network.delay = [&network] {
    return network.random.chance(0.1) ? Duration(network.random.below(3'000'000'000)) : Duration(1000);
  };
}
// Links break now and then, before the first agreement or later.
void lossy(SimNetwork& network, std::uint64_t) {
  network.breaks = [&network](const std::string&, std::span<const std::byte>) { return network.random.chance(0.05); };
}
// Everything arrives at the same moment: only the order of events decides.
void at_once(SimNetwork& network, std::uint64_t) {
  network.delay = [] { return Duration(1000); };
}

class CrossingDials : public ::testing::TestWithParam<Variant> {};

// Both dial each other within a moment, 1000 rounds. Of a channel that both ends call open there is exactly one, and
// its two queue pairs are each other's.
TEST_P(CrossingDials, GiveOneChannel) {
  int opened = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    struct Run : ConnectorTest {
      explicit Run(std::uint64_t s) : ConnectorTest(s) {}
      void TestBody() override {}
      using ConnectorTest::network;
      using ConnectorTest::run;
    } round(seed);
    GetParam().set_up(round.network, seed);
    const bool a_is_lower = seed % 2 == 0;
    Node a(round.network, a_is_lower ? 1 : 2, "a:1");
    Node b(round.network, a_is_lower ? 2 : 1, "b:1");
    a.connect("b:1");
    b.connect("a:1");
    round.run({&a, &b});
    const std::string context = std::string(GetParam().name) + ", seed " + std::to_string(seed);
    const std::size_t count = a.open_channels().size();
    ASSERT_LE(count, 1U) << context;
    ASSERT_NO_FATAL_FAILURE(expect_paired(a, b, count, context));
    opened += static_cast<int>(count);
    for (const Node* node : {&a, &b}) ASSERT_EQ(node->leased, static_cast<int>(count)) << context;
    // Nothing left behind: no link but the channel's, no deadline.
    ASSERT_EQ(a.links().links(), count) << context;
    ASSERT_EQ(a.next_deadline(), never) << context;
    ASSERT_EQ(b.next_deadline(), never) << context;
  }
  RecordProperty("opened", opened);
  // A link that breaks when the queue pairs are being connected ends the channel, at both ends; that is all that may.
  if (std::string_view(GetParam().name) == "lossy") {
    EXPECT_GT(opened, 500);
  } else {
    EXPECT_EQ(opened, 1000);
  }
}

INSTANTIATE_TEST_SUITE_P(Connector, CrossingDials,
                         ::testing::Values(Variant{"plain", plain}, Variant{"very_late", very_late},
                                           Variant{"lossy", lossy}, Variant{"at_once", at_once}),
                         [](const auto& chosen) { return std::string(chosen.param.name); });

// The reply that tells the loser is lost with its link: it hears of the winner from the winner's own request.
TEST_F(ConnectorTest, AReplyThatIsLostDoesNotHurtTheWinner) {
  int lost = 0;
  network.delay = [] { return Duration(1000); };
  network.breaks = [&](const std::string&, std::span<const std::byte> frame) {
    const auto message = decode(frame);
    const auto* said = std::get_if<Message>(&message);
    const bool tells_the_loser = said != nullptr && std::holds_alternative<Refusal>(said->content);
    lost += tells_the_loser ? 1 : 0;
    return tells_the_loser;
  };
  Node a(network, 1, "a:1");
  Node b(network, 2, "b:1");
  a.connect("b:1");
  b.connect("a:1");
  run({&a, &b});
  expect_paired(a, b, 1, "");
  EXPECT_EQ(lost, 1);
}

TEST_F(ConnectorTest, ManyDialsThatCrossAllFindAnEnd) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    network.random = Random(seed);
    Node a(network, 1, "a:1");
    Node b(network, 2, "b:1");
    const std::size_t from_a = 1 + network.random.below(4);
    const std::size_t from_b = 1 + network.random.below(4);
    for (std::size_t i = 0; i < from_a; ++i) a.connect("b:1");
    for (std::size_t i = 0; i < from_b; ++i) b.connect("a:1");
    run({&a, &b});
    const std::size_t count = a.open_channels().size();
    for (const Node* node : {&a, &b}) {
      for (const auto& [id, channel] : node->channels) {
        // What came in for a dial that lost meanwhile goes again, unseen.
        if (channel.closed && !node->dialled.contains(id) && !channel.closed->was_open) continue;
        ASSERT_FALSE(channel.closed.has_value()) << "seed " << seed << ": " << channel.closed->sentence;
      }
    }
    ASSERT_GE(count, std::max(from_a, from_b)) << "seed " << seed;
    ASSERT_LE(count, from_a + from_b) << "seed " << seed;
    ASSERT_NO_FATAL_FAILURE(expect_paired(a, b, count, "seed " + std::to_string(seed)));
    network.listening.clear();
  }
}

}  // namespace
}  // namespace verbatim::transport::control
