#include "oracle.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace verbatim::qp::test {
namespace {

std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, separator);) fields.push_back(field);
  return fields;
}

int mask_of(const std::string& names) {
  int mask = 0;
  if (names == "-") return mask;
  for (const auto& name : split(names, '|')) mask |= attribute_bits().at(name);
  return mask;
}

std::map<Key, Masks> read_transitions() {
  std::map<Key, Masks> transitions;
  for (const auto& row : read_csv("qp_transitions.csv")) {
    const Masks masks{mask_of(row.at(3)), mask_of(row.at(4))};
    for (const auto& [name, state] : states()) {
      if (row.at(1) != "*" && row.at(1) != name) continue;
      transitions[{types().at(row.at(0)), state, states().at(row.at(2))}] = masks;
    }
  }
  return transitions;
}

}  // namespace

std::vector<std::vector<std::string>> read_csv(const std::string& name) {
  std::ifstream file(std::string(VERBATIM_QP_TEST_DATA) + "/" + name);
  if (!file) throw std::runtime_error("can't read " + name);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.front() != '#') rows.push_back(split(line, ','));
  }
  return rows;
}

const std::map<Key, Masks>& known_transitions() {
  static const auto transitions = read_transitions();
  return transitions;
}

const std::map<std::string, int>& attribute_bits() {
  static const std::map<std::string, int> bits{{"STATE", IBV_QP_STATE},
                                               {"CUR_STATE", IBV_QP_CUR_STATE},
                                               {"EN_SQD_ASYNC_NOTIFY", IBV_QP_EN_SQD_ASYNC_NOTIFY},
                                               {"ACCESS_FLAGS", IBV_QP_ACCESS_FLAGS},
                                               {"PKEY_INDEX", IBV_QP_PKEY_INDEX},
                                               {"PORT", IBV_QP_PORT},
                                               {"QKEY", IBV_QP_QKEY},
                                               {"AV", IBV_QP_AV},
                                               {"PATH_MTU", IBV_QP_PATH_MTU},
                                               {"TIMEOUT", IBV_QP_TIMEOUT},
                                               {"RETRY_CNT", IBV_QP_RETRY_CNT},
                                               {"RNR_RETRY", IBV_QP_RNR_RETRY},
                                               {"RQ_PSN", IBV_QP_RQ_PSN},
                                               {"MAX_QP_RD_ATOMIC", IBV_QP_MAX_QP_RD_ATOMIC},
                                               {"ALT_PATH", IBV_QP_ALT_PATH},
                                               {"MIN_RNR_TIMER", IBV_QP_MIN_RNR_TIMER},
                                               {"SQ_PSN", IBV_QP_SQ_PSN},
                                               {"MAX_DEST_RD_ATOMIC", IBV_QP_MAX_DEST_RD_ATOMIC},
                                               {"PATH_MIG_STATE", IBV_QP_PATH_MIG_STATE},
                                               {"CAP", IBV_QP_CAP},
                                               {"DEST_QPN", IBV_QP_DEST_QPN},
                                               {"RATE_LIMIT", IBV_QP_RATE_LIMIT}};
  return bits;
}

const std::map<std::string, ibv_qp_state>& states() {
  static const std::map<std::string, ibv_qp_state> states{
      {"RESET", IBV_QPS_RESET}, {"INIT", IBV_QPS_INIT}, {"RTR", IBV_QPS_RTR}, {"RTS", IBV_QPS_RTS},
      {"SQD", IBV_QPS_SQD},     {"SQE", IBV_QPS_SQE},   {"ERR", IBV_QPS_ERR}};
  return states;
}

const std::map<std::string, ibv_qp_type>& types() {
  static const std::map<std::string, ibv_qp_type> types{
      {"RC", IBV_QPT_RC}, {"UC", IBV_QPT_UC}, {"UD", IBV_QPT_UD}, {"RAW_PACKET", IBV_QPT_RAW_PACKET}};
  return types;
}

}  // namespace verbatim::qp::test
