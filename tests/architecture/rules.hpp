// The rules of docs/architecture.md as data. checks.cpp reads them, architecture_test.cpp holds the project to them.
#pragma once

#include <regex>
#include <string_view>
#include <vector>

namespace verbatim::architecture {

// Who may include whom among the project's own files. The first row whose `files` match counts.
struct Floor {
  std::string_view files;
  std::vector<std::string_view> may_include;
};
inline const std::vector<Floor> floors = {
    {"src/base/**", {"src/base/**", "include/verbatim/**"}},
    // What the specification says of queue pairs, for whoever drives a device and for the device that is driven.
    {"src/device/queue_pair/**", {"src/device/queue_pair/*", "src/base/**"}},
    // Tables, limits and faults of a soft device are data that its engine is built from.
    {"src/device/soft/engine/**",
     {"src/device/soft/engine/**", "src/device/soft/config.hpp", "src/device/*", "src/device/queue_pair/*",
      "src/base/**"}},
    {"src/device/soft/**", {"src/device/soft/**", "src/device/*", "src/device/queue_pair/*", "src/base/**"}},
    {"src/device/ibverbs/**", {"src/device/ibverbs/**", "src/device/*", "src/device/queue_pair/*", "src/base/**"}},
    // The library for programs of others, in front of the soft device.
    {"src/device/preload/**",
     {"src/device/preload/**", "src/device/*", "src/device/soft/*", "src/device/soft/verbs/*",
      "src/device/soft/engine/*", "src/device/queue_pair/*", "src/base/**"}},
    // The way into each kind of device lies in its folder's own files; what is deeper is private.
    {"src/device/*",
     {"src/device/*", "src/device/queue_pair/*", "src/device/soft/*", "src/device/ibverbs/*", "src/base/**"}},
    {"src/mem/**", {"src/mem/**", "src/device/*", "src/base/**"}},
    {"src/qp/**", {"src/qp/**", "src/mem/**", "src/device/*", "src/device/queue_pair/*", "src/base/**"}},
    {"src/transport/**",
     {"src/transport/**", "src/qp/**", "src/mem/**", "src/device/*", "src/base/**", "include/verbatim/**"}},
    {"include/verbatim/**", {"include/verbatim/**"}},
    {"apps/**",
     {"apps/**", "include/verbatim/**", "src/transport/**", "src/qp/**", "src/mem/**", "src/device/*",
      "src/device/queue_pair/*", "src/device/soft/*", "src/device/ibverbs/*", "src/base/**"}},
    // What a user writes: nothing but the public API.
    {"samples/**", {"samples/**", "include/verbatim/**"}},
    // Tests and benchmarks judge parts, so they reach inside.
    {"bench/**", {"bench/**", "include/verbatim/**", "src/**"}},
    {"tests/**", {"tests/**", "apps/**", "include/verbatim/**", "src/**"}},
};

// Headers of verbs, and who may see them: three floors, what judges them, and the program that shows them without the
// rest.
inline constexpr std::string_view verbs_headers = "infiniband/**";
inline const std::vector<std::string_view> sees_verbs = {"src/device/**", "src/mem/**", "src/qp/**",
                                                         "tests/**",      "bench/**",   "apps/verbatim-pingpong/**"};

// Protocol code: `now` and randomness are handed to it, and it starts nothing, so that a seed replays a run.
inline const std::vector<std::string_view> protocol_code = {"src/transport/**", "src/qp/**",
                                                            "src/device/soft/engine/**"};
// What ties protocol code to a real host, in its folders: threads, sockets, the clock.
inline const std::vector<std::string_view> edge_code = {"src/transport/host/**"};
inline const std::vector<std::string_view> not_in_protocol_code = {
    // clocks
    "steady_clock", "system_clock", "high_resolution_clock", "MonotonicClock", "clock_gettime", "gettimeofday",
    "timerfd_create", "std::time", "rdtsc", "__rdtsc", "__rdtscp", "_rdtsc", "__builtin_ia32_rdtsc",
    // randomness
    "random_device", "rand(", "srand(", "rand_r(", "drand48(", "getrandom", "getentropy", "arc4random", "system_seed",
    // threads
    "std::thread", "jthread", "pthread_create", "std::async", "thrd_create", "fork(",
    // sleep
    "sleep_for", "sleep_until", "usleep", "nanosleep", "clock_nanosleep", "sleep("};
inline const std::vector<std::string_view> no_include_in_protocol_code = {"src/base/monotonic_clock.hpp",
                                                                          "src/base/system_random.hpp",
                                                                          "thread",
                                                                          "future",
                                                                          "pthread.h",
                                                                          "threads.h",
                                                                          "ctime",
                                                                          "time.h",
                                                                          "sys/time.h",
                                                                          "sys/timerfd.h",
                                                                          "sys/random.h",
                                                                          "x86intrin.h"};

// What no text of the project says. Each row: a cheap sign that a line is worth a look, the pattern, and why.
struct Banned {
  std::string_view sign;
  std::regex pattern;
  std::string_view what;
};
inline const std::vector<Banned> banned_text = {
    {"/", std::regex(R"((^|[^\w.\-}~])/(home|work|Users)/\w)"), "a path of one developer's machine"},
    {"#", std::regex(R"((^|[\s(\[,;])#[0-9]+(?![\w-]))"), "an issue's number"},
    {"#", std::regex(R"([\w.-]+/[\w.-]+#[0-9]+(?![\w-]))"), "an issue's number"},
    {"ssue", std::regex(R"(\b[Ii]ssues? (#|number |no\. ?)?[0-9]+)"), "an issue's number"},
};
// Texts of others, kept word for word.
inline const std::vector<std::string_view> not_our_text = {"LICENSE"};

}  // namespace verbatim::architecture
