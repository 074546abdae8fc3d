// What client and server say to each other. Both run on machines of one byte order, so structs travel as they are.
//
//   server -> client, once              Description
//   client -> server, per block         Request, by its operation with the bytes of the block
//   server -> client, per request       Reply, by the request's operation with the bytes of the block
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <verbatim/verbatim.hpp>

namespace block_store {

inline constexpr verbatim::Tag description_tag{1};
inline constexpr verbatim::Tag request_tag{2};
inline constexpr verbatim::Tag reply_tag{3};
inline constexpr verbatim::Tag block_tag{4};   // a block's bytes, as a message
inline constexpr verbatim::Tag notice_tag{5};  // a block's bytes are in the server's memory

inline constexpr std::size_t block_bytes = 64 * 1024;  // of each but the last, which is what remains

struct Description {
  std::uint64_t file_bytes;
  verbatim::RemoteRegion::Encoded memory;  // the whole file
};

enum class Operation : std::uint32_t {
  keep_put,       // the block was put
  keep_notified,  // the block is put with a notice
  keep_sent,      // the block comes as a message
  tell_checksum,  // the client then gets the block
  send,           // the block is to come as a message, after the reply
};

struct Request {
  Operation operation;
  std::uint32_t block;
  std::uint64_t checksum;  // of what is to be kept
};

enum class Verdict : std::uint32_t { good, no_such_block, wrong_checksum, not_written };

struct Reply {
  Verdict verdict;
  std::uint32_t block;
  std::uint64_t checksum;  // of what the server has
};

struct Extent {
  std::size_t offset, bytes;
};

[[nodiscard]] constexpr std::size_t blocks_of(std::size_t file_bytes) {
  return (file_bytes + block_bytes - 1) / block_bytes;
}

[[nodiscard]] constexpr Extent extent_of(std::size_t block, std::size_t file_bytes) {
  const std::size_t offset = block * block_bytes;
  return {offset, file_bytes - offset < block_bytes ? file_bytes - offset : block_bytes};
}

// FNV-1a of 64 bits: finds what went wrong by accident.
[[nodiscard]] constexpr std::uint64_t checksum(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const std::byte byte : bytes) sum = (sum ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
  return sum;
}

}  // namespace block_store
