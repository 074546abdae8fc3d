// The public handles and words, in front of what they stand for.
#include "transport/channel.hpp"
#include "transport/engine.hpp"
#include "verbatim/channel.hpp"
#include "verbatim/context.hpp"
#include "verbatim/types.hpp"

namespace verbatim {
namespace {

// In a turn at the channel's engine; what comes of it where there is no channel, without.
template <typename Answer, typename Question>
[[nodiscard]] Answer look(transport::Channel* channel, Answer of_none, Question question) {
  if (channel == nullptr) return of_none;
  const Turns::Look turn(channel->turns());
  return question(*channel);
}
template <typename Operation>
[[nodiscard]] Request start(transport::Channel* channel, Operation operation) {
  if (channel == nullptr) return transport::refused(Status::not_connected);
  const Turns::Call turn(channel->turns());
  return operation(*channel);
}

}  // namespace

ChannelId Channel::id() const noexcept {
  return channel_ != nullptr ? channel_->id() : any_source;
}
ChannelState Channel::state() const noexcept {
  return look(channel_, ChannelState::closed, [](auto& channel) { return channel.state(); });
}
Status Channel::reason() const noexcept {
  return look(channel_, Status::not_connected, [](auto& channel) { return channel.reason(); });
}
std::string Channel::reason_text() const {
  if (channel_ == nullptr) return "this Channel is none: it came from no connect() or accept()";
  return look(channel_, std::string(), [](auto& channel) { return channel.reason_text(); });
}
std::string Channel::peer() const {
  return look(channel_, std::string(), [](auto& channel) { return channel.peer(); });
}
ChannelCounters Channel::counters() const noexcept {
  return look(channel_, ChannelCounters(), [](auto& channel) { return channel.counters(); });
}

Request Channel::send(const void* data, std::size_t bytes, Tag tag) {
  return start(channel_, [&](auto& channel) { return channel.send(data, bytes, tag); });
}

Request Channel::put(const void* data, std::size_t bytes, const RemoteRegion& target, std::uint64_t offset) {
  return start(channel_, [&](auto& channel) { return channel.put(data, bytes, target, offset, std::nullopt); });
}

Request Channel::put_notify(const void* data, std::size_t bytes, const RemoteRegion& target, std::uint64_t offset,
                            Tag tag) {
  return start(channel_, [&](auto& channel) { return channel.put(data, bytes, target, offset, tag); });
}

Request Channel::get(void* data, std::size_t bytes, const RemoteRegion& source, std::uint64_t offset) {
  return start(channel_, [&](auto& channel) { return channel.get(data, bytes, source, offset); });
}

Request Channel::fetch_add(std::uint64_t addend, const RemoteRegion& target, std::uint64_t offset,
                           std::uint64_t* before) {
  return start(channel_, [&](auto& channel) {
    return channel.atomic(transport::RequestKind::fetch_add, {.operand = addend, .before = before}, target, offset);
  });
}

Request Channel::compare_swap(std::uint64_t expected, std::uint64_t desired, const RemoteRegion& target,
                              std::uint64_t offset, std::uint64_t* before) {
  return start(channel_, [&](auto& channel) {
    return channel.atomic(transport::RequestKind::compare_swap,
                          {.operand = expected, .swap = desired, .before = before}, target, offset);
  });
}

Request Channel::flush() {
  return start(channel_, [](auto& channel) { return channel.flush(); });
}
Request Channel::close() {
  return start(channel_, [](auto& channel) { return channel.close(); });
}

Context::Context(Config config) : config_(std::move(config)) {
  check(config_);
}

const char* to_string(ChannelState state) noexcept {
  switch (state) {
    case ChannelState::connecting:
      return "connecting";
    case ChannelState::open:
      return "open";
    case ChannelState::closing:
      return "closing";
    case ChannelState::closed:
      return "closed";
  }
  return "?";
}

const char* to_string(Status status) noexcept {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::truncated:
      return "truncated";
    case Status::canceled:
      return "canceled";
    case Status::invalid_argument:
      return "invalid argument";
    case Status::no_resources:
      return "no resources";
    case Status::not_connected:
      return "not connected";
    case Status::peer_gone:
      return "peer gone";
    case Status::timed_out:
      return "timed out";
    case Status::device_failed:
      return "device failed";
    case Status::remote_access:
      return "remote access refused";
  }
  return "?";
}

const char* to_string(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::pending:
      return "pending";
    case Outcome::accepted:
      return "accepted";
    case Outcome::delivered:
      return "delivered";
    case Outcome::not_delivered:
      return "not delivered";
    case Outcome::unknown:
      return "unknown";
  }
  return "?";
}

}  // namespace verbatim
