// Two reliably connected queue pairs on two devices of a simulated network, with what most tests need around them.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "device/soft/control.hpp"
#include "device/soft/sim/network.hpp"

namespace verbatim::soft::testing {

// One device with one queue pair and one registered buffer.
struct Side {
  std::unique_ptr<device::Context> context;
  ibv_pd* pd = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;
  ibv_mr* mr = nullptr;
  std::vector<std::byte> memory;

  Control& control() { return *control_of(*context); }
  std::uint64_t counter(const char* name) {
    for (const device::Counter& counter : context->counters(1)) {
      if (counter.name == name) return counter.value;
    }
    ADD_FAILURE() << "no counter " << name;
    return 0;
  }
  ibv_gid gid() {
    std::vector<ibv_gid_entry> entries;
    context->query_gid_table(entries);
    return entries.at(1).gid;
  }
  [[nodiscard]] std::uint64_t address(std::size_t offset = 0) const {
    return reinterpret_cast<std::uint64_t>(memory.data()) + offset;
  }
};

// What both ends of a connection are set to.
struct ConnectionSettings {
  std::uint32_t psn_a = 0xfffff0;
  std::uint32_t psn_b = 0x000010;
  ibv_mtu mtu = IBV_MTU_1024;
  std::uint8_t timeout = 4;  // 65.5 µs
  std::uint8_t retry_cnt = 3;
  std::uint8_t rnr_retry = 3;
  std::uint8_t min_rnr_timer = 1;  // 10 µs
  std::uint8_t rd_atomic = 4;
};

class RcPair : public ::testing::Test {
 protected:
  static constexpr std::size_t memory_bytes = 1 << 20;
  static constexpr std::uint32_t depth = 64;

  explicit RcPair(const SimNetwork::Options& options = {}) : network(options) {}

  void SetUp() override {
    open(a, DeviceConfig{});
    open(b, DeviceConfig{});
    connect();
  }
  void TearDown() override {
    close(a);
    close(b);
  }

  void open(Side& side, const DeviceConfig& config) {
    side.context = open_sim(network, config);
    device::Context& context = *side.context;
    side.memory.assign(memory_bytes, std::byte{0});
    side.pd = context.alloc_pd();
    side.channel = context.create_comp_channel();
    side.cq = context.create_cq(1024, nullptr, side.channel, 0);
    constexpr int access =
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    side.mr = context.reg_mr(side.pd, side.memory.data(), side.memory.size(), access);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = side.cq;
    init.qp_type = IBV_QPT_RC;
    init.cap = {
        .max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 64};
    side.qp = context.create_qp(side.pd, init);
    ASSERT_NE(side.qp, nullptr);
    ASSERT_NE(side.mr, nullptr);
  }
  static void close(Side& side) {
    if (side.context == nullptr) return;
    EXPECT_EQ(side.context->destroy_qp(side.qp), 0);
    EXPECT_EQ(side.context->dereg_mr(side.mr), 0);
    EXPECT_EQ(side.context->destroy_cq(side.cq), 0);
    EXPECT_EQ(side.context->destroy_comp_channel(side.channel), 0);
    EXPECT_EQ(side.context->dealloc_pd(side.pd), 0);
    side.context.reset();
  }

  void connect(const ConnectionSettings& settings = {}) {
    for (Side* side : {&a, &b}) to_init(*side);
    to_rtr(a, b, settings, settings.psn_b);
    to_rtr(b, a, settings, settings.psn_a);
    to_rts(a, settings, settings.psn_a);
    to_rts(b, settings, settings.psn_b);
  }
  static int modify_to(Side& side, ibv_qp_state state) {
    ibv_qp_attr attributes{};
    attributes.qp_state = state;
    return side.context->modify_qp(side.qp, attributes, IBV_QP_STATE);
  }
  static void to_init(Side& side) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    ASSERT_EQ(side.context->modify_qp(side.qp, attributes,
                                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
              0);
  }
  static void to_rtr(Side& side, Side& peer, const ConnectionSettings& settings, std::uint32_t psn) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = settings.mtu;
    attributes.dest_qp_num = peer.qp->qp_num;
    attributes.rq_psn = psn;
    attributes.max_dest_rd_atomic = settings.rd_atomic;
    attributes.min_rnr_timer = settings.min_rnr_timer;
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.port_num = 1;
    attributes.ah_attr.grh.dgid = peer.gid();
    attributes.ah_attr.grh.sgid_index = 1;
    attributes.ah_attr.grh.hop_limit = 64;
    ASSERT_EQ(side.context->modify_qp(side.qp, attributes,
                                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              0);
  }
  static void to_rts(Side& side, const ConnectionSettings& settings, std::uint32_t psn) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTS;
    attributes.sq_psn = psn;
    attributes.timeout = settings.timeout;
    attributes.retry_cnt = settings.retry_cnt;
    attributes.rnr_retry = settings.rnr_retry;
    attributes.max_rd_atomic = settings.rd_atomic;
    ASSERT_EQ(side.context->modify_qp(side.qp, attributes,
                                      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                          IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
              0);
  }

