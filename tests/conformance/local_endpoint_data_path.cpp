// Posting and polling: requests become verbs' own structures, completions are read field by field.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <stdexcept>

#include "conformance/local_endpoint.hpp"

namespace verbatim::conformance {

namespace {

// The index of the request that bad_wr points to.
template <class WorkRequest>
Posted posted(int error, const std::vector<WorkRequest>& list, const WorkRequest* bad) {
  return {.error = error, .bad_index = bad == nullptr ? Posted::no_bad_request : static_cast<int>(bad - list.data())};
}

template <class WorkRequest>
void link(std::vector<WorkRequest>& list) {
  for (std::size_t i = 0; i + 1 < list.size(); ++i) list[i].next = &list[i + 1];
}

std::vector<ibv_recv_wr> translate_receives(std::vector<ReceiveRequest>& requests) {
  std::vector<ibv_recv_wr> list(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    list[i].wr_id = requests[i].id;
    list[i].sg_list = requests[i].pieces.empty() ? nullptr : requests[i].pieces.data();
    list[i].num_sge = static_cast<int>(requests[i].pieces.size());
  }
  link(list);
  return list;
}

// Reads what the CQ was asked for (IBV_WC_EX_*); reading anything else is not allowed.
ibv_wc read_completion(ibv_cq_ex* cq, std::uint64_t wc_flags) {
  ibv_wc wc{};
  wc.wr_id = cq->wr_id;
  wc.status = cq->status;
  wc.vendor_err = ibv_wc_read_vendor_err(cq);
  if (wc.status != IBV_WC_SUCCESS) {
    // Only these are defined for a failed request (ibv_poll_cq(3)).
    if ((wc_flags & IBV_WC_EX_WITH_QP_NUM) != 0) wc.qp_num = ibv_wc_read_qp_num(cq);
    return wc;
  }
  wc.opcode = ibv_wc_read_opcode(cq);
  wc.wc_flags = ibv_wc_read_wc_flags(cq);
  if ((wc_flags & IBV_WC_EX_WITH_BYTE_LEN) != 0) wc.byte_len = ibv_wc_read_byte_len(cq);
  if ((wc_flags & IBV_WC_EX_WITH_IMM) != 0 && (wc.wc_flags & IBV_WC_WITH_IMM) != 0)
    wc.imm_data = ibv_wc_read_imm_data(cq);
  if ((wc_flags & IBV_WC_EX_WITH_QP_NUM) != 0) wc.qp_num = ibv_wc_read_qp_num(cq);
  if ((wc_flags & IBV_WC_EX_WITH_SRC_QP) != 0) wc.src_qp = ibv_wc_read_src_qp(cq);
  if ((wc_flags & IBV_WC_EX_WITH_SLID) != 0) wc.slid = static_cast<std::uint16_t>(ibv_wc_read_slid(cq));
  if ((wc_flags & IBV_WC_EX_WITH_SL) != 0) wc.sl = ibv_wc_read_sl(cq);
  if ((wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS) != 0) wc.dlid_path_bits = ibv_wc_read_dlid_path_bits(cq);
  return wc;
}

}  // namespace

std::vector<ibv_send_wr> LocalEndpoint::translate(std::vector<SendRequest>& requests) {
  std::vector<ibv_send_wr> list(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    SendRequest& request = requests[i];
    ibv_send_wr& wr = list[i];
    wr.wr_id = request.id;
    wr.sg_list = request.pieces.empty() ? nullptr : request.pieces.data();
    wr.num_sge = static_cast<int>(request.pieces.size());
    wr.opcode = request.opcode;
    wr.send_flags = request.flags;
    wr.imm_data = htonl(request.immediate);
    switch (request.opcode) {
      case IBV_WR_RDMA_WRITE:
      case IBV_WR_RDMA_WRITE_WITH_IMM:
      case IBV_WR_RDMA_READ:
        wr.wr.rdma.remote_addr = request.remote_address;
        wr.wr.rdma.rkey = request.rkey;
        break;
      case IBV_WR_ATOMIC_CMP_AND_SWP:
      case IBV_WR_ATOMIC_FETCH_AND_ADD:
        wr.wr.atomic.remote_addr = request.remote_address;
        wr.wr.atomic.rkey = request.rkey;
        wr.wr.atomic.compare_add = request.compare_add;
        wr.wr.atomic.swap = request.swap;
        break;
      case IBV_WR_LOCAL_INV:
      case IBV_WR_SEND_WITH_INV:
        wr.invalidate_rkey = request.invalidate_rkey;
        break;
      case IBV_WR_BIND_MW:
        wr.bind_mw.mw = mws_.at(request.mw);
        wr.bind_mw.rkey = request.rkey;
        wr.bind_mw.bind_info.mr = mrs_.at(request.bind_mr);
        wr.bind_mw.bind_info.addr = request.bind_address;
        wr.bind_mw.bind_info.length = request.bind_length;
        wr.bind_mw.bind_info.mw_access_flags = request.bind_access;
        break;
      default:
        if (request.ah) {
          wr.wr.ud.ah = ahs_.at(request.ah);
          wr.wr.ud.remote_qpn = request.remote_qpn;
          wr.wr.ud.remote_qkey = request.remote_qkey;
        }
    }
  }
  link(list);
  return list;
}

Posted LocalEndpoint::post_send(Qp qp, std::vector<SendRequest> requests) {
  std::vector<ibv_send_wr> list = translate(requests);
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(qps_.at(qp).qp, list.data(), &bad);
  return posted(error, list, bad);
}

Posted LocalEndpoint::post_recv(Qp qp, std::vector<ReceiveRequest> requests) {
  std::vector<ibv_recv_wr> list = translate_receives(requests);
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_recv(qps_.at(qp).qp, list.data(), &bad);
  return posted(error, list, bad);
}

Posted LocalEndpoint::post_srq_recv(Srq srq, std::vector<ReceiveRequest> requests) {
  std::vector<ibv_recv_wr> list = translate_receives(requests);
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_srq_recv(srqs_.at(srq), list.data(), &bad);
  return posted(error, list, bad);
}

void LocalEndpoint::set_payload(ibv_qp_ex* qp, const SendRequest& request) {
  const auto& pieces = request.pieces;
  if ((request.flags & IBV_SEND_INLINE) != 0) {
    std::vector<ibv_data_buf> data;
    for (const ibv_sge& piece : pieces) data.push_back({reinterpret_cast<void*>(piece.addr), piece.length});
    if (data.size() == 1) {
      ibv_wr_set_inline_data(qp, data[0].addr, data[0].length);
    } else {
      ibv_wr_set_inline_data_list(qp, data.size(), data.data());
    }
  } else if (pieces.size() == 1) {
    ibv_wr_set_sge(qp, pieces[0].lkey, pieces[0].addr, pieces[0].length);
  } else {
    ibv_wr_set_sge_list(qp, pieces.size(), pieces.data());
  }
}

void LocalEndpoint::build_extended(ibv_qp_ex* qp, const SendRequest& request) {
  qp->wr_id = request.id;
  qp->wr_flags = request.flags & ~static_cast<unsigned>(IBV_SEND_INLINE);  // a builder of its own says inline
  switch (request.opcode) {
    case IBV_WR_SEND:
      ibv_wr_send(qp);
      break;
    case IBV_WR_SEND_WITH_IMM:
      ibv_wr_send_imm(qp, htonl(request.immediate));
      break;
    case IBV_WR_SEND_WITH_INV:
      ibv_wr_send_inv(qp, request.invalidate_rkey);
      break;
    case IBV_WR_RDMA_WRITE:
      ibv_wr_rdma_write(qp, request.rkey, request.remote_address);
      break;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      ibv_wr_rdma_write_imm(qp, request.rkey, request.remote_address, htonl(request.immediate));
      break;
    case IBV_WR_RDMA_READ:
      ibv_wr_rdma_read(qp, request.rkey, request.remote_address);
      break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      ibv_wr_atomic_cmp_swp(qp, request.rkey, request.remote_address, request.compare_add, request.swap);
      break;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      ibv_wr_atomic_fetch_add(qp, request.rkey, request.remote_address, request.compare_add);
      break;
    default:
      throw std::logic_error(fmt::format("no test builds opcode {} by ibv_wr_*", static_cast<int>(request.opcode)));
  }
  if (request.ah) ibv_wr_set_ud_addr(qp, ahs_.at(request.ah), request.remote_qpn, request.remote_qkey);
  set_payload(qp, request);
}

int LocalEndpoint::post_send_extended(Qp qp, std::vector<SendRequest> requests) {
  ibv_qp_ex* extended = qps_.at(qp).extended;
  ibv_wr_start(extended);
  for (const SendRequest& request : requests) build_extended(extended, request);
  return ibv_wr_complete(extended);
}

void LocalEndpoint::abort_send_extended(Qp qp, std::vector<SendRequest> requests) {
  ibv_qp_ex* extended = qps_.at(qp).extended;
  ibv_wr_start(extended);
  for (const SendRequest& request : requests) build_extended(extended, request);
  ibv_wr_abort(extended);
}

int LocalEndpoint::bind_mw(Qp qp, Mw mw, BindRequest request) {
  ibv_mw_bind bind{};
  bind.wr_id = request.id;
  bind.send_flags = request.flags;
  bind.bind_info = {mrs_.at(request.mr), request.address, request.length, request.access};
  return ibv_bind_mw(qps_.at(qp).qp, mws_.at(mw), &bind);
}

int LocalEndpoint::req_notify_cq(Cq cq, bool solicited_only) {
  return ibv_req_notify_cq(cqs_.at(cq).cq, solicited_only ? 1 : 0);
}

Polled LocalEndpoint::poll_cq(Cq cq, int at_most) {
  Polled polled;
  polled.completions.resize(static_cast<std::size_t>(at_most));
  polled.result = ibv_poll_cq(cqs_.at(cq).cq, at_most, polled.completions.data());
  polled.completions.resize(polled.result > 0 ? static_cast<std::size_t>(polled.result) : 0);
  return polled;
}

Polled LocalEndpoint::poll_cq_extended(Cq cq, int at_most) {
  const LocalCq& native = cqs_.at(cq);
  Polled polled;
  ibv_poll_cq_attr attributes{};
  polled.result = ibv_start_poll(native.extended, &attributes);
  if (polled.result != 0) return polled;  // then there is nothing to end
  while (true) {
    polled.completions.push_back(read_completion(native.extended, native.wc_flags));
    if (polled.completions.size() == static_cast<std::size_t>(at_most)) break;
    polled.result = ibv_next_poll(native.extended);
    if (polled.result != 0) break;
  }
  ibv_end_poll(native.extended);
  return polled;
}

}  // namespace verbatim::conformance
