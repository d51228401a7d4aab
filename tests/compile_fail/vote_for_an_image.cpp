// expect: suture: sampling<I, B, L>: I, which images are read by, is nearest, nearest_half_even, linear, catmull_rom
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

const std::vector<suture::grid> batch(1);
const auto plan = suture::plan(suture::resample{} | suture::sampling<suture::vote, suture::constant>{}, batch);
