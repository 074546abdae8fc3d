#include "device/soft/settings/rows.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "base/config/kind.hpp"
#include "base/ids.hpp"
#include "device/soft/engine/pieces.hpp"
#include "device/soft/shm/layout.hpp"

namespace verbatim::soft {
namespace {

constexpr std::uint64_t most_objects = 1 << 20;     // of a kind: more are a mistake, and verbs count them as int
constexpr std::uint64_t most_keys = (1 << 24) - 1;  // a key has 24 bits for the index of its region
constexpr std::uint64_t most_rd_atomic = 128;
constexpr std::uint64_t longest_message = 1ULL << 31;  // specification, volume 1, 9.7.7
constexpr Range any_size{0, config::unlimited};
constexpr Range objects{1, most_objects};

const DeviceRow device_table[] = {
    {"", "name", &DeviceConfig::name, {1, 63}, Unit::none, "What the device is called; exact when it is opened."},
    {"",
     "first_qpn",
     &DeviceConfig::first_qpn,
     {2, Qpn::mask},
     Unit::none,
     "Number of the first queue pair; 0 and 1 are special in InfiniBand."},
    {"", "seed", &DeviceConfig::seed, any_size, Unit::none,
     "Of the faults' randomness, so that a run can be repeated; 0 takes one from the system."},
    {"",
     "directory",
     &DeviceConfig::directory,
     {0, 4000},
     Unit::none,
     "Where the devices of one user meet; empty: /dev/shm/verbatim-<uid>. Another one is another network."},
    {"",
     "ring_bytes",
     &DeviceConfig::ring_bytes,
     {shm::min_ring_bytes, shm::max_ring_bytes},
     Unit::bytes,
     "Ring of each ordered pair of devices that talk; a power of two. Larger where bursts find it full."},
    {"",
     "payload_by_reference",
     &DeviceConfig::payload_by_reference,
     {},
     Unit::none,
     "Off: large payloads too travel through the ring, as where the system forbids process_vm_readv."},

    {limits_table, "max_qp", &Limits::max_qp, objects, Unit::none, "Queue pairs."},
    {limits_table, "max_cq", &Limits::max_cq, objects, Unit::none, "Completion queues."},
    {limits_table, "max_cqe", &Limits::max_cqe, {1, 1 << 24}, Unit::none, "Entries of a completion queue."},
    {limits_table, "max_qp_wr", &Limits::max_qp_wr, objects, Unit::none, "Requests in a send or receive queue."},
    {limits_table, "max_sge", &Limits::max_sge, {1, piece_limit}, Unit::none, "Pieces of a request."},
    {limits_table,
     "max_inline_data",
     &Limits::max_inline_data,
     {0, 65536},
     Unit::bytes,
     "Payload that a send request may carry in itself."},
    {limits_table, "max_srq", &Limits::max_srq, objects, Unit::none, "Shared receive queues."},
    {limits_table, "max_srq_wr", &Limits::max_srq_wr, objects, Unit::none, "Requests in a shared receive queue."},
    {limits_table, "max_mr", &Limits::max_mr, {1, most_keys}, Unit::none, "Memory regions."},
    {limits_table, "max_pd", &Limits::max_pd, objects, Unit::none, "Protection domains."},
    {limits_table, "max_ah", &Limits::max_ah, {1, 1 << 24}, Unit::none, "Address handles."},
    {limits_table,
     "max_rd_atomic",
     &Limits::max_rd_atomic,
     {0, most_rd_atomic},
     Unit::none,
     "READs and atomics that a queue pair may have on the way, as initiator."},
    {limits_table,
     "max_dest_rd_atomic",
     &Limits::max_dest_rd_atomic,
     {0, most_rd_atomic},
     Unit::none,
     "The same as responder."},
    {limits_table,
     "max_msg_bytes",
     &Limits::max_msg_bytes,
     {1, longest_message},
     Unit::bytes,
     "Longest message; small, to see that programs split theirs."},
    {limits_table, "max_pinned_bytes", &Limits::max_pinned_bytes, any_size, Unit::bytes,
     "Registered memory; beyond it registration fails as with RLIMIT_MEMLOCK."},

    {quirks_table,
     "stall_responder",
     &FaultPlan::stall_responder,
     {},
     Unit::none,
     "Requests of peers are neither executed nor answered."},
    {quirks_table, "refuse_reset", &FaultPlan::refuse_reset, {}, Unit::none, "Modify to RESET fails with EIO."},
    {quirks_table, "endless_drain", &FaultPlan::endless_drain, {}, Unit::none, "A queue pair in ERR flushes nothing."},
    {quirks_table,
     "zero_length_is_2gib",
     &FaultPlan::zero_length_is_2gib,
     {},
     Unit::none,
     "A piece of length 0 means 2^31 bytes, as on one family of adapters."},
    {quirks_table,
     "kill_qpn",
     &FaultPlan::kill_qpn,
     {0, Qpn::mask},
     Unit::none,
     "This queue pair goes to ERR after kill_after_packets; 0: none."},
    {quirks_table, "kill_after_packets", &FaultPlan::kill_after_packets, any_size, Unit::none,
     "Packets that kill_qpn sends before it dies."},
};

const PortRow port_table[] = {
    {ports_table,
     "max_mtu",
     &PortConfig::max_mtu,
     {},
     Unit::bytes,
     "Largest payload of a packet that the port can carry."},
    {ports_table,
     "active_mtu",
     &PortConfig::active_mtu,
     {},
     Unit::bytes,
     "What it carries now; small at one end, to see that both agree on it. At most max_mtu."},
    {ports_table, "state", &PortConfig::active, {}, Unit::none, "A port that is down carries nothing."},
};

const RuleRow rule_table[] = {
    {faults_table, "fault", &PacketRule::fault, {}, Unit::none, "What happens to a packet."},
    {faults_table,
     "packets",
     &PacketRule::packets,
     {},
     Unit::none,
     "Which packets; drop of acknowledge is \"delivered, but the ACK is lost\"."},
    {faults_table, "qpn", &PacketRule::qpn, {0, Qpn::mask}, Unit::none, "Of this sending queue pair only; 0: of any."},
    {faults_table, "rate", &PacketRule::rate, {}, Unit::none, "Share of the matching packets that is struck."},
    {faults_table, "nth", &PacketRule::nth, any_size, Unit::none,
     "Strike exactly the nth match, counted from 1; 0: by rate."},
    {faults_table, "limit", &PacketRule::limit, any_size, Unit::none, "Strikes at most."},
    {faults_table,
     "delay",
     &PacketRule::delay,
     {},
     Unit::none,
     "How long delay and reorder hold a packet back, duplicate the second copy."},
};

constexpr Name<ibv_mtu> mtu_names[] = {
    {"256", IBV_MTU_256}, {"512", IBV_MTU_512}, {"1024", IBV_MTU_1024}, {"2048", IBV_MTU_2048}, {"4096", IBV_MTU_4096}};
constexpr Name<bool> port_states[] = {{"active", true}, {"down", false}};
constexpr Name<PacketFault> fault_names[] = {{"drop", PacketFault::drop},
                                             {"duplicate", PacketFault::duplicate},
                                             {"reorder", PacketFault::reorder},
                                             {"delay", PacketFault::delay},
                                             {"corrupt", PacketFault::corrupt}};
constexpr Name<PacketClass> class_names[] = {{"any", PacketClass::any},
                                             {"request", PacketClass::request},
                                             {"response", PacketClass::response},
                                             {"acknowledge", PacketClass::acknowledge}};

// The part of the configuration that a member belongs to.
template <typename Config, typename T>
auto& part(Config& config, T DeviceConfig::*member) {
  return config.*member;
}
template <typename Config, typename T>
auto& part(Config& config, T Limits::*member) {
  return config.limits.*member;
}
template <typename Config, typename T>
auto& part(Config& config, T FaultPlan::*member) {
  return config.faults.*member;
}
template <typename Port, typename T>
auto& part(Port& port, T PortConfig::*member) {
  return port.*member;
}
template <typename Rule, typename T>
auto& part(Rule& rule, T PacketRule::*member) {
  return rule.*member;
}

// How a member of each type is read, shown and described.
struct Kind : config::Kind {
  using config::Kind::allowed;
  using config::Kind::read;
  using config::Kind::show;
  static void read(double& to, const Value& value) { to = read_rate(value); }
  static void read(ibv_mtu& to, const Value& value) { to = config::read_name<ibv_mtu>(value, mtu_names); }
  static void read(PacketFault& to, const Value& value) { to = config::read_name<PacketFault>(value, fault_names); }
  static void read(PacketClass& to, const Value& value) { to = config::read_name<PacketClass>(value, class_names); }

