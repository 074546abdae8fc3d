// docs/states.md shows the tables of the code, and this test holds it to them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "device/queue_pair/transitions.hpp"
#include "device/queue_pair/units.hpp"
#include "vm/qp_states/differences.hpp"

namespace verbatim::qp {
namespace {

const std::string page_path = VERBATIM_STATES_PAGE;

std::string row(const std::vector<std::string>& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string header(const std::vector<std::string>& cells) {
  return row(cells) + row(std::vector<std::string>(cells.size(), "---"));
}

std::string state_name(ibv_qp_state state) {
  return state == any_state ? "any" : to_text(state);
}

std::string transitions_of(ibv_qp_type type) {
  auto text = header({"transition", "required", "optional"});
  for (const auto& transition : transitions) {
    if (transition.type != type) continue;
    text += row({fmt::format("{} → {}", state_name(transition.from), state_name(transition.to)),
                 to_text(transition.required), to_text(transition.optional)});
  }
  return text;
}

// Codes 0 to 31 in four columns, to be read downwards.
template <typename Show>
std::string codes(Show show) {
  constexpr unsigned rows = 8, columns = 4;
  std::vector<std::string> names;
  for (unsigned column = 0; column < columns; ++column) names.insert(names.end(), {"code", "duration"});
  auto text = header(names);
  for (unsigned line = 0; line < rows; ++line) {
    std::vector<std::string> cells;
    for (unsigned code = line; code < rows * columns; code += rows) {
      cells.insert(cells.end(), {std::to_string(code), show(static_cast<std::uint8_t>(code))});
    }
    text += row(cells);
  }
  return text;
}

std::string readable(Duration duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  if (seconds < 1e-3) return fmt::format("{:.6g} µs", seconds * 1e6);
  return seconds < 1 ? fmt::format("{:.6g} ms", seconds * 1e3) : fmt::format("{:.6g} s", seconds);
}

std::string rnr_timers() {
  return codes([](std::uint8_t code) { return readable(RnrTimer::from_code(code).duration()); });
}

std::string ack_timeouts() {
  return codes([](std::uint8_t code) -> std::string {
    const auto duration = AckTimeout::from_code(code).duration();
    return duration ? readable(*duration) : "infinite";
  });
}

std::string differences() {
  auto text = header({"type", "transition", "call", "table", "Linux", "why"});
  for (const auto& difference : test::differences_from_linux()) {
    std::vector<std::string> types, places;
    for (const auto type : difference.types) types.push_back(to_text(type));
    for (const auto& [from, to] : difference.transitions) places.push_back(to_text(from) + "→" + to_text(to));
    std::string call = "as required";
    if (difference.left_out != 0) call = "without " + to_text(difference.left_out);
    if (difference.added != 0) call = "with " + to_text(difference.added);
    text += row({fmt::format("{}", fmt::join(types, ", ")), fmt::format("{}", fmt::join(places, ", ")), call,
                 difference.allowed_by_linux ? "refuses" : "allows", difference.allowed_by_linux ? "allows" : "refuses",
                 difference.reason});
  }
  return text;
}

std::map<std::string, std::string> generated_parts() {
  return {{"transitions RC", transitions_of(IBV_QPT_RC)},
          {"transitions UC", transitions_of(IBV_QPT_UC)},
          {"transitions UD", transitions_of(IBV_QPT_UD)},
          {"transitions RAW_PACKET", transitions_of(IBV_QPT_RAW_PACKET)},
          {"RNR timers", rnr_timers()},
          {"ack timeouts", ack_timeouts()},
          {"differences from Linux", differences()}};
}

std::string read_page() {
  std::ifstream file(page_path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Replaces what stands between the two marks of a part. Nothing to replace is a failure of the test.
void put_part(std::string& page, const std::string& name, const std::string& text) {
  const auto begin_mark = "<!-- generated: " + name + " -->\n";
  const auto begin = page.find(begin_mark);
  ASSERT_NE(begin, std::string::npos) << "no part " << name;
  const auto end = page.find("<!-- end -->", begin);
  ASSERT_NE(end, std::string::npos) << "no end of part " << name;
  page.replace(begin + begin_mark.size(), end - begin - begin_mark.size(), text);
}

TEST(StatesPage, ShowsTheTablesOfTheCode) {
  const auto page = read_page();
  auto expected = page;
  for (const auto& [name, text] : generated_parts()) put_part(expected, name, text);
  if (std::getenv("VERBATIM_REWRITE_DOCS") != nullptr) {
    std::ofstream(page_path) << expected;
  } else {
    EXPECT_EQ(page, expected) << "VERBATIM_REWRITE_DOCS=1 writes the page anew";
  }
}

}  // namespace
}  // namespace verbatim::qp
