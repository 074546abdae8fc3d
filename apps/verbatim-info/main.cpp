// verbatim-info: what Verbatim finds on this host, what it would use and why. See verbatim-info(1).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/error.hpp"
#include "report.hpp"

namespace {

constexpr int status_usable = 0;
constexpr int status_unusable = 1;
constexpr int status_wrong_use = 64;

struct Options {
  std::string device = "auto";
  std::optional<std::uint32_t> gid_index;
  bool json = false;
};

void describe_options(CLI::App& app, Options& options) {
  app.add_option("--device", options.device,
                 "which device would be used: auto, or an exact name with or without a port")
      ->type_name("NAME[:PORT]")
      ->capture_default_str();
  app.add_option("--gid-index", options.gid_index, "which entry of the port's GID table; without it, the best one")
      ->type_name("INDEX");
  app.add_flag("--json", options.json, "write JSON");
  app.set_version_flag("--version", VERBATIM_VERSION);
  app.footer("Exit status: 0 something is usable, 1 nothing is or what was asked for isn't, 64 wrong use.");
}

int complain(const std::string& sentence, int status) {
  fmt::print(stderr, "verbatim-info: {}\n", sentence);
  return status;
}

int run(const Options& options) {
  const auto report =
      verbatim::info::make_report(verbatim::device::parse_selection_rule(options.device, options.gid_index));
  const auto text = options.json ? to_json(report) : to_text(report);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return complain("can't write to standard output", status_unusable);
  }
  return report.choice ? status_usable : complain(report.refusal, status_unusable);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Shows the RDMA devices of this host, which device, port and GID Verbatim would use and why, and the host's "
      "limits.",
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
