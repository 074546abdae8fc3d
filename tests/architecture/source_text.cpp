#include "architecture/source_text.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace verbatim::architecture {
namespace {

bool is_identifier(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

int line_at(std::string_view text, std::size_t position) {
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(position), '\n'));
}

// Where the string or character literal that starts at `start` (its opening quote) has its closing quote.
std::size_t end_of_literal(std::string_view text, std::size_t start) {
  std::size_t at = start + 1;
  while (at < text.size() && text[at] != text[start] && text[at] != '\n') at += text[at] == '\\' ? 2 : 1;
  return at;
}

// As above for R"delimiter(…)delimiter".
std::size_t end_of_raw_literal(std::string_view text, std::size_t start) {
  const std::size_t open = text.find('(', start);
  if (open == std::string_view::npos) return text.size();
  const std::string closing = ")" + std::string(text.substr(start + 1, open - start - 1)) + "\"";
  const std::size_t end = text.find(closing, open);
  return end == std::string_view::npos ? text.size() : end + closing.size() - 1;
}

bool starts_literal(std::string_view text, std::size_t at) {
  if (text[at] == '"') return true;
  // In 1'000 it separates digits.
  return text[at] == '\'' && (at == 0 || std::isxdigit(static_cast<unsigned char>(text[at - 1])) == 0);
}

std::string_view line_from(std::string_view text, std::size_t start) {
  return text.substr(start, std::min(text.find('\n', start), text.size()) - start);
}

}  // namespace

std::string code_only(std::string_view text) {
  std::string code(text);
  const auto blank = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < std::min(to, code.size()); ++i) {
      if (code[i] != '\n') code[i] = ' ';
    }
    return std::min(to, code.size());
  };
  std::size_t at = 0;
  while (at < text.size()) {
    if (text.substr(at, 2) == "//") {
      at = blank(at, text.find('\n', at));
    } else if (text.substr(at, 2) == "/*") {
      const std::size_t end = text.find("*/", at + 2);
      at = blank(at, end == std::string_view::npos ? text.size() : end + 2);
    } else if (starts_literal(text, at)) {
      const bool raw = text[at] == '"' && at > 0 && text[at - 1] == 'R';
      at = blank(at + 1, raw ? end_of_raw_literal(text, at) : end_of_literal(text, at)) + 1;
    } else {
      ++at;
    }
  }
  return code;
}

std::vector<Include> includes_of(std::string_view text) {
  static constexpr std::string_view blanks = " \t";
  std::vector<Include> includes;
  const std::string code = code_only(text);
  int number = 0;
  for (std::size_t start = 0; start < text.size(); start += line_from(text, start).size() + 1) {
    ++number;
    const std::string_view line = line_from(text, start);
    // Whether it is a directive is asked of the code, what it names of the text.
    const std::size_t hash = line_from(code, start).find_first_not_of(blanks);
    if (hash == std::string_view::npos || line[hash] != '#') continue;
    const std::size_t word = line.find_first_not_of(blanks, hash + 1);
    if (word == std::string_view::npos || !line.substr(word).starts_with("include")) continue;
    const std::size_t open = line.find_first_of("<\"", word);
    if (open == std::string_view::npos) continue;
    const std::size_t close = line.find(line[open] == '<' ? '>' : '"', open + 1);
    if (close == std::string_view::npos) continue;
    includes.push_back({std::string(line.substr(open + 1, close - open - 1)), line[open] == '"', number});
  }
  return includes;
}

std::vector<int> lines_with_word(std::string_view code, std::string_view word) {
  std::vector<int> lines;
  for (std::size_t at = code.find(word); at != std::string_view::npos; at = code.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool starts = at == 0 || !is_identifier(code[at - 1]) || !is_identifier(word.front());
    const bool ends = end == code.size() || !is_identifier(code[end]) || !is_identifier(word.back());
    if (starts && ends) lines.push_back(line_at(code, at));
  }
  return lines;
}

}  // namespace verbatim::architecture
