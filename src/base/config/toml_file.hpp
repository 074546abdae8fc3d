// A TOML text whose values know the file and line they stand in.
#pragma once

#include <toml++/toml.h>

#include <string>
#include <string_view>

#include "base/config/value.hpp"

namespace verbatim::config {

class TomlFile {
 public:
  // `wish` is who asks for the file, such as the name of a variable. Throws Error: not_found for a file that can't be
  // read, invalid_argument with the line of what isn't TOML, of which a key given twice is a case.
  [[nodiscard]] static TomlFile read(std::string_view wish, const std::string& path);
  // A text that comes with the library; `name` stands for its path.
  [[nodiscard]] static TomlFile parse(std::string name, std::string_view text);

  [[nodiscard]] const toml::table& root() const { return root_; }

  // "verbatim.toml:12", of a node or a key.
  template <typename Node>
  [[nodiscard]] std::string place(const Node& node) const {
    return name_ + ":" + std::to_string(node.source().begin.line);
  }
  // A scalar of any type as text; what it means is for the knob to say. Anything else is refused.
  [[nodiscard]] Value value_of(std::string_view name, const toml::node& node) const;

 private:
  TomlFile(std::string name, toml::table root) : name_(std::move(name)), root_(std::move(root)) {}

  std::string name_;
  toml::table root_;
};

}  // namespace verbatim::config
