// A point's result as named values: the members of --json and the columns of --csv.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "result.hpp"

namespace verbatim::perf {

// Nothing where it does not apply.
using FieldValue = std::variant<std::monostate, bool, std::uint64_t, double, std::string>;

struct Field {
  std::string_view name;
  FieldValue (*value)(const PointResult& result);
};

[[nodiscard]] const std::vector<Field>& fields();

}  // namespace verbatim::perf
