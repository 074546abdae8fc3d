// One process's verbs objects: an RC and a UD queue pair on one device, and a buffer.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "device/context.hpp"
#include "device/selection.hpp"
#include "shared_page.hpp"

namespace verbatim::pingpong {

inline constexpr std::uint32_t queue_depth = 512;
inline constexpr std::size_t buffer_bytes = 4 << 20;
inline constexpr std::size_t grh_bytes = 40;
inline constexpr std::uint32_t qkey = 0x11223344;

class Endpoint {
 public:
  // Throws Error where the device refuses.
  Endpoint(std::unique_ptr<device::Context> context, const device::Selection& selection);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // PSNs are drawn anew with each call.
  [[nodiscard]] SideAddress address();
  // Both queue pairs up to RTS.
  void connect(const SideAddress& peer, const SideAddress& own);

  [[nodiscard]] device::Context& context() { return *context_; }
  [[nodiscard]] ibv_qp* rc() const { return rc_; }
  [[nodiscard]] ibv_qp* ud() const { return ud_; }
  [[nodiscard]] ibv_cq* cq() const { return cq_; }
  [[nodiscard]] ibv_ah* peer_handle() const { return handle_; }
  [[nodiscard]] std::byte* buffer() const { return static_cast<std::byte*>(memory_.address); }
  [[nodiscard]] std::uint32_t lkey() const { return mr_->lkey; }

 private:
  void make_domains();
  void make_completion_queue();
  void make_queue_pairs();
  [[nodiscard]] ibv_gid own_gid();
  [[nodiscard]] ibv_ah_attr way_to(const SideAddress& peer) const;

  std::unique_ptr<device::Context> context_;
  device::Selection selection_;
  device::Memory memory_;
  ibv_pd* pd_ = nullptr;
  ibv_td* thread_domain_ =
      nullptr;  // where the device has them: one thread uses all of this, so nothing need be locked
  ibv_pd* parent_domain_ = nullptr;  // pd_ in that thread domain, or pd_ itself
  ibv_mr* mr_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp* rc_ = nullptr;
  ibv_qp* ud_ = nullptr;
  ibv_ah* handle_ = nullptr;
};

}  // namespace verbatim::pingpong
