#include "transport/host/descriptor.hpp"

#include <pthread.h>
#include <unistd.h>

#include <set>

namespace verbatim::transport::host {
namespace {

// Leaked on purpose: descriptors of static objects outlive statics made later.
struct Registry {
  std::mutex mutex;
  std::set<int> open;

  Registry() {
    ::pthread_atfork([] { instance().mutex.lock(); }, [] { instance().mutex.unlock(); },
                     [] {
                       // The child of a process with threads may only do what is async-signal-safe: it reads the set,
                       // closes, and leaves the memory alone. close() on a Descriptor does nothing there.
                       for (int fd : instance().open) ::close(fd);
                       instance().forked = true;
                       instance().mutex.unlock();
                     });
  }
  bool forked = false;  // what `open` names was the parent's; forgotten at the next use

  static Registry& instance() {
    static Registry* const registry = new Registry;
    return *registry;
  }
  void forget_the_parents() {
    if (std::exchange(forked, false)) open.clear();
  }
};

}  // namespace

std::mutex& Descriptor::fork_mutex() {
  return Registry::instance().mutex;
}

Descriptor::Descriptor(int fd) : fd_(fd), process_(::getpid()) {
  Registry::instance().forget_the_parents();
  Registry::instance().open.insert(fd);
}

void Descriptor::close() noexcept {
  const int fd = std::exchange(fd_, -1);
  if (fd < 0 || process_ != ::getpid()) return;
  const std::lock_guard lock(fork_mutex());
  Registry::instance().open.erase(fd);
  ::close(fd);  // no retry after EINTR: Linux has closed it even then
}

}  // namespace verbatim::transport::host
