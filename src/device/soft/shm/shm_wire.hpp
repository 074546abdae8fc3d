// The wire between soft devices of processes on one host: packets travel through shared memory, with no daemon, no
// privileges, and no system call or other thread between two sides that both poll.
//
// Called under the engine's lock, except where a comment says otherwise.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device/soft/config.hpp"
#include "device/soft/engine/wire.hpp"
#include "device/soft/shm/arena.hpp"
#include "device/soft/shm/inbound_rings.hpp"
#include "device/soft/shm/paths.hpp"
#include "device/soft/shm/reference.hpp"
#include "device/soft/shm/registry.hpp"

namespace verbatim::soft::shm {

// Bits.
namespace errand {
inline constexpr std::uint32_t keep_house = 1 << 0;
inline constexpr std::uint32_t stand_by = 1 << 1;  // nobody polls: have peers wake the helper
}  // namespace errand

class ShmWire final : public Wire {
 public:
  // Enters the device under these GIDs, of which peers may know any. Throws Error: busy (a living process has one of
  // them), permission, no_space, invalid_argument (config).
  ShmWire(const DeviceConfig& config, std::span<const ibv_gid> gids);
  // Peers see a device that went silent.
  ~ShmWire() override;
  ShmWire(const ShmWire&) = delete;
  ShmWire& operator=(const ShmWire&) = delete;

  // Throws Error if the owner of `destination` has no slot left for us or there is no space for a ring.
  Path& path_to(const ibv_gid& source, const ibv_gid& destination) override;
  [[nodiscard]] std::uint32_t train_limit() const override { return train_limit_; }
  SendResult send(Path& path, const Packet& packet, std::span<const Piece> pieces, Qpn source, Time now) override;
  bool place(Path& path, const Packet& packet, std::span<const Piece> pieces) override;
  const InboundPacket* receive(Time now) override;
  void release() override;
  bool fetch(const InboundPacket& inbound, std::uint32_t offset, std::span<const Piece> pieces) override;
  void gids_changed(std::span<const ibv_gid> gids) override;
  void region_registered(const RegionView& region) override;
  void region_gone(std::uint32_t key) override;
  void queue_pair_changed(const QueuePairView& queue_pair) override;
  void queue_pair_gone(Qpn qpn) override;

  // As device::Context's: memory that peers can map, so that place() and fetch() are a plain copy.
  [[nodiscard]] device::Memory allocate(std::size_t bytes) { return arena_.allocate(bytes); }
  void deallocate(const device::Memory& memory) { arena_.release(memory); }

  // In a forked child: the instance, its files and its connections are the parent's. From here on only the destructor
  // may be called, which lets go of the child's mappings of them.
  void forked();

  // Lets go of what dead peers held. On the way of receive(), when the helper has looked for them; else only while
  // there is no helper.
  void keep_house();

  // -- for the helper, without the engine's lock -------------------------------------------------------------------
  // What receive() does on the side, once, when nothing has arrived. Bits of Errand.
  void request(std::uint32_t errands) { errands_.fetch_or(errands, std::memory_order_relaxed); }
  void cancel(std::uint32_t errands) { errands_.fetch_and(~errands, std::memory_order_relaxed); }
  // Looks which peers have died, and has receive() keep house then. Costs system calls.
  void request_house_keeping();
  // Calls of receive() so far; packets taken so far.
  [[nodiscard]] std::uint64_t polls() const { return inbound_rings_.polls(); }
  [[nodiscard]] std::uint64_t arrivals() const { return arrivals_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool takes_part_in_barriers() const { return self_.takes_part_in_barriers; }
  [[nodiscard]] std::atomic<std::uint32_t>& sleep_word() { return self_.instance->sleeping; }
  // When a helper that stands by will look again by itself; `never` also while it does not.
  void set_plan(Time plan) { plan_.store(plan.time_since_epoch().count(), std::memory_order_release); }
  [[nodiscard]] Time plan() const { return Time(Duration(plan_.load(std::memory_order_acquire))); }

  struct Counters {
    std::uint64_t packets_lost = 0;           // sent to nobody
    std::uint64_t packets_refused = 0;        // arrived and made no sense
    std::uint64_t rings_abandoned = 0;        // made no sense as a whole
    std::uint64_t peers_refused = 0;          // announced a ring that could not be used
    std::uint64_t fetches_failed = 0;         // payload withdrawn before it was copied
    std::uint64_t placements_unfinished = 0;  // a peer was still writing when the wait for it ran out
  };
  [[nodiscard]] Counters counters() const;
  [[nodiscard]] InstanceId id() const { return self_.id; }

 private:
  // The generation of the sending queue pair, if a payload may stay here until the peer fetches it.
  [[nodiscard]] std::optional<std::uint32_t> may_refer(const Peer& peer, const PacketHeader& header,
                                                       std::span<const Piece> pieces) const;
  SendResult send_reference(ShmPath& path, const Packet& packet, std::span<const Piece> pieces,
                            std::uint32_t generation, Time now);
  void finish(Peer& peer, std::uint32_t slots, PayloadForm form);
  SendResult send_without_room(ShmPath& path, Time now);
  void run_errands();
  void stand_by();
  bool take(InboundRing& ring, std::uint64_t word);
  [[nodiscard]] const char* take_payload(PayloadForm form, const std::byte* bytes, std::size_t available);

  // Where packet data starts to be looked at on each receive(): what a poll needs stands together.
  InboundRings inbound_rings_;
  InboundRing* holding_ = nullptr;  // ring of the packet between receive() and release()
  std::uint32_t holding_slots_ = 0;
  std::atomic<std::uint32_t> errands_{0};
  std::atomic<std::uint64_t> arrivals_{0};
  std::atomic<Time::rep> plan_{never.time_since_epoch().count()};
  InboundPacket inbound_{};
  Reference reference_{};  // of inbound_, if its payload is to be fetched
  std::uint32_t train_limit_;
  bool payload_by_reference_;
  Counters counters_;

  // receive()'s while it is to keep house, else the helper's.
  ProcessRoll roll_;

  std::vector<ibv_gid> gids_;
  Registry registry_;
  Mapping instance_mapping_;
  Self self_;
  Paths paths_;
  Arena arena_;
};

}  // namespace verbatim::soft::shm
