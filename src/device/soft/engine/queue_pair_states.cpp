// The state rules of queue pairs: what modify takes, and what each state does to what is queued.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "device/queue_pair/transitions.hpp"
#include "device/queue_pair/units.hpp"
#include "device/soft/engine/engine.hpp"
#include "device/soft/engine/requester.hpp"

namespace verbatim::soft {

bool Engine::add(QueuePair& queue_pair) {
  if (queue_pair_count_ >= config.limits.max_qp) return false;
  std::uint32_t slot;
  if (free_slots_.empty()) {
    slot = static_cast<std::uint32_t>(queue_pairs_.size());
    queue_pairs_.push_back(nullptr);
  } else {
    slot = free_slots_.back();  // the number used last comes back first: whoever mixes up generations notices
    free_slots_.pop_back();
  }
  queue_pairs_[slot] = &queue_pair;
  queue_pair.qpn = {(config.first_qpn + slot) & Qpn::mask};
  ++queue_pair_count_;
  owing_.reserve(queue_pairs_.size());
  settling_.reserve(queue_pairs_.size());
  timers.reserve(queue_pairs_.size());
  ++queue_pair.settings.send_cq->users;
  ++queue_pair.settings.receive_cq->users;
  if (queue_pair.settings.srq != nullptr) ++queue_pair.settings.srq->users;
  return true;
}

void Engine::remove(QueuePair& queue_pair) {
  reset(queue_pair);
  wire_->queue_pair_gone(queue_pair.qpn);
  std::erase(owing_, &queue_pair);
  std::erase(settling_, &queue_pair);
  timers.forget(queue_pair);
  if (dying_ == &queue_pair) dying_ = nullptr;
  const std::uint32_t slot = (queue_pair.qpn.value - config.first_qpn) & Qpn::mask;
  queue_pairs_[slot] = nullptr;
  free_slots_.push_back(slot);
  --queue_pair_count_;
  --queue_pair.settings.send_cq->users;
  --queue_pair.settings.receive_cq->users;
  if (queue_pair.settings.srq != nullptr) --queue_pair.settings.srq->users;
}

void Engine::publish(const QueuePair& queue_pair) {
  wire_->queue_pair_changed({.qpn = queue_pair.qpn,
                             .connected_to = {queue_pair.attributes.dest_qp_num},
                             .protection_domain = queue_pair.settings.domain,
                             .access = queue_pair.attributes.qp_access_flags,
                             .generation = queue_pair.generation,
                             .receiving = queue_pair.executes_requests()});
}

int Engine::check_values(const QueuePair& queue_pair, const ibv_qp_attr& given, int mask) const {
  const std::uint8_t port_number = (mask & IBV_QP_PORT) != 0 ? given.port_num : queue_pair.attributes.port_num;
  if ((mask & IBV_QP_PORT) != 0 && (port_number == 0 || port_number > port_count())) return EINVAL;
  if ((mask & IBV_QP_PKEY_INDEX) != 0) {
    const auto& pkeys = port(port_number).pkeys;
    if (given.pkey_index >= pkeys.size() || pkeys[given.pkey_index] == 0) return EINVAL;
  }
  if ((mask & IBV_QP_PATH_MTU) != 0 &&
      (given.path_mtu < IBV_MTU_256 || given.path_mtu > port(port_number).active_mtu)) {
    return EINVAL;
  }
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0 && given.max_rd_atomic > config.limits.max_rd_atomic) return EINVAL;
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0 && given.max_dest_rd_atomic > config.limits.max_dest_rd_atomic)
    return EINVAL;
  if ((mask & IBV_QP_TIMEOUT) != 0 && given.timeout > qp::AckTimeout::highest_code) return EINVAL;
  if ((mask & IBV_QP_RETRY_CNT) != 0 && given.retry_cnt > qp::RetryCount::highest) return EINVAL;
  if ((mask & IBV_QP_RNR_RETRY) != 0 && given.rnr_retry > qp::RnrRetry::infinite_code) return EINVAL;
  if ((mask & IBV_QP_MIN_RNR_TIMER) != 0 && given.min_rnr_timer > qp::RnrTimer::highest_code) return EINVAL;
  if ((mask & IBV_QP_DEST_QPN) != 0 && given.dest_qp_num > Qpn::mask) return EINVAL;
  // There is no second path to migrate to.
  if ((mask & (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)) != 0) return EOPNOTSUPP;
  return 0;
}

