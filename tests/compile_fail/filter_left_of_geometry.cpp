// expect: suture: a filter or an operation on patch statistics stands left of geometry
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

const std::vector<suture::grid> batch(1);
const auto plan = suture::plan(suture::gaussian_blur{} | suture::center_crop{{1, 1, 1}}, batch);
