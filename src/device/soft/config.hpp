// What a soft device is made with. Everything has the default of a well-behaved RoCE adapter.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "device/soft/engine/fault_plan.hpp"

namespace verbatim::soft {

struct Limits {
  std::uint32_t max_qp = 16384;
  std::uint32_t max_cq = 16384;
  std::uint32_t max_cqe = 1U << 20;
  std::uint32_t max_qp_wr = 16384;
  std::uint32_t max_sge = 32;
  std::uint32_t max_inline_data = 512;
  std::uint32_t max_srq = 4096;
  std::uint32_t max_srq_wr = 16384;
  std::uint32_t max_mr = 1U << 16;
  std::uint32_t max_pd = 16384;
  std::uint32_t max_ah = 1U << 20;
  std::uint32_t max_rd_atomic = 16;       // READs and atomics that a queue pair may have on the way, as initiator
  std::uint32_t max_dest_rd_atomic = 16;  // and as responder
  std::uint64_t max_msg_bytes = 1U << 30;
  std::uint64_t max_pinned_bytes = UINT64_MAX;  // beyond it registration fails with ENOMEM, as with RLIMIT_MEMLOCK
};

struct GidConfig {
  ibv_gid gid{};
  ibv_gid_type type = IBV_GID_TYPE_ROCE_V2;
};

struct PortConfig {
  // Empty: two RoCE v2 entries made from the instance's random id, a link-local one and a routable IPv6 one.
  std::vector<GidConfig> gids;
  std::vector<std::uint16_t> pkeys{0xffff};
  ibv_mtu max_mtu = IBV_MTU_4096;
  ibv_mtu active_mtu = IBV_MTU_4096;
  bool active = true;
};

struct DeviceConfig {
  std::string name = "soft0";
  Limits limits;
  std::vector<PortConfig> ports{PortConfig{}};
  FaultPlan faults;
  std::uint32_t first_qpn = 0x11;
  // Shorter ack timeouts are kept to this long: what a device's own answer may take. The wire may raise it.
  Duration min_ack_timeout{};
  std::uint64_t seed = 0;  // of the device's own randomness (faults); 0 takes one from the system

  // shm only
  std::string directory;                  // empty: /dev/shm/verbatim-<uid>
  std::uint32_t ring_bytes = 256 * 1024;  // of each ordered pair of devices that talk; a power of two
  bool payload_by_reference =
      true;  // off: large payloads too travel through the ring, as where the system forbids process_vm_readv
};

// Throws Error(invalid_argument) naming the member, its value and what is allowed. Every device is made through it.
void check(const DeviceConfig& config);

}  // namespace verbatim::soft
