// Who is here: opened devices by id and by GID, as files of a directory. A dead owner's files are swept away whenever a
// device is opened, so that crash loops leave nothing behind.
#pragma once

#include <infiniband/verbs.h>

#include <optional>
#include <span>
#include <string>

#include "device/soft/shm/directory.hpp"
#include "device/soft/shm/layout.hpp"

namespace verbatim::soft::shm {

[[nodiscard]] std::string instance_name(InstanceId id);
[[nodiscard]] std::string gid_name(const ibv_gid& gid);
[[nodiscard]] std::string ring_name(InstanceId sender, InstanceId receiver);
[[nodiscard]] std::string segment_name(InstanceId id, std::uint32_t serial);

class Registry {
 public:
  // As Directory's constructor.
  explicit Registry(const std::string& directory) : directory_(directory) {}

  // Makes the file of a device that this process opens, in state `opening`, and gives it these GIDs. Throws Error: busy
  // with the pid if a living process has one of them, permission if another user has, no_space.
  [[nodiscard]] Mapping enter(InstanceId id, std::span<const ibv_gid> gids) const;
  // `id` is known under `to` instead of `from`. Throws as enter(), and then nothing has changed.
  void rename(InstanceId id, std::span<const ibv_gid> from, std::span<const ibv_gid> to) const;
  // Removes every name that `id` has.
  void leave(InstanceId id, std::span<const ibv_gid> gids) const noexcept;

  // The instance of a living owner, open for peers, mapped. Empty if there is none. Throws Error if mapping fails.
  [[nodiscard]] std::optional<Mapping> find(const ibv_gid& gid) const { return find(gid_name(gid)); }
  [[nodiscard]] std::optional<Mapping> find(InstanceId id) const { return find(instance_name(id)); }

  // Removes the files of owners that are gone, and whatever else in our names can't be believed. Other users' files
  // stay.
  void sweep() const;

  [[nodiscard]] const Directory& directory() const { return directory_; }

 private:
  [[nodiscard]] std::optional<Mapping> find(const std::string& name) const;
  void sweep_locked() const;
  void refuse_taken(const ibv_gid& gid) const;
  [[nodiscard]] bool names(const ibv_gid& gid, InstanceId id) const;
  void remove_names(InstanceId id, std::span<const ibv_gid> gids, std::span<const ibv_gid> except) const noexcept;

  Directory directory_;
};

}  // namespace verbatim::soft::shm
