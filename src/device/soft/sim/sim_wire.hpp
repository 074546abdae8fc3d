// One device's end of the simulated network. Payload is read when a packet is delivered, not when it is posted: whoever
// reuses a buffer too early finds out.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "device/soft/engine/wire.hpp"
#include "device/soft/sim/network.hpp"

namespace verbatim::soft {

class SimWire final : public Wire {
 public:
  explicit SimWire(SimNetwork& network) : network_(network) {}
  ~SimWire() override;

  Path& path_to(const ibv_gid& source, const ibv_gid& destination) override;
  [[nodiscard]] std::uint32_t train_limit() const override { return network_.options_.train_limit; }
  SendResult send(Path& path, const Packet& packet, std::span<const Piece> pieces, Qpn source, Time now) override;
  bool place(Path&, const Packet&, std::span<const Piece>) override { return false; }
  const InboundPacket* receive(Time now) override;
  void release() override { arrivals_.pop_front(); }
  bool fetch(const InboundPacket& inbound, std::uint32_t offset, std::span<const Piece> pieces) override;
  void gids_changed(std::span<const ibv_gid> gids) override;
  void region_registered(const RegionView& region) override { regions_[region.key] = region; }
  void region_gone(std::uint32_t key) override { regions_.erase(key); }
  void queue_pair_changed(const QueuePairView& view) override { generations_[view.qpn.value] = view.generation; }
  void queue_pair_gone(Qpn qpn) override { generations_.erase(qpn.value); }

  [[nodiscard]] Time next_arrival() const { return arrivals_.empty() ? never : arrivals_.front().time; }

 private:
  struct SimPath final : Path {
    ibv_gid source{};
    ibv_gid destination{};
  };
  struct Flight {
    Time time;
    InboundPacket inbound;
    SimWire* source;  // nullptr once the source is closed
    std::uint32_t source_qpn;
    std::uint32_t source_generation;
    std::vector<Piece> pieces;      // where the payload is read from on delivery …
    std::vector<std::byte> copied;  // … or the payload itself, if it lies in no region
  };
  [[nodiscard]] bool still_stands(const Flight& flight) const;

  SimNetwork& network_;
  std::map<std::pair<std::pair<std::uint64_t, std::uint64_t>, std::pair<std::uint64_t, std::uint64_t>>,
           std::unique_ptr<SimPath>>
      paths_;
  std::deque<Flight> arrivals_;
  std::map<std::uint32_t, RegionView> regions_;
  std::map<std::uint32_t, std::uint32_t> generations_;
};

}  // namespace verbatim::soft
