// What two workers say to each other on a control link, as values. wire.hpp has the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "transport/control/identity.hpp"
#include "transport/control/offer.hpp"
#include "verbatim/types.hpp"

namespace verbatim::transport::control {

// Of the control messages. Another one is refused; the first 8 bytes of every message stay as they are for good.
inline constexpr std::uint16_t protocol_version = 2;

using ControlFrame = std::vector<std::byte>;

enum class MessageKind : std::uint8_t {
  hello = 1,  // who speaks; the acceptor answers with its own
  connect_request,
  connect_accept,  // sent in RTS
  ready,           // the dialler is in RTS too
  ready_ack,
  refuse,       // ends the handshake
  bye,          // ends an open channel in good order
  rehandshake,  // the queue pair of an open channel has failed, and this is the next
  reconnected,  // … which is in RTS
};

struct Hello {
  Identity sender;
  std::uint64_t fingerprint = 0;  // of SharedSettings
  std::string address;            // where the sender listens, "host:port"; empty: nowhere. At most 64 characters
  friend bool operator==(const Hello&, const Hello&) = default;
};

enum class RefusalReason : std::uint8_t {
  mismatch = 1,  // settings that must agree, P_Key, GID
  no_resources,  // no queue pair left
  violation,     // a message that makes no sense, or not now
  timed_out,
  device_failed,
  canceled,  // the sender was closed meanwhile
  crossed,   // both dialled each other, and the dial of session `winner` goes on
};

struct Refusal {
  RefusalReason reason = RefusalReason::violation;
  Session winner;        // crossed only
  std::string sentence;  // longer ones are cut at 240 bytes
  friend bool operator==(const Refusal&, const Refusal&) = default;
};
[[nodiscard]] Status status_of(RefusalReason reason) noexcept;

struct ConnectRequest {
  Offer offer;
  friend bool operator==(const ConnectRequest&, const ConnectRequest&) = default;
};
struct ConnectAccept {
  Offer offer;
  friend bool operator==(const ConnectAccept&, const ConnectAccept&) = default;
};
struct Ready {
  friend bool operator==(Ready, Ready) = default;
};
struct ReadyAck {
  friend bool operator==(ReadyAck, ReadyAck) = default;
};
struct Bye {
  friend bool operator==(Bye, Bye) = default;
};
// These two carry the epoch that they begin; all others the first.
struct Rehandshake {
  Offer offer;
  std::uint32_t next_expected = 0;  // sequence of the first frame that the sender has not taken
  friend bool operator==(const Rehandshake&, const Rehandshake&) = default;
};
struct Reconnected {
  friend bool operator==(Reconnected, Reconnected) = default;
};

struct Message {
  Session session;
  Epoch epoch;
  std::variant<Hello, ConnectRequest, ConnectAccept, Ready, ReadyAck, Refusal, Bye, Rehandshake, Reconnected> content;
  friend bool operator==(const Message&, const Message&) = default;
};

[[nodiscard]] ControlFrame encode(const Message& message);

// Why a frame is no message.
struct Undecodable {
  RefusalReason reason = RefusalReason::violation;  // mismatch: another protocol version
  std::string sentence;
};
// Every field is checked for its range; what comes out can be used without another look.
[[nodiscard]] std::variant<Message, Undecodable> decode(std::span<const std::byte> frame);

}  // namespace verbatim::transport::control
