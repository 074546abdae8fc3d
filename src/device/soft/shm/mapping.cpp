#include "device/soft/shm/mapping.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.hpp"

namespace verbatim::soft::shm {
namespace {

std::byte* map(void* where, const FileDescriptor& file, std::size_t offset, std::size_t bytes, int flags) {
  void* address = ::mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE | flags, file.number(),
                         static_cast<off_t>(offset));
  if (address == MAP_FAILED) {
    throw Error(errno == ENOMEM ? ErrorCode::no_space : ErrorCode::device_failure,
                fmt::format("mapping {} bytes of shared memory failed: {}; check ulimit -v and vm.max_map_count", bytes,
                            std::strerror(errno)));
  }
  return static_cast<std::byte*>(address);
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) ::close(number_);
}

Mapping::~Mapping() {
  if (address_ != nullptr) ::munmap(address_, bytes_);
}

Mapping Mapping::shared(const FileDescriptor& file, std::size_t bytes) {
  return {map(nullptr, file, 0, bytes, 0), bytes};
}

Mapping Mapping::ring(const FileDescriptor& file, std::size_t control, std::size_t ring) {
  const std::size_t bytes = control + 2 * ring;
  void* reserved = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) {
    throw Error(ErrorCode::no_space,
                fmt::format("{} bytes of address space for a ring are refused: {}", bytes, std::strerror(errno)));
  }
  Mapping mapping(static_cast<std::byte*>(reserved), bytes);
  map(mapping.data(), file, 0, control + ring, MAP_FIXED);
  map(mapping.data() + control + ring, file, control, ring, MAP_FIXED);
  return mapping;
}

}  // namespace verbatim::soft::shm
