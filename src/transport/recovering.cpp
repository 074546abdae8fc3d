// The engine's part in bringing channels back: the actions of their recoveries, carried out on queue pairs.
#include <utility>

#include "base/log.hpp"
#include "base/units.hpp"
#include "transport/engine.hpp"

namespace verbatim::transport {

bool Engine::can_recover(const Channel& channel) const noexcept {
  return config_.recovery.enabled && channel.recovery_ != nullptr &&
         channel.broken_cause_ != Channel::Cause::hopeless && channel.broken_status_ == Status::device_failed;
}

void Engine::fail(Channel& channel) {
  if (!can_recover(channel)) return shut(channel, channel.broken_status_, channel.broken_text_);
  wake();
  recover(channel, channel.recovery().on_failure(channel.broken_text_, channel.progress_made(), now_));
}

void Engine::carry_out(const control::step::Recover& step) {
  Channel* const channel = channel_of(step.connection);
  if (channel == nullptr || channel->recovery_ == nullptr) return;
  if (!config_.recovery.enabled) {
    return shut(*channel, Status::device_failed,
                "the queue pair of " + channel->peer() + " failed, and recovery.enabled is off at this end");
  }
  recover(*channel, channel->recovery().on_message(step.message, channel->progress_made(), now_));
}

void Engine::recover(Channel& channel, const control::RecoveryActions& actions) {
  for (const control::RecoveryAction& action : actions) {
    if (channel.state() == ChannelState::closed) return;
    std::visit([&](const auto& what) { carry_out(channel, what); }, action);
  }
}

void Engine::carry_out(Channel& channel, const control::recovery::Drain&) {
  if (!channel.suspended()) {
    take_what_has_come(channel);
    log().debug("channel to {}: its queue pair is replaced: {}", channel.peer(),
                channel.broken() ? channel.broken_text_ : "the peer asks for it");
    recovering_.push_back(&channel);
    std::erase(write_queues_, &channel);
  }
  channel.suspend();
  const std::uint32_t number = channel.lane().queue().number().value;
  (void)give_lane_back(channel, nullptr);
  draining_[number].suspended = &channel;
}

void Engine::carry_out(Channel& channel, const control::recovery::Prepare&) {
  control::Recovery& recovery = channel.recovery();
  try {
    prepare_lane(channel, recovery.epoch().value);
  } catch (const Error& error) {
    (void)give_lane_back(channel, nullptr);
    return recover(channel, recovery.on_failure(error.what(), channel.progress_made(), now_));
  }
  recover(channel, recovery.on_prepared(offer_of(channel), channel.expected_sequence()));
}

void Engine::carry_out(Channel& channel, const control::recovery::Connect& action) {
  control::Recovery& recovery = channel.recovery();
  try {
    connect_lane(channel, action.agreement);
  } catch (const Error& error) {
    return recover(channel, recovery.on_failure(error.what(), channel.progress_made(), now_));
  }
  recover(channel, recovery.on_connected(now_));
}

void Engine::carry_out(Channel& channel, const control::recovery::Say& action) {
  std::visit([&](const auto& content) { connector_.send(channel.connection(), action.epoch, content); },
             action.content);
}

void Engine::carry_out(Channel& channel, const control::recovery::Resume& action) {
  std::erase(recovering_, &channel);
  if (!channel.resume(action.next_expected_by_peer)) {
    return shut(channel, Status::device_failed,
                "after a queue pair failed, " + channel.peer() +
                    " expects a message that it has had, or that was never "
                    "sent; is its memory intact?");
  }
  ++channel.counters_.recoveries;
  log().info("channel to {} has come back on queue pair {} after {}: {} (attempt {})", channel.peer(),
             channel.lane().queue().number().value, format_duration(action.took), action.why, action.attempts);
}

void Engine::carry_out(Channel& channel, const control::recovery::Lose& action) {
  channel.broken_ = false;  // said in the sentence
  shut(channel, Status::device_failed, action.sentence);
}

void Engine::tick_recoveries() {
  for (std::size_t i = recovering_.size(); i-- > 0;) {
    Channel& channel = *recovering_[i];
    if (now_ >= channel.recovery().next_tick()) recover(channel, channel.recovery().on_tick(now_));
  }
}

}  // namespace verbatim::transport
