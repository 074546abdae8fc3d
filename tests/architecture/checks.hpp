// One check per kind of rule. Each judges a whole tree and returns a sentence per violation, with file and line.
#pragma once

#include <string>
#include <vector>

#include "architecture/tree.hpp"

namespace verbatim::architecture {

using Violations = std::vector<std::string>;

// Includes point down, and only some floors see verbs.
[[nodiscard]] Violations check_floors(const Tree& tree);

// A source in a place for which no floor speaks would be free of every rule.
[[nodiscard]] Violations check_every_source_has_a_floor(const Tree& tree);

// No clock, randomness, thread or sleep in protocol code.
[[nodiscard]] Violations check_protocol_code(const Tree& tree);

// No text speaks of a developer's machine or of an issue's number.
[[nodiscard]] Violations check_texts(const Tree& tree);

// What a Markdown file links to is there. Where a link leaves the project, nothing is asked of it.
[[nodiscard]] Violations check_links(const Tree& tree);

}  // namespace verbatim::architecture
