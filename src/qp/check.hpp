// Whether ibv_modify_qp may be called so, judged from the transition table before any device sees the call.
#pragma once

#include <infiniband/verbs.h>

#include <string>

#include "device/queue_pair/names.hpp"

namespace verbatim::qp {

// What is wrong with one call. Nothing is, if it `ok`s.
struct Verdict {
  ibv_qp_type type;
  ibv_qp_state from;
  ibv_qp_state to;
  AttributeMask given;
  bool possible;              // there is such a transition; without one the masks below are empty
  AttributeMask missing;      // required there and not given
  AttributeMask not_allowed;  // given, and neither required nor optional there

  [[nodiscard]] constexpr bool ok() const { return possible && missing == 0 && not_allowed == 0; }
};

[[nodiscard]] Verdict check(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, AttributeMask given);

// The same for a call as it would be made of a queue pair in `state`. Without STATE the queue pair stays where it is;
// with CUR_STATE the caller's word counts for the state that it is in.
[[nodiscard]] Verdict check(ibv_qp_type type, ibv_qp_state state, const ibv_qp_attr& attributes, AttributeMask given);

// Everything that is wrong, as a sentence that says what to do instead; empty if nothing is.
[[nodiscard]] std::string to_sentence(const Verdict& verdict);

}  // namespace verbatim::qp
