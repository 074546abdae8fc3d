// Asks a device about every transition and every attribute of it, and our table the same.
#pragma once

#include <infiniband/verbs.h>

#include <string>
#include <vector>

#include "device/queue_pair/names.hpp"

namespace verbatim::qp::test {

// What was asked: a transition with its required attributes, one of them left out or one other added.
struct Question {
  ibv_qp_type type;
  ibv_qp_state from;
  ibv_qp_state to;
  AttributeMask left_out = 0;
  AttributeMask added = 0;
};

struct Answer {
  Question question;
  bool allowed_by_us = false;
  int device_errno = 0;  // 0: the device did it
  ibv_qp_state before = IBV_QPS_RESET;
  ibv_qp_state after = IBV_QPS_RESET;

  [[nodiscard]] bool allowed_by_device() const { return device_errno == 0; }
};

[[nodiscard]] std::string to_text(const Question& question);

// Every question about a type, from each state that a modify leads to. SQE, where only the device leads to, is claimed
// by CUR_STATE, which is what that attribute is for.
[[nodiscard]] std::vector<Question> questions_about(ibv_qp_type type);

// Asks on a fresh queue pair of the device under test. Throws if it can't be brought to `question.from`.
[[nodiscard]] Answer ask(const Question& question);

}  // namespace verbatim::qp::test
