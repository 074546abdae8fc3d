#include "device/soft/sim/sim_wire.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.hpp"
#include "device/soft/engine/pieces.hpp"

namespace verbatim::soft {

SimWire::~SimWire() {
  std::erase_if(network_.owners_, [&](const auto& owner) { return owner.second == this; });
  for (auto& [gid, other] : network_.owners_) {
    for (Flight& flight : other->arrivals_) {
      if (flight.source == this) flight.source = nullptr;
    }
  }
}

Path& SimWire::path_to(const ibv_gid& source, const ibv_gid& destination) {
  const auto key = std::make_pair(std::make_pair(source.global.subnet_prefix, source.global.interface_id),
                                  std::make_pair(destination.global.subnet_prefix, destination.global.interface_id));
  auto& path = paths_[key];
  if (!path) {
    path = std::make_unique<SimPath>();
    path->source = source;
    path->destination = destination;
  }
  return *path;
}

SendResult SimWire::send(Path& path, const Packet& packet, std::span<const Piece> pieces, Qpn source, Time) {
  const auto& way = static_cast<SimPath&>(path);
  const auto owner = network_.owners_.find(way.destination);
  if (owner == network_.owners_.end()) return SendResult::sent;
  SimWire& target = *owner->second;
  Flight flight{.time = network_.now() + network_.options_.latency,
                .inbound = {.packet = packet, .payload = nullptr, .from = &target.path_to(way.destination, way.source)},
                .source = this,
                .source_qpn = source.value,
                .source_generation = generations_[source.value],
                .pieces = {pieces.begin(), pieces.end()},
                .copied = {}};
  if (std::any_of(pieces.begin(), pieces.end(), [](const Piece& piece) { return piece.lkey == LKey{}; })) {
    flight.copied.resize(packet.header.payload_bytes);
    gather(pieces, flight.copied.data());
    flight.pieces.clear();
  }
  target.arrivals_.push_back(std::move(flight));
  return SendResult::sent;
}

const InboundPacket* SimWire::receive(Time) {
  while (!arrivals_.empty() && arrivals_.front().time <= network_.now()) {
    Flight& flight = arrivals_.front();
    const std::size_t available =
        std::accumulate(flight.pieces.begin(), flight.pieces.end(), flight.copied.size(),
                        [](std::size_t sum, const Piece& piece) { return sum + piece.length; });
    if (refuse(flight.inbound.packet.header, available) == nullptr) {
      flight.inbound.payload = flight.copied.empty() ? nullptr : flight.copied.data();
      return &flight.inbound;
    }
    arrivals_.pop_front();
  }
  return nullptr;
}

// The source has neither withdrawn the request nor deregistered the memory.
bool SimWire::still_stands(const Flight& flight) const {
  if (flight.source == nullptr) return false;
  const auto generation = flight.source->generations_.find(flight.source_qpn);
  if (generation == flight.source->generations_.end() || generation->second != flight.source_generation) return false;
  return std::all_of(flight.pieces.begin(), flight.pieces.end(), [&](const Piece& piece) {
    return piece.length == 0 || flight.source->regions_.contains(piece.lkey.value);
  });
}

bool SimWire::fetch(const InboundPacket& inbound, std::uint32_t offset, std::span<const Piece> pieces) {
  if (inbound.payload != nullptr) {
    scatter(pieces, inbound.payload + offset);
    return true;
  }
  const Flight& flight = arrivals_.front();
  if (!still_stands(flight)) return false;
  const std::size_t bytes = std::accumulate(pieces.begin(), pieces.end(), std::size_t{0},
                                            [](std::size_t sum, const Piece& piece) { return sum + piece.length; });
  // Through a copy: source and target may overlap when a device talks to itself.
  std::vector<std::byte> payload(bytes);
  gather(PieceRange(flight.pieces, offset, bytes).pieces(), payload.data());
  scatter(pieces, payload.data());
  return true;
}

void SimWire::gids_changed(std::span<const ibv_gid> gids) {
  for (const ibv_gid& gid : gids) {
    const auto owner = network_.owners_.find(gid);
    if (owner != network_.owners_.end() && owner->second != this) {
      throw Error(ErrorCode::busy, "simulated network: another device answers to this GID; give each device its own");
    }
  }
  std::erase_if(network_.owners_, [&](const auto& owner) { return owner.second == this; });
  for (const ibv_gid& gid : gids) network_.owners_[gid] = this;
}

}  // namespace verbatim::soft
