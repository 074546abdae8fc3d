#include "transport/requests.hpp"

#include <array>

namespace verbatim {

void detail::release(RequestRecord& record) noexcept {
  auto& request = static_cast<transport::RequestState&>(record);
  if (request.pool != nullptr) {
    const Turns::Look turn(request.pool->turns());
    return request.pool->let_go(request);
  }
  if (--request.chunk->orphans == 0) delete request.chunk;
}

namespace transport {
namespace {

constexpr auto statuses = static_cast<std::size_t>(Status::remote_access) + 1;

// By status. Nobody writes to them; that they aren't const spares the handle a pointer of its own.
constinit auto refused_records = [] {
  std::array<detail::RequestRecord, statuses> records;
  for (std::size_t i = 0; i < statuses; ++i) {
    records[i].completion = {Outcome::not_delivered, static_cast<Status>(i), {}, {}, 0};
  }
  return records;
}();
constinit detail::RequestRecord delivered_record{Completion{Outcome::delivered, Status::ok, {}, {}, 0}};

}  // namespace

Request refused(Status status) noexcept {
  return Request(refused_records[static_cast<std::size_t>(status)]);
}

Request delivered_at_once() noexcept {
  return Request(delivered_record);
}

RequestPool::~RequestPool() {
  for (std::unique_ptr<RequestChunk>& chunk : chunks_) {
    for (RequestState& request : chunk->states) {
      if (!request.held) continue;
      request.pool = nullptr;
      ++chunk->orphans;
    }
    if (chunk->orphans != 0) (void)chunk.release();  // the last Request to let go deletes it
  }
}

bool RequestPool::grow() {
  const auto made = static_cast<std::uint32_t>(chunks_.size()) * RequestChunk::requests;
  if (made >= most_) return false;
  chunks_.push_back(std::make_unique<RequestChunk>());
  RequestChunk& chunk = *chunks_.back();
  for (std::uint32_t i = 0; i < RequestChunk::requests && made + i < most_; ++i) {
    RequestState& request = chunk.states[i];
    request.index = made + i;
    request.pool = this;
    request.chunk = &chunk;
    request.hook.next = std::exchange(free_, &request);
  }
  return true;
}

RequestState* RequestPool::find(PeerRequest id) noexcept {
  if (id.index >= chunks_.size() * RequestChunk::requests) return nullptr;
  RequestState& request = chunks_[id.index / RequestChunk::requests]->states[id.index % RequestChunk::requests];
  return request.stage != RequestStage::idle && request.generation == id.generation ? &request : nullptr;
}

}  // namespace transport
}  // namespace verbatim
