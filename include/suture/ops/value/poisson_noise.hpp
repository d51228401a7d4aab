// SPDX-License-Identifier: Apache-2.0
// Poisson noise of counted photons: its variance is its mean.
#pragma once

#include <cfloat>
#include <string_view>

#include "../../base/fields.hpp"
#include "../../base/vec.hpp"
#include "../../base/voxel.hpp"
#include "../../math/exponential.hpp"
#include "../../math/root.hpp"
#include "../common/interval.hpp"

namespace suture {

namespace detail {

// Below this many expected counts the distribution function is inverted, from here on it is expanded about the normal.
inline constexpr float few_counts = 12.0f;
// Limit of the counts that are drawn for means below that bound: a larger count has a chance under 2^-25.
inline constexpr int most_few_counts = 36;

// Makes step k = 1, 2, ... of the search for the Poisson number n of the uniform value u in [0, 1), the least with
// u < P(0) + .. + P(n). `term` and `sum` begin as P(0), n as 0. Returns false once n is found, and in all later steps.
// The search also ends where terms fall below 2^-26: rounding may keep the sum below 1, and a count must not then be
// far too large.
SUTURE_FN bool poisson_step(float mean, float u, int k, float& term, float& sum, float& n) {
  const bool above = (u >= sum) & (term > 0x1p-26f);
  n += math::detail::select(above, 1.0f, 0.0f);
  const float ratio = mean * math::detail::divide(1.0f, static_cast<float>(k));
  sum = fma(term, ratio, sum);
  term = term * ratio;
  return above;
}

// Draws a Poisson number for a small mean; 0 <= mean < 12.
SUTURE_FN float poisson_few(float mean, float u) {
  float term = math::exp(-mean), sum = term, n = 0;
  for (int k = 1; k <= most_few_counts && poisson_step(mean, u, k, term, sum, n); ++k) {
  }
  return n;
}

// poisson_few for each value of a row.
template <int Count>
SUTURE_INLINE void poisson_few_row(const float (&mean)[Count], const float (&u)[Count], float (&n)[Count]) {
  float term[Count], sum[Count];
  for (int l = 0; l < Count; ++l) {
    term[l] = sum[l] = math::exp(-mean[l]);
    n[l] = 0;
  }
  for (int k = 1; k <= most_few_counts; ++k) {
    std::uint32_t searching = 0;
    for (int l = 0; l < Count; ++l) searching |= poisson_step(mean[l], u[l], k, term[l], sum[l], n[l]) ? 1u : 0u;
    if (searching == 0) break;
  }
}

// Returns the Poisson number of the standard normal value w: the floor of mean + sqrt(mean) w + 1/3 + w^2/6 - (w/36 +
// w^3/72) / sqrt(mean) + (-8/405 + 7 w^2/810 + w^4/270) / mean (Giles 2016, algorithm 955). mean >= 12.
SUTURE_FN float poisson_many(float mean, float w) {
  const float deviation = math::sqrt(mean), inverse = math::detail::divide(1.0f, deviation);
  const float square = w * w;
  const float first = fma(square, 1.0f / 6.0f, 1.0f / 3.0f);
  const float second = fma(square, -1.0f / 72.0f, -1.0f / 36.0f);
  const float third = fma(square, fma(square, 1.0f / 270.0f, 7.0f / 810.0f), -8.0f / 405.0f);
  const float correction = fma(inverse, fma(inverse, third, w * second), first);
  const float n = mean + fma(deviation, w, correction);
  // Every float of 2^23 or more is an integer.
  const auto whole = static_cast<float>(static_cast<std::int32_t>(math::detail::clamp_number(n, 0.0f, 0x1p23f)));
  return math::detail::select(n < 0x1p23f, whole, n);
}

}  // namespace detail

// y = n / counts, n a Poisson number of mean x counts, at the voxel's element of two fields. Where x counts is below 12
// the distribution function is inverted: probabilities are right to 1e-6. From 12 on n is the floor of an expansion in
// a normal value: the distribution function is right to 4e-5, ever closer as the mean grows. No more than 36 steps a
// voxel. x below 0 counts as 0; from x counts = 2^48 on, where the noise is less than the rounding of x, y = x. NaN
// stays NaN.
struct shot_noise {
  float counts;
  float inverse_counts;
  random_field inverted;
  random_field expanded;

  static constexpr std::string_view name = "shot_noise";

  SUTURE_FN float operator()(float x, const voxel& at) const {
    const float mean = mean_of(x);
    const float n = mean < detail::few_counts ? detail::poisson_few(mean, inverted.uniform(at.element))
                                              : detail::poisson_many(mean, expanded.normal(at.element));
    return value(x, mean, n);
  }

  // operator() for voxels side by side along x.
  template <int Count>
  SUTURE_INLINE void apply_row(float (&values)[Count], const voxel& first) const {
    float mean[Count], n[Count], drawn[Count];
    bool any_few = false, any_many = false;
    for (int l = 0; l < Count; ++l) {
      mean[l] = mean_of(values[l]);
      any_few |= mean[l] < detail::few_counts;
      any_many |= !(mean[l] < detail::few_counts);
      n[l] = 0;
    }
    if (any_few) {
      float few[Count];
      for (int l = 0; l < Count; ++l) few[l] = math::detail::select(mean[l] < detail::few_counts, mean[l], 0.0f);
      inverted.uniform_row(first.element, drawn);
      detail::poisson_few_row(few, drawn, n);
    }
    if (any_many) {
      expanded.normal_row(first.element, drawn);
      for (int l = 0; l < Count; ++l) {
        const float many = detail::poisson_many(mean[l], drawn[l]);
        n[l] = math::detail::select(mean[l] < detail::few_counts, n[l], many);
      }
    }
    for (int l = 0; l < Count; ++l) values[l] = value(values[l], mean[l], n[l]);
  }

private:
  SUTURE_FN float mean_of(float x) const { return math::detail::select(x <= 0, 0.0f, fma(x, counts, 0.0f)); }
  SUTURE_FN float value(float x, float mean, float n) const {
    return math::detail::select(mean < 0x1p48f, fma(n, inverse_counts, 0.0f), x);
  }
};

// Poisson noise of `counts` photons where the image reads 1, a number, or an interval to draw it from for each sample:
// the deviation at x is sqrt(x / counts). The image must read 0 where nothing is counted, so apply it before a z-score.
// Errors: counts not positive or not from low to high, a range without 1 for the law mixture, a number that is not
// finite or whose reciprocal is not.
struct poisson_noise {
  interval counts = 1000;
  interval_law law = interval_law::uniform;
  float probability = 1;

  static constexpr std::string_view name = "poisson_noise";
  static constexpr std::uint16_t kind = 39;
  static constexpr auto parameters =
      named("counts", &poisson_noise::counts, "law", &poisson_noise::law, "probability", &poisson_noise::probability);

  struct drawn {
    float counts;
    random_field inverted, expanded;

    static constexpr auto fields = named("counts", &drawn::counts);

    shot_noise prepare(const site& where) const {
      check(counts, where);
      return {counts, 1 / counts, inverted, expanded};
    }
  };

  drawn draw(draws& random, const site& where) const {
    detail::check_interval(counts, law, "counts", where);
    check(counts, where);
    return {detail::draw_from(counts, law, random), random.field(1), random.field(2)};
  }

private:
  static void check(const interval& counts, const site& where) {
    require(counts.low >= FLT_MIN && counts.high <= 0x1p126f, where, "counts ", counts,
            " must be positive, at most 2^126");
  }
};

}  // namespace suture
