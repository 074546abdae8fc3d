// A million packets that no honest peer would send. Whatever they say, nothing that was not granted is written, the
// engine's books stay right, and afterwards its queue pairs serve as if nothing had been.
//
// VERBATIM_FUZZ_SEED=n makes other packets, VERBATIM_FUZZ_PACKETS=n as many for each test. A failure prints the seed of
// its round: as VERBATIM_FUZZ_SEED it makes that the first round of the first test.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "unit/soft_fuzz/inhabitants.hpp"
#include "unit/soft_fuzz/packets.hpp"

namespace verbatim::soft::fuzz {
namespace {

constexpr std::uint64_t tests = 10;
constexpr std::uint64_t packets_per_test = 100'000;
constexpr std::uint64_t packets_per_round = 10'000;  // then a new device, set up otherwise
constexpr double action_rate = 0.5;                  // an application's calls for each packet
constexpr std::uint64_t packets_per_success = 2000;  // at most, for each kind of completion: they get deep enough
constexpr std::uint64_t steps_per_look = 64;         // between comparisons of all that must not change

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

using Successes = std::map<ibv_wc_opcode, std::uint64_t>;

// `packets` arrive, that is: pass the check that every wire makes. Empty, or what went wrong.
std::string run_round(std::uint64_t seed, std::uint64_t packets, Successes& successes) {
  Inhabitants device(seed);
  Random random(seed ^ 0x5eed);
  device.wire.train = random.chance(0.5) ? 1 : 1 + static_cast<std::uint32_t>(random.below(100));
  std::uint64_t arrived = 0;
  for (std::uint64_t step = 0; arrived < packets; ++step) {
    arrived += device.wire.inject(make_packet(random, device), random.chance(0.5)) ? 1 : 0;
    if (random.chance(0.8)) device.engine.progress();
    if (random.chance(action_rate)) device.act();
    device.poll();
    device.check_counts();
    std::string problem = device.complaint();
    if (problem.empty() && step % steps_per_look == 0) problem = device.arena.damage().value_or("");
    if (!problem.empty()) return problem + " (step " + std::to_string(step) + ")";
  }
  for (const auto& [opcode, count] : device.succeeded) successes[opcode] += count;
  device.wind_up();
  device.converse();
  if (const auto damage = device.arena.damage()) return *damage + " (at the end)";
  return device.complaint();
}

class Fuzz : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(Fuzz, NoPacketWritesWhatWasNotGrantedOrBreaksTheBooks) {
  const std::uint64_t packets = number_from("VERBATIM_FUZZ_PACKETS", packets_per_test);
  const std::uint64_t rounds = (packets + packets_per_round - 1) / packets_per_round;
  const std::uint64_t first = number_from("VERBATIM_FUZZ_SEED", 1) + GetParam() * rounds;
  std::printf("seeds %llu to %llu\n", static_cast<unsigned long long>(first),
              static_cast<unsigned long long>(first + rounds - 1));
  Successes successes;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::string problem = run_round(first + round, packets / rounds, successes);
    ASSERT_EQ(problem, "") << "seed " << first + round;
  }
  for (const ibv_wc_opcode opcode : {IBV_WC_SEND, IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ, IBV_WC_COMP_SWAP,
                                     IBV_WC_FETCH_ADD, IBV_WC_RECV, IBV_WC_RECV_RDMA_WITH_IMM}) {
    EXPECT_GE(successes[opcode], packets / packets_per_success) << "opcode " << opcode;
  }
}

INSTANTIATE_TEST_SUITE_P(Rounds, Fuzz, ::testing::Range(std::uint64_t{0}, tests));

}  // namespace
}  // namespace verbatim::soft::fuzz
