#include "conformance/local_endpoint.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "conformance/pattern.hpp"

namespace verbatim::conformance {

namespace {

// A call that verbs defines as "nullptr with errno set".
template <class HandleType, class Table, class Pointer>
Made<HandleType> made(Table& table, Pointer* object) {
  if (object == nullptr) return {.object = {}, .error = errno};
  return {.object = table.insert(object), .error = 0};
}

void make_nonblocking(int fd) {
  if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) throw std::runtime_error("fcntl(O_NONBLOCK) failed");
}

void require(int error, const char* call) {
  if (error != 0) throw std::runtime_error(fmt::format("{} failed: {}", call, std::strerror(error)));
}

std::size_t page_rounded(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
}

}  // namespace

device::Context& LocalEndpoint::device() {
  if (!device_) throw std::logic_error("the test used an endpoint whose device is not open");
  return *device_;
}

void LocalEndpoint::open() {
  device_ = open_device_();
  make_nonblocking(device_->handle()->async_fd);
}

int LocalEndpoint::close() {
  if (!device_) return 0;
  int first_error = 0;
  const auto note = [&](int error) {
    if (first_error == 0) first_error = error;
  };
  note(qps_.destroy_all([&](LocalQp& qp) { return device_->destroy_qp(qp.qp); }));
  note(ahs_.destroy_all([&](ibv_ah* ah) { return device_->destroy_ah(ah); }));
  note(mws_.destroy_all([&](ibv_mw* mw) { return device_->dealloc_mw(mw); }));
  note(mrs_.destroy_all([&](ibv_mr* mr) { return device_->dereg_mr(mr); }));
  note(srqs_.destroy_all([&](ibv_srq* srq) { return device_->destroy_srq(srq); }));
  note(cqs_.destroy_all([&](LocalCq& cq) {
    if (cq.unacknowledged != 0) device_->ack_cq_events(cq.cq, cq.unacknowledged);
    return device_->destroy_cq(cq.cq);
  }));
  note(channels_.destroy_all([&](ibv_comp_channel* channel) { return device_->destroy_comp_channel(channel); }));
  note(pds_.destroy_all([&](ibv_pd* pd) { return device_->dealloc_pd(pd); }));
  buffers_.destroy_all([&](LocalMemory& memory) {
    release_memory(memory.memory, memory.kind);
    return 0;
  });
  device_.reset();
  return first_error;
}

ibv_device_attr_ex LocalEndpoint::query_device() {
  ibv_device_attr_ex attributes{};
  require(device().query_device(attributes), "query_device");
  return attributes;
}

ibv_port_attr LocalEndpoint::query_port(std::uint8_t port) {
  ibv_port_attr attributes{};
  require(device().query_port(port, attributes), "query_port");
  return attributes;
}

std::vector<ibv_gid_entry> LocalEndpoint::query_gid_table() {
  std::vector<ibv_gid_entry> entries;
  require(device().query_gid_table(entries), "query_gid_table");
  return entries;
}

QueriedPkey LocalEndpoint::query_pkey(std::uint8_t port, int index) {
  QueriedPkey queried;
  queried.error = device().query_pkey(port, index, queried.pkey);
  return queried;
}

std::vector<device::Counter> LocalEndpoint::counters(std::uint8_t port) {
  return device().counters(port);
}

MadeBuffer LocalEndpoint::allocate(std::size_t bytes, MemoryKind kind) {
  device::Memory memory;
  if (kind == MemoryKind::device) {
    memory = device().allocate(bytes);
  } else {
    memory.bytes = page_rounded(bytes);
    memory.address = mmap(nullptr, memory.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory.address == MAP_FAILED) memory.address = nullptr;
  }
  if (!memory) return {.buffer = {}, .error = errno};
  const auto address = reinterpret_cast<std::uintptr_t>(memory.address);
  return {.buffer = buffers_.insert({memory, kind}), .address = address, .error = 0};
}

void LocalEndpoint::release_memory(const device::Memory& memory, MemoryKind kind) {
  if (kind == MemoryKind::device) {
    device().release(memory);
  } else {
    munmap(memory.address, memory.bytes);
  }
}

void LocalEndpoint::release(Buffer buffer) {
  buffers_.destroy(buffer, [&](LocalMemory& memory) {
    release_memory(memory.memory, memory.kind);
    return 0;
  });
}

std::uint8_t* LocalEndpoint::range(Buffer buffer, std::size_t offset, std::size_t bytes) {
  const device::Memory& memory = buffers_.at(buffer).memory;
  if (offset > memory.bytes || bytes > memory.bytes - offset) throw std::logic_error("the test left its buffer");
  return static_cast<std::uint8_t*>(memory.address) + offset;
}

std::vector<std::uint8_t> LocalEndpoint::read(Buffer buffer, std::size_t offset, std::size_t bytes) {
  const std::uint8_t* first = range(buffer, offset, bytes);
  return {first, first + bytes};
}

