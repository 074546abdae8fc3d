#include "server.hpp"

#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>
#include <verbatim/verbatim.hpp>

#include "file.hpp"
#include "peer.hpp"
#include "wire.hpp"

namespace block_store {
namespace {

// A signal between the look at `stop` and the sleep is seen after this long at the latest, in milliseconds.
constexpr int longest_sleep_ms = 200;

class Server {
 public:
  Server(const std::string& name, const std::string& address)
      : file_(name, OpenFile::For::writing), arrived_(block_bytes), worker_(context_) {
    if (file_.bytes() == 0) throw std::runtime_error(name + " is empty, so it has no blocks to serve");
    memory_ = worker_.allocate(file_.bytes());
    file_.read(bytes());
    std::printf("serving %zu blocks of %s on %s\n", blocks_of(file_.bytes()), name.c_str(),
                worker_.listen(address).c_str());
    std::fflush(stdout);
  }

  void run(const std::atomic<bool>& stop) {
    verbatim::Request next = receive_request();
    while (!stop) {
      const bool idle = worker_.progress() == 0;
      while (const auto channel = worker_.accept()) greet(*channel);
      if (next.done()) {
        answer(next.completion());
        next = receive_request();
      } else if (idle && worker_.arm()) {
        pollfd event{worker_.event_fd(), POLLIN, 0};
        poll(&event, 1, longest_sleep_ms);
      }
    }
  }

 private:
  [[nodiscard]] std::span<std::byte> bytes() const { return {memory_.data(), file_.bytes()}; }
  [[nodiscard]] verbatim::Request receive_request() { return worker_.recv(&request_, sizeof request_, request_tag); }

  void greet(verbatim::Channel channel) {
    std::erase_if(clients_, [](verbatim::Channel client) { return client.state() == verbatim::ChannelState::closed; });
    clients_.push_back(channel);
    with(channel, [&](Peer& client) {
      const Description description{file_.bytes(), memory_.remote().encode()};
      client.send(&description, sizeof description, description_tag);
    });
  }

  void answer(const verbatim::Completion& request) {
    const auto from = std::find_if(clients_.begin(), clients_.end(),
                                   [&](verbatim::Channel client) { return client.id() == request.source; });
    if (from == clients_.end()) return;
    with(*from, [&](Peer& client) {
      if (request.bytes != sizeof request_) throw std::runtime_error("what it asks is no request of a block store");
      answer(client);
    });
  }

  void answer(Peer& client) {
    reply_ = {Verdict::good, request_.block, 0};
    if (request_.block >= blocks_of(file_.bytes())) {
      reply_.verdict = Verdict::no_such_block;
      return client.send(&reply_, sizeof reply_, reply_tag);
    }
    const Extent extent = extent_of(request_.block, file_.bytes());
    const std::span<std::byte> block = bytes().subspan(extent.offset, extent.bytes);
    switch (request_.operation) {
      case Operation::keep_notified:
        client.receive(nullptr, 0, notice_tag);
        keep(extent.offset, block);
        break;
      case Operation::keep_put:
        keep(extent.offset, block);
        break;
      case Operation::keep_sent:
        client.receive(arrived_.data(), block.size(), block_tag);
        if (checksum({arrived_.data(), block.size()}) == request_.checksum) {
          std::memcpy(block.data(), arrived_.data(), block.size());
        }
        keep(extent.offset, block);
        break;
      case Operation::tell_checksum:
      case Operation::send:
        reply_.checksum = checksum(block);
        break;
    }
    client.send(&reply_, sizeof reply_, reply_tag);
    if (request_.operation == Operation::send) client.send(block.data(), block.size(), block_tag);
  }

  void keep(std::size_t offset, std::span<const std::byte> block) {
    reply_.checksum = checksum(block);
    if (reply_.checksum != request_.checksum) {
      reply_.verdict = Verdict::wrong_checksum;
      return;
    }
    try {
      file_.write(offset, block);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "block_store: %s\n", error.what());
      reply_.verdict = Verdict::not_written;
    }
  }

  // One client's failure is its own.
  template <typename Do>
  void with(verbatim::Channel channel, Do&& act) {
    try {
      Peer client(worker_, channel);
      act(client);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "block_store: left a client: %s\n", error.what());
      (void)channel.close();
    }
  }

  OpenFile file_;
  // What the library may still write to or read from, so it outlives the worker.
  Request request_{};
  Reply reply_{};
  std::vector<std::byte> arrived_;
  verbatim::Context context_;
  verbatim::Worker worker_;
  verbatim::Region memory_;
  std::vector<verbatim::Channel> clients_;
};

}  // namespace

void serve(const std::string& file, const std::string& address, const std::atomic<bool>& stop) {
  Server(file, address).run(stop);
}

}  // namespace block_store
