// Results for programs: JSON and CSV, both of the same fields.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fields.hpp"
#include "output.hpp"

namespace verbatim::perf {
namespace {

using Json = nlohmann::ordered_json;

Json as_json(const FieldValue& value) {
  return std::visit(
      [](const auto& known) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(known)>, std::monostate>)
          return nullptr;
        else
          return known;
      },
      value);
}

// Nothing that a field holds needs quotes.
std::string as_cell(const FieldValue& value) {
  return std::visit(
      [](const auto& known) -> std::string {
        if constexpr (std::is_same_v<std::decay_t<decltype(known)>, std::monostate>)
          return {};
        else
          return fmt::format("{}", known);
      },
      value);
}

}  // namespace

std::string to_json(const Results& results) {
  const Conditions& conditions = results.conditions;
  Json points = Json::array();
  for (const PointResult& result : results.points) {
    Json point;
    for (const Field& field : fields()) point[std::string(field.name)] = as_json(field.value(result));
    points.push_back(std::move(point));
  }
  const Json document{{"version", VERBATIM_VERSION},
                      {"device", conditions.device},
                      {"place", conditions.place},
                      {"wait", conditions.wait},
                      {"points", points}};
  return document.dump(2) + "\n";
}

std::string to_csv(const Results& results) {
  std::vector<std::string> cells;
  for (const Field& field : fields()) cells.emplace_back(field.name);
  std::string text = fmt::format("{}\n", fmt::join(cells, ","));
  for (const PointResult& result : results.points) {
    cells.clear();
    for (const Field& field : fields()) cells.push_back(as_cell(field.value(result)));
    text += fmt::format("{}\n", fmt::join(cells, ","));
  }
  return text;
}

}  // namespace verbatim::perf
