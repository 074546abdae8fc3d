// C++ source as the rules see it: code without comments and literals, and the includes of a file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace verbatim::architecture {

// The same text with comments and the contents of literals replaced by spaces; lines and columns stay where they were.
[[nodiscard]] std::string code_only(std::string_view text);

struct Include {
  std::string path;
  bool quoted = false;  // "path", not <path>
  int line = 0;
};
[[nodiscard]] std::vector<Include> includes_of(std::string_view text);

// The line (from 1) of each place where `word` stands alone in `code`: "rand(" is not found in "operand(".
[[nodiscard]] std::vector<int> lines_with_word(std::string_view code, std::string_view word);

}  // namespace verbatim::architecture
