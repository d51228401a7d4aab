// expect: suture: sampling<I, B, L>: B, what lies outside, is constant, default_value, edge, reflect, mirror or wrap
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

const std::vector<suture::grid> batch(1);
const auto plan = suture::plan(suture::resample{} | suture::sampling<suture::linear, suture::vote>{}, batch);
