#include "transport/host/resolver.hpp"

#include <fmt/format.h>
#include <netdb.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/monotonic_clock.hpp"
#include "base/signals_blocked.hpp"

namespace verbatim::transport::host {

LookUpAnswer system_look_up(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  const int problem = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (problem != 0) {
    return {{}, problem == EAI_SYSTEM ? std::generic_category().message(errno) : std::string(::gai_strerror(problem))};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  LookUpAnswer answer;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    answer.addresses.emplace_back(one->ai_addr, one->ai_addrlen);
  }
  return answer;
}

// Shared with the threads that look up, which nobody waits for: one that never ends keeps nobody from ending.
struct Resolver::State {
  struct Entry {
    std::optional<LookUpAnswer> answer;  // none: under way
    Time good_until;
    std::function<void()> wake;
  };

  LookUp look_up;
  std::mutex mutex;
  std::map<std::string, Entry> entries;
  int under_way = 0;

  void finish(const std::string& host, LookUpAnswer answer) {
    std::function<void()> wake;
    {
      const std::lock_guard lock(mutex);
      --under_way;
      Entry& entry = entries[host];
      entry.good_until = MonotonicClock().now() + (answer.addresses.empty() ? keep_failure : keep_answer);
      entry.answer = std::move(answer);
      wake = std::exchange(entry.wake, {});
    }
    wake();
  }
};

Resolver::Resolver(LookUp look_up) : state_(std::make_shared<State>()) {
  state_->look_up = std::move(look_up);
}

std::optional<LookUpAnswer> Resolver::ask(const std::string& host, Time now, std::function<void()> wake) {
  const std::lock_guard lock(state_->mutex);
  std::erase_if(state_->entries, [&](const auto& e) { return e.second.answer && now >= e.second.good_until; });
  const auto known = state_->entries.find(host);
  if (known != state_->entries.end()) return known->second.answer;
  if (state_->under_way >= max_look_ups) {
    return LookUpAnswer{{}, fmt::format("{} of {} name look-ups are under way", state_->under_way, max_look_ups)};
  }
  try {
    const SignalsBlocked no_signals;
    std::thread([state = state_, host] { state->finish(host, state->look_up(host)); }).detach();
  } catch (const std::system_error& error) {
    return LookUpAnswer{{}, fmt::format("no thread for a name look-up: {}", error.what())};
  }
  ++state_->under_way;
  state_->entries[host].wake = std::move(wake);
  return std::nullopt;
}

}  // namespace verbatim::transport::host
