// The report for people: a label, a value, and the choice first.
#include <fmt/format.h>

#include <array>
#include <iterator>

#include "base/units.hpp"
#include "report.hpp"

namespace verbatim::info {
namespace {

class Page {
 public:
  void heading(const std::string& text) { append("{}{}\n", text_.empty() ? "" : "\n", text); }
  void line(const std::string& label, const std::string& value) { append("  {:<26} {}\n", label, value); }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  template <typename... Values>
  void append(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
  }
  std::string text_;
};

// Rounded where it isn't a whole number of its unit: for reading, not for computing.
std::string format_about(std::uint64_t bytes) {
  constexpr std::array units{std::pair{1ull << 40, "TiB"}, std::pair{1ull << 30, "GiB"}, std::pair{1ull << 20, "MiB"},
                             std::pair{1ull << 10, "KiB"}};
  for (const auto& [unit, name] : units) {
    if (bytes < unit) continue;
    return bytes % unit == 0 ? fmt::format("{} {}", bytes / unit, name)
                             : fmt::format("{:.1f} {}", static_cast<double>(bytes) / static_cast<double>(unit), name);
  }
  return fmt::format("{} bytes", bytes);
}

std::string format_limit(std::optional<std::uint64_t> bytes) {
  return bytes ? format_about(*bytes) : "unlimited";
}

std::string list_or(const std::vector<int>& cpus, const char* none) {
  return cpus.empty() ? none : mem::format_cpu_list(cpus);
}

void write_choice(const Report& report, Page& page) {
  page.heading("Choice");
  if (!report.choice) {
    page.line("none", report.refusal);
    return;
  }
  const auto& choice = *report.choice;
  const auto& gid = choice.gid.entry;
  page.line("device", choice.device);
  page.line("port", fmt::format("{}", choice.port.value));
  page.line("", choice.reason);
  page.line("GID", fmt::format("{}: {}", gid.index, to_string(gid.gid)));
  page.line("", choice.gid.reason);
}

void write_port(const device::PortDescription& port, Page& page) {
  const auto lid = port.link_layer == device::LinkLayer::infiniband ? fmt::format(", LID {}", port.lid) : "";
  page.line(fmt::format("port {}", port.number.value),
            fmt::format("{}, {}{}, MTU {} of at most {}, messages up to {}", to_string(port.state),
                        to_string(port.link_layer), lid, port.active_mtu_bytes, port.max_mtu_bytes,
                        format_about(port.max_message_bytes)));
  for (const auto& entry : port.gids) {
    page.line(fmt::format("  GID {}", entry.index),
              fmt::format("{:<9} {}{}{}", to_string(entry.type), to_string(entry.gid),
                          entry.network_device.empty() ? "" : "  ", entry.network_device));
  }
  for (const auto& pkey : port.pkeys)
    page.line(fmt::format("  P_Key {}", pkey.index), fmt::format("{:#06x}", pkey.value));
}

void write_device(const device::DeviceDescription& device, Page& page) {
  page.heading(fmt::format("Device {}", device.name));
  page.line("provider", to_string(device.provider));
  page.line("node GUID", format_guid(device.node_guid));
  page.line("firmware", device.firmware.empty() ? "-" : device.firmware);
  const auto& place = device.placement;
  page.line("NUMA node",
            place.numa_node ? fmt::format("{}, CPUs {}", *place.numa_node, list_or(place.cpus, "none")) : "unknown");
  for (const auto& port : device.ports) write_port(port, page);
  page.line("atomics", device.limits.atomics == device::AtomicScope::none
                           ? "none"
                           : fmt::format("atomic within the {}", to_string(device.limits.atomics)));
  page.line("on-demand paging", device.limits.on_demand_paging ? "yes" : "no");
  for (const auto& [name, value] : rows_of(device.limits)) page.line(std::string(name), fmt::format("{}", value));
  if (!device.mlx5) return;
  page.heading(fmt::format("Device {}, beyond verbs (mlx5)", device.name));
  for (const auto& [name, value] : rows_of(*device.mlx5)) page.line(std::string(name), fmt::format("{}", value));
}

void write_skipped(const std::vector<device::SkippedDevice>& skipped, Page& page) {
  if (skipped.empty()) return;
  page.heading("Skipped");
  for (const auto& device : skipped) page.line(device.name, device.reason);
}

const char* explain(mem::ForkSupport fork) {
  switch (fork) {
    case mem::ForkSupport::none:
      return "a child may take registered pages from the device";
    case mem::ForkSupport::withheld:
      return "libibverbs withholds registered memory from a child";
    case mem::ForkSupport::copied:
      return "the kernel copies registered memory for a child";
  }
  return "unknown";
}

const char* explain(mem::PtraceScope scope) {
  switch (scope) {
    case mem::PtraceScope::same_user:
      return "0: processes of one user may read each other's memory";
    case mem::PtraceScope::descendants:
      return "1: only a parent may read a process's memory, unless the process allows it";
    case mem::PtraceScope::administrators:
      return "2: only administrators may read a process's memory";
    case mem::PtraceScope::nobody:
      return "3: nobody may read a process's memory";
  }
  return "unknown";
}

void write_host(const Report& report, Page& page) {
  page.heading("Host");
  for (const auto& node : report.numa_nodes) {
    page.line(fmt::format("NUMA node {}", node.index),
              fmt::format("{}, {} {}, CPUs {}, allowed {}", format_about(node.memory_bytes), node.cores,
                          node.cores == 1 ? "core" : "cores", list_or(node.cpus, "none"),
                          list_or(node.allowed_cpus, "none")));
  }
  const auto& host = report.host;
  page.line("RLIMIT_MEMLOCK", fmt::format("{} may be locked, {} when raised", format_limit(host.memlock_bytes),
                                          format_limit(host.memlock_max_bytes)));
  if (host.huge_pages.empty()) page.line("huge pages", "none");
  for (const auto& pool : host.huge_pages) {
    page.line(fmt::format("huge pages {}", format_size(pool.page_bytes)),
              fmt::format("{} free of {}", pool.free, pool.total));
  }
  page.line("/dev/shm", host.shared_memory ? fmt::format("{} free of {}", format_about(host.shared_memory->free_bytes),
                                                         format_about(host.shared_memory->total_bytes))
                                           : "none");
  page.line("fork", explain(host.fork));
  page.line("ptrace scope", explain(host.ptrace_scope));
  const auto& problem = report.registration_cache_problem;
  page.line("registration cache", problem.empty() ? "works" : fmt::format("off: {}", problem));
}

}  // namespace

std::string to_text(const Report& report) {
  Page page;
  write_choice(report, page);
  for (const auto& device : report.inventory.devices) write_device(device, page);
  write_skipped(report.inventory.skipped, page);
  write_host(report, page);
  return page.take();
}

}  // namespace verbatim::info
