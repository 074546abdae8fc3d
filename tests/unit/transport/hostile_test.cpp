// A peer that breaks the protocol, by a fault or on purpose: its channel ends with a sentence, and what it was not
// given stays untouched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "cluster.hpp"
#include "payload.hpp"
#include "transport/control/messages.hpp"
#include "transport/frame.hpp"

namespace verbatim::transport::test {
namespace {

constexpr std::byte untouched{0xee};

class Hostile : public testing::Test {
 protected:
  Hostile() {
    Config config = Cluster::plain_config();
    config.eager.max_bytes = 1024;
    config.write_queue.enabled = Switch::on;
    config.write_queue.bytes = 16'384;
    a = &cluster.add(config);
    b = &cluster.add(config);
    std::tie(ab, ba) = cluster.connect(*a, *b);
    // The sends of a are offered and its receives posted: what a peer could pretend to know of.
    receive = a->engine->receive(target.data(), target.size(), Tag{1}, exact_tag, any_source);
    send = ab->send(source.data(), source.size(), Tag{1});
    cluster.run_for(std::chrono::milliseconds(1));
    region = b->engine->register_memory(memory.data(), memory.size());
  }

  // b sends bytes as they are, past its library.
  void forge(FrameHeader frame, const void* body = nullptr, std::size_t bytes = 0, bool honest_length = true) {
    if (honest_length) frame.length = static_cast<std::uint32_t>(bytes);
    frame.epoch = 1;
    std::memcpy(memory.data(), &frame, sizeof(frame));
    if (bytes != 0) std::memcpy(memory.data() + sizeof(frame), body, bytes);
    const qp::Segment segment{memory.data(), static_cast<std::uint32_t>(sizeof(frame) + bytes), region.lkey()};
    ASSERT_EQ(
        ba->lane().queue().post_send(qp::WorkKind::send, 1, std::span(&segment, 1), qp::Signal::yes, qp::Inline::no),
        0);
  }
  template <typename Body>
  void forge(FrameKind kind, const Body& body) {
    forge({.kind = kind}, &body, sizeof(body));
  }
  void expect_the_end_of_the_channel() {
    ASSERT_TRUE(cluster.run_until([&] { return send.done() && ab->state() == ChannelState::closed; }));
    EXPECT_EQ(ab->reason(), Status::device_failed);
    EXPECT_THAT(ab->reason_text(), testing::HasSubstr("broke the protocol"));
    EXPECT_EQ(send.completion().outcome, Outcome::not_delivered);
    EXPECT_FALSE(receive.done()) << "it may come from another channel";
    EXPECT_THAT(target, testing::Each(untouched));
  }

