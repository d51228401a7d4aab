// expect: suture: cast left of the geometry: interpolation needs float; put cast at the end
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

const std::vector<suture::grid> batch(1);
const auto plan = suture::plan(suture::cast<suture::half>{} | suture::resample{}, batch);
