#include "qp/queue_pair.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "device/queue_pair/transitions.hpp"
#include "qp/check.hpp"
#include "qp/device_failure.hpp"
#include "qp/tables.hpp"

namespace verbatim::qp {
namespace {

// A claim about the present state may only say what the device can have done by itself since we last knew.
std::string wrong_claim(ibv_qp_type type, ibv_qp_state known, const Modification& modification) {
  const auto claimed = modification.attributes.cur_qp_state;
  if (!(modification.mask & IBV_QP_CUR_STATE) || claimed == known || device_moves(type, known, claimed)) return {};
  return fmt::format("CUR_STATE says {}, but it is in {}: leave CUR_STATE out, or query the state first",
                     to_text(claimed), to_text(known));
}

}  // namespace

QueuePair QueuePair::create(device::Context& context, ibv_pd* pd, ibv_qp_init_attr& attributes) {
  const auto asked = attributes.cap;
  auto* created = context.create_qp(pd, attributes);
  if (created == nullptr) {
    fail(fmt::format("no {} queue pair on {} with {} sends of {} SGEs, {} receives of {} SGEs, {} bytes inline",
                     to_text(attributes.qp_type), context.name(), asked.max_send_wr, asked.max_send_sge,
                     asked.max_recv_wr, asked.max_recv_sge, asked.max_inline_data),
         errno);
  }
  return {context, created};
}

QueuePair::QueuePair(device::Context& context, ibv_qp* created)
    : context_(&context), handle_(created), path_(created->qp_type) {
  try {
    if (find_transition(type(), IBV_QPS_RESET, IBV_QPS_INIT) == nullptr) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("{}: type {} is not one of RC, UC, UD, RAW_PACKET", describe(), to_text(type())));
    }
    ibv_device_attr_ex device{};
    if (const int problem = context.query_device(device)) fail("limits of " + context.name(), problem);
    limits_ = limits_of(device.orig_attr);
  } catch (...) {
    destroy();
    throw;
  }
}

QueuePair::~QueuePair() {
  destroy();
}

QueuePair::QueuePair(QueuePair&& other) noexcept
    : context_(other.context_),
      handle_(std::exchange(other.handle_, nullptr)),
      state_(other.state_),
      limits_(other.limits_),
      path_(other.path_) {}

QueuePair& QueuePair::operator=(QueuePair&& other) noexcept {
  if (this == &other) return *this;
  destroy();
  context_ = other.context_;
  handle_ = std::exchange(other.handle_, nullptr);
  state_ = other.state_;
  limits_ = other.limits_;
  path_ = other.path_;
  return *this;
}

std::string QueuePair::describe() const {
  return fmt::format("queue pair {:#x} on {}", number().value, context_->name());
}

void QueuePair::destroy() noexcept {
  if (handle_ == nullptr) return;
  const auto name = describe();
  if (const int problem = context_->destroy_qp(handle_)) {
    log().warn("{} could not be destroyed and is lost: {}", name, words_of(problem));
  }
  handle_ = nullptr;
}

ibv_qp_state QueuePair::query_state() {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  if (const int problem = context_->query_qp(handle_, attributes, IBV_QP_STATE, init)) {
    fail("state of " + describe(), problem);
  }
  state_ = attributes.qp_state;
  return state_;
}

void QueuePair::modify(const Modification& modification) {
  if (const auto error = try_modify(modification)) throw *error;
}

std::optional<Error> QueuePair::try_modify(const Modification& modification) {
  if (auto error = refuse(modification)) return error;
  auto attributes = modification.attributes;
  if (const int problem = context_->modify_qp(handle_, attributes, modification.mask)) {
    return refused_by_device(modification, problem);
  }
  if (modification.mask & IBV_QP_CUR_STATE) state_ = attributes.cur_qp_state;
  if (modification.mask & IBV_QP_STATE) state_ = attributes.qp_state;
  path_.remember(modification);
  learn_values(modification.mask);
  return std::nullopt;
}

std::optional<Error> QueuePair::refuse(const Modification& modification) const {
  std::string faults = to_sentence(check(type(), state_, modification.attributes, modification.mask));
  for (const auto& fault :
       {wrong_claim(type(), state_, modification), wrong_values(modification.attributes, modification.mask, limits_)}) {
    if (!fault.empty()) faults.append(faults.empty() ? "" : "; ").append(fault);
  }
  if (faults.empty()) return std::nullopt;
  return Error(ErrorCode::invalid_argument, fmt::format("{}: {}", describe(), faults));
}

Error QueuePair::refused_by_device(const Modification& modification, int problem) {
  const auto believed = state_;
  const auto to = (modification.mask & IBV_QP_STATE) ? modification.attributes.qp_state : believed;
  auto sentence = fmt::format("{}: the device refused {} {}→{}: {}", describe(), to_text(type()), to_text(believed),
                              to_text(to), words_of(problem));
  try {
    if (query_state() != believed) sentence += fmt::format("; it had moved to {} by itself", to_text(state_));
  } catch (const Error& error) {
    sentence += fmt::format("; {}", error.what());
  }
  return {ErrorCode::device_failure, sentence};
}

// A table that can't be read costs the look-up by value at a re-connect, no more: the modify was done.
void QueuePair::learn_values(AttributeMask changed) try {
  const auto& [attributes, known] = path_.attributes();
  if ((changed & (IBV_QP_PKEY_INDEX | IBV_QP_PORT)) && (known & IBV_QP_PKEY_INDEX)) {
    std::uint16_t pkey = 0;
    const int problem = context_->query_pkey(attributes.port_num, attributes.pkey_index, pkey);
    if (problem != 0) fail(fmt::format("P_Key {} of port {}", attributes.pkey_index, attributes.port_num), problem);
    path_.keep_pkey(pkey);
  }
  if ((changed & IBV_QP_AV) && attributes.ah_attr.is_global) {
    const auto gids = gid_table(*context_);
    const auto& address = attributes.ah_attr;
    const auto* entry = find_gid(gids, PortNumber{address.port_num}, address.grh.sgid_index);
    if (entry == nullptr) fail(fmt::format("GID {} of port {}", address.grh.sgid_index, address.port_num), ENOENT);
    path_.keep_source_gid(SourceGid::of(*entry));
  }
} catch (const Error& error) {
  log().warn("{}: a re-connect will have to trust table indices: {}", describe(), error.what());
}

Modification QueuePair::reconnect_to_init() {
  const auto& known = path_.attributes();
  if (!(known.mask & IBV_QP_PORT) || !path_.pkey()) return path_.reset_to_init({});
  return path_.reset_to_init(pkey_table(*context_, PortNumber{known.attributes.port_num}));
}

Modification QueuePair::reconnect_to_rtr(Psn first_expected) {
  if (!path_.source_gid()) return path_.init_to_rtr(first_expected, {});
  return path_.init_to_rtr(first_expected, gid_table(*context_));
}

}  // namespace verbatim::qp
