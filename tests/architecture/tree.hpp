// The files of the project as one value, so that a rule is checked alike on the real ones and on a sample in memory.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace verbatim::architecture {

// Path from the root ("src/base/ids.hpp") to text. A binary file has no text, but is there.
using Tree = std::map<std::string, std::string>;

// What belongs to the project: neither build folders nor hidden ones (.ci, which is tracked, excepted).
[[nodiscard]] Tree read_tree(const std::filesystem::path& root);

// "src/qp/**": every file below src/qp. "src/device/*": files in that very folder. Anything else: that file.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view path);

// Whether `path` is a file of the tree, or a folder that has some.
[[nodiscard]] bool exists(const Tree& tree, const std::string& path);

}  // namespace verbatim::architecture
