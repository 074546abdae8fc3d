#include "configuration.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/config/check.hpp"
#include "base/config/knobs.hpp"
#include "base/config/pages.hpp"
#include "base/error.hpp"

namespace verbatim::info {
namespace {

using Json = nlohmann::ordered_json;
using config::Knob;

constexpr std::size_t page_columns = 100;

// As the rest of the report: sizes in bytes, and null where there is no limit. Durations are nanoseconds. What is said
// by a word stays a word.
Json value_of(const Config& config, const Knob& knob) {
  Config copy = config;
  return std::visit(
      [&](const auto* member) -> Json {
        using Type = std::remove_cvref_t<decltype(*member)>;
        if constexpr (std::is_same_v<Type, Config::Duration>) {
          return member->count();
        } else if constexpr (std::is_same_v<Type, std::int32_t>) {
          if (*member >= 0) return *member;
        } else if constexpr (std::is_integral_v<Type>) {
          if constexpr (std::is_same_v<Type, std::uint64_t>) {
            if (*member == config::unlimited) return nullptr;
          }
          return *member;
        }
        return show_bare(config, knob);
      },
      knob.member(copy));
}

const char* name_of(config::Unit unit) {
  switch (unit) {
    case config::Unit::bytes:
      return "bytes";
    case config::Unit::nanoseconds:
      return "ns";
    case config::Unit::none:
    case config::Unit::hexadecimal:
      return nullptr;
  }
  return nullptr;
}

Json as_json(const Configuration& configuration, const Knob& knob, const config::Origin& origin) {
  const char* unit = name_of(knob.unit);
  return {{"value", value_of(configuration.loaded.config, knob)},
          {"unit", unit == nullptr ? Json(nullptr) : Json(unit)},
          {"origin", to_string(origin.from)},
          {"place", origin.place.empty() ? Json(nullptr) : Json(origin.place)},
          {"default", value_of(Config{}, knob)},
          {"allowed", allowed(knob)},
          {"variable", variable_of(knob)},
          {"reason", knob.sentence}};
}

std::string entry(const Configuration& configuration, const Knob& knob, const config::Origin& origin) {
  const std::string origin_text =
      origin.place.empty() ? to_string(origin.from) : fmt::format("{}, {}", to_string(origin.from), origin.place);
  return fmt::format("{} = {}\n    from: {}; default: {}; allowed: {}\n{}", full_name(knob),
                     show(configuration.loaded.config, knob), origin_text, show(Config{}, knob), allowed(knob),
                     config::wrapped(knob.sentence, "    ", page_columns));
}

template <typename Visit>
void for_each_knob(const Configuration& configuration, Visit visit) {
  auto origin = configuration.loaded.origins.begin();
  for (const Knob& knob : config::knobs()) visit(knob, *origin++);
}

}  // namespace

Configuration read_configuration(const ConfigSources& sources, const config::Environment& environment) {
  Configuration configuration;
  const auto warn = [&](const std::string& sentence) { configuration.warnings.push_back(sentence); };
  configuration.loaded = config::load(sources, environment, warn);
  for (const std::string& doubt : config::doubts(configuration.loaded.config)) warn(doubt);
  try {
    config::refuse_what_is_wrong(configuration.loaded.config);
  } catch (const Error& error) {
    configuration.refusal = error.what();
  }
  return configuration;
}

std::string to_text(const Configuration& configuration) {
  const std::string& profile = configuration.loaded.profile;
  std::string text = fmt::format("Profile: {}\n", profile.empty() ? "none" : profile);
  for (const std::string& warning : configuration.warnings) text += fmt::format("Warning: {}\n", warning);
  for_each_knob(configuration, [&](const Knob& knob, const config::Origin& origin) {
    text += "\n" + entry(configuration, knob, origin);
  });
  return text;
}

std::string to_json(const Configuration& configuration) {
  Json knobs = Json::object();
  for_each_knob(configuration, [&](const Knob& knob, const config::Origin& origin) {
    knobs[full_name(knob)] = as_json(configuration, knob, origin);
  });
  const std::string& profile = configuration.loaded.profile;
  const Json json = {{"version", VERBATIM_VERSION},
                     {"profile", profile.empty() ? Json(nullptr) : Json(profile)},
                     {"warnings", configuration.warnings},
                     {"refusal", configuration.refusal.empty() ? Json(nullptr) : Json(configuration.refusal)},
                     {"config", knobs}};
  // Text of a file or a variable need not be UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace verbatim::info
