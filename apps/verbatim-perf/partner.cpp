#include "partner.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "peer.hpp"

namespace verbatim::perf {
namespace {

constexpr std::chrono::milliseconds look_interval{1};
constexpr int failure_by_exception = 1;

SharedPage* make_page() {
  void* shared = mmap(nullptr, sizeof(SharedPage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw Error(ErrorCode::no_space, fmt::format("shared page: {}", std::strerror(errno)));
  return new (shared) SharedPage{};
}

int run_side(const std::function<int(SharedPage&)>& side, SharedPage& page, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) return failure_by_exception;
  return side(page);
}

// False when `patience` is over before `happened`.
template <typename Happened>
bool wait_until(Happened happened) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!happened()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(look_interval);
  }
  return true;
}

}  // namespace

Partner::Partner(const std::function<int(SharedPage&)>& side) : page_(make_page()) {
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ < 0) throw Error(ErrorCode::no_space, fmt::format("fork: {}", std::strerror(errno)));
  if (process_ == 0) _exit(run_side(side, *page_, parent));
}

Partner::~Partner() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  munmap(page_, sizeof(SharedPage));
}

void Partner::look_after() const {
  siginfo_t ended{};
  const int looked = waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOHANG | WNOWAIT);
  if (looked != 0 || ended.si_pid == 0) return;
  throw Error(ErrorCode::device_failure,
              ended.si_code == CLD_EXITED
                  ? fmt::format("the other side, process {}, has ended with status {}", process_, ended.si_status)
                  : fmt::format("the other side, process {}, was killed by signal {}", process_, ended.si_status));
}

std::string Partner::await_address() const {
  const bool listens = wait_until([&] {
    look_after();
    return page_->listens.load();
  });
  if (!listens) throw Error(ErrorCode::timed_out, "the other side does not begin to listen");
  return page_->address;
}

int Partner::await_end() {
  int status = 0;
  if (!wait_until([&] { return waitpid(process_, &status, WNOHANG) == process_; })) {
    throw Error(ErrorCode::timed_out, fmt::format("the other side, process {}, does not end", process_));
  }
  const pid_t process = std::exchange(process_, -1);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  throw Error(ErrorCode::device_failure,
              fmt::format("the other side, process {}, was killed by signal {}", process, WTERMSIG(status)));
}

}  // namespace verbatim::perf
