#include <chrono>

#include "base/config/check.hpp"
#include "base/config/knobs.hpp"

namespace verbatim::config {
namespace {

constexpr std::uint64_t kibi = 1024;
constexpr std::uint64_t mebi = 1024 * kibi;
constexpr std::uint64_t gibi = 1024 * mebi;

constexpr std::uint64_t most_objects = 1 << 20;
constexpr std::uint64_t most_rd_atomic = 128;
constexpr std::uint64_t most_nodes = 1024;             // NUMA nodes of a Linux kernel: MAX_NUMNODES
constexpr std::uint64_t most_hardware_threads = 8192;  // of a Linux kernel: MAXSMP
constexpr std::uint64_t most_host = 253;               // characters of a DNS name

constexpr Range between(std::uint64_t least, std::uint64_t most) {
  return {least, most};
}
constexpr Range anything = {};
constexpr Range lengths_of_name = {1, 80};
constexpr Range retries = {0, 7};  // 3 bits (specification, volume 1, 9.9.2.1.1)

constexpr Range span_of(Duration least, Duration most) {
  return {static_cast<std::uint64_t>(least.count()), static_cast<std::uint64_t>(most.count())};
}
using namespace std::chrono_literals;
constexpr Range ack_timeouts = span_of(8192ns, 60s);   // the shortest is code 1; code 0 would be for ever
constexpr Range rnr_timers = span_of(10us, 655360us);  // codes 1 to 31, then 0 (specification, volume 1, table 45)
constexpr Range deadlines = span_of(1ms, 3600s);

constexpr Table table_table[] = {
    {"device", "Which device is used, and what its packets carry."},
    {"rc", "Queue pairs of reliable connections."},
    {"eager", "Messages that are sent at once."},
    {"write_queue", "Rings in the receiver's memory, for hot channels."},
    {"rendezvous", "Messages that wait for their receive."},
    {"matching", "Messages and receives that look for each other."},
    {"memory", "Where queues and buffers lie, and how they are registered."},
    {"worker", "How threads make progress."},
    {"recovery", "What becomes of a channel whose queue pair fails."},
    {"bootstrap", "How peers find each other, over TCP."},
};

constexpr Knob knob_table[] = {
    {"device", "name", [](Config& c) -> Member { return &c.device.name; }, lengths_of_name, Unit::none,
     "RDMA device as auto, NAME or NAME:PORT, exactly as verbatim-info lists it. Set it where a host has several and "
     "the first active one is not yours."},
    {"device", "gid_index", [](Config& c) -> Member { return &c.device.gid_index; }, between(0, 255), Unit::none,
     "Entry of the port's GID table, which is the source address. The rule prefers routable RoCE v2; set it where "
     "packets must leave from another address."},
    {"device", "pkey", [](Config& c) -> Member { return &c.device.pkey; }, between(1, 0xffff), Unit::hexadecimal,
     "Partition key by value; its index is looked up at each port. Set it to the key that your subnet's manager gave "
     "to this job; on Ethernet leave it."},
    {"device", "service_level", [](Config& c) -> Member { return &c.device.service_level; }, between(0, 15), Unit::none,
     "Service level of every packet, which an InfiniBand fabric maps to a virtual lane and Ethernet to a priority. Set "
     "it where the fabric keeps a lane for this traffic."},
    {"device", "traffic_class", [](Config& c) -> Member { return &c.device.traffic_class; }, between(0, 255),
     Unit::none,
     "Traffic class of every packet's global header; on RoCE v2 its upper 6 bits are the DSCP. Set it where switches "
     "choose a lossless queue by DSCP, such as 106 for DSCP 26."},
    {"device", "flow_label", [](Config& c) -> Member { return &c.device.flow_label; }, between(0, (1 << 20) - 1),
     Unit::hexadecimal,
     "Flow label of every packet's global header, from which RoCE v2 may derive the UDP source port. Set it to choose "
     "among equal paths."},
    {"device", "hop_limit", [](Config& c) -> Member { return &c.device.hop_limit; }, between(2, 255), Unit::none,
     "Routers that a packet may pass. 1 would not leave the subnet, so it is not allowed; raise it in deeper "
     "networks."},
    {"device", "mtu_bytes", [](Config& c) -> Member { return &c.device.mtu_bytes; }, between(256, 4096), Unit::bytes,
     "Payload of a packet at most: 256, 512, 1024, 2048 or 4096. Two peers use the smallest of theirs and their "
     "ports'; lower it only where a path in between carries less than its ends say."},
    {"rc", "pool_initial", [](Config& c) -> Member { return &c.rc.pool_initial; }, between(0, most_objects), Unit::none,
     "Queue pairs that each worker makes ahead. Raise it to the number of peers where connecting must be quick."},
    {"rc", "pool_max", [](Config& c) -> Member { return &c.rc.pool_max; }, between(1, most_objects), Unit::none,
     "Queue pairs of a worker at most; the device may allow fewer. Lower it where memory for them is short: each costs "
     "its receives."},
    {"rc", "receive_depth", [](Config& c) -> Member { return &c.rc.receive_depth; }, between(2, most_queue_entries),
     Unit::none,
     "Receives posted per queue pair, which are the credits that its sender has. Raise it where a sender waits for "
     "credits; each takes eager.max_bytes of pinned memory."},
    {"rc", "send_depth", [](Config& c) -> Member { return &c.rc.send_depth; }, between(2, most_queue_entries),
     Unit::none,
     "Messages and RDMA writes per queue pair that may be on the way. Raise it where latency times rate is more than "
     "this."},
    {"rc", "control_slots", [](Config& c) -> Member { return &c.rc.control_slots; }, between(least_control_slots, 1024),
     Unit::none,
     "Entries of both queues kept for control messages, on top of receive_depth and send_depth, so that credits travel "
     "when data may not. There is hardly a reason to change it."},
    {"rc", "signal_interval", [](Config& c) -> Member { return &c.rc.signal_interval; }, between(1, most_queue_entries),
     Unit::none,
     "Every n-th send asks for a completion, which frees those before it. Raise it for rate, lower it where buffers "
     "must come back sooner; at most a quarter of send_depth."},
    {"rc", "repost_batch", [](Config& c) -> Member { return &c.rc.repost_batch; }, between(1, most_reposted),
     Unit::none,
     "Receives are posted again this many at a time. Raise it for rate, lower it where senders wait for credits; at "
     "most half of receive_depth."},
    {"rc", "reads", [](Config& c) -> Member { return &c.rc.reads; }, between(1, most_rd_atomic), Unit::none,
     "RDMA reads on the way per queue pair; peers use the smaller of theirs and their devices'. Raise it "
     "where gets are many and far."},
    {"rc", "ack_timeout", [](Config& c) -> Member { return &c.rc.ack_timeout; }, ack_timeouts, Unit::nanoseconds,
     "Silence after which a packet is sent again, rounded up to 4.096us times a power of two; a device may wait four "
     "times as long. Raise it where a congested fabric answers late, lower it to notice a loss sooner."},
    {"rc", "retry_count", [](Config& c) -> Member { return &c.rc.retry_count; }, retries, Unit::none,
     "How often a packet is sent again before the queue pair fails and is replaced. 0 makes each loss show."},
    {"rc", "rnr_timer", [](Config& c) -> Member { return &c.rc.rnr_timer; }, rnr_timers, Unit::nanoseconds,
     "How long a sender waits that found no receive posted, rounded up to what devices have. Credits make it never "
     "happen; 0 is not \"at once\" but the code for 655.36ms, so it is not allowed."},
    {"rc", "rnr_retry_count", [](Config& c) -> Member { return &c.rc.rnr_retry_count; }, retries, Unit::none,
     "How often a sender tries again that found no receive posted; 7 is for ever. 0 makes a fault of the credits "
     "show."},
    {"eager", "max_bytes", [](Config& c) -> Member { return &c.eager.max_bytes; }, between(64, mebi), Unit::bytes,
     "Longest message that is sent at once, by copy; longer ones go by rendezvous, without one. Raise it where the "
     "peer answers late, lower it to save pinned memory; peers use the smaller of theirs. With rings, about an eighth "
     "of "
     "write_queue.bytes at most."},
    {"write_queue", "enabled", [](Config& c) -> Member { return &c.write_queue.enabled; }, anything, Unit::none,
     "Whether hot channels get a ring in the receiver's memory that the sender fills by RDMA writes, where the device "
     "promises in-order placement and worker.wait is poll (memory that changes wakes nobody). on warns where it "
     "can't."},
    {"write_queue", "bytes", [](Config& c) -> Member { return &c.write_queue.bytes; }, between(4 * kibi, 64 * mebi),
     Unit::bytes,
     "Size of each ring, a power of two that holds at least 8 of the largest eager messages. Raise it where bursts "
     "find it full."},
    {"write_queue", "max_per_worker", [](Config& c) -> Member { return &c.write_queue.max_per_worker; },
     between(1, 4096), Unit::none,
     "Rings that a worker polls at most; each is a line of memory read in every round. Raise it where more peers than "
     "this talk all the time."},
    {"write_queue", "promote_after", [](Config& c) -> Member { return &c.write_queue.promote_after; },
     between(1, UINT32_MAX), Unit::none,
     "Messages of a channel before it gets a ring. Lower it for short-lived channels that need the latency."},
    {"rendezvous", "fragment_bytes", [](Config& c) -> Member { return &c.rendezvous.fragment_bytes; },
     between(4 * kibi, gibi), Unit::bytes,
     "Size of each RDMA write of a long message; the device may allow less. Raise it for bandwidth, lower it where "
     "other messages must get in between."},
    {"rendezvous", "fragments", [](Config& c) -> Member { return &c.rendezvous.fragments; }, between(1, 256),
     Unit::none,
     "Fragments on the way per channel. Raise it where latency times bandwidth is more than fragments times "
     "fragment_bytes."},
    {"matching", "unexpected_bytes", [](Config& c) -> Member { return &c.matching.unexpected_bytes; },
     between(0, 1024 * gibi), Unit::bytes,
     "Memory of a worker for messages that arrive before their receive; beyond it only headers travel. Raise it where "
     "receives are posted late."},
    {"matching", "max_requests", [](Config& c) -> Member { return &c.matching.max_requests; }, between(16, 1 << 24),
     Unit::none,
     "Requests of a worker that may be under way; the next is refused with no_resources. Raise it where a program "
     "posts more receives ahead."},
    {"memory", "huge_pages", [](Config& c) -> Member { return &c.memory.huge_pages; }, anything, Unit::none,
     "Whether queues lie in huge pages. auto: where there are some, else normal ones without a word; on warns once "
     "where there are none."},
    {"memory", "registration_cache_bytes", [](Config& c) -> Member { return &c.memory.registration_cache_bytes; },
     anything, Unit::bytes,
     "Users' buffers that stay registered after use; 0 registers each time. Raise it where large buffers are used "
     "again and again, lower it where pinned memory is short."},
    {"memory", "numa_node", [](Config& c) -> Member { return &c.memory.numa_node; }, between(0, most_nodes - 1),
     Unit::none,
     "NUMA node of the queues' memory; auto is the device's. Set it where the threads that use them must live on "
     "another node."},
    {"worker", "wait", [](Config& c) -> Member { return &c.worker.wait; }, anything, Unit::none,
     "How a thread waits: poll burns its core for the best latency, event sleeps at once, adaptive polls for spin and "
     "sleeps then. Set event where threads share cores."},
    {"worker", "spin", [](Config& c) -> Member { return &c.worker.spin; }, span_of(0ns, 10s), Unit::nanoseconds,
     "How long adaptive waiting polls before it sleeps. Raise it where answers come a little later than this, since "
     "waking costs microseconds."},
    {"worker", "progress_thread", [](Config& c) -> Member { return &c.worker.progress_thread; }, anything, Unit::none,
     "Whether a thread of the library's makes progress for each worker, so that peers are answered while the program "
     "computes; every call costs a turn at a lock then. Set it where puts, atomics and long messages must not wait for "
     "the program's next call."},
    {"worker", "progress_core", [](Config& c) -> Member { return &c.worker.progress_core; },
     between(0, most_hardware_threads - 1), Unit::none,
     "Hardware thread that the progress thread is pinned to; auto takes one of the device's NUMA node that the process "
     "may use, another for each worker. Set it where cores are assigned by hand, to one that nothing else uses."},
    {"recovery", "enabled", [](Config& c) -> Member { return &c.recovery.enabled; }, anything, Unit::none,
     "Whether a channel goes on with another queue pair when its own fails, with nothing lost, doubled or reordered. "
     "Turn it off to see failures at once; then the channel closes with the reason."},
    {"recovery", "attempts", [](Config& c) -> Member { return &c.recovery.attempts; }, between(1, 1000), Unit::none,
     "Queue pairs that may fail one after the other, without anything moved in between, before the channel is given "
     "up. Raise it where links flap for long."},
    {"recovery", "deadline", [](Config& c) -> Member { return &c.recovery.deadline; }, deadlines, Unit::nanoseconds,
     "How long a channel may be without a working queue pair before it is given up. Raise it above the longest outage "
     "that a job is to survive."},
    {"bootstrap", "host", [](Config& c) -> Member { return &c.bootstrap.host; }, between(0, most_host), Unit::none,
     "Address that connections are taken at; empty takes them at every one. Set it to keep strangers of other networks "
     "out."},
    {"bootstrap", "port_first", [](Config& c) -> Member { return &c.bootstrap.port_first; }, between(0, 65535),
     Unit::none, "First TCP port to try to listen on; 0 takes any free one. Set it where a firewall opens only some."},
    {"bootstrap", "port_last", [](Config& c) -> Member { return &c.bootstrap.port_last; }, between(0, 65535),
     Unit::none,
     "Last port to try, where port_first is taken; 0 tries only port_first. Set it where several processes of a host "
     "share a range."},
    {"bootstrap", "connect_timeout", [](Config& c) -> Member { return &c.bootstrap.connect_timeout; }, deadlines,
     Unit::nanoseconds,
     "From connect() to an open channel, tries and pauses included. Raise it where peers start much later than this."},
    {"bootstrap", "handshake_timeout", [](Config& c) -> Member { return &c.bootstrap.handshake_timeout; }, deadlines,
     Unit::nanoseconds,
     "How long one who connects has to say who he is. Lower it where strangers scan the port, raise it on slow "
     "networks."},
    {"bootstrap", "close_timeout", [](Config& c) -> Member { return &c.bootstrap.close_timeout; }, deadlines,
     Unit::nanoseconds,
     "How long a worker's destructor waits for what was sent to arrive, and again for its last words to leave. Raise "
     "it "
     "where peers receive late, lower it where a job must end soon whatever they do."},
};

}  // namespace

std::span<const Table> tables() {
  return table_table;
}

std::span<const Knob> knobs() {
  return knob_table;
}

}  // namespace verbatim::config
