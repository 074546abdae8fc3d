// A program with an open device forks, under traffic. The device stays the parent's: whatever a child does, every call
// of it fails or touches the child's own memory alone, nothing of it hangs, and the parent's messages arrive, and
// right.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "device/soft/control.hpp"
#include "process/support.hpp"

namespace {
bool in_forked_child = false;
}  // namespace

// LeakSanitizer asks for it where a program ends: in a child, what only the stacks of the parent's other threads
// pointed to looks lost.
extern "C" int __lsan_is_turned_off();  // NOLINT(bugprone-reserved-identifier): its name
extern "C" int __lsan_is_turned_off() {
  return in_forked_child ? 1 : 0;
}

namespace verbatim::process {
namespace {

constexpr int forks = 100;
constexpr std::uint32_t message_bytes = 64 * 1024;  // taken from the parent's memory, not from a ring
constexpr std::uint64_t messages_per_fork = 20;
// A child that hangs is a failure, not a test that never ends.
constexpr unsigned child_limit_seconds = 30;

struct Stage {
  Mailbox parent;
  Mailbox peer;
  std::atomic<std::uint64_t> sent{0};
  std::atomic<bool> over{false};
};

void fill(std::byte* memory, std::uint64_t number) {
  for (std::uint32_t i = 0; i < message_bytes; ++i) memory[i] = static_cast<std::byte>(number * 31 + i * 7 + (i >> 8));
}

int receive_all(const NodeOptions& options, Stage& stage) {
  Node node(options);
  require(node.receive(0, 0, message_bytes) == 0, "receive");
  stage.peer.put(node.address(), 1);
  node.connect(stage.parent.take(1));
  std::vector<std::byte> expected(message_bytes);
  for (std::uint64_t number = 0;; ++number) {
    std::optional<ibv_wc> wc;
    require(eventually([&] { return (wc = node.poll()).has_value() || (stage.over && number == stage.sent); }),
            "neither a message nor the end came");
    if (!wc) return 0;
    require(wc->status == IBV_WC_SUCCESS && wc->wr_id == number, "a receive failed");
    fill(expected.data(), number);
    require(std::equal(expected.begin(), expected.end(), node.memory()),
            "a message arrived otherwise than it was sent");
    require(node.receive(number + 1, 0, message_bytes) == 0, "receive");
  }
}

// A thread that is inside the device at any moment, so also when the process forks.
class Traffic {
 public:
  Traffic(Node& node, Stage& stage) : thread_([this, &node, &stage] { send_all(node, stage); }) {}
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;
  ~Traffic() {
    if (thread_.joinable()) end();
  }
  [[nodiscard]] bool failed() const { return failed_; }
  void end() {
    ending_ = true;
    thread_.join();
  }

 private:
  void send_all(Node& node, Stage& stage) {
    try {
      while (!ending_) {
        fill(node.memory(), stage.sent);
        require(node.send(stage.sent, 0, message_bytes) == 0, "send");
        node.finish(stage.sent, patience);
        ++stage.sent;
      }
    } catch (const std::exception& error) {
      std::fprintf(stderr, "traffic: %s\n", error.what());
      failed_ = true;
    }
  }

