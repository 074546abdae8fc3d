// verbatim-info: what Verbatim finds on this host, what it would use and why. See verbatim-info(1).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/config/environment.hpp"
#include "base/error.hpp"
#include "configuration.hpp"
#include "report.hpp"

namespace {

constexpr int status_usable = 0;
constexpr int status_unusable = 1;
constexpr int status_wrong_use = 64;

struct Options {
  std::string device = "auto";
  std::optional<std::uint32_t> gid_index;
  bool json = false;
  bool config = false;
  verbatim::ConfigSources sources;
};

// Options that say what --config is to read, and mean nothing without it.
void describe_config_options(CLI::App& app, Options& options) {
  auto* config = app.add_flag("--config", options.config, "show the configuration instead, and where it comes from");
  config->excludes("--device")->excludes("--gid-index");
  app.add_option("--config-file", options.sources.file, "read this file instead of the user's")
      ->type_name("FILE")
      ->needs(config);
  app.add_option("--profile", options.sources.profile, "defaults for a purpose: latency, throughput, development")
      ->type_name("NAME")
      ->needs(config);
  // One value each, so that what follows is not taken for another.
  app.add_option("--set", options.sources.overrides, "count this most; may be repeated")
      ->type_name("TABLE.NAME=VALUE")
      ->expected(1)
      ->take_all()
      ->needs(config);
  app.add_flag("--strict", options.sources.strict, "refuse names that nobody knows")->needs(config);
}

void describe_options(CLI::App& app, Options& options) {
  app.add_option("--device", options.device,
                 "which device would be used: auto, or an exact name with or without a port")
      ->type_name("NAME[:PORT]")
      ->capture_default_str();
  app.add_option("--gid-index", options.gid_index, "which entry of the port's GID table; without it, the best one")
      ->check(CLI::Range(std::uint32_t{0}, std::uint32_t{255}))
      ->type_name("INDEX");
  app.add_flag("--json", options.json, "write JSON");
  describe_config_options(app, options);
  app.set_version_flag("--version", VERBATIM_VERSION);
  app.footer(
      "Exit status: 0 something is usable, 1 nothing is or what was asked for isn't, 64 wrong use or a wrong value.");
}

int complain(const std::string& sentence, int status) {
  fmt::print(stderr, "verbatim-info: {}\n", sentence);
  return status;
}

// What stays to be said after `text` was shown: nothing, or why what it shows can't be used.
int show(const std::string& text, const std::string& refusal) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return complain("can't write to standard output", status_unusable);
  }
  return refusal.empty() ? status_usable : complain(refusal, status_unusable);
}

int run(const Options& options) {
  if (options.config) {
    const auto configuration =
        verbatim::info::read_configuration(options.sources, verbatim::config::environment_of_this_process());
    return show(options.json ? to_json(configuration) : to_text(configuration), configuration.refusal);
  }
  const auto report =
      verbatim::info::make_report(verbatim::device::parse_selection_rule(options.device, options.gid_index));
  return show(options.json ? to_json(report) : to_text(report), report.refusal);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Shows the RDMA devices of this host, which device, port and GID Verbatim would use and why, and the host's "
      "limits; or the configuration.",
      "verbatim-info");
  describe_options(app, options);
  try {
    app.parse(argc, argv);
    return run(options);
  } catch (const CLI::Success& request) {
    return app.exit(request);  // --help, --version
  } catch (const CLI::ParseError& error) {
    return complain(fmt::format("{}; see verbatim-info --help", error.what()), status_wrong_use);
  } catch (const verbatim::Error& error) {
    const bool wrong_use = error.code() == verbatim::ErrorCode::invalid_argument;
    return complain(error.what(), wrong_use ? status_wrong_use : status_unusable);
  }
}
