#include "system_calls.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace verbatim::data_path {
namespace {

// A call that nobody needs and that does nothing, with arguments that the kernel ignores.
constexpr long mark_call = SYS_getppid;
constexpr std::uint64_t mark_magic = 0x7665726261746d21;

constexpr std::uint64_t options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
constexpr int system_call_stop = SIGTRAP | 0x80;

std::string thread_name(pid_t thread) {
  std::string name;
  std::getline(std::ifstream(fmt::format("/proc/{}/comm", thread)), name);
  return name;
}

bool stops_all_threads(int signal) {
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

}  // namespace

void mark_begin(std::size_t number) {
  syscall(mark_call, mark_magic, true, number);
}

void mark_end() {
  syscall(mark_call, mark_magic, false, 0);
}

// Those that a library like this one is likely to make.
std::string system_call_name(long number) {
  switch (number) {
    case SYS_futex:
      return "futex";
    case SYS_process_vm_readv:
      return "process_vm_readv";
    case SYS_membarrier:
      return "membarrier";
    case SYS_clock_gettime:
      return "clock_gettime";
    case SYS_clock_nanosleep:
      return "clock_nanosleep";
    case SYS_sched_yield:
      return "sched_yield";
    case SYS_mmap:
      return "mmap";
    case SYS_munmap:
      return "munmap";
    case SYS_madvise:
      return "madvise";
    case SYS_brk:
      return "brk";
    case SYS_ioctl:
      return "ioctl";
    case SYS_openat:
      return "openat";
    case SYS_close:
      return "close";
    case SYS_read:
      return "read";
    case SYS_write:
      return "write";
    case SYS_sendto:
      return "sendto";
    case SYS_recvfrom:
      return "recvfrom";
    case SYS_ppoll:
      return "ppoll";
    case SYS_epoll_pwait:
      return "epoll_pwait";
#ifdef SYS_poll
    case SYS_poll:
      return "poll";
#endif
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
      return "epoll_wait";
#endif
    default:
      return fmt::format("system call {}", number);
  }
}

SystemCallTracer::SystemCallTracer(const std::vector<pid_t>& children) {
  for (const pid_t process : children) children_.push_back({.process = process});
  for (const pid_t process : children) {
    refusal_ = seize(process);
    if (!refusal_.empty()) return;
  }
}

// Traced from its next return from the kernel on.
std::string SystemCallTracer::seize(pid_t process) {
  int status = 0;
  if (ptrace(PTRACE_SEIZE, process, nullptr, options) != 0 ||
      ptrace(PTRACE_INTERRUPT, process, nullptr, nullptr) != 0 || waitpid(process, &status, __WALL) != process) {
    return fmt::format("this system does not let a process trace its children: ptrace: {}", std::strerror(errno));
  }
  on_stop(process, status);
  return {};
}

bool SystemCallTracer::run() {
  bool failed = false;
  const auto runs = [](const Child& child) { return child.running; };
  while (std::ranges::any_of(children_, runs)) {
    int status = 0;
    const pid_t thread = waitpid(-1, &status, __WALL);
    if (thread < 0 && errno == EINTR) continue;
    if (thread < 0) throw std::runtime_error(fmt::format("waitpid: {}", std::strerror(errno)));
    if (WIFSTOPPED(status)) {
      on_stop(thread, status);
      continue;
    }
    threads_.erase(thread);
    const auto ended = std::ranges::find(children_, thread, &Child::process);
    if (ended == children_.end()) continue;
    ended->running = false;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    failed = true;
    for (const Child& child : children_) {
      if (child.running) kill(child.process, SIGKILL);
    }
  }
  return !failed;
}

void SystemCallTracer::on_stop(pid_t thread, int status) {
  const int signal = WSTOPSIG(status);
  const bool event = status >> 16 != 0;
  if (signal == system_call_stop) on_system_call(thread);
  if (event && stops_all_threads(signal)) {
    ptrace(PTRACE_LISTEN, thread, nullptr, nullptr);
    return;
  }
  const int passed_on = event || signal == system_call_stop ? 0 : signal;
  ptrace(PTRACE_SYSCALL, thread, nullptr, passed_on);  // fails only where it has been killed
}

void SystemCallTracer::on_system_call(pid_t thread) {
  __ptrace_syscall_info info{};
  if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) <= 0) {
    if (errno == ESRCH) return;  // killed meanwhile
    throw std::runtime_error(fmt::format("PTRACE_GET_SYSCALL_INFO: {}", std::strerror(errno)));
  }
  if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return;
  Child& child = child_of(thread);
  const auto call = static_cast<long>(info.entry.nr);
  if (call == mark_call && info.entry.args[0] == mark_magic) {
    on_mark(child, info.entry.args[2], info.entry.args[1] != 0);
  } else if (child.between_marks) {
    count(thread, child, call);
  }
}

void SystemCallTracer::count(pid_t thread, Child& child, long call) {
  if (thread == child.process) {
    ++marked_[child.number][call];
  } else {
    ++others_[thread_name(thread)][call];
  }
}

void SystemCallTracer::on_mark(Child& child, std::size_t number, bool begins) {
  const Clock::time_point now = Clock::now();
  if (!begins) marked_time_ += now - child.since;
  child.between_marks = begins;
  child.number = number;
  child.since = now;
}

SystemCallTracer::Child& SystemCallTracer::child_of(pid_t thread) {
  Child*& known = threads_[thread];
  if (known == nullptr) {
    const auto owner = std::ranges::find_if(children_, [&](const Child& child) {
      return std::filesystem::exists(fmt::format("/proc/{}/task/{}", child.process, thread));
    });
    if (owner == children_.end()) throw std::runtime_error(fmt::format("thread {} is nobody's", thread));
    known = &*owner;
  }
  return *known;
}

}  // namespace verbatim::data_path
