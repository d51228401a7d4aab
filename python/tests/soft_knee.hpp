// SPDX-License-Identifier: Apache-2.0
// Values above a knee grow as the logarithm does.
#pragma once

// [soft_knee]
// Errors: a knee that is not positive.
struct soft_knee {
  float knee = 100;

  static constexpr std::string_view name = "soft_knee";

  struct functor {
    float knee, inverse_knee;
    SUTURE_FN float operator()(float x) const {
      return x > knee ? suture::fma(knee, suture::math::log(suture::fma(x, inverse_knee, 0.0f)), knee) : x;
    }
  };

  functor prepare(const suture::site& where) const {
    suture::require(knee > 0, where, "knee ", knee, " must be positive");
    return {knee, 1 / knee};
  }
};
// [/soft_knee]
