#include "base/config/knobs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/config/environment.hpp"
#include "base/config/kind.hpp"

namespace verbatim::config {
namespace {

constexpr Name<Switch> switch_names[] = {{"auto", Switch::automatic}, {"on", Switch::on}, {"off", Switch::off}};
constexpr Name<WaitMode> wait_names[] = {
    {"poll", WaitMode::poll}, {"event", WaitMode::event}, {"adaptive", WaitMode::adaptive}};
constexpr std::string_view automatic = "auto";

struct LibraryKind : Kind {
  using Kind::allowed;
  using Kind::read;
  using Kind::show;

  void read(std::int32_t& to, const Value& value) const {
    if (trim(value.text) == automatic) {
      to = -1;
    } else if (trim(value.text).starts_with('-')) {
      refuse(value, allowed(to));
    } else {
      to = static_cast<std::int32_t>(read_count(value, range));
    }
  }
  static void read(Switch& to, const Value& value) { to = read_name<Switch>(value, switch_names); }
  static void read(WaitMode& to, const Value& value) { to = read_name<WaitMode>(value, wait_names); }

  static std::string show(std::int32_t value) { return value == -1 ? quoted(automatic) : std::to_string(value); }
  static std::string show(Switch value) { return quoted(show_name<Switch>(value, switch_names)); }
  static std::string show(WaitMode value) { return quoted(show_name<WaitMode>(value, wait_names)); }

  [[nodiscard]] std::string allowed(std::int32_t) const {
    return fmt::format("{}, {}", automatic, describe(range, Unit::none));
  }
  static std::string allowed(Switch) { return list(switch_names); }
  static std::string allowed(WaitMode) { return list(wait_names); }
};

LibraryKind kind_of(const Knob& knob) {
  return {{knob.range, knob.unit}};
}

}  // namespace

const Knob* find_knob(std::string_view table, std::string_view name) {
  const auto found = std::find_if(knobs().begin(), knobs().end(),
                                  [&](const Knob& knob) { return knob.table == table && knob.name == name; });
  return found == knobs().end() ? nullptr : &*found;
}

std::string full_name(const Knob& knob) {
  return fmt::format("{}.{}", knob.table, knob.name);
}

std::string variable_of(const Knob& knob) {
  return in_capitals(fmt::format("verbatim_{}_{}", knob.table, knob.name));
}

void set(Config& config, const Knob& knob, const Value& value) {
  std::visit([&](auto* member) { kind_of(knob).read(*member, value); }, knob.member(config));
}

std::string show(Config config, const Knob& knob) {
  return std::visit([&](const auto* member) { return kind_of(knob).show(*member); }, knob.member(config));
}

std::string show_bare(const Config& config, const Knob& knob) {
  std::string text = show(config, knob);
  return text.starts_with('"') ? text.substr(1, text.size() - 2) : text;
}

std::string allowed(const Knob& knob) {
  Config config;
  return std::visit([&](const auto* member) { return kind_of(knob).allowed(*member); }, knob.member(config));
}

}  // namespace verbatim::config
