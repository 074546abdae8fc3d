#include "session.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "base/config/knobs.hpp"
#include "base/error.hpp"
#include "common/processors.hpp"
#include "follower.hpp"
#include "leader.hpp"
#include "mem/cores.hpp"
#include "partner.hpp"
#include "peer.hpp"
#include "progress_line.hpp"
#include "verbatim/verbatim.hpp"

namespace verbatim::perf {
namespace {

// How long one that listens does so for nobody.
constexpr std::chrono::minutes client_patience{10};
constexpr std::chrono::milliseconds look_interval{100};

// Of both sides of --local, or none where they share the only processor.
std::vector<int> local_cores(const Options& options) {
  if (!options.cores.empty()) return options.cores;
  std::vector<int> processors = mem::choose_cores({});  // of two physical ones, where there are
  if (processors.size() < 2) return {};
  processors.resize(2);
  return processors;
}

Channel await_client(Worker& worker, const std::function<void()>& look_after) {
  const auto end = std::chrono::steady_clock::now() + client_patience;
  for (;;) {
    if (const auto channel = worker.wait_accept(look_interval)) return *channel;
    look_after();
    if (std::chrono::steady_clock::now() > end) {
      throw Error(ErrorCode::timed_out, fmt::format("nobody connected for {} min", client_patience.count()));
    }
  }
}

void follow_one(Worker& worker, const Context& context, apps::HandoverLines* lines) {
  const std::function<void()> nothing_to_look_after = [] {};
  Peer peer(worker, await_client(worker, nothing_to_look_after), context.config().worker.wait, nothing_to_look_after);
  follow_orders(peer, lines, nothing_to_look_after);
}

// The child of --local. Its exit status.
int be_partner(const Config& config, SharedPage& page, const std::vector<int>& cores) {
  try {
    if (!cores.empty()) apps::pin_to(cores[1]);
    Context context(config);
    Worker worker(context);
    const std::string address = worker.listen("127.0.0.1");
    if (address.size() >= sizeof(page.address)) throw Error(ErrorCode::no_space, "the address is too long: " + address);
    address.copy(page.address, address.size());
    page.listens.store(true);
    follow_one(worker, context, cores.empty() ? nullptr : &page.lines);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    fmt::print(stderr, "verbatim-perf (the other side): {}\n", error.what());
    return EXIT_FAILURE;
  }
}

Channel connect(Worker& worker, const std::string& address) {
  const Channel channel = worker.connect(address);
  if (worker.wait_open(channel)) return channel;
  throw Error(ErrorCode::device_failure, "no channel: " + channel.reason_text());
}

// Everything that is planned, against the side that listens at `address`.
Results lead(const Options& options, const Config& config, const std::string& address, const std::string& place,
             apps::HandoverLines* lines, const std::function<void()>& look_after) {
  Context context(config);
  Worker worker(context);
  const WaitMode wait = context.config().worker.wait;
  Peer peer(worker, connect(worker, address), wait, look_after);
  Results results{
      {worker.device(), place, config::show_bare(config, *config::find_knob("worker", "wait")), options.check}, {}};
  Leader leader(peer, options, lines, look_after);
  ProgressLine progress(options.progress);
  const auto plan = make_plan(options);
  try {
    for (const Point& point : plan) {
      progress.show(results.points.size() + 1, plan.size(), point);
      results.points.push_back(leader.measure(point));
    }
  } catch (const Error& error) {
    try {
      if (peer.channel().state() == ChannelState::open) leader.finish(error.what());
    } catch (const Error&) {  // the first failure is the one to tell
    }
    throw;
  }
  leader.finish();
  return results;
}

}  // namespace

Results measure_locally(const Options& options) {
  const Config config = load_config(options.config);
  const std::vector<int> cores = local_cores(options);
  // Both are tried before there is another side, so that one that may not be used is known at once; this side stays on
  // the first.
  for (auto core = cores.rbegin(); core != cores.rend(); ++core) apps::pin_to(*core);
  Partner partner([&](SharedPage& page) { return be_partner(config, page, cores); });
  const std::string place = cores.empty() ? "both sides on the only processor of this host"
                                          : fmt::format("this host, cores {} and {}", cores[0], cores[1]);
  const std::string address = partner.await_address();
  Results results = lead(options, config, address, place, cores.empty() ? nullptr : &partner.page().lines,
                         [&] { partner.look_after(); });
  if (partner.await_end() != EXIT_SUCCESS) throw Error(ErrorCode::device_failure, "the other side failed in the end");
  return results;
}

Results measure_remotely(const Options& options) {
  if (!options.cores.empty()) apps::pin_to(options.cores[0]);
  return lead(options, load_config(options.config), options.address, "against " + options.address, nullptr, [] {});
}

void be_measured(const Options& options) {
  if (!options.cores.empty()) apps::pin_to(options.cores[0]);
  Context context(load_config(options.config));
  Worker worker(context);
  fmt::print("listens on {}, {}\n", worker.listen(options.address), worker.device());
  std::fflush(stdout);
  follow_one(worker, context, nullptr);
}

}  // namespace verbatim::perf
