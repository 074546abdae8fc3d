#include "transport/engine.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.hpp"

namespace verbatim::transport {
namespace {

// Of the frames on the data path; peers that differ refuse each other.
constexpr std::uint32_t frame_format = 2;

// What a queue pair may be with after it was given back: the longest that a device should take to flush what is posted.
constexpr Duration drain_limit = std::chrono::seconds(2);

// Payload up to this long rides in the work request itself, where the device can.
constexpr std::uint32_t inline_bytes = 256;

[[nodiscard]] qp::RcPoolSettings pool_settings(const Config::ReliableConnection& rc) {
  return {.initial = rc.pool_initial,
          .max = rc.pool_max,
          .send_depth = rc.send_depth,
          .control_slots = rc.control_slots,
          .receive_slots = rc.receive_depth + rc.control_slots,
          .signal_interval = rc.signal_interval,
          .inline_bytes = inline_bytes,
          .drain_limit = drain_limit};
}

[[nodiscard]] control::Connector::Settings connector_settings(const Engine::Ground& ground, const Config& config) {
  return {.self = ground.identity,
          .shared = {.message_format = frame_format,
                     .message_header_bytes = sizeof(FrameHeader),
                     .ring_alignment_bytes = line_bytes},
          .connect_timeout = config.bootstrap.connect_timeout,
          .handshake_timeout = config.bootstrap.handshake_timeout};
}

// As many completions as the initial queue pairs can have at once; more are made room for as queue pairs are made.
[[nodiscard]] std::uint32_t initial_completions(const qp::RcPoolSettings& settings) {
  return std::max(1U, settings.initial) * settings.completion_entries();
}
[[nodiscard]] std::uint32_t most_completions(const qp::RcPoolSettings& settings) {
  const std::uint64_t all = std::uint64_t{settings.max} * settings.completion_entries();
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(all, UINT32_MAX));
}

}  // namespace

Engine::Engine(Ground ground, const Config& config)
    : ground_(std::move(ground)),
      config_(config),
      fragment_bytes_(std::min<std::uint64_t>(config.rendezvous.fragment_bytes, ground_.port.max_message_bytes)),
      promote_after_(config.write_queue.enabled == Switch::off ? UINT64_MAX : config.write_queue.promote_after),
      random_(ground_.seed),
      now_(ground_.clock.now()),
      domain_(ground_.context),
      registrar_{ground_.context, domain_.handle(), pinned_},
      completions_(ground_.context, domain_, initial_completions(pool_settings(config.rc)),
                   most_completions(pool_settings(config.rc))),
      pool_(ground_.context, domain_, completions_, ground_.port, pool_settings(config.rc)),
      cache_(registrar_, config.memory.registration_cache_bytes),
      requests_(config.matching.max_requests, turns_),
      receives_(config.matching.max_requests, turns_),
      matcher_(std::make_unique<Matcher>()),
      store_(config.matching.unexpected_bytes, config.eager.max_bytes),
      connector_(connector_settings(ground_, config), ground_.links, Random(random_.bits())),
      queues_(config.rc.pool_max) {}

Engine::~Engine() {
  cancel_everything();
}

void Engine::cancel_everything() noexcept {
  // Queue pairs first: when they are gone, no device touches anything that goes after them.
  for (const auto& channel : channels_) {
    if (channel->has_lane()) (void)channel->lane().take_queue();
  }
  for (const auto& channel : channels_) {
    if (channel->has_lane()) (void)channel->take_lane();
    channel->shut(Status::canceled, "the worker was closed");
    channel->retired();
  }
  matcher_->for_each_posted([this](RequestState& receive) {
    matcher_->withdraw(receive);
    receives_.end(receive, Outcome::not_delivered, Status::canceled);
  });
  matcher_->for_each_unexpected([this](Unexpected& message) {
    matcher_->remove(message);
    store_.give_back(message);
  });
}

// The whole of it. Nothing here waits, and the first two steps are all there is to do while messages flow.
unsigned Engine::progress() {
  const std::uint64_t ended_before = requests_.ended() + receives_.ended();
  ++counters_.progress_calls;
  if (++calls_since_clock_ >= calls_per_clock) wake();

  // 1. Frames that peers have written into our memory.
  unsigned events = write_queues_.empty() ? 0 : poll_write_queues();
  // 2. Completions: frames received, and room that sends and writes give back. Where there are write queues, now and
  //    then is enough: what comes next is most likely to come there, and is seen sooner by looking there more often.
  calls_since_completions_ += events == 0 ? 2 : 1;
  if (write_queues_.empty() || calls_since_completions_ >= calls_per_completions) {
    calls_since_completions_ = 0;
    events += completions_.poll([this](const qp::WorkCompletion& completion) { on_completion(completion); },
                                completions_per_poll);
  }
  if (completions_.broken()) [[unlikely]]
    break_off_all();
  // 3. Handshakes, byes and peers that are gone.
  if (connector_.has_work(now_)) carry_out_control();
  // 4. What channels have to send: queued requests, grants, credits.
  if (!touched_.empty()) push_touched();
  // 5. Queue pairs that have been given back, and channels that wait for another.
  if (!draining_.empty()) retire_queue_pairs();
  if (!recovering_.empty()) tick_recoveries();

  return events + static_cast<unsigned>(requests_.ended() + receives_.ended() - ended_before);
}

