#include "follower.hpp"

#include <fmt/format.h>

#include <optional>

#include "base/error.hpp"
#include "exchange.hpp"
#include "yardstick.hpp"

namespace verbatim::perf {
namespace {

class Follower {
 public:
  Follower(Peer& peer, apps::HandoverLines* lines, const std::function<void()>& look_after)
      : peer_(peer), lines_(lines), look_after_(look_after) {}

  // False: that was the last.
  bool follow(const Order& order) {
    switch (order.ask) {
      case Ask::point:
        exchange_.emplace(peer_, order.point);
        exchange_->set_remote(order.buffers);
        peer_.tell(encode(Answer{.buffers = exchange_->buffers()}));
        return true;
      case Ask::run:
        run(order.iterations);
        return true;
      case Ask::report:
        report();
        return true;
      case Ask::yardstick:
        if (lines_ == nullptr)
          throw Error(ErrorCode::invalid_argument, "the other side thinks that it is on this host");
        (void)handover_ns(*lines_, 1, order.iterations, look_after_);
        return true;
      case Ask::finish:
        break;
    }
    if (!order.problem.empty()) throw Error(ErrorCode::device_failure, "the other side gave up: " + order.problem);
    return false;
  }

 private:
  Exchange& exchange() {
    if (exchange_) return *exchange_;
    throw Error(ErrorCode::invalid_argument, "the other side runs before it names a point");
  }

  void run(std::uint64_t iterations) {
    exchange().begin_run(iterations);
    const TestSides sides = sides_of(exchange().point().test);
    sides.follow(exchange(), iterations, [this] {
      peer_.tell(encode(Answer{}));
      before_ = peer_.use();
    });
    after_ = peer_.use();
  }

  // What is only written to and read from spends what it spends until it is asked.
  void report() {
    const TestKind test = exchange().point().test;
    const bool passive = test == TestKind::put_bw || test == TestKind::get_bw || test == TestKind::get_lat;
    Answer answer{.use = (passive ? peer_.use() : after_) - before_};
    if (exchange().mismatch()) answer.problem = "wrong payload there: " + to_string(*exchange().mismatch());
    peer_.tell(encode(answer));
  }

  Peer& peer_;
  apps::HandoverLines* lines_;
  const std::function<void()>& look_after_;
  std::optional<Exchange> exchange_;
  SideUse before_;
  SideUse after_;
};

}  // namespace

void follow_orders(Peer& peer, apps::HandoverLines* lines, const std::function<void()>& look_after) {
  Follower follower(peer, lines, look_after);
  try {
    while (follower.follow(decode_order(peer.hear(passive_patience)))) {
    }
  } catch (const Error& error) {
    try {
      if (peer.channel().state() == ChannelState::open) peer.tell(encode(Answer{.problem = error.what()}));
    } catch (const Error&) {  // the first failure is the one to tell
    }
    throw;
  }
}

}  // namespace verbatim::perf
