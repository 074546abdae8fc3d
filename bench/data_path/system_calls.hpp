// Counts the system calls of child processes between marks that they set, one by one, by tracing them (ptrace(2)). What
// the kernel answers without being entered, clocks in the vDSO above all, is none.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace verbatim::data_path {

// Set by a child's first thread: its calls between the two are of `number`. Neither is counted.
void mark_begin(std::size_t number);
void mark_end();

[[nodiscard]] std::string system_call_name(long number);

using SystemCalls = std::map<long, std::uint64_t>;  // number of the call → how often

class SystemCallTracer {
 public:
  // Begins to trace these children with all threads that they will start, or finds out that it may not.
  explicit SystemCallTracer(const std::vector<pid_t>& children);

  // Empty, or why nothing is counted.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

  // Until every child has ended; once one has failed, the others are killed. True: none has.
  [[nodiscard]] bool run();

  // Of the first threads: between marks of this number, all children together.
  [[nodiscard]] const SystemCalls& of_marked(std::size_t number) { return marked_[number]; }
  // Of all others, by name of the thread, while the first of their process was between any two marks.
  [[nodiscard]] const std::map<std::string, SystemCalls>& of_others() const { return others_; }
  // How long children were between marks, on average.
  [[nodiscard]] std::chrono::duration<double> marked_time() const {
    return marked_time_ / static_cast<double>(children_.size());
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Child {
    pid_t process;
    bool running = true;
    bool between_marks = false;
    std::size_t number = 0;
    Clock::time_point since{};
  };
  [[nodiscard]] std::string seize(pid_t process);
  void on_stop(pid_t thread, int status);
  void on_system_call(pid_t thread);
  void count(pid_t thread, Child& child, long call);
  void on_mark(Child& child, std::size_t number, bool begins);
  [[nodiscard]] Child& child_of(pid_t thread);

  std::vector<Child> children_;
  std::map<pid_t, Child*> threads_;
  std::string refusal_;
  std::map<std::size_t, SystemCalls> marked_;
  std::map<std::string, SystemCalls> others_;
  std::chrono::duration<double> marked_time_{};
};

}  // namespace verbatim::data_path
