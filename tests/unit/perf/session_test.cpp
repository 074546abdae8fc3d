// verbatim-perf between two processes: it measures what it says, looks at what comes, and ends when the other side
// does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/error.hpp"
#include "program.hpp"
#include "verbatim-perf/control.hpp"
#include "verbatim-perf/exchange.hpp"
#include "verbatim-perf/leader.hpp"
#include "verbatim-perf/partner.hpp"

namespace verbatim::perf {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A side that dies ends the other within a second; the rest is for machines that are busy with other tests.
constexpr std::chrono::seconds soon_enough{5};

std::vector<std::string> quick(std::vector<std::string> arguments) {
  for (const char* argument : {"--iterations", "200", "--warm-up", "1ms", "--window", "16", "--check"})
    arguments.emplace_back(argument);
  return arguments;
}

TEST(PerfSession, MeasuresEveryTestOnThisHostAndFindsEveryByteRight) {
  Program program(quick({"--sizes", "8,1000,64KiB", "--json"}));
  ASSERT_EQ(program.await_end(), 0) << program.errors();
  const auto json = nlohmann::json::parse(program.output());
  ASSERT_EQ(json["points"].size(), 3 * all_tests().size());
  std::set<std::string> tests;
  for (const auto& point : json["points"]) {
    const std::string what = point["test"].get<std::string>() + " " + point["bytes"].dump();
    tests.insert(point["test"].get<std::string>());
    EXPECT_TRUE(point["checked"].get<bool>()) << what;
    EXPECT_GE(point["messages"].get<std::uint64_t>(), 200U) << what;
    EXPECT_GT(point["elapsed_ns"].get<double>(), 0) << what;
    EXPECT_GT(point["pinned_bytes"].get<std::uint64_t>(), 0U) << what;
    EXPECT_GT(point["posts_per_message"].get<double>(), 0) << what;
    EXPECT_EQ(point["rnr_naks"], 0) << what;
    if (point["latency_count"].is_null()) {
      EXPECT_GT(point["megabytes_per_second"].get<double>(), 0) << what;
    } else {
      EXPECT_EQ(point["latency_count"], 200) << what;
      EXPECT_GT(point["latency_p50_ns"].get<double>(), 0) << what;
      EXPECT_GE(point["latency_max_ns"], point["latency_p99_9_ns"]) << what;
    }
  }
  EXPECT_EQ(tests.size(), all_tests().size());
}

TEST(PerfSession, SendsMessagesOfNoBytes) {
  Program program(quick({"lat", "bw", "bibw", "rate", "--sizes", "0", "--csv"}));
  EXPECT_EQ(program.await_end(), 0) << program.errors();
}

TEST(PerfSession, SleepsWhereItIsToldTo) {
  Program program(quick({"lat", "bw", "put-lat", "get-bw", "--sizes", "8,64KiB", "--wait", "event"}));
  EXPECT_EQ(program.await_end(), 0) << program.errors();
  EXPECT_THAT(program.output(), HasSubstr("waits: event"));
}

// The address that a side says it listens on.
std::string address_of(const Program& listener) {
  const std::string said = "listens on ";
  std::string output;
  eventually([&] { return (output = listener.output()).find('\n') != std::string::npos; });
  const auto begin = output.find(said);
  if (begin == std::string::npos) return "nowhere:1";
  return output.substr(begin + said.size(), output.find(',') - begin - said.size());
}

TEST(PerfSession, MeasuresAgainstASideThatListens) {
  Program listener({"--listen", "127.0.0.1"});
  Program program(quick({"--connect", address_of(listener), "lat", "put-bw", "--sizes", "64"}));
  EXPECT_EQ(program.await_end(), 0) << program.errors();
  EXPECT_EQ(listener.await_end(), 0) << listener.errors();
  EXPECT_THAT(program.output(), AllOf(HasSubstr("put-bw"), HasSubstr("Every byte of")));
}

TEST(PerfSession, DrawsAPlotAndSaysWhereItCannot) {
  const std::string file = testing::TempDir() + "verbatim-perf-plot.svg";
  Program program(quick({"lat", "--sizes", "8,64", "--plot", file}));
  EXPECT_EQ(program.await_end(), 0) << program.errors();
  std::ifstream stream(file);
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(stream), {}), AllOf(HasSubstr("<svg"), HasSubstr("</svg>")));
  ::unlink(file.c_str());
  Program refused({"lat", "--plot", "/nowhere/plot.svg"});
  EXPECT_EQ(refused.await_end(), 1);
  EXPECT_THAT(refused.errors(), HasSubstr("/nowhere/plot.svg"));
}

