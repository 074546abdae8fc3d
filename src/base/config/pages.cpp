#include "base/config/pages.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/config/knobs.hpp"

namespace verbatim::config {
namespace {

constexpr std::size_t page_columns = 120;

constexpr std::string_view head =
    R"(# Every knob of Verbatim with its default. Copy this file to /etc/verbatim.toml or ~/.config/verbatim.toml, or name it in
# VERBATIM_CONFIG, and take the '#' from what you change. The environment counts before files: VERBATIM_RC_RECEIVE_DEPTH
# is [rc] receive_depth. "verbatim-info --config" shows what is in force and where it came from; see verbatim.toml(5).
#
# Made from the program's table of knobs; each entry says what it is and when to change it, then what is allowed.

# Defaults for a purpose, weaker than anything that stands in a file: latency, throughput, development.
#profile = "latency"
)";

// A sentence for each line, as mdoc wants it.
std::string one_sentence_a_line(std::string_view text) {
  std::string lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t stop = text.find(". ", begin);
    const std::size_t end = stop == std::string_view::npos ? text.size() : stop + 1;
    lines += std::string(text.substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  return lines;
}

// In the arguments of mdoc's macros a quote is no letter.
std::string macro_argument(const std::string& text) {
  std::string argument;
  for (const char letter : text) argument += letter == '"' ? "\\(dq" : std::string(1, letter);
  return argument;
}

}  // namespace

std::string sample_file() {
  std::string text(head);
  for (const Table& table : tables()) {
    text += fmt::format("\n# {}\n[{}]\n", table.sentence, table.name);
    for (const Knob& knob : knobs()) {
      if (knob.table != table.name) continue;
      text += wrapped(knob.sentence, "# ", page_columns);
      text += fmt::format("# {}\n#{} = {}\n\n", allowed(knob), knob.name, show(Config{}, knob));
    }
    text.pop_back();
  }
  return text;
}

std::string manual_list() {
  std::string text;
  for (const Table& table : tables()) {
    text += fmt::format(".Ss [{}]\n{}\n.Bl -tag -width Ds\n", table.name, table.sentence);
    for (const Knob& knob : knobs()) {
      if (knob.table != table.name) continue;
      text += fmt::format(".It Cm {} = {}\n{}Allowed: {}.\n", knob.name, macro_argument(show(Config{}, knob)),
                          one_sentence_a_line(knob.sentence), allowed(knob));
    }
    text += ".El\n";
  }
  return text;
}

std::string wrapped(std::string_view text, std::string_view indent, std::size_t columns) {
  std::string lines;
  std::string line(indent);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    const bool first = line.size() == indent.size();
    if (!first && line.size() + 1 + word.size() > columns) {
      lines += line + "\n";
      line = indent;
    } else if (!first) {
      line += ' ';
    }
    line += word;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines + line + "\n";
}

}  // namespace verbatim::config
