// What the tests of the public API between processes have in common: how children find each other, wait for each other,
// and say what went wrong. A child's body throws, and its test sees an exit code that is not 0.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "process/support.hpp"
#include "verbatim/verbatim.hpp"

namespace verbatim::process {

// A child that hangs ends by a signal, and fails.
inline constexpr unsigned child_limit_seconds = 100;

// A process of the test that uses the library as a program does.
class PeerProcess : public ChildProcess {
 public:
  explicit PeerProcess(const std::function<void()>& body)
      : ChildProcess([&] {
          ::alarm(child_limit_seconds);
          body();
          return 0;
        }) {}
};

// Knobs of the soft device, by the names that the environment has behind VERBATIM_SOFT_. Empty: the default.
using SoftKnobs = std::initializer_list<std::pair<const char*, const char*>>;

// This process's soft devices lie in `directory` from here on, and have every default but `knobs`.
void use_soft_device(const TemporaryDirectory& directory, SoftKnobs knobs = {});

// The defaults, whatever files and environment say, on the soft device and this host alone, and patient.
[[nodiscard]] Config plain_config();

// Where a listener leaves its address. In memory that processes share.
class Doorstep {
 public:
  void leave(std::string_view address);
  [[nodiscard]] std::string address() const;

 private:
  std::array<char, 64> text_{};
  std::atomic<bool> left_{false};
};

// Where `count` processes wait for each other, as often as they like. In memory that they share.
class Barrier {
 public:
  // `idle` is called while somebody is missing.
  void wait(std::uint32_t count, const std::function<void()>& idle = {});

 private:
  std::atomic<std::uint32_t> arrived_{0};
};

// Two processes with one worker each and a channel between them.
struct Meeting {
  Doorstep door;
  Barrier barrier;

  // Both sides have come so far. Who waits makes progress.
  void wait(Worker& worker) {
    barrier.wait(2, [&] { worker.progress(); });
  }
  // The same, but a worker that nobody looks at.
  void wait_asleep() { barrier.wait(2); }
};

// Listens, and takes the one peer that comes.
[[nodiscard]] Channel receive_peer(Worker& worker, Doorstep& door);
[[nodiscard]] Channel connect_to_peer(Worker& worker, const Doorstep& door);

// Waits until it is done, and throws unless it ended well.
void finish(Worker& worker, const Request& request, std::string_view what);
void require_ok(const Completion& how, std::string_view what);

// One request after the other, each waited for.
void send_word(Worker& worker, Channel& channel, std::uint64_t word, Tag tag);
[[nodiscard]] std::uint64_t receive_word(Worker& worker, const Channel& from, Tag tag);

}  // namespace verbatim::process
