// A name that nobody knows, and the known one that was probably meant.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim::config {

using Names = std::vector<std::string>;
using Warn = std::function<void(const std::string& sentence)>;

// "verbatim.toml:3: nobody knows 'rc.recieve_depth', so it changes nothing; did you mean 'rc.receive_depth'?"
// `known` has at least one name.
[[nodiscard]] std::string unknown_name(std::string_view where, std::string_view name, const Names& known);

}  // namespace verbatim::config
