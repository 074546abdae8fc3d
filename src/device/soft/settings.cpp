#include "device/soft/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config/toml_file.hpp"
#include "base/log.hpp"
#include "device/soft/settings/rows.hpp"

namespace verbatim::soft {
namespace {

constexpr std::string_view prefix = "VERBATIM_SOFT_";
constexpr std::string_view root_table = "soft";

using config::Names;

void warn_unknown(const Warn& warn, std::string_view where, std::string_view name, const Names& known) {
  warn(config::unknown_name(where, name, known));
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
    if (port.gids.size() == most_gids) config::refuse(value, fmt::format("at most {} entries", most_gids));
    port.gids.push_back(read_gid(value));
  }
}

void set_pkeys(PortConfig& port, const std::vector<Value>& values) {
  port.pkeys.clear();
  for (const Value& value : values) {
    if (port.pkeys.size() == most_pkeys) config::refuse(value, fmt::format("at most {} entries", most_pkeys));
    port.pkeys.push_back(static_cast<std::uint16_t>(config::read_count(value, {0, UINT16_MAX})));
  }
}

void add_rule(FaultPlan& plan, const PacketRule& rule, const Value& whole) {
  if (rule.rate == 0 && rule.nth == 0) config::refuse(whole, "a rule with rate or nth, or it never strikes");
  const bool holds_back = rule.fault == PacketFault::delay || rule.fault == PacketFault::reorder;
  if (holds_back && rule.delay == Duration{}) config::refuse(whole, "delay and reorder with a delay, such as 10us");
  if (plan.packets.size() == most_packet_rules)
    config::refuse(whole, fmt::format("at most {} rules", most_packet_rules));
  plan.packets.push_back(rule);
}

// -- the file --------------------------------------------------------------------------------------------------------

class Reader {
 public:
  Reader(const config::TomlFile& file, const Warn& warn) : file_(file), warn_(warn) {}

  void read(DeviceConfig& config) const {
    // Other tables belong to others.
    if (const auto* soft = file_.root()[root_table].as_table()) return read_device(config, *soft, "");
    for (const auto& [key, node] : file_.root()) {
      warn_unknown(warn_, place(key), key.str(), {std::string(root_table)});
    }
  }

 private:
  template <typename Place>
  [[nodiscard]] std::string place(const Place& of) const {
    return file_.place(of);
  }
  [[nodiscard]] Value value_of(std::string_view name, const toml::node& node) const {
    return file_.value_of(name, node);
  }

  [[nodiscard]] std::vector<Value> values_of(std::string_view name, const toml::node& node) const {
    std::vector<Value> values;
    const auto* array = node.as_array();
    if (array == nullptr) config::refuse(value_of(name, node), "a list in brackets");
    for (const toml::node& element : *array) values.push_back(value_of(name, element));
    return values;
  }

  [[nodiscard]] std::vector<const toml::table*> tables_of(std::string_view name, const toml::node& node,
                                                          std::uint64_t most) const {
    std::vector<const toml::table*> tables;
    const Value whole{place(node), std::string(name), "something else"};
    const auto* array = node.as_array();
    if (array == nullptr || array->size() > most)
      config::refuse(whole, fmt::format("a list of at most {} tables", most));
    for (const toml::node& element : *array) {
      if (!element.is_table()) config::refuse(whole, "a list of tables");
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

  const config::TomlFile& file_;
  const Warn& warn_;
};

// -- the environment -------------------------------------------------------------------------------------------------

std::string variable(std::string_view knob) {
  return std::string(prefix) + config::in_capitals(knob);
}

std::vector<Value> listed(const Value& value) {
  std::vector<Value> values;
  for (std::string& text : config::split(value.text, ',')) {
    values.push_back({value.where, value.name, std::move(text)});
  }
  return values;
}

// "drop:rate=0.01; delay:nth=3,delay=10us"
void read_faults(FaultPlan& plan, const Value& value) {
  plan.packets.clear();
  for (const std::string& text : config::split(value.text, ';')) {
    const Value whole{value.where, value.name, text};
    const std::size_t colon = std::min(text.find(':'), text.size());
    PacketRule rule;
    set(rule, *find_row(rule_rows(), faults_table, "fault"), {value.where, value.name, text.substr(0, colon)});
    for (const std::string& part :
         config::split(std::string_view(text).substr(std::min(colon + 1, text.size())), ',')) {
      const std::size_t equals = part.find('=');
      const RuleRow* row = find_row(rule_rows(), faults_table, config::trim(std::string_view(part).substr(0, equals)));
      if (row == nullptr || equals == std::string::npos) {
        config::refuse(whole, fmt::format("fault:name=value,… with the names {}",
                                          fmt::join(names_of(rule_rows(), faults_table), ", ")));
      }
      set(rule, *row,
          {value.where, fmt::format("{} of {}", row->name, value.name),
           std::string(config::trim(std::string_view(part).substr(equals + 1)))});
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
  const auto path = environment.find(variable("config"));
  if (path != environment.end()) {
    const auto file = config::TomlFile::read(path->first, path->second);
    Reader(file, warn).read(config);
  }
  if (config.ports.empty()) check(config);
  for (const auto& [name, text] : environment) {
    if (!name.starts_with(prefix)) continue;
    if (!read_variable(config, {std::string(config::environment_place), name, text})) {
      warn_unknown(warn, config::environment_place, name, variables());
    }
  }
  check(config);
  return config;
}

DeviceConfig read_settings() {
  return read_settings(config::environment_of_this_process(),
                       [](const std::string& sentence) { log().warn("{}", sentence); });
}

}  // namespace verbatim::soft
