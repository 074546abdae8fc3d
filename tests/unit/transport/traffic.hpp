// Everything that two ends can do with each other at once, and what must come of it.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "cluster.hpp"
#include "payload.hpp"
#include "transport/remote_region.hpp"

namespace verbatim::transport::test {

// A small device's worth, so that everything waits for everything.
[[nodiscard]] inline Config crowded_config(bool write_queue) {
  Config config = Cluster::plain_config();
  config.rc.receive_depth = 8;
  config.rc.send_depth = 16;
  config.rc.signal_interval = 4;
  config.rc.repost_batch = 2;
  config.eager.max_bytes = 512;
  config.rendezvous.fragment_bytes = 4096;
  config.rendezvous.fragments = 4;
  if (write_queue) {
    config.write_queue.enabled = Switch::on;
    config.write_queue.promote_after = 1;
    config.write_queue.bytes = 8192;
  }
  return config;
}

inline constexpr std::uint64_t slot_bytes = 64 * 1024;
inline constexpr std::uint64_t slots = 8;
inline constexpr std::uint64_t operations_per_round = 36;
inline constexpr Tag notice{std::uint64_t{1} << 40};  // of puts
inline constexpr std::byte untouched{0xee};
inline constexpr std::byte taken_back{0xdd};

// One end: what it has under way, and the memory that its peer reads and writes.
struct Side {
  struct Operation {
    std::string what;
    Request request;
    Bytes memory;    // the caller's buffer
    Bytes expected;  // in it, if the request ends well; of a source nothing
    bool ended = false;
  };

  explicit Side(Node& its_node) : node(&its_node), shared(slots * slot_bytes + 64) {
    region = node->engine->register_memory(shared.data(), shared.size());
    node->engine->remember_region(region);
  }
  [[nodiscard]] RemoteRegion remote() const {
    return RemoteRegionAccess::make(reinterpret_cast<std::uintptr_t>(shared.data()), shared.size(),
                                    region.rkey().value);
  }
  Operation& add(std::string what, Bytes memory, Bytes expected = {}) {
    return operations.emplace_back(std::move(what), Request(), std::move(memory), std::move(expected));
  }
  // Takes buffers back as their requests end.
  [[nodiscard]] bool all_ended() {
    bool all = true;
    for (Operation& operation : operations) {
      if (!operation.ended && operation.request.done()) {
        operation.ended = true;
        if (operation.request.ok() && !operation.expected.empty()) {
          EXPECT_EQ(operation.memory, operation.expected) << operation.what;
        }
        std::ranges::fill(operation.memory, taken_back);
      }
      all = all && operation.ended;
    }
    return all;
  }
  void expect_left_alone() const {
    for (const Operation& operation : operations) {
      EXPECT_TRUE(std::ranges::all_of(operation.memory, [](std::byte byte) { return byte == taken_back; }))
          << operation.what << ": touched after its end";
    }
  }

  Node* node;
  Channel* channel = nullptr;
  Bytes shared;
  mem::RegisteredRegion region;
  std::deque<Operation> operations;
};

// Both sides do everything at once.
inline void start_everything(Side& side, Side& peer, std::uint64_t seed) {
  const auto tag = [&](std::uint64_t i) { return seed * 1000 + i; };
  constexpr std::size_t sizes[] = {0, 8, 512, 513, 30'000, 200'000};
  for (std::uint64_t i = 0; i < operations_per_round; ++i) {
    const std::size_t bytes = sizes[i % std::size(sizes)];
    Side::Operation& receive =
        peer.add("receive " + std::to_string(bytes), Bytes(bytes, untouched), pattern(bytes, tag(i)));
    if (i % 5 != 4) {
      receive.request =
          peer.node->engine->receive(receive.memory.data(), bytes, Tag{tag(i)}, exact_tag, peer.channel->id());
    }
    Side::Operation& send = side.add("send " + std::to_string(bytes), pattern(bytes, tag(i)));
    send.request = side.channel->send(send.memory.data(), bytes, Tag{tag(i)});
    if (i < slots / 2) {
      Side::Operation& put = side.add("put", pattern(slot_bytes - 3, tag(i)));
      put.request = side.channel->put(put.memory.data(), put.memory.size(), peer.remote(), i * slot_bytes, notice);
      Side::Operation& get = side.add("get", Bytes(slot_bytes, untouched), Bytes(slot_bytes, std::byte{0}));
      get.request =
          side.channel->get(get.memory.data(), get.memory.size(), peer.remote(), (slots / 2 + i) * slot_bytes);
    }
    Side::Operation& add = side.add("fetch_add", {});
    add.request = side.channel->atomic(RequestKind::fetch_add, {.operand = 1}, peer.remote(), slots * slot_bytes);
  }
  side.add("flush", {}).request = side.channel->flush();
}

// The receives that start_everything() left out, of what `peer` has started with `seed`: the messages are there first.
inline void start_late_receives(Side& side, std::uint64_t seed) {
  for (std::uint64_t i = 4; i < operations_per_round; i += 5) {
    const auto unmatched = std::ranges::find_if(side.operations, [&](const Side::Operation& operation) {
      return operation.what.starts_with("receive") && operation.request.record() == nullptr && !operation.ended;
    });
    ASSERT_NE(unmatched, side.operations.end());
    unmatched->request = side.node->engine->receive(unmatched->memory.data(), unmatched->memory.size(),
                                                    Tag{seed * 1000 + i}, exact_tag, any_source);
  }
}

}  // namespace verbatim::transport::test
