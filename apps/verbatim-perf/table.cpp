// Results for people: one block per test, one line per size.
#include <fmt/format.h>

#include <functional>

#include "base/units.hpp"
#include "output.hpp"

namespace verbatim::perf {
namespace {

struct Column {
  int width;
  std::string_view head;  // above `name`: what it is of
  std::string_view name;
  std::function<std::string(const PointResult&)> cell;
};

// Three or four digits that count.
std::string compact(double value) {
  const int decimals = value < 0.1 ? 5 : value < 10 ? 3 : value < 100 ? 2 : value < 1000 ? 1 : 0;
  return fmt::format("{:.{}f}", value, decimals);
}

Column size_column() {
  return {9, "", "size", [](const PointResult& r) { return format_size(r.point.bytes); }};
}

Column latency_column(std::string_view head, std::string_view name, double Distribution::*value) {
  return {8, head, name, [value](const PointResult& r) { return compact(r.latency_ns.*value * 1e-3); }};
}

// "-" where there is no yardstick.
Column ratio_column(std::string_view head, std::string_view name, std::optional<double> (PointResult::*ratio)() const) {
  return {8, head, name, [ratio](const PointResult& r) {
            const auto value = (r.*ratio)();
            return value ? compact(*value) : "-";
          }};
}

Column cpu_column(std::string_view head, std::string_view name, SideUse PointResult::*side) {
  return {8, head, name, [side](const PointResult& r) {
            return compact(static_cast<double>((r.*side).cpu_ns) / static_cast<double>(r.messages));
          }};
}

void add_costs(std::vector<Column>& columns) {
  columns.push_back(cpu_column("CPU ns", "here", &PointResult::here));
  columns.push_back(cpu_column("/msg", "there", &PointResult::there));
  columns.push_back({8, "posts", "/msg",
                     [](const PointResult& r) { return fmt::format("{:.3f}", r.per_operation(&SideUse::posts)); }});
  columns.push_back(
      {9, "signal-", "led", [](const PointResult& r) { return fmt::format("{:.1f} %", 100 * r.signalled_share()); }});
  columns.push_back({11, "receive", "posts/msg", [](const PointResult& r) {
                       return fmt::format("{:.3f}", r.per_operation(&SideUse::receive_posts));
                     }});
}

std::vector<Column> latency_columns() {
  std::vector<Column> columns{
      size_column(),
      latency_column("µs", "p50", &Distribution::p50),
      latency_column("", "p90", &Distribution::p90),
      latency_column("", "p99", &Distribution::p99),
      latency_column("", "p99.9", &Distribution::p999),
      latency_column("", "max", &Distribution::max),
      latency_column("", "mean", &Distribution::mean),
      {9, "", "count", [](const PointResult& r) { return fmt::format("{}", r.latency_ns.count); }},
      ratio_column("x cache", "line", &PointResult::times_handover)};
  add_costs(columns);
  return columns;
}

std::vector<Column> bandwidth_columns() {
  std::vector<Column> columns{
      size_column(),
      {10, "", "MB/s", [](const PointResult& r) { return compact(r.bytes_per_second() * 1e-6); }},
      {9, "", "M msg/s", [](const PointResult& r) { return compact(r.messages_per_second() * 1e-6); }},
      {10, "", "messages", [](const PointResult& r) { return fmt::format("{}", r.messages); }},
      {8, "", "window", [](const PointResult& r) { return fmt::format("{}", r.point.window); }},
      ratio_column("x", "memcpy", &PointResult::share_of_memcpy)};
  add_costs(columns);
  return columns;
}

std::string line_of(const std::vector<Column>& columns, const std::function<std::string(const Column&)>& cell) {
  std::string line;
  for (const Column& column : columns) line += fmt::format(" {:>{}}", cell(column), column.width - 1);
  return line + "\n";
}

// Nearby points are of one yardstick as good as another: the middle one speaks for all.
std::string describe_yardstick(const Results& results) {
  std::vector<double> handovers;
  for (const PointResult& result : results.points) {
    if (result.yardstick) handovers.push_back(result.yardstick->handover_ns);
  }
  if (handovers.empty()) return {};
  std::string text = fmt::format("This machine, next to each point: a cache line handed to the other core {:.0f} ns",
                                 median(handovers));
  std::uint64_t last_bytes = 0;
  for (const PointResult& result : results.points) {
    if (result.is_latency() || !result.share_of_memcpy() || result.point.bytes <= last_bytes) continue;
    last_bytes = result.point.bytes;
    text += fmt::format(", memcpy of {} {:.1f} GB/s", format_size(last_bytes),
                        result.yardstick->memcpy_bytes_per_second * 1e-9);
  }
  return text + ".\n";
}

std::string describe_whole(const Results& results) {
  std::uint64_t rnr_naks = 0;
  std::uint64_t retransmits = 0;
  std::uint64_t pinned_here = 0;
  std::uint64_t pinned_there = 0;
  std::uint64_t messages = 0;
  for (const PointResult& result : results.points) {
    rnr_naks += result.here.rnr_naks + result.there.rnr_naks;
    retransmits += result.here.retransmits + result.there.retransmits;
    pinned_here = std::max(pinned_here, result.here.pinned_bytes);
    pinned_there = std::max(pinned_there, result.there.pinned_bytes);
    messages += result.messages;
  }
  constexpr double MB = 1e6;
  std::string text =
      fmt::format("RNR NAKs {}, retransmits {}; pinned at most {:.1f} MB here, {:.1f} MB there.\n", rnr_naks,
                  retransmits, static_cast<double>(pinned_here) / MB, static_cast<double>(pinned_there) / MB);
  if (results.conditions.check) {
    text += fmt::format("Every byte of {} messages was right; the times above include looking at them.\n", messages);
  }
  return text;
}

}  // namespace

std::string describe(const Conditions& conditions) {
  return fmt::format("{}; {}; waits: {}{}", conditions.device, conditions.place, conditions.wait,
                     conditions.check ? "; payloads checked" : "");
}

std::string to_table(const Results& results) {
  std::string text = describe(results.conditions) + "\n";
  const auto columns_of = [](const PointResult& result) {
    return result.is_latency() ? latency_columns() : bandwidth_columns();
  };
  const TestTraits* test = nullptr;
  for (const PointResult& result : results.points) {
    const auto columns = columns_of(result);
    if (test != &traits(result.point.test)) {
      test = &traits(result.point.test);
      text += fmt::format("\n{}: {}\n", test->name, test->definition);
      text += line_of(columns, [](const Column& column) { return std::string(column.head); });
      text += line_of(columns, [](const Column& column) { return std::string(column.name); });
    }
    text += line_of(columns, [&](const Column& column) { return column.cell(result); });
  }
  return text + "\n" + describe_yardstick(results) + describe_whole(results);
}

}  // namespace verbatim::perf
