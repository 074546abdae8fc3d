#include "mem/mappings.hpp"

#include <charconv>
#include <fstream>
#include <string>

namespace verbatim::mem {
namespace {

// The word at the front, which is taken off together with the blanks behind it.
std::string_view next_word(std::string_view& text) {
  const auto end = std::min(text.find(' '), text.size());
  const auto word = text.substr(0, end);
  text.remove_prefix(std::min(text.find_first_not_of(' ', end), text.size()));
  return word;
}

bool parse_hexadecimal(std::string_view text, std::uintptr_t& number) {
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  return problem == std::errc{} && rest == text.data() + text.size();
}

}  // namespace

std::optional<MappingLine> parse_mapping_line(std::string_view line) {
  const auto addresses = next_word(line);
  const auto rights = next_word(line);
  next_word(line);  // offset
  next_word(line);  // device
  const auto inode = next_word(line);
  MappingLine mapping;
  const auto dash = addresses.find('-');
  if (dash == std::string_view::npos || rights.size() != 4 || inode.empty()) return std::nullopt;
  if (!parse_hexadecimal(addresses.substr(0, dash), mapping.range.begin) ||
      !parse_hexadecimal(addresses.substr(dash + 1), mapping.range.end)) {
    return std::nullopt;
  }
  const bool ordinary = line.empty() || line == "[heap]" || line.starts_with("[anon:");
  mapping.private_anonymous = rights[3] == 'p' && inode == "0" && ordinary;
  return mapping;
}

std::optional<AddressRange> find_private_anonymous(const void* address, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const auto end = begin + bytes;
  std::ifstream mappings("/proc/self/maps");
  std::optional<AddressRange> found;
  for (std::string line; std::getline(mappings, line);) {
    const auto mapping = parse_mapping_line(line);
    if (!mapping || mapping->range.end <= begin) continue;
    const std::uintptr_t expected = found ? found->end : begin;
    if (!mapping->private_anonymous || mapping->range.begin > expected) return std::nullopt;
    found = {found ? found->begin : mapping->range.begin, mapping->range.end};
    if (found->end >= end) return found;
  }
  return std::nullopt;
}

}  // namespace verbatim::mem
