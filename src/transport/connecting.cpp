// How the engine's channels come and go: the steps of the handshakes, carried out on queue pairs.
#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/config/check.hpp"
#include "base/log.hpp"
#include "transport/engine.hpp"

namespace verbatim::transport {
namespace {

// Of every channel, until its connection has been made anew.
constexpr std::uint32_t first_epoch = 1;

// As verbs counts: 7 is for ever.
[[nodiscard]] qp::RnrRetry rnr_retries(unsigned count) {
  return count == qp::RnrRetry::infinite_code ? qp::RnrRetry(qp::infinite) : qp::RnrRetry(count);
}

// What no library of this version offers: our slots would overlap, or credit frames have no place.
void refuse_useless(const SendShape& peers) {
  const std::uint64_t slots = std::uint64_t{peers.depth} + peers.control_slots;
  if (peers.control_slots >= max_credit_frames && slots <= config::most_queue_entries &&
      peers.eager_bytes >= least_eager_bytes) {
    return;
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the peer offers {} receives, {} more for control and messages of {} bytes; {} together at "
                          "most, {} for control and {} bytes at least can be used: is its memory intact?",
                          peers.depth, peers.control_slots, peers.eager_bytes, config::most_queue_entries,
                          max_credit_frames, least_eager_bytes));
}

}  // namespace

Channel& Engine::make_channel(std::string peer) {
  const ChannelId id{static_cast<std::uint32_t>(channels_.size() + 1)};
  channels_.push_back(std::make_unique<Channel>(*this, id, std::move(peer)));
  return *channels_.back();
}

Channel* Engine::channel_of(control::ConnectionId connection) const noexcept {
  const auto found = connections_.find(connection.value);
  return found == connections_.end() ? nullptr : found->second;
}

Channel& Engine::connect(std::string_view address) {
  const control::ConnectionId connection = connector_.connect(address, ground_.clock.now());
  Channel& channel = make_channel(std::string(address));
  channel.set_connection(connection);
  connections_[connection.value] = &channel;
  return channel;
}

Channel* Engine::accept() noexcept {
  if (incoming_.empty()) return nullptr;
  Channel* const channel = incoming_.front();
  incoming_.pop_front();
  return channel;
}

void Engine::carry_out_control() {
  wake();
  for (const control::Step& step : connector_.progress(now_)) {
    std::visit([this](const auto& one) { carry_out(one); }, step);
  }
}

// With all its receives posted, so that it never runs dry.
void Engine::prepare_lane(Channel& channel, std::uint32_t epoch) {
  const ReceiveShape shape{.depth = config_.rc.receive_depth,
                           .control_slots = config_.rc.control_slots,
                           .slot_bytes = slot_bytes_for(config_.eager.max_bytes),
                           .repost_batch = config_.rc.repost_batch};
  const std::size_t bytes = std::size_t{shape.depth + shape.control_slots} * shape.slot_bytes;
  auto slots = mem::RegisteredRegion::allocate(registrar_, bytes, mem::Access::receive, ground_.placement);
  auto lane = std::make_unique<Lane>(pool_.lease(), std::move(slots), shape, epoch);
  queues_.set(lane->queue().number(), channel);
  channel.prepare(std::move(lane));
  if (const int problem = channel.lane().post_all_receives(); problem != 0) {
    throw Error(ErrorCode::device_failure, "receives can't be posted: " + std::generic_category().message(problem));
  }
}

void Engine::carry_out(const control::step::Prepare& step) {
  Channel* channel = channel_of(step.connection);
  if (channel == nullptr) {
    channel = &make_channel({});
    channel->set_connection(step.connection);
    connections_[step.connection.value] = channel;
  }
  (void)give_lane_back(*channel, nullptr);  // an attempt that was lost has used it up
  try {
    prepare_lane(*channel, first_epoch);
    connector_.queue_pair_prepared(step.connection, offer_of(*channel));
  } catch (const Error& error) {
    const auto reason = error.code() == ErrorCode::no_space || error.code() == ErrorCode::permission
                            ? control::RefusalReason::no_resources
                            : control::RefusalReason::device_failed;
    connector_.give_up(step.connection, reason, error.what());
    shut(*channel, control::status_of(reason), error.what());
  }
}

