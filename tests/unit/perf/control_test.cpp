// What the two sides of verbatim-perf tell each other.
#include "verbatim-perf/control.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace verbatim::perf {
namespace {

using ::testing::HasSubstr;

// Not any bytes are a region's description; the number at its end is its length, as far as this test cares.
RemoteBuffers buffers() {
  RemoteRegion::Encoded encoded = RemoteRegion{}.encode();
  return {RemoteRegion::decode(encoded), RemoteRegion{}};
}

TEST(PerfControl, SaysAnOrderWhole) {
  const Order order{.ask = Ask::run,
                    .point = {TestKind::put_bw, 1 << 20, 16, true},
                    .iterations = 12345,
                    .buffers = buffers(),
                    .problem = "none"};
  const Order heard = decode_order(encode(order));
  EXPECT_EQ(heard.ask, Ask::run);
  EXPECT_EQ(heard.point, order.point);
  EXPECT_EQ(heard.iterations, 12345U);
  EXPECT_EQ(heard.buffers.outgoing.encode(), order.buffers.outgoing.encode());
  EXPECT_EQ(heard.problem, "none");
}

TEST(PerfControl, SaysAnAnswerWhole) {
  const Answer answer{.use = {.cpu_ns = 1,
                              .posts = 2,
                              .signalled = 3,
                              .receive_posts = 4,
                              .rnr_naks = 5,
                              .retransmits = 6,
                              .pinned_bytes = ~std::uint64_t{0}},
                      .problem = {}};
  EXPECT_EQ(decode_answer(encode(answer)).use, answer.use);
  EXPECT_EQ(decode_answer(encode(Answer{.problem = "no memory"})).problem, "no memory");
}

TEST(PerfControl, FitsIntoOneMessageWhateverTheProblem) {
  Order order{.problem = std::string(100'000, 'x')};
  EXPECT_LE(encode(order).size(), max_text_bytes);
  order.problem = std::string("not UTF-8: \xff");
  EXPECT_THAT(decode_order(encode(order)).problem, HasSubstr("not UTF-8"));
}

// The sentence that refuses an order of which one member is something else.
std::string refusal(const char* member, const nlohmann::json& value) {
  auto json = nlohmann::json::parse(encode(Order{.ask = Ask::run, .point = {TestKind::bw, 8, 4, false}}));
  nlohmann::json& parent = json.contains(member) ? json : json["point"];
  parent[member] = value;
  try {
    (void)decode_order(json.dump());
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(PerfControl, RefusesWhatNoSideOfThisVersionSays) {
  EXPECT_THAT(refusal("iterations", 4), "accepted");
  EXPECT_THAT(refusal("version", protocol_version + 1), HasSubstr("use the same build on both"));
  EXPECT_THAT(refusal("ask", "dance"), HasSubstr("an order of another name"));
  EXPECT_THAT(refusal("test", "nap"), HasSubstr("a test of another name"));
  EXPECT_THAT(refusal("window", 0), HasSubstr("out of bounds"));
  EXPECT_THAT(refusal("bytes", max_bytes + 1), HasSubstr("out of bounds"));
  EXPECT_THAT(refusal("iterations", ~std::uint64_t{0}), HasSubstr("out of bounds"));
  EXPECT_THAT(refusal("buffers", 7), HasSubstr("not as this verbatim-perf does"));
  EXPECT_THROW((void)decode_order("GET / HTTP/1.1"), Error);
  EXPECT_THROW((void)decode_answer("[]"), Error);
}

}  // namespace
}  // namespace verbatim::perf
