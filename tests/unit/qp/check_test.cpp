#include "qp/check.hpp"

#include <gtest/gtest.h>

#include "oracle.hpp"

namespace verbatim::qp {
namespace {

// Every bit an int has room for, among them those that verbs has no name for.
template <typename Visit>
void for_each_bit(Visit visit) {
  for (int shift = 0; shift < 31; ++shift) visit(1 << shift);
}

template <typename Visit>
void for_each_pair_of_states(Visit visit) {
  for (const auto& [type_name, type] : test::types()) {
    for (const auto& [from_name, from] : test::states()) {
      for (const auto& [to_name, to] : test::states()) {
        SCOPED_TRACE(type_name + " " + from_name + "→" + to_name);
        const auto found = test::known_transitions().find({type, from, to});
        visit(type, from, to, found == test::known_transitions().end() ? nullptr : &found->second);
      }
    }
  }
}

TEST(Check, TakesTheRequiredSetAloneAndWithEverythingOptional) {
  for_each_pair_of_states([](auto type, auto from, auto to, const test::Masks* masks) {
    if (masks == nullptr) return;
    EXPECT_TRUE(check(type, from, to, masks->required).ok());
    EXPECT_TRUE(check(type, from, to, masks->required | masks->optional).ok());
    EXPECT_EQ(to_sentence(check(type, from, to, masks->required)), "");
  });
}

TEST(Check, NamesEachRequiredAttributeLeftOut) {
  for_each_pair_of_states([](auto type, auto from, auto to, const test::Masks* masks) {
    if (masks == nullptr) return;
    for_each_bit([&](int bit) {
      if (!(masks->required & bit)) return;
      const auto verdict = check(type, from, to, masks->required & ~bit);
      EXPECT_FALSE(verdict.ok());
      EXPECT_EQ(verdict.missing, bit);
      EXPECT_EQ(verdict.not_allowed, 0);
      EXPECT_NE(to_sentence(verdict).find("missing " + to_text(AttributeMask{bit})), std::string::npos);
    });
    const auto verdict = check(type, from, to, 0);
    EXPECT_EQ(verdict.missing, masks->required) << "all of them at once";
  });
}

TEST(Check, NamesEachAttributeNotAllowedThere) {
  for_each_pair_of_states([](auto type, auto from, auto to, const test::Masks* masks) {
    if (masks == nullptr) return;
    for_each_bit([&](int bit) {
      const bool allowed = (masks->required | masks->optional) & bit;
      const auto verdict = check(type, from, to, masks->required | bit);
      EXPECT_EQ(verdict.ok(), allowed);
      EXPECT_EQ(verdict.missing, 0);
      EXPECT_EQ(verdict.not_allowed, allowed ? 0 : bit);
      if (!allowed) {
        EXPECT_NE(to_sentence(verdict).find(to_text(AttributeMask{bit})), std::string::npos);
      }
    });
  });
}

TEST(Check, RefusesWhatIsNoTransitionWhateverIsGiven) {
  for_each_pair_of_states([](auto type, auto from, auto to, const test::Masks* masks) {
    if (masks != nullptr) return;
    for_each_bit([&](int bit) { EXPECT_FALSE(check(type, from, to, IBV_QP_STATE | bit).ok()); });
    const auto verdict = check(type, from, to, IBV_QP_STATE);
    EXPECT_FALSE(verdict.possible);
    EXPECT_NE(to_sentence(verdict).find("it can go to"), std::string::npos);
  });
}

ibv_qp_attr going_to(ibv_qp_state state) {
  ibv_qp_attr attributes{};
  attributes.qp_state = state;
  return attributes;
}

TEST(CheckOfACall, StaysInItsStateWithoutState) {
  const auto attributes = going_to(IBV_QPS_RESET);  // not counted: STATE is not given
  const auto verdict = check(IBV_QPT_RC, IBV_QPS_RTS, attributes, IBV_QP_ACCESS_FLAGS);
  EXPECT_EQ(verdict.from, IBV_QPS_RTS);
  EXPECT_EQ(verdict.to, IBV_QPS_RTS);
  EXPECT_TRUE(verdict.ok());
}

TEST(CheckOfACall, TakesTheCallersWordForTheStateWithCurState) {
  auto attributes = going_to(IBV_QPS_RTS);
  attributes.cur_qp_state = IBV_QPS_SQE;
  EXPECT_TRUE(check(IBV_QPT_UD, IBV_QPS_RTS, attributes, IBV_QP_STATE | IBV_QP_CUR_STATE).ok());
  EXPECT_FALSE(check(IBV_QPT_UD, IBV_QPS_RTS, attributes, IBV_QP_STATE).ok());
}

struct Sentence {
  ibv_qp_type type;
  ibv_qp_state from;
  ibv_qp_state to;
  AttributeMask given;
  const char* text;
};

constexpr AttributeMask rc_rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;

const Sentence sentences[] = {
    {IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_TIMEOUT,
     "RC RTS→RTS: TIMEOUT can be set at RTR→RTS or SQD→SQD, not at RTS→RTS"},
    {IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_INIT, IBV_QP_STATE,
     "RC can't go RTS→INIT; from RTS it can go to RESET, RTS, SQD or ERR"},
    {IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN,
     "RC can't go INIT→RTS; from INIT it can go to RESET, INIT, RTR or ERR"},
    {IBV_QPT_RC, IBV_QPS_ERR, IBV_QPS_RTS, IBV_QP_STATE, "RC can't go ERR→RTS; from ERR it can go to RESET or ERR"},
    {IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTR, IBV_QP_TIMEOUT,
     "RC takes no attributes while it stays RTR; give STATE with the next state: RESET, RTS or ERR"},
    {IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PORT,
     "RC RESET→INIT: missing ACCESS_FLAGS, PKEY_INDEX"},
    {IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS,
     "UD RESET→INIT: missing QKEY; ACCESS_FLAGS is never set on UD"},
    {IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, (rc_rtr & ~IBV_QP_AV & ~IBV_QP_PATH_MTU) | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN,
     "RC INIT→RTR: missing AV, PATH_MTU; TIMEOUT can be set at RTR→RTS or SQD→SQD, not at INIT→RTR; "
     "SQ_PSN can be set at RTR→RTS, not at INIT→RTR"},
    {IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, rc_rtr | IBV_QP_PORT,
     "RC INIT→RTR: PORT can be set at RESET→INIT, INIT→INIT or SQD→SQD, not at INIT→RTR"},
    {IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_RNR_RETRY,
     "UC RTR→RTS: RNR_RETRY is never set on UC"},
    {IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PORT,
     "RC INIT→INIT: STATE is left out where the state stays INIT"},
    {IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QP_STATE | IBV_QP_CAP | (1 << 22),
     "RC RTS→SQD: CAP is never set on RC; 0x400000 is no attribute that verbs knows"},
    {IBV_QPT_RAW_PACKET, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_QKEY,
     "RAW_PACKET RESET→INIT: missing PORT; QKEY is never set on RAW_PACKET"},
    {IBV_QPT_RAW_PACKET, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QP_STATE,
     "RAW_PACKET can't go RTS→SQD; from RTS it can go to RESET or ERR"},
    {IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_RESET, 0, "UD RTS→RESET: missing STATE"},
    {IBV_QPT_XRC_SEND, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_STATE, "no transition of XRC_SEND from RESET is known"},
};

TEST(Check, SaysWhatToDoInstead) {
  for (const auto& sentence : sentences) {
    EXPECT_EQ(to_sentence(check(sentence.type, sentence.from, sentence.to, sentence.given)), sentence.text);
  }
}

}  // namespace
}  // namespace verbatim::qp
