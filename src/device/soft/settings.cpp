#include "device/soft/settings.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/log.hpp"
#include "device/soft/engine/port.hpp"
#include "device/soft/settings/rows.hpp"

namespace verbatim::soft {
namespace {

constexpr std::string_view prefix = "VERBATIM_SOFT_";
constexpr std::string_view environment_place = "environment";
constexpr std::string_view root_table = "soft";

using Names = std::vector<std::string>;

// -- names nobody knows --------------------------------------------------------------------------------------------

// Insertions, deletions and replacements that lead from one name to the other.
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

void warn_unknown(const Warn& warn, std::string_view where, std::string_view name, const Names& known) {
  const auto nearest = std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
    return edits_between(name, a) < edits_between(name, b);
  });
  warn(fmt::format("{}: nobody knows '{}', so it changes nothing; did you mean '{}'?", where, name, *nearest));
}

template <typename RowType>
Names names_of(std::span<const RowType> rows, std::string_view table) {
  Names names;
  for (const RowType& row : rows) {
    if (row.table == table) names.emplace_back(row.name);
  }
  return names;
}

template <typename RowType>
const RowType* find_row(std::span<const RowType> rows, std::string_view table, std::string_view name) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const RowType& row) { return row.table == table && row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

// -- lists -----------------------------------------------------------------------------------------------------------

void set_gids(PortConfig& port, const std::vector<Value>& values) {
  port.gids.clear();
  for (const Value& value : values) {
    if (port.gids.size() == most_gids) refuse(value, fmt::format("at most {} entries", most_gids));
    port.gids.push_back(read_gid(value));
  }
}

void set_pkeys(PortConfig& port, const std::vector<Value>& values) {
  port.pkeys.clear();
  for (const Value& value : values) {
    if (port.pkeys.size() == most_pkeys) refuse(value, fmt::format("at most {} entries", most_pkeys));
    port.pkeys.push_back(static_cast<std::uint16_t>(read_count(value, {0, UINT16_MAX})));
  }
}

void add_rule(FaultPlan& plan, const PacketRule& rule, const Value& whole) {
  if (rule.rate == 0 && rule.nth == 0) refuse(whole, "a rule with rate or nth, or it never strikes");
  const bool holds_back = rule.fault == PacketFault::delay || rule.fault == PacketFault::reorder;
  if (holds_back && rule.delay == Duration{}) refuse(whole, "delay and reorder with a delay, such as 10us");
  if (plan.packets.size() == most_packet_rules) refuse(whole, fmt::format("at most {} rules", most_packet_rules));
  plan.packets.push_back(rule);
}

// -- the file --------------------------------------------------------------------------------------------------------

class File {
 public:
  File(std::string path, const Warn& warn) : path_(std::move(path)), warn_(warn) {}

  void read(DeviceConfig& config) const {
    if (::access(path_.c_str(), R_OK) != 0) {
      throw Error(ErrorCode::not_found,
                  fmt::format("VERBATIM_SOFT_CONFIG: {} can't be read: {}", path_, std::strerror(errno)));
    }
    toml::table root;
    try {
      root = toml::parse_file(path_);
    } catch (const toml::parse_error& error) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}:{}: {}", path_, error.source().begin.line, error.description()));
    }
    // Other tables belong to others.
    if (const auto* soft = root[root_table].as_table()) return read_device(config, *soft, "");
    for (const auto& [key, node] : root) warn_unknown(warn_, place(key), key.str(), {std::string(root_table)});
  }

 private:
  template <typename Place>
  [[nodiscard]] std::string place(const Place& of) const {
    return fmt::format("{}:{}", path_, of.source().begin.line);
  }

  // A scalar of any type as text; what it means is for the knob to say.
  [[nodiscard]] Value value_of(std::string_view name, const toml::node& node) const {
    Value value{place(node), std::string(name), {}};
    if (const auto* text = node.as_string()) {
      value.text = text->get();
    } else if (const auto* number = node.as_integer()) {
      value.text = fmt::format("{}", number->get());
    } else if (const auto* real = node.as_floating_point()) {
      value.text = fmt::format("{}", real->get());
    } else if (const auto* flag = node.as_boolean()) {
      value.text = flag->get() ? "true" : "false";
    } else {
      value.text = "neither text nor number";
      refuse(value, "one value");
    }
    return value;
  }

  [[nodiscard]] std::vector<Value> values_of(std::string_view name, const toml::node& node) const {
    std::vector<Value> values;
    const auto* array = node.as_array();
    if (array == nullptr) refuse(value_of(name, node), "a list in brackets");
    for (const toml::node& element : *array) values.push_back(value_of(name, element));
    return values;
  }

  [[nodiscard]] std::vector<const toml::table*> tables_of(std::string_view name, const toml::node& node,
                                                          std::uint64_t most) const {
    std::vector<const toml::table*> tables;
    const Value whole{place(node), std::string(name), "something else"};
    const auto* array = node.as_array();
    if (array == nullptr || array->size() > most) refuse(whole, fmt::format("a list of at most {} tables", most));
    for (const toml::node& element : *array) {
      if (!element.is_table()) refuse(whole, "a list of tables");
      tables.push_back(element.as_table());
    }
    return tables;
  }

  void read_device(DeviceConfig& config, const toml::table& from, std::string_view table) const {
    for (const auto& [key, node] : from) {
      const std::string_view name = key.str();
      if (const DeviceRow* row = find_row(device_rows(), table, name)) {
        set(config, *row, value_of(name, node));
      } else if (table.empty() && name == ports_table) {
        read_ports(config, node);
      } else if (table.empty() && name == faults_table) {
        read_faults(config.faults, node);
      } else if (table.empty() && (name == limits_table || name == quirks_table) && node.is_table()) {
        read_device(config, *node.as_table(), name);
      } else {
        Names known = names_of(device_rows(), table);
        if (table.empty()) {
          for (const auto part : {limits_table, quirks_table, ports_table, faults_table}) known.emplace_back(part);
        }
        warn_unknown(warn_, place(key), name, known);
      }
    }
  }

  void read_ports(DeviceConfig& config, const toml::node& node) const {
    config.ports.clear();
    for (const toml::table* table : tables_of(ports_table, node, most_ports)) {
      PortConfig& port = config.ports.emplace_back();
      for (const auto& [key, entry] : *table) {
        const std::string_view name = key.str();
        if (const PortRow* row = find_row(port_rows(), ports_table, name)) {
          set(port, *row, value_of(name, entry));
        } else if (name == "gids") {
          set_gids(port, values_of(name, entry));
        } else if (name == "pkeys") {
          set_pkeys(port, values_of(name, entry));
        } else {
          Names known = names_of(port_rows(), ports_table);
          known.insert(known.end(), {"gids", "pkeys"});
          warn_unknown(warn_, place(key), name, known);
        }
      }
    }
  }

  void read_faults(FaultPlan& plan, const toml::node& node) const {
    plan.packets.clear();
    for (const toml::table* table : tables_of(faults_table, node, most_packet_rules)) {
      PacketRule rule;
      for (const auto& [key, entry] : *table) {
        const RuleRow* row = find_row(rule_rows(), faults_table, key.str());
        if (row == nullptr) {
          warn_unknown(warn_, place(key), key.str(), names_of(rule_rows(), faults_table));
        } else {
          set(rule, *row, value_of(key.str(), entry));
        }
      }
      add_rule(plan, rule, {place(*table), std::string(faults_table), "incomplete"});
    }
  }

  std::string path_;
  const Warn& warn_;
};

