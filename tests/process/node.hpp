// One process's end of what these tests do: a soft device of its own with memory, a completion queue and RC queue
// pairs.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "device/context.hpp"
#include "device/soft/config.hpp"

namespace verbatim::process {

// Throws std::runtime_error: in a child process it ends the body with a message.
void require(bool holds, std::string_view what);

[[nodiscard]] Time now();

// What a peer is told; plain data, so that it can lie in memory that processes share.
struct Address {
  ibv_gid gid;
  std::uint32_t qpn;
  std::uint32_t rkey;
  std::uint64_t memory;
};

struct NodeOptions {
  soft::DeviceConfig device;
  unsigned queue_pairs = 1;
  std::uint32_t depth = 64;     // of each queue
  std::size_t bytes = 1 << 20;  // of memory
  bool mappable = true;         // by peers, so that writes are placed; else memory of the program's own
  bool events = false;          // a completion channel
  std::uint8_t timeout = 14;    // 67 ms
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;  // for ever
};

class Node {
 public:
  // PSNs are drawn from here on both sides, the same for both directions.
  static constexpr std::uint32_t first_psn = 0xffff00;

  explicit Node(const NodeOptions& options);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  [[nodiscard]] device::Context& context() { return *context_; }
  [[nodiscard]] ibv_cq* cq() const { return cq_; }
  [[nodiscard]] ibv_comp_channel* channel() const { return channel_; }
  [[nodiscard]] ibv_qp* queue_pair(unsigned index = 0) const { return queue_pairs_[index]; }
  [[nodiscard]] std::byte* memory() const { return static_cast<std::byte*>(memory_.address); }
  [[nodiscard]] Address address(unsigned index = 0);

  // From INIT to RTS.
  void connect(const Address& peer, unsigned index = 0);
  // Through ERR and RESET to INIT.
  void recycle(unsigned index = 0);

  // 0 or an errno value. Lengths in bytes, offsets into the memory.
  int send(std::uint64_t id, std::size_t offset, std::uint32_t length, unsigned index = 0);
  int receive(std::uint64_t id, std::size_t offset, std::uint32_t length, unsigned index = 0);
  int write(std::uint64_t id, std::size_t offset, std::uint32_t length, const Address& peer, std::size_t peer_offset,
            unsigned index = 0);
  int read(std::uint64_t id, std::size_t offset, std::uint32_t length, const Address& peer, std::size_t peer_offset,
           unsigned index = 0);
  int fetch_add(std::uint64_t id, std::size_t offset, std::uint64_t add, const Address& peer, std::size_t peer_offset,
                unsigned index = 0);

  // The next completion, if there is one.
  [[nodiscard]] std::optional<ibv_wc> poll();
  // Polls until there is one; throws after `patience`.
  [[nodiscard]] ibv_wc wait(Duration patience);
  // The same, and it must be a success.
  void finish(std::uint64_t id, Duration patience);

 private:
  int post(ibv_send_wr& wr, std::size_t offset, std::uint32_t length, unsigned index);
  void to_init(ibv_qp* qp);

  NodeOptions options_;
  std::unique_ptr<device::Context> context_;
  std::vector<std::byte> own_memory_;
  device::Memory memory_;
  ibv_pd* pd_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  std::vector<ibv_qp*> queue_pairs_;
};

}  // namespace verbatim::process
