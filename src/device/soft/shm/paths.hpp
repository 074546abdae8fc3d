// The ways out: one Path for each GID that was ever asked for or heard from, and the peers they lead to.
#pragma once

#include <map>
#include <memory>

#include "device/soft/engine/wire.hpp"
#include "device/soft/shm/peer.hpp"

namespace verbatim::soft::shm {

struct ShmPath final : Path {
  explicit ShmPath(const ibv_gid& of) : gid(of) {}
  ibv_gid gid;
  Peer* peer = nullptr;           // nobody, as far as we know, owns the GID now
  Time resolve_at = Time::min();  // not looked up again before
  Time check_at = Time::min();    // while there is no room, whether the peer lives is not asked again before

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

  // Drops peers that are gone, except `keep`. Looks at peers_per_check of them in turn.
  void drop_dead(const Peer* keep);
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
  InstanceId last_checked_;
};

}  // namespace verbatim::soft::shm
