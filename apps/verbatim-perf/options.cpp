#include "options.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <CLI/CLI.hpp>

#include "base/config/value.hpp"
#include "base/error.hpp"
#include "base/units.hpp"

namespace verbatim::perf {
namespace {

// As they stand on the command line, before they get units.
struct Texts {
  std::vector<std::string> tests;
  std::vector<std::string> sizes;
  std::vector<std::string> cores;
  std::string size_range;
  std::string duration = "200ms";
  std::string warm_up = "20ms";
  std::string wait;
  std::string device;
  bool local = false;
  bool json = false;
  bool csv = false;
};

struct ModeOptions {
  CLI::Option* local;
  CLI::Option* listen;
  CLI::Option* connect;
};

ModeOptions describe_modes(CLI::App& app, Options& options, Texts& texts) {
  ModeOptions modes{
      app.add_flag("--local", texts.local, "start both sides on this host, each pinned to a core; the default"),
      app.add_option("--listen", options.address, "be the side that is measured against, for one run")
          ->expected(0, 1)
          ->type_name("[[HOST][:PORT]]"),
      app.add_option("--connect", options.address, "measure against the side that listens there")
          ->type_name("HOST:PORT")};
  modes.local->excludes(modes.listen)->excludes(modes.connect);
  modes.listen->excludes(modes.connect);
  return modes;
}

// Returns what the side that listens has no say in.
std::vector<CLI::Option*> describe_measuring(CLI::App& app, Options& options, Texts& texts) {
  auto* tests =
      app.add_option("TEST", texts.tests, fmt::format("what to measure, of {}; all by default", test_names()));
  tests->type_name("");
  auto* sizes = app.add_option("--sizes", texts.sizes, "of a message; each test has its own by default");
  sizes->allow_extra_args(false)->type_name("BYTES,…");
  auto* size_range = app.add_option("--size-range", texts.size_range, "sizes from the first on, doubling");
  size_range->type_name("FROM:TO")->excludes(sizes);
  auto* window = app.add_option("--window", options.window, "messages under way, but for latencies");
  window->check(CLI::Range(1U, max_window))->type_name("N")->capture_default_str();
  auto* duration = app.add_option("--duration", texts.duration, "of each point");
  duration->type_name("TIME")->capture_default_str();
  auto* iterations = app.add_option("--iterations", options.iterations, "of each point, instead of a duration");
  iterations->check(CLI::Range(std::uint64_t{1}, max_iterations))->type_name("N")->excludes(duration);
  auto* warm_up = app.add_option("--warm-up", texts.warm_up, "before each point, uncounted");
  warm_up->type_name("TIME")->capture_default_str();
  auto* check = app.add_flag("--check", options.check, "give each message bytes of its own and look at every one");
  return {tests, sizes, size_range, window, duration, iterations, warm_up, check};
}

void describe_place_and_configuration(CLI::App& app, Options& options, Texts& texts) {
  app.add_option("--cores", texts.cores, "to pin to: both sides' for --local, else one")
      ->allow_extra_args(false)
      ->type_name("A[,B]");
  app.add_option("--device", texts.device, "the same as --set device.name=…")->type_name("NAME[:PORT]");
  app.add_option("--wait", texts.wait, "the same as --set worker.wait=…")
      ->check(CLI::IsMember({"poll", "event", "adaptive"}))
      ->type_name("poll|event|adaptive");
  app.add_option("--config-file", options.config.file, "instead of the user's own")->type_name("FILE");
  app.add_option("--profile", options.config.profile, "latency, throughput or development")->type_name("NAME");
  app.add_option("--set", options.config.overrides,
                 "a knob of the library, as in rc.receive_depth=256; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

// Returns what the side that listens has no use for.
std::vector<CLI::Option*> describe_output(CLI::App& app, Options& options, Texts& texts) {
  auto* json = app.add_flag("--json", texts.json, "write JSON");
  auto* csv = app.add_flag("--csv", texts.csv, "write comma-separated values")->excludes(json);
  auto* plot = app.add_option("--plot", options.plot, "draw size against latency and bandwidth, as SVG");
  plot->type_name("FILE");
  auto* progress =
      app.add_flag("--progress", options.progress, "say on standard error what is measured, terminal or not");
  return {json, csv, plot, progress};
}

std::vector<TestKind> parse_tests(const std::vector<std::string>& names) {
  std::vector<TestKind> tests;
  for (const std::string& name : names) {
    const auto kind = test_named(name);
    if (!kind) {
      throw Error(ErrorCode::invalid_argument, fmt::format("there is no test '{}'; there are {}", name, test_names()));
    }
    tests.push_back(*kind);
  }
  if (tests.empty()) {
    for (const TestTraits& test : all_tests()) tests.push_back(test.kind);
  }
  return tests;
}

std::uint64_t parse_message_size(const char* what, const std::string& text) {
  const auto bytes = parse_size(what, text);
  if (bytes <= max_bytes) return bytes;
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: '{}' is above {}", what, text, format_size(max_bytes)));
}

Duration parse_bounded_duration(const char* what, const std::string& text, Duration least) {
  const auto duration = parse_duration(what, text);
  if (duration >= least && duration <= max_duration) return duration;
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: '{}' is not between {} and {}", what, text,
                                                       format_duration(least), format_duration(max_duration)));
}

// Both sides' or none for --local; at most this side's otherwise.
void check_cores(const Options& options) {
  if (options.mode == Mode::local && options.cores.size() == 2 && options.cores[0] == options.cores[1]) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--cores: {0},{0} names one core twice; each side needs its own, as in --cores 0,1",
                            options.cores[0]));
  }
  const std::size_t most = options.mode == Mode::local ? 2 : 1;
  if (options.cores.empty() || options.cores.size() == most) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("--cores: {} given; {}", options.cores.size(),
                          options.mode == Mode::local ? "both sides need one, as in --cores 0,1"
                                                      : "this side needs one, the other has its own command line"));
}

