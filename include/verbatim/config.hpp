// Every knob of the library, as one plain struct. A default-constructed Config is a good one: it is what the built-in
// defaults say. load_config() reads the same knobs from files and the environment; a program may change members after
// that, which counts most, and check() then says whether they fit together.
//
// Names, units, ranges and reasons stand in conf/verbatim.toml, which is made from the same table as the parser. A
// member `receive_depth` of `rc` is `[rc] receive_depth` in a file and VERBATIM_RC_RECEIVE_DEPTH in the environment.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace verbatim {

// How a thread waits: by polling alone, by sleeping at once, or by polling for a while and sleeping then.
enum class WaitMode : std::uint8_t { poll, event, adaptive };

enum class Switch : std::uint8_t { automatic, on, off };

struct Config {
  using Duration = std::chrono::nanoseconds;

  struct Device {
    std::string name = "auto";       // "auto", "NAME" or "NAME:PORT"
    std::int32_t gid_index = -1;     // -1: by rule
    std::uint16_t pkey = 0xffff;     // by value; its index is looked up
    std::uint8_t service_level = 0;  // 0 to 15
    std::uint8_t traffic_class = 0;
    std::uint32_t flow_label = 0;    // 20 bits
    std::uint8_t hop_limit = 64;     // 2 to 255
    std::uint32_t mtu_bytes = 4096;  // at most; peers use the smallest of theirs and of their ports'
  } device;

  struct ReliableConnection {
    std::uint32_t pool_initial = 4;      // queue pairs made ahead per worker
    std::uint32_t pool_max = 1024;       // queue pairs of a worker at most; the device may allow fewer
    std::uint32_t receive_depth = 128;   // receives posted per queue pair: the credits that its sender has
    std::uint32_t send_depth = 256;      // messages and writes per queue pair that may be on the way
    std::uint32_t control_slots = 8;     // entries of both queues kept for control messages
    std::uint32_t signal_interval = 32;  // every n-th send asks for a completion
    std::uint32_t repost_batch = 16;     // receives are posted again this many at a time
    std::uint32_t reads = 16;            // RDMA reads on the way, at most
    Duration ack_timeout = std::chrono::milliseconds(67);
    std::uint8_t retry_count = 7;  // 0 to 7
    Duration rnr_timer = std::chrono::microseconds(640);
    std::uint8_t rnr_retry_count = 6;  // 0 to 7; 7 is for ever
  } rc;

  struct Eager {
    std::uint32_t max_bytes = 8192;  // longer messages go by rendezvous
  } eager;

  struct WriteQueue {
    Switch enabled = Switch::automatic;  // where the device promises in-order placement and worker.wait is poll
    std::uint32_t bytes = 128 * 1024;    // of each ring; a power of two, 8 of the largest eager messages at least
    std::uint32_t max_per_worker = 64;   // rings that a worker polls at most
    std::uint32_t promote_after = 64;    // messages of a channel before it gets a ring
  } write_queue;

  struct Rendezvous {
    std::uint64_t fragment_bytes = 512ULL * 1024;  // of each RDMA write; the device may allow less
    std::uint32_t fragments = 8;                   // on the way per channel
  } rendezvous;

  struct Matching {
    std::uint64_t unexpected_bytes = 8ULL * 1024 * 1024;  // per worker; beyond it only headers travel
    std::uint32_t max_requests = 65536;                   // of a worker that may be under way
  } matching;

  struct Memory {
    Switch huge_pages = Switch::automatic;                           // automatic: where there are some
    std::uint64_t registration_cache_bytes = 1024ULL * 1024 * 1024;  // 0: no cache, buffers are registered each time
    std::int32_t numa_node = -1;                                     // -1: the device's
  } memory;

  struct Worker {
    WaitMode wait = WaitMode::adaptive;
    Duration spin = std::chrono::microseconds(50);  // adaptive: polling before sleeping
    bool progress_thread = false;                   // makes progress while the worker's own thread is busy
    std::int32_t progress_core = -1;                // the hardware thread it is pinned to; -1: one near the device
  } worker;

  struct Recovery {
    bool enabled = true;                           // a channel whose queue pair fails gets another, and loses nothing
    std::uint32_t attempts = 8;                    // in a row, none of which moved anything, before it is given up
    Duration deadline = std::chrono::seconds(10);  // from the failure to a queue pair that works
  } recovery;

  struct Bootstrap {
    std::string host;                                      // address to listen on; empty: every one
    std::uint16_t port_first = 0;                          // 0: any free one
    std::uint16_t port_last = 0;                           // 0: only port_first
    Duration connect_timeout = std::chrono::seconds(10);   // from connect() to an open channel
    Duration handshake_timeout = std::chrono::seconds(5);  // for a stranger to say who he is
    Duration close_timeout = std::chrono::seconds(5);      // for a worker's destructor to flush
  } bootstrap;
};

// Where a value came from, weakest first.
enum class ConfigOrigin : std::uint8_t { built_in, profile, system_file, user_file, environment, program };

struct ConfigSources {
  std::string file;                    // instead of the user's own; must exist
  std::string profile;                 // "latency", "throughput", "development"; below files and environment
  std::vector<std::string> overrides;  // "rc.receive_depth=256": as a command line gives them; count most
  bool strict = false;                 // an unknown key is an error, not a warning
};

// Defaults, then a profile, then the system's file (/etc/verbatim.toml, or what VERBATIM_SYSTEM_CONFIG names), the
// user's ($XDG_CONFIG_HOME/verbatim.toml, ~/.config/verbatim.toml, or what VERBATIM_CONFIG names), the environment and
// `overrides`; each beats the one before. The profile is the one of `sources`, or of VERBATIM_PROFILE, or the `profile`
// of the user's file, or of the system's.
//
// Each value is held to its range; whether they fit together is for check(). Unknown keys are warned of once each, with
// file and line and the nearest known name. Throws Error (invalid_argument) naming where the value stands, the value,
// and what is allowed, also for an unknown name among `overrides`; (not_found) for a file or profile.
[[nodiscard]] Config load_config(const ConfigSources& sources = {});

// Throws Error(invalid_argument) where members are out of range or don't fit together. What is allowed and yet probably
// not meant (retries for ever, say) is a warning in the log.
void check(const Config& config);

}  // namespace verbatim
