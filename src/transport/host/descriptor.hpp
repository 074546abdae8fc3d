// A file descriptor with an owner. The child of a fork() does not keep it: a connection must end when this process
// does, and a port be free again, whatever children live on. exec() closes it too.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <mutex>
#include <utility>

namespace verbatim::transport::host {

class Descriptor {
 public:
  Descriptor() = default;
  // Calls `open`, which returns a descriptor made with CLOEXEC, or -1; empty then, and errno says why. No fork() comes
  // between the call and the taking over, so `open` must not block.
  template <typename Open>
  [[nodiscard]] static Descriptor make(Open open) {
    const std::lock_guard lock(fork_mutex());
    const int fd = open();
    return fd < 0 ? Descriptor() : Descriptor(fd);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)), process_(other.process_) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = std::exchange(other.fd_, -1);
      process_ = other.process_;
    }
    return *this;
  }
  ~Descriptor() { close(); }

  void close() noexcept;
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  explicit Descriptor(int fd);  // with fork_mutex() held
  static std::mutex& fork_mutex();

  int fd_ = -1;
  pid_t process_ = 0;  // in another one it is closed already, and the number may be somebody else's
};

// Repeats a system call that a signal interrupted.
template <typename Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace verbatim::transport::host
