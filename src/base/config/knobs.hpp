// Every knob of the library: one row each. The parser, conf/verbatim.toml, verbatim.toml(5), verbatim-info --config and
// the names in the environment come from here; a knob's default is what include/verbatim/config.hpp gives its member.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/config/value.hpp"
#include "verbatim/config.hpp"

namespace verbatim::config {

// What a knob may be. A std::int32_t is -1 for "auto", else a number.
using Member = std::variant<bool*, std::uint8_t*, std::uint16_t*, std::uint32_t*, std::uint64_t*, std::int32_t*,
                            Duration*, std::string*, Switch*, WaitMode*>;

struct Table {
  std::string_view name;
  std::string_view sentence;  // what its knobs are about
};
[[nodiscard]] std::span<const Table> tables();

struct Knob {
  std::string_view table;
  std::string_view name;
  Member (*member)(Config&);
  Range range;  // of numbers and durations; of texts, their length
  Unit unit;
  std::string_view sentence;  // what it is, and when to change it
};

// In the order of Config's members, those of a table next to each other.
[[nodiscard]] std::span<const Knob> knobs();
// nullptr if nobody knows it.
[[nodiscard]] const Knob* find_knob(std::string_view table, std::string_view name);

// "rc.receive_depth"
[[nodiscard]] std::string full_name(const Knob& knob);
// "VERBATIM_RC_RECEIVE_DEPTH"
[[nodiscard]] std::string variable_of(const Knob& knob);

// Throws as the readers of value.hpp.
void set(Config& config, const Knob& knob, const Value& value);
// The member as TOML writes it: 128, "8KiB", true.
[[nodiscard]] std::string show(Config config, const Knob& knob);
// The same as people and the environment write it, without quotes.
[[nodiscard]] std::string show_bare(const Config& config, const Knob& knob);
// What is allowed, in words: "2 to 32768", "poll, event, adaptive".
[[nodiscard]] std::string allowed(const Knob& knob);

}  // namespace verbatim::config
