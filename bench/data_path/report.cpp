#include "report.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace verbatim::data_path {
namespace {

// At most `numerator` for every `denominator` of what it is measured by.
struct Limit {
  std::uint64_t numerator;
  std::uint64_t denominator = 1;

  [[nodiscard]] bool holds(std::uint64_t count, std::uint64_t of) const {
    return count * denominator <= of * numerator;
  }
  [[nodiscard]] std::string text() const {
    return denominator == 1 ? fmt::format("{}", numerator) : fmt::format("{}/{}", numerator, denominator);
  }
};

constexpr Limit never{0};
constexpr Limit one_each{1};
constexpr Limit one_of_16{1, 16};
constexpr Limit one_of_8{1, 8};

struct Cell {
  std::uint64_t count = 0;
  std::uint64_t of = 1;
  std::optional<Limit> limit{};

  [[nodiscard]] bool broken() const { return limit && !limit->holds(count, of); }
  // As many digits as tell it from none.
  [[nodiscard]] std::string text() const {
    const double each = of == 0 ? 0 : static_cast<double>(count) / static_cast<double>(of);
    return (each == 0      ? "0"
            : each < 0.001 ? fmt::format("{:.1e}", each)
                           : fmt::format("{:.3f}", each)) +
           (broken() ? "!" : "");
  }
};

struct Column {
  std::string_view head;
  std::string_view name;  // below it
  std::string_view what;  // in a sentence
};
constexpr std::array columns{Column{"heap calls", "/message", "heap calls per message"},
                             Column{"system calls", "/message", "system calls per message"},
                             Column{"posts", "/message", "posts per message"},
                             Column{"for credits", "/message", "posts for credits alone per message"},
                             Column{"signalled", "/post", "signalled posts per post"},
                             Column{"receive posts", "/message", "receive posts per message"}};

using Row = std::array<Cell, columns.size()>;

std::uint64_t sum_of(const SystemCalls& calls) {
  std::uint64_t sum = 0;
  for (const auto& [number, count] : calls) sum += count;
  return sum;
}

std::string describe(const SystemCalls& calls) {
  std::string text;
  for (const auto& [number, count] : calls) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", system_call_name(number), count);
  }
  return text;
}

std::uint64_t sum_of(const std::array<SideCounts, sides>& counts, std::uint64_t SideCounts::*member) {
  return counts[0].*member + counts[1].*member;
}

// No fault of the path:
//   - peers can't map a program's own memory: what lies there is read from the other process, by the kernel;
//   - a worker that lost its processor may find the soft device's helpers at work in its stead, and waits for its own,
//   or
//     wakes the other side's. That is a few calls each time.
std::uint64_t excused(const Phase& phase, const SystemCalls& calls, std::uint64_t preemptions) {
  constexpr std::uint64_t most_each_time = 16;
  const auto count = [&](long call) { return calls.contains(call) ? calls.at(call) : 0; };
  const std::uint64_t reads = phase.memory == Memory::own ? count(SYS_process_vm_readv) : 0;
  return reads + std::min(count(SYS_sched_yield) + count(SYS_futex), most_each_time * preemptions);
}

std::optional<Limit> for_eager(const Phase& phase, Limit limit) {
  return phase.eager ? std::optional(limit) : std::nullopt;
}

Row make_row(const Phase& phase, const std::array<SideCounts, sides>& counts, const SystemCalls& calls) {
  const std::uint64_t messages = sum_of(counts, &SideCounts::messages);
  const std::uint64_t posts = sum_of(counts, &SideCounts::posts);
  const std::uint64_t credits = sum_of(counts, &SideCounts::credit_messages);
  const bool all_excused = sum_of(calls) == excused(phase, calls, sum_of(counts, &SideCounts::preemptions));
  return {Cell{sum_of(counts, &SideCounts::heap_calls), messages, never},
          Cell{sum_of(calls), messages, all_excused ? std::nullopt : std::optional(never)},
          Cell{posts - credits, messages, for_eager(phase, one_each)},
          Cell{credits, messages},
          Cell{sum_of(counts, &SideCounts::signalled), posts, for_eager(phase, one_of_16)},
          Cell{sum_of(counts, &SideCounts::receive_posts), messages,
               for_eager(phase, phase.carrier == Carrier::ring ? never : one_of_8)}};
}

