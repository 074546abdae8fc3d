#include "transport/requests.hpp"

namespace verbatim {

void detail::release(RequestRecord& record) noexcept {
  auto& request = static_cast<transport::RequestState&>(record);
  request.pool->let_go(request);
}

namespace transport {

bool RequestPool::grow() {
  const auto made = static_cast<std::uint32_t>(chunks_.size()) * chunk_requests;
  if (made >= most_) return false;
  chunks_.push_back(std::make_unique<RequestState[]>(chunk_requests));
  for (std::uint32_t i = 0; i < chunk_requests && made + i < most_; ++i) {
    RequestState& request = chunks_.back()[i];
    request.index = made + i;
    request.pool = this;
    free_.push_back(request);
  }
  return true;
}

RequestState* RequestPool::find(PeerRequest id) noexcept {
  if (id.index >= chunks_.size() * chunk_requests) return nullptr;
  RequestState& request = chunks_[id.index / chunk_requests][id.index % chunk_requests];
  return request.stage != RequestStage::idle && request.generation == id.generation ? &request : nullptr;
}

}  // namespace transport
}  // namespace verbatim
