// A wire inside one thread that can do what the simulated network does not: place writes without the target's help, be
// full, lose a packet of one's choice, and show every packet that was sent.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "device/soft/default_gids.hpp"
#include "device/soft/engine/pieces.hpp"
#include "device/soft/engine/wire.hpp"
#include "device/soft/verbs/soft_context.hpp"

namespace verbatim::soft::testing {

class HubWire;

class Hub {
 public:
  // Devices on the hub; they must be closed before it goes. Packets arrive when the target is polled.
  std::unique_ptr<device::Context> open(DeviceConfig config);

  // One turn of every device, timers included.
  void turn() {
    for (SoftContext* context : contexts_) (void)context->progress_for_application();
  }
  // Lets time pass up to the next timer, and it fire.
  void run_timers() {
    Time next = never;
    for (SoftContext* context : contexts_) next = std::min(next, context->next_deadline());
    if (next != never) clock.advance_to(next);
    turn();
  }

  VirtualClock clock;
  bool places = false;                                        // whether writes can be placed
  std::function<bool(Qpn)> full = [](Qpn) { return false; };  // no room for a packet of this queue pair, which is told
  std::uint32_t train_limit = 64;                             // packets
  std::function<bool(const PacketHeader&)> loses = [](const PacketHeader&) { return false; };
  bool records = true;
  std::vector<PacketHeader> sent;  // every packet, in order, lost ones too

 private:
  friend class HubWire;
  struct Arrival {
    Packet packet;
    std::vector<std::byte> payload;
    ibv_gid source;
    ibv_gid destination;
  };
  std::vector<HubWire*> wires_;
  std::vector<SoftContext*> contexts_;
};

class HubWire final : public Wire {
 public:
  explicit HubWire(Hub& hub) : hub_(hub) { hub_.wires_.push_back(this); }
  ~HubWire() override { std::erase(hub_.wires_, this); }

  Path& path_to(const ibv_gid& source, const ibv_gid& destination) override {
    for (const auto& path : paths_) {
      if (same(path->source, source) && same(path->destination, destination)) return *path;
    }
    return *paths_.emplace_back(std::make_unique<HubPath>(source, destination));
  }
  [[nodiscard]] std::uint32_t train_limit() const override { return hub_.train_limit; }
  SendResult send(Path& path, const Packet& packet, std::span<const Piece> pieces, Qpn source, Time) override {
    if (hub_.full(source)) return SendResult::full;
    if (hub_.records) hub_.sent.push_back(packet.header);
    HubWire* target = owner(static_cast<HubPath&>(path).destination);
    if (target == nullptr || hub_.loses(packet.header)) return SendResult::sent;
    Hub::Arrival arrival{packet, std::vector<std::byte>(packet.header.payload_bytes),
                         static_cast<HubPath&>(path).source, static_cast<HubPath&>(path).destination};
    gather(pieces, arrival.payload.data());
    target->arrivals_.push_back(std::move(arrival));
    return SendResult::sent;
  }
  bool place(Path& path, const Packet& packet, std::span<const Piece> pieces) override {
    HubWire* target = owner(static_cast<HubPath&>(path).destination);
    if (!hub_.places || target == nullptr) return false;
    const auto queue_pair = target->queue_pairs_.find(packet.header.destination_qpn);
    const auto region = target->regions_.find(packet.rdma.rkey);
    if (queue_pair == target->queue_pairs_.end() || region == target->regions_.end()) return false;
    if (!queue_pair->second.receiving || (queue_pair->second.access & IBV_ACCESS_REMOTE_WRITE) == 0 ||
        (region->second.access & IBV_ACCESS_REMOTE_WRITE) == 0 ||
        region->second.protection_domain != queue_pair->second.protection_domain ||
        packet.rdma.remote_address < region->second.address ||
        packet.rdma.remote_address + packet.rdma.length > region->second.address + region->second.length) {
      return false;
    }
    gather(pieces, reinterpret_cast<std::byte*>(packet.rdma.remote_address));
    return true;
  }
  const InboundPacket* receive(Time) override {
    if (arrivals_.empty()) return nullptr;
    const Hub::Arrival& arrival = arrivals_.front();
    inbound_ = {arrival.packet, arrival.payload.data(), &path_to(arrival.destination, arrival.source)};
    return &inbound_;
  }
  void release() override { arrivals_.pop_front(); }
  bool fetch(const InboundPacket& inbound, std::uint32_t offset, std::span<const Piece> pieces) override {
    scatter(pieces, inbound.payload + offset);
    return true;
  }
  void gids_changed(std::span<const ibv_gid> gids) override { gids_.assign(gids.begin(), gids.end()); }
  void region_registered(const RegionView& region) override { regions_[region.key] = region; }
  void region_gone(std::uint32_t key) override { regions_.erase(key); }
  void queue_pair_changed(const QueuePairView& view) override { queue_pairs_[view.qpn.value] = view; }
  void queue_pair_gone(Qpn qpn) override { queue_pairs_.erase(qpn.value); }

 private:
  struct HubPath final : Path {
    HubPath(const ibv_gid& from, const ibv_gid& to) : source(from), destination(to) {}
    ibv_gid source;
    ibv_gid destination;
  };
  static bool same(const ibv_gid& x, const ibv_gid& y) { return std::memcmp(x.raw, y.raw, sizeof(x.raw)) == 0; }
  [[nodiscard]] HubWire* owner(const ibv_gid& gid) const {
    for (HubWire* wire : hub_.wires_) {
      for (const ibv_gid& own : wire->gids_) {
        if (same(own, gid)) return wire;
      }
    }
    return nullptr;
  }

  Hub& hub_;
  std::vector<std::unique_ptr<HubPath>> paths_;
  std::deque<Hub::Arrival> arrivals_;
  InboundPacket inbound_;
  std::vector<ibv_gid> gids_;
  std::map<std::uint32_t, RegionView> regions_;
  std::map<std::uint32_t, QueuePairView> queue_pairs_;
};

inline std::unique_ptr<device::Context> Hub::open(DeviceConfig config) {
  class HubClock final : public Clock {
   public:
    explicit HubClock(const VirtualClock& clock) : clock_(clock) {}
    [[nodiscard]] Time now() const override { return clock_.now(); }

   private:
    const VirtualClock& clock_;
  };
  class HubEdge final : public Edge {
   public:
    HubEdge(Hub& hub, SoftContext& context) : hub_(hub), context_(context) { hub.contexts_.push_back(&context); }
    ~HubEdge() override { std::erase(hub_.contexts_, &context_); }
    device::Memory allocate(std::size_t) override { return {}; }
    void release(device::Memory) override {}
    void application_sleeps() override {}
    void due_by(Time) override {}

   private:
    Hub& hub_;
    SoftContext& context_;
  };
  fill_default_gids(config, wires_.size() + 1);
  config.seed = 1;
  auto context = std::make_unique<SoftContext>(SoftContext::Parts{.config = std::move(config),
                                                                  .wire = std::make_unique<HubWire>(*this),
                                                                  .clock = std::make_unique<HubClock>(clock)});
  context->set_edge(std::make_unique<HubEdge>(*this, *context));
  return context;
}

}  // namespace verbatim::soft::testing
