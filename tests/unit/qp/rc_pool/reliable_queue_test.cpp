#include "qp/reliable_queue.hpp"

#include <array>
#include <cerrno>

#include "unit/qp/rc_pool/two_workers.hpp"

namespace verbatim::qp::testing {
namespace {

// Handed over once per message.
static_assert(sizeof(WorkCompletion) <= 24);

class ReliableQueues : public TwoWorkers {
 protected:
  void expect_nothing_refused() {
    for (Worker* worker : {&*a, &*b}) {
      EXPECT_EQ(worker->counter("refused_posts"), 0U);
      EXPECT_EQ(worker->counter("cq_overruns"), 0U);
      EXPECT_EQ(worker->counter("rnr_nak_sent"), 0U);
    }
  }
};

// Numbered messages of one queue pair, at its receiver: in order, receives posted again four at a time.
class Receiver {
 public:
  static constexpr std::uint32_t batch = 4;

  Receiver(Worker& worker, ReliableQueue& queue) : worker_(worker), queue_(queue) {
    EXPECT_EQ(worker_.post_receives(queue_, 1, 0, queue_.sizes().receive_slots), 0);
    granted_ = queue_.sizes().receive_slots;
  }

  void take(const WorkCompletion& completion) {
    ASSERT_FALSE(completion.failed()) << to_string(completion.status);
    ASSERT_EQ(completion.bytes, sizeof(std::uint64_t));
    std::uint64_t number = 0;
    std::memcpy(&number, worker_.slot(completion.id.slot).address, sizeof(number));
    ASSERT_EQ(number, received_);
    ++received_;
    taken_.push_back(worker_.slot(completion.id.slot));
    if (taken_.size() < batch) return;
    ASSERT_EQ(queue_.post_receives(1, taken_), 0);
    granted_ += batch;
    taken_.clear();
  }
  [[nodiscard]] std::uint64_t granted() const { return granted_; }
  [[nodiscard]] std::uint64_t received() const { return received_; }

 private:
  Worker& worker_;
  ReliableQueue& queue_;
  std::vector<ReceiveSlot> taken_;
  std::uint64_t granted_ = 0;  // receives posted since the beginning
  std::uint64_t received_ = 0;
};

TEST_F(ReliableQueues, CarryAHundredThousandMessagesThroughEightSlotsWithoutBeingRefused) {
  constexpr std::uint64_t messages = 100'000;
  open();
  Lane lane = connected();
  Receiver receiver(*b, *lane.b);
  std::uint64_t sent = 0;
  std::uint64_t waited_for_slots = 0;
  while (receiver.received() < messages) {
    while (sent < messages && sent < receiver.granted() && lane.a->send_slots_free() > 0) {
      const Segment number{&sent, sizeof(sent), LKey{}};
      ASSERT_EQ(lane.a->post_send(WorkKind::send, 1, {&number, 1}, Signal::no, Inline::yes), 0);
      ++sent;
    }
    waited_for_slots += lane.a->send_slots_free() == 0 ? 1 : 0;
    ASSERT_TRUE(network.step()) << sent << " sent, " << receiver.received() << " received, "
                                << lane.a->sends_outstanding() << " outstanding";
    for (const auto& completion : a->poll()) {
      ASSERT_FALSE(completion.failed()) << to_string(completion.status);
      EXPECT_GT(lane.a->on_send_completed(completion.id), 0U);
    }
    for (const auto& completion : b->poll()) receiver.take(completion);
  }
  network.run_for(1ms);
  for (const auto& completion : a->poll()) lane.a->on_send_completed(completion.id);

  EXPECT_GT(waited_for_slots, 0U) << "the slots were what it had to wait for";
  EXPECT_LT(lane.a->sends_outstanding(), 4U) << "all but those behind the last completion";
  const auto& counters = lane.a->counters();
  EXPECT_EQ(counters.posts, messages);
  EXPECT_GE(counters.signalled, messages / 4);
  EXPECT_LT(counters.signalled, messages * 3 / 4);
  EXPECT_LE(lane.b->counters().receive_posts, messages / Receiver::batch + 1);
  expect_nothing_refused();
}

TEST_F(ReliableQueues, AskForNoMoreCompletionsThanTheIntervalWhereSlotsAreMany) {
  auto settings = small_pool();
  settings.send_depth = 128;
  settings.receive_slots = 64;
  settings.signal_interval = 32;
  open(settings);
  Lane lane = connected();
  for (int round = 0; round < 10; ++round) {
    ASSERT_EQ(b->post_receives(*lane.b, 1, 0, 64), 0);
    for (int i = 0; i < 64; ++i) ASSERT_EQ(lane.a->post_send(WorkKind::send, 1, {}, Signal::no, Inline::no), 0);
    ASSERT_EQ(completions(*b, 64).size(), 64U);
    for (const auto& completion : completions(*a, 2)) EXPECT_EQ(lane.a->on_send_completed(completion.id), 32U);
  }
  EXPECT_EQ(lane.a->counters().signalled, 20U);
  EXPECT_EQ(lane.a->sends_outstanding(), 0U);
}

TEST_F(ReliableQueues, GatherUpToFourSegments) {
  open();
  Lane lane = connected();
  ASSERT_EQ(b->post_receives(*lane.b, 7, 100, 1), 0);
  for (std::size_t i = 0; i < 16; ++i) a->memory[i * 10] = std::byte(i + 1);
  const std::array segments{a->piece(0, 1), a->piece(10, 1), a->piece(20, 1), a->piece(30, 1)};
  ASSERT_EQ(lane.a->post_send(WorkKind::send, 7, segments, Signal::yes, Inline::no), 0);
  const auto received = completions(*b, 1);
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].id, (WorkId{WorkKind::receive, 100, 7}));
  EXPECT_EQ(received[0].qpn, lane.b->number());
  EXPECT_EQ(received[0].bytes, 4U);
  const auto* landed = static_cast<const std::byte*>(b->slot(100).address);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(landed[i], std::byte(i + 1));
  const std::array<Segment, 5> too_many{};
  EXPECT_EQ(lane.a->post_send(WorkKind::send, 7, too_many, Signal::yes, Inline::no), EINVAL);
  expect_nothing_refused();
}

