// The facts of data/, read independently of the tables they judge.
#pragma once

#include <infiniband/verbs.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace verbatim::qp::test {

// Lines without comments, split at commas. Throws if the file can't be read.
std::vector<std::vector<std::string>> read_csv(const std::string& name);

struct Masks {
  int required = 0;
  int optional = 0;
};
using Key = std::tuple<ibv_qp_type, ibv_qp_state, ibv_qp_state>;

// Every transition there is, '*' written out. What is not in it does not exist.
const std::map<Key, Masks>& known_transitions();

// IBV_QP_* bits by name, and states that a queue pair can be in.
const std::map<std::string, int>& attribute_bits();
const std::map<std::string, ibv_qp_state>& states();
const std::map<std::string, ibv_qp_type>& types();

}  // namespace verbatim::qp::test
