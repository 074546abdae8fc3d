// Which receive gets which message: the matcher against a list that is walked from its start, and receives of an
// engine.
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <memory>
#include <vector>

#include "cluster.hpp"
#include "payload.hpp"
#include "transport/matcher.hpp"

namespace verbatim::transport::test {
namespace {

using std::chrono::milliseconds;

// -- the matcher alone ----------------------------------------------------------------------------------------------

// What the rules say, word for word.
class Model {
 public:
  static bool fits(const RequestState& receive, ChannelId source, Tag tag) {
    return (receive.completion.source == any_source || receive.completion.source == source) &&
           (receive.tag.value & receive.mask.bits) == (tag.value & receive.mask.bits);
  }
  RequestState* match(ChannelId source, Tag tag) {
    const auto found = std::ranges::find_if(posted, [&](RequestState* one) { return fits(*one, source, tag); });
    if (found == posted.end()) return nullptr;
    RequestState* const receive = *found;
    posted.erase(found);
    return receive;
  }
  [[nodiscard]] Unexpected* find(const RequestState& receive) const {
    const auto found =
        std::ranges::find_if(messages, [&](Unexpected* one) { return fits(receive, one->source, one->tag); });
    return found == messages.end() ? nullptr : *found;
  }

  std::list<RequestState*> posted;  // in the order posted
  std::list<Unexpected*> messages;  // in the order they came
};

TEST(Matcher, DoesWhatAListWalkedFromItsStartWould) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const auto matcher = std::make_unique<Matcher>();
    Model model;
    std::list<RequestState> receives;
    std::list<Unexpected> arrived;
    // Few tags and sources, so that they meet; and some that fall into one bucket with others.
    const auto any_tag_value = [&] {
      return Tag{random.below(3) == 0 ? random.below(4) << 60 | random.below(2) : random.below(6)};
    };
    const auto a_source = [&] { return ChannelId{1 + static_cast<std::uint32_t>(random.below(3))}; };
    for (int step = 0; step < 4'000; ++step) {
      const std::uint64_t kind = random.below(10);
      if (kind < 4) {  // a receive
        RequestState& receive = receives.emplace_back();
        receive.tag = any_tag_value();
        const std::uint64_t masks[] = {~std::uint64_t{0}, ~std::uint64_t{0}, 0, 1, std::uint64_t{3} << 60, 6};
        receive.mask = {masks[random.below(std::size(masks))]};
        receive.completion.source = random.below(2) == 0 ? any_source : a_source();
        Unexpected* const message = matcher->find(receive.completion.source, receive.tag, receive.mask);
        ASSERT_EQ(message, model.find(receive)) << "step " << step;
        if (message == nullptr) {
          matcher->post(receive);
          model.posted.push_back(&receive);
        } else if (random.below(4) != 0) {  // else it was a probe
          matcher->remove(*message);
          model.messages.remove(message);
        }
      } else if (kind < 8) {  // a message
        const ChannelId source = a_source();
        const Tag tag = any_tag_value();
        RequestState* const receive = matcher->match(source, tag);
        ASSERT_EQ(receive, model.match(source, tag)) << "step " << step;
        if (receive == nullptr) {
          Unexpected& message = arrived.emplace_back();
          message.source = source;
          message.tag = tag;
          matcher->add(message);
          model.messages.push_back(&message);
        }
      } else if (kind == 8 && !model.posted.empty()) {  // a receive is taken back
        const auto one =
            std::next(model.posted.begin(), static_cast<std::ptrdiff_t>(random.below(model.posted.size())));
        matcher->withdraw(**one);
        model.posted.erase(one);
      } else if (random.below(20) == 0) {  // a channel closes
        const ChannelId closed = a_source();
        matcher->for_each_posted([&](RequestState& receive) {
          if (receive.completion.source == closed) matcher->withdraw(receive);
        });
        std::erase_if(model.posted, [&](RequestState* receive) { return receive->completion.source == closed; });
        matcher->for_each_unexpected([&](Unexpected& message) {
          if (message.source == closed) matcher->remove(message);
        });
        std::erase_if(model.messages, [&](Unexpected* message) { return message->source == closed; });
      }
      ASSERT_EQ(matcher->posted(), model.posted.size());
      ASSERT_EQ(matcher->unexpected(), model.messages.size());
    }
  }
}

// -- receives of an engine ------------------------------------------------------------------------------------------

class Matching : public testing::Test {
 protected:
  Matching() {
    std::tie(ac, ca) = cluster.connect(a, c);
    std::tie(bc, cb) = cluster.connect(b, c);
  }
  // A receive by c of one word.
  struct Expecting {
    std::uint64_t word = 0;
    Request request;
  };
  std::unique_ptr<Expecting> expect(Tag tag, TagMask mask, ChannelId source) {
    auto expecting = std::make_unique<Expecting>();
    expecting->request = c.engine->receive(&expecting->word, sizeof(expecting->word), tag, mask, source);
    return expecting;
  }
  // Comes before anything else is sent.
  void send(Channel& from, Tag tag, std::uint64_t word) {
    Request request = from.send(&word, sizeof(word), tag);
    EXPECT_TRUE(request.ok());
    cluster.run_for(milliseconds(1));
  }

  Cluster cluster;
  Node& a = cluster.add();
  Node& b = cluster.add();
  Node& c = cluster.add();
  Channel* ac = nullptr;
  Channel* ca = nullptr;
  Channel* bc = nullptr;
  Channel* cb = nullptr;
};

