// The profiles that come with the library: the files of conf/profiles, built in, so that an installed library has them.
#pragma once

#include <span>
#include <string_view>

namespace verbatim::config {

struct Profile {
  std::string_view name;
  std::string_view text;  // TOML, as a configuration file
};
[[nodiscard]] std::span<const Profile> profiles();

}  // namespace verbatim::config