void Engine::wake() {
  calls_since_clock_ = 0;
  now_ = ground_.clock.now();
}

unsigned Engine::poll_write_queues() {
  unsigned frames = 0;
  for (Channel* channel : write_queues_) frames += channel->poll_write_queue(frames_per_poll);
  return frames;
}

void Engine::on_completion(const qp::WorkCompletion& completion) {
  Channel* channel = queues_.find(completion.qpn);
  if (channel == nullptr || completion.id.kind == qp::WorkKind::drain) {
    (void)pool_.on_completion(completion);
    return;
  }
  if (completion.id.epoch != channel->lane().epoch()) return;
  if (completion.id.kind != qp::WorkKind::receive) return channel->on_sent(completion);
  if (!completion.failed()) return channel->on_received(completion.id.slot, completion.bytes);
  // A receive is flushed because something else has failed, here or at the peer.
  const bool flushed = completion.status == qp::CompletionStatus::flushed;
  channel->break_off(Status::device_failed,
                     "the queue pair from " + channel->peer() + " failed: " + to_string(completion.status),
                     flushed ? Channel::Cause::consequence : Channel::Cause::known);
}

// Without completions nothing ends by itself any more.
void Engine::break_off_all() {
  for (const auto& channel : channels_) {
    if (!channel->has_lane()) continue;
    channel->break_off(Status::device_failed, "the completion queue can't be polled any more",
                       Channel::Cause::hopeless);
  }
}

void Engine::push_touched() {
  // Those that are touched meanwhile have their turn in the next call.
  IntrusiveList<Channel, &Channel::touched> now = std::exchange(touched_, {});
  while (Channel* channel = now.pop_front()) {
    channel->is_touched = false;
    channel->push();
    if (channel->broken()) fail(*channel);
  }
}

// -- receives -------------------------------------------------------------------------------------------------------

void Engine::deliver(RequestState& receive, const std::byte* bytes, std::uint64_t count, ChannelId source, Tag tag) {
  const std::uint64_t fits = std::min(count, receive.capacity);
  if (fits != 0) std::memcpy(receive.buffer, bytes, fits);
  receive.completion.source = source;
  receive.completion.tag = tag;
  receive.completion.bytes = count;
  receive.pool->end(receive, Outcome::delivered, count > receive.capacity ? Status::truncated : Status::ok);
}

Request Engine::receive(void* data, std::size_t capacity, Tag tag, TagMask mask, ChannelId source) {
  if (data == nullptr && capacity != 0) return refused(Status::invalid_argument);
  if (source.value > channels_.size()) return refused(Status::invalid_argument);
  Unexpected* message = matcher_->find(source, tag, mask);
  if (message == nullptr && source != any_source) {
    const Channel& from = *channels_[source.value - 1];
    if (from.state() == ChannelState::closed) {
      return refused(from.reason() == Status::ok ? Status::not_connected : from.reason());
    }
  }
  RequestState* receive = receives_.take(RequestKind::receive);
  if (receive == nullptr) return refused(Status::no_resources);
  receive->buffer = static_cast<std::byte*>(data);
  receive->capacity = capacity;
  receive->tag = tag;
  receive->mask = mask;
  receive->channel = nullptr;
  receive->completion.source = source;
  Request handle(*receive);
  if (message == nullptr) {
    matcher_->post(*receive);
    return handle;
  }
  matcher_->remove(*message);
  if (message->offer) {
    message->channel->take_offer(*receive, *message->offer, message->bytes, message->tag);
  } else {
    deliver(*receive, message->payload, message->bytes, message->source, message->tag);
  }
  store_.give_back(*message);
  return handle;
}

std::optional<Envelope> Engine::probe(Tag tag, TagMask mask, ChannelId source) const {
  const Unexpected* message = matcher_->find(source, tag, mask);
  if (message == nullptr) return std::nullopt;
  return Envelope{message->source, message->tag, message->bytes};
}

bool Engine::cancel(RequestState& receive) {
  if (receive.kind != RequestKind::receive || receive.stage != RequestStage::posted) return false;
  matcher_->withdraw(receive);
  receives_.end(receive, Outcome::not_delivered, Status::canceled);
  return true;
}

