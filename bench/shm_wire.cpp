// What the shm wire costs by itself, beside what the machine charges for a cache line that changes hands and for
// memcpy. Two processes on two cores; medians of many batches. Run it on an idle machine.
#include "device/soft/shm/shm_wire.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace {

using verbatim::Qpn;
using verbatim::Time;
using verbatim::soft::DeviceConfig;
using verbatim::soft::InboundPacket;
using verbatim::soft::Packet;
using verbatim::soft::PacketKind;
using verbatim::soft::Path;
using verbatim::soft::Piece;
using verbatim::soft::SendResult;
using verbatim::soft::shm::ShmWire;

constexpr int batches = 31;
constexpr Time now{};

double nanoseconds() {
  return static_cast<double>(std::chrono::steady_clock::now().time_since_epoch().count());
}

// Cores that this process may use, the first and the last of them for the two sides.
std::pair<int, int> two_cores() {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return {cores.front(), cores.back()};
}

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof set, &set);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Nanoseconds of one of `rounds` rounds of `body`, the median of all batches.
double time_of(int rounds, const std::function<void()>& body) {
  std::vector<double> results;
  for (int batch = 0; batch < batches; ++batch) {
    const double start = nanoseconds();
    for (int round = 0; round < rounds; ++round) body();
    results.push_back((nanoseconds() - start) / rounds);
  }
  return median(results);
}

// The two processes' own words, apart from everything measured.
struct alignas(64) Line {
  std::atomic<std::uint64_t> value{0};
};
struct Board {
  Line ping, pong, stop, stage, target;
};

constexpr std::uint32_t server_key = 0x101;
constexpr std::uint32_t client_key = 0x201;
constexpr std::size_t large = 1 << 20;

ibv_gid gid_of(std::uint8_t host, std::uint8_t number) {
  ibv_gid gid{};
  gid.raw[0] = 0xfd;
  gid.raw[14] = host;
  gid.raw[15] = number;
  return gid;
}

std::unique_ptr<ShmWire> open_wire(const std::string& directory, const ibv_gid& gid) {
  DeviceConfig config;
  config.directory = directory;
  return std::make_unique<ShmWire>(config, std::span(&gid, 1));
}

Packet send_packet(std::uint32_t bytes) {
  Packet packet{};
  packet.header.kind = PacketKind::send;
  packet.header.packet_count = 1;
  packet.header.payload_bytes = bytes;
  packet.header.destination_qpn = 2;
  return packet;
}

Packet write_packet(std::uint64_t target, std::uint32_t rkey, std::uint32_t bytes) {
  Packet packet = send_packet(bytes);
  packet.header.kind = PacketKind::write;
  packet.header.flags = verbatim::soft::packet_flag::first;
  packet.header.source = 1;
  packet.rdma = {.remote_address = target, .rkey = rkey, .length = bytes};
  return packet;
}

// Memory that the other side may write to, through queue pair 2 from its queue pair 1.
std::byte* open_memory(ShmWire& wire, std::uint32_t key) {
  auto* memory = static_cast<std::byte*>(wire.allocate(large + 64).address);
  wire.region_registered({.key = key,
                          .protection_domain = 1,
                          .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
                          .address = reinterpret_cast<std::uintptr_t>(memory),
                          .length = large + 64});
  wire.queue_pair_changed({.qpn = {2},
                           .connected_to = {1},
                           .protection_domain = 1,
                           .access = IBV_ACCESS_REMOTE_WRITE,
                           .generation = 1,
                           .receiving = true});
  return memory;
}

std::uint64_t load(const std::byte* word) {
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(word)))
      .load(std::memory_order_acquire);
}

void place(ShmWire& wire, Path& path, const Packet& packet, const void* from) {
  const Piece piece{static_cast<std::byte*>(const_cast<void*>(from)), packet.rdma.length, {}};
  if (!wire.place(path, packet, std::span(&piece, 1))) std::abort();
}

void send(ShmWire& wire, Path& path, std::byte* payload, std::uint32_t bytes) {
  const Packet packet = send_packet(bytes);
  const Piece piece{payload, bytes, {}};
  while (wire.send(path, packet, std::span(&piece, 1), Qpn{1}, now) == SendResult::full) {
  }
}

const InboundPacket& receive(ShmWire& wire) {
  const InboundPacket* inbound = nullptr;
  while (inbound == nullptr) inbound = wire.receive(now);
  return *inbound;
}

// Answers 8-byte writes that it sees by polling its memory, until one of all ones.
void answer_writes(ShmWire& wire, Path& back, const std::byte* memory, std::uint64_t client_memory) {
  const Packet answer = write_packet(client_memory, client_key, 8);
  for (std::uint64_t seen = 0; seen != UINT64_MAX;) {
    const std::uint64_t value = load(memory);
    if (value == seen) continue;
    seen = value;
    place(wire, back, answer, &value);
  }
}

