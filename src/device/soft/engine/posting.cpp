// Taking work requests: what a post refuses at once, and how a request is noted.
#include <cerrno>

#include "device/soft/engine/copy_small.hpp"
#include "device/soft/engine/datagram.hpp"
#include "device/soft/engine/engine.hpp"
#include "device/soft/engine/pieces.hpp"
#include "device/soft/engine/requester.hpp"

namespace verbatim::soft {
namespace {

bool is_carried_by(ibv_wr_opcode opcode, ibv_qp_type type) {
  switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
      return true;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return type != IBV_QPT_UD;
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return type == IBV_QPT_RC;
    default:
      return false;
  }
}

std::uint32_t sge_bytes(const ibv_sge& sge, const FaultPlan& faults) {
  return sge.length == 0 && faults.zero_length_is_2gib ? 1U << 31 : sge.length;
}

}  // namespace

// 0 or the errno value that the post ends with; `length` is set to the bytes of the message.
int Engine::refuse_send(const QueuePair& queue_pair, const ibv_send_wr& wr, std::uint64_t& length) const {
  if (queue_pair.state == IBV_QPS_RESET || queue_pair.state == IBV_QPS_INIT || queue_pair.state == IBV_QPS_RTR)
    return EINVAL;
  if (queue_pair.sends.full()) return ENOMEM;
  if (!is_carried_by(wr.opcode, queue_pair.settings.type)) return EINVAL;
  if (wr.num_sge < 0 || static_cast<std::uint32_t>(wr.num_sge) > queue_pair.settings.cap.max_send_sge) return EINVAL;
  if (queue_pair.settings.type == IBV_QPT_UD && wr.wr.ud.ah == nullptr) return EINVAL;
  length = 0;
  for (int i = 0; i < wr.num_sge; ++i) length += sge_bytes(wr.sg_list[i], faults);
  if (length > UINT32_MAX) return EINVAL;
  const bool is_atomic = wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  if (is_atomic && length != sizeof(std::uint64_t)) return EINVAL;
  if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
    if (length > queue_pair.settings.cap.max_inline_data) return EINVAL;
    if (wr.opcode == IBV_WR_RDMA_READ || is_atomic) return EINVAL;
  }
  return 0;
}

void Engine::enqueue(QueuePair& queue_pair, const ibv_send_wr& wr, std::uint32_t length) {
  SendQueue& sends = queue_pair.sends;
  const std::uint32_t position = sends.tail();
  SendRequest& request = sends.at(position);
  request.wr_id = wr.wr_id;
  request.rkey = wr.wr.rdma.rkey;
  request.remote_address = wr.wr.rdma.remote_addr;
  request.immediate = wr.imm_data;
  request.length = length;
  request.flags = wr.send_flags;
  request.packets = 0;
  request.received = 0;
  request.opcode = wr.opcode;
  request.failed = IBV_WC_SUCCESS;
  request.placed = false;
  request.answered = false;
  if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    request.remote_address = wr.wr.atomic.remote_addr;
    request.rkey = wr.wr.atomic.rkey;
    request.compare_or_add = wr.wr.atomic.compare_add;
    request.swap = wr.wr.atomic.swap;
  }
  const bool is_inline = (wr.send_flags & IBV_SEND_INLINE) != 0;
  Piece* pieces = sends.piece_room(position);
  request.piece_count = static_cast<std::uint32_t>(wr.num_sge);
  for (int i = 0; i < wr.num_sge; ++i) {
    const ibv_sge& sge = wr.sg_list[i];
    pieces[i] = {reinterpret_cast<std::byte*>(sge.addr), is_inline ? sge.length : sge_bytes(sge, faults),
                 is_inline ? LKey{} : LKey{sge.lkey}};
  }
  if (queue_pair.settings.type == IBV_QPT_UD) {
    sends.target(position).qpn = wr.wr.ud.remote_qpn;
    // The top bit asks for the queue pair's own Q_Key (specification, volume 1, 10.2.5).
    sends.target(position).qkey = (wr.wr.ud.remote_qkey >> 31) != 0 ? queue_pair.attributes.qkey : wr.wr.ud.remote_qkey;
  }
  sends.posted();
}