void Engine::forget_source(Channel& channel) {
  const Status why = channel.reason() == Status::ok ? Status::not_connected : channel.reason();
  matcher_->for_each_posted([&](RequestState& receive) {
    if (receive.completion.source != channel.id()) return;
    matcher_->withdraw(receive);
    receives_.end(receive, Outcome::not_delivered, why);
  });
  matcher_->for_each_unexpected([&](Unexpected& message) {
    if (message.channel != &channel || !message.offer) return;
    matcher_->remove(message);
    store_.give_back(message);
  });
}

// -- memory ---------------------------------------------------------------------------------------------------------

mem::RegisteredRegion Engine::register_memory(void* data, std::size_t bytes) {
  return mem::RegisteredRegion::of(registrar_, data, bytes, mem::Access::shared);
}

mem::RegisteredRegion Engine::allocate(std::size_t bytes) {
  return mem::RegisteredRegion::allocate(registrar_, bytes, mem::Access::shared, ground_.placement);
}

void Engine::remember_region(const mem::RegisteredRegion& region) {
  cache_.add(region);
  regions_[region.rkey().value] = {reinterpret_cast<std::uintptr_t>(region.address()), region.bytes()};
}

void Engine::forget_region(const mem::RegisteredRegion& region) noexcept {
  cache_.remove(region);
  regions_.erase(region.rkey().value);
}

bool Engine::owns_region(std::uint32_t rkey, std::uint64_t address, std::uint64_t bytes) const noexcept {
  const auto found = regions_.find(rkey);
  if (found == regions_.end()) return false;
  const OwnRegion& region = found->second;
  return address >= region.address && bytes <= region.bytes && address - region.address <= region.bytes - bytes;
}

bool Engine::lease(RequestState& request, std::uint64_t bytes, mem::Access access) {
  if (bytes == 0) return true;
  request.lease = cache_.find_or_register(request.buffer, bytes, access);
  request.leased = static_cast<bool>(request.lease);
  return request.leased;
}

std::optional<mem::RegisteredRegion> Engine::allocate_ring(std::size_t bytes, mem::Access access) {
  try {
    return mem::RegisteredRegion::allocate(registrar_, bytes, access, ground_.placement);
  } catch (const Error&) {
    return std::nullopt;  // the channel goes on without
  }
}

std::optional<mem::RegisteredRegion> Engine::allocate_write_queue(Channel& channel) {
  if (write_queues_.size() >= config_.write_queue.max_per_worker) return std::nullopt;
  // Whoever sleeps is not woken by memory that changes.
  const bool sleeps = config_.worker.wait != WaitMode::poll;
  if (sleeps || !channel.lane().queue().data_in_order()) {
    if (config_.write_queue.enabled == Switch::on && !std::exchange(warned_of_write_queues_, true)) {
      log().warn("write_queue.enabled is on, and can't be: {}",
                 sleeps ? "worker.wait is not poll" : "the device does not promise in-order placement");
    }
    return std::nullopt;
  }
  return allocate_ring(config_.write_queue.bytes, mem::Access::write_target);
}

// -- sleeping -------------------------------------------------------------------------------------------------------

bool Engine::arm() {
  if (!touched_.empty() || connector_.has_work(now_) || !write_queues_.empty()) return false;
  completions_.drain_events();
  calls_since_clock_ = calls_per_clock;  // whoever sleeps wakes later than he knows
  if (completions_.arm() != 0) return false;
  // What came before the arming raises no event.
  return progress() == 0 && touched_.empty();
}

Time Engine::next_deadline() const noexcept {
  Time next = std::min(connector_.next_deadline(), pool_.deadline());
  for (const Channel* channel : recovering_) next = std::min(next, channel->recovery_->next_tick());
  return next;
}

const WorkerCounters& Engine::counters() {
  counters_.pinned_bytes = pinned_.value();
  counters_.unexpected_bytes = store_.used();
  counters_.unexpected_peak = store_.peak();
  counters_.rnr_naks = counters_.retransmits = 0;
  for (const device::Counter& counter : ground_.context.counters(ground_.port.port.value)) {
    // The soft device's names, and those of the kernel's rxe.
    for (const char* name : {"rnr_nak_sent", "rnr_nak_received", "rcvd_rnr_err", "send_rnr_err"}) {
      if (counter.name == name) counters_.rnr_naks += counter.value;
    }
    for (const char* name : {"retransmits", "completer_retry_err"}) {
      if (counter.name == name) counters_.retransmits += counter.value;
    }
  }
  return counters_;
}

}  // namespace verbatim::transport
