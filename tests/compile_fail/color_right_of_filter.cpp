// expect: suture: an operation on color stands right of a filter or of an operation on patch statistics
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

struct swap_red_and_blue {
  SUTURE_FN suture::rgb operator()(suture::rgb v) const { return {{v.c[2], v.c[1], v.c[0]}}; }
};

const std::vector<suture::grid> batch(1);
const auto plan = suture::plan(suture::gaussian_blur{} | swap_red_and_blue{}, batch);
