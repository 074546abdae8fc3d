// One end of a channel: what it has still to send, and what becomes of what comes in. Its life (connecting, closing,
// failing) is in channel.cpp, its sending in push.cpp, its receiving in frames.cpp, and each protocol in a file of its
// own.
//
// A request is in one list at a time, the one that its stage says:
//
//   queued_ ──▶ offered_ ──▶ moving_ ──▶ landing_ ──▶ ended       a rendezvous send
//           ──▶ landing_ ──▶ ended                               put, get: from the queue when all their bytes are
//           posted ──▶ offered_ ──▶ ended                               atomics, until the reply ──▶ waiting_ ──▶ ended
//           flush, close ──▶ ended                                            an eager send
//   (matcher) ──▶ granting_ ──▶ incoming_ ──▶ ended              a receive that met an offer
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/turns.hpp"
#include "transport/control/connector.hpp"
#include "transport/control/recovery.hpp"
#include "transport/frame.hpp"
#include "transport/lane.hpp"
#include "transport/remote_region.hpp"
#include "transport/requests.hpp"
#include "verbatim/channel.hpp"

namespace verbatim::transport {

class Engine;
struct Unexpected;

class Channel {
 public:
  Channel(Engine& engine, ChannelId id, std::string peer);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // -- for the user, by way of verbatim::Channel --------------------------------------------------------------------
  [[nodiscard]] Request send(const void* data, std::size_t bytes, Tag tag) {
    if (bytes < eager_below_ && (data != nullptr || bytes == 0)) [[likely]] {
      if (send_frame(data, static_cast<std::uint32_t>(bytes), tag)) {
        return Request(accepted_record);
      }
    }
    return send_later(data, bytes, tag);
  }
  [[nodiscard]] Request put(const void* data, std::size_t bytes, const RemoteRegion& target, std::uint64_t offset,
                            std::optional<Tag> notice);
  [[nodiscard]] Request get(void* data, std::size_t bytes, const RemoteRegion& source, std::uint64_t offset);
  struct AtomicOperands {
    std::uint64_t operand = 0;
    std::uint64_t swap = 0;
    std::uint64_t* before = nullptr;
  };
  [[nodiscard]] Request atomic(RequestKind kind, const AtomicOperands& operands, const RemoteRegion& target,
                               std::uint64_t offset);
  [[nodiscard]] Request flush();
  [[nodiscard]] Request close();

  [[nodiscard]] Turns& turns() const noexcept;  // at its engine
  [[nodiscard]] ChannelId id() const noexcept { return id_; }
  [[nodiscard]] ChannelState state() const noexcept { return state_; }
  [[nodiscard]] Status reason() const noexcept { return reason_; }
  [[nodiscard]] const std::string& reason_text() const noexcept { return reason_text_; }
  [[nodiscard]] const std::string& peer() const noexcept { return peer_; }
  [[nodiscard]] const ChannelCounters& counters() noexcept;

  // -- life, for the engine -----------------------------------------------------------------------------------------
  [[nodiscard]] control::ConnectionId connection() const noexcept { return connection_; }
  void set_connection(control::ConnectionId connection) noexcept { connection_ = connection; }
  void set_peer(std::string peer) { peer_ = std::move(peer); }
  [[nodiscard]] Psn first_psn() const noexcept { return first_psn_; }
  void set_first_psn(Psn first) noexcept { first_psn_ = first; }
  void limit_fragments(std::uint64_t max_message_bytes) noexcept { max_message_bytes_ = max_message_bytes; }
  // Has a queue pair with receives posted from here on.
  void prepare(std::unique_ptr<Lane> lane) noexcept {
    lane_ = std::move(lane);
    early_.clear();
    const qp::ReliableQueue::Counters& device = lane_->queue().counters();
    posts_before_ = counters_.posts - device.posts;
    signalled_before_ = counters_.signalled - device.signalled;
    receive_posts_before_ = counters_.receive_posts - device.receive_posts;
  }
  // The connection of `from`, which was never shown, is this channel's: with all that was agreed for it, and what has
  // come.
  void take_over(Channel& from) noexcept;
  [[nodiscard]] bool has_lane() const noexcept { return lane_ != nullptr; }
  [[nodiscard]] std::unique_ptr<Lane> take_lane() noexcept { return std::move(lane_); }
  void open();
  // Its lane has been taken away. Ends everything that no device can touch, now; the rest ends with retired().
  void shut(Status status, std::string sentence);
  // The queue pair has been drained: no device touches the buffers of what was under way.
  void retired();
  // What went wrong while the lists were in use; the engine shuts the channel, or has it recover, as soon as they are
  // not.
  enum class Cause : std::uint8_t {
    known,        // the first known cause counts
    consequence,  // … and until one is known, the first of these
    hopeless,     // another queue pair would be of no use; counts in any case
  };
  void break_off(Status status, std::string sentence, Cause cause = Cause::known);
  [[nodiscard]] bool broken() const noexcept { return broken_; }

