// What is mapped where in this process, as /proc/self/maps says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace verbatim::mem {

struct AddressRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;  // behind the last byte
  friend constexpr bool operator==(const AddressRange&, const AddressRange&) = default;
};

struct MappingLine {
  AddressRange range;
  bool private_anonymous = false;  // nobody else can change its pages: no file, not shared, not a stack
};

// A line that describes a mapping (proc(5), /proc/pid/maps and the first line of each in smaps); nothing for any other.
[[nodiscard]] std::optional<MappingLine> parse_mapping_line(std::string_view line);

// All of the mappings that the bytes lie in, if they are next to each other and private and anonymous, all of them.
[[nodiscard]] std::optional<AddressRange> find_private_anonymous(const void* address, std::size_t bytes);

}  // namespace verbatim::mem
