// Two processes on this host play ping-pong through RC and UD queue pairs of one device, and print what it costs beside
// what the machine itself needs for the same.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "common/processors.hpp"
#include "device/system.hpp"
#include "measurements.hpp"
#include "mem/topology.hpp"

namespace verbatim::pingpong {
namespace {

struct Options {
  std::string device = "auto";
  unsigned repetitions = 9;
};

struct Row {
  const char* what;
  const char* unit;
  double scale;  // from what the function returns to the unit
  double (*measure)(Player&);
  // The row that it is compared with, and how: a ratio of ours to it.
  int reference;
};

constexpr int status_wrong_use = 64;
constexpr int no_reference = -1;
constexpr int cache_line_row = 0;
constexpr int memcpy_row = 1;
constexpr Row rows[] = {
    {"cache line handed to the other core", "ns", 1, time_cache_line, no_reference},
    {"memcpy of 1 MiB, one core", "GB/s", 1e-9, bandwidth_memcpy, no_reference},
    {"RC send, 8 B, half a round trip", "ns", 1, time_rc_send, cache_line_row},
    {"RDMA write, 8 B, polled as memory", "ns", 1, time_rdma_write, cache_line_row},
    {"UD send, 8 B, half a round trip", "ns", 1, time_ud_send, cache_line_row},
    {"RC sends of 8 B, one way", "M/s", 1e-6, rate_rc_send, no_reference},
    {"RDMA write of 1 MiB", "GB/s", 1e-9, bandwidth_rdma_write, memcpy_row},
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Runs one side to the end. Medians of every row.
std::vector<double> play(const Options& options, SharedPage& page, int side) {
  device::System system = device::System::of_this_host();
  const auto selection = device::select(system.list(), device::parse_selection_rule(options.device));
  if (side == 0) fmt::print("{}; {} repetitions, medians\n\n", selection.reason, options.repetitions);
  if (side == 0 && page.one_processor) {
    fmt::print("Only one processor here: both sides share it, and every time is the scheduler's.\n\n");
  }
  std::fflush(stdout);
  // To the first two processors that this process may use.
  if (!page.one_processor) apps::pin_to(mem::read_allowed_cpus()[static_cast<std::size_t>(side)]);
  Endpoint endpoint(system.open(selection), selection);
  Player player{endpoint, page, side};
  page.addresses[static_cast<std::size_t>(side)] = endpoint.address();
  meet_other(player);
  endpoint.connect(player.peer(), page.addresses[static_cast<std::size_t>(side)]);
  meet_other(player);
  // Rows take turns, so that whatever disturbs the machine for a while disturbs all of them.
  std::vector<std::vector<double>> values(std::size(rows));
  for (unsigned repetition = 0; repetition <= options.repetitions; ++repetition) {
    if (side == 0 && isatty(STDERR_FILENO) != 0)
      fmt::print(stderr, "\rround {} of {} ", repetition, options.repetitions);
    for (std::size_t row = 0; row < std::size(rows); ++row) {
      const double value = rows[row].measure(player);
      if (repetition > 0) values[row].push_back(value * rows[row].scale);  // the first warms up
    }
  }
  if (side == 0 && isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r{:30}\r", "");
  meet_other(player);
  std::vector<double> medians;
  for (const auto& row : values) medians.push_back(median(row));
  return medians;
}

void print(const std::vector<double>& medians) {
  for (std::size_t row = 0; row < std::size(rows); ++row) {
    std::string ratio;
    if (rows[row].reference != no_reference) {
      const auto reference = static_cast<std::size_t>(rows[row].reference);
      ratio = fmt::format("{:.2f} x {}", medians[row] / medians[reference],
                          reference == cache_line_row ? "the cache line" : "memcpy");
    }
    fmt::print("  {:<38} {:>8.1f} {:<5} {}\n", rows[row].what, medians[row], rows[row].unit, ratio);
  }
}

// The forked side. Its exit status is all that comes back.
int run_partner(const Options& options, SharedPage& page, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) return EXIT_FAILURE;
  try {
    play(options, page, 1);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    if (!page.explained.exchange(true)) fmt::print(stderr, "verbatim-pingpong (partner): {}\n", error.what());
    page.failed.store(true);
    return EXIT_FAILURE;
  }
}

// A partner that dies without a word must not be waited for.
SharedPage* page_of_partner = nullptr;
void note_death(int /*signal*/) {
  page_of_partner->failed.store(true);
}

// How the partner ended; the exit status to end with. One that was stopped, or hangs, is ended.
int await_partner(pid_t partner) {
  constexpr int looks = 2000;
  constexpr useconds_t look_interval_us = 1000;
  int status = 0;
  for (int look = 0; waitpid(partner, &status, WNOHANG) == 0; ++look) {
    if (look == looks) kill(partner, SIGKILL);
    usleep(look_interval_us);
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  fmt::print(stderr, "verbatim-pingpong: the partner, process {}, was killed by signal {}\n", partner,
             WTERMSIG(status));
  return EXIT_FAILURE;
}

int run(const Options& options) {
  void* shared = mmap(nullptr, sizeof(SharedPage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED)
    throw Error(ErrorCode::no_space,
                fmt::format("a page to share with the partner was refused: {}", std::strerror(errno)));
  auto& page = *new (shared) SharedPage{};
  page.one_processor = mem::read_allowed_cpus().size() < sides;
  const pid_t parent = getpid();
  const pid_t partner = fork();  // before either side opens the device
  if (partner < 0)
    throw Error(ErrorCode::no_space,
                fmt::format("the partner can't be started: {}; check ulimit -u", std::strerror(errno)));
  if (partner == 0) _exit(run_partner(options, page, parent));
  page_of_partner = &page;
  std::signal(SIGCHLD, note_death);
  std::exception_ptr problem;
  try {
    const auto medians = play(options, page, 0);
    print(medians);
  } catch (...) {
    if (!page.explained.exchange(true)) problem = std::current_exception();
    page.failed.store(true);
  }
  const int partner_status = await_partner(partner);
  if (problem) std::rethrow_exception(problem);
  if (page.failed.load() && page.explained.load()) return EXIT_FAILURE;
  if (std::fflush(stdout) != 0) throw Error(ErrorCode::no_space, "can't write to standard output");
  return partner_status;
}

}  // namespace
}  // namespace verbatim::pingpong

int main(int argc, char** argv) {
  verbatim::pingpong::Options options;
  CLI::App app("Two processes play ping-pong through RC and UD queue pairs of one device.", "verbatim-pingpong");
  app.add_option("--device", options.device, "auto, NAME or NAME:PORT")->capture_default_str();
  app.add_option("--repetitions", options.repetitions, "of every measurement; the median is shown")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wanted) {
    return app.exit(wanted);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "verbatim-pingpong: {}\n", error.what());
    return verbatim::pingpong::status_wrong_use;
  }
  try {
    return verbatim::pingpong::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "verbatim-pingpong: {}\n", error.what());
    return EXIT_FAILURE;
  }
}
