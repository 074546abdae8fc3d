// Polling through ibv_cq_ex: one completion at a time, fields read on demand.
#include <cerrno>

#include "device/soft/verbs/soft_context.hpp"

namespace verbatim::soft {
namespace {

SoftQueue& of(ibv_cq_ex* cq) {
  return *static_cast<SoftQueue*>(cq);
}

// The lock is held for each step and not between start and end: an application posts receives in between.
int take(SoftQueue& own) {
  if (own.queue.size() == 0) return ENOENT;
  own.current = own.queue.front();
  own.queue.pop();
  Engine::polled(own.current);
  own.status = static_cast<ibv_wc_status>(own.current.status);
  own.wr_id = own.current.wr_id;
  return 0;
}

int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attributes) {
  if (attributes->comp_mask != 0) return EINVAL;
  SoftQueue& own = of(cq);
  if (own.owner->forked()) [[unlikely]]
    return EPERM;
  const EngineEntry entry(own.owner->lock());
  if (own.queue.size() == 0) own.owner->engine().progress(&own.queue, 1);
  return take(own);
}

int next_poll(ibv_cq_ex* cq) {
  SoftQueue& own = of(cq);
  const EngineEntry entry(own.owner->lock());
  return take(own);
}

void end_poll(ibv_cq_ex*) {}

}  // namespace

void fill_extended_poll(SoftQueue& cq) {
  cq.start_poll = start_poll;
  cq.next_poll = next_poll;
  cq.end_poll = end_poll;
  cq.read_opcode = [](ibv_cq_ex* from) { return static_cast<ibv_wc_opcode>(of(from).current.opcode); };
  cq.read_vendor_err = [](ibv_cq_ex*) { return std::uint32_t{0}; };
  cq.read_byte_len = [](ibv_cq_ex* from) { return of(from).current.byte_len; };
  cq.read_imm_data = [](ibv_cq_ex* from) { return __be32{of(from).current.immediate}; };
  cq.read_qp_num = [](ibv_cq_ex* from) { return of(from).current.qpn.value; };
  cq.read_src_qp = [](ibv_cq_ex* from) { return of(from).current.source_qpn.value; };
  cq.read_wc_flags = [](ibv_cq_ex* from) { return unsigned{of(from).current.flags}; };
  cq.read_slid = [](ibv_cq_ex*) { return std::uint32_t{0}; };
  cq.read_sl = [](ibv_cq_ex* from) { return of(from).current.service_level; };
  cq.read_dlid_path_bits = [](ibv_cq_ex*) { return std::uint8_t{0}; };
}

}  // namespace verbatim::soft
