#include "qp/check.hpp"

#include <fmt/format.h>

#include <vector>

#include "device/queue_pair/transitions.hpp"

namespace verbatim::qp {
namespace {

// "a", "a or b", "a, b or c".
std::string any_of(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

std::string arrow(ibv_qp_state from, ibv_qp_state to) {
  return (from == any_state ? "any state" : to_text(from)) + "→" + to_text(to);
}

std::vector<std::string> next_states(ibv_qp_type type, ibv_qp_state from) {
  std::vector<std::string> names;
  for (const auto to : all_states) {
    if (find_transition(type, from, to) != nullptr) names.push_back(to_text(to));
  }
  return names;
}

std::string where_else(const Verdict& verdict, const Attribute& attribute) {
  if (attribute.bit == IBV_QP_STATE)
    return fmt::format("STATE is left out where the state stays {}", to_text(verdict.to));
  std::vector<std::string> places;
  for (const auto& transition : transitions) {
    if (transition.type == verdict.type && ((transition.required | transition.optional) & attribute.bit)) {
      places.push_back(arrow(transition.from, transition.to));
    }
  }
  if (places.empty()) return fmt::format("{} is never set on {}", attribute.name, to_text(verdict.type));
  return fmt::format("{} can be set at {}, not at {}", attribute.name, any_of(places), arrow(verdict.from, verdict.to));
}

std::string impossible(const Verdict& verdict) {
  const auto type = to_text(verdict.type);
  const auto possible = next_states(verdict.type, verdict.from);
  if (possible.empty()) return fmt::format("no transition of {} from {} is known", type, to_text(verdict.from));
  if (verdict.given & IBV_QP_STATE) {
    return fmt::format("{} can't go {}; from {} it can go to {}", type, arrow(verdict.from, verdict.to),
                       to_text(verdict.from), any_of(possible));
  }
  return fmt::format("{} takes no attributes while it stays {}; give STATE with the next state: {}", type,
                     to_text(verdict.from), any_of(possible));
}

}  // namespace

Verdict check(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, AttributeMask given) {
  Verdict verdict{type, from, to, given, false, 0, 0};
  if (const auto* transition = find_transition(type, from, to)) {
    verdict.possible = true;
    verdict.missing = transition->required & ~given;
    verdict.not_allowed = given & ~(transition->required | transition->optional);
  }
  return verdict;
}

Verdict check(ibv_qp_type type, ibv_qp_state state, const ibv_qp_attr& attributes, AttributeMask given) {
  const auto from = (given & IBV_QP_CUR_STATE) ? attributes.cur_qp_state : state;
  const auto to = (given & IBV_QP_STATE) ? attributes.qp_state : from;
  return check(type, from, to, given);
}

std::string to_sentence(const Verdict& verdict) {
  if (verdict.ok()) return {};
  if (!verdict.possible) return impossible(verdict);

  std::vector<std::string> faults;
  if (verdict.missing != 0) faults.push_back("missing " + to_text(verdict.missing));
  AttributeMask unknown = verdict.not_allowed;
  for (const auto& attribute : all_attributes) {
    if (verdict.not_allowed & attribute.bit) faults.push_back(where_else(verdict, attribute));
    unknown &= ~attribute.bit;
  }
  if (unknown != 0) faults.push_back(fmt::format("{} is no attribute that verbs knows", to_text(unknown)));
  return fmt::format("{} {}: {}", to_text(verdict.type), arrow(verdict.from, verdict.to), fmt::join(faults, "; "));
}

}  // namespace verbatim::qp
