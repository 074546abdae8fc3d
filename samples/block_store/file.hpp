// Files, whole and in place. Errors are std::system_error, whose sentence names the file.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace block_store {

[[nodiscard]] std::vector<std::byte> read_file(const std::string& name);
// Replaces the file, or makes it.
void write_file(const std::string& name, std::span<const std::byte> bytes);

// A file that is there and keeps its size.
class OpenFile {
 public:
  enum class For { reading, writing };  // writing: reading too

  OpenFile(std::string name, For purpose);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  // All of it. `to` has bytes() of them.
  void read(std::span<std::byte> to) const;
  void write(std::size_t offset, std::span<const std::byte> bytes) const;

 private:
  std::string name_;
  int descriptor_;
  std::size_t bytes_ = 0;
};

}  // namespace block_store
