// RDMA writes straight into a peer's mapped memory, and the wait of an owner who takes the permission back.
#pragma once

#include <span>

#include "device/soft/engine/wire.hpp"
#include "device/soft/shm/peer.hpp"

namespace verbatim::soft::shm {

// Copies a whole RDMA write to where `packet` says, if the peer's tables allow it. False: nothing was written.
[[nodiscard]] bool place_write(Peer& peer, const Packet& packet, std::span<const Piece> pieces);

// After a table entry was withdrawn: return once no peer copies any more on the strength of it. Dead peers are not
// waited for. False if a living one (stopped, as a rule) has not finished within placement_wait_limit.
[[nodiscard]] bool wait_for_placements_into(Instance& instance, std::uint32_t key);
[[nodiscard]] bool wait_for_placements_through(Instance& instance, Qpn qpn);

}  // namespace verbatim::soft::shm
