// The command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "test_kind.hpp"
#include "verbatim/config.hpp"

namespace verbatim::perf {

inline constexpr std::uint64_t max_bytes = 16ULL << 30;  // of a message
inline constexpr std::uint64_t max_iterations = 10'000'000;
inline constexpr std::uint32_t max_window = 4096;
inline constexpr Duration max_duration = std::chrono::seconds(60);

enum class Mode : std::uint8_t { local, listen, connect };
enum class Format : std::uint8_t { table, json, csv };

struct Options {
  Mode mode = Mode::local;
  std::string address;  // to listen on, or to connect to

  std::vector<TestKind> tests;       // never empty
  std::vector<std::uint64_t> sizes;  // empty: each test's own
  std::uint32_t window = 64;
  Duration warm_up = std::chrono::milliseconds(20);  // at least, before each point
  Duration duration = std::chrono::milliseconds(200);
  std::optional<std::uint64_t> iterations;  // instead of a duration
  bool check = false;

  // Local: those of both sides, or empty. Otherwise that of this side, or empty.
  std::vector<int> cores;
  ConfigSources config;

  Format format = Format::table;
  std::string plot;  // file, or empty
  bool progress = false;
};

// Throws CLI::Success for --help and --version, CLI::ParseError and Error(invalid_argument) for wrong use.
[[nodiscard]] Options parse_options(int argc, const char* const* argv);
// What --help prints.
[[nodiscard]] std::string usage();

// "1:4MiB": powers of two times the first, and the last. Throws Error(invalid_argument).
[[nodiscard]] std::vector<std::uint64_t> parse_size_range(const std::string& text);

}  // namespace verbatim::perf
