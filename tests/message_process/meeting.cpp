#include "message_process/meeting.hpp"

#include <fmt/format.h>

#include <chrono>
#include <vector>

namespace verbatim::process {

void use_soft_device(const TemporaryDirectory& directory, SoftKnobs knobs) {
  constexpr std::string_view prefix = "VERBATIM_SOFT_";
  std::vector<std::string> inherited;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (text.starts_with(prefix)) inherited.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : inherited) ::unsetenv(name.c_str());
  const auto set = [&](const std::string& name, const char* value) {
    ::setenv((std::string(prefix) + name).c_str(), value, 1);
  };
  set("DIRECTORY", directory.path().c_str());
  for (const auto& [name, value] : knobs) {
    if (*value != '\0') set(name, value);
  }
}

Config plain_config() {
  Config config;
  config.device.name = "soft0";
  config.bootstrap.host = "127.0.0.1";
  config.rc.ack_timeout = std::chrono::milliseconds(500);  // a busy machine lets a process wait that long
  return config;
}

void Doorstep::leave(std::string_view address) {
  require(address.size() < text_.size(), "the address is too long for this test");
  std::copy(address.begin(), address.end(), text_.begin());
  left_.store(true, std::memory_order_release);
}

std::string Doorstep::address() const {
  require(eventually([&] { return left_.load(std::memory_order_acquire); }), "nobody listens");
  return text_.data();
}

void Barrier::wait(std::uint32_t count, const std::function<void()>& idle) {
  const std::uint32_t all = (arrived_.fetch_add(1, std::memory_order_acq_rel) / count + 1) * count;
  require(eventually([&] {
            if (idle) idle();
            return arrived_.load(std::memory_order_acquire) >= all;
          }),
          "the others never came");
}

Channel receive_peer(Worker& worker, Doorstep& door) {
  door.leave(worker.listen());
  const std::optional<Channel> channel = worker.wait_accept(patience);
  require(channel.has_value(), "nobody connected");
  return *channel;
}

Channel connect_to_peer(Worker& worker, const Doorstep& door) {
  Channel channel = worker.connect(door.address());
  require(worker.wait_open(channel), "not connected: " + channel.reason_text());
  return channel;
}

void require_ok(const Completion& how, std::string_view what) {
  const bool ended_well = how.outcome == Outcome::accepted || how.outcome == Outcome::delivered;
  require(ended_well && how.status == Status::ok,
          fmt::format("{}: {}, {}", what, to_string(how.outcome), to_string(how.status)));
}

void finish(Worker& worker, const Request& request, std::string_view what) {
  require(worker.wait_for(request, patience), fmt::format("{}: never done", what));
  require_ok(request.completion(), what);
}

void send_word(Worker& worker, Channel& channel, std::uint64_t word, Tag tag) {
  finish(worker, channel.send(&word, sizeof(word), tag), "sending a word");
}

std::uint64_t receive_word(Worker& worker, const Channel& from, Tag tag) {
  std::uint64_t word = 0;
  finish(worker, worker.recv(&word, sizeof(word), tag, exact_tag, from.id()), "receiving a word");
  return word;
}

}  // namespace verbatim::process
