#include "device/soft/shm/paths.hpp"

#include <fmt/format.h>

#include <cstring>

#include "base/error.hpp"
#include "base/log.hpp"

namespace verbatim::soft::shm {
namespace {

// A path lives as long as its wire; this bounds what a stream of short-lived peers with random GIDs can leave behind.
constexpr std::size_t max_paths = 1U << 20;

}  // namespace

bool Paths::GidOrder::operator()(const ibv_gid& a, const ibv_gid& b) const {
  return std::memcmp(a.raw, b.raw, sizeof a.raw) < 0;
}

ShmPath& Paths::path(const ibv_gid& gid) {
  const auto found = paths_.find(gid);
  if (found != paths_.end()) return *found->second;
  if (paths_.size() >= max_paths) {
    throw Error(ErrorCode::no_space,
                fmt::format("{} of {} paths to GIDs are used; open the device anew", paths_.size(), max_paths));
  }
  return *paths_.emplace(gid, std::make_unique<ShmPath>(gid)).first->second;
}

Peer* Paths::resolve(ShmPath& path) {
  if (path.peer != nullptr) return path.peer;
  std::optional<Mapping> instance = self_.registry->find(path.gid);
  if (!instance) return nullptr;
  path.peer = &connect(std::move(*instance));
  return path.peer;
}

Peer* Paths::try_resolve(ShmPath& path) {
  try {
    return resolve(path);
  } catch (const Error& error) {
    log().warn("{}: no way to it: {}", gid_name(path.gid), error.what());
    return nullptr;
  }
}

Peer* Paths::try_resolve(ShmPath& path, Time now) {
  if (now < path.resolve_at) return nullptr;
  path.resolve_at = now + ShmPath::resolve_interval;
  return try_resolve(path);
}

Peer& Paths::connect(Mapping instance) {
  const InstanceId id{reinterpret_cast<const Instance*>(instance.data())->id};
  std::unique_ptr<Peer>& peer = peers_[id];
  try {
    if (!peer) peer = std::make_unique<Peer>(self_, std::move(instance));
  } catch (...) {
    peers_.erase(id);
    throw;
  }
  return *peer;
}

ShmPath& Paths::heard_from(const ibv_gid& gid, InstanceId sender) {
  ShmPath& found = path(gid);
  if (found.peer == nullptr || found.peer->id() != sender) {
    found.peer = nullptr;
    found.resolve_at = Time::min();
  }
  return found;
}

void Paths::drop_dead(const Peer* keep, ProcessRoll& roll) {
  for (auto next = peers_.begin(); next != peers_.end();) {
    Peer& peer = *(next++)->second;
    peer.segments().drop_stale(peer.instance());
    const bool alive = roll.alive(peer.process()) && peer.device_open();
    if (&peer != keep && !alive) drop(peer);
  }
}

void Paths::drop(Peer& peer) {
  for (auto& [gid, path] : paths_) {
    if (path->peer == &peer) path->peer = nullptr;
  }
  peers_.erase(peer.id());
}

void Paths::forked() {
  for (auto& [id, peer] : peers_) peer->forked();
}

}  // namespace verbatim::soft::shm