TEST_F(ReliableQueues, WriteAndRead) {
  open();
  Lane lane = connected();
  EXPECT_TRUE(lane.a->data_in_order());
  a->memory[0] = std::byte{42};
  b->memory[300] = std::byte{43};
  const auto source = a->piece(0, 100);
  const auto sink = a->piece(500, 100);
  ASSERT_EQ(lane.a->post_write(3, {&source, 1}, b->place(200), Signal::yes, Inline::no), 0);
  ASSERT_EQ(lane.a->post_read(3, {&sink, 1}, b->place(300), Signal::yes), 0);
  const auto ended = completions(*a, 2);
  ASSERT_EQ(ended.size(), 2U);
  EXPECT_EQ(ended[0].id, (WorkId{WorkKind::write, 0, 3}));
  EXPECT_EQ(ended[1].id, (WorkId{WorkKind::read, 1, 3}));
  EXPECT_FALSE(ended[0].failed() || ended[1].failed());
  EXPECT_EQ(b->memory[200], std::byte{42});
  EXPECT_EQ(a->memory[500], std::byte{43});
}

TEST_F(ReliableQueues, ReadNoDeeperThanThePeerAnswers) {
  auto settings = small_pool();
  settings.send_depth = 64;
  soft::DeviceConfig deep;
  soft::DeviceConfig shallow;
  shallow.limits.max_dest_rd_atomic = 8;
  open(settings, deep, shallow);
  ASSERT_EQ(a->port.initiator_depth, 16);
  Lane lane = connected();
  const auto sink = a->piece(0, 1000);
  for (int i = 0; i < 64; ++i) ASSERT_EQ(lane.a->post_read(1, {&sink, 1}, b->place(2000), Signal::yes), 0);
  const auto ended = completions(*a, 64);
  ASSERT_EQ(ended.size(), 64U);
  for (const auto& completion : ended) EXPECT_FALSE(completion.failed()) << to_string(completion.status);
}

TEST_F(ReliableQueues, KeepSlotsForControlAndTheDeviceOutOfWhatDoesNotFit) {
  open();
  Lane lane = connected();
  ASSERT_EQ(b->post_receives(*lane.b, 1, 0, 16), 0);
  const auto post = [&](WorkKind kind) { return lane.a->post_send(kind, 1, {}, Signal::no, Inline::no); };
  for (int i = 0; i < 8; ++i) ASSERT_EQ(post(WorkKind::send), 0);
  EXPECT_EQ(post(WorkKind::send), EAGAIN);
  EXPECT_EQ(lane.a->post_write(1, {}, {}, Signal::no, Inline::no), EAGAIN);
  EXPECT_EQ(lane.a->post_read(1, {}, {}, Signal::no), EAGAIN);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(post(WorkKind::control), 0);
  EXPECT_EQ(post(WorkKind::control), EAGAIN);
  EXPECT_EQ(completions(*b, 10).size(), 10U);
  network.run_for(1ms);
  for (const auto& completion : a->poll()) lane.a->on_send_completed(completion.id);
  EXPECT_EQ(lane.a->send_slots_free(), 8U);
  expect_nothing_refused();
}

TEST_F(ReliableQueues, PostReceivesInOneCall) {
  auto settings = small_pool();
  settings.receive_slots = 64;
  open(settings);
  Lane lane = connected();
  EXPECT_EQ(b->post_receives(*lane.b, 1, 0, 64), 0);
  EXPECT_EQ(lane.b->counters().receive_posts, 1U);
  EXPECT_EQ(lane.b->counters().receives, 64U);
  EXPECT_EQ(b->post_receives(*lane.b, 1, 0, 65), EINVAL);
  EXPECT_EQ(b->post_receives(*lane.b, 1, 0, 0), 0);
  EXPECT_EQ(lane.b->counters().receive_posts, 1U);
  // A short batch breaks no chain: the next long one is whole.
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 8; ++i) ASSERT_EQ(lane.a->post_send(WorkKind::send, 1, {}, Signal::yes, Inline::no), 0);
    EXPECT_EQ(completions(*b, 8).size(), 8U);
    for (const auto& completion : completions(*a, 8)) lane.a->on_send_completed(completion.id);
    EXPECT_EQ(b->post_receives(*lane.b, 1, 0, round == 0 ? 3 : 13), 0);
  }
  EXPECT_EQ(lane.b->counters().receives, 80U);
  expect_nothing_refused();
}

TEST_F(ReliableQueues, GetTheirSlotsBackFromAQueuePairThatDied) {
  open();
  Lane lane = connected();
  for (int i = 0; i < 6; ++i) ASSERT_EQ(lane.a->post_send(WorkKind::send, 1, {}, Signal::no, Inline::no), 0);
  a->control().kill(lane.a->queue_pair().handle());
  const auto flushed = completions(*a, 6);
  ASSERT_EQ(flushed.size(), 6U);
  std::uint32_t back = 0;
  for (const auto& completion : flushed) {
    EXPECT_EQ(completion.status, CompletionStatus::flushed);
    back += lane.a->on_send_completed(completion.id);
  }
  EXPECT_EQ(back, 6U);
  EXPECT_EQ(lane.a->send_slots_free(), 8U);
}

}  // namespace
}  // namespace verbatim::qp::testing
