// What is counted: one kind of operation each, between two processes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace verbatim::data_path {

enum class Traffic : std::uint8_t {
  ping_pong,   // one message to and fro
  stream,      // messages one way, receives posted before them
  unexpected,  // windows of messages one way, received once the window's last has come; a reply after each
  put,
  get,
  fetch_add,
};

// What eager messages and control frames go through.
enum class Carrier : std::uint8_t { ring, receives };

// Where payload lies: in memory that Worker::allocate() gave, or in the program's own, registered.
enum class Memory : std::uint8_t { allocated, own };

struct Phase {
  std::string_view name;
  Carrier carrier;
  Traffic traffic;
  std::uint64_t bytes;
  bool eager;
  Memory memory = Memory::allocated;
};

inline constexpr std::uint64_t most_bytes = 1 << 20;
inline constexpr std::uint32_t window = 64;  // operations under way, but for ping-pongs
// Of a stream, posted: as many as the sender may begin before the receiver has looked, beside those that it knows of.
inline constexpr std::uint32_t receives = 2 * window;

// In the order in which they run; those of one carrier next to each other.
inline constexpr std::array phases{
    Phase{"8 B to and fro", Carrier::ring, Traffic::ping_pong, 8, true},
    Phase{"8 B one way", Carrier::ring, Traffic::stream, 8, true},
    Phase{"1 KiB one way", Carrier::ring, Traffic::stream, 1024, true},
    Phase{"8 KiB one way", Carrier::ring, Traffic::stream, 8192, true},
    Phase{"8 B before its receive", Carrier::ring, Traffic::unexpected, 8, true},
    Phase{"64 KiB rendezvous", Carrier::ring, Traffic::stream, 64 << 10, false},
    Phase{"1 MiB rendezvous", Carrier::ring, Traffic::stream, 1 << 20, false},
    Phase{"put of 8 B", Carrier::ring, Traffic::put, 8, false},
    Phase{"put of 64 KiB", Carrier::ring, Traffic::put, 64 << 10, false},
    Phase{"get of 64 KiB", Carrier::ring, Traffic::get, 64 << 10, false},
    Phase{"fetch_add", Carrier::ring, Traffic::fetch_add, 8, false},
    Phase{"64 KiB rendezvous, own memory", Carrier::ring, Traffic::stream, 64 << 10, false, Memory::own},
    Phase{"put of 64 KiB, own memory", Carrier::ring, Traffic::put, 64 << 10, false, Memory::own},
    Phase{"get of 64 KiB, own memory", Carrier::ring, Traffic::get, 64 << 10, false, Memory::own},
    Phase{"8 B to and fro", Carrier::receives, Traffic::ping_pong, 8, true},
    Phase{"8 B one way", Carrier::receives, Traffic::stream, 8, true},
    Phase{"1 KiB one way", Carrier::receives, Traffic::stream, 1024, true},
    Phase{"4 KiB one way", Carrier::receives, Traffic::stream, 4096, true},
    Phase{"8 KiB one way", Carrier::receives, Traffic::stream, 8192, true},
    Phase{"8 B before its receive", Carrier::receives, Traffic::unexpected, 8, true},
    Phase{"64 KiB rendezvous", Carrier::receives, Traffic::stream, 64 << 10, false},
    Phase{"put of 64 KiB", Carrier::receives, Traffic::put, 64 << 10, false},
    Phase{"fetch_add", Carrier::receives, Traffic::fetch_add, 8, false},
};

}  // namespace verbatim::data_path
