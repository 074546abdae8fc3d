#include "device/queue_pair/transitions.hpp"

#include <gtest/gtest.h>

#include "oracle.hpp"

namespace verbatim::qp {
namespace {

TEST(Transitions, AreThoseOfTheReferenceForEachTypeAndPairOfStates) {
  for (const auto& [type_name, type] : test::types()) {
    for (const auto& [from_name, from] : test::states()) {
      for (const auto& [to_name, to] : test::states()) {
        SCOPED_TRACE(type_name + " " + from_name + "→" + to_name);
        const auto expected = test::known_transitions().find({type, from, to});
        const auto* found = find_transition(type, from, to);
        ASSERT_EQ(found != nullptr, expected != test::known_transitions().end());
        if (found == nullptr) continue;
        EXPECT_EQ(to_text(found->required), to_text(expected->second.required));
        EXPECT_EQ(to_text(found->optional), to_text(expected->second.optional));
      }
    }
  }
}

TEST(Transitions, HaveOneRowPerRowOfTheReference) {
  EXPECT_EQ(transitions.size(), test::read_csv("qp_transitions.csv").size());
}

TEST(Transitions, NeverRequireWhatIsOptional) {
  for (const auto& transition : transitions) EXPECT_EQ(transition.required & transition.optional, 0);
}

TEST(Transitions, OfOtherTypesAreUnknown) {
  for (const auto to : all_states) {
    EXPECT_EQ(find_transition(IBV_QPT_XRC_SEND, IBV_QPS_RESET, to), nullptr);
    EXPECT_EQ(find_transition(IBV_QPT_DRIVER, IBV_QPS_RESET, to), nullptr);
  }
}

TEST(Transitions, ByTheDeviceLeadToErrorOrToSendQueueError) {
  EXPECT_TRUE(device_moves(IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_ERR));
  EXPECT_TRUE(device_moves(IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_SQE));
  EXPECT_TRUE(device_moves(IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_SQE));
  EXPECT_FALSE(device_moves(IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_SQE));
  EXPECT_FALSE(device_moves(IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_SQE));
  EXPECT_FALSE(device_moves(IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_ERR));
  EXPECT_FALSE(device_moves(IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS));
}

TEST(Names, AreVerbsOwn) {
  for (const auto& [name, bit] : test::attribute_bits()) EXPECT_EQ(to_text(bit), name);
  EXPECT_EQ(all_attributes.size(), test::attribute_bits().size());
  for (const auto& [name, state] : test::states()) EXPECT_EQ(to_text(state), name);
  for (const auto& [name, type] : test::types()) EXPECT_EQ(to_text(type), name);
}

TEST(Names, OfWhatVerbsDoesNotKnowAreNumbers) {
  EXPECT_EQ(to_text(static_cast<ibv_qp_state>(9)), "state 9");
  EXPECT_EQ(to_text(static_cast<ibv_qp_type>(77)), "type 77");
  EXPECT_EQ(to_text(AttributeMask{IBV_QP_AV | (1 << 21)}), "AV, 0x200000");
  EXPECT_EQ(to_text(AttributeMask{0}), "-");
}

}  // namespace
}  // namespace verbatim::qp