std::string line_of(std::string_view name, std::string_view messages,
                    const std::array<std::string, columns.size()>& cells) {
  std::string line = fmt::format("  {:<30}{:>9}", name, messages);
  for (std::size_t i = 0; i < columns.size(); ++i) line += fmt::format("  {:>13}", cells[i]);
  return line;
}

std::string head_of(Carrier carrier) {
  std::array<std::string, columns.size()> heads;
  std::array<std::string, columns.size()> names;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    heads[i] = columns[i].head;
    names[i] = columns[i].name;
  }
  return fmt::format("\n{}\n{}\n{}\n",
                     carrier == Carrier::ring ? "Through rings in the receiver's memory"
                                              : "Through receives (write_queue.enabled = \"off\")",
                     line_of("", "messages", heads), line_of("", "", names));
}

std::string limits_of(Carrier carrier) {
  const std::string receives = (carrier == Carrier::ring ? never : one_of_8).text();
  return line_of("limits of eager messages", "",
                 {never.text(), never.text(), one_each.text(), "", one_of_16.text(), receives}) +
         "\n" + line_of("limits of all others", "", {never.text(), never.text(), "", "", "", ""}) + "\n";
}

std::string describe_others(const SystemCallTracer& tracer) {
  std::string text;
  for (const auto& [thread, calls] : tracer.of_others()) {
    text += fmt::format("{}{} {:.0f}/s ({})", text.empty() ? "" : "; ", thread,
                        static_cast<double>(sum_of(calls)) / tracer.marked_time().count(), describe(calls));
  }
  return text.empty() ? "none" : text;
}

std::string legend(const SystemCallTracer& tracer) {
  std::string text =
      "\nBoth processes together, from the meeting before the first message to the one after the last. Heap calls: of\n"
      "every thread, frees too. System calls: of the workers' threads. A frame that carries nothing but credits is a\n"
      "post of its own kind. Own memory: of the program, registered; peers can't map it, so payload is read from the\n"
      "other process by process_vm_readv, which is a system call. A worker that lost its processor for a while may\n"
      "have to wait for the soft device's helper, which stepped in (sched_yield), or wake the other side's (futex).\n";
  if (!tracer.refusal().empty()) return text + "System calls are not counted: " + tracer.refusal() + "\n";
  return text + fmt::format("System calls of the library's other threads, in both processes, in {:.1f} s: {}.\n",
                            tracer.marked_time().count(), describe_others(tracer));
}

}  // namespace

Report make_report(const SharedPage& page, SystemCallTracer& tracer) {
  Report report;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const Phase& phase = phases[i];
    if (i == 0 || phases[i - 1].carrier != phase.carrier) report.table += head_of(phase.carrier);
    const SystemCalls& calls = tracer.of_marked(i);
    const Row row = make_row(phase, page.counts[i], calls);
    std::array<std::string, columns.size()> cells;
    for (std::size_t column = 0; column < columns.size(); ++column) {
      cells[column] = row[column].text();
      if (row[column].broken()) {
        report.broken.push_back(fmt::format("{}: {} of {} {}, at most {} allowed", phase.name, row[column].count,
                                            row[column].of, columns[column].what, row[column].limit->text()));
      }
    }
    if (!tracer.refusal().empty()) cells[1] = "-";
    report.table += line_of(phase.name, fmt::format("{}", sum_of(page.counts[i], &SideCounts::messages)), cells);
    if (!calls.empty()) report.table += "  " + describe(calls);
    if (calls.contains(SYS_sched_yield) || calls.contains(SYS_futex)) {
      report.table += fmt::format(" (preempted {} times)", sum_of(page.counts[i], &SideCounts::preemptions));
    }
    report.table += '\n';
    if (i + 1 == phases.size() || phases[i + 1].carrier != phase.carrier) report.table += limits_of(phase.carrier);
  }
  report.table += legend(tracer);
  return report;
}

}  // namespace verbatim::data_path
