// Control links over real sockets: what good peers get, and what strangers, signals and broken networks can't spoil.
#include "transport/host/tcp_control.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>

#include <condition_variable>
#include <mutex>

#include "transport/host/edge.hpp"
#include "transport/host/resolver.hpp"
#include "unit/control/party.hpp"
#include "unit/control/raw_socket.hpp"
#include "verbatim/error.hpp"

namespace verbatim::transport::host {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(TcpControl, CarriesFramesBothWaysWholeAndInOrder) {
  Party server;
  Party client;
  const LinkId link = client.control.dial(server.listen(), in(10s));
  ASSERT_TRUE(client.expect(LinkEventKind::connected));
  const auto accepted = server.expect(LinkEventKind::accepted);
  ASSERT_TRUE(accepted);
  EXPECT_THAT(accepted->peer, ::testing::StartsWith("127.0.0.1:"));
  constexpr std::size_t count = 300;
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<std::byte> frame(1 + (i * 2711) % control::max_frame_bytes, static_cast<std::byte>(i));
    client.control.send(link, frame);
    if (i % 10 == 0) server.control.send(accepted->link, frame);
    // The sender waits a little for a receiver that is slower: a link that takes nothing is given up.
    if (i % 10 == 9) {
      ASSERT_TRUE(server.expect_count(LinkEventKind::frame, i + 1 - 5));
    }
  }
  ASSERT_TRUE(server.expect_count(LinkEventKind::frame, count));
  ASSERT_TRUE(client.expect_count(LinkEventKind::frame, count / 10));
  std::size_t next = 0;
  for (const LinkEvent& event : server.events) {
    if (event.kind != LinkEventKind::frame) continue;
    ASSERT_EQ(event.frame.size(), 1 + (next * 2711) % control::max_frame_bytes);
    ASSERT_EQ(event.frame.front(), static_cast<std::byte>(next));
    ++next;
  }
}

TEST(TcpControl, SaysWhetherThereIsAnythingToTake) {
  Party server;
  Party client;
  EXPECT_FALSE(server.control.has_events());
  pollfd ready{server.control.event_fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&ready, 1, 0), 0);
  (void)client.control.dial(server.listen(), in(10s));
  ASSERT_EQ(::poll(&ready, 1, 10000), 1);
  EXPECT_TRUE(server.control.has_events());
  EXPECT_EQ(server.control.take_events().size(), 1U);
  EXPECT_FALSE(server.control.has_events());
  EXPECT_EQ(::poll(&ready, 1, 0), 0);
}

TEST(TcpControl, WhatWasSentBeforeCloseArrives) {
  Party server;
  Party client;
  const LinkId link = client.control.dial(server.listen(), in(10s));
  ASSERT_TRUE(client.expect(LinkEventKind::connected));
  const auto accepted = server.expect(LinkEventKind::accepted);
  server.control.send(accepted->link, frame_of("unread"));  // what nobody reads must not reset the connection
  for (int i = 0; i < 10; ++i)
    client.control.send(link, std::vector<std::byte>(control::max_frame_bytes, std::byte{1}));
  client.control.close(link);
  const auto closed = server.expect(LinkEventKind::closed);
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->status, Status::peer_gone);
  EXPECT_THAT(closed->reason, HasSubstr("closed the connection"));
  EXPECT_EQ(server.count(LinkEventKind::frame), 10U);
}

TEST(TcpControl, WhatWasSentBeforeTheEndOfTheObjectArrives) {
  Party server;
  {
    Party client;
    const LinkId link = client.control.dial(server.listen(), in(10s));
    ASSERT_TRUE(client.expect(LinkEventKind::connected));
    for (int i = 0; i < 10; ++i) client.control.send(link, std::vector<std::byte>(50000, std::byte{1}));
  }
  ASSERT_TRUE(server.expect(LinkEventKind::closed));
  EXPECT_EQ(server.count(LinkEventKind::frame), 10U);
}

TEST(TcpControl, ADialIsRepeatedUntilSomebodyListens) {
  std::string address;
  {
    Party earlier;
    address = earlier.listen();
  }
  Party client;
  (void)client.control.dial(address, in(20s));
  EXPECT_FALSE(client.wait([&] { return !client.events.empty(); }, 50ms));
  Party server;
  server.control.listen("127.0.0.1", static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))), 0);
  EXPECT_TRUE(client.expect(LinkEventKind::connected));
}