  static std::string show(double value) { return fmt::format("{}", value); }
  static std::string show(ibv_mtu value) { return std::string(config::show_name<ibv_mtu>(value, mtu_names)); }
  static std::string show(PacketFault value) { return named<PacketFault>(value, fault_names); }
  static std::string show(PacketClass value) { return named<PacketClass>(value, class_names); }

  static std::string allowed(double) { return "0 to 1"; }
  static std::string allowed(ibv_mtu) { return config::list(mtu_names); }
  static std::string allowed(PacketFault) { return config::list(fault_names); }
  static std::string allowed(PacketClass) { return config::list(class_names); }

 protected:
  template <typename Enum>
  static std::string named(Enum value, std::span<const Name<Enum>> names) {
    return config::quoted(config::show_name<Enum>(value, names));
  }
};

// A port's only truth value has names of its own.
struct PortKind : Kind {
  using Kind::allowed;
  using Kind::read;
  using Kind::show;
  static void read(bool& to, const Value& value) { to = config::read_name<bool>(value, port_states); }
  static std::string show(bool value) { return named<bool>(value, port_states); }
  static std::string allowed(bool) { return config::list(port_states); }
};

template <typename KindOfRow, typename Owner, typename RowType>
void set_member(Owner& owner, const RowType& row, const Value& value) {
  std::visit([&](auto member) { KindOfRow{{row.range, row.unit}}.read(part(owner, member), value); }, row.member);
}
template <typename KindOfRow, typename Owner, typename RowType>
std::string show_member(const Owner& owner, const RowType& row) {
  return std::visit(
      [&](auto member) {
        return KindOfRow{{row.range, row.unit}}.show(part(owner, member));
      },
      row.member);
}
template <typename KindOfRow, typename Owner, typename RowType>
std::string allowed_of(const RowType& row) {
  const Owner owner;
  return std::visit(
      [&](auto member) {
        return KindOfRow{{row.range, row.unit}}.allowed(part(owner, member));
      },
      row.member);
}

}  // namespace

std::span<const DeviceRow> device_rows() {
  return device_table;
}
std::span<const PortRow> port_rows() {
  return port_table;
}
std::span<const RuleRow> rule_rows() {
  return rule_table;
}

void set(DeviceConfig& config, const DeviceRow& row, const Value& value) {
  set_member<Kind>(config, row, value);
}
void set(PortConfig& port, const PortRow& row, const Value& value) {
  set_member<PortKind>(port, row, value);
}
void set(PacketRule& rule, const RuleRow& row, const Value& value) {
  set_member<Kind>(rule, row, value);
}

std::string show(const DeviceConfig& config, const DeviceRow& row) {
  return show_member<Kind>(config, row);
}
std::string show(const PortConfig& port, const PortRow& row) {
  return show_member<PortKind>(port, row);
}
std::string show(const PacketRule& rule, const RuleRow& row) {
  return show_member<Kind>(rule, row);
}

std::string allowed(const DeviceRow& row) {
  return allowed_of<Kind, DeviceConfig>(row);
}
std::string allowed(const PortRow& row) {
  return allowed_of<PortKind, PortConfig>(row);
}
std::string allowed(const RuleRow& row) {
  return allowed_of<Kind, PacketRule>(row);
}

}  // namespace verbatim::soft
