#include "peer.hpp"

#include <fmt/format.h>

#include <ctime>

#include "base/error.hpp"

namespace verbatim::perf {
namespace {

constexpr Tag control_tag{~std::uint64_t{0}};
constexpr std::chrono::milliseconds look_interval{100};
// Before the library is asked to wait, which may look at a clock each time. Some hundred microseconds.
constexpr unsigned looks_when_polling = 4096;

std::uint64_t thread_cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

ErrorCode code_for(Status status) {
  return status == Status::timed_out ? ErrorCode::timed_out : ErrorCode::device_failure;
}

}  // namespace

Peer::Peer(Worker& worker, Channel channel, WaitMode wait, std::function<void()> look_after)
    : worker_(worker),
      channel_(channel),
      looks_before_sleep_(wait == WaitMode::poll ? looks_when_polling : 1),
      look_after_(std::move(look_after)) {}

void Peer::await_patiently(const Request& request, const char* what, std::chrono::nanoseconds at_most) {
  const auto end = std::chrono::steady_clock::now() + at_most;
  while (!worker_.wait_for(request, look_interval)) {
    look_after_();
    if (std::chrono::steady_clock::now() < end) continue;
    throw Error(ErrorCode::timed_out, fmt::format("{}: nothing came from {} for {} s", what, channel_.peer(),
                                                  std::chrono::duration_cast<std::chrono::seconds>(at_most).count()));
  }
}

void Peer::fail(const Completion& completion, const char* what) const {
  look_after_();  // a process that has ended is the cause, whatever the channel says
  const std::string reason = channel_.reason_text();
  throw Error(code_for(completion.status),
              fmt::format("{}: {}{}{}", what, to_string(completion.status), reason.empty() ? "" : ": ", reason));
}

void Peer::tell(const std::string& text) {
  await(channel_.send(text.data(), text.size(), control_tag), "telling the other side what to do");
}

std::string Peer::hear(std::chrono::nanoseconds at_most) {
  constexpr const char* what = "waiting for word from the other side";
  const Request request = worker_.recv(text_.data(), text_.size(), control_tag, exact_tag, channel_.id());
  await_patiently(request, what, at_most);
  if (request.completion().status != Status::ok) fail(request.completion(), what);
  return {text_.data(), request.completion().bytes};
}

SideUse Peer::use() {
  const ChannelCounters& channel = channel_.counters();
  const WorkerCounters& worker = worker_.counters();
  return {.cpu_ns = thread_cpu_ns(),
          .posts = channel.posts,
          .signalled = channel.signalled,
          .receive_posts = channel.receive_posts,
          .rnr_naks = worker.rnr_naks,
          .retransmits = worker.retransmits,
          .pinned_bytes = worker.pinned_bytes};
}

SideUse operator-(const SideUse& later, const SideUse& earlier) {
  return {.cpu_ns = later.cpu_ns - earlier.cpu_ns,
          .posts = later.posts - earlier.posts,
          .signalled = later.signalled - earlier.signalled,
          .receive_posts = later.receive_posts - earlier.receive_posts,
          .rnr_naks = later.rnr_naks - earlier.rnr_naks,
          .retransmits = later.retransmits - earlier.retransmits,
          .pinned_bytes = later.pinned_bytes};
}

}  // namespace verbatim::perf
