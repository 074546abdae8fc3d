#include "qp/values.hpp"

#include <gtest/gtest.h>

namespace verbatim::qp {
namespace {

constexpr Limits limits{.ports = 2, .initiator_depth = 16, .responder_resources = 8};

struct Case {
  AttributeMask bit;
  void (*highest)(ibv_qp_attr&);
  void (*too_much)(ibv_qp_attr&);
  const char* sentence;
};

using Attributes = ibv_qp_attr;
const Case cases[] = {
    {IBV_QP_PORT, [](Attributes& a) { a.port_num = 2; }, [](Attributes& a) { a.port_num = 3; },
     "PORT is 3, allowed are 1 to 2"},
    {IBV_QP_PORT, [](Attributes& a) { a.port_num = 1; }, [](Attributes& a) { a.port_num = 0; },
     "PORT is 0, allowed are 1 to 2"},
    {IBV_QP_RQ_PSN, [](Attributes& a) { a.rq_psn = 0xffffff; }, [](Attributes& a) { a.rq_psn = 0x1000000; },
     "RQ_PSN is 16777216, allowed are 0 to 16777215"},
    {IBV_QP_SQ_PSN, [](Attributes& a) { a.sq_psn = 0xffffff; }, [](Attributes& a) { a.sq_psn = 0x1000000; },
     "SQ_PSN is 16777216, allowed are 0 to 16777215"},
    {IBV_QP_DEST_QPN, [](Attributes& a) { a.dest_qp_num = 0xffffff; }, [](Attributes& a) { a.dest_qp_num = 0x1000000; },
     "DEST_QPN is 16777216, allowed are 0 to 16777215"},
    {IBV_QP_MIN_RNR_TIMER, [](Attributes& a) { a.min_rnr_timer = 31; }, [](Attributes& a) { a.min_rnr_timer = 32; },
     "MIN_RNR_TIMER is 32, allowed are 0 to 31"},
    {IBV_QP_TIMEOUT, [](Attributes& a) { a.timeout = 31; }, [](Attributes& a) { a.timeout = 32; },
     "TIMEOUT is 32, allowed are 0 to 31"},
    {IBV_QP_RETRY_CNT, [](Attributes& a) { a.retry_cnt = 7; }, [](Attributes& a) { a.retry_cnt = 8; },
     "RETRY_CNT is 8, allowed are 0 to 7"},
    {IBV_QP_RNR_RETRY, [](Attributes& a) { a.rnr_retry = 7; }, [](Attributes& a) { a.rnr_retry = 8; },
     "RNR_RETRY is 8, allowed are 0 to 7"},
    {IBV_QP_PATH_MTU, [](Attributes& a) { a.path_mtu = IBV_MTU_4096; },
     [](Attributes& a) { a.path_mtu = static_cast<ibv_mtu>(6); }, "PATH_MTU is 6, allowed are 1 to 5"},
    {IBV_QP_MAX_QP_RD_ATOMIC, [](Attributes& a) { a.max_rd_atomic = 16; }, [](Attributes& a) { a.max_rd_atomic = 17; },
     "MAX_QP_RD_ATOMIC is 17, allowed are 0 to 16"},
    {IBV_QP_MAX_DEST_RD_ATOMIC, [](Attributes& a) { a.max_dest_rd_atomic = 8; },
     [](Attributes& a) { a.max_dest_rd_atomic = 9; }, "MAX_DEST_RD_ATOMIC is 9, allowed are 0 to 8"},
    {IBV_QP_AV,
     [](Attributes& a) {
       a.ah_attr = {
           .grh = {}, .dlid = 0, .sl = 15, .src_path_bits = 0, .static_rate = 0, .is_global = 0, .port_num = 1};
     },
     [](Attributes& a) {
       a.ah_attr = {
           .grh = {}, .dlid = 0, .sl = 16, .src_path_bits = 0, .static_rate = 0, .is_global = 0, .port_num = 3};
     },
     "the port of AV is 3, allowed are 1 to 2; the service level of AV is 16, allowed are 0 to 15"},
};

TEST(Values, AreRefusedBeyondTheirField) {
  for (const auto& test : cases) {
    SCOPED_TRACE(test.sentence);
    ibv_qp_attr attributes{};
    test.highest(attributes);
    EXPECT_EQ(wrong_values(attributes, test.bit, limits), "");
    test.too_much(attributes);
    EXPECT_EQ(wrong_values(attributes, test.bit, limits), test.sentence);
    EXPECT_EQ(wrong_values(attributes, 0, limits), "") << "not among those that count";
  }
}

TEST(Values, OfAGlobalRouteHaveTheirFieldsToo) {
  ibv_qp_attr attributes{};
  attributes.ah_attr.port_num = 1;
  attributes.ah_attr.grh.flow_label = 0x100000;
  EXPECT_EQ(wrong_values(attributes, IBV_QP_AV, limits), "") << "no global route";
  attributes.ah_attr.is_global = 1;
  EXPECT_EQ(wrong_values(attributes, IBV_QP_AV, limits), "the flow label of AV is 1048576, allowed are 0 to 1048575");
}

TEST(Values, OfTheAlternatePathAreJudgedLikeThePrimary) {
  ibv_qp_attr attributes{};
  attributes.alt_timeout = 32;
  EXPECT_EQ(wrong_values(attributes, IBV_QP_ALT_PATH, limits),
            "the port of ALT_PATH is 0, allowed are 1 to 2; the timeout of ALT_PATH is 32, allowed are 0 to 31");
}

TEST(Values, OfThePortAgree) {
  ibv_qp_attr attributes{};
  attributes.port_num = 1;
  attributes.ah_attr.port_num = 2;
  EXPECT_EQ(wrong_values(attributes, IBV_QP_AV | IBV_QP_PORT, limits),
            "PORT is 1 and the port of AV is 2: make them equal");
  EXPECT_EQ(wrong_values(attributes, IBV_QP_AV, limits), "");
}

TEST(Values, LimitsComeFromTheDevice) {
  ibv_device_attr device{};
  device.phys_port_cnt = 2;
  device.max_qp_init_rd_atom = 16;
  device.max_qp_rd_atom = 8;
  const auto found = limits_of(device);
  EXPECT_EQ(found.ports, 2);
  EXPECT_EQ(found.initiator_depth, 16);
  EXPECT_EQ(found.responder_resources, 8);
}

}  // namespace
}  // namespace verbatim::qp
