// The ways out: one Path for each GID that was ever asked for or heard from, and the peers they lead to.
#pragma once

#include <map>
#include <memory>

#include "device/soft/engine/wire.hpp"
#include "device/soft/shm/peer.hpp"
#include "device/soft/shm/process_roll.hpp"

namespace verbatim::soft::shm {

struct ShmPath final : Path {
  explicit ShmPath(const ibv_gid& of) : gid(of) {}
  ibv_gid gid;
  Peer* peer = nullptr;           // nobody, as far as we know, owns the GID now
  Time resolve_at = Time::min();  // not looked up again before
  // While there is no room: the peer is not looked at again before, and where the ring stood when it was.
  Time check_at = Time::min();
  std::uint64_t checked_position = UINT64_MAX;

  static constexpr Duration resolve_interval = std::chrono::milliseconds(10);
  static constexpr Duration check_interval = std::chrono::milliseconds(10);
};

class Paths {
 public:
  explicit Paths(const Self& self) : self_(self) {}

  // The path to a GID, made if there is none. Throws Error(no_space) beyond max_paths.
  [[nodiscard]] ShmPath& path(const ibv_gid& gid);

  // Looks for the owner of the path's GID and connects to it. Null if there is none. Throws Error as Peer does.
  Peer* resolve(ShmPath& path);
  // The same without throwing: what failed is logged.
  Peer* try_resolve(ShmPath& path);
  // The same on the way of a packet: not more often than every ShmPath::resolve_interval.
  Peer* try_resolve(ShmPath& path, Time now);

  // An instance with this GID has announced itself: the way back. Another instance that the path led to is forgotten.
  [[nodiscard]] ShmPath& heard_from(const ibv_gid& gid, InstanceId sender);

  // Drops peers that are gone, except `keep`.
  void drop_dead(const Peer* keep, ProcessRoll& roll);
  void drop(Peer& peer);
  // In a forked child: peers stay connected, to the parent.
  void forked();

  [[nodiscard]] std::size_t peers() const { return peers_.size(); }

 private:
  struct GidOrder {
    bool operator()(const ibv_gid& a, const ibv_gid& b) const;
  };
  Peer& connect(Mapping instance);

  const Self& self_;
  std::map<ibv_gid, std::unique_ptr<ShmPath>, GidOrder> paths_;
  std::map<InstanceId, std::unique_ptr<Peer>> peers_;
};

}  // namespace verbatim::soft::shm
