#include "base/config/load.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/config/knobs.hpp"
#include "base/config/profiles.hpp"
#include "base/config/toml_file.hpp"
#include "base/error.hpp"
#include "base/log.hpp"

namespace verbatim::config {
namespace {

constexpr std::string_view variable_prefix = "VERBATIM_";
constexpr std::string_view profile_key = "profile";
// Tables of the same file that others read.
constexpr std::string_view tables_of_others[] = {"soft"};
// Variables that others read: the log, the soft device, the project's own tests.
constexpr std::string_view prefixes_of_others[] = {"VERBATIM_LOG",     "VERBATIM_SOFT_", "VERBATIM_TEST_",
                                                   "VERBATIM_VM_",     "VERBATIM_FUZZ_", "VERBATIM_PROCESS_",
                                                   "VERBATIM_REWRITE_"};

Names names_of_knobs() {
  Names names;
  for (const Knob& knob : knobs()) names.push_back(full_name(knob));
  return names;
}

Names names_at_top() {
  Names names = names_of_knobs();
  for (const Table& table : tables()) names.emplace_back(table.name);
  for (const std::string_view table : tables_of_others) names.emplace_back(table);
  names.emplace_back(profile_key);
  return names;
}

Names names_of_variables() {
  Names names = {std::string(config_variable), std::string(system_config_variable), std::string(profile_variable)};
  for (const Knob& knob : knobs()) names.push_back(variable_of(knob));
  return names;
}

bool is_table(std::string_view name) {
  return std::any_of(tables().begin(), tables().end(), [&](const Table& table) { return table.name == name; });
}

template <typename Texts>
bool contains(const Texts& texts, std::string_view text) {
  return std::find(std::begin(texts), std::end(texts), text) != std::end(texts);
}

bool belongs_to_others(std::string_view variable) {
  if (variable == config_variable || variable == system_config_variable || variable == profile_variable) return true;
  return std::any_of(std::begin(prefixes_of_others), std::end(prefixes_of_others),
                     [&](std::string_view prefix) { return variable.starts_with(prefix); });
}

// Where the user's file lies unless somebody names one; empty if there is no such place.
std::string default_user_config(const Environment& environment) {
  const std::string_view folder = find(environment, "XDG_CONFIG_HOME");
  // A relative one is to be ignored (XDG Base Directory Specification).
  if (folder.starts_with('/')) return fmt::format("{}/verbatim.toml", folder);
  const std::string_view home = find(environment, "HOME");
  return home.empty() ? std::string{} : fmt::format("{}/.config/verbatim.toml", home);
}

class Loader {
 public:
  Loader(const ConfigSources& sources, const Environment& environment, const Warn& warn)
      : sources_(sources), environment_(environment), warn_(warn) {
    loaded_.origins.resize(knobs().size());
  }

  LoadedConfig run() {
    const std::optional<TomlFile> system = system_file();
    const std::optional<TomlFile> user = user_file();
    apply_profile(chosen_profile(system, user));
    if (system) apply(*system, ConfigOrigin::system_file);
    if (user) apply(*user, ConfigOrigin::user_file);
    apply_environment();
    apply_overrides();
    return std::move(loaded_);
  }

 private:
  void complain(const std::string& sentence) const {
    if (sources_.strict) throw Error(ErrorCode::invalid_argument, sentence);
    warn_(sentence);
  }

  // -- files -------------------------------------------------------------------------------------------------------

  [[nodiscard]] std::optional<TomlFile> system_file() const {
    const std::string_view named = find(environment_, std::string(system_config_variable));
    if (!named.empty()) return TomlFile::read(system_config_variable, std::string(named));
    return file_if_there(std::string(default_system_config));
  }

  [[nodiscard]] std::optional<TomlFile> user_file() const {
    if (!sources_.file.empty()) return TomlFile::read("configuration file", sources_.file);
    const std::string_view named = find(environment_, std::string(config_variable));
    if (!named.empty()) return TomlFile::read(config_variable, std::string(named));
    const std::string path = default_user_config(environment_);
    return path.empty() ? std::nullopt : file_if_there(path);
  }

  // Nobody asked for this one, so its absence is nothing, and a folder that is closed to us no reason to stop.
  [[nodiscard]] std::optional<TomlFile> file_if_there(const std::string& path) const {
    if (::access(path.c_str(), R_OK) == 0) return TomlFile::read("configuration file", path);
    if (errno != ENOENT && errno != ENOTDIR) {
      complain(fmt::format("{} can't be read, so it changes nothing: {}", path, std::strerror(errno)));
    }
    return std::nullopt;
  }

