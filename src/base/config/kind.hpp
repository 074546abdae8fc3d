// How a knob of each type is read, shown as TOML and described: what every table of knobs has in common. A table with
// types of its own derives from it and adds overloads.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>

#include "base/config/value.hpp"

namespace verbatim::config {

[[nodiscard]] std::string quoted(std::string_view text);

struct Kind {
  Range range;
  Unit unit = Unit::none;

  void read(bool& to, const Value& value) const { to = read_flag(value); }
  void read(std::string& to, const Value& value) const { to = read_text(value, range); }
  void read(Duration& to, const Value& value) const { to = read_duration(value, range); }
  template <std::unsigned_integral Number>
  void read(Number& to, const Value& value) const {
    to = static_cast<Number>(read_number(value, narrowed<Number>()));
  }

  [[nodiscard]] std::string show(bool value) const { return value ? "true" : "false"; }
  [[nodiscard]] std::string show(const std::string& value) const { return quoted(value); }
  [[nodiscard]] std::string show(Duration value) const;
  template <std::unsigned_integral Number>
  [[nodiscard]] std::string show(Number value) const {
    return show_number(value);
  }

  [[nodiscard]] std::string allowed(bool) const { return "true, false"; }
  [[nodiscard]] std::string allowed(const std::string&) const;
  [[nodiscard]] std::string allowed(Duration) const { return describe(range, Unit::nanoseconds); }
  template <std::unsigned_integral Number>
  [[nodiscard]] std::string allowed(Number) const {
    return describe(range, unit);
  }

 private:
  // No wider than the member, so that nothing is ever truncated.
  template <typename Number>
  [[nodiscard]] Range narrowed() const {
    constexpr std::uint64_t highest = static_cast<Number>(~Number{});
    return {range.least, range.most < highest ? range.most : highest};
  }
  [[nodiscard]] std::uint64_t read_number(const Value& value, Range narrow) const;
  [[nodiscard]] std::string show_number(std::uint64_t value) const;
};

}  // namespace verbatim::config
