// Control links: ordered, reliable streams of small frames between two workers, beside the data path. Connections of
// queue pairs are talked over on them. Pure interface: TCP lies behind it on a real host, a simulation in tests.
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "verbatim/types.hpp"

namespace verbatim::transport::control {

// A link's number within its ControlLinks; never used twice. 0 is none.
struct LinkId {
  std::uint64_t value = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the defaulted comparison for a literal
  friend constexpr auto operator<=>(LinkId, LinkId) = default;
};

// A frame is what one send() gave, neither split nor merged.
inline constexpr std::size_t max_frame_bytes = 64UL * 1024;

enum class LinkEventKind : std::uint8_t {
  accepted,   // a peer has dialled us, and speaks our protocol
  connected,  // a link that we dialled is up, and the peer speaks our protocol
  frame,      // one frame of the peer
  closed,     // the link's last event: the peer or the network ended it, or a dial came to nothing by its deadline
};

struct LinkEvent {
  LinkEventKind kind = LinkEventKind::closed;
  LinkId link;
  std::string peer;              // accepted, connected: "host:port" of the other end
  std::vector<std::byte> frame;  // frame
  Status status = Status::ok;    // closed: peer_gone, timed_out (the dial's deadline), not_connected (refused)
  std::string reason;            // closed: a sentence
};

// Used by one thread, the worker's. No call blocks, but listen().
class ControlLinks {
 public:
  ControlLinks() = default;
  ControlLinks(const ControlLinks&) = delete;
  ControlLinks& operator=(const ControlLinks&) = delete;
  virtual ~ControlLinks() = default;

  // Listens on the first free port of the range, and returns "host:port" as bound. `host` empty: every address;
  // first_port 0: any free port; last_port 0: only first_port. Looks names up, so it may block: set-up only. Throws
  // Error: busy (each address and port, and what the system said), invalid_argument, not_found (the name).
  virtual std::string listen(std::string_view host, std::uint16_t first_port, std::uint16_t last_port) = 0;

  // "host:port" that peers can dial; empty while not listening. Never a loopback address, unless that is what was asked
  // to be listened on, or the host has no other.
  [[nodiscard]] virtual std::string advertised() const = 0;

  // Starts to connect to "host:port"; a refused or lost attempt is repeated until `deadline`. Ends in a connected or a
  // closed event. Throws Error(invalid_argument) for what is no address.
  virtual LinkId dial(std::string_view address, Time deadline) = 0;

  // Queues a frame of at most max_frame_bytes, which is copied. Frames for a link that is not connected, or no longer,
  // go nowhere: its closed event tells.
  virtual void send(LinkId link, std::span<const std::byte> frame) = 0;

  // Sends what is queued, then closes. Events of the link that nobody has taken yet may still come, no others.
  virtual void close(LinkId link) = 0;

  // Whether take_events() has something. For the data path: one relaxed load.
  [[nodiscard]] bool has_events() const noexcept { return has_events_.load(std::memory_order_relaxed); }
  // All events since the last call, in order per link.
  [[nodiscard]] virtual std::vector<LinkEvent> take_events() = 0;

  // Readable while there are events, so that a sleeping worker wakes. -1 in a simulation. Belongs to the links.
  [[nodiscard]] virtual int event_fd() const noexcept = 0;

 protected:
  std::atomic<bool> has_events_{false};
};

}  // namespace verbatim::transport::control