  void apply(const TomlFile& file, ConfigOrigin from) {
    for (const auto& [key, node] : file.root()) {
      const std::string_view name = key.str();
      if (name == profile_key || contains(tables_of_others, name)) continue;
      if (!is_table(name)) {
        complain(unknown_name(file.place(key), name, names_at_top()));
      } else if (const auto* table = node.as_table()) {
        apply_table(file, name, *table, from);
      } else {
        refuse({file.place(key), std::string(name), "something else"},
               fmt::format("a table that begins with [{}]", name));
      }
    }
  }

  void apply_table(const TomlFile& file, std::string_view table, const toml::table& values, ConfigOrigin from) {
    for (const auto& [key, node] : values) {
      const std::string name = fmt::format("{}.{}", table, key.str());
      if (const Knob* knob = find_knob(table, key.str())) {
        apply_value(*knob, file.value_of(name, node), from, file.place(key));
      } else {
        complain(unknown_name(file.place(key), name, names_of_knobs()));
      }
    }
  }

  // -- the profile -------------------------------------------------------------------------------------------------

  // The strongest wish: the program's, the environment's, the user's file's, the system's file's.
  [[nodiscard]] Value chosen_profile(const std::optional<TomlFile>& system, const std::optional<TomlFile>& user) const {
    if (!sources_.profile.empty()) return {"program", std::string(profile_key), sources_.profile};
    const std::string_view wish = find(environment_, std::string(profile_variable));
    if (!wish.empty()) return {std::string(environment_place), std::string(profile_variable), std::string(wish)};
    for (const auto* file : {&user, &system}) {
      if (!*file) continue;
      if (const toml::node* node = (*file)->root().get(profile_key)) return (*file)->value_of(profile_key, *node);
    }
    return {};
  }

  void apply_profile(const Value& wish) {
    const std::string_view name = trim(wish.text);
    if (name.empty()) return;
    Names known;
    for (const Profile& profile : profiles()) {
      known.emplace_back(profile.name);
      if (profile.name != name) continue;
      loaded_.profile = name;
      return apply(TomlFile::parse(fmt::format("{}.toml", name), profile.text), ConfigOrigin::profile);
    }
    throw Error(ErrorCode::not_found,
                fmt::format("{}: {} is '{}'; there are {}", wish.where, wish.name, wish.text, fmt::join(known, ", ")));
  }

  // -- the environment and the program -------------------------------------------------------------------------------

  void apply_environment() {
    for (const auto& [name, text] : environment_) {
      if (!name.starts_with(variable_prefix) || belongs_to_others(name)) continue;
      const auto knob = std::find_if(knobs().begin(), knobs().end(), [&, &variable = name](const Knob& known) {
        return variable_of(known) == variable;
      });
      if (knob != knobs().end()) {
        apply_value(*knob, {std::string(environment_place), name, text}, ConfigOrigin::environment, name);
      } else {
        complain(unknown_name(environment_place, name, names_of_variables()));
      }
    }
  }

  // Whoever writes one of these is there to correct it, so a wrong name is an error even outside of strict mode.
  void apply_overrides() {
    constexpr std::string_view where = "override";
    for (const std::string& text : sources_.overrides) {
      const std::size_t equals = text.find('=');
      if (equals == std::string::npos) {
        refuse({std::string(where), "the text", text}, "table.name=value, such as rc.receive_depth=256");
      }
      const std::string name(trim(std::string_view(text).substr(0, equals)));
      const auto knob =
          std::find_if(knobs().begin(), knobs().end(), [&](const Knob& known) { return full_name(known) == name; });
      if (knob == knobs().end()) {
        throw Error(ErrorCode::invalid_argument, unknown_name(where, name, names_of_knobs()));
      }
      apply_value(*knob, {std::string(where), name, text.substr(equals + 1)}, ConfigOrigin::program, text);
    }
  }

  void apply_value(const Knob& knob, const Value& value, ConfigOrigin from, const std::string& place) {
    set(loaded_.config, knob, value);
    loaded_.origins[static_cast<std::size_t>(&knob - knobs().data())] = {from, place};
  }

  const ConfigSources& sources_;
  const Environment& environment_;
  const Warn& warn_;
  LoadedConfig loaded_;
};

}  // namespace

LoadedConfig load(const ConfigSources& sources, const Environment& environment, const Warn& warn) {
  return Loader(sources, environment, warn).run();
}

}  // namespace verbatim::config

namespace verbatim {

const char* to_string(ConfigOrigin origin) {
  switch (origin) {
    case ConfigOrigin::built_in:
      return "built in";
    case ConfigOrigin::profile:
      return "profile";
    case ConfigOrigin::system_file:
      return "system file";
    case ConfigOrigin::user_file:
      return "user file";
    case ConfigOrigin::environment:
      return "environment";
    case ConfigOrigin::program:
      return "program";
  }
  return "unknown";
}

Config load_config(const ConfigSources& sources) {
  return config::load(sources, config::environment_of_this_process(),
                      [](const std::string& sentence) { log().warn("{}", sentence); })
      .config;
}

}  // namespace verbatim
