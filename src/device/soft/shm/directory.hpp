// The directory that the shared files of one user's soft devices live in. Private: mode 0700, owned by the user, not
// reached through a symbolic link.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "device/soft/shm/mapping.hpp"

namespace verbatim::soft::shm {

struct OpenedFile {
  FileDescriptor file;
  std::size_t bytes = 0;
  explicit operator bool() const { return static_cast<bool>(file); }
};

// Who may use a file by its owner.
enum class Ownership { absent, ours, foreign };

class Directory {
 public:
  // Empty: /dev/shm/verbatim-<uid>. Made if absent; its parent must exist. Throws Error: permission if it is not ours
  // or is open to others, not_found without a parent, invalid_argument if it is no directory.
  explicit Directory(std::string path);

  [[nodiscard]] const std::string& path() const { return path_; }

  // A new file with its space reserved, so that no later touch of it can fail. Throws Error: no_space with what is
  // needed and what there is, busy if the name exists.
  [[nodiscard]] FileDescriptor create(const std::string& name, std::size_t bytes) const;
  // Empty if there is no regular file of ours by that name.
  [[nodiscard]] OpenedFile open(const std::string& name) const;
  [[nodiscard]] Ownership ownership(const std::string& name) const;
  // A second name for a file. Throws Error.
  void link(const std::string& name, const std::string& second_name) const;
  void remove(const std::string& name) const noexcept;
  [[nodiscard]] std::vector<std::string> list() const;

 private:
  std::string path_;
  FileDescriptor directory_;
};

// Excludes other processes from changing the directory while it lives. Waits for each that has it before for
// lock_wait_limit at most, then throws Error(timed_out). The kernel drops it if the holder dies.
class DirectoryLock {
 public:
  explicit DirectoryLock(const Directory& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  [[nodiscard]] std::uint64_t turn() const;

  FileDescriptor file_;
};

}  // namespace verbatim::soft::shm
