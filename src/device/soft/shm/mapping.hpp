// Owners of a file descriptor and of a range of mapped memory.
#pragma once

#include <cstddef>
#include <utility>

namespace verbatim::soft::shm {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor();
  [[nodiscard]] int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

class Mapping {
 public:
  Mapping() = default;
  Mapping(std::byte* address, std::size_t bytes) : address_(address), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();
  [[nodiscard]] std::byte* data() const { return address_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  explicit operator bool() const { return address_ != nullptr; }

  // The first `bytes` of a file, shared, read and write, its pages present. Throws Error.
  [[nodiscard]] static Mapping shared(const FileDescriptor& file, std::size_t bytes);
  // A file of `control` bytes and `ring` bytes behind them (both whole pages), with the ring mapped twice in a row:
  // what runs over its end goes on at its beginning. Throws Error.
  [[nodiscard]] static Mapping ring(const FileDescriptor& file, std::size_t control, std::size_t ring);

 private:
  std::byte* address_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace verbatim::soft::shm
