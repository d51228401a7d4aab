// expect: suture: parameters without names: a struct that a random operation draws names what is drawn
// SPDX-License-Identifier: Apache-2.0
#include <suture/replay/json.hpp>
#include <suture/suture.hpp>

struct offset {
  float by;
  float operator()(float x) const { return x + by; }
};

struct random_offset {
  float probability = 1;
  static constexpr std::uint16_t kind = 2048;
  offset draw(suture::draws& random, const suture::site&) const { return {random.uniform(0, 1)}; }
};

const std::vector<suture::grid> batch(1);
const auto written = suture::to_json(suture::plan(random_offset{}, batch, {.evaluation = true}));
