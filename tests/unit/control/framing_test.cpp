// Frames out of a stream of bytes, however it is cut; and who does not speak our protocol.
#include "transport/control/framing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "transport/control/address.hpp"
#include "verbatim/error.hpp"

namespace verbatim::transport::control {
namespace {

using ::testing::HasSubstr;
using State = Unframer::State;

std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> bytes;
  for (char c : text) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

TEST(Framing, AnySplitGivesTheSameFrames) {
  std::vector<ControlFrame> frames = {bytes_of("x"), bytes_of("hello"), ControlFrame(max_frame_bytes, std::byte{7})};
  std::vector<std::byte> stream(preamble.begin(), preamble.end());
  for (const ControlFrame& frame : frames) append_frame(frame, stream);
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    const std::uint64_t longest = seed == 0 ? 1 : 1 + random.below(seed < 20 ? 20 : 30000);
    Unframer unframer;
    std::vector<ControlFrame> got;
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t count = std::min<std::size_t>(1 + random.below(longest), stream.size() - at);
      (void)unframer.feed(std::span(stream).subspan(at, count), got);
      at += count;
    }
    ASSERT_EQ(got, frames) << "seed " << seed;
    ASSERT_EQ(unframer.state(), State::frames);
  }
}

TEST(Framing, AStrangerIsKnownByHisFirstWrongByte) {
  std::vector<ControlFrame> frames;
  EXPECT_EQ(Unframer().feed(bytes_of("G"), frames), State::stranger);
  EXPECT_EQ(Unframer().feed(bytes_of("verbatn"), frames), State::stranger);
  EXPECT_EQ(Unframer().feed(bytes_of("ver"), frames), State::unidentified);
  Unframer http;
  EXPECT_EQ(http.feed(bytes_of("GET / HTTP/1.1\r\n"), frames), State::stranger);
  EXPECT_THAT(http.problem(), HasSubstr("not Verbatim: it starts with 47 45 54"));
  EXPECT_EQ(http.feed({preamble.data(), preamble.size()}, frames), State::stranger);
  EXPECT_TRUE(frames.empty());
}

TEST(Framing, AnotherVersionIsNamed) {
  std::vector<ControlFrame> frames;
  Unframer unframer;
  EXPECT_EQ(unframer.feed(bytes_of("verbatm\x02"), frames), State::stranger);
  EXPECT_THAT(unframer.problem(), HasSubstr("version 1, the other version 2"));
}

TEST(Framing, LengthsOutOfRangeBreakTheLink) {
  for (std::uint32_t length : {0U, static_cast<std::uint32_t>(max_frame_bytes) + 1, 0xffffffffU}) {
    Unframer unframer;
    std::vector<std::byte> stream(preamble.begin(), preamble.end());
    append_frame(bytes_of("good"), stream);
    for (int shift = 0; shift < 32; shift += 8) stream.push_back(static_cast<std::byte>(length >> shift));
    std::vector<ControlFrame> frames;
    EXPECT_EQ(unframer.feed(stream, frames), State::broken);
    EXPECT_EQ(frames.size(), 1U) << "what came whole before counts";
    EXPECT_THAT(unframer.problem(), HasSubstr(std::to_string(length) + " bytes"));
  }
}

TEST(Addresses, AreReadAsPeopleWriteThem) {
  EXPECT_EQ(parse_address("node7:7000"), (Address{"node7", 7000}));
  EXPECT_EQ(parse_address("10.1.2.3:1"), (Address{"10.1.2.3", 1}));
  EXPECT_EQ(parse_address("[fe80::1%eth0]:65535"), (Address{"fe80::1%eth0", 65535}));
  EXPECT_EQ(parse_listen_address(""), (Address{"", 0}));
  EXPECT_EQ(parse_listen_address(":7000"), (Address{"", 7000}));
  EXPECT_EQ(parse_listen_address("node7"), (Address{"node7", 0}));
  EXPECT_EQ(parse_listen_address("[::1]"), (Address{"::1", 0}));
  for (const char* text : {"[fe80::1%eth0]:65535", "node7:7000"}) EXPECT_EQ(to_string(parse_address(text)), text);
}

TEST(Addresses, ThatCanNotBeRightAreRefusedWithTheText) {
  for (const char* text : {"", "node7", "node7:", ":7000", "node7:0", "node7:65536", "node7:7k", "node7:-1", "::1:7000",
                           "[::1:7000", "[::1]7000", "no de:1", "tcp://node7:1"}) {
    try {
      (void)parse_address(text);
      ADD_FAILURE() << text << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), HasSubstr("\"" + std::string(text) + "\""));
    }
  }
}

}  // namespace
}  // namespace verbatim::transport::control
