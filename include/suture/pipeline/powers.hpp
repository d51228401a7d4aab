// SPDX-License-Identifier: Apache-2.0
// Colors handed from one operation to the next as powers of 2: where the first ends with an exponential and the other
// begins with a logarithm, neither is taken.
#pragma once

#include "pipeline.hpp"

namespace suture::detail {

// Passes powers between neighboring functors of a pack, where both are on: f.leave_powers(range) says whether f leaves
// powers from now on, g.takes_powers() what range the next wants.
template <std::size_t I = 0, class... Fs>
void hand_on_powers(pack<Fs...>& functors) {
  if constexpr (I + 1 < sizeof...(Fs)) {
    auto& f = get<I>(functors);
    auto& g = get<I + 1>(functors);
    if constexpr (requires { bare(g).given_powers = bare(f).leave_powers(bare(g).takes_powers()); })
      // Said anew for every sample: a functor may be that of the sample before.
      bare(g).given_powers = bare(f).leave_powers(is_on(f) && is_on(g) ? bare(g).takes_powers() : power_range{});
    hand_on_powers<I + 1>(functors);
  }
}

}  // namespace suture::detail
