// verbatim-perf as a program that runs: what it has printed so far, and how it ends.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace verbatim::perf {

// How long a test waits for a program: a bound, not a delay.
inline constexpr std::chrono::seconds program_patience{60};

inline bool eventually(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + program_patience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

class Program {
 public:
  explicit Program(std::vector<std::string> arguments) {
    char name[] = "/tmp/verbatim-perf-test-XXXXXX";
    directory_ = ::mkdtemp(name);
    process_ = ::fork();
    if (process_ != 0) return;
    redirect(STDOUT_FILENO, output_file());
    redirect(STDERR_FILENO, error_file());
    std::vector<char*> argv{const_cast<char*>(VERBATIM_PERF_PROGRAM)};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (!ended_) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, nullptr, 0);
    }
    ::unlink(output_file().c_str());
    ::unlink(error_file().c_str());
    ::rmdir(directory_.c_str());
  }

  [[nodiscard]] pid_t process() const { return process_; }
  [[nodiscard]] std::string output() const { return read(output_file()); }
  [[nodiscard]] std::string errors() const { return read(error_file()); }

  // The process that it has started; -1 while there is none.
  [[nodiscard]] pid_t child() const {
    const std::string id = std::to_string(process_);
    std::istringstream children(read("/proc/" + id + "/task/" + id + "/children"));
    pid_t child = -1;
    children >> child;
    return child;
  }

  // Its exit status, or minus the signal that ended it; 999 if it doesn't end.
  int await_end() {
    int status = 0;
    if (!eventually([&] { return ::waitpid(process_, &status, WNOHANG) == process_; })) return 999;
    ended_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  static void redirect(int descriptor, const std::string& file) {
    const int opened = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ::dup2(opened, descriptor);
  }
  static std::string read(const std::string& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  [[nodiscard]] std::string output_file() const { return directory_ + "/output"; }
  [[nodiscard]] std::string error_file() const { return directory_ + "/errors"; }

  std::string directory_;
  pid_t process_ = -1;
  bool ended_ = false;
};

}  // namespace verbatim::perf