bool has_begun(const Program& program) {
  return eventually([&] { return program.errors().find("point 1 of 1") != std::string::npos; });
}

// Kills `victim` and expects `survivor` to fail soon, with a reason.
void expect_end_after(pid_t victim, Program& survivor) {
  ASSERT_GT(victim, 0);
  ASSERT_EQ(::kill(victim, SIGKILL), 0);
  const auto killed = std::chrono::steady_clock::now();
  EXPECT_EQ(survivor.await_end(), 1) << survivor.errors();
  EXPECT_LT(std::chrono::steady_clock::now() - killed, soon_enough);
  EXPECT_THAT(survivor.errors(), HasSubstr("verbatim-perf: "));
}

const std::vector<std::string> endless{"--sizes", "8", "--duration", "60s", "--warm-up", "60s", "--progress"};

std::vector<std::string> endlessly(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), endless.begin(), endless.end());
  return arguments;
}

class PerfSessionEnds : public testing::TestWithParam<const char*> {};

TEST_P(PerfSessionEnds, WhenTheOtherSideOfThisHostIsKilled) {
  Program program(endlessly({GetParam()}));
  ASSERT_TRUE(has_begun(program)) << program.errors();
  expect_end_after(program.child(), program);
}

TEST_P(PerfSessionEnds, WhenTheListenerIsKilled) {
  Program listener({"--listen", "127.0.0.1"});
  Program program(endlessly({"--connect", address_of(listener), GetParam()}));
  ASSERT_TRUE(has_begun(program)) << program.errors();
  expect_end_after(listener.process(), program);
}

TEST_P(PerfSessionEnds, WhenTheOneThatConnectedIsKilled) {
  Program listener({"--listen", "127.0.0.1"});
  Program program(endlessly({"--connect", address_of(listener), GetParam()}));
  ASSERT_TRUE(has_begun(program)) << program.errors();
  expect_end_after(program.process(), listener);
}

INSTANTIATE_TEST_SUITE_P(Tests, PerfSessionEnds, testing::Values("lat", "rate", "get-lat"),
                         [](const auto& each) { return each.index == 2 ? "get_lat" : each.param; });

TEST(PerfSession, SaysThatNobodyListens) {
  Program program({"lat", "--connect", "127.0.0.1:1", "--set", "bootstrap.connect_timeout=300ms"});
  EXPECT_EQ(program.await_end(), 1);
  EXPECT_THAT(program.errors(), HasSubstr("no channel: can't connect to 127.0.0.1:1"));
  EXPECT_THAT(program.errors(), HasSubstr("Connection refused"));
}

// Follows orders, but has counted one message too many: what it sends is right for another message.
int send_others_messages(SharedPage& page) {
  Context context(load_config());
  Worker worker(context);
  const std::string address = worker.listen("127.0.0.1");
  address.copy(page.address, address.size());
  page.listens.store(true);
  Peer peer(worker, worker.wait_accept(program_patience).value(), WaitMode::adaptive, [] {});
  std::optional<Exchange> exchange;
  for (;;) {
    const Order order = decode_order(peer.hear(program_patience));
    if (order.ask == Ask::finish) return 0;
    if (order.ask == Ask::point) {
      exchange.emplace(peer, order.point);
      exchange->begin_run(1);
      peer.tell(encode(Answer{.buffers = exchange->buffers()}));
    } else if (order.ask == Ask::run) {
      exchange->begin_run(order.iterations);
      sides_of(order.point.test).follow(*exchange, order.iterations, [&] { peer.tell(encode(Answer{})); });
    } else {
      peer.tell(encode(Answer{}));
    }
  }
}

// The sentence that ends a measurement against `partner`; its worker is closed then, so that the other side can close.
std::string problem_against(Partner& partner) {
  Context context(load_config());
  Worker worker(context);
  const Channel channel = worker.connect(partner.await_address());
  if (!worker.wait_open(channel)) return channel.reason_text();
  Peer peer(worker, channel, WaitMode::adaptive, [&] { partner.look_after(); });
  Options options;
  options.iterations = 10;
  options.warm_up = Duration{0};
  Leader leader(peer, options, nullptr, [] {});
  std::string problem = "none";
  try {
    (void)leader.measure({TestKind::lat, 64, 1, true});
  } catch (const Error& error) {
    problem = error.what();
  }
  leader.finish();
  return problem;
}

TEST(PerfSession, NamesTheFirstWrongByte) {
  Partner partner(send_others_messages);
  EXPECT_THAT(problem_against(partner),
              AllOf(HasSubstr("lat of 64 bytes"), HasSubstr("message 0, offset 0: expected")));
  EXPECT_EQ(partner.await_end(), 0);
}

}  // namespace
}  // namespace verbatim::perf
