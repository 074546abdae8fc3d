#include "transport/matcher.hpp"

namespace verbatim::transport {
namespace {

[[nodiscard]] bool accepts(Tag wanted, TagMask mask, Tag tag) noexcept {
  return ((wanted.value ^ tag.value) & mask.bits) == 0;
}

[[nodiscard]] ChannelId source_of(const RequestState& receive) noexcept {
  return receive.completion.source;
}

[[nodiscard]] bool accepts(const RequestState& receive, ChannelId source, Tag tag) noexcept {
  const ChannelId wanted = source_of(receive);
  return (wanted == any_source || wanted == source) && accepts(receive.tag, receive.mask, tag);
}

// The first of a list that fits and was posted before `best`, which may be nullptr.
[[nodiscard]] RequestState* earlier(const RequestList& list, RequestState* best, ChannelId source, Tag tag) noexcept {
  for (RequestState* receive = list.front(); receive != nullptr; receive = RequestList::after(*receive)) {
    if (best != nullptr && receive->order > best->order) return best;
    if (accepts(*receive, source, tag)) return receive;
  }
  return best;
}

}  // namespace

RequestList& Matcher::list_of(const RequestState& receive) noexcept {
  if (receive.mask != exact_tag) return masked_;
  const ChannelId source = source_of(receive);
  if (source == any_source) return by_tag_[hash(receive.tag.value, 0)].receives;
  return by_source_[hash(receive.tag.value, source.value)].receives;
}

void Matcher::post(RequestState& receive) {
  receive.order = next_order_++;
  receive.stage = RequestStage::posted;
  list_of(receive).push_back(receive);
  ++posted_;
}

void Matcher::withdraw(RequestState& receive) {
  list_of(receive).remove(receive);
  --posted_;
}

RequestState* Matcher::match_posted(ChannelId source, Tag tag) {
  RequestState* best = earlier(by_source_[hash(tag.value, source.value)].receives, nullptr, source, tag);
  best = earlier(by_tag_[hash(tag.value, 0)].receives, best, source, tag);
  best = earlier(masked_, best, source, tag);
  if (best != nullptr) withdraw(*best);
  return best;
}

void Matcher::add(Unexpected& message) {
  arrivals_.push_back(message);
  by_source_[hash(message.tag.value, message.source.value)].messages.push_back(message);
  by_tag_[hash(message.tag.value, 0)].messages.push_back(message);
  ++unexpected_;
}

void Matcher::remove(Unexpected& message) {
  arrivals_.remove(message);
  by_source_[hash(message.tag.value, message.source.value)].messages.remove(message);
  by_tag_[hash(message.tag.value, 0)].messages.remove(message);
  --unexpected_;
}

Unexpected* Matcher::find_unexpected(ChannelId source, Tag tag, TagMask mask) const {
  const auto first_of = [&](const auto& list) -> Unexpected* {
    for (Unexpected* message = list.front(); message != nullptr; message = list.after(*message)) {
      if ((source == any_source || source == message->source) && accepts(tag, mask, message->tag)) return message;
    }
    return nullptr;
  };
  if (mask != exact_tag) return first_of(arrivals_);
  if (source == any_source) return first_of(by_tag_[hash(tag.value, 0)].messages);
  return first_of(by_source_[hash(tag.value, source.value)].messages);
}

}  // namespace verbatim::transport
