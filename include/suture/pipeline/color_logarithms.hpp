// SPDX-License-Identifier: Apache-2.0
// Colors passed between operations as base-2 logarithms: if the first ends with an exponential and the next begins with
// a logarithm, both are skipped.
#pragma once

#include "pipeline.hpp"

namespace suture::detail {

// Makes neighboring functors f and g of a pack pass logarithms if both are on. g.accepted_logarithms() returns the range that
// g accepts. f.pass_logarithms(range) sets whether f ends with logarithms, and returns it for g.given_logarithms. A power in
// these names is an exponent of 2.
template <std::size_t I = 0, class... Fs>
void pass_on_logarithms(pack<Fs...>& functors) {
  if constexpr (I + 1 < sizeof...(Fs)) {
    auto& f = get<I>(functors);
    auto& g = get<I + 1>(functors);
    if constexpr (requires { bare(g).given_logarithms = bare(f).pass_logarithms(bare(g).accepted_logarithms()); })
      // Set for every sample: a functor may be that of the sample before.
      bare(g).given_logarithms =
          bare(f).pass_logarithms(is_on(f) && is_on(g) ? bare(g).accepted_logarithms() : log2_range{});
    pass_on_logarithms<I + 1>(functors);
  }
}

}  // namespace suture::detail
