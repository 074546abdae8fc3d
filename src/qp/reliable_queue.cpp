#include "qp/reliable_queue.hpp"

#include <utility>

namespace verbatim::qp {

ReceiveChain::ReceiveChain() {
  for (std::size_t i = 0; i < max_receive_batch; ++i) {
    requests_[i].next = i + 1 < max_receive_batch ? &requests_[i + 1] : nullptr;
    requests_[i].sg_list = &pieces_[i];
    requests_[i].num_sge = 1;
  }
}

ReliableQueue::ReliableQueue(device::Context& context, QueuePair queue_pair, const Sizes& sizes, ReceiveChain& chain)
    : queue_pair_(std::move(queue_pair)),
      slots_(sizes.send_slots, sizes.control_slots, sizes.signal_interval),
      chain_(chain),
      sizes_(sizes),
      context_(context) {
  request_.sg_list = pieces_.data();
}

// An RDMA write of nothing needs no valid key, and no receive at the peer (specification, volume 1, 9.7.4.1.3).
int ReliableQueue::post_markers(std::uint32_t round) {
  ibv_send_wr send{};
  send.wr_id = WorkId{WorkKind::drain, send_marker, round}.encode();
  send.opcode = IBV_WR_RDMA_WRITE;
  send.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad_send = nullptr;
  if (const int problem = ibv_post_send(queue_pair_.handle(), &send, &bad_send)) return problem;
  ibv_recv_wr receive{};
  receive.wr_id = WorkId{WorkKind::drain, receive_marker, round}.encode();
  ibv_recv_wr* bad_receive = nullptr;
  return ibv_post_recv(queue_pair_.handle(), &receive, &bad_receive);
}

}  // namespace verbatim::qp
