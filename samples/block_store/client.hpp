// Puts a file's blocks into a block store, and gets them from there. A block that arrives other than it left is an
// error.
#pragma once

#include <cstddef>
#include <string>
#include <vector>
#include <verbatim/verbatim.hpp>

#include "peer.hpp"
#include "wire.hpp"

namespace block_store {

// How a block's bytes travel: the client puts them into or gets them from the server's memory, or they are messages.
enum class PutBy { put, put_notify, send };
enum class GetBy { get, recv };

// Every call throws std::runtime_error, whose sentence says what failed.
class Client {
 public:
  explicit Client(const std::string& address);

  [[nodiscard]] std::size_t file_bytes() const { return description_.file_bytes; }
  // All of a file, which has to be as long as the server's.
  void put(std::vector<std::byte> file, PutBy by);
  // All of the server's file.
  [[nodiscard]] const std::vector<std::byte>& get(GetBy by);

 private:
  [[nodiscard]] static verbatim::Channel connect(verbatim::Worker& worker, const std::string& address);
  [[nodiscard]] std::span<std::byte> block_at(Extent extent) { return {file_.data() + extent.offset, extent.bytes}; }
  void put_block(std::uint32_t block, PutBy by);
  void get_block(std::uint32_t block, GetBy by);
  void ask(Operation operation, std::uint32_t block, std::uint64_t checksum);
  void hear();

  // What the library may still write to or read from, so it outlives the worker.
  std::vector<std::byte> file_;
  Description description_{};
  Request request_{};
  Reply reply_{};
  verbatim::Context context_;
  verbatim::Worker worker_;
  Peer server_;
  verbatim::RemoteRegion memory_;
};

}  // namespace block_store
