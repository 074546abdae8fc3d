#include "qp/path_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "device/queue_pair/transitions.hpp"

namespace verbatim::qp {
namespace {

// Belong to one call, not to the connection.
constexpr AttributeMask momentary = IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY;

void copy_alternate_path(ibv_qp_attr& to, const ibv_qp_attr& from) {
  to.alt_ah_attr = from.alt_ah_attr;
  to.alt_pkey_index = from.alt_pkey_index;
  to.alt_port_num = from.alt_port_num;
  to.alt_timeout = from.alt_timeout;
}

void copy_attribute(ibv_qp_attr_mask bit, ibv_qp_attr& to, const ibv_qp_attr& from) {
  switch (bit) {
    case IBV_QP_STATE:
      to.qp_state = from.qp_state;
      return;
    case IBV_QP_CUR_STATE:
      to.cur_qp_state = from.cur_qp_state;
      return;
    case IBV_QP_EN_SQD_ASYNC_NOTIFY:
      to.en_sqd_async_notify = from.en_sqd_async_notify;
      return;
    case IBV_QP_ACCESS_FLAGS:
      to.qp_access_flags = from.qp_access_flags;
      return;
    case IBV_QP_PKEY_INDEX:
      to.pkey_index = from.pkey_index;
      return;
    case IBV_QP_PORT:
      to.port_num = from.port_num;
      return;
    case IBV_QP_QKEY:
      to.qkey = from.qkey;
      return;
    case IBV_QP_AV:
      to.ah_attr = from.ah_attr;
      return;
    case IBV_QP_PATH_MTU:
      to.path_mtu = from.path_mtu;
      return;
    case IBV_QP_TIMEOUT:
      to.timeout = from.timeout;
      return;
    case IBV_QP_RETRY_CNT:
      to.retry_cnt = from.retry_cnt;
      return;
    case IBV_QP_RNR_RETRY:
      to.rnr_retry = from.rnr_retry;
      return;
    case IBV_QP_RQ_PSN:
      to.rq_psn = from.rq_psn;
      return;
    case IBV_QP_MAX_QP_RD_ATOMIC:
      to.max_rd_atomic = from.max_rd_atomic;
      return;
    case IBV_QP_ALT_PATH:
      copy_alternate_path(to, from);
      return;
    case IBV_QP_MIN_RNR_TIMER:
      to.min_rnr_timer = from.min_rnr_timer;
      return;
    case IBV_QP_SQ_PSN:
      to.sq_psn = from.sq_psn;
      return;
    case IBV_QP_MAX_DEST_RD_ATOMIC:
      to.max_dest_rd_atomic = from.max_dest_rd_atomic;
      return;
    case IBV_QP_PATH_MIG_STATE:
      to.path_mig_state = from.path_mig_state;
      return;
    case IBV_QP_CAP:
      to.cap = from.cap;
      return;
    case IBV_QP_DEST_QPN:
      to.dest_qp_num = from.dest_qp_num;
      return;
    case IBV_QP_RATE_LIMIT:
      to.rate_limit = from.rate_limit;
      return;
  }
}

void copy_attributes(AttributeMask mask, ibv_qp_attr& to, const ibv_qp_attr& from) {
  for (const auto& attribute : all_attributes) {
    if (mask & attribute.bit) copy_attribute(static_cast<ibv_qp_attr_mask>(attribute.bit), to, from);
  }
}

std::string to_text(const SourceGid& source) {
  return fmt::format("{} ({})", device::to_string(source.gid), device::to_string(source.type));
}

std::uint8_t index_of(const SourceGid& source, PortNumber port, std::span<const ibv_gid_entry> gids) {
  std::vector<std::string> there;
  for (const auto& entry : gids) {
    if (entry.port_num != port.value) continue;
    const auto candidate = SourceGid::of(entry);
    if (candidate == source) return static_cast<std::uint8_t>(entry.gid_index);
    there.push_back(to_text(candidate));
  }
  throw Error(ErrorCode::not_found, fmt::format("GID {} is no longer in the table of port {}, which has: {}",
                                                to_text(source), port.value, fmt::join(there, ", ")));
}

std::uint16_t index_of(std::uint16_t pkey, PortNumber port, std::span<const std::uint16_t> pkeys) {
  const auto found = std::find(pkeys.begin(), pkeys.end(), pkey);
  if (found != pkeys.end()) return static_cast<std::uint16_t>(found - pkeys.begin());
  throw Error(ErrorCode::not_found,
              fmt::format("P_Key {:#06x} is no longer in the table of port {}, which has: {:#06x}", pkey, port.value,
                          fmt::join(pkeys, ", ")));
}

}  // namespace

SourceGid SourceGid::of(const ibv_gid_entry& entry) {
  SourceGid source{{}, static_cast<device::GidType>(entry.gid_type)};
  std::ranges::copy(entry.gid.raw, source.gid.bytes.begin());
  return source;
}

void PathCache::remember(const Modification& done) {
  copy_attributes(done.mask & ~momentary, attributes_.attributes, done.attributes);
  attributes_.mask |= done.mask & ~momentary;
  if (done.mask & (IBV_QP_PKEY_INDEX | IBV_QP_PORT)) pkey_.reset();
  if (done.mask & IBV_QP_AV) source_gid_.reset();
}

Modification PathCache::replay(ibv_qp_state from, ibv_qp_state to) const {
  const auto* transition = find_transition(type_, from, to);
  const auto needed = transition->required & ~momentary;
  if (const auto unknown = needed & ~attributes_.mask) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("re-connect {}→{}: the queue pair never came there, unknown are {}", qp::to_text(from),
                            qp::to_text(to), qp::to_text(unknown)));
  }
  auto modification = to_state(to);
  copy_attributes(needed, modification.attributes, attributes_.attributes);
  modification.mask |= needed;
  return modification;
}

Modification PathCache::reset_to_init(std::span<const std::uint16_t> pkeys) const {
  auto modification = replay(IBV_QPS_RESET, IBV_QPS_INIT);
  if (pkey_) {
    auto& attributes = modification.attributes;
    attributes.pkey_index = index_of(*pkey_, PortNumber{attributes.port_num}, pkeys);
  }
  return modification;
}

Modification PathCache::init_to_rtr(Psn first_expected, std::span<const ibv_gid_entry> gids) const {
  auto modification = replay(IBV_QPS_INIT, IBV_QPS_RTR);
  modification.attributes.rq_psn = first_expected.value();
  if (source_gid_) {
    auto& address = modification.attributes.ah_attr;
    address.grh.sgid_index = index_of(*source_gid_, PortNumber{address.port_num}, gids);
  }
  return modification;
}

Modification PathCache::rtr_to_rts(Psn first_sent) const {
  auto modification = replay(IBV_QPS_RTR, IBV_QPS_RTS);
  modification.attributes.sq_psn = first_sent.value();
  return modification;
}

const ibv_gid_entry* find_gid(std::span<const ibv_gid_entry> gids, PortNumber port, std::uint32_t index) {
  const auto found = std::find_if(gids.begin(), gids.end(), [=](const ibv_gid_entry& entry) {
    return entry.port_num == port.value && entry.gid_index == index;
  });
  return found == gids.end() ? nullptr : &*found;
}

}  // namespace verbatim::qp
