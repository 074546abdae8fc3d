// What the calls of an Endpoint take and give: handles instead of pointers, and values that survive a trip to another
// process. verbs' own structures are used wherever they hold no pointer.
#pragma once

#include <infiniband/verbs.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace verbatim::conformance {

// Names one object of one Endpoint; `none` is no object. Never used again after the object was destroyed.
template <class Kind>
struct Handle {
  static constexpr std::int32_t none = -1;
  std::int32_t value = none;
  explicit operator bool() const { return value != none; }
  friend auto operator<=>(Handle, Handle) = default;
};

using Buffer = Handle<struct BufferKind>;  // memory that belongs to the endpoint, registered or not
using Pd = Handle<struct PdKind>;
using Mr = Handle<struct MrKind>;
using Mw = Handle<struct MwKind>;
using Ah = Handle<struct AhKind>;
using Channel = Handle<struct ChannelKind>;
using Cq = Handle<struct CqKind>;
using Srq = Handle<struct SrqKind>;
using Qp = Handle<struct QpKind>;

// The outcome of a call that makes something: either a handle, or errno and no handle.
template <class Object>
struct Made {
  Object object;
  int error = 0;
};

enum class MemoryKind : std::uint8_t {
  anonymous,  // mmap, as any program has it
  device,     // device::Context::allocate
};

struct MadeBuffer {
  Buffer buffer;
  std::uint64_t address = 0;
  int error = 0;
};

struct MadeMr {
  Mr mr;
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;
  int error = 0;
};

struct MadeMw {
  Mw mw;
  std::uint32_t rkey = 0;
  int error = 0;
};

struct CqOptions {
  int entries = 0;
  std::uint64_t context = 0;  // comes back with each of the CQ's events
  Channel channel;
  bool extended = false;       // ibv_create_cq_ex
  std::uint64_t wc_flags = 0;  // of an extended one: which fields it can read
};

struct SrqOptions {
  Pd pd;
  std::uint32_t max_wr = 0;
  std::uint32_t max_sge = 1;
};

struct QpOptions {
  Pd pd;
  Cq send_cq;
  Cq recv_cq;
  Srq srq;
  ibv_qp_type type = IBV_QPT_RC;
  ibv_qp_cap cap{};
  bool signal_all = false;
  std::uint64_t send_operations = 0;  // IBV_QP_EX_WITH_*: not 0 asks for the ibv_wr_* interface
};

struct MadeQp {
  Qp qp;
  std::uint32_t number = 0;
  ibv_qp_cap cap{};       // what it really has
  bool extended = false;  // has the ibv_wr_* interface
  int error = 0;
};

struct QueriedQp {
  int error = 0;
  ibv_qp_attr attributes{};
  ibv_qp_cap cap{};  // of ibv_qp_init_attr
  ibv_qp_type type{};
  bool signal_all = false;
};

// ibv_send_wr.
struct SendRequest {
  std::uint64_t id = 0;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  unsigned flags = IBV_SEND_SIGNALED;
  std::vector<ibv_sge> pieces;
  std::uint32_t immediate = 0;  // host byte order
  std::uint32_t invalidate_rkey = 0;
  // One-sided operations
  std::uint64_t remote_address = 0;
  std::uint32_t rkey = 0;
  // Atomics
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  // Datagrams
  Ah ah;
  std::uint32_t remote_qpn = 0;
  std::uint32_t remote_qkey = 0;
  // IBV_WR_BIND_MW: the window becomes [bind_address, bind_address + bind_length) of bind_mr under `rkey`
  Mw mw;
  Mr bind_mr;
  std::uint64_t bind_address = 0;
  std::uint64_t bind_length = 0;
  unsigned bind_access = 0;
};

// ibv_recv_wr.
struct ReceiveRequest {
  std::uint64_t id = 0;
  std::vector<ibv_sge> pieces;
};

// Of a list of requests: errno, and the index of the request that bad_wr pointed to (none if it was left alone).
struct Posted {
  static constexpr int no_bad_request = -1;
  int error = 0;
  int bad_index = no_bad_request;
};

// ibv_mw_bind, for windows of type 1.
struct BindRequest {
  std::uint64_t id = 0;
  unsigned flags = IBV_SEND_SIGNALED;
  Mr mr;
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  unsigned access = 0;
};

struct Polled {
  int result = 0;  // what ibv_poll_cq returned; 0 or errno of ibv_start_poll and ibv_next_poll
  std::vector<ibv_wc> completions;
};

struct CqEvent {
  Cq cq;
  std::uint64_t context = 0;
};

struct AsyncEvent {
  ibv_event_type type{};
  Qp qp;
  Cq cq;
  Srq srq;
  std::uint8_t port = 0;
};

struct QueriedSrq {
  int error = 0;
  ibv_srq_attr attributes{};
};

struct QueriedPkey {
  int error = 0;
  std::uint16_t pkey = 0;
};

}  // namespace verbatim::conformance
