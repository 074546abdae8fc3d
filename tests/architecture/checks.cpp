#include "architecture/checks.hpp"

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string_view>

#include "architecture/rules.hpp"
#include "architecture/source_text.hpp"

namespace verbatim::architecture {
namespace {

bool matches_any(const std::vector<std::string_view>& patterns, std::string_view path) {
  return std::any_of(patterns.begin(), patterns.end(), [&](std::string_view p) { return matches(p, path); });
}

bool is_cpp(std::string_view path) {
  return path.ends_with(".hpp") || path.ends_with(".cpp") || path.ends_with(".h");
}

std::string folder_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().generic_string();
}

std::string at_line(const std::string& path, int line) {
  return path + ":" + std::to_string(line) + ": ";
}

// The project's own file that an include means, or its text as it stands if it is a file of somebody else.
std::string resolve(const Tree& tree, const std::string& includer, const Include& include) {
  for (const std::string& folder : {std::string("src"), std::string("include"), std::string("tests"),
                                    std::string("apps"), std::string("bench"), folder_of(includer)}) {
    std::string path = std::filesystem::path(folder + "/" + include.path).lexically_normal().generic_string();
    if (tree.contains(path)) return path;
  }
  return include.path;
}

template <typename Visit>
void for_each_line(const std::string& text, Visit visit) {
  int number = 0;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    visit(++number, text.substr(start, end - start));
    start = end + 1;
  }
}

}  // namespace

Violations check_floors(const Tree& tree) {
  Violations violations;
  for (const auto& [path, text] : tree) {
    const auto floor =
        std::find_if(floors.begin(), floors.end(), [&, &p = path](const Floor& f) { return matches(f.files, p); });
    if (!is_cpp(path) || floor == floors.end()) continue;
    for (const Include& include : includes_of(text)) {
      const std::string target = resolve(tree, path, include);
      const bool ours = tree.contains(target);
      if (matches(verbs_headers, target) && !matches_any(sees_verbs, path)) {
        violations.push_back(at_line(path, include.line) + "must not see verbs, but includes " + target);
      } else if (ours && !matches_any(floor->may_include, target)) {
        violations.push_back(at_line(path, include.line) + "must not include " + target);
      } else if (!ours && include.quoted) {
        violations.push_back(at_line(path, include.line) + "includes \"" + target + "\", which is not in the project");
      }
    }
  }
  return violations;
}

Violations check_every_source_has_a_floor(const Tree& tree) {
  Violations violations;
  for (const auto& [path, text] : tree) {
    if (!is_cpp(path)) continue;
    if (std::none_of(floors.begin(), floors.end(), [&, &p = path](const Floor& f) { return matches(f.files, p); })) {
      violations.push_back(path + ": lies on no floor");
    }
  }
  return violations;
}

Violations check_protocol_code(const Tree& tree) {
  Violations violations;
  for (const auto& [path, text] : tree) {
    if (!is_cpp(path) || !matches_any(protocol_code, path) || matches_any(edge_code, path)) continue;
    const std::string code = code_only(text);
    for (std::string_view word : not_in_protocol_code) {
      for (int line : lines_with_word(code, word)) {
        violations.push_back(at_line(path, line) + "protocol code must not use " + std::string(word));
      }
    }
    for (const Include& include : includes_of(text)) {
      const std::string target = resolve(tree, path, include);
      if (matches_any(no_include_in_protocol_code, target)) {
        violations.push_back(at_line(path, include.line) + "protocol code must not include " + target);
      }
    }
  }
  return violations;
}

Violations check_texts(const Tree& tree) {
  Violations violations;
  for (const auto& [path, text] : tree) {
    if (matches_any(not_our_text, path)) continue;
    for_each_line(text, [&, &p = path](int number, const std::string& line) {
      for (const Banned& banned : banned_text) {
        std::smatch found;
        if (line.find(banned.sign) == std::string::npos || !std::regex_search(line, found, banned.pattern)) continue;
        violations.push_back(at_line(p, number) + std::string(banned.what) + ": " + found.str());
      }
    });
  }
  return violations;
}

Violations check_links(const Tree& tree) {
  static const std::regex link(R"(\]\(([^)\s]+)[^)]*\))");
  Violations violations;
  for (const auto& [path, text] : tree) {
    if (!path.ends_with(".md")) continue;
    for_each_line(text, [&, &p = path](int number, const std::string& line) {
      for (std::sregex_iterator at(line.begin(), line.end(), link), end; at != end; ++at) {
        const std::string target = (*at)[1].str();
        const std::string file = target.substr(0, target.find('#'));
        if (file.empty() || target.find("://") != std::string::npos || target.starts_with("mailto:")) continue;
        const std::string place = (std::filesystem::path(folder_of(p)) / file).lexically_normal().generic_string();
        if (!exists(tree, place))
          violations.push_back(at_line(p, number) + "links to " + target + ", which is not there");
      }
    });
  }
  return violations;
}

}  // namespace verbatim::architecture
