#include "transport/control/messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <string_view>

#include "transport/control/wire.hpp"

namespace verbatim::transport::control {
namespace {

// ---- to bytes
// --------------------------------------------------------------------------------------------------------

// What one end tells people of the other: ASCII, so that no terminal makes more of it.
bool is_printable(char c) {
  return c >= ' ' && c <= '~';
}

wire::Hello to_wire(const Hello& hello) {
  wire::Hello out{};
  out.incarnation = hello.sender.incarnation;
  out.fingerprint = hello.fingerprint;
  out.worker = hello.sender.worker;
  out.address_length = static_cast<std::uint8_t>(std::min(hello.address.size(), wire::address_capacity));
  std::memcpy(out.address, hello.address.data(), out.address_length);
  return out;
}

wire::Offer to_wire(const Offer& offer) {
  wire::Offer out{};
  out.max_message_bytes = offer.max_message_bytes;
  std::copy(offer.gid.bytes.begin(), offer.gid.bytes.end(), std::begin(out.gid));
  out.queue_pair = offer.queue_pair.value;
  out.first_psn = offer.first_sent.value();
  out.mtu_bytes = offer.mtu_bytes;
  out.receive_depth = offer.receive_depth;
  out.control_slots = offer.control_slots;
  out.eager_max_bytes = offer.eager_max_bytes;
  out.lid = offer.lid;
  out.pkey = offer.pkey;
  out.gid_type = static_cast<std::uint8_t>(offer.gid_type);
  out.initiator_depth = offer.initiator_depth;
  out.responder_resources = offer.responder_resources;
  out.service_level = offer.service_level;
  out.traffic_class = offer.traffic_class;
  return out;
}
static_assert(static_cast<int>(device::GidType::infiniband) == 0 && static_cast<int>(device::GidType::roce_v1) == 1 &&
              static_cast<int>(device::GidType::roce_v2) == 2);

wire::Refusal to_wire(const Refusal& refusal) {
  wire::Refusal out{};
  out.winner = refusal.winner.value;
  out.reason = static_cast<std::uint8_t>(refusal.reason);
  out.sentence_length = static_cast<std::uint16_t>(std::min(refusal.sentence.size(), wire::sentence_capacity));
  // What the peer would not take as text is still worth a sentence.
  std::transform(refusal.sentence.begin(), refusal.sentence.begin() + out.sentence_length, out.sentence,
                 [](char c) { return is_printable(c) ? c : '?'; });
  return out;
}

struct Empty {};  // a message that is its header alone

struct Encoder {
  const Message& message;

