#include "device/sysfs.hpp"

#include <charconv>
#include <fstream>

namespace verbatim::device {

std::optional<std::string> read_line(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  if (!std::getline(stream, line)) return std::nullopt;
  return line;
}

std::optional<std::uint64_t> read_number(const std::filesystem::path& file) {
  const auto line = read_line(file);
  if (!line) return std::nullopt;
  std::uint64_t number = 0;
  const auto* const end = line->data() + line->size();
  const auto [rest, problem] = std::from_chars(line->data(), end, number);
  if (problem != std::errc{} || rest != end) return std::nullopt;
  return number;
}

}  // namespace verbatim::device
