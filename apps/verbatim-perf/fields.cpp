#include "fields.hpp"

namespace verbatim::perf {
namespace {

using R = const PointResult&;

FieldValue latency(R result, double Distribution::*value) {
  if (!result.is_latency()) return std::monostate{};
  return result.latency_ns.*value;
}

FieldValue bandwidth(R result, double value) {
  if (result.is_latency()) return std::monostate{};
  return value;
}

FieldValue or_nothing(const std::optional<double>& value) {
  if (!value) return std::monostate{};
  return *value;
}

FieldValue cpu_per_message(R result, const SideUse& side) {
  return static_cast<double>(side.cpu_ns) / static_cast<double>(result.messages);
}

}  // namespace

const std::vector<Field>& fields() {
  static const std::vector<Field> all{
      {"test", [](R r) -> FieldValue { return std::string(traits(r.point.test).name); }},
      {"bytes", [](R r) -> FieldValue { return r.point.bytes; }},
      {"window", [](R r) -> FieldValue { return std::uint64_t{r.point.window}; }},
      {"checked", [](R r) -> FieldValue { return r.point.check; }},
      {"messages", [](R r) -> FieldValue { return r.messages; }},
      {"elapsed_ns", [](R r) -> FieldValue { return r.elapsed_ns; }},
      {"latency_count",
       [](R r) -> FieldValue {
         if (!r.is_latency()) return std::monostate{};
         return r.latency_ns.count;
       }},
      {"latency_mean_ns", [](R r) { return latency(r, &Distribution::mean); }},
      {"latency_p50_ns", [](R r) { return latency(r, &Distribution::p50); }},
      {"latency_p90_ns", [](R r) { return latency(r, &Distribution::p90); }},
      {"latency_p99_ns", [](R r) { return latency(r, &Distribution::p99); }},
      {"latency_p99_9_ns", [](R r) { return latency(r, &Distribution::p999); }},
      {"latency_max_ns", [](R r) { return latency(r, &Distribution::max); }},
      {"megabytes_per_second", [](R r) { return bandwidth(r, r.bytes_per_second() * 1e-6); }},
      {"million_messages_per_second", [](R r) { return bandwidth(r, r.messages_per_second() * 1e-6); }},
      {"cpu_ns_per_message", [](R r) { return cpu_per_message(r, r.here); }},
      {"peer_cpu_ns_per_message", [](R r) { return cpu_per_message(r, r.there); }},
      {"posts_per_message", [](R r) -> FieldValue { return r.per_operation(&SideUse::posts); }},
      {"signalled_share", [](R r) -> FieldValue { return r.signalled_share(); }},
      {"receive_posts_per_message", [](R r) -> FieldValue { return r.per_operation(&SideUse::receive_posts); }},
      {"rnr_naks", [](R r) -> FieldValue { return r.here.rnr_naks + r.there.rnr_naks; }},
      {"retransmits", [](R r) -> FieldValue { return r.here.retransmits + r.there.retransmits; }},
      {"pinned_bytes", [](R r) -> FieldValue { return r.here.pinned_bytes; }},
      {"peer_pinned_bytes", [](R r) -> FieldValue { return r.there.pinned_bytes; }},
      {"cache_line_handover_ns",
       [](R r) -> FieldValue {
         if (!r.yardstick) return std::monostate{};
         return r.yardstick->handover_ns;
       }},
      {"memcpy_megabytes_per_second",
       [](R r) -> FieldValue {
         if (!r.yardstick || r.yardstick->memcpy_bytes_per_second == 0) return std::monostate{};
         return r.yardstick->memcpy_bytes_per_second * 1e-6;
       }},
      {"latency_per_handover", [](R r) { return or_nothing(r.times_handover()); }},
      {"bandwidth_per_memcpy", [](R r) { return or_nothing(r.share_of_memcpy()); }},
  };
  return all;
}

}  // namespace verbatim::perf