TEST_F(Matching, TheReceivePostedFirstGetsTheMessageBeItExactMaskedOrFromAnySource) {
  const auto masked = expect(Tag{0x70}, TagMask{0xf0}, any_source);
  const auto exact = expect(Tag{0x71}, exact_tag, ca->id());
  const auto from_any = expect(Tag{0x71}, exact_tag, any_source);
  const auto any = expect(Tag{}, any_tag, cb->id());
  send(*ac, Tag{0x71}, 1);
  send(*ac, Tag{0x71}, 2);
  send(*bc, Tag{0x71}, 3);
  send(*bc, Tag{0x71}, 4);
  EXPECT_EQ(masked->word, 1U);
  EXPECT_EQ(exact->word, 2U);
  EXPECT_EQ(from_any->word, 3U);
  EXPECT_EQ(any->word, 4U);
  EXPECT_EQ(masked->request.completion().tag, Tag{0x71});
  EXPECT_EQ(masked->request.completion().source, ca->id());
  EXPECT_EQ(from_any->request.completion().source, cb->id());
}

TEST_F(Matching, ReceivesTakeTheMessageThatCameFirst) {
  send(*ac, Tag{1}, 10);
  send(*bc, Tag{1}, 11);
  send(*ac, Tag{2}, 12);
  send(*ac, Tag{1}, 13);
  const std::optional<Envelope> probed = c.engine->probe(Tag{}, any_tag, cb->id());
  ASSERT_TRUE(probed.has_value());
  EXPECT_EQ(probed->tag, Tag{1});
  EXPECT_EQ(probed->bytes, sizeof(std::uint64_t));
  EXPECT_FALSE(c.engine->probe(Tag{2}, exact_tag, cb->id()).has_value());
  EXPECT_EQ(expect(Tag{2}, TagMask{2}, any_source)->word, 12U);
  EXPECT_EQ(expect(Tag{1}, exact_tag, any_source)->word, 10U);
  EXPECT_EQ(expect(Tag{}, any_tag, ca->id())->word, 13U);
  EXPECT_EQ(expect(Tag{}, any_tag, any_source)->word, 11U);
  EXPECT_FALSE(c.engine->probe(Tag{}, any_tag, any_source).has_value());
}

TEST_F(Matching, ACancelledReceiveGetsNothingAndLetsTheNextHaveIt) {
  const auto first = expect(Tag{1}, exact_tag, any_source);
  const auto second = expect(Tag{1}, exact_tag, any_source);
  auto& state = static_cast<RequestState&>(*first->request.record());
  EXPECT_TRUE(c.engine->cancel(state));
  EXPECT_EQ(first->request.completion().outcome, Outcome::not_delivered);
  EXPECT_EQ(first->request.completion().status, Status::canceled);
  EXPECT_FALSE(c.engine->cancel(state)) << "it has ended";
  send(*ac, Tag{1}, 5);
  EXPECT_EQ(first->word, 0U);
  EXPECT_EQ(second->word, 5U);
  EXPECT_FALSE(c.engine->cancel(static_cast<RequestState&>(*second->request.record())));
  EXPECT_TRUE(second->request.ok());
}

TEST_F(Matching, AReceiveThatHasMatchedALongMessageCanNotBeCancelled) {
  const Bytes sent = pattern(100'000, 1);
  Bytes received(sent.size());
  Request receive = c.engine->receive(received.data(), received.size(), Tag{1}, exact_tag, any_source);
  Request send = ac->send(sent.data(), sent.size(), Tag{1});
  auto& state = static_cast<RequestState&>(*receive.record());
  ASSERT_TRUE(cluster.run_until([&] { return state.stage != RequestStage::posted; }));
  ASSERT_FALSE(receive.done());
  EXPECT_FALSE(c.engine->cancel(state));
  EXPECT_TRUE(cluster.run_until([&] { return receive.done() && send.done(); }));
  EXPECT_EQ(received, sent);
}

TEST_F(Matching, ReceivesFromAChannelThatClosesEndAndOthersGoOn) {
  send(*ac, Tag{8}, 90);
  const auto from_a = expect(Tag{1}, exact_tag, ca->id());
  const auto masked = expect(Tag{1}, TagMask{1}, ca->id());
  const auto from_b = expect(Tag{1}, exact_tag, cb->id());
  const auto from_any = expect(Tag{1}, exact_tag, any_source);
  Request close = ac->close();
  ASSERT_TRUE(cluster.run_until([&] { return from_a->request.done() && masked->request.done(); }));
  EXPECT_TRUE(close.ok());
  EXPECT_EQ(from_a->request.completion().status, Status::peer_gone);
  EXPECT_EQ(masked->request.completion().outcome, Outcome::not_delivered);
  EXPECT_FALSE(from_b->request.done());
  EXPECT_FALSE(from_any->request.done());
  // What it had sent before can still be received, and nothing else.
  EXPECT_EQ(expect(Tag{8}, exact_tag, ca->id())->word, 90U);
  EXPECT_EQ(expect(Tag{8}, exact_tag, ca->id())->request.completion().status, Status::peer_gone);
  send(*bc, Tag{1}, 1);
  send(*bc, Tag{1}, 2);
  EXPECT_EQ(from_b->word, 1U);
  EXPECT_EQ(from_any->word, 2U);
}

TEST_F(Matching, WhatCanNotBeReceivedIsRefused) {
  EXPECT_EQ(expect(Tag{1}, exact_tag, ChannelId{77})->request.completion().status, Status::invalid_argument);
  Request nowhere = c.engine->receive(nullptr, 8, Tag{1}, exact_tag, any_source);
  EXPECT_EQ(nowhere.completion().status, Status::invalid_argument);
}

}  // namespace
}  // namespace verbatim::transport::test
