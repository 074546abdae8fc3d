// What the tests of the shm wire share: a directory of their own, wires in it, packets, other processes.
#pragma once

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/monotonic_clock.hpp"
#include "device/soft/shm/shm_wire.hpp"

namespace verbatim::soft::shm {

// How long a test waits for another process or thread before it fails: a bound, not a delay.
inline constexpr std::chrono::seconds patience{20};

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    char name[] = "/dev/shm/verbatim-test-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    if (owner_ == ::getpid()) std::filesystem::remove_all(path_);
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) names.push_back(entry.path().filename());
    return names;
  }

 private:
  std::string path_;
  pid_t owner_ = ::getpid();
};

inline ibv_gid gid(std::uint8_t number) {
  ibv_gid gid{};
  gid.raw[0] = 0xfd;
  gid.raw[15] = number;
  return gid;
}

inline DeviceConfig config_in(const TemporaryDirectory& directory, std::uint32_t ring_bytes = 64 * 1024) {
  DeviceConfig config;
  config.directory = directory.path();
  config.ring_bytes = ring_bytes;
  return config;
}

inline std::unique_ptr<ShmWire> open_wire(const DeviceConfig& config, const ibv_gid& gid) {
  return std::make_unique<ShmWire>(config, std::span(&gid, 1));
}

inline Time now() {
  return MonotonicClock().now();
}

// Calls until it holds, or patience runs out.
inline bool eventually(const std::function<bool()>& holds) {
  const Time deadline = now() + patience;
  while (!holds()) {
    if (now() > deadline) return false;
    ::sched_yield();
  }
  return true;
}

inline Packet send_packet(std::uint32_t payload_bytes, std::uint32_t immediate = 0) {
  Packet packet{};
  packet.header.kind = PacketKind::send;
  packet.header.flags = packet_flag::first | packet_flag::last;
  packet.header.packet_count = 1;
  packet.header.destination_qpn = 0x22;
  packet.header.source = 0x11;
  packet.header.payload_bytes = payload_bytes;
  packet.header.immediate = immediate;
  return packet;
}

inline Packet write_packet(const void* target, std::uint32_t rkey, std::uint32_t bytes) {
  Packet packet = send_packet(bytes);
  packet.header.kind = PacketKind::write;
  packet.rdma = {.remote_address = reinterpret_cast<std::uintptr_t>(target), .rkey = rkey, .length = bytes};
  return packet;
}

inline Piece piece(void* address, std::size_t bytes, std::uint32_t key = 0) {
  return {static_cast<std::byte*>(address), static_cast<std::uint32_t>(bytes), LKey{key}};
}

inline SendResult send(ShmWire& wire, Path& path, const Packet& packet, Piece payload) {
  return wire.send(path, packet, std::span(&payload, 1), Qpn{0x11}, now());
}

inline const InboundPacket* receive(ShmWire& wire) {
  const InboundPacket* inbound = nullptr;
  eventually([&] { return (inbound = wire.receive(now())) != nullptr; });
  return inbound;
}

inline RegionView region(std::uint32_t key, void* address, std::size_t bytes,
                         std::uint32_t access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE) {
  return {.key = key,
          .protection_domain = 1,
          .access = access,
          .address = reinterpret_cast<std::uintptr_t>(address),
          .length = bytes};
}

inline QueuePairView queue_pair(std::uint32_t qpn, std::uint32_t connected_to, std::uint32_t generation = 1) {
  return {.qpn = {qpn},
          .connected_to = {connected_to},
          .protection_domain = 1,
          .access = IBV_ACCESS_REMOTE_WRITE,
          .generation = generation,
          .receiving = true};
}

// Words that a test and its child processes share.
class SharedWords {
 public:
  SharedWords()
      : words_(new (::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Words{}) {}
  SharedWords(const SharedWords&) = delete;
  SharedWords& operator=(const SharedWords&) = delete;
  ~SharedWords() { ::munmap(words_, 4096); }
  std::atomic<std::uint64_t>& operator[](std::size_t index) { return words_->word[index]; }

 private:
  struct Words {
    std::atomic<std::uint64_t> word[16];
  };
  Words* words_;
};

// All of it now: who is new is put on the roll, the kernel is asked, and the dead are forgotten.
inline void keep_house(ShmWire& wire) {
  wire.keep_house();
  wire.request_house_keeping();
  wire.keep_house();
}

// A process of the test's own, killed at the end of its scope if it still runs.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<int()>& body) {
    std::fflush(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    int code = 99;
    try {
      code = body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
    }
    std::fflush(nullptr);
    ::_exit(code);
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess() { kill(); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }
  // What the body returned, or -signal.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

}  // namespace verbatim::soft::shm