// The parts between commas, empty ones too, so that each is looked at.
std::vector<std::string> parts_of(const std::vector<std::string>& texts) {
  std::vector<std::string> all;
  for (const std::string& text : texts) {
    std::vector<std::string> parts = config::split(text, ',');
    if (parts.empty()) parts.emplace_back();
    all.insert(all.end(), parts.begin(), parts.end());
  }
  return all;
}

void take(const Texts& texts, Options& options) {
  options.tests = parse_tests(texts.tests);
  for (const std::string& text : parts_of(texts.sizes)) options.sizes.push_back(parse_message_size("--sizes", text));
  if (!texts.size_range.empty()) options.sizes = parse_size_range(texts.size_range);
  options.duration = parse_bounded_duration("--duration", texts.duration, std::chrono::milliseconds(1));
  options.warm_up = parse_bounded_duration("--warm-up", texts.warm_up, Duration{0});
  if (!texts.wait.empty()) options.config.overrides.push_back("worker.wait=" + texts.wait);
  if (!texts.device.empty()) options.config.overrides.push_back("device.name=" + texts.device);
  if (texts.json) options.format = Format::json;
  if (texts.csv) options.format = Format::csv;
  for (const std::string& text : parts_of(texts.cores)) {
    const std::uint64_t core = config::read_count({"command line", "--cores", text}, {0, CPU_SETSIZE - 1});
    options.cores.push_back(static_cast<int>(core));
  }
  check_cores(options);
}

struct CommandLine {
  CommandLine()
      : app("Measures messages, puts and gets of the Verbatim library between two processes.", "verbatim-perf"),
        modes(describe_modes(app, options, texts)) {
    measuring = describe_measuring(app, options, texts);
    describe_place_and_configuration(app, options, texts);
    output = describe_output(app, options, texts);
    app.set_version_flag("--version", VERBATIM_VERSION);
    app.footer(
        "Sizes are written 8, 4KiB, 1MiB; times 200ms, 2s.\n"
        "Exit status: 0 measured, and with --check all was right; 1 something failed; 64 wrong use.");
  }

  Options options;
  Texts texts;
  CLI::App app;
  ModeOptions modes;
  std::vector<CLI::Option*> measuring;
  std::vector<CLI::Option*> output;
};

void refuse_with_listen(const std::vector<CLI::Option*>& options, const char* why) {
  for (const CLI::Option* option : options) {
    if (option->count() == 0) continue;
    throw Error(ErrorCode::invalid_argument, fmt::format("{} with --listen: {}", option->get_name(), why));
  }
}

}  // namespace

std::vector<std::uint64_t> parse_size_range(const std::string& text) {
  const auto colon = text.find(':');
  if (colon == std::string::npos) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--size-range: '{}' is not FROM:TO, two sizes as in 1:4MiB", text));
  }
  const auto first = parse_message_size("--size-range", text.substr(0, colon));
  const auto last = parse_message_size("--size-range", text.substr(colon + 1));
  if (first == 0 || first > last) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--size-range: '{}' must begin with 1 or more and not end below its beginning", text));
  }
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t bytes = first; bytes < last; bytes *= 2) sizes.push_back(bytes);
  sizes.push_back(last);
  return sizes;
}

Options parse_options(int argc, const char* const* argv) {
  CommandLine line;
  line.app.parse(argc, argv);
  if (line.modes.listen->count() > 0) {
    line.options.mode = Mode::listen;
    refuse_with_listen(line.measuring, "that is for the side that connects to say");
    refuse_with_listen(line.output, "the side that connects has the results");
  }
  if (line.modes.connect->count() > 0) line.options.mode = Mode::connect;
  take(line.texts, line.options);
  return line.options;
}

std::string usage() {
  return CommandLine().app.help();
}

}  // namespace verbatim::perf
