// What carries packets between soft devices. The engine is written against this interface alone; sim/ and shm/
// implement it.
//
// `now` is as fresh as the engine's last look at its clock: good enough to limit how often something slow is tried.
//
// A wire may lose packets and is never asked whether it did. It never blocks. One engine owns one wire and calls it
// under the engine's lock (verbs/engine_lock.hpp), so a wire needs no lock of its own against its engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "device/soft/engine/packet.hpp"

namespace verbatim::soft {

// A piece of this process's memory, named by the key of the region it lies in. LKey 0 is memory of no region (inline
// data, held packets): it must be copied while the call lasts, never referred to.
struct Piece {
  std::byte* address = nullptr;
  std::uint32_t length = 0;
  LKey lkey{};
};

// The way to the device that owns a GID. Made and owned by the wire, lives as long as the wire. There is a Path even
// for a GID that nobody owns now: what is sent there is lost, until an owner appears.
class Path {
 protected:
  ~Path() = default;
};

enum class SendResult {
  sent,  // or lost on the way: the sender can't tell
  full,  // no room now: the engine keeps the packet's place and tries again on a later progress()
};

// A packet that arrived. Valid until release().
struct InboundPacket {
  Packet packet{};  // our own copy: the sender can't change it any more
  const std::byte* payload =
      nullptr;           // packet.header.payload_bytes of it, or nullptr when it must be fetched from the source
  Path* from = nullptr;  // leads back to the sender
};

// What peers may be told of a memory region, so that they can place and fetch without asking.
struct RegionView {
  std::uint32_t key = 0;  // rkey and lkey; the low 8 bits change each time the index (key >> 8) is used again
  std::uint32_t protection_domain = 0;
  std::uint32_t access = 0;  // IBV_ACCESS_*
  std::uint64_t address = 0;
  std::uint64_t length = 0;
};

// What peers may be told of a queue pair.
struct QueuePairView {
  Qpn qpn{};
  Qpn connected_to{};
  std::uint32_t protection_domain = 0;
  std::uint32_t access = 0;      // qp_access_flags
  std::uint32_t generation = 0;  // grows whenever requests are withdrawn (entering ERR or RESET): what a peer has not
                                 // fetched by then it may not deliver
  bool receiving = false;        // RTR, RTS, SQD: requests are executed
};

class Wire {
 public:
  virtual ~Wire() = default;

  // Control path. The way from our GID to another's.
  virtual Path& path_to(const ibv_gid& source, const ibv_gid& destination) = 0;

  // How many packets of the path MTU one send() may stand for (PacketHeader::packet_count); at least 1, and the same
  // for the life of the wire.
  [[nodiscard]] virtual std::uint32_t train_limit() const = 0;

  // Sends a packet whose payload is gathered from `pieces` (header.payload_bytes in all). Where pieces lie in
  // registered memory the wire may let the target fetch them later: until the request is completed or
  // queue_pair_changed() withdraws it, the memory stays as it is. `source` is the queue pair that sends.
  virtual SendResult send(Path& path, const Packet& packet, std::span<const Piece> pieces, Qpn source, Time now) = 0;

  // Puts a whole RDMA write into the target's memory at once, if the target's memory can be reached from here, its
  // region and queue pair allow it, and `packet` (a write, first and last, addressed by its RdmaHeader) would be
  // accepted. True: the bytes are there. A plain write is complete then; the target hears of its PSNs when something
  // else follows. The engine asks only if no earlier request of the queue pair is on its way unplaced.
  virtual bool place(Path& path, const Packet& packet, std::span<const Piece> pieces) = 0;

  // The oldest packet that has arrived, or nullptr. The same one until release().
  virtual const InboundPacket* receive(Time now) = 0;
  virtual void release() = 0;

  // Copies payload bytes [offset, offset + total of pieces) of the packet last received to `pieces`. False: the source
  // withdrew them or is gone; whatever was written is undefined and the packet counts as lost.
  virtual bool fetch(const InboundPacket& inbound, std::uint32_t offset, std::span<const Piece> pieces) = 0;

  // This device answers to these GIDs from now on. Throws Error(busy) if another live device has one of them.
  virtual void gids_changed(std::span<const ibv_gid> gids) = 0;

  // -- what peers are told ---------------------------------------------------------------------------------------
  virtual void region_registered(const RegionView& region) = 0;
  // Returns when no peer is placing into the region any more and none will.
  virtual void region_gone(std::uint32_t key) = 0;
  // Likewise: when `receiving` went from true to false, no peer places through this queue pair after the return.
  virtual void queue_pair_changed(const QueuePairView& queue_pair) = 0;
  virtual void queue_pair_gone(Qpn qpn) = 0;
};

}  // namespace verbatim::soft
