#include "traffic.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace verbatim::data_path {
void End::await(const Request& request) {
  Patience left;
  while (!request.done()) {
    worker_.progress();
    left.spend("an operation does not end");
  }
  if (request.completion().status == Status::ok) return;
  throw Error(ErrorCode::device_failure, fmt::format("an operation ends as {}: {}",
                                                     to_string(request.completion().status), channel_.reason_text()));
}

std::uint64_t End::carry_out(const Phase& phase, std::uint64_t operations, const Buffers& buffers) {
  buffers_ = buffers;
  bytes_ = phase.bytes;
  return side_ == 0 ? lead(phase.traffic, operations) : follow(phase.traffic, operations);
}

std::uint64_t End::lead(Traffic traffic, std::uint64_t operations) {
  meet();
  switch (traffic) {
    case Traffic::ping_pong:
      return lead_ping_pong(operations);
    case Traffic::stream:
      return begin_each(operations, [this] { return send(); });
    case Traffic::unexpected:
      return lead_unexpected(operations);
    case Traffic::put:
      return begin_each(operations, [this] { return channel_.put(buffers_.out, bytes_, buffers_.remote, in_offset); });
    case Traffic::get:
      return begin_each(operations, [this] { return channel_.get(buffers_.in, bytes_, buffers_.remote, out_offset); });
    case Traffic::fetch_add:
      break;
  }
  return begin_each(operations, [this] { return channel_.fetch_add(1, buffers_.remote, in_offset); });
}

std::uint64_t End::follow(Traffic traffic, std::uint64_t operations) {
  switch (traffic) {
    case Traffic::ping_pong:
      return follow_ping_pong(operations);
    case Traffic::stream:
      return follow_stream(operations);
    case Traffic::unexpected:
      return follow_unexpected(operations);
    case Traffic::put:
    case Traffic::get:
    case Traffic::fetch_add:
      break;
  }
  meet();
  return 0;
}

template <typename Begin>
std::uint64_t End::begin_each(std::uint64_t operations, Begin&& begin) {
  for (std::uint64_t i = 0; i < operations; ++i) {
    Request& slot = requests_[i % window];
    if (i >= window) await(slot);
    slot = begin();
  }
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(operations, window); ++i) await(requests_[i]);
  return operations;
}

std::uint64_t End::follow_stream(std::uint64_t operations) {
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(operations, receives); ++i) requests_[i] = expect();
  meet();
  for (std::uint64_t i = 0; i < operations; ++i) {
    Request& oldest = requests_[i % receives];
    await(oldest);
    if (i + receives < operations) oldest = expect();
  }
  return 0;
}

std::uint64_t End::lead_ping_pong(std::uint64_t operations) {
  for (std::uint64_t i = 0; i < operations; ++i) {
    const Request answer = expect();
    await(send());
    await(answer);
  }
  return operations;
}

std::uint64_t End::follow_ping_pong(std::uint64_t operations) {
  Request next = expect();
  meet();
  for (std::uint64_t i = 0; i < operations; ++i) {
    await(next);
    if (i + 1 < operations) next = expect();
    await(send());
  }
  return operations;
}

// A window's last message has a receive already, and shows that all before it have come.
std::uint64_t End::lead_unexpected(std::uint64_t operations) {
  std::uint64_t sent = 0;
  while (sent < operations) {
    const Request answer = worker_.recv(nullptr, 0, last_tag, exact_tag, channel_.id());
    for (std::uint32_t i = 1; i < window; ++i) await(send());
    await(channel_.send(nullptr, 0, last_tag));
    await(answer);
    sent += window;
  }
  return sent;
}

std::uint64_t End::follow_unexpected(std::uint64_t operations) {
  meet();
  std::uint64_t answered = 0;
  for (std::uint64_t received = 0; received < operations; received += window) {
    await(worker_.recv(nullptr, 0, last_tag, exact_tag, channel_.id()));
    for (std::uint32_t i = 1; i < window; ++i) await(expect());
    await(channel_.send(nullptr, 0, last_tag));
    ++answered;
  }
  return answered;
}

}  // namespace verbatim::data_path
