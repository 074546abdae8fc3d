// SoftContext: what there is.
#include <cerrno>
#include <cstring>

#include "device/soft/verbs/soft_context.hpp"

namespace verbatim::soft {

namespace {

// No vendor's OUI: the bit of those that nobody assigns is set. Programs take 0 for a device that didn't answer.
constexpr std::uint32_t vendor = 0x020000 | ('V' << 8) | 'B';

}  // namespace

int SoftContext::query_device(ibv_device_attr_ex& attributes) {
  if (forked_) return EPERM;
  const Limits& limits = config_.limits;
  attributes = {};
  ibv_device_attr& base = attributes.orig_attr;
  std::snprintf(base.fw_ver, sizeof(base.fw_ver), "verbatim");
  base.node_guid = config_.ports.front().gids.front().gid.global.interface_id;
  base.sys_image_guid = base.node_guid;
  base.vendor_id = vendor;
  base.vendor_part_id = 1;
  base.hw_ver = 1;
  base.max_mr_size = UINT64_MAX;
  base.page_size_cap = 4096;
  base.max_qp = static_cast<int>(limits.max_qp);
  base.max_qp_wr = static_cast<int>(limits.max_qp_wr);
  base.device_cap_flags = IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
                          IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR | IBV_DEVICE_CURR_QP_STATE_MOD;
  base.max_sge = static_cast<int>(limits.max_sge);
  base.max_sge_rd = static_cast<int>(limits.max_sge);
  base.max_cq = static_cast<int>(limits.max_cq);
  base.max_cqe = static_cast<int>(limits.max_cqe);
  base.max_mr = static_cast<int>(limits.max_mr);
  base.max_pd = static_cast<int>(limits.max_pd);
  base.max_qp_rd_atom = static_cast<int>(limits.max_dest_rd_atomic);
  base.max_qp_init_rd_atom = static_cast<int>(limits.max_rd_atomic);
  base.max_res_rd_atom = static_cast<int>(limits.max_dest_rd_atomic * limits.max_qp);
  base.atomic_cap = IBV_ATOMIC_GLOB;  // real atomic instructions: atomic to the processor too
  base.max_ah = static_cast<int>(limits.max_ah);
  base.max_srq = static_cast<int>(limits.max_srq);
  base.max_srq_wr = static_cast<int>(limits.max_srq_wr);
  base.max_srq_sge = static_cast<int>(limits.max_sge);
  base.max_pkeys = static_cast<std::uint16_t>(config_.ports.front().pkeys.size());
  base.phys_port_cnt = static_cast<std::uint8_t>(config_.ports.size());
  attributes.phys_port_cnt_ex = base.phys_port_cnt;
  return 0;
}

int SoftContext::query_port(std::uint8_t number, ibv_port_attr& attributes) {
  if (forked_) return EPERM;
  const EngineVisit visit(lock_);
  if (number == 0 || number > engine_->port_count()) return EINVAL;
  const Port& port = engine_->port(number);
  constexpr std::uint8_t width_4x = 2, speed_edr = 32, phys_link_up = 5, phys_disabled = 3;
  attributes = {};
  attributes.state = port.active ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attributes.max_mtu = port.max_mtu;
  attributes.active_mtu = port.active_mtu;
  attributes.gid_tbl_len = static_cast<int>(port.gids.size());
  attributes.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
  attributes.max_msg_sz = static_cast<std::uint32_t>(std::min<std::uint64_t>(config_.limits.max_msg_bytes, 1U << 31));
  attributes.pkey_tbl_len = static_cast<std::uint16_t>(port.pkeys.size());
  attributes.max_vl_num = 1;
  attributes.active_width = width_4x;
  attributes.active_speed = speed_edr;
  attributes.phys_state = port.active ? phys_link_up : phys_disabled;
  attributes.link_layer = IBV_LINK_LAYER_ETHERNET;
  attributes.flags = IBV_QPF_GRH_REQUIRED;
  return 0;
}

int SoftContext::query_gid_table(std::vector<ibv_gid_entry>& entries) {
  if (forked_) return EPERM;
  const EngineVisit visit(lock_);
  entries.clear();
  for (std::uint8_t number = 1; number <= engine_->port_count(); ++number) {
    const auto& gids = engine_->port(number).gids;
    for (std::uint32_t index = 0; index < gids.size(); ++index) {
      if (is_empty(gids[index].gid)) continue;
      entries.push_back({.gid = gids[index].gid,
                         .gid_index = index,
                         .port_num = number,
                         .gid_type = static_cast<std::uint32_t>(gids[index].type),
                         .ndev_ifindex = 0});
    }
  }
  return 0;
}

int SoftContext::query_pkey(std::uint8_t number, int index, std::uint16_t& pkey) {
  if (forked_) return EPERM;
  const EngineVisit visit(lock_);
  if (number == 0 || number > engine_->port_count()) return EINVAL;
  const auto& pkeys = engine_->port(number).pkeys;
  if (index < 0 || static_cast<std::size_t>(index) >= pkeys.size()) return EINVAL;
  pkey = pkeys[static_cast<std::size_t>(index)];
  return 0;
}

std::vector<device::Counter> SoftContext::counters(std::uint8_t) {
  if (forked_) return {};
  const EngineVisit visit(lock_);
  std::vector<device::Counter> counted;
  for (const CounterRow& row : counter_rows) counted.push_back({row.name, engine_->counters.*row.value});
  return counted;
}

}  // namespace verbatim::soft