TEST(TcpControl, ADialEndsAtItsDeadlineWithWhatWentWrong) {
  std::string address;
  {
    Party earlier;
    address = earlier.listen();
  }
  Party client;
  (void)client.control.dial(address, in(100ms));
  const auto closed = client.expect(LinkEventKind::closed, 5s);
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->status, Status::timed_out);
  EXPECT_THAT(closed->reason, AllOf(HasSubstr(address), HasSubstr("Connection refused")));
}

TEST(TcpControl, AServiceOfOthersIsNamedAtOnce) {
  const RawSocket service = RawSocket::listening();
  Party client;
  (void)client.control.dial(service.address(), in(20s));
  const RawSocket conversation = service.accept();
  conversation.send("SSH-2.0-OpenSSH_9.2\r\n");
  const auto closed = client.expect(LinkEventKind::closed, 5s);
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->status, Status::not_connected);
  EXPECT_THAT(closed->reason, AllOf(HasSubstr(service.address()), HasSubstr("not Verbatim")));
}

TEST(TcpControl, AServiceThatHangsUpIsTriedAgain) {
  const RawSocket service = RawSocket::listening();
  Party client;
  (void)client.control.dial(service.address(), in(20s));
  for (int attempt = 0; attempt < 3; ++attempt) (void)service.accept();
  const RawSocket fourth = service.accept();
  fourth.send({reinterpret_cast<const char*>(control::preamble.data()), control::preamble.size()});
  EXPECT_TRUE(client.expect(LinkEventKind::connected));
}

TEST(TcpControl, WhatIsNoAddressIsRefusedAtOnce) {
  Party client;
  EXPECT_THROW((void)client.control.dial("nowhere", in(1s)), Error);
}

// ---- strangers
// -------------------------------------------------------------------------------------------------------

TEST(TcpControl, StrangersAreDroppedAndHoldNobodyUp) {
  TcpControl::Settings settings;
  settings.handshake_timeout = 300ms;
  Party server(settings);
  const std::string address = server.listen();
  std::vector<RawSocket> silent;
  for (int i = 0; i < 50; ++i) silent.push_back(RawSocket::connected_to(address));
  for (std::size_t bytes : {0U, 3U, 7U}) {
    const RawSocket short_one = RawSocket::connected_to(address);
    short_one.send(std::string_view("verbatm").substr(0, bytes));
  }
  const RawSocket half = RawSocket::connected_to(address);
  half.send("verb");
  const RawSocket random = RawSocket::connected_to(address);
  random.send("\x8e\x13\xf7\x02\x9c\xd4\x51\x6a");
  EXPECT_TRUE(random.closed_within(2000));
  const RawSocket much = RawSocket::connected_to(address);
  (void)much.send(std::string(1000000, 'x'));
  EXPECT_TRUE(much.closed_within(2000));
  const RawSocket huge_frame = RawSocket::connected_to(address);
  huge_frame.send(std::string("verbatm\x01\xff\xff\xff\x7f", 12));
  EXPECT_TRUE(huge_frame.closed_within(2000));

  Party client;
  const Time before = in(0s);
  (void)client.control.dial(address, in(10s));
  EXPECT_TRUE(client.expect(LinkEventKind::connected, 2s));
  EXPECT_LT(in(0s) - before, 2s);
  for (const RawSocket& one : silent) EXPECT_TRUE(one.closed_within(5000));
  EXPECT_TRUE(half.closed_within(5000));
  // Only who said the right eight bytes was ever shown to the worker.
  ASSERT_TRUE(server.expect_count(LinkEventKind::accepted, 2));
  EXPECT_EQ(server.count(LinkEventKind::accepted), 2U);
  EXPECT_TRUE(server.expect_count(LinkEventKind::closed, 1));
  EXPECT_EQ(server.count(LinkEventKind::frame), 0U);
}

TEST(TcpControl, OneByteAtATimeIsEnough) {
  Party server;
  OneByteProxy proxy(server.listen());
  Party client;
  const LinkId link = client.control.dial(proxy.address(), in(10s));
  ASSERT_TRUE(client.expect(LinkEventKind::connected));
  client.control.send(link, frame_of("to the server, byte by byte"));
  const auto frame = server.expect(LinkEventKind::frame);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->frame, frame_of("to the server, byte by byte"));
  server.control.send(frame->link, frame_of("and back"));
  EXPECT_TRUE(client.expect(LinkEventKind::frame));
  EXPECT_GE(proxy.bytes(), 2 * control::preamble.size() + 35);
}

