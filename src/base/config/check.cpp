#include "base/config/check.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <string_view>

#include "base/config/knobs.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/units.hpp"

namespace verbatim::config {
namespace {

using namespace std::chrono_literals;

[[noreturn]] void wrong(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, "configuration: " + sentence);
}

// A value that a program wrote into a member has to pass where one of a file would.
void refuse_values_out_of_range(const Config& config) {
  for (const Knob& knob : knobs()) {
    Config copy;
    set(copy, knob, {"configuration", full_name(knob), show_bare(config, knob)});
  }
}

void refuse_device(const Config::Device& device) {
  if ((device.pkey & 0x7fff) == 0) {
    wrong(
        fmt::format("device.pkey is {:#x}, which is the key of no partition; the default one is 0xffff", device.pkey));
  }
  if (!std::has_single_bit(device.mtu_bytes)) {
    wrong(fmt::format("device.mtu_bytes is {}; 256, 512, 1024, 2048 and 4096 are allowed", device.mtu_bytes));
  }
}

void refuse_queue(std::string_view name, std::uint32_t depth, std::uint32_t control_slots) {
  constexpr std::uint32_t drain_markers = 1;
  const std::uint64_t entries = std::uint64_t{depth} + control_slots + drain_markers;
  if (entries <= most_queue_entries) return;
  wrong(
      fmt::format("{} is {} and rc.control_slots {}, with one for a drain {}; a queue has {} entries at most, so lower "
                  "one",
                  name, depth, control_slots, entries, most_queue_entries));
}

// `part`: of the depth, 2 for half of it.
void refuse_more_than(std::uint32_t part, std::string_view name, std::uint32_t value, std::string_view of,
                      std::uint32_t depth) {
  if (value <= std::max(1U, depth / part)) return;
  wrong(
      fmt::format("{} is {}; at most a {} of {}, which is {}, is allowed, or the queue would run dry before it is "
                  "refilled: lower the one or raise the other",
                  name, value, part == 2 ? "half" : "quarter", of, depth));
}

void refuse_queue_pairs(const Config::ReliableConnection& rc) {
  if (rc.pool_initial > rc.pool_max) {
    wrong(fmt::format("rc.pool_initial is {}, but rc.pool_max {}; make no more ahead than there may be",
                      rc.pool_initial, rc.pool_max));
  }
  refuse_queue("rc.receive_depth", rc.receive_depth, rc.control_slots);
  refuse_queue("rc.send_depth", rc.send_depth, rc.control_slots);
  refuse_more_than(4, "rc.signal_interval", rc.signal_interval, "rc.send_depth", rc.send_depth);
  refuse_more_than(2, "rc.repost_batch", rc.repost_batch, "rc.receive_depth", rc.receive_depth);
}

// Rings are for workers that poll alone.
void refuse_ring(const Config::WriteQueue& ring, std::uint32_t eager_bytes, WaitMode wait) {
  if (ring.enabled == Switch::off || wait != WaitMode::poll) return;
  if (!std::has_single_bit(ring.bytes)) {
    wrong(fmt::format("write_queue.bytes is {}; a power of two is allowed, such as {}", format_size(ring.bytes),
                      format_size(std::bit_ceil(ring.bytes))));
  }
  const std::uint64_t record = (std::uint64_t{eager_bytes} + record_overhead_bytes + record_alignment_bytes - 1) /
                               record_alignment_bytes * record_alignment_bytes;
  const std::uint64_t least = record * least_records_per_ring;
  if (ring.bytes >= least) return;
  wrong(
      fmt::format("write_queue.bytes is {} and eager.max_bytes {}; a ring holds at least {} of the largest messages, "
                  "which takes {}: raise the one to {} or lower the other",
                  format_size(ring.bytes), format_size(eager_bytes), least_records_per_ring, format_size(least),
                  format_size(std::bit_ceil(least))));
}

void refuse_ports(const Config::Bootstrap& bootstrap) {
  if (bootstrap.port_last == 0 || (bootstrap.port_first != 0 && bootstrap.port_last >= bootstrap.port_first)) return;
  wrong(
      fmt::format("bootstrap.port_last is {}, but bootstrap.port_first {}; a range goes up from a first port that is "
                  "not 0",
                  bootstrap.port_last, bootstrap.port_first));
}

// Longer than any other RNR timer, and the one that its code 0 stands for.
constexpr Duration longest_rnr_timer_but_one = 491520us;
constexpr std::uint8_t retry_for_ever = 7;
constexpr Duration long_silence = 10s;

}  // namespace

void refuse_what_is_wrong(const Config& config) {
  refuse_values_out_of_range(config);
  refuse_device(config.device);
  refuse_queue_pairs(config.rc);
  refuse_ring(config.write_queue, config.eager.max_bytes, config.worker.wait);
  refuse_ports(config.bootstrap);
}

std::vector<std::string> doubts(const Config& config) {
  std::vector<std::string> sentences;
  const Config::ReliableConnection& rc = config.rc;
  const Duration budget = rc.ack_timeout * (rc.retry_count + 1);
  if (budget > long_silence) {
    sentences.push_back(fmt::format(
        "rc.ack_timeout {} and rc.retry_count {} let a queue pair be silent for {} before it fails: a host that is "
        "gone is noticed only after that; {} is a long time already",
        format_duration(rc.ack_timeout), rc.retry_count, format_duration(budget), format_duration(long_silence)));
  }
  if (rc.rnr_retry_count == retry_for_ever) {
    sentences.push_back(
        fmt::format("rc.rnr_retry_count is {}, which is for ever: a peer that never posts a receive is never noticed; "
                    "{} is the most "
                    "that ends",
                    rc.rnr_retry_count, retry_for_ever - 1));
  }
  if (rc.rnr_timer > longest_rnr_timer_but_one) {
    sentences.push_back(
        fmt::format("rc.rnr_timer is {}, which devices round up to 655.36ms: each time that a receive is missing costs "
                    "that long; 640us is usual",
                    format_duration(rc.rnr_timer)));
  }
  return sentences;
}

}  // namespace verbatim::config

namespace verbatim {

void check(const Config& config) {
  config::refuse_what_is_wrong(config);
  for (const std::string& doubt : config::doubts(config)) log().warn("configuration: {}", doubt);
}

}  // namespace verbatim
