// What a soft device counts, one row a counter: member, name that users see.
#pragma once

#include <cstdint>
#include <iterator>

namespace verbatim::soft {

struct Counters {
  std::uint64_t packets_sent = 0;
  std::uint64_t packets_received = 0;
  std::uint64_t retransmits = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t rnr_nak_sent = 0;
  std::uint64_t rnr_nak_received = 0;
  std::uint64_t sequence_nak_sent = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t bad_keys = 0;
  std::uint64_t bad_pkeys = 0;
  std::uint64_t uneven_marks = 0;  // packets with another service level or traffic class than go back
  std::uint64_t bad_qkeys = 0;
  std::uint64_t bad_packets = 0;
  std::uint64_t dropped = 0;
  std::uint64_t refused_posts = 0;
  std::uint64_t cq_overruns = 0;
  std::uint64_t placed_writes = 0;
};

struct CounterRow {
  const char* name;
  std::uint64_t Counters::*value;
};
inline constexpr CounterRow counter_rows[] = {
    {"packets_sent", &Counters::packets_sent},
    {"packets_received", &Counters::packets_received},
    {"retransmits", &Counters::retransmits},
    {"timeouts", &Counters::timeouts},
    {"rnr_nak_sent", &Counters::rnr_nak_sent},
    {"rnr_nak_received", &Counters::rnr_nak_received},
    {"sequence_nak_sent", &Counters::sequence_nak_sent},
    {"duplicates", &Counters::duplicates},
    {"bad_keys", &Counters::bad_keys},
    {"bad_pkeys", &Counters::bad_pkeys},
    {"uneven_marks", &Counters::uneven_marks},
    {"bad_qkeys", &Counters::bad_qkeys},
    {"bad_packets", &Counters::bad_packets},
    {"dropped", &Counters::dropped},
    {"refused_posts", &Counters::refused_posts},
    {"cq_overruns", &Counters::cq_overruns},
    {"placed_writes", &Counters::placed_writes},
};
static_assert(sizeof(Counters) == sizeof(std::uint64_t) * std::size(counter_rows), "every counter has its row");

}  // namespace verbatim::soft