  // Through ERR and RESET to a new connection with other PSNs.
  void recycle(const ConnectionSettings& settings) {
    for (Side* side : {&a, &b}) {
      ASSERT_EQ(modify_to(*side, IBV_QPS_ERR), 0);
      ASSERT_EQ(modify_to(*side, IBV_QPS_RESET), 0);
    }
    connect(settings);
  }

  static int post_receive(Side& side, std::uint64_t wr_id, std::size_t offset, std::uint32_t length) {
    ibv_sge piece{side.address(offset), length, side.mr->lkey};
    ibv_recv_wr wr{.wr_id = wr_id, .next = nullptr, .sg_list = &piece, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(side.qp, &wr, &bad);
  }
  // A request with one piece; `edit` sets what else it needs.
  template <typename Edit>
  static int post(Side& side, std::uint64_t wr_id, ibv_wr_opcode opcode, std::size_t offset, std::uint32_t length,
                  Edit edit) {
    ibv_sge piece{side.address(offset), length, side.mr->lkey};
    ibv_send_wr wr{};
    wr.wr_id = wr_id;
    wr.opcode = opcode;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.send_flags = IBV_SEND_SIGNALED;
    edit(wr);
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(side.qp, &wr, &bad);
  }
  static int post_send(Side& side, std::uint64_t wr_id, std::size_t offset, std::uint32_t length) {
    return post(side, wr_id, IBV_WR_SEND, offset, length, [](ibv_send_wr&) {});
  }
  static int post_rdma(Side& side, std::uint64_t wr_id, ibv_wr_opcode opcode, std::size_t offset, std::uint32_t length,
                       const Side& target, std::size_t target_offset) {
    return post(side, wr_id, opcode, offset, length, [&](ibv_send_wr& wr) {
      wr.wr.rdma = {target.address(target_offset), target.mr->rkey};
    });
  }

  // Lets time pass until `count` completions are there or nothing more happens.
  std::vector<ibv_wc> completions(Side& side, std::size_t count, Duration within = std::chrono::seconds(1)) {
    std::vector<ibv_wc> taken;
    const Time deadline = network.now() + within;
    while (taken.size() < count) {
      ibv_wc wc{};
      const int polled = ibv_poll_cq(side.cq, 1, &wc);
      if (polled == 1) {
        taken.push_back(wc);
      } else if (polled < 0 || network.now() >= deadline || !network.step()) {
        break;
      }
    }
    return taken;
  }
  ibv_wc completion(Side& side) {
    const auto taken = completions(side, 1);
    if (taken.size() != 1) {
      ADD_FAILURE() << "no completion came";
      return {};
    }
    return taken.front();
  }

  static void fill(Side& side, std::size_t offset, std::size_t length, unsigned seed) {
    for (std::size_t i = 0; i < length; ++i) side.memory[offset + i] = static_cast<std::byte>(seed + i * 31 + (i >> 8));
  }
  static bool same(const Side& x, std::size_t x_offset, const Side& y, std::size_t y_offset, std::size_t length) {
    return std::memcmp(&x.memory[x_offset], &y.memory[y_offset], length) == 0;
  }

  SimNetwork network;
  Side a;
  Side b;
};

}  // namespace verbatim::soft::testing
