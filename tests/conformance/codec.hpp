// Values to bytes and back, between a process and its own forked child: same program, same layout, no versions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "conformance/link.hpp"
#include "conformance/objects.hpp"
#include "device/context.hpp"

namespace verbatim::conformance {

// The members of a structure that can't be copied as bytes because it holds a vector or a string.
inline auto members(SendRequest& r) {
  return std::tie(r.id, r.opcode, r.flags, r.pieces, r.immediate, r.invalidate_rkey, r.remote_address, r.rkey,
                  r.compare_add, r.swap, r.ah, r.remote_qpn, r.remote_qkey, r.mw, r.bind_mr, r.bind_address,
                  r.bind_length, r.bind_access);
}
inline auto members(ReceiveRequest& r) {
  return std::tie(r.id, r.pieces);
}
inline auto members(Polled& p) {
  return std::tie(p.result, p.completions);
}
inline auto members(device::Counter& c) {
  return std::tie(c.name, c.value);
}

template <class Value>
struct IsSequence : std::false_type {};
template <class Element>
struct IsSequence<std::vector<Element>> : std::true_type {};
template <>
struct IsSequence<std::string> : std::true_type {};

class Writer {
 public:
  template <class Value>
  void put(const Value& value) {
    if constexpr (IsSequence<Value>::value) {
      put(static_cast<std::uint64_t>(value.size()));
      if constexpr (std::is_trivially_copyable_v<typename Value::value_type>) {
        put_bytes(value.data(), value.size() * sizeof(typename Value::value_type));
      } else {
        for (const auto& element : value) put(element);
      }
    } else if constexpr (std::is_trivially_copyable_v<Value>) {
      put_bytes(&value, sizeof(Value));
    } else {
      std::apply([this](const auto&... member) { (put(member), ...); }, members(const_cast<Value&>(value)));
    }
  }
  [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  void put_bytes(const void* from, std::size_t bytes) {
    const auto* first = static_cast<const std::uint8_t*>(from);
    bytes_.insert(bytes_.end(), first, first + bytes);
  }

  std::vector<std::uint8_t> bytes_;
};

class Reader {
 public:
  explicit Reader(std::vector<std::uint8_t> bytes) : bytes_(std::move(bytes)) {}

  template <class Value>
  Value get() {
    Value value{};
    if constexpr (IsSequence<Value>::value) {
      using Element = typename Value::value_type;
      const auto size = get<std::uint64_t>();
      if constexpr (std::is_trivially_copyable_v<Element>) {
        require(size <= longest_message / sizeof(Element));
        value.resize(size);
        get_bytes(value.data(), size * sizeof(Element));
      } else {
        for (std::uint64_t i = 0; i < size; ++i) value.push_back(get<Element>());
      }
    } else if constexpr (std::is_trivially_copyable_v<Value>) {
      get_bytes(&value, sizeof(Value));
    } else {
      std::apply([this](auto&... member) { ((member = get<std::remove_reference_t<decltype(member)>>()), ...); },
                 members(value));
    }
    return value;
  }

 private:
  static void require(bool enough) {
    if (!enough) throw std::runtime_error("a message of the other side is too short");
  }

  void get_bytes(void* to, std::size_t bytes) {
    require(bytes <= bytes_.size() - position_);
    if (bytes != 0) std::memcpy(to, bytes_.data() + position_, bytes);
    position_ += bytes;
  }

  std::vector<std::uint8_t> bytes_;
  std::size_t position_ = 0;
};

}  // namespace verbatim::conformance
