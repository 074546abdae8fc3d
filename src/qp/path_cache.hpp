// What a queue pair was connected with, kept by us: in ERR a device gives back nothing to trust but the state, and
// after RESET nothing at all. From it comes a re-connect with fresh PSNs.
//
// Table indices are only good for the moment: a GID or a P_Key can move to another index or leave the table. So the
// values behind them are kept as well, and looked up again before they are used.
//
// An alternate path is not part of a re-connect: after a migration the device, not we, knows which of the two is in
// use.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <span>

#include "base/ids.hpp"
#include "device/gid.hpp"
#include "qp/modification.hpp"

namespace verbatim::qp {

// One entry of a port's GID table, whatever its index.
struct SourceGid {
  device::Gid gid;
  device::GidType type = device::GidType::infiniband;  // the same GID can stand there for RoCE v1 and v2

  [[nodiscard]] static SourceGid of(const ibv_gid_entry& entry);
  friend bool operator==(const SourceGid&, const SourceGid&) = default;
};

class PathCache {
 public:
  // One of the types that the transition table knows.
  explicit PathCache(ibv_qp_type type) : type_(type) {}

  // A modify that succeeded. Later values replace earlier ones. Indices in it make the values behind the old ones void.
  void remember(const Modification& done);
  // The values behind the indices in use.
  void keep_source_gid(const SourceGid& source) { source_gid_ = source; }
  void keep_pkey(std::uint16_t pkey) { pkey_ = pkey; }

  // Everything remembered, and which of it is known.
  [[nodiscard]] const Modification& attributes() const { return attributes_; }
  // Nothing where no index was given, or its value could not be read.
  [[nodiscard]] const std::optional<SourceGid>& source_gid() const { return source_gid_; }
  [[nodiscard]] std::optional<std::uint16_t> pkey() const { return pkey_; }

  // The required attributes of each step as they were last. They throw Error(invalid_argument) if the queue pair never
  // came that far, and Error(not_found) if the GID or the P_Key is no longer in the port's table.
  // `pkeys`: the table of the queue pair's port, by index, host byte order.
  [[nodiscard]] Modification reset_to_init(std::span<const std::uint16_t> pkeys) const;
  // `gids`: the entries of all ports, as ibv_query_gid_table gives them.
  [[nodiscard]] Modification init_to_rtr(Psn first_expected, std::span<const ibv_gid_entry> gids) const;
  [[nodiscard]] Modification rtr_to_rts(Psn first_sent) const;

 private:
  [[nodiscard]] Modification replay(ibv_qp_state from, ibv_qp_state to) const;

  ibv_qp_type type_;
  Modification attributes_;
  std::optional<SourceGid> source_gid_;
  std::optional<std::uint16_t> pkey_;
};

// The entry of a port by index; nullptr if it is empty.
[[nodiscard]] const ibv_gid_entry* find_gid(std::span<const ibv_gid_entry> gids, PortNumber port, std::uint32_t index);

}  // namespace verbatim::qp
