// expect: suture: an operation with draw() is a random one: it needs `float probability` and `static constexpr
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

struct random_offset {
  float probability = 1;
  suture::brightness draw(suture::draws& random, const suture::site&) const { return {.offset = random.uniform(0, 1)}; }
};

const std::vector<suture::grid> batch(1);
const auto plan = suture::plan(random_offset{} | suture::cast<suture::half>{}, batch);
