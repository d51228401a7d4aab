// expect: suture: sampling<I, B, L>: L, which label maps are read by, is nearest, nearest_half_even, vote or majority
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

const std::vector<suture::grid> batch(1);
const auto plan =
    suture::plan(suture::resample{} | suture::sampling<suture::linear, suture::edge, suture::linear>{}, batch);