// Inline data is the caller's again when the post returns: what of it has not left for good by then is copied.
void Engine::keep_inline_data(SendQueue& sends, std::uint32_t posted_from) {
  const bool some_retired = static_cast<std::int32_t>(sends.head() - posted_from) > 0;
  std::uint32_t at = some_retired ? sends.head() : posted_from;
  for (; static_cast<std::int32_t>(sends.tail() - at) > 0; ++at) {
    SendRequest& request = sends.at(at);
    if ((request.flags & IBV_SEND_INLINE) == 0 || request.piece_count == 0) continue;
    std::byte* const room = sends.inline_room(at);
    std::byte* to = room;
    for (const Piece& piece : sends.pieces(at)) {
      copy_small(to, piece.address, piece.length);
      to += piece.length;
    }
    *sends.piece_room(at) = {room, request.length, LKey{}};
    request.piece_count = 1;
  }
}

// Checks one request and notes it. 0 or an errno value.
int Engine::take_send(QueuePair& queue_pair, const ibv_send_wr& wr, AddressOf address_of) {
  std::uint64_t length = 0;
  if (const int problem = refuse_send(queue_pair, wr, length); problem != 0) {
    ++counters.refused_posts;
    return problem;
  }
  if (queue_pair.settings.type == IBV_QPT_UD) {
    queue_pair.sends.target(queue_pair.sends.tail()).address = address_of(*wr.wr.ud.ah);
  }
  enqueue(queue_pair, wr, static_cast<std::uint32_t>(length));
  return 0;
}

int Engine::post_send(QueuePair& queue_pair, ibv_send_wr* wr, ibv_send_wr** bad, AddressOf address_of) {
  int problem = 0;
  const std::uint32_t before = queue_pair.sends.tail();
  for (; wr != nullptr; wr = wr->next) {
    problem = take_send(queue_pair, *wr, address_of);
    if (problem == 0) continue;
    *bad = wr;
    break;
  }
  send_posted(queue_pair);
  keep_inline_data(queue_pair.sends, before);
  return problem;
}

int Engine::post_all(QueuePair& queue_pair, const ibv_send_wr* requests, std::uint32_t count, AddressOf address_of) {
  const std::uint32_t before = queue_pair.sends.tail();
  for (std::uint32_t i = 0; i < count; ++i) {
    if (const int problem = take_send(queue_pair, requests[i], address_of); problem != 0) {
      queue_pair.sends.take_back_to(before);
      return problem;
    }
  }
  send_posted(queue_pair);
  keep_inline_data(queue_pair.sends, before);
  return 0;
}

void Engine::send_posted(QueuePair& queue_pair) {
  if (queue_pair.state == IBV_QPS_ERR || queue_pair.state == IBV_QPS_SQE) {
    flush(queue_pair);
  } else if (queue_pair.settings.type == IBV_QPT_UD) {
    datagram::transmit(*this, queue_pair);
  } else {
    requester::transmit(*this, queue_pair);
  }
}

int Engine::post_receive(QueuePair& queue_pair, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  int problem = queue_pair.state == IBV_QPS_RESET || queue_pair.settings.srq != nullptr ? EINVAL : 0;
  if (problem == 0) {
    problem = post_to(queue_pair.receives, wr, bad);
  } else {
    *bad = wr;
    ++counters.refused_posts;
  }
  if (queue_pair.state == IBV_QPS_ERR) flush(queue_pair);
  return problem;
}

int Engine::post_receive(SharedReceiveQueue& srq, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  return post_to(srq.queue, wr, bad);
}

int Engine::post_to(ReceiveQueue& queue, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  for (; wr != nullptr; wr = wr->next) {
    const int problem = queue.full()                                                                      ? ENOMEM
                        : wr->num_sge < 0 || static_cast<std::uint32_t>(wr->num_sge) > queue.max_pieces() ? EINVAL
                                                                                                          : 0;
    if (problem != 0) {
      *bad = wr;
      ++counters.refused_posts;
      return problem;
    }
    queue.post(*wr, faults.zero_length_is_2gib);
  }
  return 0;
}

}  // namespace verbatim::soft
