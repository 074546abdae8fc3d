// The data path: what verbs' inline functions call.
#include <cerrno>

#include "device/soft/verbs/soft_context.hpp"

namespace verbatim::soft {
namespace {

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  SoftQueuePair& own = SoftQueuePair::of(qp);
  Engine& engine = own.owner->engine();
  const EngineEntry entry(own.owner->lock());
  const int problem = engine.post_send(own.engine_part, wr, bad, address_of);
  if (engine.timers.brought_forward()) [[unlikely]]
    own.owner->edge().due_by(engine.next_deadline());
  return problem;
}

int post_receive(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  SoftQueuePair& own = SoftQueuePair::of(qp);
  const EngineEntry entry(own.owner->lock());
  return own.owner->engine().post_receive(own.engine_part, wr, bad);
}

int post_shared_receive(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  SoftSharedReceiveQueue& own = SoftSharedReceiveQueue::of(srq);
  const EngineEntry entry(own.owner->lock());
  return own.owner->engine().post_receive(own.shared, wr, bad);
}

int poll_cq(ibv_cq* cq, int count, ibv_wc* completions) {
  SoftQueue& own = SoftQueue::of(cq);
  Engine& engine = own.owner->engine();
  const EngineEntry entry(own.owner->lock());
  if (static_cast<int>(own.queue.size()) < count) engine.progress(&own.queue, static_cast<std::uint32_t>(count));
  return engine.poll(own.queue, count, completions);
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  SoftQueue& own = SoftQueue::of(cq);
  {
    const EngineEntry entry(own.owner->lock());
    own.owner->engine().arm(own.queue, solicited_only != 0 ? Arming::solicited_only : Arming::any);
  }
  own.owner->edge().application_sleeps();
  return 0;
}

}  // namespace

void fill_data_path(ibv_context_ops& ops) {
  ops.post_send = post_send;
  ops.post_recv = post_receive;
  ops.post_srq_recv = post_shared_receive;
  ops.poll_cq = poll_cq;
  ops.req_notify_cq = req_notify_cq;
}

// Other functions rather than a question in each: the opener's data path pays nothing.
void refuse_data_path(ibv_context_ops& ops) {
  const auto refuse_receive = [](auto*, ibv_recv_wr* wr, ibv_recv_wr** bad) {
    *bad = wr;
    return EPERM;
  };
  ops.post_send = [](ibv_qp*, ibv_send_wr* wr, ibv_send_wr** bad) {
    *bad = wr;
    return EPERM;
  };
  ops.post_recv = refuse_receive;
  ops.post_srq_recv = refuse_receive;
  ops.poll_cq = [](ibv_cq*, int, ibv_wc*) {
    errno = EPERM;
    return -1;
  };
  ops.req_notify_cq = [](ibv_cq*, int) { return EPERM; };
}

}  // namespace verbatim::soft