control::Offer Engine::offer_of(Channel& channel) {
  const qp::LocalPort& port = ground_.port;
  channel.set_first_psn(Psn(static_cast<std::uint32_t>(random_.bits())));
  const auto reads = static_cast<std::uint8_t>(std::min<std::uint32_t>(config_.rc.reads, UINT8_MAX));
  return {.queue_pair = channel.lane().queue().number(),
          .first_sent = channel.first_psn(),
          .gid = port.address.gid,
          .gid_type = port.address.gid_type,
          .lid = port.address.lid,
          .pkey = port.pkey,
          .mtu_bytes = std::min(port.active_mtu_bytes, config_.device.mtu_bytes),
          .initiator_depth = std::min(reads, port.initiator_depth),
          .responder_resources = std::min(reads, port.responder_resources),
          .receive_depth = config_.rc.receive_depth,
          .control_slots = config_.rc.control_slots,
          .eager_max_bytes = config_.eager.max_bytes,
          .max_message_bytes = port.max_message_bytes,
          .service_level = config_.device.service_level,
          .traffic_class = config_.device.traffic_class};
}

qp::RcConnection Engine::connection_of(const Channel& channel, const control::Agreement& agreement) const {
  const qp::PacketMarks marks{.service_level = agreement.service_level,
                              .traffic_class = agreement.traffic_class,
                              .flow_label = config_.device.flow_label,
                              .hop_limit = config_.device.hop_limit};
  const qp::PortAddress peer{agreement.peer.gid, agreement.peer.gid_type, agreement.peer.lid};
  return {.peer = {.path = qp::path_to(ground_.port, peer, marks),
                   .path_mtu = qp::PathMtu::from_bytes(agreement.mtu_bytes),
                   .number = agreement.peer.queue_pair,
                   .first_expected = agreement.peer.first_sent,
                   .first_sent = channel.first_psn()},
          .pkey_index = ground_.port.pkey_index,
          .access = qp::peer_access,
          .initiator_depth = agreement.initiator_depth,
          .responder_resources = agreement.responder_resources,
          .rnr_timer = qp::RnrTimer(config_.rc.rnr_timer),
          .ack_timeout = qp::AckTimeout(config_.rc.ack_timeout),
          .retries = qp::RetryCount(config_.rc.retry_count),
          .rnr_retries = rnr_retries(config_.rc.rnr_retry_count)};
}

void Engine::connect_lane(Channel& channel, const control::Agreement& agreement) {
  const qp::RcConnection connection = connection_of(channel, agreement);
  qp::ReliableQueue& queue = channel.lane().queue();
  queue.connect_to_rtr(connection);
  queue.connect_to_rts(connection);
  const SendShape shape{
      .depth = agreement.credits, .control_slots = agreement.control_credits, .eager_bytes = agreement.eager_max_bytes};
  refuse_useless(shape);
  const std::size_t bytes = std::size_t{shape.depth + shape.control_slots} * slot_bytes_for(shape.eager_bytes);
  channel.lane().open(mem::RegisteredRegion::allocate(registrar_, bytes, mem::Access::source, ground_.placement),
                      shape);
  channel.limit_fragments(agreement.max_message_bytes);
}

void Engine::carry_out(const control::step::Connect& step) {
  Channel* const channel = channel_of(step.connection);
  if (channel == nullptr || !channel->has_lane()) return;
  try {
    connect_lane(*channel, step.agreement);
    connector_.queue_pair_connected(step.connection);
  } catch (const Error& error) {
    connector_.give_up(step.connection, control::RefusalReason::device_failed, error.what());
    shut(*channel, Status::device_failed, error.what());
  }
}

void Engine::carry_out(const control::step::TakeOver& step) {
  Channel* const from = channel_of(step.from);
  Channel* const into = channel_of(step.into);
  if (from == nullptr) {  // failed meanwhile, and the dial with it
    if (into != nullptr)
      shut(*into, Status::no_resources, "the peer's own connection, which was to take its place, failed");
    return;
  }
  connections_.erase(step.from.value);
  const char* const sentence = "another connection to the same peer took its place";
  if (into == nullptr) return shut(*from, Status::canceled, sentence);
  if (from->has_lane()) {
    (void)give_lane_back(*into, nullptr);
    queues_.set(from->lane().queue().number(), *into);
    into->take_over(*from);
  }
  from->shut(Status::canceled, sentence);  // the peer is not told: the connection goes on
}

