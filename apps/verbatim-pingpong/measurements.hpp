// What is measured. Each function is called by both processes at once; the result counts on side 0.
#pragma once

#include "endpoint.hpp"
#include "shared_page.hpp"

namespace verbatim::pingpong {

// One side of a pair of processes.
struct Player {
  Endpoint& endpoint;
  SharedPage& page;
  int side;  // 0 serves
  // Receives that are posted now.
  std::uint32_t rc_receives = 0;
  std::uint32_t ud_receives = 0;

  [[nodiscard]] bool serves() const { return side == 0; }
  [[nodiscard]] const SideAddress& peer() const { return page.addresses[static_cast<std::size_t>(1 - side)]; }
};

// Both sides are here. Throws Error if the other one fails or does not come within a bounded time.
void meet_other(Player& player);

// Half a round trip, in nanoseconds per direction.
double time_cache_line(Player& player);
double time_rc_send(Player& player);
double time_rdma_write(Player& player);  // of 8 bytes, polled as memory by the target
double time_ud_send(Player& player);

// RC sends of 8 bytes per second, one way, a window at a time.
double rate_rc_send(Player& player);

// Bytes per second.
double bandwidth_rdma_write(Player& player);  // of 1 MiB
double bandwidth_memcpy(Player& player);      // the same bytes, copied by one processor

}  // namespace verbatim::pingpong
