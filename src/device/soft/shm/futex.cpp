#include "device/soft/shm/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace verbatim::soft::shm {
namespace {

std::uint32_t* address_of(std::atomic<std::uint32_t>& word) {
  static_assert(sizeof word == sizeof(std::uint32_t));
  return reinterpret_cast<std::uint32_t*>(&word);
}

}  // namespace

void sleep_while(std::atomic<std::uint32_t>& word, Sleep as, Duration limit) {
  if (limit <= Duration::zero()) return;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  timespec timeout{};
  timeout.tv_sec = static_cast<std::time_t>(seconds.count());
  timeout.tv_nsec = static_cast<long>((limit - seconds).count());
  ::syscall(SYS_futex, address_of(word), FUTEX_WAIT, static_cast<std::uint32_t>(as), &timeout, nullptr, 0);
}

void wake_by_system_call(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, address_of(word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace verbatim::soft::shm
