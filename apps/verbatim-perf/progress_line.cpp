#include "progress_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/units.hpp"

namespace verbatim::perf {
namespace {

constexpr int line_width = 60;

}  // namespace

ProgressLine::ProgressLine(bool wanted) : terminal_(isatty(STDERR_FILENO) != 0), wanted_(wanted) {}

void ProgressLine::show(std::size_t number, std::size_t points, const Point& point) {
  if (!terminal_ && !wanted_) return;
  const std::string text = fmt::format("point {} of {}: {} {}{}", number, points, traits(point.test).name,
                                       format_size(point.bytes), point.bytes < 1024 ? " B" : "");
  if (terminal_) {
    fmt::print(stderr, "\r{:{}}", text, line_width);
  } else {
    fmt::print(stderr, "{}\n", text);
  }
  std::fflush(stderr);
}

void ProgressLine::clear() {
  if (terminal_) fmt::print(stderr, "\r{:{}}\r", "", line_width);
}

}  // namespace verbatim::perf
