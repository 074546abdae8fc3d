// A wire whose other end is the test: what arrives is made up, what is sent is thrown away or comes back in.
#pragma once

#include <deque>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "device/soft/engine/wire.hpp"
#include "unit/soft_fuzz/arena.hpp"

namespace verbatim::soft::fuzz {

class FuzzWire final : public Wire {
 public:
  FuzzWire(const Arena& arena, std::uint64_t seed) : arena_(arena), random_(seed) {}

  // Lets a packet arrive, unless the check that every wire makes refuses it. `by_reference`: its payload is claimed,
  // not carried, so the header's length is all that is known of it. Whether it got through.
  bool inject(const Packet& packet, bool by_reference);
  // From now on what the engine sends comes back to it, nothing is lost or refused, and nothing else arrives.
  void loop_back() {
    loops_back_ = true;
    arrivals_.clear();
  }
  // What an engine did that no engine may do; empty if nothing.
  [[nodiscard]] const std::string& complaint() const { return complaint_; }
  std::uint32_t train = 1;            // train_limit()
  std::set<std::uint32_t> withdrawn;  // keys of regions that are no more

  Path& path_to(const ibv_gid&, const ibv_gid&) override { return path_; }
  [[nodiscard]] std::uint32_t train_limit() const override { return train; }
  SendResult send(Path& path, const Packet& packet, std::span<const Piece> pieces, Qpn source, Time now) override;
  bool place(Path&, const Packet&, std::span<const Piece>) override { return !loops_back_ && random_.chance(0.3); }
  const InboundPacket* receive(Time) override { return arrivals_.empty() ? nullptr : &arrivals_.front().inbound; }
  void release() override { arrivals_.pop_front(); }
  bool fetch(const InboundPacket& inbound, std::uint32_t offset, std::span<const Piece> pieces) override;
  void gids_changed(std::span<const ibv_gid>) override {}
  void region_registered(const RegionView&) override {}
  void region_gone(std::uint32_t) override {}
  void queue_pair_changed(const QueuePairView&) override {}
  void queue_pair_gone(Qpn) override {}

 private:
  struct FuzzPath final : Path {};
  struct Arrival {
    InboundPacket inbound;
    std::vector<std::byte> payload;  // empty: made up when it is fetched
  };
  void complain(const std::string& about) {
    if (complaint_.empty()) complaint_ = about;
  }

  const Arena& arena_;
  Random random_;
  FuzzPath path_;
  std::deque<Arrival> arrivals_;
  bool loops_back_ = false;
  std::string complaint_;
};

}  // namespace verbatim::soft::fuzz
