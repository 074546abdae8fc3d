#include "base/config/environment.hpp"

#include <unistd.h>

#include <cctype>

namespace verbatim::config {

Environment environment_of_this_process() {
  Environment environment;
  // A process may have cleared it.
  if (::environ == nullptr) return environment;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

std::string_view find(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string_view{} : found->second;
}

std::string in_capitals(std::string_view name) {
  std::string capitals;
  for (const char letter : name) capitals += static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return capitals;
}

}  // namespace verbatim::config
