// Copies a referred payload from its owner's memory: through our own mapping of it, or with process_vm_readv.
#pragma once

#include <span>

#include "device/soft/engine/wire.hpp"
#include "device/soft/shm/peer.hpp"
#include "device/soft/shm/reference.hpp"

namespace verbatim::soft::shm {

// Copies payload bytes from `offset` on to `pieces`. False if the source is gone or took it back at any moment until
// the copy was complete: its queue pair `source` has another generation, or a region it lies in does not stand any
// more.
[[nodiscard]] bool fetch_referred(Peer& peer, Qpn source, const Reference& reference, std::uint32_t offset,
                                  std::span<const Piece> pieces);

}  // namespace verbatim::soft::shm