// ---- signals
// ---------------------------------------------------------------------------------------------------------

std::atomic<int> alarms{0};

TEST(TcpControl, SignalsEveryMillisecondInterruptNothing) {
  struct sigaction action {};
  action.sa_handler = [](int) { ++alarms; };  // no SA_RESTART: system calls end with EINTR
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGALRM, &action, &before), 0);
  const itimerval every_millisecond{{0, 1000}, {0, 1000}};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &every_millisecond, nullptr), 0);
  for (int round = 0; round < 20; ++round) {
    Party server;
    Party client;
    const LinkId link = client.control.dial(server.listen(), in(10s));
    EXPECT_TRUE(client.expect(LinkEventKind::connected, 2s));
    for (int i = 0; i < 50; ++i) client.control.send(link, frame_of("tick"));
    EXPECT_TRUE(server.expect_count(LinkEventKind::frame, 50, 2s));
  }
  const itimerval off{};
  ::setitimer(ITIMER_REAL, &off, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
  EXPECT_GT(alarms, 10);
}

// ---- listening
// -------------------------------------------------------------------------------------------------------

std::uint16_t port_of(const std::string& address) {
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

TEST(TcpControl, RestartsAtOnceOnItsPort) {
  std::uint16_t port = 0;
  for (int round = 0; round < 20; ++round) {
    Party server;
    Party client;
    const std::string address = server.control.listen("127.0.0.1", port, 0);
    port = port_of(address);
    (void)client.control.dial(address, in(10s));
    ASSERT_TRUE(client.expect(LinkEventKind::connected)) << "round " << round;
    ASSERT_TRUE(server.expect(LinkEventKind::accepted)) << "round " << round;
    // The server leaves first, so that its end of the connection is the one in TIME_WAIT.
  }
}

TEST(TcpControl, AHeldPortIsNamedAndARangeGoesOn) {
  Party holder;
  const std::uint16_t held = port_of(holder.listen());
  Party second;
  try {
    second.control.listen("127.0.0.1", held, 0);
    ADD_FAILURE() << "two listen on one port";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::busy);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("127.0.0.1:" + std::to_string(held)), HasSubstr("in use")));
  }
  if (held > 65530) GTEST_SKIP() << "no room for a range above port " << held;
  const std::uint16_t got = port_of(second.control.listen("127.0.0.1", held, static_cast<std::uint16_t>(held + 5)));
  EXPECT_GT(got, held);
  EXPECT_THROW(second.control.listen("127.0.0.1", 0, 0), Error) << "listening already";
}

TEST(TcpControl, AHostThatIsNotOursOrHasNoAddressIsRefused) {
  Party server;
  EXPECT_THROW(server.control.listen("192.0.2.1", 0, 0), Error);
  EXPECT_THROW(server.control.listen("127.0.0.1", 7001, 7000), Error);
}

TEST(TcpControl, ListeningEverywhereIsReachableByWhatItAdvertises) {
  Party server;
  (void)server.control.listen("", 0, 0);
  Party client;
  (void)client.control.dial(server.control.advertised(), in(10s));
  EXPECT_TRUE(client.expect(LinkEventKind::connected)) << server.control.advertised();
}

// ---- names
// -----------------------------------------------------------------------------------------------------------

LookUpAnswer loopback() {
  return {{*SocketAddress::numeric("127.0.0.1", 0)}, ""};
}

std::string named(const std::string& address, const std::string& host) {
  return host + address.substr(address.rfind(':'));
}

TEST(TcpControl, ALookUpThatFailsThreeTimesIsTriedAgain) {
  std::atomic<int> look_ups{0};
  TcpControl::Settings settings;
  settings.resolver = std::make_shared<Resolver>([&](const std::string& host) {
    EXPECT_EQ(host, "flaky.example");
    return ++look_ups <= 3 ? LookUpAnswer{{}, "Temporary failure in name resolution"} : loopback();
  });
  Party server;
  Party client(settings);
  const std::string address = named(server.listen(), "flaky.example");
  (void)client.control.dial(address, in(20s));
  ASSERT_TRUE(client.expect(LinkEventKind::connected));
  EXPECT_EQ(look_ups, 4);
  (void)client.control.dial(address, in(20s));
  ASSERT_TRUE(client.expect_count(LinkEventKind::connected, 2));
  EXPECT_EQ(look_ups, 4) << "the answer is kept";
}

