// One seed, one run: the same completions at the same times, the same counts.
#include "unit/soft/traffic.hpp"

namespace verbatim::soft::testing {
namespace {

struct Outcome {
  std::uint64_t trace = 0;
  Time end;
  std::vector<std::uint64_t> counters;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome run(std::uint64_t seed) {
  Pair pair({.seed = seed});
  pair.settings.retry_cnt = pair.settings.rnr_retry = 7;
  pair.open();
  pair.connect();
  for (Side* side : {&pair.a, &pair.b}) side->control().set_faults(everything_goes_wrong(0.02));
  Traffic traffic(pair, 500, 1);
  traffic.run();
  Outcome outcome{traffic.trace(), pair.network.now(), {}};
  for (Side* side : {&pair.a, &pair.b}) {
    for (const device::Counter& counter : side->context->counters(1)) outcome.counters.push_back(counter.value);
  }
  return outcome;
}

TEST(Determinism, OneSeedOneRun) {
  const Outcome first = run(42);
  EXPECT_EQ(first, run(42));
  EXPECT_NE(first, run(43)) << "the seed has no influence";
}

}  // namespace
}  // namespace verbatim::soft::testing
