#include "vm/qp_states/sweep.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "device/queue_pair/transitions.hpp"
#include "qp/check.hpp"
#include "vm/qp_states/device.hpp"

namespace verbatim::qp::test {
namespace {

// How often to ask whether the send queue has drained. It is empty: the device only has to notice.
constexpr int drain_queries = 10000;

// A value for every attribute that the device takes where it takes the attribute.
ibv_qp_attr valid_attributes(const Device& device) {
  ibv_qp_attr attributes{};
  attributes.port_num = device.path.port.value;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  attributes.qkey = 0x1234;
  attributes.ah_attr = device.path.address();
  attributes.path_mtu = device.path_mtu.code();
  attributes.dest_qp_num = 0x11;
  attributes.rq_psn = 1;
  attributes.sq_psn = 1;
  attributes.max_dest_rd_atomic = 1;
  attributes.max_rd_atomic = 1;
  attributes.min_rnr_timer = 12;
  attributes.timeout = 14;
  attributes.retry_cnt = 7;
  attributes.rnr_retry = 6;
  attributes.alt_ah_attr = attributes.ah_attr;
  attributes.alt_port_num = attributes.port_num;
  attributes.alt_timeout = 14;
  attributes.path_mig_state = IBV_MIG_REARM;
  attributes.cap = device.queue_pair(IBV_QPT_RC).cap;
  return attributes;
}

class FreshQueuePair {
 public:
  FreshQueuePair(Device& device, ibv_qp_type type) : device_(device), type_(type) {
    auto attributes = device.queue_pair(type);
    handle_ = device.context->create_qp(device.pd, attributes);
    if (handle_ == nullptr) throw std::runtime_error("no queue pair");
  }
  ~FreshQueuePair() { device_.context->destroy_qp(handle_); }
  FreshQueuePair(const FreshQueuePair&) = delete;
  FreshQueuePair& operator=(const FreshQueuePair&) = delete;

  [[nodiscard]] int modify(ibv_qp_attr attributes, AttributeMask mask) {
    return device_.context->modify_qp(handle_, attributes, mask);
  }

  void bring_to(ibv_qp_state target) {
    for (const auto to : way_to(target)) {
      auto attributes = valid_attributes(device_);
      attributes.qp_state = to;
      const auto mask = find_transition(type_, state_, to)->required;
      if (const int problem = modify(attributes, mask)) {
        throw std::runtime_error(
            fmt::format("{} refused on the way to {}: errno {}", qp::to_text(to), qp::to_text(target), problem));
      }
      state_ = to;
    }
    if (target == IBV_QPS_SQD) await_drained();
  }

  [[nodiscard]] ibv_qp_attr query() {
    ibv_qp_attr attributes{};
    ibv_qp_init_attr init{};
    if (device_.context->query_qp(handle_, attributes, IBV_QP_STATE, init) != 0) throw std::runtime_error("no state");
    return attributes;
  }

 private:
  static std::vector<ibv_qp_state> way_to(ibv_qp_state target) {
    switch (target) {
      case IBV_QPS_RESET:
        return {};
      case IBV_QPS_INIT:
        return {IBV_QPS_INIT};
      case IBV_QPS_RTR:
        return {IBV_QPS_INIT, IBV_QPS_RTR};
      case IBV_QPS_SQD:
        return {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD};
      case IBV_QPS_ERR:
        return {IBV_QPS_INIT, IBV_QPS_ERR};
      default:
        return {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
    }
  }

  // While it drains, a device may refuse what it takes afterwards.
  void await_drained() {
    for (int count = 0; count < drain_queries; ++count) {
      if (query().sq_draining == 0) return;
    }
    throw std::runtime_error("the send queue never drained");
  }

  Device& device_;
  ibv_qp_type type_;
  ibv_qp* handle_;
  ibv_qp_state state_ = IBV_QPS_RESET;
};

// Where there is no such transition, it is asked for by its name alone.
AttributeMask base_mask(const Question& question) {
  const auto* transition = find_transition(question.type, question.from, question.to);
  if (transition != nullptr) return transition->required;
  return question.from == question.to ? 0 : IBV_QP_STATE;
}

// A transition that does not exist has nothing to leave out.
void add_questions(const Question& plain, std::vector<Question>& questions) {
  questions.push_back(plain);
  const bool exists = find_transition(plain.type, plain.from, plain.to) != nullptr;
  for (const auto& attribute : all_attributes) {
    auto question = plain;
    const bool present = base_mask(plain) & attribute.bit;
    (present ? question.left_out : question.added) = attribute.bit;
    if (exists || !present) questions.push_back(question);
  }
}

}  // namespace

std::string to_text(const Question& question) {
  auto text = fmt::format("{} {}→{}", qp::to_text(question.type), qp::to_text(question.from), qp::to_text(question.to));
  if (question.left_out != 0) text += " without " + qp::to_text(question.left_out);
  if (question.added != 0) text += " with " + qp::to_text(question.added);
  return text;
}

std::vector<Question> questions_about(ibv_qp_type type) {
  std::vector<Question> questions;
  for (const auto from : all_states) {
    if (from == IBV_QPS_SQE && find_transition(type, IBV_QPS_SQE, IBV_QPS_RTS) == nullptr) continue;
    for (const auto to : all_states) add_questions({type, from, to}, questions);
  }
  return questions;
}

Answer ask(const Question& question) {
  auto& device = device_under_test();
  FreshQueuePair queue_pair(device, question.type);
  queue_pair.bring_to(question.from);

  auto mask = (base_mask(question) & ~question.left_out) | question.added;
  if (question.from == IBV_QPS_SQE) mask |= IBV_QP_CUR_STATE;
  auto attributes = valid_attributes(device);
  attributes.cur_qp_state = question.from;
  attributes.qp_state = question.to;

  Answer answer;
  answer.question = question;
  answer.allowed_by_us = check(question.type, question.from, attributes, mask).ok();
  answer.before = queue_pair.query().qp_state;
  answer.device_errno = queue_pair.modify(attributes, mask);
  answer.after = queue_pair.query().qp_state;
  return answer;
}

}  // namespace verbatim::qp::test