void LocalEndpoint::write(Buffer buffer, std::size_t offset, std::vector<std::uint8_t> bytes) {
  std::copy(bytes.begin(), bytes.end(), range(buffer, offset, bytes.size()));
}

void LocalEndpoint::fill(Buffer buffer, std::size_t offset, std::size_t bytes, std::uint32_t seed) {
  std::uint8_t* first = range(buffer, offset, bytes);
  for (std::size_t i = 0; i < bytes; ++i) first[i] = pattern_byte(seed, i);
}

std::optional<std::size_t> LocalEndpoint::first_difference(Buffer buffer, std::size_t offset, std::size_t bytes,
                                                           std::uint32_t seed) {
  const std::uint8_t* first = range(buffer, offset, bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    if (first[i] != pattern_byte(seed, i)) return i;
  }
  return std::nullopt;
}

Made<Pd> LocalEndpoint::alloc_pd() {
  return made<Pd>(pds_, device().alloc_pd());
}

int LocalEndpoint::dealloc_pd(Pd pd) {
  return pds_.destroy(pd, [&](ibv_pd* native) { return device().dealloc_pd(native); });
}

MadeMr LocalEndpoint::reg_mr(Pd pd, Buffer buffer, std::size_t offset, std::size_t bytes, int access) {
  ibv_mr* mr = device().reg_mr(pds_.at(pd), range(buffer, offset, bytes), bytes, access);
  if (mr == nullptr) return {.mr = {}, .error = errno};
  return {.mr = mrs_.insert(mr), .lkey = mr->lkey, .rkey = mr->rkey, .error = 0};
}

int LocalEndpoint::dereg_mr(Mr mr) {
  return mrs_.destroy(mr, [&](ibv_mr* native) { return device().dereg_mr(native); });
}

MadeMw LocalEndpoint::alloc_mw(Pd pd, ibv_mw_type type) {
  ibv_mw* mw = device().alloc_mw(pds_.at(pd), type);
  if (mw == nullptr) return {.mw = {}, .error = errno};
  return {.mw = mws_.insert(mw), .rkey = mw->rkey, .error = 0};
}

int LocalEndpoint::dealloc_mw(Mw mw) {
  return mws_.destroy(mw, [&](ibv_mw* native) { return device().dealloc_mw(native); });
}

std::uint32_t LocalEndpoint::mw_rkey(Mw mw) {
  return mws_.at(mw)->rkey;
}

Made<Ah> LocalEndpoint::create_ah(Pd pd, ibv_ah_attr attributes) {
  return made<Ah>(ahs_, device().create_ah(pds_.at(pd), attributes));
}

Made<Ah> LocalEndpoint::create_ah_from_wc(Pd pd, ibv_wc completion, Buffer grh, std::size_t offset, std::uint8_t port) {
  auto* header = reinterpret_cast<ibv_grh*>(range(grh, offset, sizeof(ibv_grh)));
  return made<Ah>(ahs_, device().create_ah_from_wc(pds_.at(pd), completion, header, port));
}

int LocalEndpoint::destroy_ah(Ah ah) {
  return ahs_.destroy(ah, [&](ibv_ah* native) { return device().destroy_ah(native); });
}

Made<Channel> LocalEndpoint::create_comp_channel() {
  ibv_comp_channel* channel = device().create_comp_channel();
  if (channel == nullptr) return {.object = {}, .error = errno};
  make_nonblocking(channel->fd);
  return {.object = channels_.insert(channel), .error = 0};
}

int LocalEndpoint::destroy_comp_channel(Channel channel) {
  return channels_.destroy(channel, [&](ibv_comp_channel* native) { return device().destroy_comp_channel(native); });
}

Made<Cq> LocalEndpoint::create_cq(CqOptions options) {
  ibv_comp_channel* channel = options.channel ? channels_.at(options.channel) : nullptr;
  auto* context = reinterpret_cast<void*>(options.context);
  LocalCq cq{.cq = nullptr, .extended = nullptr, .wc_flags = options.wc_flags};
  if (options.extended) {
    ibv_cq_init_attr_ex attributes{};
    attributes.cqe = static_cast<std::uint32_t>(options.entries);
    attributes.cq_context = context;
    attributes.channel = channel;
    attributes.wc_flags = options.wc_flags;
    cq.extended = device().create_cq_ex(attributes);
    if (cq.extended != nullptr) cq.cq = ibv_cq_ex_to_cq(cq.extended);
  } else {
    cq.cq = device().create_cq(options.entries, context, channel, 0);
  }
  if (cq.cq == nullptr) return {.object = {}, .error = errno};
  return {.object = cqs_.insert(cq), .error = 0};
}

int LocalEndpoint::resize_cq(Cq cq, int entries) {
  return device().resize_cq(cqs_.at(cq).cq, entries);
}

int LocalEndpoint::cq_entries(Cq cq) {
  return cqs_.at(cq).cq->cqe;
}

