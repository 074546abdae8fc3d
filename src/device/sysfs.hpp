// Small files in which the kernel says one thing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace verbatim::device {

// The first line without its end. Nothing where there is no such file or it can't be read.
[[nodiscard]] std::optional<std::string> read_line(const std::filesystem::path& file);

// A decimal number and nothing else; nothing where the file says anything else, "-1" included.
[[nodiscard]] std::optional<std::uint64_t> read_number(const std::filesystem::path& file);

}  // namespace verbatim::device
