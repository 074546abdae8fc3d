#include "device/soft/shm/directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "base/error.hpp"
#include "base/units.hpp"

namespace verbatim::soft::shm {
namespace {

constexpr std::chrono::seconds lock_wait_limit{5};
constexpr std::chrono::milliseconds first_lock_retry{1};
constexpr std::chrono::milliseconds longest_lock_retry{16};
constexpr const char* lock_name = "lock";

std::string default_path() {
  return fmt::format("/dev/shm/verbatim-{}", ::geteuid());
}

[[noreturn]] void refuse_space(const Directory& directory, const std::string& name, std::size_t bytes, int error) {
  struct statvfs system {};
  const bool known = ::statvfs(directory.path().c_str(), &system) == 0;
  throw Error(
      ErrorCode::no_space,
      fmt::format("{}/{} needs {} of shared memory, {} are available in {} ({}); enlarge the file system or set "
                  "the soft device's directory to a larger one",
                  directory.path(), name, format_size(bytes),
                  known ? format_size(system.f_bavail * system.f_frsize) : "an unknown number of bytes",
                  directory.path(), std::strerror(error)));
}

}  // namespace

Directory::Directory(std::string path) : path_(path.empty() ? default_path() : std::move(path)) {
  if (::mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST) {
    const ErrorCode code = errno == ENOENT                      ? ErrorCode::not_found
                           : errno == ENOSPC || errno == EDQUOT ? ErrorCode::no_space
                                                                : ErrorCode::permission;
    throw Error(code, fmt::format("the soft devices' directory {} can't be made: {}", path_, std::strerror(errno)));
  }
  directory_ = FileDescriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!directory_ || ::fstat(directory_.number(), &status) != 0) {
    const bool wrong_kind = errno == ENOTDIR || errno == ELOOP;
    throw Error(wrong_kind ? ErrorCode::invalid_argument : ErrorCode::permission,
                fmt::format("{} can't be the soft devices' directory: {}; it must be a real directory", path_,
                            std::strerror(errno)));
  }
  if (status.st_uid != ::geteuid()) {
    throw Error(ErrorCode::permission, fmt::format("{} belongs to user {}, not to user {}; choose another directory",
                                                   path_, status.st_uid, ::geteuid()));
  }
  if ((status.st_mode & 077) != 0) {
    throw Error(ErrorCode::permission,
                fmt::format("{} is open to other users (mode {:o}); chmod 700 it", path_, status.st_mode & 07777));
  }
}

FileDescriptor Directory::create(const std::string& name, std::size_t bytes) const {
  FileDescriptor file(
      ::openat(directory_.number(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) {
    if (errno == ENOSPC) refuse_space(*this, name, bytes, errno);
    throw Error(errno == EEXIST ? ErrorCode::busy : ErrorCode::device_failure,
                fmt::format("{}/{} can't be made: {}", path_, name, std::strerror(errno)));
  }
  const int error = ::posix_fallocate(file.number(), 0, static_cast<off_t>(bytes));
  if (error == 0) return file;
  remove(name);
  if (error == ENOSPC || error == ENOMEM || error == EFBIG) refuse_space(*this, name, bytes, error);
  throw Error(ErrorCode::device_failure,
              fmt::format("reserving {} for {}/{} failed: {}", format_size(bytes), path_, name, std::strerror(error)));
}

OpenedFile Directory::open(const std::string& name) const {
  OpenedFile opened;
  FileDescriptor file(::openat(directory_.number(), name.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.number(), &status) != 0) return opened;
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) return opened;
  opened.file = std::move(file);
  opened.bytes = static_cast<std::size_t>(status.st_size);
  return opened;
}

Ownership Directory::ownership(const std::string& name) const {
  struct stat status {};
  if (::fstatat(directory_.number(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return Ownership::absent;
  return status.st_uid == ::geteuid() ? Ownership::ours : Ownership::foreign;
}

void Directory::link(const std::string& name, const std::string& second_name) const {
  if (::linkat(directory_.number(), name.c_str(), directory_.number(), second_name.c_str(), 0) == 0) return;
  if (errno == ENOSPC) refuse_space(*this, second_name, 0, errno);
  throw Error(errno == EEXIST ? ErrorCode::busy : ErrorCode::device_failure,
              fmt::format("{}/{} can't be made: {}", path_, second_name, std::strerror(errno)));
}

void Directory::remove(const std::string& name) const noexcept {
  ::unlinkat(directory_.number(), name.c_str(), 0);
}

std::vector<std::string> Directory::list() const {
  std::vector<std::string> names;
  // A stream of its own: the one descriptor of the directory has one read position.
  const int copy = ::openat(directory_.number(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(copy < 0 ? nullptr : ::fdopendir(copy), &::closedir);
  if (!stream) return names;
  while (const dirent* entry = ::readdir(stream.get())) names.emplace_back(entry->d_name);
  return names;
}

// The file counts who has held the lock: where many wait, it is the one holder who may not take too long.
std::uint64_t DirectoryLock::turn() const {
  std::uint64_t turn = 0;
  (void)!::pread(file_.number(), &turn, sizeof turn, 0);
  return turn;
}

DirectoryLock::DirectoryLock(const Directory& directory) {
  const std::string path = directory.path() + "/" + lock_name;
  file_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file_) {
    throw Error(errno == ENOSPC ? ErrorCode::no_space : ErrorCode::permission,
                fmt::format("{} can't be opened: {}", path, std::strerror(errno)));
  }
  const auto now = [] { return std::chrono::steady_clock::now(); };
  std::uint64_t seen = turn();
  auto deadline = now() + lock_wait_limit;
  for (auto retry = first_lock_retry; ::flock(file_.number(), LOCK_EX | LOCK_NB) != 0;
       retry = std::min(2 * retry, longest_lock_retry)) {
    if (const std::uint64_t next = turn(); next != seen) {
      seen = next;
      deadline = now() + lock_wait_limit;
    }
    if (now() > deadline) {
      throw Error(ErrorCode::timed_out,
                  fmt::format("{} was held by another process for {}; is one stopped?", path,
                              format_duration(std::chrono::duration_cast<Duration>(lock_wait_limit))));
    }
    std::this_thread::sleep_for(retry);
  }
  const std::uint64_t ours = turn() + 1;
  (void)!::pwrite(file_.number(), &ours, sizeof ours, 0);  // on a full file system everybody waits as for one
}

// Closing is not enough: a child that was forked meanwhile has the file open too.
DirectoryLock::~DirectoryLock() {
  ::flock(file_.number(), LOCK_UN);
}

}  // namespace verbatim::soft::shm
