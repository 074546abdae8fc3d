// verbatim-perf: what messages, puts and gets cost. See verbatim-perf(1).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/error.hpp"
#include "options.hpp"
#include "output.hpp"
#include "session.hpp"

namespace {

using verbatim::perf::Format;
using verbatim::perf::Mode;
using verbatim::perf::Options;
using verbatim::perf::Results;

constexpr int status_failed = 1;
constexpr int status_wrong_use = 64;

int complain(const std::string& sentence, int status) {
  fmt::print(stderr, "verbatim-perf: {}\n", sentence);
  return status;
}

void write(std::FILE* file, const std::string& text, const std::string& name) {
  if (file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0)
    return;
  throw verbatim::Error(verbatim::ErrorCode::no_space, fmt::format("can't write {}: {}", name, std::strerror(errno)));
}

std::string formatted(const Results& results, Format format) {
  switch (format) {
    case Format::json:
      return to_json(results);
    case Format::csv:
      return to_csv(results);
    case Format::table:
      break;
  }
  return to_table(results);
}

void run(const Options& options) {
  if (options.mode == Mode::listen) return verbatim::perf::be_measured(options);
  // Before anything is measured, so that a file that can't be written is known at once.
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> plot(nullptr, std::fclose);
  if (!options.plot.empty()) {
    plot.reset(std::fopen(options.plot.c_str(), "w"));
    write(plot.get(), "", options.plot);
  }
  const Results results = options.mode == Mode::local ? verbatim::perf::measure_locally(options)
                                                      : verbatim::perf::measure_remotely(options);
  if (plot) write(plot.get(), to_svg(results), options.plot);
  write(stdout, formatted(results, options.format), "to standard output");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(verbatim::perf::parse_options(argc, argv));
    return EXIT_SUCCESS;
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", verbatim::perf::usage());
    return EXIT_SUCCESS;
  } catch (const CLI::CallForVersion& version) {
    fmt::print("{}\n", version.what());
    return EXIT_SUCCESS;
  } catch (const CLI::ParseError& error) {
    return complain(fmt::format("{}; see verbatim-perf --help", error.what()), status_wrong_use);
  } catch (const verbatim::Error& error) {
    const bool wrong_use = error.code() == verbatim::ErrorCode::invalid_argument;
    return complain(error.what(), wrong_use ? status_wrong_use : status_failed);
  } catch (const std::exception& error) {
    return complain(error.what(), status_failed);
  }
}
