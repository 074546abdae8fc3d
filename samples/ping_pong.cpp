// How long an 8-byte message takes between two processes: `ping_pong listen`, and then `ping_pong connect HOST:PORT`.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>
#include <verbatim/verbatim.hpp>

constexpr int warm_up = 1000, rounds = 10000;
constexpr verbatim::Tag ball{1};

void wait(verbatim::Worker& worker, verbatim::Channel channel, const verbatim::Request& request) {
  worker.wait(request);
  if (!request.ok()) throw std::runtime_error("no answer: " + channel.reason_text());
}

int main(int count, char** arguments) try {
  const bool listens = count == 2 && std::string(arguments[1]) == "listen";
  if (!listens && !(count == 3 && std::string(arguments[1]) == "connect")) {
    return std::fprintf(stderr, "usage: ping_pong listen | ping_pong connect HOST:PORT\n"), 64;
  }
  verbatim::Context context;
  verbatim::Worker worker(context);
  if (listens) std::printf("listening on %s\n", worker.listen().c_str()), std::fflush(stdout);
  auto channel = listens ? worker.wait_accept(std::chrono::minutes(1)) : worker.connect(arguments[2]);
  if (!channel) throw std::runtime_error("nobody connected within a minute");
  if (!worker.wait_open(*channel)) throw std::runtime_error(channel->reason_text());

  std::uint64_t out = 0, in = 0;
  std::vector<double> half_round_trips;
  for (int round = 0; round < warm_up + rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    const auto received = worker.recv(&in, sizeof in, ball, verbatim::exact_tag, channel->id());
    if (listens) wait(worker, *channel, received);
    const auto sent = channel->send(&out, sizeof out, ball);
    if (!listens) wait(worker, *channel, received);
    wait(worker, *channel, sent);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    if (round >= warm_up) half_round_trips.push_back(took.count() / 2);
  }
  std::nth_element(half_round_trips.begin(), half_round_trips.begin() + rounds / 2, half_round_trips.end());
  std::printf("half a round trip: %.0f ns, the median of %d\n", half_round_trips[rounds / 2], rounds);
} catch (const std::exception& error) {
  return std::fprintf(stderr, "ping_pong: %s\n", error.what()), 1;
}