  template <typename Body>
  ControlFrame operator()(MessageKind kind, const Body& body) const {
    constexpr std::size_t body_bytes = std::is_same_v<Body, Empty> ? 0 : sizeof(Body);
    const wire::Header header{.magic = wire::magic,
                              .version = protocol_version,
                              .kind = static_cast<std::uint8_t>(kind),
                              .reserved = 0,
                              .bytes = static_cast<std::uint32_t>(sizeof(wire::Header) + body_bytes),
                              .epoch = message.epoch.value,
                              .session = message.session.value};
    ControlFrame frame(header.bytes);
    std::memcpy(frame.data(), &header, sizeof(header));
    if constexpr (body_bytes > 0) std::memcpy(frame.data() + sizeof(header), &body, body_bytes);
    return frame;
  }
  ControlFrame operator()(const Hello& hello) const { return (*this)(MessageKind::hello, to_wire(hello)); }
  ControlFrame operator()(const ConnectRequest& request) const {
    return (*this)(MessageKind::connect_request, to_wire(request.offer));
  }
  ControlFrame operator()(const ConnectAccept& accept) const {
    return (*this)(MessageKind::connect_accept, to_wire(accept.offer));
  }
  ControlFrame operator()(Ready) const { return (*this)(MessageKind::ready, Empty{}); }
  ControlFrame operator()(ReadyAck) const { return (*this)(MessageKind::ready_ack, Empty{}); }
  ControlFrame operator()(const Refusal& refusal) const { return (*this)(MessageKind::refuse, to_wire(refusal)); }
  ControlFrame operator()(Bye) const { return (*this)(MessageKind::bye, Empty{}); }
  ControlFrame operator()(const Rehandshake& again) const {
    return (*this)(MessageKind::rehandshake, wire::Rehandshake{to_wire(again.offer), again.next_expected, 0});
  }
  ControlFrame operator()(Reconnected) const { return (*this)(MessageKind::reconnected, Empty{}); }
};

// ---- from bytes
// ------------------------------------------------------------------------------------------------------

using Problem = std::string;  // empty: none

bool all_zero(const std::uint8_t* bytes, std::size_t count) {
  return std::all_of(bytes, bytes + count, [](std::uint8_t byte) { return byte == 0; });
}

// A text of a peer is shown to people: it is printable ASCII, and zeros follow it.
Problem check_text(const char* what, std::string_view field, std::size_t length) {
  if (length > field.size()) return fmt::format("{} of {} characters, the field has {}", what, length, field.size());
  if (!std::all_of(field.begin(), field.begin() + static_cast<std::ptrdiff_t>(length), is_printable)) {
    return fmt::format("{} with characters that can't be printed", what);
  }
  if (field.find_first_not_of('\0', length) != std::string_view::npos) {
    return fmt::format("{} with something behind its end", what);
  }
  return {};
}

Problem read(const wire::Hello& in, Hello& hello) {
  const std::string_view field(in.address, sizeof(in.address));
  if (Problem problem = check_text("an address", field, in.address_length); !problem.empty()) return problem;
  if (!all_zero(in.reserved, sizeof(in.reserved))) return "reserved bytes that are not 0";
  if (in.incarnation == 0) return "incarnation 0, which is nobody's";
  hello = {.sender = {in.incarnation, in.worker},
           .fingerprint = in.fingerprint,
           .address = std::string(field.substr(0, in.address_length))};
  return {};
}

Problem check_queue_pair(const wire::Offer& in) {
  if (in.queue_pair < 2 || in.queue_pair > Qpn::mask) {
    return fmt::format("queue pair {:#x}; 2 to 0xffffff are ordinary ones", in.queue_pair);
  }
  if (in.first_psn > Psn::mask) return fmt::format("PSN {:#x}, which has more than 24 bits", in.first_psn);
  if (in.gid_type > static_cast<std::uint8_t>(device::GidType::roce_v2)) {
    return fmt::format("GID type {}; 0, 1 and 2 are known", in.gid_type);
  }
  if ((in.pkey & 0x7fff) == 0) return fmt::format("P_Key {:#06x}, which is invalid", in.pkey);
  if (in.service_level > 15) return fmt::format("service level {}; 0 to 15 exist", in.service_level);
  if (in.mtu_bytes < 256 || in.mtu_bytes > 4096 || !std::has_single_bit(in.mtu_bytes)) {
    return fmt::format("MTU {}; 256, 512, 1024, 2048 and 4096 exist", in.mtu_bytes);
  }
  return {};
}

Problem check_memory(const wire::Offer& in) {
  if (in.receive_depth == 0) return "no receives posted";
  if (in.max_message_bytes == 0) return "messages of at most 0 bytes";
  return {};
}

Problem read(const wire::Offer& in, Offer& offer) {
  if (Problem problem = check_queue_pair(in); !problem.empty()) return problem;
  if (Problem problem = check_memory(in); !problem.empty()) return problem;
  if (!all_zero(in.reserved, sizeof(in.reserved))) return "reserved bytes that are not 0";
  offer = {.queue_pair = Qpn{in.queue_pair},
           .first_sent = Psn(in.first_psn),
           .gid = {},
           .gid_type = static_cast<device::GidType>(in.gid_type),
           .lid = in.lid,
           .pkey = in.pkey,
           .mtu_bytes = in.mtu_bytes,
           .initiator_depth = in.initiator_depth,
           .responder_resources = in.responder_resources,
           .receive_depth = in.receive_depth,
           .control_slots = in.control_slots,
           .eager_max_bytes = in.eager_max_bytes,
           .max_message_bytes = in.max_message_bytes,
           .service_level = in.service_level,
           .traffic_class = in.traffic_class};
  std::copy(std::begin(in.gid), std::end(in.gid), offer.gid.bytes.begin());
  return {};
}
Problem read(const wire::Offer& in, ConnectRequest& request) {
  return read(in, request.offer);
}
Problem read(const wire::Offer& in, ConnectAccept& accept) {
  return read(in, accept.offer);
}

Problem read(const wire::Rehandshake& in, Rehandshake& again) {
  if (in.reserved != 0) return "reserved bytes that are not 0";
  again.next_expected = in.next_expected;
  return read(in.offer, again.offer);
}

Problem read(const wire::Refusal& in, Refusal& refusal) {
  const std::string_view field(in.sentence, sizeof(in.sentence));
  if (Problem problem = check_text("a sentence", field, in.sentence_length); !problem.empty()) return problem;
  if (!all_zero(in.reserved, sizeof(in.reserved))) return "reserved bytes that are not 0";
  const auto last = static_cast<std::uint8_t>(RefusalReason::crossed);
  if (in.reason == 0 || in.reason > last) return fmt::format("reason {}; 1 to {} are known", in.reason, last);
  const auto reason = static_cast<RefusalReason>(in.reason);
  if ((reason == RefusalReason::crossed) != (in.winner != 0))
    return "a winner without crossing, or the other way round";
  refusal = {
      .reason = reason, .winner = Session{in.winner}, .sentence = std::string(field.substr(0, in.sentence_length))};
  return {};
}

constexpr std::array<const char*, 10> kind_names = {
    "",       "hello", "connect_request", "connect_accept", "ready", "ready_ack",
    "refuse", "bye",   "rehandshake",     "reconnected"};

Undecodable violation(const std::string& what) {
  return {RefusalReason::violation, "control message: " + what};
}

template <typename Body, typename Content>
std::variant<Message, Undecodable> decode_body(const wire::Header& header, std::span<const std::byte> body) {
  constexpr std::size_t body_bytes = std::is_same_v<Body, Empty> ? 0 : sizeof(Body);
  const char* name = kind_names[header.kind];
  if (body.size() != body_bytes) {
    return violation(fmt::format("{} of {} bytes, not {}", name, header.bytes, sizeof(wire::Header) + body_bytes));
  }
  Content content;
  if constexpr (body_bytes > 0) {
    Body in;
    std::memcpy(&in, body.data(), sizeof(in));
    if (Problem problem = read(in, content); !problem.empty())
      return violation(fmt::format("{} has {}", name, problem));
  }
  return Message{Session{header.session}, Epoch{header.epoch}, std::move(content)};
}

}  // namespace

Status status_of(RefusalReason reason) noexcept {
  switch (reason) {
    case RefusalReason::mismatch:
    case RefusalReason::violation:
    case RefusalReason::crossed:
      return Status::not_connected;
    case RefusalReason::no_resources:
      return Status::no_resources;
    case RefusalReason::timed_out:
      return Status::timed_out;
    case RefusalReason::device_failed:
      return Status::device_failed;
    case RefusalReason::canceled:
      return Status::peer_gone;
  }
  return Status::not_connected;
}

ControlFrame encode(const Message& message) {
  return std::visit(Encoder{message}, message.content);
}

std::variant<Message, Undecodable> decode(std::span<const std::byte> frame) {
  wire::Header header;
  if (frame.size() < sizeof(header)) {
    return violation(fmt::format("{} bytes are too few for a header of {}", frame.size(), sizeof(header)));
  }
  std::memcpy(&header, frame.data(), sizeof(header));
  if (header.magic != wire::magic)
    return violation(fmt::format("starts with {:#010x}, no message of ours does", header.magic));
  if (header.version != protocol_version) {
    return Undecodable{RefusalReason::mismatch,
                       fmt::format("control protocol: one peer speaks version {}, the other version {}; "
                                   "both need the same release",
                                   protocol_version, header.version)};
  }
  if (header.bytes != frame.size()) {
    return violation(fmt::format("says that it has {} bytes, but has {}", header.bytes, frame.size()));
  }
  if (header.reserved != 0) return violation("a reserved byte that is not 0");
  if (header.session == 0) return violation("session 0, which is none");
  const std::span<const std::byte> body = frame.subspan(sizeof(header));
  switch (static_cast<MessageKind>(header.kind)) {
    case MessageKind::hello:
      return decode_body<wire::Hello, Hello>(header, body);
    case MessageKind::connect_request:
      return decode_body<wire::Offer, ConnectRequest>(header, body);
    case MessageKind::connect_accept:
      return decode_body<wire::Offer, ConnectAccept>(header, body);
    case MessageKind::ready:
      return decode_body<Empty, Ready>(header, body);
    case MessageKind::ready_ack:
      return decode_body<Empty, ReadyAck>(header, body);
    case MessageKind::refuse:
      return decode_body<wire::Refusal, Refusal>(header, body);
    case MessageKind::bye:
      return decode_body<Empty, Bye>(header, body);
    case MessageKind::rehandshake:
      return decode_body<wire::Rehandshake, Rehandshake>(header, body);
    case MessageKind::reconnected:
      return decode_body<Empty, Reconnected>(header, body);
  }
  return violation(fmt::format("kind {}, which is unknown", header.kind));
}

}  // namespace verbatim::transport::control
