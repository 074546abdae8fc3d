// Names to addresses, off every thread that somebody waits for: a look-up has a thread of its own, and may take as long
// as it likes. Answers are kept for a while; a failure is forgotten soon, so that asking again tries again.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "transport/host/socket_address.hpp"

namespace verbatim::transport::host {

struct LookUpAnswer {
  std::vector<SocketAddress> addresses;  // with port 0; empty: none, and `problem` says why
  std::string problem;
};
// May block. Called on any thread.
using LookUp = std::function<LookUpAnswer(const std::string& host)>;

[[nodiscard]] LookUpAnswer system_look_up(const std::string& host);  // getaddrinfo(3)

// Belongs to one user, who asks again for every name that he waits for when he is woken.
class Resolver {
 public:
  static constexpr Duration keep_answer = std::chrono::seconds(60);
  static constexpr Duration keep_failure = std::chrono::milliseconds(50);
  static constexpr int max_look_ups = 8;  // under way at a time; more names have to try again

  explicit Resolver(LookUp look_up = system_look_up);

  // The answer, if it is known. If not, a look-up is under way, and `wake` is called on another thread when it has
  // ended: then ask again. `wake` must stay good for as long as a look-up takes, which may be longer than the Resolver
  // lives.
  [[nodiscard]] std::optional<LookUpAnswer> ask(const std::string& host, Time now, std::function<void()> wake);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace verbatim::transport::host
