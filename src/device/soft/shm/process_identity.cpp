#include "device/soft/shm/process_identity.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace verbatim::soft::shm {
namespace {

enum class Sight { running, gone, unknown };

// Fields are counted behind the last ')', since a program may have blanks and brackets in its name.
Sight look_at(pid_t pid, std::uint64_t& start_time) {
  char path[32];  // not on the heap
  *fmt::format_to_n(path, sizeof path - 1, "/proc/{}/stat", pid).out = '\0';
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno == ENOENT && ::access("/proc/self/stat", R_OK) == 0 ? Sight::gone : Sight::unknown;
  char text[1024];
  const ssize_t length = ::read(file, text, sizeof text - 1);
  const int error = errno;
  ::close(file);
  if (length <= 0) return error == ESRCH ? Sight::gone : Sight::unknown;
  text[length] = '\0';
  const char* field = std::strrchr(text, ')');
  if (field == nullptr || field[1] != ' ') return Sight::unknown;
  field += 2;
  if (*field == 'Z' || *field == 'X') return Sight::gone;
  constexpr int state_field = 3;
  constexpr int start_time_field = 22;
  for (int number = state_field; number < start_time_field; ++number) {
    field = std::strchr(field, ' ');
    if (field == nullptr) return Sight::unknown;
    ++field;
  }
  start_time = std::strtoull(field, nullptr, 10);
  return Sight::running;
}

}  // namespace

ProcessIdentity ProcessIdentity::self() {
  ProcessIdentity identity{.pid = ::getpid()};
  if (look_at(identity.pid, identity.start_time) != Sight::running) identity.start_time = 0;
  return identity;
}

bool ProcessIdentity::alive() const {
  if (pid <= 0) return false;
  std::uint64_t now_there = 0;
  switch (look_at(pid, now_there)) {
    case Sight::running:
      return start_time == 0 || now_there == start_time;
    case Sight::gone:
      return false;
    case Sight::unknown:
      break;
  }
  return ::kill(pid, 0) == 0 || errno == EPERM;
}

}  // namespace verbatim::soft::shm