  // -- recovery, for the engine (recovery.cpp) -----------------------------------------------------------------------
  [[nodiscard]] control::Recovery& recovery() noexcept { return *recovery_; }
  void set_recovery(std::unique_ptr<control::Recovery> recovery) noexcept { recovery_ = std::move(recovery); }
  // Changes while the channel moves anything.
  [[nodiscard]] std::uint64_t progress_made() const noexcept;
  // Before its lane is taken away: keeps what the peer may not have. Until resume() nothing is sent or taken.
  void suspend();
  // With a lane that is connected. `next_expected_by_peer`: the first frame that it has not taken. False: it asks for
  // one that this end does not have.
  [[nodiscard]] bool resume(std::uint32_t next_expected_by_peer);
  [[nodiscard]] bool suspended() const noexcept { return suspended_; }
  [[nodiscard]] std::uint32_t expected_sequence() const noexcept {
    return suspended_ ? expected_sequence_ : lane_->expected_sequence();
  }

  // -- receiving, for the engine ------------------------------------------------------------------------------------
  [[nodiscard]] Lane& lane() noexcept { return *lane_; }
  // A frame in receive slot `slot`, of `bytes` as the device says.
  void on_received(std::uint32_t slot, std::uint32_t bytes);
  // Takes at most `limit` frames out of the write queue; how many.
  unsigned poll_write_queue(unsigned limit);
  // A completion of something posted to the send queue.
  void on_sent(const qp::WorkCompletion& completion);
  // A receive takes a message that was offered.
  void take_offer(RequestState& receive, PeerRequest send, std::uint64_t bytes, Tag tag);
  // Sends whatever can be sent now.
  void push();

  ListHook<Channel> touched;  // the engine's list of channels to push
  bool is_touched = false;

 private:
  // push.cpp
  [[nodiscard]] Request send_later(const void* data, std::size_t bytes, Tag tag);
  [[nodiscard]] Request queue(RequestState& request);
  [[nodiscard]] bool issue(RequestState& request);
  [[nodiscard]] bool goes_eagerly(const RequestState& send) const noexcept;
  [[nodiscard]] bool send_eager(RequestState& request);
  void settle_flushes();
  [[nodiscard]] bool outstanding_before(std::uint64_t order) const noexcept;
  void offer_write_queue();
  void settle_credits();
  void update_eager() noexcept;
  [[nodiscard]] bool has_something_to_push() const noexcept;

  // frames.cpp
  void on_frame(const FrameHeader& frame, const std::byte* body);
  void on_eager(const FrameHeader& frame, const std::byte* body);
  void on_write_queue(const WriteQueueOffer& offer);
  void violate(const char* what);

  // rendezvous.cpp
  [[nodiscard]] bool offer(RequestState& send);
  void on_ready_to_send(const FrameHeader& frame, const RendezvousOffer& offer);
  [[nodiscard]] bool grant(RequestState& receive);
  void on_clear_to_send(const RendezvousGrant& grant);
  [[nodiscard]] bool move(RequestState& send);
  [[nodiscard]] bool send_pieces(RequestState& send);
  [[nodiscard]] RequestState* find_granted(PeerRequest receive);
  void on_piece(const Piece& piece, const std::byte* bytes, std::uint32_t count);
  void on_finished(const RendezvousEnd& end);

  // recovery.cpp
  // Sends again what was under way. False: no room for all of it yet.
  [[nodiscard]] bool replay();
  void settle_lost_fragments(std::uint32_t next_expected_by_peer);

  // one_sided.cpp
  [[nodiscard]] Request one_sided(RequestKind kind, std::byte* buffer, std::size_t bytes, const RemoteRange& range,
                                  std::optional<Tag> notice);
  [[nodiscard]] bool issue_put(RequestState& put);
  [[nodiscard]] bool issue_get(RequestState& get);
  // Posts writes or reads until all are posted (true) or there is no room.
  [[nodiscard]] bool post_fragments(RequestState& request, std::uint32_t most_on_the_way);
  // `request`'s bytes from `offset` on. False: refused, and the channel is broken.
  [[nodiscard]] bool post_fragment(RequestState& request, std::uint64_t offset, std::uint32_t bytes);
  void on_fragment_done(RequestState& request, std::uint32_t bytes);
  // All bytes are posted: it ends, or waits for those that have not completed.
  void land(RequestState& request);
  void on_fragments_done(std::uint32_t ordinal);
  void on_send_failed(qp::CompletionStatus status);

  // atomics.cpp
  [[nodiscard]] bool ask_atomic(RequestState& request);
  void on_atomic_request(const AtomicRequest& request);
  [[nodiscard]] bool reply_atomics();
  void on_atomic_reply(const AtomicReply& reply);

