// expect: suture: a value operation makes a float of a float, or rgb of rgb
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

struct doubled {
  double operator()(double x) const { return 2 * x; }
};

const std::vector<suture::grid> batch(1);
const auto plan = suture::plan(doubled{} | suture::clamp{}, batch);
