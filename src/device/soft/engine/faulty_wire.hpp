// A wire that loses, repeats, delays and damages packets as a plan says, in front of a wire that does not.
//
// Packets are struck where they are sent. With a plan in force every packet carries one path MTU and is copied, so that
// what is held back does not change under it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "device/soft/engine/fault_plan.hpp"
#include "device/soft/engine/wire.hpp"

namespace verbatim::soft {

class FaultyWire final : public Wire {
 public:
  // Packets held back at one time at most; beyond it they are lost.
  static constexpr std::size_t max_held = 4096;

  FaultyWire(Wire& inner, const std::vector<PacketRule>& rules, const Clock& clock, std::uint64_t seed);

  Path& path_to(const ibv_gid& source, const ibv_gid& destination) override {
    return inner_.path_to(source, destination);
  }
  [[nodiscard]] std::uint32_t train_limit() const override { return 1; }
  SendResult send(Path& path, const Packet& packet, std::span<const Piece> pieces, Qpn source, Time now) override;
  bool place(Path&, const Packet&, std::span<const Piece>) override { return false; }
  const InboundPacket* receive(Time now) override;
  void release() override { inner_.release(); }
  bool fetch(const InboundPacket& inbound, std::uint32_t offset, std::span<const Piece> pieces) override {
    return inner_.fetch(inbound, offset, pieces);
  }
  void gids_changed(std::span<const ibv_gid> gids) override { inner_.gids_changed(gids); }
  void region_registered(const RegionView& region) override { inner_.region_registered(region); }
  void region_gone(std::uint32_t key) override { inner_.region_gone(key); }
  void queue_pair_changed(const QueuePairView& queue_pair) override { inner_.queue_pair_changed(queue_pair); }
  void queue_pair_gone(Qpn qpn) override { inner_.queue_pair_gone(qpn); }

  // When the next held packet leaves; never if none is held.
  [[nodiscard]] Time next_release() const;

 private:
  struct Rule {
    PacketRule rule;
    std::uint64_t matches = 0;
    std::uint64_t strikes = 0;
  };
  struct Held {
    Time release;
    Path* path;
    Packet packet;
    std::vector<std::byte> payload;
    Qpn source;
  };
  bool strikes(Rule& rule, const Packet& packet, Qpn source);
  void hold(Path& path, const Packet& packet, std::span<const Piece> pieces, Qpn source, Time until);
  SendResult send_damaged(Path& path, const Packet& packet, std::span<const Piece> pieces, Qpn source, Time now);
  void release_due(Time now);

  Wire& inner_;
  std::vector<Rule> rules_;
  const Clock& clock_;
  Random random_;
  std::vector<Held> held_;
};

}  // namespace verbatim::soft
