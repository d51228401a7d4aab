// expect: suture: the functor of a value operation must be trivially copyable
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

struct lookup {
  struct functor {
    std::vector<float> table;
    float operator()(float x) const { return table[static_cast<std::size_t>(x)]; }
  };
  functor prepare(const suture::site&) const { return {}; }
};

const std::vector<suture::grid> batch(1);
const auto plan = suture::plan(lookup{} | suture::clamp{}, batch);