// The other process: echoes sends of 8 bytes, swallows other sizes until one of 16 comes, which it echoes.
void serve(const std::string& directory, Board& board, int core) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  pin(core);
  const ibv_gid here = gid_of(2, 0);
  const auto wire = open_wire(directory, here);
  std::vector<std::unique_ptr<ShmWire>> silent;
  Path& back = wire->path_to(here, gid_of(1, 0));
  const std::byte* memory = open_memory(*wire, server_key);
  board.target.value = reinterpret_cast<std::uintptr_t>(memory);
  std::uint64_t seen = 0;
  board.stage.value = 1;
  while (board.ping.value.load() != UINT64_MAX) {
    const std::uint64_t ping = board.ping.value.load(std::memory_order_acquire);
    if (ping != seen) board.pong.value.store(seen = ping, std::memory_order_release);
  }
  std::byte payload[64]{};
  while (board.stop.value.load(std::memory_order_relaxed) == 0) {
    const std::uint64_t wanted = board.stage.value.load(std::memory_order_relaxed);
    if (wanted == 2) {
      board.stage.value = 3;
      answer_writes(*wire, back, memory, board.target.value);
    }
    while (wanted >= 100 && silent.size() < wanted - 100) {  // so many more devices that say one word and then nothing
      const ibv_gid gid = gid_of(3, static_cast<std::uint8_t>(silent.size()));
      silent.push_back(open_wire(directory, gid));
      send(*silent.back(), silent.back()->path_to(gid, gid_of(1, 0)), payload, 32);
    }
    const InboundPacket* inbound = wire->receive(now);
    if (inbound == nullptr) continue;
    const std::uint32_t bytes = inbound->packet.header.payload_bytes;
    wire->release();
    if (bytes == 8 || bytes == 16) send(*wire, back, payload, bytes);
  }
}

void measure_writes(ShmWire& wire, Path& path, Board& board, double handover) {
  const std::uint64_t target = board.target.value.load();
  const std::byte* memory = open_memory(wire, client_key);
  board.target.value = reinterpret_cast<std::uintptr_t>(memory);
  board.stage.value = 2;
  while (board.stage.value.load() != 3) {
  }
  const Packet small = write_packet(target, server_key, 8);
  std::uint64_t count = 0;
  const double half = time_of(20'000,
                              [&] {
                                ++count;
                                place(wire, path, small, &count);
                                while (load(memory) != count) {
                                }
                              }) /
                      2;
  fmt::print("8-byte write polled as memory      {:8.1f} ns  ({:.2f} handovers)\n", half, half / handover);
  count = UINT64_MAX;
  place(wire, path, small, &count);
  while (load(memory) != count) {
  }

  std::vector<std::byte> from(large, std::byte{1});
  std::vector<std::byte> to(large);
  const double plain = time_of(20, [&] { std::memcpy(to.data(), from.data(), large); });
  const Packet whole = write_packet(target + 64, server_key, large);
  const double placed = time_of(20, [&] { place(wire, path, whole, from.data()); });
  fmt::print("1 MiB: memcpy {:.1f} GB/s, write {:.1f} GB/s  ({:.2f} of memcpy)\n", static_cast<double>(large) / plain,
             static_cast<double>(large) / placed, plain / placed);
}

void measure(const std::string& directory, Board& board) {
  const ibv_gid here = gid_of(1, 0);
  const auto wire = open_wire(directory, here);
  while (board.stage.value.load() != 1) {
  }
  Path& path = wire->path_to(here, gid_of(2, 0));
  std::byte payload[64]{};

  std::uint64_t count = 0;
  const double handover = time_of(20'000,
                                  [&] {
                                    board.ping.value.store(++count, std::memory_order_release);
                                    while (board.pong.value.load(std::memory_order_acquire) != count) {
                                    }
                                  }) /
                          2;
  board.ping.value = UINT64_MAX;
  fmt::print("cache line handover                {:8.1f} ns\n", handover);

  const double half = time_of(20'000,
                              [&] {
                                send(*wire, path, payload, 8);
                                static_cast<void>(receive(*wire));
                                wire->release();
                              }) /
                      2;
  fmt::print("8-byte send, half round trip       {:8.1f} ns  ({:.2f} handovers)\n", half, half / handover);

  for (const std::uint32_t bytes : {7U, 24U, 64U}) {
    constexpr int stream = 100'000;
    const double each = time_of(1,
                                [&] {
                                  for (int i = 0; i < stream; ++i) send(*wire, path, payload, bytes);
                                  send(*wire, path, payload, 16);
                                  static_cast<void>(receive(*wire));
                                  wire->release();
                                }) /
                        stream;
    fmt::print("stream of {:2} bytes                 {:8.1f} ns  ({:.1f} M/s)\n", bytes, each, 1000 / each);
  }

  measure_writes(*wire, path, board, handover);

  for (const std::uint64_t silent : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{64}}) {
    board.stage.value = 100 + silent;
    for (std::uint64_t heard = 0; silent != 0 && heard < (silent == 1 ? 1 : 63); ++heard) {
      static_cast<void>(receive(*wire));
      wire->release();
    }
    for (int poll = 0; poll < 1'000'000; ++poll) static_cast<void>(wire->receive(now));
    const double poll = time_of(200'000, [&] { static_cast<void>(wire->receive(now)); });
    fmt::print("receive() with {:2} silent peers     {:8.1f} ns\n", silent, poll);
  }
  board.stop.value = 1;
}

}  // namespace

int main() {
  std::string directory = "/dev/shm/verbatim-bench-" + std::to_string(getpid());
  const auto [first, second] = two_cores();
  void* shared = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return EXIT_FAILURE;
  auto* board = new (shared) Board;
  const pid_t child = fork();
  if (child == 0) {
    serve(directory, *board, second);
    _exit(EXIT_SUCCESS);
  }
  pin(first);
  if (first == second) fmt::print("one core only: the numbers say nothing\n");
  measure(directory, *board);
  waitpid(child, nullptr, 0);
  std::filesystem::remove_all(directory);
  return EXIT_SUCCESS;
}
