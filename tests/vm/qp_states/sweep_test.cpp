// The kernel as judge of the transition table.
#include "vm/qp_states/sweep.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <iostream>
#include <set>
#include <string>

#include "vm/qp_states/differences.hpp"

namespace verbatim::qp::test {
namespace {

const Difference* expected_difference(const Question& question) {
  for (const auto& difference : differences_from_linux()) {
    if (difference.covers(question.type, question.from, question.to, question.left_out, question.added)) {
      return &difference;
    }
  }
  return nullptr;
}

void expect_as_agreed(const Answer& answer, const Difference* difference) {
  const bool expected = difference == nullptr ? answer.allowed_by_us : difference->allowed_by_linux;
  EXPECT_EQ(answer.allowed_by_device(), expected) << "the device says: " << std::strerror(answer.device_errno);
  if (difference != nullptr) {
    EXPECT_NE(answer.allowed_by_us, difference->allowed_by_linux) << "no difference any more";
  }
}

void expect_the_state_asked_for(const Answer& answer) {
  const bool moves = answer.allowed_by_device() && answer.question.left_out != IBV_QP_STATE &&
                     answer.question.from != answer.question.to;
  EXPECT_EQ(qp::to_text(answer.after), qp::to_text(moves ? answer.question.to : answer.before));
}

class QpStates : public ::testing::TestWithParam<ibv_qp_type> {};

TEST_P(QpStates, AreThoseOfTheDeviceButForTheKnownDifferences) {
  int asked = 0, allowed = 0, different = 0;
  for (const auto& question : questions_about(GetParam())) {
    SCOPED_TRACE(to_text(question));
    const auto answer = ask(question);
    const auto* difference = expected_difference(question);
    expect_as_agreed(answer, difference);
    expect_the_state_asked_for(answer);
    ++asked;
    allowed += answer.allowed_by_device();
    different += difference != nullptr;
  }
  std::cout << qp::to_text(GetParam()) << ": " << asked << " modifies asked, " << allowed << " done by the device, "
            << different << " judged differently for a known reason\n";
  EXPECT_GT(allowed, 0);
}

std::string type_name(const ::testing::TestParamInfo<ibv_qp_type>& type) {
  return qp::to_text(type.param);
}
INSTANTIATE_TEST_SUITE_P(Types, QpStates, ::testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD), type_name);

// A row of the table of differences that no question meets would never be found wrong.
TEST(QpStateDifferences, AreAllAskedAbout) {
  std::set<const Difference*> met;
  for (const auto type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
    for (const auto& question : questions_about(type)) met.insert(expected_difference(question));
  }
  met.erase(nullptr);
  EXPECT_EQ(met.size(), differences_from_linux().size());
}

}  // namespace
}  // namespace verbatim::qp::test
