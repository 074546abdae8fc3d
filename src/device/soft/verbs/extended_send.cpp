// Posting through ibv_wr_*: requests are staged between start and complete, and posted all together or not at all.
#include <cerrno>
#include <cstring>

#include "device/soft/verbs/soft_context.hpp"

namespace verbatim::soft {

StagedRequests::StagedRequests(const ibv_qp_cap& cap)
    : requests(cap.max_send_wr),
      pieces(std::size_t{cap.max_send_wr} * cap.max_send_sge),
      inline_data(std::size_t{cap.max_send_wr} * cap.max_inline_data),
      max_pieces(cap.max_send_sge),
      max_inline(cap.max_inline_data) {}

namespace {

StagedRequests& staged_of(ibv_qp_ex* qp) {
  return *SoftQueuePair::of(qp).staged;
}

// The request that the setters since the last builder speak of.
ibv_send_wr& last(StagedRequests& staged) {
  return staged.requests[staged.count - 1];
}
ibv_sge* piece_room(StagedRequests& staged) {
  return &staged.pieces[std::size_t{staged.count - 1} * staged.max_pieces];
}

// A new request; nullptr when there is no room, which wr_complete reports.
ibv_send_wr* stage(ibv_qp_ex* qp, ibv_wr_opcode opcode) {
  StagedRequests& staged = staged_of(qp);
  if (staged.problem != 0) return nullptr;
  if (staged.count == staged.requests.size()) {
    staged.problem = ENOMEM;
    return nullptr;
  }
  ibv_send_wr& request = staged.requests[staged.count++];
  request = {};
  request.wr_id = qp->wr_id;
  request.opcode = opcode;
  request.send_flags = qp->wr_flags;
  return &request;
}

void stage_rdma(ibv_qp_ex* qp, ibv_wr_opcode opcode, std::uint32_t rkey, std::uint64_t remote_address,
                __be32 immediate) {
  if (ibv_send_wr* request = stage(qp, opcode)) {
    request->wr.rdma = {remote_address, rkey};
    request->imm_data = immediate;
  }
}

void set_sge_list(ibv_qp_ex* qp, std::size_t count, const ibv_sge* pieces) {
  StagedRequests& staged = staged_of(qp);
  if (staged.problem != 0) return;
  if (count > staged.max_pieces) {
    staged.problem = EINVAL;
    return;
  }
  ibv_sge* room = piece_room(staged);
  std::copy_n(pieces, count, room);
  last(staged).sg_list = room;
  last(staged).num_sge = static_cast<int>(count);
}

void set_inline_data_list(ibv_qp_ex* qp, std::size_t count, const ibv_data_buf* buffers) {
  StagedRequests& staged = staged_of(qp);
  if (staged.problem != 0) return;
  std::byte* room = staged.inline_data.data() + std::size_t{staged.count - 1} * staged.max_inline;
  std::size_t length = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (buffers[i].length > staged.max_inline - length) {
      staged.problem = EINVAL;
      return;
    }
    if (buffers[i].length > 0) std::memcpy(room + length, buffers[i].addr, buffers[i].length);
    length += buffers[i].length;
  }
  *piece_room(staged) = {reinterpret_cast<std::uint64_t>(room), static_cast<std::uint32_t>(length), 0};
  last(staged).sg_list = piece_room(staged);
  last(staged).num_sge = 1;
  last(staged).send_flags |= IBV_SEND_INLINE;
}

void start(ibv_qp_ex* qp) {
  SoftQueuePair& own = SoftQueuePair::of(qp);
  StagedRequests& staged = *own.staged;
  // A thread that a forked child does not have may be in between start and complete there.
  const bool forked = own.owner->forked();
  if (!forked) staged.lock.lock();
  staged.count = 0;
  staged.problem = forked ? EPERM : 0;
}

int complete(ibv_qp_ex* qp) {
  SoftQueuePair& own = SoftQueuePair::of(qp);
  StagedRequests& staged = *own.staged;
  int problem = own.owner->forked() ? EPERM : staged.problem;
  if (problem == 0 && staged.count > 0) {
    for (std::uint32_t i = 0; i + 1 < staged.count; ++i) staged.requests[i].next = &staged.requests[i + 1];
    Engine& engine = own.owner->engine();
    const EngineEntry entry(own.owner->lock());
    problem = engine.post_all(own.engine_part, staged.requests.data(), staged.count, address_of);
    if (engine.timers.brought_forward()) [[unlikely]]
      own.owner->edge().due_by(engine.next_deadline());
  }
  staged.lock.unlock();
  return problem;
}

void abort(ibv_qp_ex* qp) {
  staged_of(qp).lock.unlock();
}

}  // namespace

void fill_extended_send(SoftQueuePair& queue_pair) {
  ibv_qp_ex& qp = queue_pair;
  qp.wr_start = start;
  qp.wr_complete = complete;
  qp.wr_abort = abort;
  qp.wr_send = [](ibv_qp_ex* to) { (void)stage(to, IBV_WR_SEND); };
  qp.wr_send_imm = [](ibv_qp_ex* to, __be32 immediate) {
    if (ibv_send_wr* request = stage(to, IBV_WR_SEND_WITH_IMM)) request->imm_data = immediate;
  };
  qp.wr_rdma_write = [](ibv_qp_ex* to, std::uint32_t rkey, std::uint64_t address) {
    stage_rdma(to, IBV_WR_RDMA_WRITE, rkey, address, 0);
  };
  qp.wr_rdma_write_imm = [](ibv_qp_ex* to, std::uint32_t rkey, std::uint64_t address, __be32 immediate) {
    stage_rdma(to, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, address, immediate);
  };
  qp.wr_rdma_read = [](ibv_qp_ex* to, std::uint32_t rkey, std::uint64_t address) {
    stage_rdma(to, IBV_WR_RDMA_READ, rkey, address, 0);
  };
  qp.wr_atomic_cmp_swp = [](ibv_qp_ex* to, std::uint32_t rkey, std::uint64_t address, std::uint64_t compare,
                            std::uint64_t swap) {
    if (ibv_send_wr* request = stage(to, IBV_WR_ATOMIC_CMP_AND_SWP))
      request->wr.atomic = {address, compare, swap, rkey};
  };
  qp.wr_atomic_fetch_add = [](ibv_qp_ex* to, std::uint32_t rkey, std::uint64_t address, std::uint64_t add) {
    if (ibv_send_wr* request = stage(to, IBV_WR_ATOMIC_FETCH_AND_ADD)) request->wr.atomic = {address, add, 0, rkey};
  };
  qp.wr_set_ud_addr = [](ibv_qp_ex* to, ibv_ah* handle, std::uint32_t qpn, std::uint32_t qkey) {
    StagedRequests& staged = staged_of(to);
    if (staged.problem == 0) last(staged).wr.ud = {handle, qpn, qkey};
  };
  qp.wr_set_sge_list = set_sge_list;
  qp.wr_set_sge = [](ibv_qp_ex* to, std::uint32_t lkey, std::uint64_t address, std::uint32_t length) {
    const ibv_sge piece{address, length, lkey};
    set_sge_list(to, 1, &piece);
  };
  qp.wr_set_inline_data_list = set_inline_data_list;
  qp.wr_set_inline_data = [](ibv_qp_ex* to, void* address, std::size_t length) {
    const ibv_data_buf buffer{address, length};
    set_inline_data_list(to, 1, &buffer);
  };
}

}  // namespace verbatim::soft
