// The wire between soft devices of processes on one host: packets travel through shared memory, with no daemon, no
// privileges, and no system call or other thread between two sides that both poll.
//
// Called under the engine's lock, except where a comment says otherwise.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <span>
#include <vector>

#include "device/soft/config.hpp"
#include "device/soft/engine/wire.hpp"
#include "device/soft/shm/inbound_rings.hpp"
#include "device/soft/shm/paths.hpp"
#include "device/soft/shm/registry.hpp"

namespace verbatim::soft::shm {

class ShmWire final : public Wire {
 public:
  // Enters the device under these GIDs, of which peers may know any. Throws Error: busy (a living process has one of
  // them), permission, no_space, invalid_argument (config).
  ShmWire(const DeviceConfig& config, std::span<const ibv_gid> gids);
  // Peers see a device that went silent. In a forked child nothing happens: the device is the parent's.
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

  // Looks for dead peers and lets go of what they held. To be called now and then; costs system calls.
  void keep_house(Time now);

  struct Counters {
    std::uint64_t packets_lost = 0;     // sent to nobody
    std::uint64_t packets_refused = 0;  // arrived and made no sense
    std::uint64_t rings_abandoned = 0;  // made no sense as a whole
    std::uint64_t peers_refused = 0;    // announced a ring that could not be used
    std::uint64_t fetches_failed = 0;   // payload withdrawn before it was copied
  };
  [[nodiscard]] Counters counters() const;
  [[nodiscard]] InstanceId id() const { return self_.id; }

 private:
  SendResult send_without_room(ShmPath& path, Time now);
  bool take(InboundRing& ring, std::uint64_t word);
  void drop_packet(InboundRing& ring, std::uint64_t word, bool sane);

  // Where packet data starts to be looked at on each receive(): what a poll needs stands together.
  InboundRings inbound_rings_;
  InboundRing* holding_ = nullptr;  // ring of the packet between receive() and release()
  std::uint32_t holding_slots_ = 0;
  InboundPacket inbound_{};
  std::uint32_t train_limit_;
  Counters counters_;

  std::vector<ibv_gid> gids_;
  Registry registry_;
  Mapping instance_mapping_;
  Self self_;
  Paths paths_;
};

}  // namespace verbatim::soft::shm
