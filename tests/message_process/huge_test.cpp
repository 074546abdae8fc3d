// Messages and puts of 2^31 and 2^32 + 1 bytes, whose lengths no 32 bits hold, between processes. Every byte is
// compared.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "base/random.hpp"
#include "base/units.hpp"
#include "message_process/meeting.hpp"
#include "sanitizers.hpp"

namespace verbatim::process {
namespace {

constexpr std::size_t page = 4096;
// A prime number of pages: bytes that are misplaced by any number of fragments are other bytes.
constexpr std::size_t period_bytes = 16381 * page;
constexpr std::size_t largest = (1ULL << 32) + 1;
constexpr std::size_t most_shift = 4 * page;
constexpr std::size_t periods = (largest + most_shift) / period_bytes + 1;
// For the target, and for pages and tables around it.
constexpr std::uint64_t needed_bytes = largest + (2ULL << 30);
constexpr Tag tag{1};
constexpr Tag region_tag{2};
constexpr std::chrono::seconds transfer_limit{60};

std::uint64_t available_bytes() {
  std::ifstream memory("/proc/meminfo");
  for (std::string line; std::getline(memory, line);) {
    if (line.starts_with("MemAvailable:")) return std::stoull(line.substr(13)) * 1024;
  }
  return 0;
}

// Gigabytes of random bytes in 64 MiB of memory: the same pages over and over. Both processes see them.
class EndlessPattern {
 public:
  EndlessPattern() {
    const int file = ::memfd_create("pattern", MFD_CLOEXEC);
    require(file >= 0 && ::ftruncate(file, period_bytes) == 0, "no memory for the pattern");
    void* const room = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    require(room != MAP_FAILED, "no addresses for the pattern");
    begin_ = static_cast<std::byte*>(room);
    for (std::size_t i = 0; i < periods; ++i) {
      void* const at = begin_ + i * period_bytes;
      require(::mmap(at, period_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == at, "no mapping");
    }
    ::close(file);
    Random random(1);
    for (std::size_t i = 0; i < period_bytes; i += sizeof(std::uint64_t)) {
      const std::uint64_t word = random.bits();
      std::memcpy(begin_ + i, &word, sizeof(word));
    }
  }
  EndlessPattern(const EndlessPattern&) = delete;
  EndlessPattern& operator=(const EndlessPattern&) = delete;
  ~EndlessPattern() { ::munmap(begin_, bytes); }
  [[nodiscard]] std::byte* from(std::size_t shift) const { return begin_ + shift; }

 private:
  static constexpr std::size_t bytes = periods * period_bytes;
  std::byte* begin_ = nullptr;
};

// Each transfer starts at another byte of the pattern, so that what an earlier one left behind is wrong.
struct Transfer {
  std::size_t bytes;
  std::size_t shift;
};
constexpr Transfer messages[] = {{1ULL << 31, 0}, {largest, page + 1}};
constexpr Transfer puts[] = {{1ULL << 31, 2 * page + 3}, {largest, 3 * page + 7}};

void finish_huge(Worker& worker, const Request& request, std::string_view what) {
  require(worker.wait_for(request, transfer_limit), fmt::format("{}: never done", what));
  require_ok(request.completion(), what);
}

void send_and_put(const TemporaryDirectory& directory, Meeting& meeting, const EndlessPattern& pattern) {
  use_soft_device(directory);
  Context context(plain_config());
  Worker worker(context);
  Channel channel = connect_to_peer(worker, meeting.door);
  for (const auto& [bytes, shift] : messages) {
    finish_huge(worker, channel.send(pattern.from(shift), bytes, tag), fmt::format("a message of {} bytes", bytes));
    require(receive_word(worker, channel, tag) == bytes, "another length arrived");
  }
  RemoteRegion::Encoded encoded;
  finish(worker, worker.recv(encoded.data(), encoded.size(), region_tag, exact_tag, channel.id()), "the region");
  const RemoteRegion region = RemoteRegion::decode(encoded);
  require(region.bytes() == largest, "another region");
  for (const auto& [bytes, shift] : puts) {
    finish_huge(worker, channel.put(pattern.from(shift), bytes, region, 0), fmt::format("a put of {} bytes", bytes));
    send_word(worker, channel, bytes, tag);
    require(receive_word(worker, channel, tag) == bytes, "another length was put");
  }
}

void receive_and_compare(const TemporaryDirectory& directory, Meeting& meeting, const EndlessPattern& pattern) {
  use_soft_device(directory);
  Context context(plain_config());
  Worker worker(context);
  Channel channel = receive_peer(worker, meeting.door);
  void* const memory =
      ::mmap(nullptr, largest + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(memory != MAP_FAILED, "no memory to receive into");
  auto* const target = static_cast<std::byte*>(memory);
  constexpr std::byte guard{0x5a};
  target[largest] = guard;
  const auto compare = [&](const Transfer& transfer) {
    require(std::memcmp(target, pattern.from(transfer.shift), transfer.bytes) == 0,
            fmt::format("other bytes than the {} that were sent", transfer.bytes));
    require(target[largest] == guard, "a byte behind the target was written");
  };
  for (const Transfer& transfer : messages) {
    const Request receive = worker.recv(target, largest, tag, exact_tag, channel.id());
    finish_huge(worker, receive, fmt::format("a message of {} bytes", transfer.bytes));
    require(receive.completion().bytes == transfer.bytes, fmt::format("{} bytes came", receive.completion().bytes));
    compare(transfer);
    send_word(worker, channel, transfer.bytes, tag);
  }
  const Region region = worker.register_memory(target, largest);
  const RemoteRegion::Encoded encoded = region.remote().encode();
  finish(worker, channel.send(encoded.data(), encoded.size(), region_tag), "the region");
  for (const Transfer& transfer : puts) {
    require(receive_word(worker, channel, tag) == transfer.bytes, "another put");
    compare(transfer);
    send_word(worker, channel, transfer.bytes, tag);
  }
}

TEST(HugeTransfers, OfMoreBytesThan32BitsCountArriveWhole) {
  if (under_address_sanitizer) GTEST_SKIP() << "a sanitizer shadows every byte and finds nothing more in many of them";
  if (const std::uint64_t available = available_bytes(); available < needed_bytes) {
    GTEST_SKIP() << format_size(needed_bytes) << " of memory are needed, " << format_size(available) << " available";
  }
  const TemporaryDirectory directory;
  const Shared<Meeting> meeting;
  const EndlessPattern pattern;
  PeerProcess receiver([&] { receive_and_compare(directory, *meeting, pattern); });
  PeerProcess sender([&] { send_and_put(directory, *meeting, pattern); });
  EXPECT_EQ(receiver.wait(), 0);
  EXPECT_EQ(sender.wait(), 0);
}

}  // namespace
}  // namespace verbatim::process
