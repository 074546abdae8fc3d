// The calls of an Endpoint as data: a number for each, and how it is carried out from bytes to bytes.
#pragma once

#include <array>
#include <cstdint>

#include "conformance/codec.hpp"
#include "conformance/endpoint.hpp"

namespace verbatim::conformance {

template <auto Method>
struct Call;

template <class Result, class... Arguments, Result (Endpoint::*Method)(Arguments...)>
struct Call<Method> {
  using ResultType = Result;

  static void carry_out(Endpoint& endpoint, Reader& in, Writer& out) {
    // Braces, because they evaluate from left to right.
    std::tuple<Endpoint&, Arguments...> arguments{endpoint, in.get<Arguments>()...};
    if constexpr (std::is_void_v<Result>) {
      std::apply(Method, std::move(arguments));
    } else {
      out.put(std::apply(Method, std::move(arguments)));
    }
  }
};

template <auto... Methods>
struct CallList {
  using CarryOut = void (*)(Endpoint&, Reader&, Writer&);
  static constexpr std::array<CarryOut, sizeof...(Methods)> carry_out{&Call<Methods>::carry_out...};

  template <auto Method>
  static constexpr std::uint32_t number() {
    constexpr CarryOut wanted = &Call<Method>::carry_out;
    std::uint32_t index = 0;
    for (const CarryOut candidate : carry_out) {
      if (candidate == wanted) return index;
      ++index;
    }
    return index;
  }
};

using Calls =
    CallList<&Endpoint::open, &Endpoint::close, &Endpoint::name, &Endpoint::query_device, &Endpoint::query_port,
             &Endpoint::query_gid_table, &Endpoint::query_pkey, &Endpoint::counters, &Endpoint::allocate,
             &Endpoint::release, &Endpoint::read, &Endpoint::write, &Endpoint::fill, &Endpoint::first_difference,
             &Endpoint::alloc_pd, &Endpoint::dealloc_pd, &Endpoint::reg_mr, &Endpoint::dereg_mr, &Endpoint::alloc_mw,
             &Endpoint::dealloc_mw, &Endpoint::bind_mw, &Endpoint::mw_rkey, &Endpoint::create_ah,
             &Endpoint::create_ah_from_wc, &Endpoint::destroy_ah, &Endpoint::create_comp_channel,
             &Endpoint::destroy_comp_channel, &Endpoint::create_cq, &Endpoint::resize_cq, &Endpoint::cq_entries,
             &Endpoint::destroy_cq, &Endpoint::poll_cq, &Endpoint::poll_cq_extended, &Endpoint::req_notify_cq,
             &Endpoint::channel_readable, &Endpoint::get_cq_event, &Endpoint::ack_cq_events, &Endpoint::get_async_event,
             &Endpoint::create_srq, &Endpoint::modify_srq, &Endpoint::query_srq, &Endpoint::destroy_srq,
             &Endpoint::create_qp, &Endpoint::modify_qp, &Endpoint::query_qp, &Endpoint::data_in_order,
             &Endpoint::destroy_qp, &Endpoint::post_send, &Endpoint::post_send_extended, &Endpoint::abort_send_extended,
             &Endpoint::post_recv, &Endpoint::post_srq_recv>;

}  // namespace verbatim::conformance
