#include "architecture/tree.hpp"

#include <fstream>
#include <iterator>

namespace verbatim::architecture {
namespace {

bool is_outside(const std::string& folder) {
  return folder.starts_with("build") || (folder.starts_with(".") && folder != ".ci");
}

std::string read_text(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (text.find('\0') != std::string::npos) text.clear();
  return text;
}

}  // namespace

Tree read_tree(const std::filesystem::path& root) {
  Tree tree;
  for (auto at = std::filesystem::recursive_directory_iterator(root); at != std::filesystem::end(at); ++at) {
    if (at->is_directory() && is_outside(at->path().filename().string())) {
      at.disable_recursion_pending();
    } else if (at->is_regular_file()) {
      tree.emplace(at->path().lexically_relative(root).generic_string(), read_text(at->path()));
    }
  }
  return tree;
}

bool matches(std::string_view pattern, std::string_view path) {
  if (pattern.ends_with("**")) return path.starts_with(pattern.substr(0, pattern.size() - 2));
  if (!pattern.ends_with('*')) return path == pattern;
  const std::string_view folder = pattern.substr(0, pattern.size() - 1);
  return path.starts_with(folder) && path.find('/', folder.size()) == std::string_view::npos;
}

bool exists(const Tree& tree, const std::string& path) {
  if (tree.contains(path)) return true;
  const std::string folder = path.ends_with('/') ? path : path + '/';
  const auto next = tree.lower_bound(folder);
  return next != tree.end() && next->first.starts_with(folder);
}

}  // namespace verbatim::architecture
