// The handshake of a channel, both ends in virtual time: who may do what when, what is agreed, what is refused.
#include "transport/control/handshake.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "base/random.hpp"
#include "unit/control/offers.hpp"

namespace verbatim::transport::control {
namespace {

using namespace std::chrono_literals;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Handshake::Settings settings(std::uint64_t incarnation) {
  return {.hello = hello_of(incarnation), .shared = shared_settings, .handshake_timeout = 5s, .connect_timeout = 10s};
}

// One end with the owner that carries its actions out, and what it has seen in order.
struct End {
  Handshake handshake;
  Offer offer;
  std::vector<std::string> log = {};
  std::deque<ControlFrame> sent = {};
  std::optional<Agreement> agreement = {};
  std::optional<Ended> ended = {};
  bool hold_queue_pair = false;  // don't answer PrepareQueuePair
  bool hold_connect = false;     // don't answer ConnectQueuePair

  void carry_out(const Actions& actions) {
    for (const Action& action : actions) {
      if (const auto* send = std::get_if<SendFrame>(&action)) {
        sent.push_back(send->frame);
        log.push_back("send");
      } else if (std::holds_alternative<PrepareQueuePair>(action)) {
        log.push_back("prepare");
        if (!hold_queue_pair) carry_out(handshake.on_queue_pair(offer));
      } else if (const auto* connect = std::get_if<ConnectQueuePair>(&action)) {
        log.push_back("rts");
        agreement = connect->agreement;
        if (!hold_connect) carry_out(handshake.on_queue_pair_connected());
      } else if (std::holds_alternative<Opened>(action)) {
        log.push_back("opened");
      } else {
        ended = std::get<Ended>(action);
        log.push_back("ended");
      }
    }
  }
};

class HandshakeTest : public ::testing::Test {
 protected:
  // Hands over one frame of `from`; false if there is none.
  bool step(End& from, End& to) {
    if (from.sent.empty()) return false;
    const ControlFrame frame = from.sent.front();
    from.sent.pop_front();
    to.carry_out(to.handshake.on_frame(frame, now));
    return true;
  }
  void run() {
    dialler.carry_out(dialler.handshake.on_link_up());
    while (step(dialler, acceptor) || step(acceptor, dialler)) {
    }
  }