  std::atomic<bool> ending_{false};
  std::atomic<bool> failed_{false};
  std::thread thread_;
};

template <typename Call>
void refused(const char* verb, Call call) {
  errno = 0;
  require(call() == EPERM, std::string(verb) + " did not fail with EPERM");
}
template <typename Call>
void makes_nothing(const char* verb, Call call) {
  errno = 0;
  require(!call() && errno == EPERM, std::string(verb) + " did not fail with EPERM");
}

void use_queues(Node& node) {
  refused("ibv_post_send", [&] { return node.send(0, 0, 8); });
  refused("ibv_post_recv", [&] { return node.receive(0, 0, 8); });
  ibv_wc wc{};
  refused("ibv_poll_cq", [&] { return ibv_poll_cq(node.cq(), 1, &wc) < 0 ? errno : 0; });
  refused("ibv_req_notify_cq", [&] { return ibv_req_notify_cq(node.cq(), 0); });
}

void use_control_path(Node& node) {
  device::Context& context = node.context();
  ibv_qp* qp = node.queue_pair();
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  ibv_qp_init_attr init{};
  ibv_device_attr_ex device{};
  ibv_port_attr port{};
  ibv_async_event event{};
  refused("modify_qp", [&] { return context.modify_qp(qp, attributes, IBV_QP_STATE); });
  refused("query_qp", [&] { return context.query_qp(qp, attributes, IBV_QP_STATE, init); });
  refused("query_device", [&] { return context.query_device(device); });
  refused("query_port", [&] { return context.query_port(1, port); });
  refused("resize_cq", [&] { return context.resize_cq(node.cq(), 4096); });
  refused("get_async_event", [&] { return context.get_async_event(event) == -1 ? errno : 0; });
  init.send_cq = init.recv_cq = node.cq();
  init.qp_type = IBV_QPT_RC;
  ibv_srq_init_attr srq{};
  srq.attr.max_wr = 1;
  ibv_ah_attr way{};
  makes_nothing("alloc_pd", [&] { return context.alloc_pd(); });
  makes_nothing("reg_mr", [&] { return context.reg_mr(qp->pd, node.memory(), 8, IBV_ACCESS_LOCAL_WRITE); });
  makes_nothing("allocate", [&] { return static_cast<bool>(context.allocate(8)); });
  makes_nothing("create_comp_channel", [&] { return context.create_comp_channel(); });
  makes_nothing("create_cq", [&] { return context.create_cq(1, nullptr, nullptr, 0); });
  makes_nothing("create_srq", [&] { return context.create_srq(qp->pd, srq); });
  makes_nothing("create_qp", [&] { return context.create_qp(qp->pd, init); });
  makes_nothing("create_ah", [&] { return context.create_ah(qp->pd, way); });
  try {
    soft::control_of(context)->kill(qp);
    require(false, "Control::kill did not throw");
  } catch (const Error& error) {
    require(error.code() == ErrorCode::permission, "Control::kill threw another error");
  }
}

enum class Ending { exit_at_once, exit, run_libc, run_program, use_everything, destroy_everything };
constexpr int endings = 6;

int end_child(Ending ending, std::unique_ptr<Node>& node) {
  in_forked_child = true;
  ::alarm(child_limit_seconds);
  switch (ending) {
    case Ending::exit_at_once:
      return 0;
    case Ending::exit:
      std::exit(0);
    case Ending::run_libc: {
      std::vector<std::unique_ptr<char[]>> blocks;
      for (int i = 0; i < 1000; ++i) blocks.push_back(std::make_unique<char[]>(4096));
      std::fill_n(blocks.back().get(), 4096, 'x');
      return 0;
    }
    case Ending::run_program:
      ::execl("/bin/true", "true", nullptr);
      return 98;
    case Ending::use_everything:
      use_queues(*node);
      use_control_path(*node);
      return 0;
    case Ending::destroy_everything:
      node.reset();
      return 0;
  }
  return 97;
}

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return names;
}

class Fork : public ::testing::TestWithParam<bool> {};

TEST_P(Fork, DoesNotDisturbTheParent) {
  const TemporaryDirectory directory;
  const Shared<Stage> stage;
  NodeOptions options = options_in(directory);
  options.mappable = GetParam();
  ChildProcess peer([&] { return receive_all(options, *stage); });
  auto node = std::make_unique<Node>(options);
  stage->parent.put(node->address(), 1);
  node->connect(stage->peer.take(1));
  Traffic traffic(*node, *stage);
  const auto traffic_goes_on = [&] {
    const std::uint64_t before = stage->sent;
    return eventually([&] { return stage->sent >= before + messages_per_fork || traffic.failed(); });
  };
  ASSERT_TRUE(traffic_goes_on());
  const auto files = sorted(directory.names());
  for (int round = 0; round < forks; ++round) {
    ChildProcess child([&] { return end_child(static_cast<Ending>(round % endings), node); });
    ASSERT_TRUE(traffic_goes_on()) << "fork " << round;
    ASSERT_EQ(child.wait(), 0) << "fork " << round;
    ASSERT_FALSE(traffic.failed()) << "fork " << round;
  }
  EXPECT_EQ(sorted(directory.names()), files) << "a child removed what is the parent's";
  traffic.end();
  stage->over = true;
  EXPECT_EQ(peer.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(Memory, Fork, ::testing::Bool(),
                         [](const auto& memory) { return memory.param ? "Mappable" : "OfTheProgram"; });

// Descriptors are shared with a child: what it read from one, the parent would not hear of.
TEST(ForkWithEvents, LeavesThemToTheParent) {
  const TemporaryDirectory directory;
  NodeOptions options = options_in(directory);
  options.events = true;
  options.queue_pairs = 2;
  auto node = std::make_unique<Node>(options);
  node->connect(node->address(1), 0);
  node->connect(node->address(0), 1);
  ASSERT_EQ(node->receive(1, 64, 8, 1), 0);
  ASSERT_EQ(ibv_req_notify_cq(node->cq(), 0), 0);
  ASSERT_EQ(node->send(0, 0, 8, 0), 0);
  pollfd ready{node->channel()->fd, POLLIN, 0};
  ASSERT_EQ(::poll(&ready, 1, static_cast<int>(std::chrono::milliseconds(patience).count())), 1);
  ChildProcess child([&] {
    ::alarm(child_limit_seconds);
    ibv_cq* cq = nullptr;
    void* cq_context = nullptr;
    refused("get_cq_event",
            [&] { return node->context().get_cq_event(node->channel(), &cq, &cq_context) == -1 ? errno : 0; });
    node.reset();
    return 0;
  });
  ASSERT_EQ(child.wait(), 0);
  ASSERT_EQ(::poll(&ready, 1, 0), 1) << "the child took the parent's event";
  ibv_cq* cq = nullptr;
  void* cq_context = nullptr;
  ASSERT_EQ(node->context().get_cq_event(node->channel(), &cq, &cq_context), 0);
  node->context().ack_cq_events(cq, 1);
  node->finish(1, patience);
}

// An event that the parent took and has not acknowledged yet is nothing that a child could wait for.
TEST(ForkWithEvents, DoesNotMakeTheChildWaitForTheParent) {
  const TemporaryDirectory directory;
  auto node = std::make_unique<Node>(options_in(directory));
  soft::control_of(node->context())->set_port_active(1, false);
  ibv_async_event port_event{};
  ASSERT_EQ(node->context().get_async_event(port_event), 0);
  node->context().ack_async_event(port_event);
  node->connect(node->address());
  soft::control_of(node->context())->kill(node->queue_pair());
  ibv_async_event event{};
  ASSERT_EQ(node->context().get_async_event(event), 0);
  ASSERT_EQ(event.event_type, IBV_EVENT_QP_FATAL);
  ChildProcess child([&] {
    const Time start = now();
    node.reset();
    return now() - start < std::chrono::seconds(5) ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
  node->context().ack_async_event(event);
}

// ibv_wr_* and ibv_start_poll go through pointers of their own.
TEST(ForkWithExtendedObjects, FailsInTheChild) {
  const TemporaryDirectory directory;
  Node node(options_in(directory));
  device::Context& context = node.context();
  ibv_cq_init_attr_ex cq_init{};
  cq_init.cqe = 16;
  ibv_cq_ex* cq = context.create_cq_ex(cq_init);
  ASSERT_NE(cq, nullptr);
  ibv_qp_init_attr_ex init{};
  init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
  init.qp_type = IBV_QPT_RC;
  init.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 8};
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  init.send_ops_flags = IBV_QP_EX_WITH_SEND;
  init.pd = node.queue_pair()->pd;
  ibv_qp* qp = context.create_qp_ex(init);
  ASSERT_NE(qp, nullptr);
  ibv_qp_ex* extended = context.qp_to_qp_ex(qp);
  const auto send = [&] {
    extended->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(extended);
    std::uint64_t word = 0;
    ibv_wr_set_inline_data(extended, &word, sizeof word);
    return ibv_wr_complete(extended);
  };
  ibv_wr_start(extended);  // a request that is being staged when the process forks
  ChildProcess child([&] {
    ::alarm(child_limit_seconds);
    refused("ibv_wr_complete of what the parent started", send);
    refused("ibv_wr_complete", [&] { return ibv_wr_start(extended), send(); });
    ibv_poll_cq_attr attributes{};
    refused("ibv_start_poll", [&] { return ibv_start_poll(cq, &attributes); });
    return 0;
  });
  EXPECT_EQ(child.wait(), 0);
  ibv_wr_abort(extended);
  context.destroy_qp(qp);
  context.destroy_cq(ibv_cq_ex_to_cq(cq));
}

}  // namespace
}  // namespace verbatim::process
