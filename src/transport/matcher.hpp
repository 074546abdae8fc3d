// Which receive takes which message, of one worker: receives in the order they were posted, messages of one channel in
// the order they were sent. Knows nothing of how bytes come.
//
// Exact tags, which is nearly all there is, are found by hash: those of one channel under (channel, tag), those from
// any channel under (tag). Masked ones are in a list of their own, walked in order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/intrusive_list.hpp"
#include "transport/requests.hpp"
#include "verbatim/types.hpp"

namespace verbatim::transport {

// A message that came before its receive: eager with its bytes, or an offer without.
struct Unexpected {
  ChannelId source;
  Tag tag;
  std::uint64_t bytes = 0;       // of the message
  std::byte* payload = nullptr;  // eager: whoever made the entry owns it
  Channel* channel = nullptr;
  std::optional<PeerRequest> offer;
  std::uint32_t block_class = 0;  // of the store
  ListHook<Unexpected> by_arrival;
  ListHook<Unexpected> by_source;
  ListHook<Unexpected> by_tag;
};

class Matcher {
 public:
  // -- receives ----------------------------------------------------------------------------------------------------
  // A receive that no unexpected message fits. It stays in here until a message takes it or it is withdrawn.
  void post(RequestState& receive);
  void withdraw(RequestState& receive);
  // The receive that was posted first among those that a message fits, taken out; nullptr if there is none.
  [[nodiscard]] RequestState* match(ChannelId source, Tag tag) {
    return posted_ == 0 ? nullptr : match_posted(source, tag);
  }

  // -- messages ----------------------------------------------------------------------------------------------------
  void add(Unexpected& message);
  void remove(Unexpected& message);
  // The message that came first among those that a receive would take; it stays in here.
  [[nodiscard]] Unexpected* find(ChannelId source, Tag tag, TagMask mask) const {
    return unexpected_ == 0 ? nullptr : find_unexpected(source, tag, mask);
  }

  // Calls `f` with each; it may withdraw or remove the one it is given.
  template <typename F>
  void for_each_posted(F&& f) {
    for (auto& bucket : by_source_) for_each(bucket.receives, f);
    for (auto& bucket : by_tag_) for_each(bucket.receives, f);
    for_each(masked_, f);
  }
  template <typename F>
  void for_each_unexpected(F&& f) {
    for (Unexpected* message = arrivals_.front(); message != nullptr;) {
      Unexpected* const next = Arrivals::after(*message);
      f(*message);
      message = next;
    }
  }

  [[nodiscard]] std::uint32_t posted() const noexcept { return posted_; }
  [[nodiscard]] std::uint32_t unexpected() const noexcept { return unexpected_; }

 private:
  static constexpr std::size_t buckets = 1024;
  using Arrivals = IntrusiveList<Unexpected, &Unexpected::by_arrival>;
  struct SourceBucket {
    RequestList receives;
    IntrusiveList<Unexpected, &Unexpected::by_source> messages;
  };
  struct TagBucket {
    RequestList receives;
    IntrusiveList<Unexpected, &Unexpected::by_tag> messages;
  };

  [[nodiscard]] static std::size_t hash(std::uint64_t tag, std::uint32_t source) noexcept {
    return static_cast<std::size_t>(((tag ^ (std::uint64_t{source} << 32)) * 0x9e3779b97f4a7c15) >> 54);
  }
  static_assert(buckets == 1U << (64 - 54));

  template <typename F>
  static void for_each(RequestList& list, F&& f) {
    for (RequestState* receive = list.front(); receive != nullptr;) {
      RequestState* const next = RequestList::after(*receive);
      f(*receive);
      receive = next;
    }
  }
  [[nodiscard]] RequestList& list_of(const RequestState& receive) noexcept;
  [[nodiscard]] RequestState* match_posted(ChannelId source, Tag tag);
  [[nodiscard]] Unexpected* find_unexpected(ChannelId source, Tag tag, TagMask mask) const;

  std::array<SourceBucket, buckets> by_source_;
  std::array<TagBucket, buckets> by_tag_;
  RequestList masked_;
  Arrivals arrivals_;
  std::uint64_t next_order_ = 0;
  std::uint32_t posted_ = 0;
  std::uint32_t unexpected_ = 0;
};

}  // namespace verbatim::transport
