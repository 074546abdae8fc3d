// The reliable ordered stream between two workers, whatever carries it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "verbatim/region.hpp"
#include "verbatim/request.hpp"
#include "verbatim/types.hpp"

namespace verbatim {

namespace transport {
class Channel;
}

enum class ChannelState : std::uint8_t { connecting, open, closing, closed };
[[nodiscard]] const char* to_string(ChannelState state) noexcept;

// What a channel has done so far.
struct ChannelCounters {
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t posts = 0;            // work requests given to the device to send or write
  std::uint64_t signalled = 0;        // of them, those that ask for a completion
  std::uint64_t receive_posts = 0;    // calls that give receives back to the device
  std::uint64_t credit_messages = 0;  // that went alone, for lack of traffic to ride on
  std::uint64_t waited_for_credit = 0;
  std::uint64_t recoveries = 0;  // queue pairs that failed and were replaced
  std::uint64_t replayed = 0;    // frames sent again after that
};

// A handle, for its worker's thread alone, valid as long as the worker. Copies are the same channel.
//
// No call blocks. A call that can't be taken returns a Request that is done already, with the reason. Until a request
// is done its buffer belongs to the library: don't change a source, don't touch a target. After that it is the caller's
// again, whatever the outcome.
class Channel {
 public:
  Channel() = default;  // none: every call on it is refused, as not connected
  explicit Channel(transport::Channel& channel) : channel_(&channel) {}

  [[nodiscard]] ChannelId id() const noexcept;
  [[nodiscard]] ChannelState state() const noexcept;
  [[nodiscard]] Status reason() const noexcept;   // why it closed; ok while it is open or closed by this side
  [[nodiscard]] std::string reason_text() const;  // the same in a sentence that a person can act on
  [[nodiscard]] std::string peer() const;         // "host:port", as it was dialled or as it came
  [[nodiscard]] ChannelCounters counters() const noexcept;

  // Messages of one channel with equal tags are matched in the order sent, whatever their sizes. Any length, 0 with a
  // null pointer included. Done when the buffer may be used again. A message up to the eager size is then in the
  // library's hands, which delivers it unless the peer or this process dies; a flush or close says when it has been. A
  // longer one is then in the receiver's buffer, or accepted as well where it had to be copied. If the channel fails
  // while its last bytes are on the way, its outcome is unknown. May be called while connecting.
  [[nodiscard]] Request send(const void* data, std::size_t bytes, Tag tag);

  // Writes into the peer's region. Done when the remote memory has it; until then that memory holds anything. If the
  // channel fails with the bytes on the way, the outcome is unknown.
  [[nodiscard]] Request put(const void* data, std::size_t bytes, const RemoteRegion& target, std::uint64_t offset);
  // The same, and then the peer gets an empty message with `tag`, which implies that the data is there.
  [[nodiscard]] Request put_notify(const void* data, std::size_t bytes, const RemoteRegion& target,
                                   std::uint64_t offset, Tag tag);
  // Reads from the peer's region. Done when `data` has it. If the channel fails first it is not delivered, and `data`
  // holds anything.
  [[nodiscard]] Request get(void* data, std::size_t bytes, const RemoteRegion& source, std::uint64_t offset);

  // On 8 aligned bytes of the peer's region, executed by its worker in the channel's order, exactly once. `before`, if
  // given, is what was there. A misaligned one is refused. If the channel fails before the answer, the outcome is
  // unknown.
  [[nodiscard]] Request fetch_add(std::uint64_t addend, const RemoteRegion& target, std::uint64_t offset,
                                  std::uint64_t* before = nullptr);
  [[nodiscard]] Request compare_swap(std::uint64_t expected, std::uint64_t desired, const RemoteRegion& target,
                                     std::uint64_t offset, std::uint64_t* before = nullptr);

  // Done when everything sent or put before has reached the peer's library.
  [[nodiscard]] Request flush();
  // Flushes, then tells the peer. Afterwards nothing more can be sent; receives that can't be matched any more end with
  // peer_gone at the other side. Lasts until the peer has taken all, or is gone.
  [[nodiscard]] Request close();

  friend bool operator==(Channel, Channel) = default;
  [[nodiscard]] explicit operator bool() const noexcept { return channel_ != nullptr; }
  [[nodiscard]] transport::Channel* get() const noexcept { return channel_; }

 private:
  transport::Channel* channel_ = nullptr;
};

}  // namespace verbatim
