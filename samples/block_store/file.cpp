#include "file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>
#include <utility>

namespace block_store {
namespace {

[[noreturn]] void fail(const std::string& name, const char* what, int error = errno) {
  throw std::system_error(error, std::generic_category(), name + " " + what);
}

}  // namespace

std::vector<std::byte> read_file(const std::string& name) {
  const OpenFile file(name, OpenFile::For::reading);
  std::vector<std::byte> bytes(file.bytes());
  file.read(bytes);
  return bytes;
}

void write_file(const std::string& name, std::span<const std::byte> bytes) {
  std::ofstream stream(name, std::ios::binary | std::ios::trunc);
  stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  stream.close();
  if (!stream) fail(name, "can't be written");
}

OpenFile::OpenFile(std::string name, For purpose)
    : name_(std::move(name)),
      descriptor_(open(name_.c_str(), (purpose == For::reading ? O_RDONLY : O_RDWR) | O_CLOEXEC)) {
  if (descriptor_ < 0) fail(name_, "can't be opened");
  struct stat status {};
  if (fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode)) {
    bytes_ = static_cast<std::size_t>(status.st_size);
    return;
  }
  close(descriptor_);
  fail(name_, "is not a file", EINVAL);
}

OpenFile::~OpenFile() {
  close(descriptor_);
}

void OpenFile::read(std::span<std::byte> to) const {
  for (std::size_t done = 0; done < to.size();) {
    const ssize_t count = pread(descriptor_, to.data() + done, to.size() - done, static_cast<off_t>(done));
    if (count == 0) fail(name_, "has become shorter", EIO);
    if (count > 0) done += static_cast<std::size_t>(count);
    if (count < 0 && errno != EINTR) fail(name_, "can't be read");
  }
}

void OpenFile::write(std::size_t offset, std::span<const std::byte> bytes) const {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t count =
        pwrite(descriptor_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (count > 0) done += static_cast<std::size_t>(count);
    if (count < 0 && errno != EINTR) fail(name_, "can't be written");
  }
}

}  // namespace block_store
