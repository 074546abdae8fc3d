// What each end of most cases has: a protection domain, a send CQ and a receive CQ, one registered buffer, one QP.
// Calls that must work throw a sentence when they don't, which fails the case; calls whose result is the point of a
// case are made on `endpoint` itself.
#pragma once

#include <chrono>

#include "conformance/deviation.hpp"
#include "conformance/fabric.hpp"

namespace verbatim::conformance {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

// How long something that must happen may take. Only a failing case waits as long.
inline constexpr Duration patience = 20s;

inline constexpr std::uint8_t port_number = 1;
inline constexpr int every_access =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

// Where an endpoint is.
struct Address {
  ibv_gid gid{};
  std::uint8_t gid_index = 0;
  std::uint16_t lid = 0;
  bool global = false;  // reached by GID: always on Ethernet
};

[[nodiscard]] Address address_of(Endpoint& endpoint);
[[nodiscard]] ibv_ah_attr path(const Address& from, const Address& to);

// One side's view of a connection. The defaults connect; cases change what they are about.
struct Route {
  ibv_mtu mtu = IBV_MTU_1024;
  std::uint32_t send_psn = 0x1000;
  std::uint32_t receive_psn = 0x2000;
  std::uint8_t ack_timeout = 14;  // code: 4.096 us * 2^14 = 67 ms
  std::uint8_t retries = 7;
  std::uint8_t rnr_retries = 7;  // 7: for ever
  std::uint8_t rnr_timer = 1;    // code: 0.01 ms
  std::uint8_t reads_out = 4;
  std::uint8_t reads_in = 4;
  unsigned access = every_access;
  std::uint32_t qkey = 0x11111111;
};

class Side {
 public:
  Side(Fabric& fabric, Endpoint& own_endpoint);

  // -- set-up ----------------------------------------------------------------------------------------------------
  // `options` without pd and CQs: the side's own are used where there is none.
  void make_qp(QpOptions options);
  void make_region(std::size_t bytes, int access = every_access, MemoryKind kind = MemoryKind::anonymous);
  [[nodiscard]] QpOptions qp_options(ibv_qp_type type = IBV_QPT_RC) const;

  // -- states ----------------------------------------------------------------------------------------------------
  void to_init(const Route& route = {});
  void to_rtr(const Side& peer, const Route& route = {});
  void to_rts(const Route& route = {});
  void connect(const Side& peer, const Route& route = {});  // from RESET to RTS
  void to(ibv_qp_state state);                              // by IBV_QP_STATE alone
  [[nodiscard]] ibv_qp_state state() const;
  [[nodiscard]] bool wait_for_state(ibv_qp_state wanted) const;

  // -- memory ----------------------------------------------------------------------------------------------------
  [[nodiscard]] ibv_sge piece(std::size_t offset, std::uint32_t bytes) const;
  [[nodiscard]] std::uint64_t at(std::size_t offset) const { return address_in_memory + offset; }
  void fill(std::size_t offset, std::size_t bytes, std::uint32_t seed) const;
  void clear(std::size_t offset, std::size_t bytes) const;
  [[nodiscard]] std::optional<std::size_t> first_difference(std::size_t offset, std::size_t bytes,
                                                            std::uint32_t seed) const;
  [[nodiscard]] std::uint64_t word(std::size_t offset) const;
  void set_word(std::size_t offset, std::uint64_t value) const;

  // -- requests --------------------------------------------------------------------------------------------------
  void post(const SendRequest& request) const;
  void post(const std::vector<SendRequest>& requests) const;
  void receive(std::uint64_t id, const std::vector<ibv_sge>& pieces) const;

  // -- completions -----------------------------------------------------------------------------------------------
  [[nodiscard]] std::vector<ibv_wc> completions(Cq cq, std::size_t count) const;
  [[nodiscard]] ibv_wc sent() const { return completions(send_cq, 1).front(); }
  [[nodiscard]] ibv_wc received() const { return completions(recv_cq, 1).front(); }
  [[nodiscard]] std::vector<ibv_wc> sent(std::size_t count) const { return completions(send_cq, count); }
  [[nodiscard]] std::vector<ibv_wc> received(std::size_t count) const { return completions(recv_cq, count); }
  [[nodiscard]] bool idle(Cq cq) const;  // nothing to poll just now

  // -- events ----------------------------------------------------------------------------------------------------
  [[nodiscard]] std::optional<AsyncEvent> async_event(ibv_event_type type, Duration wait = patience) const;

  // -- the device ------------------------------------------------------------------------------------------------
  [[nodiscard]] bool deviates(Deviation deviation) const { return conformance::deviates(device_name, deviation); }
  // What a request ends with: as specified, or otherwise on a device with this deviation.
  [[nodiscard]] ibv_wc_status expected(ibv_wc_status specified, Deviation deviation, ibv_wc_status otherwise) const {
    return deviates(deviation) ? otherwise : specified;
  }

  Fabric* fabric;
  Endpoint* endpoint;
  std::string device_name;
  ibv_device_attr_ex device{};
  ibv_port_attr port{};
  Address address;
  Pd pd;
  Cq send_cq;
  Cq recv_cq;
  Qp qp;
  std::uint32_t qpn = 0;
  ibv_qp_cap cap{};
  ibv_qp_type type = IBV_QPT_RC;
  bool extended = false;
  Buffer buffer;
  Mr mr;
  std::uint64_t address_in_memory = 0;
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;
};

// Requests, as short as they are in a sentence.
[[nodiscard]] SendRequest send(std::uint64_t id, std::vector<ibv_sge> pieces);
[[nodiscard]] SendRequest send_with_immediate(std::uint64_t id, std::vector<ibv_sge> pieces, std::uint32_t immediate);
[[nodiscard]] SendRequest write(std::uint64_t id, std::vector<ibv_sge> pieces, const Side& target, std::size_t offset);
[[nodiscard]] SendRequest write_with_immediate(std::uint64_t id, std::vector<ibv_sge> pieces, const Side& target,
                                               std::size_t offset, std::uint32_t immediate);
[[nodiscard]] SendRequest read(std::uint64_t id, std::vector<ibv_sge> pieces, const Side& target, std::size_t offset);
[[nodiscard]] SendRequest compare_and_swap(std::uint64_t id, const ibv_sge& piece, const Side& target,
                                           std::size_t offset, std::uint64_t compare, std::uint64_t swap);
[[nodiscard]] SendRequest fetch_and_add(std::uint64_t id, const ibv_sge& piece, const Side& target, std::size_t offset,
                                        std::uint64_t add);
[[nodiscard]] SendRequest datagram(std::uint64_t id, std::vector<ibv_sge> pieces, Ah ah, std::uint32_t qpn,
                                   std::uint32_t qkey);
[[nodiscard]] constexpr unsigned signalled_if(bool wanted) {
  return wanted ? unsigned{IBV_SEND_SIGNALED} : 0;
}
[[nodiscard]] SendRequest with_flags(SendRequest request, unsigned flags);

}  // namespace verbatim::conformance
