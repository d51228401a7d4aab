// expect: suture: an operation has step() and works on values too; make two of it
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

struct shift_and_scale {
  float operator()(float x) const { return 2 * x; }
  suture::geometry_step step(const suture::grid& g, const suture::site&) const { return {g, {}}; }
};

const std::vector<suture::grid> batch(1);
const auto plan = suture::plan(shift_and_scale{} | suture::cast<suture::half>{}, batch);
