#include "device/soft/shm/registry.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <new>
#include <set>
#include <string_view>

#include "base/error.hpp"

namespace verbatim::soft::shm {
namespace {

constexpr std::string_view instance_prefix = "instance-";
constexpr std::string_view gid_prefix = "gid-";
constexpr std::string_view ring_prefix = "ring-";
constexpr std::string_view segment_prefix = "segment-";

// The part of an Instance that every version has.
struct InstanceHead {
  std::uint64_t magic;
  std::uint32_t version;
  std::int32_t pid;
  std::uint64_t start_time;
};
static_assert(sizeof(InstanceHead) == offsetof(Instance, id));

// The living owner of an instance file; nothing if it is gone or the file makes no sense.
std::optional<ProcessIdentity> living_owner(const OpenedFile& opened) {
  InstanceHead head{};
  if (!opened || ::pread(opened.file.number(), &head, sizeof head, 0) != sizeof head) return std::nullopt;
  const ProcessIdentity owner{head.pid, head.start_time};
  if (head.magic != instance_magic || !owner.alive()) return std::nullopt;
  return owner;
}

std::optional<InstanceId> parse_id(std::string_view text) {
  InstanceId id;
  if (text.size() != 16) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id.value, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return id;
}

}  // namespace

std::string instance_name(InstanceId id) {
  return fmt::format("{}{:016x}", instance_prefix, id.value);
}

std::string gid_name(const ibv_gid& gid) {
  std::string name(gid_prefix);
  for (const std::uint8_t byte : gid.raw) name += fmt::format("{:02x}", byte);
  return name;
}

std::string ring_name(InstanceId sender, InstanceId receiver) {
  return fmt::format("{}{:016x}-{:016x}", ring_prefix, sender.value, receiver.value);
}

std::string segment_name(InstanceId id, std::uint32_t serial) {
  return fmt::format("{}{:016x}-{:x}", segment_prefix, id.value, serial);
}

Mapping Registry::enter(InstanceId id, std::span<const ibv_gid> gids) const {
  const DirectoryLock lock(directory_);
  sweep_locked();
  for (const ibv_gid& gid : gids) refuse_taken(gid);
  const std::string name = instance_name(id);
  try {
    Mapping mapping = Mapping::shared(directory_.create(name, sizeof(Instance)), sizeof(Instance));
    auto* instance = new (mapping.data()) Instance;  // all zeros, as the file is
    const ProcessIdentity self = ProcessIdentity::self();
    instance->version = layout_version;
    instance->owner_pid = self.pid;
    instance->owner_start_time = self.start_time;
    instance->id = id.value;
    instance->magic = instance_magic;
    for (const ibv_gid& gid : gids) {
      if (!names(gid, id)) directory_.link(name, gid_name(gid));  // ports may share a GID
    }
    return mapping;
  } catch (...) {
    leave(id, gids);
    throw;
  }
}

void Registry::refuse_taken(const ibv_gid& gid) const {
  const std::string name = gid_name(gid);
  const std::string path = directory_.path() + "/" + name;
  switch (directory_.ownership(name)) {
    case Ownership::absent:
      return;
    case Ownership::foreign:
      throw Error(ErrorCode::permission,
                  fmt::format("{} belongs to another user; remove it or choose another directory or GID", path));
    case Ownership::ours:
      break;
  }
  const auto owner = living_owner(directory_.open(name));
  if (owner) {
    throw Error(ErrorCode::busy,
                fmt::format("the GID of {} is in use by process {}; close that one or give this device "
                            "another GID",
                            path, owner->pid));
  }
  directory_.remove(name);
}

void Registry::rename(InstanceId id, std::span<const ibv_gid> from, std::span<const ibv_gid> to) const {
  const DirectoryLock lock(directory_);
  try {
    for (const ibv_gid& gid : to) {
      if (names(gid, id)) continue;
      refuse_taken(gid);
      directory_.link(instance_name(id), gid_name(gid));
    }
  } catch (...) {
    remove_names(id, to, from);
    throw;
  }
  remove_names(id, from, to);
}

void Registry::leave(InstanceId id, std::span<const ibv_gid> gids) const noexcept {
  remove_names(id, gids, {});
  directory_.remove(instance_name(id));
}

bool Registry::names(const ibv_gid& gid, InstanceId id) const {
  const OpenedFile opened = directory_.open(gid_name(gid));
  std::uint64_t named = 0;
  return opened && ::pread(opened.file.number(), &named, sizeof named, offsetof(Instance, id)) == sizeof named &&
         named == id.value;
}

void Registry::remove_names(InstanceId id, std::span<const ibv_gid> gids,
                            std::span<const ibv_gid> except) const noexcept {
  for (const ibv_gid& gid : gids) {
    const bool kept = std::any_of(except.begin(), except.end(), [&](const ibv_gid& other) {
      return std::memcmp(gid.raw, other.raw, sizeof gid.raw) == 0;
    });
    if (!kept && names(gid, id)) directory_.remove(gid_name(gid));
  }
}

std::optional<Mapping> Registry::find(const std::string& name) const {
  const OpenedFile opened = directory_.open(name);
  if (opened.bytes < sizeof(Instance) || !living_owner(opened)) return std::nullopt;
  Mapping mapping = Mapping::shared(opened.file, sizeof(Instance));
  const auto* instance = reinterpret_cast<const Instance*>(mapping.data());
  if (instance->version != layout_version) return std::nullopt;
  if (instance->state.load(std::memory_order_acquire) != static_cast<std::uint32_t>(InstanceState::open)) {
    return std::nullopt;
  }
  return mapping;
}

void Registry::sweep() const {
  const DirectoryLock lock(directory_);
  sweep_locked();
}

void Registry::sweep_locked() const {
  const std::vector<std::string> names = directory_.list();
  std::set<InstanceId> living;
  for (const std::string_view name : names) {
    if (!name.starts_with(instance_prefix)) continue;
    const auto id = parse_id(name.substr(instance_prefix.size()));
    if (id && living_owner(directory_.open(std::string(name)))) living.insert(*id);
  }
  const auto lives = [&](std::string_view text) {
    const auto id = parse_id(text);
    return id && living.contains(*id);
  };
  const auto is_needed = [&](std::string_view name) {
    if (name.starts_with(instance_prefix)) return lives(name.substr(instance_prefix.size()));
    if (name.starts_with(gid_prefix)) return living_owner(directory_.open(std::string(name))).has_value();
    if (name.starts_with(segment_prefix)) return lives(name.substr(segment_prefix.size(), 16));
    if (name.starts_with(ring_prefix)) {
      const std::string_view ids = name.substr(ring_prefix.size());
      return ids.size() == 33 && lives(ids.substr(17));  // what a sender left behind is still read
    }
    return true;  // not ours to judge
  };
  for (const std::string& name : names) {
    if (!is_needed(name) && directory_.ownership(name) == Ownership::ours) directory_.remove(name);
  }
}

}  // namespace verbatim::soft::shm
