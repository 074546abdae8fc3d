// bench-data-path: what the data path costs in allocations, system calls and work requests, by exact counts, held to
// the limits that the library promises.
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "mem/cores.hpp"
#include "report.hpp"
#include "shared_page.hpp"
#include "side.hpp"
#include "system_calls.hpp"
#include "verbatim/error.hpp"

namespace {

using namespace verbatim;
using namespace verbatim::data_path;

constexpr int status_broken = 1;
constexpr int status_wrong_use = 64;
constexpr int status_skipped = 77;
constexpr std::uint64_t most_messages = 1'000'000'000;

// Where both sides' soft devices meet, and nobody else's.
class PrivateDirectory {
 public:
  PrivateDirectory() {
    std::string path = "/dev/shm/verbatim-bench-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) {
      throw Error(ErrorCode::no_space, fmt::format("{}: {}", path, std::strerror(errno)));
    }
    path_ = path;
    setenv("VERBATIM_SOFT_DIRECTORY", path_.c_str(), 1);
  }
  ~PrivateDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;

 private:
  std::string path_;
};

SharedPage& make_page() {
  void* shared = mmap(nullptr, sizeof(SharedPage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw Error(ErrorCode::no_space, fmt::format("shared page: {}", std::strerror(errno)));
  return *new (shared) SharedPage;
}

// A child's whole life; its exit status.
int be_side(SharedPage& page, unsigned number, int core, std::uint64_t messages, pid_t parent) {
  try {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) return EXIT_FAILURE;
    while (!page.go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    mem::pin_this_thread(core);
    run_side(page, number, messages);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench-data-path, side {}: {}\n", number, error.what());
    return EXIT_FAILURE;
  }
}

int measure(std::uint64_t messages) {
  const std::vector<int> cores = mem::choose_cores({});
  if (cores.size() < sides) {
    fmt::print("unavailable: two processes that poll need two processors, and this one may run on one alone\n");
    return status_skipped;
  }
  const PrivateDirectory directory;
  SharedPage& page = make_page();
  const pid_t parent = getpid();
  std::vector<pid_t> children;
  for (unsigned number = 0; number < sides; ++number) {
    const pid_t child = fork();
    if (child < 0) throw Error(ErrorCode::no_space, fmt::format("fork: {}", std::strerror(errno)));
    if (child == 0) _exit(be_side(page, number, cores[number], messages, parent));
    children.push_back(child);
  }
  SystemCallTracer tracer(children);
  page.go = true;
  if (!tracer.run()) throw Error(ErrorCode::device_failure, "a side failed");

  const Report report = make_report(page, tracer);
  fmt::print("{}", report.table);
  if (report.broken.empty()) return EXIT_SUCCESS;
  fmt::print("\nBeyond the limits:\n  {}\n", fmt::join(report.broken, "\n  "));
  return status_broken;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Counts what messages, puts, gets and atomics between two processes on the soft device cost: heap calls, system "
      "calls, posts, signalled posts and posts of receives.",
      "bench-data-path");
  std::uint64_t messages = 100'000;
  app.add_option("--messages", messages, "of each kind; fewer of large ones, 8 GiB at most")
      ->check(CLI::Range(std::uint64_t{1}, most_messages))
      ->type_name("N")
      ->capture_default_str();
  app.footer(
      "Exit status: 0 within the limits; 1 beyond one, or something failed; 64 wrong use; 77 one processor only.");
  try {
    app.parse(argc, argv);
    return measure(messages);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return EXIT_SUCCESS;
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "bench-data-path: {}; see bench-data-path --help\n", error.what());
    return status_wrong_use;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench-data-path: {}\n", error.what());
    return status_broken;
  }
}
