#include "base/config/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace verbatim::config {
namespace {

// Insertions, deletions and replacements that lead from one name to the other.
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string unknown_name(std::string_view where, std::string_view name, const Names& known) {
  const auto nearest = std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
    return edits_between(name, a) < edits_between(name, b);
  });
  return fmt::format("{}: nobody knows '{}', so it changes nothing; did you mean '{}'?", where, name, *nearest);
}

}  // namespace verbatim::config
