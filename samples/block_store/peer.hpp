// The other side of a channel, as a program sees it that does one thing at a time.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>
#include <verbatim/verbatim.hpp>

namespace block_store {

// Every call waits, for at most `patience`, and throws std::runtime_error if what it is for did not happen. Then an
// operation may still be under way: its memory has to outlive the worker.
class Peer {
 public:
  static constexpr auto patience = std::chrono::seconds(10);

  Peer(verbatim::Worker& worker, verbatim::Channel channel) : worker_(worker), channel_(channel) {}

  [[nodiscard]] verbatim::Channel channel() const { return channel_; }

  void send(const void* data, std::size_t bytes, verbatim::Tag tag) { wait(channel_.send(data, bytes, tag)); }

  // A message of just that many bytes.
  void receive(void* data, std::size_t bytes, verbatim::Tag tag) {
    const verbatim::Request request = worker_.recv(data, bytes, tag, verbatim::exact_tag, channel_.id());
    wait(request);
    if (request.completion().bytes != bytes) {
      throw std::runtime_error(channel_.peer() + " sent " + std::to_string(request.completion().bytes) +
                               " bytes instead of " + std::to_string(bytes) + "; is it a block store?");
    }
  }

  void wait(const verbatim::Request& request) {
    if (!worker_.wait_for(request, patience)) {
      throw std::runtime_error(channel_.peer() + " has not answered for " + std::to_string(patience.count()) + " s");
    }
    if (request.ok()) return;
    const std::string reason = channel_.reason_text();
    throw std::runtime_error(reason.empty() ? channel_.peer() + ": " + to_string(request.completion().status) : reason);
  }

 private:
  verbatim::Worker& worker_;
  verbatim::Channel channel_;
};

}  // namespace block_store
