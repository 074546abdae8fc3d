#include "transport/control/recovery.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/units.hpp"

namespace verbatim::transport::control {
namespace {

const char* awaited_in(RecoveryState state) {
  switch (state) {
    case RecoveryState::draining:
      return "what was under way on the queue pair to end";
    case RecoveryState::pausing:
      return "the next attempt";
    case RecoveryState::preparing:
    case RecoveryState::connecting:
      return "a queue pair of our own";
    case RecoveryState::offered:
      return "the peer's queue pair";
    case RecoveryState::readying:
      return "the peer's queue pair to be connected";
    case RecoveryState::steady:
    case RecoveryState::lost:
      break;
  }
  return "nothing";
}

}  // namespace

const char* to_string(RecoveryState state) noexcept {
  switch (state) {
    case RecoveryState::steady:
      return "steady";
    case RecoveryState::draining:
      return "draining";
    case RecoveryState::pausing:
      return "pausing";
    case RecoveryState::preparing:
      return "preparing";
    case RecoveryState::offered:
      return "offered";
    case RecoveryState::connecting:
      return "connecting";
    case RecoveryState::readying:
      return "readying";
    case RecoveryState::lost:
      return "lost";
  }
  return "?";
}

Recovery::Recovery(Role role, const Limits& limits, Random random) : role_(role), limits_(limits), random_(random) {}

Time Recovery::next_tick() const noexcept {
  if (state_ == RecoveryState::steady || state_ == RecoveryState::lost) return never;
  return state_ == RecoveryState::pausing ? std::min(deadline_, prepare_at_) : deadline_;
}

RecoveryActions Recovery::on_failure(const std::string& why, std::uint64_t progress, Time now) {
  if (state_ == RecoveryState::lost || state_ == RecoveryState::draining) return {};
  why_ = why;
  return begin(Epoch{epoch_.value + 1}, progress, now);
}

// From any state but lost and, of our own accord, draining.
RecoveryActions Recovery::begin(Epoch epoch, std::uint64_t progress, Time now) {
  if (state_ == RecoveryState::steady) {
    began_ = now;
    deadline_ = now + limits_.deadline;
    if (progress != progress_) {
      attempts_ = 0;
      backoff_ = {first_pause, longest_pause};
    }
    progress_ = progress;
  }
  epoch_ = epoch;
  own_.reset();
  peer_.reset();
  peer_connected_ = false;
  if (++attempts_ > limits_.attempts) {
    return lose(fmt::format("{}; {} attempts to replace its queue pair have failed (recovery.attempts)", why_,
                            limits_.attempts));
  }
  // One that has not been handed out has nothing to drain.
  const bool has_queue_pair = state_ != RecoveryState::preparing && state_ != RecoveryState::pausing;
  if (has_queue_pair && state_ != RecoveryState::draining) {
    state_ = RecoveryState::draining;
    return {recovery::Drain{}};
  }
  if (state_ == RecoveryState::preparing) return on_drained(now);
  return {};
}

RecoveryActions Recovery::on_drained(Time now) {
  if (state_ != RecoveryState::draining && state_ != RecoveryState::preparing) return {};
  if (attempts_ > 1) {
    state_ = RecoveryState::pausing;
    prepare_at_ = now + backoff_.pause(random_);
    return {};
  }
  state_ = RecoveryState::preparing;
  return {recovery::Prepare{}};
}

RecoveryActions Recovery::on_prepared(const Offer& own, std::uint32_t next_expected) {
  if (state_ != RecoveryState::preparing) return {};
  own_ = own;
  state_ = RecoveryState::offered;
  RecoveryActions actions{recovery::Say{epoch_, Rehandshake{own, next_expected}}};
  if (peer_) {
    for (RecoveryAction& action : answer_peer()) actions.push_back(std::move(action));
  }
  return actions;
}

RecoveryActions Recovery::answer_peer() {
  auto agreed = agree(*own_, peer_->offer, role_);
  if (const std::string* differs = std::get_if<std::string>(&agreed)) return lose(why_ + "; and now " + *differs);
  state_ = RecoveryState::connecting;
  return {recovery::Connect{std::get<Agreement>(agreed)}};
}

RecoveryActions Recovery::on_connected(Time now) {
  if (state_ != RecoveryState::connecting) return {};
  state_ = RecoveryState::readying;
  RecoveryActions actions{recovery::Say{epoch_, Reconnected{}}};
  if (peer_connected_) {
    for (RecoveryAction& action : resume(now)) actions.push_back(std::move(action));
  }
  return actions;
}

RecoveryActions Recovery::on_message(const Message& message, std::uint64_t progress, Time now) {
  if (state_ == RecoveryState::lost || message.epoch < epoch_) return {};
  if (std::holds_alternative<Reconnected>(message.content)) {
    if (message.epoch != epoch_ || state_ == RecoveryState::steady) return {};
    peer_connected_ = true;
    return state_ == RecoveryState::readying ? resume(now) : RecoveryActions{};
  }
  const auto* again = std::get_if<Rehandshake>(&message.content);
  if (again == nullptr) return {};
  RecoveryActions actions;
  if (message.epoch > epoch_) {
    if (state_ == RecoveryState::steady) why_ = "the peer's queue pair failed";
    actions = begin(message.epoch, progress, now);
    if (state_ == RecoveryState::lost) return actions;
  } else if (state_ == RecoveryState::steady || peer_) {
    return {};
  }
  peer_ = *again;
  if (state_ == RecoveryState::offered) return answer_peer();
  return actions;
}

RecoveryActions Recovery::resume(Time now) {
  state_ = RecoveryState::steady;
  deadline_ = never;
  return {recovery::Resume{peer_->next_expected, why_, attempts_, now - began_}};
}

RecoveryActions Recovery::lose(std::string sentence) {
  state_ = RecoveryState::lost;
  return {recovery::Lose{std::move(sentence)}};
}

RecoveryActions Recovery::on_tick(Time now) {
  if (now < next_tick()) return {};
  if (now >= deadline_) {
    return lose(fmt::format("{}; recovery.deadline ({}) passed while waiting for {}", why_,
                            format_duration(limits_.deadline), awaited_in(state_)));
  }
  state_ = RecoveryState::preparing;
  return {recovery::Prepare{}};
}

}  // namespace verbatim::transport::control
