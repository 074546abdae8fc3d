// The knobs as people read them: conf/verbatim.toml and the list of verbatim.toml(5), both made from the rows.
#pragma once

#include <string>
#include <string_view>

namespace verbatim::config {

// The text of conf/verbatim.toml: every knob with its default, range and meaning, commented out, so that a copy of it
// changes nothing, not even a profile's choice.
[[nodiscard]] std::string sample_file();

// The list of every knob for mdoc(7).
[[nodiscard]] std::string manual_list();

// Breaks between words into lines of at most `columns`, each with `indent` in front and a newline behind.
[[nodiscard]] std::string wrapped(std::string_view text, std::string_view indent, std::size_t columns);

}  // namespace verbatim::config
