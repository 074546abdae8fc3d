// Programs that others have written for libibverbs, unchanged, between two processes on the soft device. What they
// print at their ends is looked at, not only whether they end well.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "process/support.hpp"

namespace verbatim::process {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr unsigned program_limit_seconds = 60;
constexpr const char* iterations = "1000";
using Words = std::vector<std::string>;

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string free_port() {
  const int fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  socklen_t bytes = sizeof(any);
  require(::bind(fd, reinterpret_cast<const sockaddr*>(&any), bytes) == 0, "no free port");
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&any), &bytes);
  ::close(fd);
  return std::to_string(ntohs(any.sin6_port));
}

// As the kernel lists it: local address, remote address, state.
bool somebody_listens(const std::string& port) {
  std::ostringstream hexadecimal;
  hexadecimal << std::uppercase << std::hex << std::setw(4) << std::setfill('0') << std::stoul(port);
  const std::regex listening(":" + hexadecimal.str() + " [0-9A-F]+:0000 0A");
  return std::regex_search(contents("/proc/net/tcp"), listening) ||
         std::regex_search(contents("/proc/net/tcp6"), listening);
}

bool is_installed(const std::string& program) {
  return ::access(("/usr/bin/" + program).c_str(), X_OK) == 0;
}

// One program under verbatim-run, with what it prints.
class Program {
 public:
  Program(const TemporaryDirectory& directory, const std::string& name, const Words& options, const Words& command)
      : output_(directory.path() + "/" + name + ".txt") {
    Words words{VERBATIM_RUN, "--set", "directory=" + directory.path()};
    words.insert(words.end(), options.begin(), options.end());
    words.emplace_back("--");
    words.insert(words.end(), command.begin(), command.end());
    pid_ = ::fork();
    if (pid_ != 0) return;
    const int file = ::open(output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
    ::alarm(program_limit_seconds);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::execv(arguments.front(), arguments.data());
    ::_exit(127);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (pid_ > 0) (void)wait();
  }
  // Exit status; 128 and more: a signal.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  void kill() const { ::kill(pid_, SIGKILL); }
  [[nodiscard]] bool ended() {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
  }
  [[nodiscard]] std::string output() const { return contents(output_); }

 private:
  std::string output_;
  pid_t pid_ = 0;
};

struct Ends {
  int server = 0;
  int client = 0;
  std::string server_output;
  std::string output;  // the client's
};

enum class Server : bool { ends_by_itself, waits_for_ever };

Ends run_pair(const Words& options, Words command, Server how = Server::ends_by_itself) {
  const TemporaryDirectory directory;
  const std::string port = free_port();
  command.insert(command.end(), {"-p", port});
  Program server(directory, "server", options, command);
  const bool listens = eventually([&] { return somebody_listens(port) || server.ended(); });
  require(listens && !server.ended(), "the server doesn't listen: " + server.output());
  command.emplace_back("localhost");
  Program client(directory, "client", options, command);
  Ends ends;
  ends.client = client.wait();
  ends.output = client.output();
  if (how == Server::waits_for_ever) server.kill();
  ends.server = server.wait();
  ends.server_output = server.output();
  return ends;
}

#define SKIP_UNLESS_INSTALLED(program)                                                          \
  if (!is_installed(program)) {                                                                 \
    const char* const ci = std::getenv("CI");                                                   \
    ASSERT_TRUE(ci == nullptr || std::string(ci) != "true") << program << " is not installed";  \
    GTEST_SKIP() << program << " is not installed; Debian has it in ibverbs-utils or perftest"; \
  }

std::string name_of(const Words& command) {
  std::string name;
  for (const std::string& word : command) {
    for (const char letter : word) {
      if (std::isalnum(static_cast<unsigned char>(letter)) != 0) name += letter;
    }
    name += '_';
  }
  return name.substr(0, name.size() - 1);
}

class PingPong : public testing::TestWithParam<Words> {};

TEST_P(PingPong, ExchangesAllItsMessages) {
  Words command = GetParam();
  SKIP_UNLESS_INSTALLED(command.front())
  const bool datagrams = command.front() == "ibv_ud_pingpong";
  command.insert(command.end(), {"-d", "soft0", "-g", "1", "-n", iterations, "-s", "1024"});
  if (!datagrams) command.emplace_back("-c");  // looks at the bytes
  const Ends ends = run_pair({}, command);
  EXPECT_EQ(ends.client, 0) << ends.output;
  EXPECT_EQ(ends.server, 0) << ends.server_output;
  EXPECT_THAT(ends.output, HasSubstr("2048000 bytes in")) << ends.server_output;
  EXPECT_THAT(ends.output, HasSubstr(std::string(iterations) + " iters in"));
  EXPECT_THAT(ends.output, testing::Not(HasSubstr("invalid data")));
}

INSTANTIATE_TEST_SUITE_P(Of, PingPong,
                         testing::Values(Words{"ibv_rc_pingpong"}, Words{"ibv_rc_pingpong", "-e"},
                                         Words{"ibv_rc_pingpong", "-N"}, Words{"ibv_uc_pingpong"},
                                         Words{"ibv_uc_pingpong", "-e"}, Words{"ibv_ud_pingpong"},
                                         Words{"ibv_ud_pingpong", "-e"}, Words{"ibv_srq_pingpong"},
                                         Words{"ibv_srq_pingpong", "-e"}),
                         [](const auto& command) { return name_of(command.param); });

// Of the last line of figures: what was measured, and how often.
testing::AssertionResult has_figures(const std::string& output) {
  const std::regex line("\n *[0-9]+ +" + std::string(iterations) + " +[0-9.]+ +[0-9.]+");
  if (std::regex_search(output, line)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "no figures of " << iterations << " iterations: " << output;
}

class PerformanceTest : public testing::TestWithParam<Words> {};

TEST_P(PerformanceTest, MeasuresAllItsIterations) {
  Words command = GetParam();
  SKIP_UNLESS_INSTALLED(command.front())
  command.insert(command.end(), {"-d", "soft0", "-n", iterations, "-F"});
  const Ends ends = run_pair({}, command);
  EXPECT_EQ(ends.client, 0) << ends.output;
  EXPECT_EQ(ends.server, 0) << ends.server_output;
  EXPECT_TRUE(has_figures(ends.output));
}

INSTANTIATE_TEST_SUITE_P(
    Of, PerformanceTest,
    testing::Values(Words{"ib_send_lat"}, Words{"ib_send_lat", "-c", "UC"}, Words{"ib_send_lat", "-c", "UD"},
                    Words{"ib_send_bw"}, Words{"ib_send_bw", "-e"}, Words{"ib_send_bw", "-c", "UC"},
                    Words{"ib_send_bw", "-c", "UD"}, Words{"ib_write_lat"}, Words{"ib_write_lat", "-c", "UC"},
                    Words{"ib_write_bw"}, Words{"ib_write_bw", "-c", "UC"}, Words{"ib_read_lat"}, Words{"ib_read_bw"},
                    Words{"ib_atomic_lat"}, Words{"ib_atomic_lat", "-A", "CMP_AND_SWAP"}, Words{"ib_atomic_bw"}),
    [](const auto& command) { return name_of(command.param); });

TEST(VerbsPrograms, ListTheDevice) {
  SKIP_UNLESS_INSTALLED("ibv_devinfo")
  const TemporaryDirectory directory;
  Program program(directory, "devinfo", {"--set", "max_qp=77"}, {"ibv_devinfo", "-v", "-d", "soft0"});
  EXPECT_EQ(program.wait(), 0);
  for (const char* said :
       {"hca_id:\tsoft0", "PORT_ACTIVE", "link_layer:\t\tEthernet", "RoCE v2", "max_qp:\t\t\t\t77"}) {
    EXPECT_THAT(program.output(), HasSubstr(said));
  }
}

// A reliable connection makes good what the wire loses.
TEST(VerbsPrograms, ComeThroughLossesWithTheRightCount) {
  SKIP_UNLESS_INSTALLED("ib_send_bw")
  const Ends ends = run_pair({"--faults", "drop:rate=0.01"},
                             {"ib_send_bw", "-d", "soft0", "-n", iterations, "-s", "4096", "-u", "10", "-F"});
  EXPECT_EQ(ends.client, 0) << ends.output;
  EXPECT_TRUE(has_figures(ends.output));
}

// All packets are lost, and the queue pair gives up: as on hardware, status 12.
TEST(VerbsPrograms, SeeTheStatusOfAQueuePairThatFails) {
  SKIP_UNLESS_INSTALLED("ibv_rc_pingpong")
  const Ends ends =
      run_pair({"--faults", "drop:rate=1"}, {"ibv_rc_pingpong", "-d", "soft0", "-g", "1"}, Server::waits_for_ever);
  EXPECT_NE(ends.client, 0);
  EXPECT_THAT(ends.output + ends.server_output, HasSubstr("transport retry counter exceeded (12)"));
}

class WrongUse : public testing::TestWithParam<std::pair<Words, std::string>> {};

TEST_P(WrongUse, IsSaidInASentence) {
  const TemporaryDirectory directory;
  Program program(directory, "wrong", GetParam().first, {});
  EXPECT_EQ(program.wait(), 64);
  EXPECT_THAT(program.output(), HasSubstr(GetParam().second));
}

INSTANTIATE_TEST_SUITE_P(Of, WrongUse,
                         testing::Values(std::pair{Words{}, std::string("no program is given")},
                                         std::pair{Words{"--set", "max_qp"}, std::string("KNOB=VALUE")},
                                         std::pair{Words{"--set", "max_qp=many"}, std::string("MAX_QP is 'many'")},
                                         std::pair{Words{"--faults", "lose"}, std::string("lose")}));

TEST(VerbsPrograms, ThatAreNotThereEndAsInAShell) {
  const TemporaryDirectory directory;
  Program program(directory, "missing", {}, {"no-such-program"});
  EXPECT_EQ(program.wait(), 127);
  EXPECT_THAT(program.output(), HasSubstr("no-such-program"));
}

}  // namespace
}  // namespace verbatim::process
