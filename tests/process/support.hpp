// Child processes and what they share with the test: memory to exchange addresses and counts in, a directory for their
// devices, and waits that end.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "process/node.hpp"
#include "unit/soft_shm/support.hpp"

namespace verbatim::process {

using soft::shm::ChildProcess;
using soft::shm::eventually;
using soft::shm::patience;
using soft::shm::TemporaryDirectory;

// One T that the test and the children it forks from here on share.
template <typename T>
class Shared {
 public:
  Shared() : shared_(new (::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) T{}) {}
  ~Shared() { ::munmap(shared_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T* operator->() const { return shared_; }
  T& operator*() const { return *shared_; }

 private:
  T* shared_;
};

// A place where one process leaves its address for another. Numbered, so that it can be used again.
struct Mailbox {
  Address address{};
  std::atomic<std::uint32_t> number{0};

  void put(const Address& own, std::uint32_t as) {
    address = own;
    number.store(as, std::memory_order_release);
  }
  [[nodiscard]] Address take(std::uint32_t awaited) const {
    require(eventually([&] { return number.load(std::memory_order_acquire) >= awaited; }), "no address came");
    return address;
  }
};

inline NodeOptions options_in(const TemporaryDirectory& directory) {
  NodeOptions options;
  options.device.directory = directory.path();
  return options;
}

// Of random choices; VERBATIM_PROCESS_SEED replays a run.
inline std::uint64_t seed() {
  const char* text = std::getenv("VERBATIM_PROCESS_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 0);
}

}  // namespace verbatim::process
