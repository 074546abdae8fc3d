#include "side.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "heap_calls.hpp"
#include "meeting.hpp"
#include "system_calls.hpp"
#include "traffic.hpp"

namespace verbatim::data_path {
namespace {

// Until pools have grown, buffers are registered and rings are set up.
constexpr std::uint64_t warm_up_operations = 1024;
// Until the soft device has seen that the other side is new: within 100 ms, where its helper gets a processor.
constexpr std::chrono::milliseconds settling_time{1000};
constexpr std::uint64_t region_bytes = 2 * most_bytes;

Config config_for(Carrier carrier) {
  Config config;
  config.device.name = "soft0";
  config.worker.wait = WaitMode::poll;
  config.write_queue.enabled = carrier == Carrier::ring ? Switch::on : Switch::off;
  return config;
}

std::uint64_t preemptions() {
  rusage use{};
  getrusage(RUSAGE_THREAD, &use);
  return static_cast<std::uint64_t>(use.ru_nivcsw);
}

SideCounts difference(const ChannelCounters& before, const ChannelCounters& after) {
  return {.posts = after.posts - before.posts,
          .credit_messages = after.credit_messages - before.credit_messages,
          .signalled = after.signalled - before.signalled,
          .receive_posts = after.receive_posts - before.receive_posts};
}

// That nothing is counted must not be because nothing is seen.
void require_counting_heap() {
  const std::uint64_t before = heap_calls();
  void* volatile memory = std::malloc(1);
  std::free(memory);
  if (heap_calls() == before + 2) return;
  throw Error(ErrorCode::unsupported, "calls of malloc are not seen here; the program must be linked with glibc");
}

// One side while frames go through one carrier.
class Side {
 public:
  Side(SharedPage& page, unsigned number, Carrier carrier)
      : page_(page),
        number_(number),
        context_(config_for(carrier)),
        worker_(context_),
        end_(worker_, open_channel(), page, number),
        own_(region_bytes),
        regions_{worker_.allocate(region_bytes), worker_.register_memory(own_.data(), own_.size())} {
    for (unsigned memory = 0; memory < memories; ++memory) {
      page_.regions[number_][memory] = regions_[memory].remote().encode();
    }
    end_.meet();
  }

  void run(std::size_t index, std::uint64_t messages) {
    const Phase& phase = phases[index];
    const std::uint64_t operations = std::min(messages, most_bytes_moved / phase.bytes);
    const auto memory = static_cast<std::size_t>(phase.memory);
    const End::Buffers buffers{.out = regions_[memory].data() + End::out_offset,
                               .in = regions_[memory].data() + End::in_offset,
                               .remote = RemoteRegion::decode(page_.regions[1 - number_][memory])};
    (void)end_.carry_out(phase, std::min(operations, warm_up_operations), buffers);
    end_.meet();
    settle();
    page_.counts[index][number_] = count(index, operations, buffers);
    end_.meet();
  }

  // Once both sides have sent something.
  void settle() {
    if (std::exchange(settled_, true)) return;
    const auto end = std::chrono::steady_clock::now() + settling_time;
    while (std::chrono::steady_clock::now() < end) worker_.progress();
    end_.meet();
  }

  // What it has counted holds until both sides have come to the end: credits and acknowledgements are in it.
  SideCounts count(std::size_t index, std::uint64_t operations, const End::Buffers& buffers) {
    const ChannelCounters before = end_.counters();
    const std::uint64_t preemptions_before = preemptions();
    watch_heap();
    mark_begin(index);
    const std::uint64_t heap_before = heap_calls();
    const std::uint64_t messages = end_.carry_out(phases[index], operations, buffers);
    end_.meet();
    const std::uint64_t heap_after = heap_calls();
    mark_end();
    SideCounts counts = difference(before, end_.counters());
    counts.messages = messages;
    counts.preemptions = preemptions() - preemptions_before;
    counts.heap_calls = heap_after - heap_before;
    if (counts.heap_calls != 0) {
      fmt::print(stderr, "{}: the first of {} heap calls of side {}:\n", phases[index].name, counts.heap_calls,
                 number_);
      show_watched_heap_call();
    }
    return counts;
  }

 private:
  Channel open_channel() {
    const auto nothing_to_progress = [] {};
    if (number_ == 0) {
      meet(page_, number_, nothing_to_progress);
      const Channel channel = worker_.connect(page_.address);
      if (worker_.wait_open(channel)) return channel;
      throw Error(ErrorCode::device_failure, "no channel to the other side: " + channel.reason_text());
    }
    const std::string address = worker_.listen("127.0.0.1");
    if (address.size() >= sizeof(page_.address))
      throw Error(ErrorCode::no_space, "the address is too long: " + address);
    page_.address[address.copy(page_.address, address.size())] = '\0';
    meet(page_, number_, nothing_to_progress);
    if (const auto channel = worker_.wait_accept(patience)) return *channel;
    throw Error(ErrorCode::timed_out, "the other side does not connect");
  }

  SharedPage& page_;
  unsigned number_;
  Context context_;
  Worker worker_;
  End end_;
  std::vector<std::byte> own_;
  std::array<Region, memories> regions_;
  bool settled_ = false;
};

}  // namespace

void run_side(SharedPage& page, unsigned number, std::uint64_t messages) {
  require_counting_heap();
  for (std::size_t first = 0; first < phases.size();) {
    const Carrier carrier = phases[first].carrier;
    Side side(page, number, carrier);
    for (; first < phases.size() && phases[first].carrier == carrier; ++first) side.run(first, messages);
  }
}

}  // namespace verbatim::data_path