int LocalEndpoint::destroy_cq(Cq cq) {
  return cqs_.destroy(cq, [&](LocalCq& native) { return device().destroy_cq(native.cq); });
}

bool LocalEndpoint::channel_readable(Channel channel) {
  pollfd waiting{.fd = channels_.at(channel)->fd, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, 0) == 1;
}

std::optional<CqEvent> LocalEndpoint::get_cq_event(Channel channel) {
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  if (device().get_cq_event(channels_.at(channel), &cq, &context) != 0) return std::nullopt;
  const Cq handle = cqs_.find([&](const LocalCq& candidate) { return candidate.cq == cq; });
  ++cqs_.at(handle).unacknowledged;
  return CqEvent{handle, reinterpret_cast<std::uintptr_t>(context)};
}

void LocalEndpoint::ack_cq_events(Cq cq, unsigned events) {
  LocalCq& native = cqs_.at(cq);
  device().ack_cq_events(native.cq, events);
  native.unacknowledged -= events;
}

std::optional<AsyncEvent> LocalEndpoint::get_async_event() {
  ibv_async_event native{};
  if (device().get_async_event(native) != 0) return std::nullopt;
  AsyncEvent event{.type = native.event_type, .qp = {}, .cq = {}, .srq = {}, .port = 0};
  switch (native.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      event.qp = qps_.find([&](const LocalQp& qp) { return qp.qp == native.element.qp; });
      break;
    case IBV_EVENT_CQ_ERR:
      event.cq = cqs_.find([&](const LocalCq& cq) { return cq.cq == native.element.cq; });
      break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      event.srq = srqs_.find([&](ibv_srq* srq) { return srq == native.element.srq; });
      break;
    default:
      event.port = static_cast<std::uint8_t>(native.element.port_num);
  }
  device().ack_async_event(native);
  return event;
}

Made<Srq> LocalEndpoint::create_srq(SrqOptions options) {
  ibv_srq_init_attr attributes{};
  attributes.attr.max_wr = options.max_wr;
  attributes.attr.max_sge = options.max_sge;
  return made<Srq>(srqs_, device().create_srq(pds_.at(options.pd), attributes));
}

int LocalEndpoint::modify_srq(Srq srq, ibv_srq_attr attributes, int mask) {
  return device().modify_srq(srqs_.at(srq), attributes, mask);
}

QueriedSrq LocalEndpoint::query_srq(Srq srq) {
  QueriedSrq queried;
  queried.error = device().query_srq(srqs_.at(srq), queried.attributes);
  return queried;
}

int LocalEndpoint::destroy_srq(Srq srq) {
  return srqs_.destroy(srq, [&](ibv_srq* native) { return device().destroy_srq(native); });
}

MadeQp LocalEndpoint::create_qp(QpOptions options) {
  LocalQp made;
  ibv_qp_init_attr_ex attributes{};
  attributes.send_cq = cqs_.at(options.send_cq).cq;
  attributes.recv_cq = cqs_.at(options.recv_cq).cq;
  attributes.srq = options.srq ? srqs_.at(options.srq) : nullptr;
  attributes.cap = options.cap;
  attributes.qp_type = options.type;
  attributes.sq_sig_all = options.signal_all ? 1 : 0;
  if (options.send_operations != 0) {
    attributes.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attributes.pd = pds_.at(options.pd);
    attributes.send_ops_flags = options.send_operations;
    made.qp = device().create_qp_ex(attributes);
    if (made.qp != nullptr) made.extended = device().qp_to_qp_ex(made.qp);
  } else {
    // ibv_qp_init_attr_ex starts with the members of ibv_qp_init_attr.
    made.qp = device().create_qp(pds_.at(options.pd), reinterpret_cast<ibv_qp_init_attr&>(attributes));
  }
  if (made.qp == nullptr) return {.qp = {}, .error = errno};
  return {.qp = qps_.insert(made),
          .number = made.qp->qp_num,
          .cap = attributes.cap,
          .extended = made.extended != nullptr,
          .error = 0};
}

int LocalEndpoint::modify_qp(Qp qp, ibv_qp_attr attributes, int mask) {
  return device().modify_qp(qps_.at(qp).qp, attributes, mask);
}

QueriedQp LocalEndpoint::query_qp(Qp qp, int mask) {
  QueriedQp queried;
  ibv_qp_init_attr init{};
  queried.error = device().query_qp(qps_.at(qp).qp, queried.attributes, mask, init);
  queried.cap = init.cap;
  queried.type = init.qp_type;
  queried.signal_all = init.sq_sig_all != 0;
  return queried;
}

bool LocalEndpoint::data_in_order(Qp qp, ibv_wr_opcode opcode) {
  return device().data_in_order(qps_.at(qp).qp, opcode);
}

int LocalEndpoint::destroy_qp(Qp qp) {
  return qps_.destroy(qp, [&](LocalQp& native) { return device().destroy_qp(native.qp); });
}

}  // namespace verbatim::conformance