int Engine::modify(QueuePair& queue_pair, const ibv_qp_attr& given, int mask) {
  const ibv_qp_state from = queue_pair.state;
  if ((mask & IBV_QP_CUR_STATE) != 0 && given.cur_qp_state != from) return EINVAL;
  const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? given.qp_state : from;
  const qp::Transition* transition = qp::find_transition(queue_pair.settings.type, from, to);
  if (transition == nullptr) return EINVAL;
  const int required = transition->required;
  const int allowed_mask = required | transition->optional | IBV_QP_STATE;
  if ((mask & required) != required || (mask & ~allowed_mask) != 0) return EINVAL;
  if (const int problem = check_values(queue_pair, given, mask); problem != 0) return problem;
  if (to == IBV_QPS_RESET) {
    if (faults.refuse_reset) return EIO;
    reset(queue_pair);
    return 0;
  }
  if (to == IBV_QPS_ERR) {
    enter_error(queue_pair);
    return 0;
  }
  if ((mask & IBV_QP_AV) != 0) {
    ibv_ah_attr address = given.ah_attr;
    if (address.port_num == 0) address.port_num = queue_pair.attributes.port_num;
    const auto resolved = resolve(address);
    if (!resolved) return EINVAL;
    queue_pair.address = *resolved;
  }
  apply(queue_pair, given, mask);
  queue_pair.state = to;
  publish(queue_pair);
  if (to == IBV_QPS_SQD && from != IBV_QPS_SQD) {
    queue_pair.drain_told = false;
    requester::tell_if_drained(*this, queue_pair);
  }
  if (to == IBV_QPS_RTS && from != IBV_QPS_RTS) send_posted(queue_pair);
  return 0;
}

void Engine::apply(QueuePair& queue_pair, const ibv_qp_attr& given, int mask) {
  ibv_qp_attr& own = queue_pair.attributes;
  const auto take = [&](int bit, auto member) {
    if ((mask & bit) != 0) own.*member = given.*member;
  };
  take(IBV_QP_PKEY_INDEX, &ibv_qp_attr::pkey_index);
  take(IBV_QP_PORT, &ibv_qp_attr::port_num);
  take(IBV_QP_ACCESS_FLAGS, &ibv_qp_attr::qp_access_flags);
  take(IBV_QP_QKEY, &ibv_qp_attr::qkey);
  take(IBV_QP_AV, &ibv_qp_attr::ah_attr);
  take(IBV_QP_PATH_MTU, &ibv_qp_attr::path_mtu);
  take(IBV_QP_TIMEOUT, &ibv_qp_attr::timeout);
  take(IBV_QP_RETRY_CNT, &ibv_qp_attr::retry_cnt);
  take(IBV_QP_RNR_RETRY, &ibv_qp_attr::rnr_retry);
  take(IBV_QP_MAX_QP_RD_ATOMIC, &ibv_qp_attr::max_rd_atomic);
  take(IBV_QP_MAX_DEST_RD_ATOMIC, &ibv_qp_attr::max_dest_rd_atomic);
  take(IBV_QP_MIN_RNR_TIMER, &ibv_qp_attr::min_rnr_timer);
  take(IBV_QP_DEST_QPN, &ibv_qp_attr::dest_qp_num);
  take(IBV_QP_EN_SQD_ASYNC_NOTIFY, &ibv_qp_attr::en_sqd_async_notify);
  if ((mask & (IBV_QP_PKEY_INDEX | IBV_QP_PORT)) != 0) queue_pair.pkey = port(own.port_num).pkeys[own.pkey_index];
  if ((mask & IBV_QP_PATH_MTU) != 0) queue_pair.mtu_bytes = mtu_bytes(own.path_mtu);
  if ((mask & IBV_QP_TIMEOUT) != 0) {
    queue_pair.ack_timeout = qp::AckTimeout::from_code(own.timeout).duration();
    if (queue_pair.ack_timeout) queue_pair.ack_timeout = std::max(*queue_pair.ack_timeout, config.min_ack_timeout);
  }
  if ((mask & IBV_QP_RETRY_CNT) != 0) queue_pair.requester.retries_left = own.retry_cnt;
  if ((mask & IBV_QP_RNR_RETRY) != 0) queue_pair.requester.rnr_retries_left = own.rnr_retry;
  if ((mask & IBV_QP_RQ_PSN) != 0) {
    own.rq_psn = given.rq_psn & Psn::mask;
    queue_pair.responder.expected = Psn(given.rq_psn);
  }
  if ((mask & IBV_QP_SQ_PSN) != 0) {
    own.sq_psn = given.sq_psn & Psn::mask;
    queue_pair.requester.next_psn = queue_pair.requester.highest = Psn(given.sq_psn);
  }
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0) {
    const std::size_t depth = std::max<std::size_t>(own.max_dest_rd_atomic, 1);
    queue_pair.responder.responses.assign(2 * depth, {});  // as many again for repeated requests
    queue_pair.responder.saved_atomics.assign(depth, {});
    queue_pair.responder.first_response = queue_pair.responder.response_count = queue_pair.responder.next_saved = 0;
  }
}

