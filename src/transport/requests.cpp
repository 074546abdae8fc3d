#include "transport/requests.hpp"

namespace verbatim {

void detail::release(RequestRecord& record) noexcept {
  auto& request = static_cast<transport::RequestState&>(record);
  if (request.pool != nullptr) return request.pool->let_go(request);
  if (--request.chunk->orphans == 0) delete request.chunk;
}

namespace transport {

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
