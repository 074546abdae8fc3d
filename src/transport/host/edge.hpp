// The thread that owns the sockets of one TcpControl.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/monotonic_clock.hpp"
#include "base/random.hpp"
#include "transport/host/log_limit.hpp"
#include "transport/host/mailbox.hpp"
#include "transport/host/tcp_control.hpp"
#include "transport/host/tcp_link.hpp"

namespace verbatim::transport::host {

class Edge {
 public:
  // Accepted but not identified at a time; more wait in the kernel.
  static constexpr std::size_t max_strangers = 1024;
  // Until accept() is tried again after the process ran out of descriptors or the kernel out of memory.
  static constexpr Duration accept_pause = std::chrono::milliseconds(20);
  static constexpr unsigned spare_descriptors = 8;  // that accepting leaves to others

  Edge(const TcpControl::Settings& settings, Mailbox& mailbox);
  ~Edge();  // sends what is queued, for at most close_timeout, and joins
  Edge(const Edge&) = delete;
  Edge& operator=(const Edge&) = delete;

 private:
  void run();
  [[nodiscard]] bool finished() const;
  [[nodiscard]] int milliseconds_to_wait() const;
  void wait_and_serve();
  void wait_for_room();
  void serve(std::uint64_t who, std::uint32_t events);

  void carry_out(Command command);
  void carry_out(command::Listen listen);
  void carry_out(const command::Dial& dial);
  void carry_out(const command::Send& send);
  void carry_out(const command::Close& close);
  void carry_out(command::Stop);

  void accept_waiting();
  [[nodiscard]] bool accept_one();
  [[nodiscard]] bool has_descriptors_to_spare() const;
  void pause_for_descriptors(int problem);
  void pause_accepting();
  void resume_accepting();

  void advance_dial(TcpLink& link);
  void receive(TcpLink& link);
  void send_more(TcpLink& link);
  void on_end(TcpLink& link, const TcpLink::Received& received);
  void on_silence(TcpLink& link);
  void lose(TcpLink& link, Status status, const std::string& reason);
  void remove(TcpLink& link);

  void pass_deadlines();
  void pass_deadline(TcpLink& link);
  void watch(TcpLink& link);
  void note_deadline(Time deadline) { next_deadline_ = std::min(next_deadline_, deadline); }

  TcpControl::Settings settings_;
  Mailbox& mailbox_;
  MonotonicClock clock_;
  Random random_;
  std::uint64_t next_accepted_ = 1;  // odd numbers are ours, even ones the worker's
  Descriptor epoll_;
  Descriptor listener_;
  bool accepting_ = false;
  Time accept_again_ = never;
  std::size_t strangers_ = 0;
  std::unordered_map<std::uint64_t, TcpLink> links_;
  std::vector<std::uint64_t> resolving_;  // links that wait for a name
  Time next_deadline_ = never;
  Time stop_at_ = never;  // stopping: when what is queued has had its chance
  LogLimit strangers_log_;
  LogLimit descriptors_log_;
  std::thread thread_;
};

}  // namespace verbatim::transport::host
