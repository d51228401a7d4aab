// SPDX-License-Identifier: Apache-2.0
// Colors passed between operations as base-2 logarithms: if the first ends with an exponential and the next begins with
// a logarithm, both are skipped.
#pragma once

#include "pipeline.hpp"

namespace suture::detail {

// Makes neighboring functors f and g of a pack pass base-2 logarithms if both are on. g.accepted_logarithms() returns
// the range of logarithms that g accepts. f.pass_logarithms(range) makes f end with logarithms in this range if it can
// and range.on(), and otherwise with colors. It returns whether f passes logarithms, which g.given_logarithms stores.
template <std::size_t I = 0, class... Fs>
void pass_on_logarithms(pack<Fs...>& functors) {
  if constexpr (I + 1 < sizeof...(Fs)) {
    auto& f = get<I>(functors);
    auto& g = get<I + 1>(functors);
    if constexpr (requires { bare(g).given_logarithms = bare(f).pass_logarithms(bare(g).accepted_logarithms()); })
      // This is set for every sample, since a functor may have been prepared for the sample before.
      bare(g).given_logarithms =
          bare(f).pass_logarithms(is_on(f) && is_on(g) ? bare(g).accepted_logarithms() : log2_range{});
    pass_on_logarithms<I + 1>(functors);
  }
}

}  // namespace suture::detail
