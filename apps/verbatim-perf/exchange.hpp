// One point's buffers on one side, and the operations that its test is made of.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "pattern.hpp"
#include "peer.hpp"
#include "plan.hpp"

namespace verbatim::perf {

class Exchange {
 public:
  // Allocates both buffers. Throws Error as Worker::allocate() does.
  Exchange(Peer& peer, const Point& point);

  [[nodiscard]] const Point& point() const { return point_; }
  [[nodiscard]] RemoteBuffers buffers() const { return {outgoing_.remote(), incoming_.remote()}; }
  void set_remote(const RemoteBuffers& remote) { remote_ = remote; }

  // Messages are numbered from 0 in each run; what checked ones hold depends on the number since the point began, so
  // that nothing left over from an earlier run passes for right.
  void begin_run(std::uint64_t iterations) {
    first_message_ = next_message_;
    next_message_ += iterations;
  }

  // -- tagged messages -------------------------------------------------------------------------------------------
  [[nodiscard]] Request send(std::uint64_t message) {
    fill(message);
    return channel_.send(outgoing_.data() + slots_.offset(message), point_.bytes, data_tag);
  }
  [[nodiscard]] Request expect(std::uint64_t message) {
    return worker_.recv(incoming_.data() + slots_.offset(message), point_.bytes, data_tag, exact_tag, channel_.id());
  }
  // No bytes, to say that something is done.
  [[nodiscard]] Request send_reply() { return channel_.send(nullptr, 0, reply_tag); }
  [[nodiscard]] Request expect_reply() { return worker_.recv(nullptr, 0, reply_tag, exact_tag, channel_.id()); }

  // -- puts and gets ---------------------------------------------------------------------------------------------
  [[nodiscard]] Request put(std::uint64_t message) {
    fill(message);
    const std::uint64_t offset = slots_.offset(message);
    return channel_.put(outgoing_.data() + offset, point_.bytes, remote_.incoming, offset);
  }
  // Its notice is a reply.
  [[nodiscard]] Request put_notify(std::uint64_t message) {
    fill(message);
    const std::uint64_t offset = slots_.offset(message);
    return channel_.put_notify(outgoing_.data() + offset, point_.bytes, remote_.incoming, offset, reply_tag);
  }
  [[nodiscard]] Request get(std::uint64_t message) {
    const std::uint64_t offset = slots_.offset(message);
    if (point_.check) spoil_pattern(incoming_.data() + offset, point_.bytes, source_message(message));
    return channel_.get(incoming_.data() + offset, point_.bytes, remote_.outgoing, offset);
  }
  // What the other side's gets will find.
  void fill_sources();

  // -- waiting and looking ---------------------------------------------------------------------------------------
  void await(const Request& request, const char* what) { peer_.await(request, what); }
  void verify(std::uint64_t message) {
    if (point_.check) look_at(message, first_message_ + message);
  }
  void verify_got(std::uint64_t message) {
    if (point_.check) look_at(message, source_message(message));
  }
  // The first that was found since the point began.
  [[nodiscard]] const std::optional<Mismatch>& mismatch() const { return mismatch_; }

 private:
  static constexpr Tag data_tag{1};
  static constexpr Tag reply_tag{2};

  void fill(std::uint64_t message) {
    if (point_.check) fill_pattern(outgoing_.data() + slots_.offset(message), point_.bytes, first_message_ + message);
  }
  // Gets read what was laid out before: as many different ones as there are slots.
  [[nodiscard]] std::uint64_t source_message(std::uint64_t message) const { return message % slots_.count; }
  void look_at(std::uint64_t message, std::uint64_t holds);

  Peer& peer_;
  Worker& worker_;
  Channel channel_;
  Point point_;
  Slots slots_;
  Region outgoing_;
  Region incoming_;
  RemoteBuffers remote_;
  std::uint64_t first_message_ = 0;
  std::uint64_t next_message_ = 0;
  std::optional<Mismatch> mismatch_;
};

struct Measured {
  double elapsed_ns = 0;
  std::uint64_t messages = 0;
  std::uint64_t operations = 0;            // messages and replies
  std::vector<std::uint64_t> round_trips;  // of latency tests, in ticks of the stopwatch
};

// Says to the other side that this one is ready.
using Announce = std::function<void()>;

// One test's two sides. lead() measures; follow() gets ready, announces it, and does what the test needs of it. Where
// the test needs nothing more, it returns at once.
struct TestSides {
  Measured (*lead)(Exchange& exchange, std::uint64_t iterations);
  void (*follow)(Exchange& exchange, std::uint64_t iterations, const Announce& announce);
  double latency_scale = 0.5;  // from what a round trip takes to the latency
};
[[nodiscard]] TestSides sides_of(TestKind test);

}  // namespace verbatim::perf