void Engine::carry_out(const control::step::Opened& step) {
  Channel* const channel = channel_of(step.connection);
  if (channel == nullptr) return;
  if (step.incoming) {
    channel->set_peer(step.peer_address);
    incoming_.push_back(channel);
  }
  const control::Recovery::Limits limits{config_.recovery.attempts, config_.recovery.deadline};
  channel->set_recovery(std::make_unique<control::Recovery>(step.role, limits, Random(random_.bits())));
  channel->open();
}

void Engine::carry_out(const control::step::Closed& step) {
  Channel* const channel = channel_of(step.connection);
  if (channel == nullptr) return;
  const bool bye = step.status == Status::ok;
  shut(*channel, bye ? Status::peer_gone : step.status, bye ? "the peer closed the channel" : step.sentence);
}

void Engine::carry_out(const control::step::Refused& step) {
  log().info("{} was turned away: {}", step.peer_address, step.sentence);
}

// What the peer sent before it went, or before its queue pair failed, is here already, and is delivered.
void Engine::take_what_has_come(Channel& channel) {
  if (!channel.has_lane()) return;
  // One after another and no end is possible while others go on; what had come is among the first.
  (void)completions_.poll([this](const qp::WorkCompletion& completion) { on_completion(completion); },
                          completions_.capacity());
  if (channel.lane().has_reader()) (void)channel.poll_write_queue(channel.lane().reader().lines());
}

void Engine::say_bye(Channel& channel) {
  connector_.close(channel.connection());
  shut(channel, Status::ok, {});
}

void Engine::shut(Channel& channel, Status status, std::string sentence) {
  if (channel.state() == ChannelState::closed) return;
  take_what_has_come(channel);
  if (channel.broken() && channel.broken_cause_ != Channel::Cause::consequence) {
    // The device knows better than the peer's farewell why this is the end.
    status = channel.broken_status_;
    sentence = channel.broken_text_;
  }
  if (status != Status::ok) log().debug("channel to {}: {}", channel.peer(), sentence);
  connections_.erase(channel.connection().value);
  if (status != Status::ok && status != Status::peer_gone) connector_.close(channel.connection());
  std::erase(write_queues_, &channel);
  std::erase(recovering_, &channel);
  bool with_device = give_lane_back(channel, &channel);
  for (auto& [number, draining] : draining_) {
    if (draining.suspended != &channel) continue;
    draining.suspended = nullptr;
    draining.closed = &channel;
    with_device = true;
  }
  channel.shut(status, std::move(sentence));
  if (!with_device) channel.retired();
}

// The lane's memory stays until its queue pair has been drained. False: the channel had none.
bool Engine::give_lane_back(Channel& channel, Channel* closed) {
  if (!channel.has_lane()) return false;
  (void)channel.counters();
  std::unique_ptr<Lane> lane = channel.take_lane();
  std::unique_ptr<qp::ReliableQueue> queue = lane->take_queue();
  const Qpn number = queue->number();
  queues_.remove(number);
  draining_[number.value] = {std::move(lane), closed};
  pool_.give_back(std::move(queue), now_);
  return true;
}

void Engine::retire_queue_pairs() {
  for (const qp::Retired& retired : pool_.progress(now_)) {
    const auto found = draining_.find(retired.number.value);
    if (found == draining_.end()) continue;
    const Draining draining = std::move(found->second);
    draining_.erase(found);
    if (!retired.reason.empty()) log().debug("queue pair {}: {}", retired.number.value, retired.reason);
    if (draining.closed != nullptr) draining.closed->retired();
    if (draining.suspended != nullptr) recover(*draining.suspended, draining.suspended->recovery().on_drained(now_));
  }
}

void Engine::begin_close() {
  for (const auto& channel : channels_) {
    if (channel->state() == ChannelState::open || channel->state() == ChannelState::connecting) {
      (void)channel->close();
    }
  }
}

bool Engine::closed() const noexcept {
  return draining_.empty() &&
         std::ranges::all_of(channels_, [](const auto& channel) { return channel->state() == ChannelState::closed; });
}

}  // namespace verbatim::transport
