// The handshake of one channel over one control link, from either end. No I/O: frames, reports and the time come in,
// actions come out.
//
//      dialler                                       acceptor
//   linking      -- link up
//   greeting     -- hello ------------------------->  awaiting_hello
//                <------------------------- hello --  awaiting_request
//   preparing    (takes a queue pair, in INIT)
//   requested    -- connect_request --------------->  preparing   (takes a queue pair, in INIT)
//                                                     connecting  (INIT → RTR → RTS)
//   connecting   <---------------- connect_accept --  accepted
//                (INIT → RTR → RTS)
//   readying     -- ready ------------------------->  open
//   open         <--------------------- ready_ack --
//
// Nobody sends before the other side can receive. The acceptor is in RTR before connect_accept leaves, so the dialler
// could send from RTS on. It waits for ready_ack all the same: until `ready` has come the acceptor may still give up,
// at a deadline or with the link, and what was sent to it would be gone. The acceptor sends from `ready` on, which left
// the dialler in RTS. The data path does not keep step with the control link: the dialler's queue pair may receive
// messages before ready_ack is here. They are good, for ready_ack is on its way; keep them until the channel opens.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "transport/control/identity.hpp"
#include "transport/control/messages.hpp"
#include "transport/control/offer.hpp"
#include "verbatim/types.hpp"

namespace verbatim::transport::control {

enum class HandshakeState : std::uint8_t {
  linking,           // dialler: the link is not up yet
  greeting,          // dialler: hello sent
  requested,         // dialler: connect_request sent
  readying,          // dialler: ready sent
  awaiting_hello,    // acceptor
  awaiting_request,  // acceptor: hello answered
  accepted,          // acceptor: connect_accept sent
  preparing,         // both: until on_queue_pair()
  connecting,        // both: until on_queue_pair_connected()
  open,
  ended,
};
[[nodiscard]] const char* to_string(HandshakeState state) noexcept;

// What is to be done, in order.
struct SendFrame {
  ControlFrame frame;
};
struct PrepareQueuePair {};  // one in INIT, with receives posted; answer with on_queue_pair()
struct ConnectQueuePair {    // to RTR, then to RTS; answer with on_queue_pair_connected()
  Agreement agreement;
};
struct Opened {};
struct Recover {  // the peer's part in bringing the open channel back (recovery.hpp)
  Message message;
};
struct Ended {                 // last action. What was prepared is the owner's to give back, and the link to close.
  Status status = Status::ok;  // ok: the peer said bye
  std::string sentence;
  bool retry = false;                // the link was lost before the peer can have opened: dial again
  std::optional<Session> crossed{};  // the peer's own dial goes on instead of this one
};
using Action = std::variant<SendFrame, PrepareQueuePair, ConnectQueuePair, Opened, Recover, Ended>;
using Actions = std::vector<Action>;

class Handshake {
 public:
  struct Settings {
    Hello hello;                              // what this side says of itself
    SharedSettings shared;                    // for the sentence about a fingerprint that differs
    Duration handshake_timeout = Duration{};  // acceptor: from the link to connect_request
    Duration connect_timeout = Duration{};    // acceptor: from connect_request to ready
  };

  // `deadline`: for the channel to be open.
  [[nodiscard]] static Handshake dial(const Settings& settings, Session session, Time deadline);
  // Of a link that has just been accepted.
  [[nodiscard]] static Handshake accept(const Settings& settings, Time now);

  [[nodiscard]] Actions on_link_up();
  [[nodiscard]] Actions on_link_closed(Status status, const std::string& reason);
  [[nodiscard]] Actions on_frame(std::span<const std::byte> frame, Time now);
  [[nodiscard]] Actions on_queue_pair(const Offer& own);
  [[nodiscard]] Actions on_queue_pair_connected();
  // The owner gives up: no queue pair, a device that refuses. The peer is told why.
  [[nodiscard]] Actions give_up(const Refusal& refusal);
  // The owner closes: bye if it is open, a refusal if it is not.
  [[nodiscard]] Actions leave();
  [[nodiscard]] Actions on_tick(Time now);
  // Somebody waits for this one, and no longer than that.
  void finish_by(Time deadline) { deadline_ = std::min(deadline_, deadline); }

  [[nodiscard]] HandshakeState state() const noexcept { return state_; }
  [[nodiscard]] Role role() const noexcept { return role_; }
  [[nodiscard]] Session session() const noexcept { return session_; }
  [[nodiscard]] Time deadline() const noexcept;                       // never once it is open or has ended
  [[nodiscard]] const Hello& peer() const noexcept { return peer_; }  // from preparing on
  [[nodiscard]] const std::optional<Agreement>& agreement() const noexcept { return agreement_; }

 private:
  Handshake(const Settings& settings, Role role, HandshakeState state, Session session, Time deadline);

  [[nodiscard]] Actions receive(const Message& message, Time now);
  [[nodiscard]] Actions receive_of_recovery(const Message& message);
  // Whether a message has its place in this state.
  [[nodiscard]] bool expected(const Hello& hello) const;
  [[nodiscard]] bool expected(const ConnectRequest& request) const;
  [[nodiscard]] bool expected(const ConnectAccept& accept) const;
  [[nodiscard]] bool expected(Ready ready) const;
  [[nodiscard]] bool expected(ReadyAck acknowledgement) const;
  // Each moves to the next state.
  [[nodiscard]] Actions on(const Hello& hello, Time now);
  [[nodiscard]] Actions on(const ConnectRequest& request, Time now);
  [[nodiscard]] Actions on(const ConnectAccept& accept, Time now);
  [[nodiscard]] Actions on(Ready ready, Time now);
  [[nodiscard]] Actions on(ReadyAck acknowledgement, Time now);
  [[nodiscard]] Actions on_refusal(const Refusal& refusal);
  [[nodiscard]] Actions on_bye();
  [[nodiscard]] Actions connect();
  [[nodiscard]] SendFrame say(const decltype(Message::content)& content) const;

  Settings settings_;
  Role role_;
  HandshakeState state_;
  Session session_;
  Epoch epoch_{1};
  Time deadline_;
  Hello peer_;
  std::optional<Offer> own_offer_;
  std::optional<Offer> peer_offer_;
  std::optional<Agreement> agreement_;
};

}  // namespace verbatim::transport::control
