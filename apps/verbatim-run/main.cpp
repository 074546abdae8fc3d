// verbatim-run: runs a program made for libibverbs on the soft device. See verbatim-run(1).
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "device/description.hpp"
#include "device/soft/provider.hpp"
#include "device/soft/settings.hpp"

namespace {

namespace fs = std::filesystem;
using verbatim::Error;
using verbatim::ErrorCode;

// As shells say it.
constexpr int status_wrong_use = 64;
constexpr int status_not_usable = 69;
constexpr int status_not_executable = 126;
constexpr int status_not_found = 127;

struct Options {
  bool list = false;
  std::string faults;
  std::string gids;
  std::vector<std::string> knobs;  // "max_qp=8"
  std::vector<std::string> command;
};

void describe(CLI::App& app, Options& options) {
  app.add_flag("--list", options.list, "show the soft device that programs would find, and run nothing");
  app.add_option("--faults", options.faults,
                 "what becomes of packets, such as 'drop:rate=0.01; delay:nth=3,delay=10us'")
      ->type_name("RULES");
  app.add_option("--gids", options.gids, "the first port's addresses, such as '10.0.0.1, fe80::1 RoCE v1'")
      ->type_name("LIST");
  app.add_option("--set", options.knobs, "any other knob of the soft device (conf/soft.toml); may be repeated")
      ->type_name("KNOB=VALUE")
      ->allow_extra_args(false)
      ->take_all();
  app.set_version_flag("--version", VERBATIM_VERSION);
  app.prefix_command();
  app.footer(
      "Usage is verbatim-run [OPTIONS] [--] PROGRAM [ARGUMENT...]. Everything behind PROGRAM is the program's own. "
      "Exit status: the program's; 64 wrong use or a wrong value, 69 "
      "no "
      "soft device can be had, 126 and 127 as a shell has them.");
}

void set_variable(std::string knob, const std::string& value) {
  for (char& letter : knob) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  ::setenv(("VERBATIM_SOFT_" + knob).c_str(), value.c_str(), 1);
}

// What the program's process reads.
void set_environment(const Options& options) {
  if (!options.faults.empty()) set_variable("faults", options.faults);
  if (!options.gids.empty()) set_variable("gids", options.gids);
  for (const std::string& knob : options.knobs) {
    const std::size_t equals = knob.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("--set {}: it takes KNOB=VALUE, such as --set max_qp=8; conf/soft.toml lists the knobs", knob));
    }
    set_variable(knob.substr(0, equals), knob.substr(equals + 1));
  }
}

// In a build tree, and in an installed one.
fs::path find_library() {
  constexpr const char* name = "libverbatim-verbs.so";
  const fs::path own = fs::read_symlink("/proc/self/exe").parent_path();
  const std::array<fs::path, 2> places{own / VERBATIM_VERBS_FROM_BUILT_PROGRAM,
                                       own / VERBATIM_VERBS_FROM_INSTALLED_PROGRAM};
  for (const fs::path& place : places) {
    if (fs::exists(place / name)) return fs::canonical(place / name);
  }
  throw Error(ErrorCode::not_found,
              fmt::format("{} is neither in {} nor in {}: build or install it with this program", name,
                          places[0].lexically_normal().string(), places[1].lexically_normal().string()));
}

void print_list() {
  const verbatim::soft::DeviceConfig config = verbatim::soft::read_settings();
  const auto context = verbatim::soft::make_provider(config)->open(config.name);
  const auto device = verbatim::device::describe(*context, verbatim::device::ProviderKind::soft, "/sys");
  for (const auto& port : device.ports) {
    fmt::print("link {}/{} state {} mtu {} link_layer {}\n", device.name, port.number.value, to_string(port.state),
               port.active_mtu_bytes, to_string(port.link_layer));
    for (const auto& gid : port.gids) {
      fmt::print("    gid {} {} {}\n", gid.index, to_string(gid.gid), to_string(gid.type));
    }
  }
}

// Returns only if it can't be run.
int run(const std::vector<std::string>& command) {
  std::string preload = find_library().string();
  if (const char* others = std::getenv("LD_PRELOAD"); others != nullptr && *others != '\0') {
    preload = std::string(others) + ":" + preload;
  }
  ::setenv("LD_PRELOAD", preload.c_str(), 1);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  const int problem = errno;
  fmt::print(stderr, "verbatim-run: {}: {}\n", command.front(), std::strerror(problem));
  return problem == ENOENT ? status_not_found : status_not_executable;
}

}  // namespace

int main(int count, char** words) {
  CLI::App app("runs a program made for RDMA verbs on Verbatim's soft device", "verbatim-run");
  Options options;
  describe(app, options);
  try {
    app.parse(count, words);
    options.command = app.remaining();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : status_wrong_use;
  }
  try {
    set_environment(options);
    // What is wrong with the settings is better said here than in the middle of the program's output.
    (void)verbatim::soft::read_settings();
    if (options.list) return print_list(), 0;
    const bool separated = !options.command.empty() && options.command.front() == "--";
    if (separated) options.command.erase(options.command.begin());
    if (options.command.empty()) {
      throw Error(ErrorCode::invalid_argument, "no program is given; verbatim-run --help says how");
    }
    if (!separated && options.command.front().starts_with('-')) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{} is no option of verbatim-run; verbatim-run --help lists them", options.command.front()));
    }
    return run(options.command);
  } catch (const Error& error) {
    std::fprintf(stderr, "verbatim-run: %s\n", error.what());
    return error.code() == ErrorCode::invalid_argument ? status_wrong_use : status_not_usable;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "verbatim-run: %s\n", error.what());
    return status_not_usable;
  }
}
