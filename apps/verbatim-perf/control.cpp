#include "control.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace verbatim::perf {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 5> ask_names{"point", "run", "report", "yardstick", "finish"};

[[noreturn]] void refuse(std::string_view what) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the other side speaks, but not as this verbatim-perf does: {}", what));
}

Json encode(const RemoteRegion& region) {
  Json bytes = Json::array();
  for (const std::byte byte : region.encode()) bytes.push_back(std::to_integer<unsigned>(byte));
  return bytes;
}

RemoteRegion decode_region(const Json& json) {
  const auto values = json.get<std::vector<std::uint8_t>>();
  RemoteRegion::Encoded encoded{};
  if (values.size() != encoded.size()) refuse("a region of another length");
  for (std::size_t i = 0; i < encoded.size(); ++i) encoded[i] = std::byte{values[i]};
  return RemoteRegion::decode(encoded);
}

Json encode(const RemoteBuffers& buffers) {
  return {{"outgoing", encode(buffers.outgoing)}, {"incoming", encode(buffers.incoming)}};
}

RemoteBuffers decode_buffers(const Json& json) {
  return {decode_region(json.at("outgoing")), decode_region(json.at("incoming"))};
}

Json encode(const Point& point) {
  return {{"test", traits(point.test).name}, {"bytes", point.bytes}, {"window", point.window}, {"check", point.check}};
}

Point decode_point(const Json& json) {
  const auto test = test_named(json.at("test").get<std::string>());
  if (!test) refuse("a test of another name");
  Point point{*test, json.at("bytes"), json.at("window"), json.at("check")};
  if (point.bytes > max_bytes || point.window == 0 || point.window > max_window) refuse("a point out of bounds");
  return point;
}

Json encode(const SideUse& use) {
  return {{"cpu_ns", use.cpu_ns},
          {"posts", use.posts},
          {"signalled", use.signalled},
          {"receive_posts", use.receive_posts},
          {"rnr_naks", use.rnr_naks},
          {"retransmits", use.retransmits},
          {"pinned_bytes", use.pinned_bytes}};
}

SideUse decode_use(const Json& json) {
  return {.cpu_ns = json.at("cpu_ns"),
          .posts = json.at("posts"),
          .signalled = json.at("signalled"),
          .receive_posts = json.at("receive_posts"),
          .rnr_naks = json.at("rnr_naks"),
          .retransmits = json.at("retransmits"),
          .pinned_bytes = json.at("pinned_bytes")};
}

Ask decode_ask(const std::string& name) {
  for (std::size_t i = 0; i < ask_names.size(); ++i) {
    if (ask_names[i] == name) return static_cast<Ask>(i);
  }
  refuse("an order of another name");
}

std::string versioned(Json json) {
  json["version"] = protocol_version;
  // A problem may name what is no UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Calls `decode(json)`; whatever does not fit is refused.
template <typename Decode>
auto decoded(std::string_view text, Decode decode) {
  try {
    const Json json = Json::parse(text);
    const auto version = json.at("version").get<std::uint32_t>();
    if (version != protocol_version) {
      refuse(fmt::format("it is of version {}, this one of {}; use the same build on both", version, protocol_version));
    }
    return decode(json);
  } catch (const Json::exception& error) {
    refuse(error.what());
  }
}

}  // namespace

std::string encode(const Order& order) {
  return versioned({{"ask", ask_names[static_cast<std::size_t>(order.ask)]},
                    {"point", encode(order.point)},
                    {"iterations", order.iterations},
                    {"buffers", encode(order.buffers)},
                    {"problem", order.problem.substr(0, max_text_bytes / 2)}});
}

std::string encode(const Answer& answer) {
  return versioned({{"buffers", encode(answer.buffers)},
                    {"use", encode(answer.use)},
                    {"problem", answer.problem.substr(0, max_text_bytes / 2)}});
}

Order decode_order(std::string_view text) {
  return decoded(text, [](const Json& json) {
    Order order{.ask = decode_ask(json.at("ask")),
                .point = decode_point(json.at("point")),
                .iterations = json.at("iterations"),
                .buffers = decode_buffers(json.at("buffers")),
                .problem = json.at("problem")};
    if (order.iterations > max_iterations + max_window) refuse("iterations out of bounds");
    return order;
  });
}

Answer decode_answer(std::string_view text) {
  return decoded(text, [](const Json& json) {
    return Answer{.buffers = decode_buffers(json.at("buffers")),
                  .use = decode_use(json.at("use")),
                  .problem = json.at("problem")};
  });
}

}  // namespace verbatim::perf
