// One device used by several threads: each with queue pairs of its own, or one with all of them in a thread domain
// while another looks in. Meant for ThreadSanitizer, and right without it.
#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "unit/soft/hub.hpp"
#include "unit/soft/pair.hpp"

namespace verbatim::soft::testing {
namespace {

// A queue pair connected to itself, with its completion queue and buffer, used by one thread.
class Loop {
 public:
  Loop(device::Context& context, ibv_pd* pd, ibv_td* td) : context_(context), pd_(pd) {
    if (td != nullptr) {
      ibv_parent_domain_init_attr domain{};
      domain.pd = pd;
      domain.td = td;
      parent_ = context.alloc_parent_domain(domain);
      ibv_cq_init_attr_ex attributes{};
      attributes.cqe = 64;
      attributes.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
      attributes.parent_domain = parent_;
      cq_ = ibv_cq_ex_to_cq(context.create_cq_ex(attributes));
    } else {
      cq_ = context.create_cq(64, nullptr, nullptr, 0);
    }
    mr_ = context.reg_mr(pd, memory_.data(), sizeof(memory_), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq_;
    init.qp_type = IBV_QPT_RC;
    init.cap = {.max_send_wr = 32, .max_recv_wr = 32, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
    qp_ = context.create_qp(parent_ != nullptr ? parent_ : pd, init);
    connect();
  }
  ~Loop() {
    EXPECT_EQ(context_.destroy_qp(qp_), 0);
    EXPECT_EQ(context_.destroy_cq(cq_), 0);
    EXPECT_EQ(context_.dereg_mr(mr_), 0);
    if (parent_ != nullptr) {
      EXPECT_EQ(context_.dealloc_pd(parent_), 0);
    }
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // One send to itself, to the end.
  void send_one() {
    memory_[0] = ++number_;
    ibv_sge source{reinterpret_cast<std::uint64_t>(&memory_[0]), 8, mr_->lkey};
    ibv_sge target{reinterpret_cast<std::uint64_t>(&memory_[1]), 8, mr_->lkey};
    ibv_recv_wr receive{.wr_id = 1, .next = nullptr, .sg_list = &target, .num_sge = 1};
    ibv_recv_wr* bad_receive = nullptr;
    ASSERT_EQ(ibv_post_recv(qp_, &receive, &bad_receive), 0);
    ibv_send_wr send{};
    send.wr_id = 2;
    send.opcode = IBV_WR_SEND;
    send.send_flags = IBV_SEND_SIGNALED;
    send.sg_list = &source;
    send.num_sge = 1;
    ibv_send_wr* bad_send = nullptr;
    ASSERT_EQ(ibv_post_send(qp_, &send, &bad_send), 0);
    for (int done = 0; done < 2;) {
      ibv_wc wc{};
      const int polled = ibv_poll_cq(cq_, 1, &wc);
      ASSERT_GE(polled, 0);
      if (polled == 0) continue;
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
      ++done;
    }
    ASSERT_EQ(memory_[1], number_);
  }

 private:
  void connect() {
    std::vector<ibv_gid_entry> gids;
    context_.query_gid_table(gids);
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    ASSERT_EQ(context_.modify_qp(qp_, attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
              0);
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = IBV_MTU_1024;
    attributes.dest_qp_num = qp_->qp_num;
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.port_num = 1;
    attributes.ah_attr.grh.dgid = gids.at(0).gid;
    ASSERT_EQ(context_.modify_qp(qp_, attributes,
                                 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              0);
    attributes.qp_state = IBV_QPS_RTS;
    ASSERT_EQ(context_.modify_qp(qp_, attributes,
                                 IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                     IBV_QP_MAX_QP_RD_ATOMIC),
              0);
  }

  device::Context& context_;
  ibv_pd* pd_;
  ibv_pd* parent_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_qp* qp_ = nullptr;
  std::array<std::uint64_t, 2> memory_{};
  std::uint64_t number_ = 0;
};

class ThreadDomains : public ::testing::Test {
 protected:
  static constexpr int messages = 3000;

  void SetUp() override {
    hub.records = false;
    context = hub.open({});
    pd = context->alloc_pd();
  }
  void TearDown() override {
    EXPECT_EQ(context->dealloc_pd(pd), 0);
    context.reset();
  }
  [[nodiscard]] bool biased() { return static_cast<SoftContext&>(*context).lock().biased(); }
  ibv_td* make_td() {
    ibv_td_init_attr attributes{};
    return context->alloc_td(attributes);
  }
  // What a thread that is not the owner may do at any time.
  void control_calls() {
    std::array<std::byte, 64> memory{};
    ibv_mr* mr = context->reg_mr(pd, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE);
    ASSERT_NE(mr, nullptr);
    (void)context->counters(1);
    ibv_port_attr port{};
    ASSERT_EQ(context->query_port(1, port), 0);
    control_of(*context)->set_pkey(1, 1, 0x8001);
    ibv_async_event event{};
    ASSERT_EQ(context->get_async_event(event), 0);
    context->ack_async_event(event);
    ASSERT_EQ(context->dereg_mr(mr), 0);
  }

  Hub hub;
  std::unique_ptr<device::Context> context;
  ibv_pd* pd = nullptr;
};

TEST_F(ThreadDomains, SeveralThreadsOnQueuePairsOfTheirOwn) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([this] {
      Loop loop(*context, pd, nullptr);
      for (int message = 0; message < messages && !HasFatalFailure(); ++message) loop.send_one();
    });
  }
  threads.clear();
  EXPECT_FALSE(biased());
}

TEST_F(ThreadDomains, OneThreadOwnsAllWhileAnotherControls) {
  ibv_td* td = make_td();
  {
    Loop loop(*context, pd, td);
    if (!biased()) std::printf("no membarrier on this system: the lock stays shared\n");
    std::atomic<bool> stop = false;
    std::jthread owner([&] {
      while (!stop && !HasFatalFailure()) loop.send_one();
    });
    for (int i = 0; i < messages / 10 && !HasFatalFailure(); ++i) control_calls();
    stop = true;
  }
  EXPECT_EQ(context->dealloc_td(td), 0);
}

TEST_F(ThreadDomains, AnotherThreadsObjectsComeAndGo) {
  ibv_td* td = make_td();
  {
    Loop loop(*context, pd, td);
    const bool can_be_biased = biased();
    std::atomic<bool> stop = false;
    std::jthread owner([&] {
      while (!stop && !HasFatalFailure()) loop.send_one();
    });
    for (int i = 0; i < messages / 30 && !HasFatalFailure(); ++i) {
      {
        Loop guest(*context, pd, nullptr);
        EXPECT_FALSE(biased()) << "two threads post now";
        for (int message = 0; message < 10; ++message) guest.send_one();
      }
      EXPECT_EQ(biased(), can_be_biased) << "the guest is gone";
    }
    stop = true;
  }
  EXPECT_EQ(context->dealloc_td(td), 0);
}

}  // namespace
}  // namespace verbatim::soft::testing
