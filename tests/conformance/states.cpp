// The states of a QP: what each transition takes, what may be posted where, what a query tells.
#include <cerrno>
#include <cstring>

#include "conformance/case.hpp"

namespace verbatim::conformance {
namespace {

class States : public ConformanceCase {
 protected:
  void make_qps(ibv_qp_type type = IBV_QPT_RC) {
    for (Side* side : {&a, &b}) {
      side->make_qp(side->qp_options(type));
      side->make_region(8192);
    }
  }

  int try_modify(Side& side, ibv_qp_state state, int mask) {
    ibv_qp_attr attributes = complete_attributes();
    attributes.qp_state = state;
    return side.endpoint->modify_qp(side.qp, attributes, mask);
  }

  // A value for everything, so that only the mask decides.
  ibv_qp_attr complete_attributes() {
    ibv_qp_attr attributes{};
    attributes.cur_qp_state = IBV_QPS_RESET;
    attributes.port_num = port_number;
    attributes.qp_access_flags = every_access;
    attributes.qkey = 0x22222222;
    attributes.path_mtu = IBV_MTU_1024;
    attributes.dest_qp_num = b.qpn;
    attributes.ah_attr = path(a.address, b.address);
    attributes.max_dest_rd_atomic = 1;
    attributes.max_rd_atomic = 1;
    attributes.min_rnr_timer = 12;
    attributes.timeout = 14;
    attributes.retry_cnt = 7;
    attributes.rnr_retry = 7;
    return attributes;
  }
};

TEST_F(States, ANewQpIsInReset) {
  make_qps();
  EXPECT_EQ(a.state(), IBV_QPS_RESET);
  EXPECT_GE(a.cap.max_send_wr, 64u);
  EXPECT_GE(a.cap.max_recv_wr, 64u);
  EXPECT_GE(a.cap.max_send_sge, 4u);
}

TEST_F(States, EachTransitionShowsInAQuery) {
  make_qps();
  a.to_init();
  EXPECT_EQ(a.state(), IBV_QPS_INIT);
  a.to_rtr(b);
  EXPECT_EQ(a.state(), IBV_QPS_RTR);
  a.to_rts();
  EXPECT_EQ(a.state(), IBV_QPS_RTS);
  a.to(IBV_QPS_ERR);
  EXPECT_EQ(a.state(), IBV_QPS_ERR);
  a.to(IBV_QPS_RESET);
  EXPECT_EQ(a.state(), IBV_QPS_RESET);
}

TEST_F(States, QueryTellsWhatWasSet) {
  make_qps();
  Route route;
  route.mtu = IBV_MTU_512;
  route.send_psn = 0x111111;
  route.receive_psn = 0x222222;
  route.ack_timeout = 17;
  route.retries = 5;
  route.rnr_retries = 6;
  route.rnr_timer = 12;
  route.reads_out = 3;
  route.reads_in = 2;
  a.connect(b, route);

  const int everything = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_AV |
                         IBV_QP_PATH_MTU | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                         IBV_QP_CAP | IBV_QP_DEST_QPN;
  const QueriedQp queried = a.endpoint->query_qp(a.qp, everything);
  ASSERT_EQ(queried.error, 0);
  const ibv_qp_attr& set = queried.attributes;
  EXPECT_EQ(set.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(set.qp_access_flags, static_cast<unsigned>(every_access));
  EXPECT_EQ(set.pkey_index, 0);
  EXPECT_EQ(set.port_num, port_number);
  EXPECT_EQ(set.path_mtu, IBV_MTU_512);
  EXPECT_EQ(set.dest_qp_num, b.qpn);
  EXPECT_EQ(set.sq_psn, 0x111111u);
  EXPECT_EQ(set.rq_psn, 0x222222u);
  EXPECT_EQ(set.timeout, 17);
  EXPECT_EQ(set.retry_cnt, 5);
  EXPECT_EQ(set.rnr_retry, 6);
  EXPECT_EQ(set.min_rnr_timer, 12);
  // A device may round up what it has to hold.
  EXPECT_GE(set.max_rd_atomic, 3);
  EXPECT_GE(set.max_dest_rd_atomic, 2);
  EXPECT_EQ(set.ah_attr.grh.sgid_index, a.address.gid_index);
  EXPECT_EQ(std::memcmp(&set.ah_attr.grh.dgid, &b.address.gid, sizeof(ibv_gid)), 0);
  EXPECT_GE(set.cap.max_send_wr, a.cap.max_send_wr);
  EXPECT_GE(queried.cap.max_recv_wr, a.cap.max_recv_wr);
  EXPECT_FALSE(queried.signal_all);
}

TEST_F(States, NoStepIsLeftOut) {
  make_qps();
  const int to_rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  const int to_rts =
      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  const int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  EXPECT_EQ(try_modify(a, IBV_QPS_RTR, to_rtr), EINVAL);
  EXPECT_EQ(try_modify(a, IBV_QPS_RTS, to_rts), EINVAL);
  EXPECT_EQ(a.state(), IBV_QPS_RESET);
  a.to_init();
  EXPECT_EQ(try_modify(a, IBV_QPS_RTS, to_rts), EINVAL);
  EXPECT_EQ(a.state(), IBV_QPS_INIT);
  a.to_rtr(b);
  EXPECT_EQ(try_modify(a, IBV_QPS_INIT, to_init), EINVAL);
  EXPECT_EQ(a.state(), IBV_QPS_RTR);
  a.to_rts();
  EXPECT_EQ(try_modify(a, IBV_QPS_RTR, to_rtr), EINVAL);
  EXPECT_EQ(try_modify(a, IBV_QPS_INIT, to_init), EINVAL);
  EXPECT_EQ(a.state(), IBV_QPS_RTS);
}

// One transition of one type: what must be given, and something that must not.
struct Transition {
  ibv_qp_type type;
  ibv_qp_state from;
  ibv_qp_state to;
  int required;
  int forbidden;
};

class TransitionMasks : public States, public testing::WithParamInterface<Transition> {};

TEST_P(TransitionMasks, EachRequiredAttributeIsRequiredAndOthersAreNotTaken) {
  const Transition& transition = GetParam();
  make_qps(transition.type);
  if (transition.from != IBV_QPS_RESET) a.to_init();
  if (transition.from == IBV_QPS_RTR) a.to_rtr(b);

  for (int bit = 1; bit <= transition.required; bit <<= 1) {
    if ((transition.required & bit) == 0) continue;
    EXPECT_EQ(try_modify(a, transition.to, IBV_QP_STATE | (transition.required & ~bit)), EINVAL) << "without " << bit;
    EXPECT_EQ(a.state(), transition.from);
  }
  EXPECT_EQ(try_modify(a, transition.to, IBV_QP_STATE | transition.required | transition.forbidden), EINVAL);
  EXPECT_EQ(a.state(), transition.from);
  EXPECT_EQ(try_modify(a, transition.to, IBV_QP_STATE | transition.required), 0);
  EXPECT_EQ(a.state(), transition.to);
}

constexpr int uc_to_rtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr int rc_to_rtr = uc_to_rtr | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int rc_to_rts =
    IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
constexpr int connected_to_init = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;

std::string name_of(const testing::TestParamInfo<Transition>& info) {
  const char* types[] = {"", "", "Rc", "Uc", "Ud"};
  const char* states[] = {"Reset", "Init", "Rtr", "Rts"};
  return std::string(types[info.param.type]) + states[info.param.from] + "To" + states[info.param.to];
}

INSTANTIATE_TEST_SUITE_P(
    States, TransitionMasks,
    testing::Values(Transition{IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, connected_to_init, IBV_QP_QKEY},
                    Transition{IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, rc_to_rtr, IBV_QP_TIMEOUT},
                    Transition{IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, rc_to_rts, IBV_QP_DEST_QPN},
                    Transition{IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT, connected_to_init, IBV_QP_QKEY},
                    Transition{IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR, uc_to_rtr, IBV_QP_MIN_RNR_TIMER},
                    Transition{IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_TIMEOUT},
                    Transition{IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
                               IBV_QP_ACCESS_FLAGS},
                    Transition{IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_AV},
                    Transition{IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_RNR_RETRY}),
    name_of);

TEST_F(States, ValuesThatCannotBeAreRefused) {
  make_qps();
  const auto refused = [&](ibv_qp_state state, int mask, auto change) {
    ibv_qp_attr attributes = complete_attributes();
    attributes.qp_state = state;
    change(attributes);
    return a.endpoint->modify_qp(a.qp, attributes, mask) != 0;
  };
  const int init = IBV_QP_STATE | connected_to_init;
  EXPECT_TRUE(refused(IBV_QPS_INIT, init, [](ibv_qp_attr& set) { set.port_num = 0; }));
  EXPECT_TRUE(refused(IBV_QPS_INIT, init, [](ibv_qp_attr& set) { set.port_num = 99; }));
  a.to_init();
  const int rtr = IBV_QP_STATE | rc_to_rtr;
  EXPECT_TRUE(refused(IBV_QPS_RTR, rtr, [](ibv_qp_attr& set) { set.path_mtu = static_cast<ibv_mtu>(6); }));
  if (!a.deviates(Deviation::any_mtu_is_taken)) {
    EXPECT_TRUE(refused(IBV_QPS_RTR, rtr, [](ibv_qp_attr& set) { set.path_mtu = static_cast<ibv_mtu>(0); }));
  }
  if (a.port.link_layer == IBV_LINK_LAYER_ETHERNET) {
    EXPECT_TRUE(refused(IBV_QPS_RTR, rtr, [](ibv_qp_attr& set) { set.ah_attr.is_global = 0; }));
    const int beyond = a.port.gid_tbl_len;
    if (beyond < 256) {
      EXPECT_TRUE(refused(IBV_QPS_RTR, rtr,
                          [&](ibv_qp_attr& set) { set.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(beyond); }));
    }
  }
  EXPECT_EQ(a.state(), IBV_QPS_INIT);
}

TEST_F(States, MtuAboveThePortsOwnIsRefused) {
  SKIP_WHERE_IT_DEVIATES(a, Deviation::any_mtu_is_taken);
  if (a.port.active_mtu == IBV_MTU_4096) GTEST_SKIP() << "the port's MTU is the largest there is";
  make_qps();
  a.to_init();
  ibv_qp_attr attributes = complete_attributes();
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = static_cast<ibv_mtu>(a.port.active_mtu + 1);
  EXPECT_EQ(a.endpoint->modify_qp(a.qp, attributes, IBV_QP_STATE | rc_to_rtr), EINVAL);
}

TEST_F(States, PkeyIndexBeyondTheTableIsRefused) {
  const QueriedPkey first = a.endpoint->query_pkey(port_number, 0);
  EXPECT_EQ(first.error, 0);
  EXPECT_EQ(first.pkey & 0x7fff, 0x7fff);
  const int beyond = a.port.pkey_tbl_len;
  EXPECT_NE(a.endpoint->query_pkey(port_number, beyond).error, 0);
  SKIP_WHERE_IT_DEVIATES(a, Deviation::any_pkey_index_is_taken);
  make_qps();
  ibv_qp_attr attributes = complete_attributes();
  attributes.qp_state = IBV_QPS_INIT;
  attributes.pkey_index = static_cast<std::uint16_t>(beyond);
  EXPECT_NE(a.endpoint->modify_qp(a.qp, attributes, IBV_QP_STATE | connected_to_init), 0);
}

TEST_F(States, CurrentStateMustBeTheOneItIsIn) {
  SKIP_WHERE_IT_DEVIATES(a, Deviation::current_state_is_believed);
  connect();
  ibv_qp_attr attributes{};
  attributes.cur_qp_state = IBV_QPS_SQD;
  attributes.qp_state = IBV_QPS_RTS;
  EXPECT_EQ(a.endpoint->modify_qp(a.qp, attributes, IBV_QP_STATE | IBV_QP_CUR_STATE), EINVAL);
  attributes.cur_qp_state = IBV_QPS_RTS;
  EXPECT_EQ(a.endpoint->modify_qp(a.qp, attributes, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
}

TEST_F(States, EachGoesToErrorAndToReset) {
  for (int steps = 1; steps <= 3; ++steps) {
    for (const ibv_qp_state target : {IBV_QPS_ERR, IBV_QPS_RESET}) {
      a.make_qp(a.qp_options());
      a.to_init();
      if (steps >= 2) a.to_rtr(a);
      if (steps >= 3) a.to_rts();
      a.to(target);
      EXPECT_EQ(a.state(), target) << steps;
    }
  }
}

// Nothing can be sent before RTS (specification, volume 1, 10.3.1): the post is refused, as the specification has it; a
// provider that does not look at the state takes the request, and then it must not complete.
TEST_F(States, SendsBeforeRtsAreRefusedOrStay) {
  make_qps();
  const auto expect_nothing_sent = [&](const char* where) {
    const Posted posted = a.endpoint->post_send(a.qp, {send(1, {a.piece(0, 8)})});
    if (posted.error != 0) {
      EXPECT_EQ(posted.error, EINVAL) << where;
    }
    fabric->advance(1ms);
    EXPECT_TRUE(a.idle(a.send_cq)) << where;
    RecordProperty(where, posted.error);
  };
  expect_nothing_sent("reset");
  a.to_init();
  expect_nothing_sent("init");
  a.to_rtr(b);
  expect_nothing_sent("rtr");
}

TEST_F(States, ReceivesMayBePostedFromInitOn) {
  make_qps();
  b.to_init();
  b.receive(1, {b.piece(0, 64)});
  b.to_rtr(a, mirrored({}));
  b.receive(2, {b.piece(0, 64)});
  b.to_rts(mirrored({}));
  b.receive(3, {b.piece(0, 64)});
  a.connect(b);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    a.post(send(i, {a.piece(0, 8)}));
    EXPECT_TRUE(completed(b.received(), i, IBV_WC_RECV));
  }
  EXPECT_EQ(a.sent(3).size(), 3u);
}

// Refused, as the specification has it; a provider that does not look at the state takes it. No completion either way.
TEST_F(States, ReceiveInResetIsRefusedOrStays) {
  make_qps();
  const Posted posted = a.endpoint->post_recv(a.qp, {{.id = 1, .pieces = {a.piece(0, 8)}}});
  if (posted.error != 0) {
    EXPECT_EQ(posted.error, EINVAL);
  }
  fabric->advance(1ms);
  EXPECT_TRUE(a.idle(a.recv_cq));
}

TEST_F(States, RightsCanBeTakenBackInRts) {
  connect();
  a.post(write(1, {a.piece(0, 8)}, b, 0));
  EXPECT_TRUE(completed(a.sent(), 1, IBV_WC_RDMA_WRITE));
  ibv_qp_attr attributes{};
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ;
  EXPECT_EQ(b.endpoint->modify_qp(b.qp, attributes, IBV_QP_ACCESS_FLAGS), 0);
  a.post(write(2, {a.piece(0, 8)}, b, 0));
  EXPECT_NE(a.sent().status, IBV_WC_SUCCESS);
}

class Drain : public States {};

TEST_F(Drain, FinishesWhatWasBegunAndHoldsBackTheRest) {
  connect();
  constexpr std::uint32_t count = 8;
  for (std::uint32_t i = 0; i < count; ++i) a.post(write(i, {a.piece(0, 4000)}, b, 0));
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_SQD;
  attributes.en_sqd_async_notify = 1;
  const int error = a.endpoint->modify_qp(a.qp, attributes, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
  if (error == EOPNOTSUPP || error == ENOSYS) GTEST_SKIP() << "the device has no SQD";
  ASSERT_EQ(error, 0);

  const auto drained = a.async_event(IBV_EVENT_SQ_DRAINED);
  ASSERT_TRUE(drained);
  EXPECT_EQ(drained->qp, a.qp);
  const QueriedQp queried = a.endpoint->query_qp(a.qp, IBV_QP_STATE);
  EXPECT_EQ(queried.attributes.qp_state, IBV_QPS_SQD);
  EXPECT_EQ(queried.attributes.sq_draining, 0);

  // What had not begun stays, and so does what is posted now.
  const int finished = a.endpoint->poll_cq(a.send_cq, count).result;
  a.post(write(count, {a.piece(0, 8)}, b, 0));
  fabric->advance(2ms);
  EXPECT_TRUE(a.idle(a.send_cq));
  a.to(IBV_QPS_RTS);
  SKIP_WHERE_IT_DEVIATES(a, Deviation::drained_queue_does_not_go_on);
  const std::vector<ibv_wc> rest = a.sent(count + 1 - static_cast<std::uint32_t>(finished));
  EXPECT_TRUE(completed(rest.back(), count, IBV_WC_RDMA_WRITE));
}

TEST_F(Drain, ReceivingGoesOn) {
  connect();
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_SQD;
  const int error = b.endpoint->modify_qp(b.qp, attributes, IBV_QP_STATE);
  if (error == EOPNOTSUPP || error == ENOSYS) GTEST_SKIP() << "the device has no SQD";
  ASSERT_EQ(error, 0);
  b.receive(1, {b.piece(0, 64)});
  a.post(send(2, {a.piece(0, 64)}));
  EXPECT_TRUE(completed(b.received(), 1, IBV_WC_RECV));
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
}

// Only some devices report it. Where one does, it names the QP that heard from its peer before it was in RTS.
TEST_F(States, FirstPacketInRtrEstablishesTheConnection) {
  make_qps();
  b.to_init();
  b.to_rtr(a, mirrored({}));
  a.connect(b);
  b.receive(1, {b.piece(0, 64)});
  a.post(send(2, {a.piece(0, 64)}));
  EXPECT_TRUE(completed(b.received(), 1, IBV_WC_RECV));
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
  const auto event = b.async_event(IBV_EVENT_COMM_EST, 500ms);
  if (!event) GTEST_SKIP() << "the device does not report established connections";
  EXPECT_EQ(event->qp, b.qp);
}

TEST_F(States, AQpMadeAfterAnotherWasDestroyedIsNew) {
  connect();
  b.receive(1, {b.piece(0, 64)});
  a.post(send(2, {a.piece(0, 64)}));
  EXPECT_TRUE(completed(b.received(), 1, IBV_WC_RECV));
  EXPECT_TRUE(completed(a.sent(), 2, IBV_WC_SEND));
  EXPECT_EQ(a.endpoint->destroy_qp(a.qp), 0);
  a.make_qp(a.qp_options());
  EXPECT_EQ(a.state(), IBV_QPS_RESET);
  EXPECT_TRUE(a.idle(a.send_cq));
}

}  // namespace
}  // namespace verbatim::conformance
