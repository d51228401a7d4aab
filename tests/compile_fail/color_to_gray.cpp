// expect: suture: a value operation makes a float of a float, or rgb of rgb
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

struct red_alone {
  float operator()(const suture::rgb& x) const { return x.c[0]; }
};

const std::vector<suture::grid> batch(1);
const auto plan = suture::plan(red_alone{} | suture::clamp{}, batch);
