// Control messages: what goes in comes out, and whatever was changed on the way is refused with a reason.
#include "transport/control/messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "base/random.hpp"
#include "transport/control/wire.hpp"
#include "unit/control/offers.hpp"

namespace verbatim::transport::control {
namespace {

using ::testing::HasSubstr;

std::vector<Message> one_of_each_kind() {
  const Session session{0x1122334455667788};
  return {{session, Epoch{1}, hello_of(9)},
          {session, Epoch{1}, ConnectRequest{offer_of(17)}},
          {session, Epoch{1}, ConnectAccept{offer_of(18)}},
          {session, Epoch{2}, Ready{}},
          {session, Epoch{0xffffffff}, ReadyAck{}},
          {session, Epoch{1}, Refusal{RefusalReason::no_resources, Session{}, "8 of 8 queue pairs are in use"}},
          {session, Epoch{1}, Refusal{RefusalReason::crossed, Session{5}, ""}},
          {session, Epoch{1}, Bye{}},
          {session, Epoch{2}, Rehandshake{offer_of(77), 0xfffffff0}},
          {session, Epoch{2}, Reconnected{}}};
}

std::string why_refused(const ControlFrame& frame) {
  const auto decoded = decode(frame);
  const auto* wrong = std::get_if<Undecodable>(&decoded);
  return wrong == nullptr ? "" : wrong->sentence;
}

TEST(ControlMessages, ComeOutAsTheyWentIn) {
  for (const Message& message : one_of_each_kind()) {
    const auto decoded = decode(encode(message));
    ASSERT_TRUE(std::holds_alternative<Message>(decoded)) << std::get<Undecodable>(decoded).sentence;
    EXPECT_EQ(std::get<Message>(decoded), message);
  }
}

TEST(ControlMessages, TruncatedOrLengthenedOnesAreRefused) {
  for (const Message& message : one_of_each_kind()) {
    const ControlFrame whole = encode(message);
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
      EXPECT_NE(why_refused({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes)}), "");
    }
    ControlFrame longer = whole;
    longer.push_back(std::byte{0});
    EXPECT_NE(why_refused(longer), "");
  }
}

TEST(ControlMessages, LongTextsAreCutAndStayWhole) {
  // What the peer would not take as text still reaches it.
  const Message arrow{Session{1}, Epoch{1}, Refusal{RefusalReason::device_failed, Session{}, "INIT → RTR failed"}};
  EXPECT_EQ(std::get<Refusal>(std::get<Message>(decode(encode(arrow))).content).sentence, "INIT ??? RTR failed");
  Message message{Session{1}, Epoch{1}, Refusal{RefusalReason::mismatch, Session{}, std::string(1000, 'x')}};
  EXPECT_EQ(std::get<Refusal>(std::get<Message>(decode(encode(message))).content).sentence, std::string(240, 'x'));
}

// Sets one field of an encoded message to a value that it can't have.
template <typename Body, typename Change>
ControlFrame changed(const Message& message, Change change) {
  ControlFrame frame = encode(message);
  Body body;
  std::memcpy(&body, frame.data() + sizeof(wire::Header), sizeof(body));
  change(body);
  std::memcpy(frame.data() + sizeof(wire::Header), &body, sizeof(body));
  return frame;
}
template <typename Change>
ControlFrame changed_header(Change change) {
  ControlFrame frame = encode({Session{1}, Epoch{1}, Ready{}});
  wire::Header header;
  std::memcpy(&header, frame.data(), sizeof(header));
  change(header);
  std::memcpy(frame.data(), &header, sizeof(header));
  return frame;
}

TEST(ControlMessages, HeadersOutOfRangeAreRefusedWithTheField) {
  EXPECT_THAT(why_refused(changed_header([](auto& h) { h.magic ^= 1; })), HasSubstr("starts with"));
  EXPECT_THAT(why_refused(changed_header([](auto& h) { h.version = protocol_version + 1; })), HasSubstr("version 3"));
  EXPECT_THAT(why_refused(changed_header([](auto& h) { h.kind = 0; })), HasSubstr("kind 0"));
  EXPECT_THAT(why_refused(changed_header([](auto& h) { h.kind = 10; })), HasSubstr("kind 10"));
  EXPECT_THAT(why_refused(changed_header([](auto& h) { h.reserved = 1; })), HasSubstr("reserved"));
  EXPECT_THAT(why_refused(changed_header([](auto& h) { h.session = 0; })), HasSubstr("session 0"));
  EXPECT_THAT(why_refused(changed_header([](auto& h) { h.bytes += 1; })), HasSubstr("25 bytes"));
  const auto other_version = decode(changed_header([](auto& h) { h.version = protocol_version + 1; }));
  EXPECT_EQ(std::get<Undecodable>(other_version).reason, RefusalReason::mismatch);
}