  // A frame with a fixed body. False: no room now, or the channel is broken.
  template <typename Body>
  [[nodiscard]] bool send_body(FrameKind kind, Tag tag, const Body& body) {
    std::byte* const frame = lane_->begin(sizeof(Body));
    if (frame == nullptr) return false;
    std::memcpy(body_of(frame), &body, sizeof(Body));
    return commit(frame, kind, sizeof(Body), tag);
  }
  [[nodiscard]] bool commit(std::byte* frame, FrameKind kind, std::uint32_t length, Tag tag) {
    const int problem = lane_->send(frame, {.kind = kind, .flags = our_flags(), .length = length, .tag = tag.value});
    if (problem != 0) [[unlikely]]
      refused_post(problem);
    return problem == 0;
  }
  [[nodiscard]] bool send_frame(const void* data, std::uint32_t bytes, Tag tag) {
    std::byte* const frame = lane_->begin(bytes);
    if (frame == nullptr) [[unlikely]]
      return false;
    if (bytes != 0) std::memcpy(body_of(frame), data, bytes);
    ++counters_.messages_sent;
    counters_.bytes_sent += bytes;
    return commit(frame, FrameKind::eager, bytes, tag);
  }
  [[nodiscard]] FrameFlag our_flags() const noexcept;
  void refused_post(int problem);
  void end(RequestState& request, Outcome outcome, Status status) noexcept;
  void end_all(RequestList& list, Outcome outcome, Status status) noexcept;

  Engine& engine_;
  std::unique_ptr<Lane> lane_;
  std::uint64_t eager_below_ = 0;  // messages shorter than this may go out at once and eagerly; 0: none may
  RequestList queued_;
  RequestList offered_;
  RequestList moving_;
  RequestList landing_;
  RequestList waiting_;
  RequestList granting_;
  RequestList incoming_;
  bool peer_headers_only_ = false;
  bool flush_asked_ = false;  // a flush frame is on its way, or its answer
  bool owes_answer_ = false;  // … of the peer's
  bool write_queue_offered_ = false;
  std::uint64_t next_order_ = 1;
  Lane::Position flush_position_;

  // Writes and reads that have not completed, oldest first: a ring with room for the whole send queue.
  struct Fragment {
    std::uint32_t ordinal = 0;
    std::uint32_t bytes = 0;
    std::uint32_t next_sequence = 0;  // of the frame behind it: who has taken that has the bytes
    std::uint64_t offset = 0;         // in the request
    RequestState* request = nullptr;
  };
  std::vector<Fragment> fragments_;
  std::uint32_t first_fragment_ = 0;
  std::uint32_t fragment_count_ = 0;
  std::uint64_t fragment_bytes_ = 0;  // of each, at most
  std::uint64_t fragments_done_ = 0;

  // Replies to atomics that wait for room. The peer has no more requests than that under way.
  static constexpr std::uint32_t max_atomics = 64;
  std::array<AtomicReply, max_atomics> replies_;
  std::uint32_t first_reply_ = 0;
  std::uint32_t reply_count_ = 0;
  std::uint32_t atomics_out_ = 0;

  // Received before the channel opened: until then it may turn out to be another's. Bounded by the receives posted.
  struct EarlyFrame {
    std::uint32_t slot = 0;
    std::uint32_t bytes = 0;
  };
  std::vector<EarlyFrame> early_;

  // Since the lane was taken away, and until all of it has been sent again.
  struct LostFrame {
    FrameKind kind = FrameKind::none;
    std::uint32_t sequence = 0;
    Tag tag;
    std::vector<std::byte> body;
  };
  std::unique_ptr<control::Recovery> recovery_;
  bool suspended_ = false;
  bool replaying_ = false;
  std::uint32_t expected_sequence_ = 0;  // while suspended
  std::uint64_t taken_by_peer_ = 0;      // frames, when it was resumed last
  std::uint32_t next_sequence_ = 0;      // … of a frame that is new
  std::deque<LostFrame> lost_frames_;
  std::deque<Fragment> lost_fragments_;

  ChannelId id_;
  ChannelState state_ = ChannelState::connecting;
  Status reason_ = Status::ok;
  bool broken_ = false;
  bool deaf_ = false;         // the peer has broken the protocol: nothing it sends counts any more
  bool close_asked_ = false;  // nothing is taken any more
  Status broken_status_ = Status::ok;
  Cause broken_cause_ = Cause::known;
  std::string reason_text_;
  std::string broken_text_;
  std::string peer_;
  control::ConnectionId connection_;
  Psn first_psn_;                        // of our packets
  std::uint64_t max_message_bytes_ = 0;  // that both ends' devices take
  ChannelCounters counters_;
  std::uint64_t posts_before_ = 0;  // this lane; the device counts on when a queue pair is used again
  std::uint64_t signalled_before_ = 0;
  std::uint64_t receive_posts_before_ = 0;

  friend class Engine;
};

}  // namespace verbatim::transport
