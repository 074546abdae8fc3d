#include "base/config/toml_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.hpp"

namespace verbatim::config {
namespace {

template <typename Parse>
toml::table parsed(const std::string& name, Parse parse) {
  try {
    return parse();
  } catch (const toml::parse_error& error) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}:{}: {}", name, error.source().begin.line, error.description()));
  }
}

}  // namespace

TomlFile TomlFile::read(std::string_view wish, const std::string& path) {
  if (::access(path.c_str(), R_OK) != 0) {
    throw Error(ErrorCode::not_found, fmt::format("{}: {} can't be read: {}", wish, path, std::strerror(errno)));
  }
  // It would open, and look like an empty file.
  if (std::filesystem::is_directory(path)) {
    throw Error(ErrorCode::not_found, fmt::format("{}: {} is a directory; name a file in it", wish, path));
  }
  // A pipe would be waited for, and a device may have no end; /dev/null is a well known name of nothing.
  if (!std::filesystem::is_regular_file(path) && path != "/dev/null") {
    throw Error(ErrorCode::not_found, fmt::format("{}: {} is no regular file; name one", wish, path));
  }
  toml::table root = parsed(path, [&] { return toml::parse_file(path); });
  return {path, std::move(root)};
}

TomlFile TomlFile::parse(std::string name, std::string_view text) {
  toml::table root = parsed(name, [&] { return toml::parse(text); });
  return {std::move(name), std::move(root)};
}

Value TomlFile::value_of(std::string_view name, const toml::node& node) const {
  Value value{place(node), std::string(name), {}};
  if (const auto* text = node.as_string()) {
    value.text = text->get();
  } else if (const auto* number = node.as_integer()) {
    value.text = fmt::format("{}", number->get());
  } else if (const auto* real = node.as_floating_point()) {
    value.text = fmt::format("{}", real->get());
  } else if (const auto* flag = node.as_boolean()) {
    value.text = flag->get() ? "true" : "false";
  } else {
    value.text = "neither text nor number";
    refuse(value, "one value");
  }
  return value;
}

}  // namespace verbatim::config