TEST(ControlMessages, OffersOutOfRangeAreRefusedWithTheField) {
  const Message request{Session{1}, Epoch{1}, ConnectRequest{offer_of(17)}};
  const auto why = [&](const std::function<void(wire::Offer&)>& change) {
    return why_refused(changed<wire::Offer>(request, change));
  };
  EXPECT_THAT(why([](auto& o) { o.queue_pair = 1; }), HasSubstr("queue pair 0x1"));
  EXPECT_THAT(why([](auto& o) { o.queue_pair = 0x1000000; }), HasSubstr("queue pair 0x1000000"));
  EXPECT_THAT(why([](auto& o) { o.first_psn = 0x1000000; }), HasSubstr("PSN"));
  EXPECT_THAT(why([](auto& o) { o.gid_type = 3; }), HasSubstr("GID type 3"));
  EXPECT_THAT(why([](auto& o) { o.pkey = 0x8000; }), HasSubstr("P_Key 0x8000"));
  EXPECT_THAT(why([](auto& o) { o.service_level = 16; }), HasSubstr("service level 16"));
  for (std::uint32_t mtu : {0U, 128U, 1500U, 8192U}) {
    EXPECT_THAT(why([&](auto& o) { o.mtu_bytes = mtu; }), HasSubstr("MTU " + std::to_string(mtu)));
  }
  EXPECT_THAT(why([](auto& o) { o.receive_depth = 0; }), HasSubstr("no receives"));
  EXPECT_THAT(why([](auto& o) { o.max_message_bytes = 0; }), HasSubstr("at most 0"));
  EXPECT_THAT(why([](auto& o) { o.reserved[6] = 1; }), HasSubstr("reserved"));
}

TEST(ControlMessages, HellosAndRefusalsOutOfRangeAreRefusedWithTheField) {
  const Message hello{Session{1}, Epoch{1}, hello_of(9)};
  const auto why_hello = [&](const std::function<void(wire::Hello&)>& change) {
    return why_refused(changed<wire::Hello>(hello, change));
  };
  EXPECT_THAT(why_hello([](auto& h) { h.incarnation = 0; }), HasSubstr("incarnation"));
  EXPECT_THAT(why_hello([](auto& h) { h.address_length = 65; }), HasSubstr("65 characters"));
  EXPECT_THAT(why_hello([](auto& h) { h.address[0] = '\n'; }), HasSubstr("can't be printed"));
  EXPECT_THAT(why_hello([](auto& h) { h.address[63] = 'x'; }), HasSubstr("behind its end"));
  EXPECT_THAT(why_hello([](auto& h) { h.reserved[0] = 1; }), HasSubstr("reserved"));

  const Message refusal{Session{1}, Epoch{1}, Refusal{RefusalReason::mismatch, Session{}, "no"}};
  const auto why_refusal = [&](const std::function<void(wire::Refusal&)>& change) {
    return why_refused(changed<wire::Refusal>(refusal, change));
  };
  EXPECT_THAT(why_refusal([](auto& r) { r.reason = 0; }), HasSubstr("reason 0"));
  EXPECT_THAT(why_refusal([](auto& r) { r.reason = 8; }), HasSubstr("reason 8"));
  EXPECT_THAT(why_refusal([](auto& r) { r.winner = 1; }), HasSubstr("winner"));
  EXPECT_THAT(why_refusal([](auto& r) { r.sentence_length = 241; }), HasSubstr("241"));
  EXPECT_THAT(why_refusal([](auto& r) { r.sentence[1] = '\x1b'; }), HasSubstr("can't be printed"));
  EXPECT_THAT(why_refusal([](auto& r) { r.reserved[4] = 1; }), HasSubstr("reserved"));
}

// Whatever comes: either it is refused, or it means exactly the bytes that came.
TEST(ControlMessages, RandomChangesAreRefusedOrMeanWhatTheySay) {
  constexpr std::uint64_t seed = 20240611;
  Random random(seed);
  const std::vector<Message> messages = one_of_each_kind();
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    ControlFrame frame = encode(messages[random.below(messages.size())]);
    for (std::uint64_t change = 1 + random.below(4); change > 0; --change) {
      frame[random.below(frame.size())] = static_cast<std::byte>(random.bits());
    }
    const auto decoded = decode(frame);
    if (const auto* message = std::get_if<Message>(&decoded)) {
      ASSERT_EQ(encode(*message), frame) << "seed " << seed << ", round " << round;
    } else {
      ASSERT_NE(std::get<Undecodable>(decoded).sentence, "");
      ++refused;
    }
  }
  EXPECT_GT(refused, 5000);
}

}  // namespace
}  // namespace verbatim::transport::control
