#include "mem/mapping_watch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>

#include "base/log.hpp"
#include "base/signals_blocked.hpp"
#include "mem/mappings.hpp"

// Of Linux 5.11; older headers lack it.
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

namespace verbatim::mem {
namespace {

constexpr std::size_t events_at_once = 16;

// The descriptor, or -1 and why not.
struct Opened {
  int descriptor = -1;
  std::string problem;
};

Opened open_userfaultfd() {
  // Page faults don't concern us, so the mode that needs no rights will do; kernels before 5.11 don't know it.
  int descriptor = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
  if (descriptor < 0 && errno == EINVAL) {
    descriptor = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
  }
  if (descriptor < 0) return {-1, fmt::format("the kernel refuses userfaultfd: {}", std::strerror(errno))};
  uffdio_api api{};
  api.api = UFFD_API;
  // Write protection is the one way of watching that changes nothing as long as nothing is protected.
  api.features =
      UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_PAGEFAULT_FLAG_WP;
  if (::ioctl(descriptor, UFFDIO_API, &api) == 0) return {descriptor, {}};
  ::close(descriptor);
  return {-1,
          fmt::format("the kernel's userfaultfd (before Linux 5.7?) lacks what is needed: {}", std::strerror(errno))};
}

}  // namespace

std::shared_ptr<MappingWatch> MappingWatch::of_this_process(std::string& problem) {
  static std::mutex mutex;
  static std::weak_ptr<MappingWatch> of_process;
  const std::lock_guard lock(mutex);
  if (auto existing = of_process.lock(); existing && existing->owner_ == ::getpid()) return existing;
  const Opened opened = open_userfaultfd();
  const int stop = ::eventfd(0, EFD_CLOEXEC);
  try {
    if (opened.descriptor < 0) throw std::runtime_error(opened.problem);
    if (stop < 0) throw std::runtime_error(fmt::format("no eventfd: {}", std::strerror(errno)));
    std::shared_ptr<MappingWatch> made(new MappingWatch(opened.descriptor, stop));
    of_process = made;
    return made;
  } catch (const std::exception& error) {
    problem = error.what();
    if (opened.descriptor >= 0) ::close(opened.descriptor);
    if (stop >= 0) ::close(stop);
    return nullptr;
  }
}

MappingWatch::MappingWatch(int events, int stop) : events_(events), stop_(stop), owner_(::getpid()) {
  const SignalsBlocked no_signals;
  reader_ = std::make_unique<std::thread>([this] { read_until_stopped(); });
}

MappingWatch::~MappingWatch() {
  if (::getpid() != owner_) {
    // A forked child: the thread and the memory are the parent's.
    (void)reader_.release();
    ::close(events_);
    ::close(stop_);
    return;
  }
  const std::uint64_t one = 1;
  if (::write(stop_, &one, sizeof one) != sizeof one)
    log().error("an eventfd refuses a write: {}", std::strerror(errno));
  reader_->join();
  ::close(stop_);
}

std::optional<MappingWatch::Index> MappingWatch::watch(const void* address, std::size_t bytes) {
  const auto mappings = find_private_anonymous(address, bytes);
  if (!mappings) return std::nullopt;
  for (Index index = 0; index < max_ranges; ++index) {
    Range& range = ranges_[index];
    if (range.claimed.load(std::memory_order_relaxed) || range.claimed.exchange(true)) continue;
    for (Index used = used_.load(); used <= index && !used_.compare_exchange_weak(used, index + 1);) {
    }
    // Entered before the kernel watches it, so that the first event finds it.
    range.dead.store(false);
    range.begin.store(reinterpret_cast<std::uintptr_t>(address));
    range.end.store(reinterpret_cast<std::uintptr_t>(address) + bytes);
    uffdio_register request{};
    request.range = {mappings->begin, mappings->end - mappings->begin};
    request.mode = UFFDIO_REGISTER_MODE_WP;
    if (::ioctl(events_, UFFDIO_REGISTER, &request) == 0) return index;
    forget(index);
    return std::nullopt;
  }
  return std::nullopt;
}

void MappingWatch::forget(Index index) noexcept {
  Range& range = ranges_[index];
  range.end.store(0);
  range.begin.store(0);
  range.claimed.store(false);
}

void MappingWatch::settle() const noexcept {
  while (reading_.load()) ::sched_yield();
}

bool MappingWatch::alive(Index index) const noexcept {
  settle();
  return !ranges_[index].dead.load();
}

std::uint64_t MappingWatch::deaths() const noexcept {
  settle();
  return deaths_.load();
}

void MappingWatch::read_until_stopped() noexcept {
  // Whoever made this thread may be pinned and spin; threads that unmap would wait for it. So it may run where the
  // program's first thread may.
  cpu_set_t processors;
  if (::sched_getaffinity(owner_, sizeof processors, &processors) == 0) {
    ::sched_setaffinity(0, sizeof processors, &processors);
  }
  pollfd descriptors[] = {{events_, POLLIN, 0}, {stop_, POLLIN, 0}};
  while (true) {
    if (::poll(descriptors, 2, -1) < 0) continue;
    if ((descriptors[0].revents & POLLIN) != 0) read_events();
    if ((descriptors[1].revents & POLLIN) != 0) break;
  }
  // Here and not later: the end of a thread gives back its stack, which may lie in a watched mapping.
  ::close(events_);
}

void MappingWatch::read_events() noexcept {
  uffd_msg messages[events_at_once];
  // The waiting threads go on from within read().
  reading_.store(true);
  const auto bytes = ::read(events_, messages, sizeof messages);
  const std::size_t count = bytes > 0 ? static_cast<std::size_t>(bytes) / sizeof messages[0] : 0;
  for (std::size_t i = 0; i < count; ++i) {
    const uffd_msg& message = messages[i];
    if (message.event == UFFD_EVENT_UNMAP || message.event == UFFD_EVENT_REMOVE) {
      mark(message.arg.remove.start, message.arg.remove.end);
    } else if (message.event == UFFD_EVENT_REMAP) {
      mark(message.arg.remap.from, message.arg.remap.from + message.arg.remap.len);
    }
  }
  reading_.store(false);
}

void MappingWatch::mark(std::uintptr_t begin, std::uintptr_t end) noexcept {
  const Index used = used_.load();
  for (Index index = 0; index < used; ++index) {
    Range& range = ranges_[index];
    if (range.begin.load() >= end || range.end.load() <= begin) continue;
    range.dead.store(true);
    deaths_.fetch_add(1);
  }
}

}  // namespace verbatim::mem
