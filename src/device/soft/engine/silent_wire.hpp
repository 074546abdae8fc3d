// A wire that leads nowhere: what is left to a device that is not this process's.
#pragma once

#include "device/soft/engine/wire.hpp"

namespace verbatim::soft {

class SilentWire final : public Wire {
 public:
  Path& path_to(const ibv_gid&, const ibv_gid&) override { return nowhere_; }
  [[nodiscard]] std::uint32_t train_limit() const override { return 1; }
  SendResult send(Path&, const Packet&, std::span<const Piece>, Qpn, Time) override { return SendResult::sent; }
  bool place(Path&, const Packet&, std::span<const Piece>) override { return false; }
  const InboundPacket* receive(Time) override { return nullptr; }
  void release() override {}
  bool fetch(const InboundPacket&, std::uint32_t, std::span<const Piece>) override { return false; }
  void gids_changed(std::span<const ibv_gid>) override {}
  void region_registered(const RegionView&) override {}
  void region_gone(std::uint32_t) override {}
  void queue_pair_changed(const QueuePairView&) override {}
  void queue_pair_gone(Qpn) override {}

 private:
  struct Nowhere final : Path {};
  Nowhere nowhere_;
};

}  // namespace verbatim::soft