// A name server that never answers, until the test is over.
struct BlackHole {
  std::mutex mutex;
  std::condition_variable end;
  bool ended = false;
  std::atomic<int> asked{0};
  LookUpAnswer operator()() {
    ++asked;
    std::unique_lock lock(mutex);
    end.wait(lock, [this] { return ended; });
    return {{}, "gone"};
  }
};

TEST(TcpControl, ABlackHoleOfNamesHoldsUpNobody) {
  const auto hole = std::make_shared<BlackHole>();
  TcpControl::Settings settings;
  settings.resolver = std::make_shared<Resolver>([hole](const std::string&) { return (*hole)(); });
  const Time start = in(0s);
  {
    Party server(settings);
    Party client(settings);
    const std::string address = server.listen();
    const LinkId lost = client.control.dial(named(address, "nowhere.example"), in(200ms));
    (void)client.control.dial(address, in(10s));
    ASSERT_TRUE(client.expect(LinkEventKind::connected, 1s)) << "a number needs no name server";
    const auto closed = client.expect(LinkEventKind::closed, 5s);
    ASSERT_TRUE(closed);
    EXPECT_EQ(closed->link, lost);
    EXPECT_EQ(closed->status, Status::timed_out);
    EXPECT_THAT(closed->reason, HasSubstr("nowhere.example"));
  }
  EXPECT_LT(in(0s) - start, 3s) << "nor does the end of the object wait for it";
  EXPECT_EQ(hole->asked, 1);
  const std::lock_guard lock(hole->mutex);
  hole->ended = true;
  hole->end.notify_all();
}

TEST(TcpControl, ANameThatStaysUnknownIsSaidAtTheDeadline) {
  TcpControl::Settings settings;
  settings.resolver = std::make_shared<Resolver>([](const std::string&) {
    return LookUpAnswer{{}, "Name or service not known"};
  });
  Party client(settings);
  (void)client.control.dial("misspelt.example:7000", in(150ms));
  const auto closed = client.expect(LinkEventKind::closed, 5s);
  ASSERT_TRUE(closed);
  EXPECT_THAT(closed->reason, AllOf(HasSubstr("misspelt.example"), HasSubstr("not known")));
}

TEST(TcpControl, TheNextAddressOfANameIsTried) {
  TcpControl::Settings settings;
  settings.resolver = std::make_shared<Resolver>([](const std::string&) {
    return LookUpAnswer{{*SocketAddress::numeric("127.0.0.2", 0), *SocketAddress::numeric("127.0.0.1", 0)}, ""};
  });
  Party server;
  Party client(settings);
  (void)client.control.dial(named(server.listen(), "two.example"), in(10s));
  EXPECT_TRUE(client.expect(LinkEventKind::connected));
}

// ---- many
// ------------------------------------------------------------------------------------------------------------

TEST(TcpControl, TwoHundredConnectAtOnce) {
  Party server;
  const std::string address = server.listen();
  std::vector<std::unique_ptr<Party>> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(std::make_unique<Party>());
  for (auto& client : clients) {
    for (int i = 0; i < 10; ++i) (void)client->control.dial(address, in(30s));
  }
  EXPECT_TRUE(server.expect_count(LinkEventKind::accepted, 200, 30s));
  for (auto& client : clients) EXPECT_TRUE(client->expect_count(LinkEventKind::connected, 10, 30s));
}

TEST(TcpControl, AWorkerThatTakesNothingIsNotFloodedAndTheSenderIsTold) {
  Party server;
  Party client;
  const LinkId link = client.control.dial(server.listen(), in(10s));
  ASSERT_TRUE(client.expect(LinkEventKind::connected));
  // More than the receiver's events, both kernels' buffers and the sender's queue hold together.
  const std::vector<std::byte> frame(control::max_frame_bytes, std::byte{1});
  for (int i = 0; i < 1000 && client.count(LinkEventKind::closed) == 0; ++i) {
    client.control.send(link, frame);
    (void)client.wait([] { return true; });
    if (i % 20 == 19) (void)client.wait([&] { return client.count(LinkEventKind::closed) > 0; }, 5ms);
  }
  const auto closed = client.expect(LinkEventKind::closed);
  ASSERT_TRUE(closed);
  EXPECT_THAT(closed->reason, HasSubstr("takes nothing"));
  EXPECT_LE(server.control.take_events().size(), Mailbox::max_event_bytes / control::max_frame_bytes + 20);
}

}  // namespace
}  // namespace verbatim::transport::host
