#include "conformance/remote_endpoint.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include "conformance/serve.hpp"

namespace verbatim::conformance {

namespace {

// Never returns to the test that the child was forked from.
[[noreturn]] void be_the_other_side(int fd, const std::function<std::unique_ptr<Endpoint>()>& make_endpoint) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int status = 0;
  try {
    Link link(fd);
    const std::unique_ptr<Endpoint> endpoint = make_endpoint();
    serve(*endpoint, link);
  } catch (const std::exception& failure) {
    fmt::print(stderr, "other side: {}\n", failure.what());
    status = 1;
  }
  std::fflush(nullptr);
  _exit(status);
}

}  // namespace

RemoteEndpoint::RemoteEndpoint(const std::function<std::unique_ptr<Endpoint>()>& make_endpoint) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error("socketpair failed");
  std::fflush(nullptr);  // or the child would write again what is still in the buffers
  child_ = fork();
  if (child_ < 0) throw std::runtime_error("fork failed");
  if (child_ == 0) {
    ::close(ends[0]);
    be_the_other_side(ends[1], make_endpoint);
  }
  ::close(ends[1]);
  link_ = std::make_unique<Link>(ends[0]);
}

RemoteEndpoint::~RemoteEndpoint() {
  link_.reset();
  const auto deadline = std::chrono::steady_clock::now() + exit_patience;
  while (waitpid(child_, nullptr, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Reader RemoteEndpoint::exchange(const Writer& request) {
  link_->send(request.bytes());
  auto answer = link_->receive(answer_patience);
  if (!answer) throw std::runtime_error("the process of the other side is gone");
  Reader result(std::move(*answer));
  if (result.get<Outcome>() == Outcome::failed) {
    throw std::runtime_error(fmt::format("on the other side: {}", result.get<std::string>()));
  }
  return result;
}

}  // namespace verbatim::conformance