  Time now{1h};
  End dialler{.handshake = Handshake::dial(settings(1), Session{42}, now + 10s), .offer = offer_of(17)};
  End acceptor{.handshake = Handshake::accept(settings(2), now), .offer = offer_of(18)};
};

TEST_F(HandshakeTest, BothEndsAreInRtsBeforeEitherOpens) {
  run();
  EXPECT_THAT(dialler.log, ElementsAre("send", "prepare", "send", "rts", "send", "opened"));
  EXPECT_THAT(acceptor.log, ElementsAre("send", "prepare", "rts", "send", "send", "opened"));
  EXPECT_EQ(dialler.handshake.state(), HandshakeState::open);
  EXPECT_EQ(acceptor.handshake.state(), HandshakeState::open);
  EXPECT_EQ(dialler.handshake.peer().sender, (Identity{2, 3}));
  EXPECT_EQ(acceptor.handshake.peer().sender, (Identity{1, 3}));
  EXPECT_EQ(acceptor.handshake.session(), Session{42});
  EXPECT_EQ(dialler.handshake.deadline(), never);
}

TEST_F(HandshakeTest, TheAcceptSaysNothingUntilTheAcceptorCanReceive) {
  acceptor.hold_connect = true;
  run();
  EXPECT_EQ(acceptor.handshake.state(), HandshakeState::connecting);
  EXPECT_EQ(dialler.handshake.state(), HandshakeState::requested);
  acceptor.carry_out(acceptor.handshake.on_queue_pair_connected());
  EXPECT_TRUE(step(acceptor, dialler));
}

TEST_F(HandshakeTest, TheAcceptorMayNotSendUntilTheDiallerCanReceive) {
  dialler.hold_connect = true;
  run();
  EXPECT_EQ(dialler.handshake.state(), HandshakeState::connecting);
  EXPECT_EQ(acceptor.handshake.state(), HandshakeState::accepted);
  EXPECT_THAT(acceptor.log, ::testing::Not(::testing::Contains("opened")));
}

TEST_F(HandshakeTest, EachEndConnectsToTheOther) {
  run();
  EXPECT_EQ(dialler.agreement->peer, acceptor.offer);
  EXPECT_EQ(acceptor.agreement->peer, dialler.offer);
}

TEST_F(HandshakeTest, WhatDiffersIsNegotiatedToWhatBothCan) {
  dialler.offer.mtu_bytes = 4096;
  acceptor.offer.mtu_bytes = 1024;
  dialler.offer.initiator_depth = 16, dialler.offer.responder_resources = 4;
  acceptor.offer.initiator_depth = 32, acceptor.offer.responder_resources = 8;
  dialler.offer.receive_depth = 64, dialler.offer.control_slots = 4;
  acceptor.offer.receive_depth = 256, acceptor.offer.control_slots = 9;
  dialler.offer.eager_max_bytes = 8192;
  acceptor.offer.eager_max_bytes = 4096;
  dialler.offer.max_message_bytes = 1 << 20;
  dialler.offer.service_level = 3, dialler.offer.traffic_class = 106;
  acceptor.offer.service_level = 1, acceptor.offer.traffic_class = 7;
  run();
  for (const End* end : {&dialler, &acceptor}) {
    EXPECT_EQ(end->agreement->mtu_bytes, 1024U);
    EXPECT_EQ(end->agreement->eager_max_bytes, 4096U);
    EXPECT_EQ(end->agreement->max_message_bytes, 1U << 20);
    EXPECT_EQ(end->agreement->service_level, 3);
    EXPECT_EQ(end->agreement->traffic_class, 106);
  }
  EXPECT_EQ(dialler.agreement->initiator_depth, 8);
  EXPECT_EQ(acceptor.agreement->responder_resources, 8);
  EXPECT_EQ(acceptor.agreement->initiator_depth, 4);
  EXPECT_EQ(dialler.agreement->responder_resources, 4);
  EXPECT_EQ(dialler.agreement->credits, 256U);
  EXPECT_EQ(dialler.agreement->control_credits, 9U);
  EXPECT_EQ(acceptor.agreement->credits, 64U);
  EXPECT_EQ(acceptor.agreement->control_credits, 4U);
}

// Both ends fail, and both can say why.
void expect_refused(const End& dialler, const End& acceptor, const std::string& why) {
  for (const End* end : {&dialler, &acceptor}) {
    ASSERT_TRUE(end->ended.has_value());
    EXPECT_EQ(end->ended->status, Status::not_connected);
    EXPECT_THAT(end->ended->sentence, HasSubstr(why));
    EXPECT_FALSE(end->ended->retry);
    EXPECT_THAT(end->log, ::testing::Not(AnyOf(::testing::Contains("rts"), ::testing::Contains("opened"))));
  }
}

TEST_F(HandshakeTest, OtherPartitionsAreRefusedAtBothEnds) {
  dialler.offer.pkey = 0x8001;
  acceptor.offer.pkey = 0x8002;
  run();
  expect_refused(dialler, acceptor, "P_Key: the dialler has 0x8001, the acceptor 0x8002");
}

TEST_F(HandshakeTest, TwoLimitedMembersAreRefused) {
  dialler.offer.pkey = acceptor.offer.pkey = 0x0001;
  run();
  expect_refused(dialler, acceptor, "full member");
}

TEST_F(HandshakeTest, AFullAndALimitedMemberMayTalk) {
  dialler.offer.pkey = 0x8001;
  acceptor.offer.pkey = 0x0001;
  run();
  EXPECT_EQ(dialler.handshake.state(), HandshakeState::open);
}

TEST_F(HandshakeTest, OtherKindsOfGidAreRefusedAtBothEnds) {
  acceptor.offer.gid_type = device::GidType::roce_v1;
  run();
  expect_refused(dialler, acceptor, "RoCE v1");
}

TEST_F(HandshakeTest, OtherAddressFamiliesAreRefusedAtBothEnds) {
  acceptor.offer.gid = {{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
  run();
  expect_refused(dialler, acceptor, "IPv4");
}

TEST_F(HandshakeTest, OtherSharedSettingsAreRefusedAtBothEnds) {
  Handshake::Settings other = settings(1);
  other.shared.message_header_bytes = 40;
  other.hello.fingerprint = fingerprint(other.shared);
  dialler.handshake = Handshake::dial(other, Session{42}, now + 10s);
  run();
  expect_refused(dialler, acceptor, "headers of 32 bytes");
}

TEST(SharedSettings, EveryMemberChangesTheFingerprint) {
  for (auto member : {&SharedSettings::message_format, &SharedSettings::message_header_bytes,
                      &SharedSettings::ring_alignment_bytes}) {
    SharedSettings other = shared_settings;
    other.*member ^= 1U << 31;
    EXPECT_NE(fingerprint(other), fingerprint(shared_settings));
  }
}

TEST_F(HandshakeTest, OtherProtocolVersionsAreRefusedWithBoth) {
  dialler.carry_out(dialler.handshake.on_link_up());
  ControlFrame hello = dialler.sent.front();
  hello[4] = std::byte{protocol_version + 1};
  acceptor.carry_out(acceptor.handshake.on_frame(hello, now));
  ASSERT_TRUE(acceptor.ended.has_value());
  EXPECT_THAT(acceptor.ended->sentence, HasSubstr("version 2, the other version 3"));
}

TEST_F(HandshakeTest, NoQueuePairLeftIsSaidToThePeer) {
  acceptor.hold_queue_pair = true;
  run();
  acceptor.carry_out(
      acceptor.handshake.give_up({RefusalReason::no_resources, Session{}, "8 of 8 queue pairs are in use"}));
  ASSERT_TRUE(step(acceptor, dialler));
  EXPECT_EQ(dialler.ended->status, Status::no_resources);
  EXPECT_THAT(dialler.ended->sentence, HasSubstr("8 of 8 queue pairs"));
}

TEST_F(HandshakeTest, ByeEndsAnOpenChannelInGoodOrder) {
  run();
  dialler.carry_out(dialler.handshake.leave());
  ASSERT_TRUE(step(dialler, acceptor));
  EXPECT_EQ(acceptor.ended->status, Status::ok);
  EXPECT_FALSE(step(acceptor, dialler));
}

TEST_F(HandshakeTest, AStrangerWhoSaysNothingIsDroppedAtTheHandshakeTimeout) {
  EXPECT_TRUE(acceptor.handshake.on_tick(now + 5s - 1ns).empty());
  acceptor.carry_out(acceptor.handshake.on_tick(now + 5s));
  EXPECT_EQ(acceptor.ended->status, Status::timed_out);
  EXPECT_THAT(acceptor.ended->sentence, HasSubstr("the peer's hello until bootstrap.handshake_timeout (5s)"));
}

TEST_F(HandshakeTest, WhatWasAwaitedIsSaidAtTheConnectTimeout) {
  run();
  End late{.handshake = Handshake::dial(settings(1), Session{42}, now + 10s), .offer = offer_of(17)};
  late.carry_out(late.handshake.on_link_up());
  late.carry_out(late.handshake.on_tick(now + 10s));
  EXPECT_EQ(late.ended->status, Status::timed_out);
  EXPECT_THAT(late.ended->sentence, HasSubstr("the peer's hello until bootstrap.connect_timeout (10s)"));
  EXPECT_EQ(late.handshake.deadline(), never);
  EXPECT_TRUE(dialler.handshake.on_tick(now + 1h).empty()) << "an open channel has no deadline";
}

TEST_F(HandshakeTest, ALinkLostBeforeThePeerCanHaveOpenedIsWorthAnotherDial) {
  dialler.hold_connect = true;
  run();
  for (End* end : {&dialler, &acceptor}) {
    end->carry_out(end->handshake.on_link_closed(Status::peer_gone, "connection reset"));
    EXPECT_TRUE(end->ended->retry);
  }
}

TEST_F(HandshakeTest, ALinkLostWhenThePeerMayHaveOpenedIsNot) {
  dialler.hold_connect = true;
  run();
  dialler.carry_out(dialler.handshake.on_queue_pair_connected());
  ASSERT_TRUE(step(dialler, acceptor));
  for (End* end : {&dialler, &acceptor}) {
    end->carry_out(end->handshake.on_link_closed(Status::peer_gone, "connection reset"));
    EXPECT_FALSE(end->ended->retry);
  }
}

// Every message in every state: either it has its place there, or the handshake ends with a reason. Never anything
// else.
TEST_F(HandshakeTest, MessagesOutOfPlaceEndIt) {
  const std::vector<decltype(Message::content)> contents = {
      hello_of(7), ConnectRequest{offer_of(20)}, ConnectAccept{offer_of(21)}, Ready{}, ReadyAck{}, Bye{}};
  int ended = 0;
  int states = 0;
  for (int steps = 0; steps < 7; ++steps) {
    for (bool to_dialler : {true, false}) {
      ++states;
      for (const auto& content : contents) {
        End d{.handshake = Handshake::dial(settings(1), Session{42}, now + 10s), .offer = offer_of(17)};
        End a{.handshake = Handshake::accept(settings(2), now), .offer = offer_of(18)};
        d.carry_out(d.handshake.on_link_up());
        for (int done = 0; done < steps; ++done) (void)(done % 2 == 0 ? step(d, a) : step(a, d));
        End& target = to_dialler ? d : a;
        const HandshakeState before = target.handshake.state();
        target.carry_out(target.handshake.on_frame(encode({Session{42}, Epoch{1}, content}), now));
        if (target.ended) {
          ++ended;
          EXPECT_NE(target.ended->sentence, "");
          EXPECT_TRUE(target.handshake.on_frame(encode({Session{42}, Epoch{1}, content}), now).empty());
        } else {
          EXPECT_NE(target.handshake.state(), before);
        }
      }
    }
  }
  EXPECT_EQ(states, 14);
  EXPECT_GT(ended, 14 * 4);
}

TEST_F(HandshakeTest, OtherSessionsAndEpochsEndIt) {
  run();
  End other = acceptor;
  other.carry_out(other.handshake.on_frame(encode({Session{43}, Epoch{1}, Bye{}}), now));
  EXPECT_THAT(other.ended->sentence, HasSubstr("session"));
  acceptor.carry_out(acceptor.handshake.on_frame(encode({Session{42}, Epoch{9}, Bye{}}), now));
  EXPECT_THAT(acceptor.ended->sentence, HasSubstr("epoch 9 in epoch 1"));
}

// Rubbish between two ends that mean well: each ends up open or ended with a sentence, and never connects twice.
TEST_F(HandshakeTest, RandomFramesNeverConfuseIt) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    End d{.handshake = Handshake::dial(settings(1), Session{42}, now + 10s), .offer = offer_of(17)};
    End a{.handshake = Handshake::accept(settings(2), now), .offer = offer_of(18)};
    d.carry_out(d.handshake.on_link_up());
    for (int turn = 0; turn < 12; ++turn) {
      End& from = turn % 2 == 0 ? d : a;
      End& to = turn % 2 == 0 ? a : d;
      if (!from.sent.empty() && random.chance(0.15)) {
        ControlFrame& frame = from.sent.front();
        frame[random.below(frame.size())] ^= static_cast<std::byte>(1U << random.below(8));
      }
      (void)step(from, to);
    }
    for (End* end : {&d, &a}) {
      end->carry_out(end->handshake.on_tick(now + 1h));
      const HandshakeState state = end->handshake.state();
      ASSERT_TRUE(state == HandshakeState::open || state == HandshakeState::ended) << "seed " << seed;
      ASSERT_LE(std::count(end->log.begin(), end->log.end(), "rts"), 1) << "seed " << seed;
      ASSERT_LE(std::count(end->log.begin(), end->log.end(), "ended"), 1) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace verbatim::transport::control
