// expect: suture: a value operation stands between two geometry operations, which would mean interpolating twice
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

const std::vector<suture::grid> batch(1);
const auto plan = suture::plan(
    suture::resample{} | suture::window{.center = 40, .width = 400} | suture::center_crop{{1, 1, 1}}, batch);