// -- the environment -------------------------------------------------------------------------------------------------

std::string variable(std::string_view knob) {
  std::string name(prefix);
  for (const char letter : knob) name += static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return name;
}

std::vector<Value> listed(const Value& value) {
  std::vector<Value> values;
  for (std::string& text : split(value.text, ',')) {
    values.push_back({value.where, value.name, std::move(text)});
  }
  return values;
}

// "drop:rate=0.01; delay:nth=3,delay=10us"
void read_faults(FaultPlan& plan, const Value& value) {
  plan.packets.clear();
  for (const std::string& text : split(value.text, ';')) {
    const Value whole{value.where, value.name, text};
    const std::size_t colon = std::min(text.find(':'), text.size());
    PacketRule rule;
    set(rule, *find_row(rule_rows(), faults_table, "fault"), {value.where, value.name, text.substr(0, colon)});
    for (const std::string& part : split(std::string_view(text).substr(std::min(colon + 1, text.size())), ',')) {
      const std::size_t equals = part.find('=');
      const RuleRow* row = find_row(rule_rows(), faults_table, trim(std::string_view(part).substr(0, equals)));
      if (row == nullptr || equals == std::string::npos) {
        refuse(whole, fmt::format("fault:name=value,… with the names {}",
                                  fmt::join(names_of(rule_rows(), faults_table), ", ")));
      }
      set(rule, *row,
          {value.where, fmt::format("{} of {}", row->name, value.name),
           std::string(trim(std::string_view(part).substr(equals + 1)))});
    }
    add_rule(plan, rule, whole);
  }
}

// False if nobody knows the variable.
bool read_variable(DeviceConfig& config, const Value& value) {
  for (const DeviceRow& row : device_rows()) {
    if (variable(row.name) != value.name) continue;
    set(config, row, value);
    return true;
  }
  for (const PortRow& row : port_rows()) {
    if (variable(row.name) != value.name) continue;
    for (PortConfig& port : config.ports) set(port, row, value);
    return true;
  }
  if (value.name == variable("gids")) {
    set_gids(config.ports.front(), listed(value));
  } else if (value.name == variable("pkeys")) {
    set_pkeys(config.ports.front(), listed(value));
  } else if (value.name == variable("faults")) {
    read_faults(config.faults, value);
  } else {
    return value.name == variable("config");
  }
  return true;
}

Names variables() {
  Names names;
  for (const DeviceRow& row : device_rows()) names.push_back(variable(row.name));
  for (const PortRow& row : port_rows()) names.push_back(variable(row.name));
  for (const char* name : {"gids", "pkeys", "faults", "config"}) names.push_back(variable(name));
  return names;
}

}  // namespace

DeviceConfig read_settings(const Environment& environment, const Warn& warn) {
  DeviceConfig config;
  const auto file = environment.find(variable("config"));
  if (file != environment.end()) File(file->second, warn).read(config);
  if (config.ports.empty()) check(config);
  for (const auto& [name, text] : environment) {
    if (!name.starts_with(prefix)) continue;
    if (!read_variable(config, {std::string(environment_place), name, text})) {
      warn_unknown(warn, environment_place, name, variables());
    }
  }
  check(config);
  return config;
}

DeviceConfig read_settings() {
  Environment environment;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (!text.starts_with(prefix) || equals == std::string_view::npos) continue;
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return read_settings(environment, [](const std::string& sentence) { log().warn("{}", sentence); });
}

}  // namespace verbatim::soft
