#include "client.hpp"

#include <stdexcept>
#include <utility>

namespace block_store {
namespace {

[[nodiscard]] const char* to_sentence(Verdict verdict) {
  switch (verdict) {
    case Verdict::good:
      return "is kept";
    case Verdict::no_such_block:
      return "is not one of the server's";
    case Verdict::wrong_checksum:
      return "arrived with a wrong checksum";
    case Verdict::not_written:
      return "could not be written into the server's file";
  }
  return "was answered with nonsense; is it a block store of this version?";
}

}  // namespace

Client::Client(const std::string& address) : worker_(context_), server_(worker_, connect(worker_, address)) {
  server_.receive(&description_, sizeof description_, description_tag);
  memory_ = verbatim::RemoteRegion::decode(description_.memory);
}

verbatim::Channel Client::connect(verbatim::Worker& worker, const std::string& address) {
  const verbatim::Channel channel = worker.connect(address);
  if (!worker.wait_open(channel)) throw std::runtime_error("no block store: " + channel.reason_text());
  return channel;
}

void Client::put(std::vector<std::byte> file, PutBy by) {
  file_ = std::move(file);
  for (std::uint32_t block = 0; block < blocks_of(file_.size()); ++block) put_block(block, by);
}

void Client::put_block(std::uint32_t block, PutBy by) {
  const Extent extent = extent_of(block, file_.size());
  const std::span<std::byte> bytes = block_at(extent);
  const std::uint64_t sum = checksum(bytes);
  verbatim::Channel channel = server_.channel();
  switch (by) {
    case PutBy::put:
      server_.wait(channel.put(bytes.data(), bytes.size(), memory_, extent.offset));
      ask(Operation::keep_put, block, sum);
      break;
    case PutBy::put_notify:
      ask(Operation::keep_notified, block, sum);
      server_.wait(channel.put_notify(bytes.data(), bytes.size(), memory_, extent.offset, notice_tag));
      break;
    case PutBy::send:
      ask(Operation::keep_sent, block, sum);
      server_.send(bytes.data(), bytes.size(), block_tag);
      break;
  }
  hear();
}

const std::vector<std::byte>& Client::get(GetBy by) {
  file_.assign(file_bytes(), std::byte{0});
  for (std::uint32_t block = 0; block < blocks_of(file_.size()); ++block) get_block(block, by);
  return file_;
}

void Client::get_block(std::uint32_t block, GetBy by) {
  const Extent extent = extent_of(block, file_.size());
  const std::span<std::byte> bytes = block_at(extent);
  ask(by == GetBy::get ? Operation::tell_checksum : Operation::send, block, 0);
  hear();
  if (by == GetBy::get) {
    server_.wait(server_.channel().get(bytes.data(), bytes.size(), memory_, extent.offset));
  } else {
    server_.receive(bytes.data(), bytes.size(), block_tag);
  }
  if (checksum(bytes) != reply_.checksum) {
    throw std::runtime_error("block " + std::to_string(block) + " arrived with a wrong checksum");
  }
}

void Client::ask(Operation operation, std::uint32_t block, std::uint64_t checksum) {
  request_ = {operation, block, checksum};
  server_.send(&request_, sizeof request_, request_tag);
}

void Client::hear() {
  server_.receive(&reply_, sizeof reply_, reply_tag);
  if (reply_.verdict != Verdict::good || reply_.block != request_.block) {
    throw std::runtime_error("block " + std::to_string(request_.block) + " " + to_sentence(reply_.verdict));
  }
}

}  // namespace block_store
