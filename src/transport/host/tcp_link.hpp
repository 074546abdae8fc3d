// One link over TCP, as the edge's thread sees it: from the name to the last byte. It owns its socket, and reports what
// came; who waits for what is the edge's business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "transport/control/address.hpp"
#include "transport/control/backoff.hpp"
#include "transport/control/control_link.hpp"
#include "transport/control/framing.hpp"
#include "transport/host/descriptor.hpp"
#include "transport/host/socket_address.hpp"

namespace verbatim::transport::host {

enum class LinkState : std::uint8_t {
  resolving,   // dialled: until the name is known
  pausing,     // dialled: until the next attempt
  connecting,  // dialled: until the peer's kernel answers
  greeting,    // until the peer has said who it is
  open,
  closing,  // what is queued goes out, then our half is shut, then the peer's end is awaited
  closed,
};

class TcpLink {
 public:
  static constexpr std::size_t max_queued_bytes = std::size_t{1} << 20;  // that the peer's kernel does not take
  static constexpr Duration longest_attempt = std::chrono::seconds(3);   // to connect to one address
  static constexpr Duration first_pause = std::chrono::milliseconds(5);
  static constexpr Duration longest_pause = std::chrono::milliseconds(500);

  [[nodiscard]] static TcpLink dial(control::LinkId id, const control::Address& address, Time deadline);
  [[nodiscard]] static TcpLink accept(control::LinkId id, Descriptor socket, const std::string& peer, Time deadline);

  [[nodiscard]] control::LinkId id() const noexcept { return id_; }
  [[nodiscard]] LinkState state() const noexcept { return state_; }
  [[nodiscard]] bool dialled() const noexcept { return dialled_; }
  [[nodiscard]] const control::Address& target() const noexcept { return target_; }
  [[nodiscard]] const std::string& peer() const noexcept { return peer_; }
  [[nodiscard]] int socket() const noexcept { return socket_.get(); }
  // When the edge must look at it again, events aside.
  [[nodiscard]] Time deadline() const noexcept;

  // -- a dial ----------------------------------------------------------------------------------------------------
  // The name is known: the addresses to try in turn.
  void resolved(std::vector<SocketAddress> addresses);
  // Starts the next attempt. False: it failed at once, as attempt_failed() says.
  bool connect(Time now, Random& random);
  // poll() has something to say about the attempt. False: it failed.
  bool finish_connect(Time now, Random& random);
  // Closes the socket and pauses before the next attempt.
  void attempt_failed(const std::string& problem, Time now, Random& random);
  // The deadline of the dial itself has passed, so that no attempt follows.
  [[nodiscard]] bool dial_is_over(Time now) const noexcept { return dialled_ && now >= dial_deadline_; }
  void retry_now() noexcept;
  [[nodiscard]] std::string why_not_connected() const;  // a sentence about all attempts

  // -- bytes -----------------------------------------------------------------------------------------------------
  struct Received {
    bool identified = false;  // the peer has just said who it is
    std::vector<control::ControlFrame> frames;
    bool ended = false;     // nothing more will come
    bool stranger = false;  // because the other end does not speak our protocol
    std::string problem;    // a sentence
  };
  [[nodiscard]] Received receive();
  // False: the peer takes nothing and more than max_queued_bytes wait; problem() says so. A connection that broke is
  // told of by receive(), once what the peer had sent before is read.
  [[nodiscard]] bool send(std::span<const std::byte> frame);
  void flush();
  [[nodiscard]] bool has_unsent() const noexcept { return sent_ < queued_.size(); }
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

  // -- the end ---------------------------------------------------------------------------------------------------
  // In order: flushes, then shuts our half. The edge drops it when the peer has shut its own, or at the deadline.
  void start_closing(Time deadline);
  // At once. shutdown() ends the connection even if a child that was forked in a bad moment has a copy.
  void drop() noexcept;

 private:
  TcpLink(control::LinkId id, bool dialled, LinkState state) : id_(id), dialled_(dialled), state_(state) {}
  void start_greeting();

  control::LinkId id_;
  bool dialled_;
  LinkState state_;
  Descriptor socket_;
  std::string peer_;

  control::Address target_;
  Time dial_deadline_ = never;     // dialled: for the peer to have said who it is
  Time attempt_deadline_ = never;  // connecting, pausing: for the next step; accepted: to say who it is; closing
  std::vector<SocketAddress> addresses_;
  std::size_t next_address_ = 0;
  unsigned attempts_ = 0;
  control::Backoff backoff_{first_pause, longest_pause};

  control::Unframer unframer_;
  std::vector<std::byte> queued_;
  std::size_t sent_ = 0;  // of queued_
  bool half_shut_ = false;
  std::string problem_;
};

}  // namespace verbatim::transport::host
