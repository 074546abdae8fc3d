#include "transport/control/address.hpp"

#include <fmt/format.h>

#include <charconv>

#include "base/error.hpp"

namespace verbatim::transport::control {
namespace {

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("address \"{}\": {}; write \"host:port\", \"10.1.2.3:7000\" or \"[fe80::1]:7000\"", text, why));
}

std::uint16_t parse_port(std::string_view text, std::string_view port) {
  std::uint16_t value = 0;
  const auto [end, problem] = std::from_chars(port.data(), port.data() + port.size(), value);
  if (problem != std::errc() || end != port.data() + port.size() || value == 0) {
    refuse(text, fmt::format("\"{}\" is no port from 1 to 65535", port));
  }
  return value;
}

void check_host(std::string_view text, std::string_view host) {
  for (char c : host) {
    if (c <= ' ' || c > '~' || c == '[' || c == ']' || c == '/') {
      refuse(text, "the host has a character that no name or number has");
    }
  }
}

}  // namespace

Address parse_listen_address(std::string_view text) {
  std::string_view host = text;
  std::string_view port;
  bool has_port = false;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) refuse(text, "the bracket is not closed");
    host = text.substr(1, close - 1);
    const std::string_view rest = text.substr(close + 1);
    if (!rest.empty() && rest.front() != ':') refuse(text, "only \":port\" can follow the bracket");
    has_port = !rest.empty();
    if (has_port) port = rest.substr(1);
  } else if (const std::size_t colon = text.rfind(':'); colon != std::string_view::npos) {
    if (text.find(':') != colon) refuse(text, "an IPv6 address needs brackets");
    has_port = true;
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  check_host(text, host);
  return {std::string(host), has_port ? parse_port(text, port) : std::uint16_t{0}};
}

Address parse_address(std::string_view text) {
  Address address = parse_listen_address(text);
  if (address.host.empty()) refuse(text, "the host is missing");
  if (address.port == 0) refuse(text, "the port is missing");
  return address;
}

std::string to_string(const Address& address) {
  const bool brackets = address.host.find(':') != std::string::npos;
  return brackets ? fmt::format("[{}]:{}", address.host, address.port)
                  : fmt::format("{}:{}", address.host, address.port);
}

}  // namespace verbatim::transport::control