void Engine::query(const QueuePair& queue_pair, ibv_qp_attr& attributes) const {
  if (queue_pair.state == IBV_QPS_ERR) {
    // Hardware promises nothing of a queue pair in ERR but its state; whoever trusts more shall notice here.
    std::memset(&attributes, 0xa5, sizeof(attributes));
  } else {
    attributes = queue_pair.attributes;
    attributes.rq_psn = queue_pair.responder.expected.value();
    attributes.sq_psn = queue_pair.requester.next_psn.value();
    attributes.sq_draining = queue_pair.state == IBV_QPS_SQD && !queue_pair.drain_told ? 1 : 0;
  }
  attributes.qp_state = queue_pair.state;
  attributes.cur_qp_state = queue_pair.state;
  attributes.cap = queue_pair.settings.cap;
}

void Engine::enter_error(QueuePair& queue_pair) {
  if (queue_pair.state == IBV_QPS_ERR) return;
  queue_pair.state = IBV_QPS_ERR;
  ++queue_pair.generation;
  TimerQueue::stop(queue_pair);
  queue_pair.responder.response_count = 0;
  queue_pair.responder.acknowledge_owed = false;
  queue_pair.responder.assembly = Assembly::none;
  publish(queue_pair);
  flush(queue_pair);
  if (queue_pair.settings.srq != nullptr) tell(queue_pair, IBV_EVENT_QP_LAST_WQE_REACHED);
}

void Engine::kill(QueuePair& queue_pair) {
  if (queue_pair.state == IBV_QPS_RESET || queue_pair.state == IBV_QPS_ERR) return;
  tell(queue_pair, IBV_EVENT_QP_FATAL);
  enter_error(queue_pair);
}

void Engine::set_faults(const FaultPlan& plan) {
  faults = plan;
  for (QueuePair* queue_pair : queue_pairs_) {
    if (queue_pair != nullptr && (queue_pair->state == IBV_QPS_ERR || queue_pair->state == IBV_QPS_SQE))
      flush(*queue_pair);
  }
}

// In ERR both queues flush, in SQE only the send queue; in order (specification, volume 1, 10.3.1.5 and 10.3.1.6).
void Engine::flush(QueuePair& queue_pair) {
  if (faults.endless_drain) return;
  while (!queue_pair.sends.empty()) complete_send(queue_pair, IBV_WC_WR_FLUSH_ERR);
  if (queue_pair.state != IBV_QPS_ERR) return;
  Responder& responder = queue_pair.responder;
  const auto flush_one = [&] {
    complete_receive(queue_pair, responder.receive, {.status = IBV_WC_WR_FLUSH_ERR}, true);
  };
  if (responder.receive_taken) {
    responder.receive_taken = false;
    flush_one();
  }
  // A shared queue is not ours to flush.
  while (queue_pair.settings.srq == nullptr && queue_pair.receives.waiting() > 0) {
    responder.receive = queue_pair.receives.take();
    flush_one();
  }
}

// RESET forgets: what was posted, and what was completed but not yet polled.
void Engine::reset(QueuePair& queue_pair) {
  queue_pair.state = IBV_QPS_RESET;
  ++queue_pair.generation;
  publish(queue_pair);
  TimerQueue::stop(queue_pair);
  discard_completions(queue_pair);
  if (queue_pair.responder.receive_taken && queue_pair.settings.srq != nullptr)
    queue_pair.settings.srq->queue.release();
  queue_pair.sends.clear();
  queue_pair.receives.clear();
  queue_pair.requester = {};
  queue_pair.responder = {};
  queue_pair.attributes = {};
  queue_pair.address = {};
  queue_pair.established_told = queue_pair.drain_told = false;
}

void Engine::discard_completions(QueuePair& queue_pair) {
  const auto removed = [](const Completion& completion) { polled(completion); };
  queue_pair.settings.send_cq->discard(&queue_pair, removed);
  if (queue_pair.settings.receive_cq != queue_pair.settings.send_cq) {
    queue_pair.settings.receive_cq->discard(&queue_pair, removed);
  }
}

}  // namespace verbatim::soft
