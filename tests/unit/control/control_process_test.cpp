// Control links and processes: out of descriptors, forks, and a storm of processes that connect at once. Each child
// runs a function and says by its exit code whether all went well.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "transport/host/descriptor.hpp"
#include "transport/host/tcp_control.hpp"
#include "unit/control/party.hpp"
#include "unit/control/raw_socket.hpp"

namespace verbatim::transport::host {
namespace {

using namespace std::chrono_literals;

// A new process. The child does not come back: it leaves without running the parent's destructors.
template <typename Body>
pid_t child(Body body) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::alarm(60);  // a child that hangs ends, and fails
  ::_exit(body() ? 0 : 1);
}

bool ended_well(pid_t pid) {
  int status = 0;
  return uninterrupted([&] { return ::waitpid(pid, &status, 0); }) == pid && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

TEST(TcpControlProcess, AcceptingPausesWithoutDescriptorsAndGoesOnAfterwards) {
  EXPECT_TRUE(ended_well(child([] {
    const rlimit few{64, 64};
    if (::setrlimit(RLIMIT_NOFILE, &few) != 0) return false;
    Party server;
    const std::string address = server.listen();
    Party client;
    // Everything that is left, but for one end of a connection.
    std::vector<int> taken;
    for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) taken.push_back(fd);
    ::close(taken.back());
    taken.pop_back();
    (void)client.control.dial(address, in(30s));
    // The kernel has taken the connection, and the server has no descriptor for it.
    if (server.wait([&] { return server.count(LinkEventKind::accepted) > 0; }, 200ms)) return false;
    rusage before{};
    ::getrusage(RUSAGE_SELF, &before);
    (void)server.wait([] { return false; }, 300ms);
    rusage after{};
    ::getrusage(RUSAGE_SELF, &after);
    const auto microseconds = [](const rusage& usage) {
      return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec +
             usage.ru_stime.tv_usec;
    };
    if (microseconds(after) - microseconds(before) > 150000) return false;  // it must pause, not spin
    for (int fd : taken) ::close(fd);
    return server.expect(LinkEventKind::accepted, 5s) && client.expect(LinkEventKind::connected, 5s);
  })));
}

TEST(TcpControlProcess, AChildCanNotEndTheParentsConnections) {
  Party server;
  auto client = std::make_unique<Party>();
  const LinkId link = client->control.dial(server.listen(), in(10s));
  ASSERT_TRUE(client->expect(LinkEventKind::connected));
  EXPECT_TRUE(ended_well(child([&] {
    client->control.send(link, frame_of("from the child"));
    client->control.close(link);
    client.reset();
    return true;
  })));
  client->control.send(link, frame_of("from the parent"));
  const auto frame = server.expect(LinkEventKind::frame);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->frame, frame_of("from the parent"));
  EXPECT_EQ(server.count(LinkEventKind::closed), 0U);
}

TEST(TcpControlProcess, AChildThatLivesOnHoldsNeitherConnectionNorPort) {
  Party client;
  std::array<int, 2> until_told{};
  ASSERT_EQ(::pipe(until_told.data()), 0);
  auto server = std::make_unique<Party>();
  const std::string address = server->listen();
  (void)client.control.dial(address, in(10s));
  ASSERT_TRUE(server->expect(LinkEventKind::accepted));
  const pid_t pid = child([&] {
    ::close(until_told[1]);
    char byte = 0;
    return ::read(until_told[0], &byte, 1) == 0;
  });
  server.reset();
  EXPECT_TRUE(client.expect(LinkEventKind::closed, 5s)) << "the connection ends with its owner";
  Party next;
  EXPECT_NO_THROW(next.control.listen("127.0.0.1", static_cast<std::uint16_t>(std::stoi(address.substr(10))), 0));
  ::close(until_told[1]);
  EXPECT_TRUE(ended_well(pid));
  ::close(until_told[0]);
}

TEST(TcpControlProcess, TwoHundredProcessesConnectAtOnce) {
  constexpr int processes = 200;
  std::array<int, 2> barrier{};
  ASSERT_EQ(::pipe(barrier.data()), 0);
  auto server = std::make_unique<Party>();
  const std::string address = server->listen();
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    children.push_back(child([&] {
      ::close(barrier[1]);
      char byte = 0;
      (void)!::read(barrier[0], &byte, 1);
      Party client;
      const LinkId link = client.control.dial(address, in(30s));
      if (!client.expect(LinkEventKind::connected, 30s)) return false;
      client.control.send(link, frame_of("here I am"));
      return client.expect(LinkEventKind::closed, 30s).has_value();
    }));
  }
  const Time start = in(0s);
  ::close(barrier[1]);
  EXPECT_TRUE(server->expect_count(LinkEventKind::frame, processes, 30s));
  EXPECT_EQ(server->count(LinkEventKind::accepted), static_cast<std::size_t>(processes));
  RecordProperty("milliseconds", static_cast<int>((in(0s) - start) / 1ms));
  server.reset();
  int well = 0;
  for (pid_t pid : children) well += ended_well(pid) ? 1 : 0;
  EXPECT_EQ(well, processes);
  ::close(barrier[0]);
}

}  // namespace
}  // namespace verbatim::transport::host
