// One queue pair: owns it, refuses wrong modifies before the device sees them, and remembers what it was connected
// with. Control path only: posting and polling go to handle() by verbs' own inline functions.
#pragma once

#include <infiniband/verbs.h>

#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/ids.hpp"
#include "device/context.hpp"
#include "qp/modification.hpp"
#include "qp/path_cache.hpp"
#include "qp/values.hpp"

namespace verbatim::qp {

class QueuePair {
 public:
  // Creates one, in RESET. `attributes.cap` comes back as granted. Throws Error(device_failure) with what was asked
  // for. `context` and `pd` must outlive it.
  [[nodiscard]] static QueuePair create(device::Context& context, ibv_pd* pd, ibv_qp_init_attr& attributes);
  // Takes over one that was just created (ibv_create_qp_ex has more to say than create). Throws Error(unsupported) for
  // a type without transition table, and has then destroyed it.
  QueuePair(device::Context& context, ibv_qp* created);
  ~QueuePair();
  QueuePair(QueuePair&& other) noexcept;
  QueuePair& operator=(QueuePair&& other) noexcept;

  [[nodiscard]] ibv_qp* handle() const noexcept { return handle_; }
  [[nodiscard]] Qpn number() const noexcept { return Qpn{handle_->qp_num}; }
  [[nodiscard]] ibv_qp_type type() const noexcept { return handle_->qp_type; }
  [[nodiscard]] const PathCache& path() const noexcept { return path_; }

  // The state that we last put it in or learnt of. The device may have moved it to SQE or ERR since.
  [[nodiscard]] ibv_qp_state state() const noexcept { return state_; }
  // Asks the device, and remembers. Throws Error(device_failure).
  ibv_qp_state query_state();

  // Throws Error: invalid_argument with everything that is wrong if the call can't be right (the device has not seen
  // it), device_failure if the device refused. Then nothing has changed, unless the device had moved the queue pair by
  // itself: state() is up to date after a refusal.
  void modify(const Modification& modification);
  void modify(const ibv_qp_attr& attributes, AttributeMask mask) { modify(Modification{attributes, mask}); }
  // The same with the error as a value; nothing if it was done.
  [[nodiscard]] std::optional<Error> try_modify(const Modification& modification);

  // A re-connect with what it was connected with before, GID and P_Key looked up again in the tables of now. For the
  // caller to hand to modify(), after changing what the peer wants changed. Throws as PathCache does, and
  // Error(device_failure) if a table can't be read.
  [[nodiscard]] Modification reconnect_to_init();
  [[nodiscard]] Modification reconnect_to_rtr(Psn first_expected);
  [[nodiscard]] Modification reconnect_to_rts(Psn first_sent) const { return path_.rtr_to_rts(first_sent); }

 private:
  [[nodiscard]] std::string describe() const;
  void destroy() noexcept;
  [[nodiscard]] std::optional<Error> refuse(const Modification& modification) const;
  [[nodiscard]] Error refused_by_device(const Modification& modification, int problem);
  void learn_values(AttributeMask changed);

  device::Context* context_;
  ibv_qp* handle_;  // owned; nullptr when moved from
  ibv_qp_state state_ = IBV_QPS_RESET;
  Limits limits_;
  PathCache path_;
};

}  // namespace verbatim::qp