  Cluster cluster;
  Node* a = nullptr;
  Node* b = nullptr;
  Channel* ab = nullptr;
  Channel* ba = nullptr;
  Bytes source = pattern(10'000, 1);
  Bytes target = Bytes(10'000, untouched);
  Bytes memory = Bytes(8192);
  mem::RegisteredRegion region;
  Request receive;
  Request send;
};

TEST_F(Hostile, FramesOfNoKind) {
  forge({.kind = static_cast<FrameKind>(200)});
  expect_the_end_of_the_channel();
}

TEST_F(Hostile, LengthsThatAreNotTheFrames) {
  forge({.kind = FrameKind::eager, .length = UINT32_MAX, .tag = 1}, source.data(), 8, false);
  expect_the_end_of_the_channel();
}

TEST_F(Hostile, BodiesThatAreTooShort) {
  forge({.kind = FrameKind::ready_to_send}, source.data(), sizeof(RendezvousOffer) - 1);
  expect_the_end_of_the_channel();
}

TEST_F(Hostile, FramesOutOfSequence) {
  forge({.kind = FrameKind::eager, .tag = 1, .sequence = 5}, source.data(), 8);
  expect_the_end_of_the_channel();
}

TEST_F(Hostile, FramesLongerThanAgreed) {
  forge({.kind = FrameKind::eager, .tag = 1}, source.data(), 1025);
  expect_the_end_of_the_channel();
}

TEST_F(Hostile, CreditsForWhatWasNotSent) {
  forge({.kind = FrameKind::credit, .frames_consumed = 1000});
  expect_the_end_of_the_channel();
}

TEST_F(Hostile, CreditsOfAWriteQueueThatIsNotThere) {
  forge({.kind = FrameKind::credit, .lines_consumed = 1});
  expect_the_end_of_the_channel();
}

TEST_F(Hostile, GrantsOfMoreThanWasOffered) {
  const auto& state = static_cast<RequestState&>(*send.record());
  forge(FrameKind::clear_to_send, RendezvousGrant{.send = state.id(), .receive = {}, .bytes = source.size() + 1});
  expect_the_end_of_the_channel();
}

TEST_F(Hostile, GrantsOfWhatWasNotOffered) {
  const auto& state = static_cast<RequestState&>(*send.record());
  forge(FrameKind::clear_to_send,
        RendezvousGrant{.send = {state.index, state.generation + 1}, .receive = {}, .bytes = 1});
  expect_the_end_of_the_channel();
}

TEST_F(Hostile, GrantsOfARequestFarOutsideThePool) {
  forge(FrameKind::clear_to_send, RendezvousGrant{.send = {UINT32_MAX, 1}, .receive = {}, .bytes = 1});
  expect_the_end_of_the_channel();
}

TEST_F(Hostile, PiecesForAReceiveThatWasNotGranted) {
  const auto& state = static_cast<RequestState&>(*receive.record());
  struct {
    Piece piece;
    std::uint64_t bytes = 0;
  } body{.piece = {.receive = state.id(), .offset = 0}};
  forge(FrameKind::piece, body);
  expect_the_end_of_the_channel();
}

TEST_F(Hostile, TheEndOfAReceiveThatWasNotGranted) {
  const auto& state = static_cast<RequestState&>(*receive.record());
  forge(FrameKind::finished, RendezvousEnd{.receive = state.id()});
  expect_the_end_of_the_channel();
}

TEST_F(Hostile, RepliesToAtomicsThatWereNotAsked) {
  const auto& state = static_cast<RequestState&>(*send.record());
  forge(FrameKind::atomic_reply, AtomicReply{.request = state.id()});
  expect_the_end_of_the_channel();
}

TEST_F(Hostile, AtomicsOfNoKind) {
  forge(FrameKind::atomic_request, AtomicRequest{.request = {}, .kind = static_cast<AtomicKind>(9)});
  expect_the_end_of_the_channel();
}

TEST_F(Hostile, AtomicsOnMemoryThatIsNoRegion) {
  std::uint64_t word = 5;
  forge(FrameKind::atomic_request,
        AtomicRequest{.request = {}, .address = reinterpret_cast<std::uintptr_t>(&word), .operand = 1, .rkey = 77});
  cluster.run_for(std::chrono::milliseconds(1));
  EXPECT_EQ(word, 5U);
}

// So many lines that their bytes are 0 again in 32 bits.
TEST_F(Hostile, WriteQueuesWhoseLengthWraps) {
  forge(FrameKind::write_queue, WriteQueueOffer{.address = 1, .lines = 1U << 26, .rkey = 1});
  expect_the_end_of_the_channel();
}

TEST_F(Hostile, WriteQueuesOfNoPowerOfTwo) {
  forge(FrameKind::write_queue, WriteQueueOffer{.address = 1, .lines = 300, .rkey = 1});
  expect_the_end_of_the_channel();
}

TEST_F(Hostile, WriteQueuesThatTheLongestFrameDoesNotFit) {
  forge(FrameKind::write_queue, WriteQueueOffer{.address = 1, .lines = 32, .rkey = 1});
  expect_the_end_of_the_channel();
}

// Of a handshake: what would make this end's own slots overlap, or leave its credit frames without a place.
TEST(HostileHandshake, OffersThatCanNotBeUsedAreRefused) {
  const std::vector<std::function<void(control::Offer&)>> changes = {
      [](control::Offer& offer) { offer.control_slots = 0; },
      [](control::Offer& offer) { offer.control_slots = max_credit_frames - 1; },
      [](control::Offer& offer) { offer.receive_depth = UINT32_MAX; },
      [](control::Offer& offer) { offer.eager_max_bytes = 8; },
  };
  for (const auto& change : changes) {
    for (const bool of_the_acceptor : {false, true}) {
      Cluster cluster;
      Node& a = cluster.add();
      Node& b = cluster.add();
      cluster.exchange().tamper = [&](std::vector<std::byte>& frame) {
        auto decoded = control::decode(frame);
        auto* const message = std::get_if<control::Message>(&decoded);
        if (message == nullptr) return;
        auto* const accept = std::get_if<control::ConnectAccept>(&message->content);
        auto* const request = std::get_if<control::ConnectRequest>(&message->content);
        if (of_the_acceptor && accept != nullptr) change(accept->offer);
        if (!of_the_acceptor && request != nullptr) change(request->offer);
        const auto encoded = control::encode(*message);
        frame.assign(encoded.begin(), encoded.end());
      };
      Channel& channel = a.engine->connect(b.links->advertised());
      ASSERT_TRUE(cluster.run_until([&] { return channel.state() == ChannelState::closed; }));
      EXPECT_THAT(channel.reason_text(), testing::HasSubstr("can be used"));
      EXPECT_TRUE(cluster.run_until([&] { return a.engine->closed() && b.engine->closed(); }));
    }
  }
}

// Pieces may lie anywhere in the message, and not a byte beyond it.
TEST_F(Hostile, PiecesOutsideOfTheMessage) {
  for (const std::uint64_t offset : {std::uint64_t{2'995}, std::uint64_t{3'001}, UINT64_MAX - 3}) {
    auto [near, far] = cluster.connect(*a, *b);
    Bytes own(10'000, untouched);
    Request wants = a->engine->receive(own.data(), own.size(), Tag{9}, exact_tag, near->id());
    ba = far;
    forge(FrameKind::ready_to_send, RendezvousOffer{.bytes = 3'000, .send = {0, 0}});
    cluster.run_for(std::chrono::milliseconds(1));
    struct {
      Piece piece;
      std::byte bytes[8] = {};
    } body{.piece = {.receive = static_cast<RequestState&>(*wants.record()).id(), .offset = offset}};
    forge({.kind = FrameKind::piece, .sequence = 1}, &body, sizeof(body));
    ASSERT_TRUE(cluster.run_until([&] { return near->state() == ChannelState::closed; }));
    EXPECT_TRUE(cluster.run_until([&] { return wants.done(); }));
    EXPECT_EQ(wants.completion().outcome, Outcome::not_delivered);
    EXPECT_THAT(own, testing::Each(untouched));
  }
}

}  // namespace
}  // namespace verbatim::transport::test
