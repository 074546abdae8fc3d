// Two devices of a simulated network, each with one connected queue pair and one registered buffer, and what most
// tests do with them.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <cstddef>
#include <cstring>
#include <functional>
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
  ibv_srq* srq = nullptr;  // where its receives come from, if it shares them
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
  [[nodiscard]] std::uint64_t word(std::size_t offset) const {
    std::uint64_t value = 0;
    std::memcpy(&value, &memory[offset], sizeof(value));
    return value;
  }
  void set_word(std::size_t offset, std::uint64_t value) { std::memcpy(&memory[offset], &value, sizeof(value)); }

  void fault(const PacketRule& rule) {
    FaultPlan plan;
    plan.packets.push_back(rule);
    control().set_faults(plan);
  }
  void heal() { control().set_faults({}); }

  ibv_qp_state state() {
    ibv_qp_attr attributes{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(context->query_qp(qp, attributes, IBV_QP_STATE, init), 0);
    return attributes.qp_state;
  }
  // The async events that are there, without waiting for more.
  std::vector<ibv_async_event> async_events() {
    std::vector<ibv_async_event> events;
    for (pollfd ready{context->handle()->async_fd, POLLIN, 0}; poll(&ready, 1, 0) == 1;) {
      ibv_async_event event{};
      EXPECT_EQ(context->get_async_event(event), 0);
      context->ack_async_event(event);
      events.push_back(event);
    }
    return events;
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
  std::uint8_t service_level = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t port = 1;
};

class Pair {
 public:
  explicit Pair(const SimNetwork::Options& options = {}) : network(options) {}
  ~Pair() {
    close(a);
    close(b);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  // -- how the pair is made; change before open() ------------------------------------------------------------------
  static constexpr std::uint32_t depth = 64;
  std::size_t memory_bytes = 1 << 20;
  DeviceConfig config_a;
  DeviceConfig config_b;
  ConnectionSettings settings;
  ibv_qp_type type = IBV_QPT_RC;
  bool signal_all = false;
  std::uint32_t shared_receives_of_b = 0;  // > 0: b's receives come from an SRQ of that many
  // Where devices come from.
  std::function<std::unique_ptr<device::Context>(const DeviceConfig&)> open_device =
      [this](const DeviceConfig& config) { return open_sim(network, config); };
  ibv_qp_cap cap{
      .max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 64};

  void open() {
    open(a, config_a);
    open(b, config_b);
  }
  void open(Side& side, const DeviceConfig& config) {
    side.context = open_device(config);
    device::Context& context = *side.context;
    side.memory.assign(memory_bytes, std::byte{0});
    side.pd = context.alloc_pd();
    side.channel = context.create_comp_channel();
    side.cq = context.create_cq(1024, nullptr, side.channel, 0);
    constexpr int access =
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    side.mr = context.reg_mr(side.pd, side.memory.data(), side.memory.size(), access);
    if (&side == &b && shared_receives_of_b > 0) {
      ibv_srq_init_attr srq{.srq_context = nullptr,
                            .attr = {.max_wr = shared_receives_of_b, .max_sge = 1, .srq_limit = 0}};
      side.srq = context.create_srq(side.pd, srq);
      ASSERT_NE(side.srq, nullptr);
    }
    side.qp = make_queue_pair(side);
    ASSERT_NE(side.qp, nullptr);
    ASSERT_NE(side.mr, nullptr);
  }
  ibv_qp* make_queue_pair(Side& side) const {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = side.cq;
    init.srq = side.srq;
    init.qp_type = type;
    init.cap = cap;
    init.sq_sig_all = signal_all ? 1 : 0;
    return side.context->create_qp(side.pd, init);
  }
  static void close(Side& side) {
    if (side.context == nullptr) return;
    if (side.qp != nullptr) {
      EXPECT_EQ(side.context->destroy_qp(side.qp), 0);
    }
    if (side.srq != nullptr) {
      EXPECT_EQ(side.context->destroy_srq(side.srq), 0);
    }
    EXPECT_EQ(side.context->dereg_mr(side.mr), 0);
    EXPECT_EQ(side.context->destroy_cq(side.cq), 0);
    EXPECT_EQ(side.context->destroy_comp_channel(side.channel), 0);
    EXPECT_EQ(side.context->dealloc_pd(side.pd), 0);
    side.context.reset();
  }

  // -- states ------------------------------------------------------------------------------------------------------
  void connect() {
    for (Side* side : {&a, &b}) to_init(*side);
    to_rtr(a, b, settings.psn_b);
    to_rtr(b, a, settings.psn_a);
    to_rts(a, settings.psn_a);
    to_rts(b, settings.psn_b);
  }
  // Through ERR and RESET to a new connection with these settings.
  void reconnect(const ConnectionSettings& given) {
    settings = given;
    for (Side* side : {&a, &b}) {
      ASSERT_EQ(modify_to(*side, IBV_QPS_ERR), 0);
      ASSERT_EQ(modify_to(*side, IBV_QPS_RESET), 0);
    }
    connect();
  }
  static int modify_to(Side& side, ibv_qp_state state) {
    ibv_qp_attr attributes{};
    attributes.qp_state = state;
    return side.context->modify_qp(side.qp, attributes, IBV_QP_STATE);
  }
  void to_init(Side& side, std::uint16_t pkey_index = 0) const {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = settings.port;
    attributes.pkey_index = pkey_index;
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    ASSERT_EQ(side.context->modify_qp(side.qp, attributes,
                                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
              0);
  }
  int try_rtr(Side& side, const ibv_gid& peer_gid, std::uint32_t peer_qpn, std::uint32_t psn,
              std::uint8_t sgid_index = 1) const {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = settings.mtu;
    attributes.dest_qp_num = peer_qpn;
    attributes.rq_psn = psn;
    attributes.max_dest_rd_atomic = settings.rd_atomic;
    attributes.min_rnr_timer = settings.min_rnr_timer;
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.port_num = settings.port;
    attributes.ah_attr.sl = settings.service_level;
    attributes.ah_attr.grh.dgid = peer_gid;
    attributes.ah_attr.grh.sgid_index = sgid_index;
    attributes.ah_attr.grh.hop_limit = 64;
    attributes.ah_attr.grh.traffic_class = settings.traffic_class;
    int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (type == IBV_QPT_RC) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    return side.context->modify_qp(side.qp, attributes, mask);
  }
  void to_rtr(Side& side, Side& peer, std::uint32_t psn) const {
    ASSERT_EQ(try_rtr(side, peer.gid(), peer.qp->qp_num, psn), 0);
  }
  void to_rts(Side& side, std::uint32_t psn) const {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTS;
    attributes.sq_psn = psn;
    attributes.timeout = settings.timeout;
    attributes.retry_cnt = settings.retry_cnt;
    attributes.rnr_retry = settings.rnr_retry;
    attributes.max_rd_atomic = settings.rd_atomic;
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (type == IBV_QPT_RC) {
      mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    ASSERT_EQ(side.context->modify_qp(side.qp, attributes, mask), 0);
  }

  // -- posting: 0 or an errno value --------------------------------------------------------------------------------
  static int post_receive(Side& side, std::uint64_t wr_id, std::size_t offset, std::uint32_t length) {
    ibv_sge piece{side.address(offset), length, side.mr->lkey};
    ibv_recv_wr wr{.wr_id = wr_id, .next = nullptr, .sg_list = &piece, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    return side.srq != nullptr ? ibv_post_srq_recv(side.srq, &wr, &bad) : ibv_post_recv(side.qp, &wr, &bad);
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
  static int post_send(Side& side, std::uint64_t wr_id, std::size_t offset, std::uint32_t length,
                       unsigned flags = IBV_SEND_SIGNALED) {
    return post(side, wr_id, IBV_WR_SEND, offset, length, [&](ibv_send_wr& wr) { wr.send_flags = flags; });
  }
  static int post_rdma(Side& side, std::uint64_t wr_id, ibv_wr_opcode opcode, std::size_t offset, std::uint32_t length,
                       const Side& target, std::size_t target_offset, unsigned flags = IBV_SEND_SIGNALED) {
    return post(side, wr_id, opcode, offset, length, [&](ibv_send_wr& wr) {
      wr.wr.rdma = {target.address(target_offset), target.mr->rkey};
      wr.send_flags = flags;
    });
  }
  static int post_fetch_add(Side& side, std::uint64_t wr_id, std::size_t offset, const Side& target,
                            std::size_t target_offset, std::uint64_t add) {
    return post(side, wr_id, IBV_WR_ATOMIC_FETCH_AND_ADD, offset, 8, [&](ibv_send_wr& wr) {
      wr.wr.atomic = {target.address(target_offset), add, 0, target.mr->rkey};
    });
  }
  static int post_compare_swap(Side& side, std::uint64_t wr_id, std::size_t offset, const Side& target,
                               std::size_t target_offset, std::uint64_t compare, std::uint64_t swap) {
    return post(side, wr_id, IBV_WR_ATOMIC_CMP_AND_SWP, offset, 8, [&](ibv_send_wr& wr) {
      wr.wr.atomic = {target.address(target_offset), compare, swap, target.mr->rkey};
    });
  }

  // -- what came of it ---------------------------------------------------------------------------------------------
  // Lets time pass until `count` completions are there, nothing more happens, or the time is over.
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
  ibv_wc completion(Side& side, Duration within = std::chrono::seconds(1)) {
    const auto taken = completions(side, 1, within);
    EXPECT_EQ(taken.size(), 1U) << "no completion came";
    return taken.empty() ? no_completion() : taken.front();
  }
  static ibv_wc no_completion() {
    ibv_wc wc{};
    wc.wr_id = UINT64_MAX;
    wc.status = IBV_WC_GENERAL_ERR;
    return wc;
  }
  // What is there now, without letting time pass.
  static std::vector<ibv_wc> polled(Side& side) {
    std::vector<ibv_wc> taken(1024);
    const int count = ibv_poll_cq(side.cq, static_cast<int>(taken.size()), taken.data());
    taken.resize(count < 0 ? 0U : static_cast<std::size_t>(count));
    return taken;
  }
  // Until the network is quiet, or a second has passed.
  void settle() { network.run_for(std::chrono::seconds(1)); }

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

// The pair, connected, as a fixture.
class RcPair : public ::testing::Test, protected Pair {
 protected:
  explicit RcPair(const SimNetwork::Options& options = {}) : Pair(options) {}
  void SetUp() override {
    open();
    connect();
  }
};

}  // namespace verbatim::soft::testing
