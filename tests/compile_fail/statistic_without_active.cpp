// expect: suture: what prepare() returns is no functor
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

#include <vector>

// An operation on patch statistics, but for active(channel).
struct center {
  struct functor {
    struct with_moments {
      float mean;
      float operator()(float x) const { return x - mean; }
    };
    with_moments with(const suture::moments& patch, std::int32_t) const { return {patch.center}; }
  };
  functor prepare(const suture::site&) const { return {}; }
};

const std::vector<suture::grid> batch(1);
const auto plan = suture::plan(center{} | suture::clamp{}, batch);
