#include "base/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.hpp"

namespace verbatim {
namespace {

struct DurationUnit {
  std::string_view name;
  Duration length;
};
constexpr std::array duration_units{
    DurationUnit{"min", std::chrono::minutes(1)},     DurationUnit{"s", std::chrono::seconds(1)},
    DurationUnit{"ms", std::chrono::milliseconds(1)}, DurationUnit{"us", std::chrono::microseconds(1)},
    DurationUnit{"ns", std::chrono::nanoseconds(1)},
};

struct SizeUnit {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr std::uint64_t kibi = 1024;
constexpr std::uint64_t mebi = kibi * kibi;
constexpr std::uint64_t gibi = mebi * kibi;
constexpr std::array size_units{
    SizeUnit{"GiB", gibi}, SizeUnit{"G", gibi}, SizeUnit{"g", gibi},   SizeUnit{"MiB", mebi},
    SizeUnit{"M", mebi},   SizeUnit{"m", mebi}, SizeUnit{"KiB", kibi}, SizeUnit{"K", kibi},
    SizeUnit{"k", kibi},   SizeUnit{"B", 1},    SizeUnit{"", 1},
};

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

// Splits "1.5ms" into 1.5 and "ms". No sign, no hexadecimal: both are mistakes here.
bool split(std::string_view text, double& number, std::string_view& unit) {
  const auto trimmed = trim(text);
  const auto [end, problem] =
      std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), number, std::chars_format::fixed);
  if (problem != std::errc{} || !std::isfinite(number) || std::signbit(number)) return false;
  unit = trim(trimmed.substr(static_cast<std::size_t>(end - trimmed.data())));
  return true;
}

}  // namespace

Duration parse_duration(std::string_view what, std::string_view text) {
  double number = 0;
  std::string_view unit;
  if (split(text, number, unit)) {
    for (const auto& known : duration_units) {
      if (unit != known.name) continue;
      const double nanoseconds = number * static_cast<double>(known.length.count());
      if (nanoseconds < static_cast<double>(std::numeric_limits<std::int64_t>::max())) {
        return Duration(static_cast<std::int64_t>(std::llround(nanoseconds)));
      }
    }
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: '{}' is not a duration; write a number and one of ns, us, ms, s, min, such as 640us",
                          what, text));
}

std::uint64_t parse_size(std::string_view what, std::string_view text) {
  double number = 0;
  std::string_view unit;
  if (split(text, number, unit)) {
    for (const auto& known : size_units) {
      if (unit != known.name) continue;
      const double bytes = number * static_cast<double>(known.bytes);
      // Above 2^53 a double no longer holds every byte count; nothing that large is a size here.
      if (bytes <= 0x1p53 && bytes == std::floor(bytes)) return static_cast<std::uint64_t>(bytes);
    }
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: '{}' is not a size; write a whole number of bytes, or of KiB, MiB, GiB, such as 8KiB",
                          what, text));
}

std::string format_duration(Duration duration) {
  if (duration.count() == 0) return "0ns";
  for (const auto& unit : duration_units) {
    if (duration.count() % unit.length.count() == 0) {
      return fmt::format("{}{}", duration.count() / unit.length.count(), unit.name);
    }
  }
  return fmt::format("{}ns", duration.count());
}

std::string format_size(std::uint64_t bytes) {
  if (bytes == 0) return "0";
  for (const auto& unit : size_units) {
    if (unit.name.size() == 3 && bytes % unit.bytes == 0) return fmt::format("{}{}", bytes / unit.bytes, unit.name);
  }
  return fmt::format("{}", bytes);
}

}  // namespace verbatim
