// SPDX-License-Identifier: Apache-2.0
// Value operations by their definitions, in double.
#pragma once

#include "bounded.hpp"
#include "ref/intensity.hpp"

namespace fuzz {

using std::abs;
inline double real(float x) { return static_cast<double>(x); }
// NaN counts as the lower limit.
inline double limited(double x, double low, double high) { return x > low ? std::fmin(x, high) : low; }

inline void reference_of(sample_reference& r, const suture::rescale& o, const operation_fields&) {
  const double a = real(o.slope), b = real(o.intercept);
  pointwise(r, [&](double x, auto, auto) { return rounded{a * x + b, abs(a * x) + abs(b)}; });
}
inline void reference_of(sample_reference& r, const suture::window& o, const operation_fields&) {
  const bool exact = o.function == suture::voi_function::linear_exact;
  const double c = real(o.center), w = real(o.width), low = real(o.low), high = real(o.high);
  const double extent = exact ? w : w - 1;
  pointwise(r, [&](double x, auto, auto) {
    if (std::isnan(x)) return rounded{low, abs(low)};
    const double y =
        exact ? reference::window_linear_exact(x, c, w, low, high) : reference::window_linear(x, c, w, low, high);
    const double slope = extent > 0 ? (high - low) / extent : unknown;
    // At the foot of the line, and all of it where the window is a step.
    const double from_foot = abs(x - (exact ? c : c - .5)) - extent / 2;
    const bool level = from_foot > 1e-5 * (1 + abs(c) + extent);
    return rounded{y, level ? abs(low) + abs(high) : (abs(x) + abs(c) + extent) * slope + abs(low) + abs(high)};
  });
}
inline void reference_of(sample_reference& r, const suture::sigmoid_window& o, const operation_fields&) {
  const double low = real(o.low), high = real(o.high);
  pointwise(r, [&](double x, auto, auto) {
    return rounded{reference::window_sigmoid(x, real(o.center), real(o.width), low, high), abs(low) + 2 * (high - low)};
  });
}
inline void reference_of(sample_reference& r, const suture::scale_intensity& o, const operation_fields&) {
  const double a = real(o.a_min), b = real(o.b_min), slope = (real(o.b_max) - b) / (real(o.a_max) - a);
  pointwise(r, [&](double x, auto, auto) {
    const double y = (x - a) * slope + b;
    return rounded{o.clip ? limited(y, b, real(o.b_max)) : y, (abs(x) + abs(a)) * abs(slope) + abs(b)};
  });
}
inline void reference_of(sample_reference& r, const suture::clamp& o, const operation_fields&) {
  pointwise(r, [&](double x, auto, auto) { return rounded{limited(x, real(o.low), real(o.high)), 0}; });
}
inline void reference_of(sample_reference& r, const suture::exclude& o, const operation_fields&) {
  for (auto& channel : r.channels)
    for (bounded& x : channel) {
      const bool same = x.value == real(o.value);
      if (x.error > 0 && abs(x.value - real(o.value)) <= x.error)
        x.error = unknown;
      else if (same)
        x.value = NAN;
    }
}
inline void reference_of(sample_reference& r, const suture::gamma& o, const operation_fields&) {
  const double low = real(o.range.low), extent = real(o.range.high) - low, e = real(o.exponent);
  pointwise(r, [&](double x, auto, auto) {
    const double n = (x - low) / extent, power = std::pow(abs(n), e) * extent;
    return rounded{std::copysign(power, n) + low, power * (2 + 2 * e) + abs(low)};
  });
}
inline void reference_of(sample_reference& r, const suture::contrast& o, const operation_fields&) {
  const double f = real(o.factor), p = real(o.pivot);
  pointwise(r, [&](double x, auto, auto) { return rounded{(x - p) * f + p, (abs(x) + abs(p)) * abs(f) + abs(p)}; });
}
inline void reference_of(sample_reference& r, const suture::brightness& o, const operation_fields&) {
  pointwise(r, [&](double x, auto, auto) { return rounded{x + real(o.offset), abs(x) + abs(real(o.offset))}; });
}
inline void reference_of(sample_reference& r, const suture::brightness_factor& o, const operation_fields&) {
  pointwise(r, [&](double x, auto, auto) { return rounded{x * real(o.factor), abs(x * real(o.factor))}; });
}
inline void reference_of(sample_reference& r, const suture::invert& o, const operation_fields&) {
  pointwise(r, [&](double x, auto, auto) { return rounded{2 * real(o.pivot) - x, 2 * abs(real(o.pivot)) + abs(x)}; });
}
inline void reference_of(sample_reference& r, const suture::ct_normalize& o, const operation_fields&) {
  const double m = real(o.mean), s = std::fmax(real(o.standard_deviation), 1e-8);
  pointwise(r, [&](double x, auto, auto) {
    const double kept = limited(x, real(o.lower), real(o.upper));
    return rounded{(kept - m) / s, (abs(kept) + abs(m)) / s};
  });
}

// Legendre polynomial by its recurrence, or a power.
inline double bias_polynomial(suture::bias_basis basis, int degree, double t) {
  if (basis == suture::bias_basis::monomial) return std::pow(t, degree);
  double before = 1, now = t;
  if (degree == 0) return 1;
  for (int n = 1; n < degree; ++n) {
    const double next = ((2 * n + 1) * t * now - n * before) / (n + 1);
    before = now;
    now = next;
  }
  return now;
}
inline void reference_of(sample_reference& r, const suture::bias_field& o, const operation_fields&) {
  const bool planar = o.basis == suture::bias_basis::legendre && o.extents[0] == 1;
  double most = 0;
  for (const float c : o.coefficients) most += abs(real(c));
  const auto& n = r.grid.extents;
  const auto coordinate = [&](int axis, std::int64_t i) {
    return o.extents[axis] > 1 ? -1 + 2 * static_cast<double>(i) / static_cast<double>(o.extents[axis] - 1) : 0.0;
  };
  pointwise(r, [&](double x, auto, std::size_t e) {
    const auto at = static_cast<std::int64_t>(e);
    const double z = coordinate(0, at / (n[1] * n[2])), y = coordinate(1, at / n[2] % n[1]),
                 w = coordinate(2, at % n[2]);
    double sum = 0, size = 0;
    std::size_t number = 0;
    for (int i = 0; i <= (planar ? 0 : o.degree); ++i)
      for (int j = 0; j <= o.degree - i; ++j)
        for (int k = 0; k <= (planar ? j : o.degree - i - j); ++k) {
          const double term = real(o.coefficients[number++]);
          sum +=
              term * bias_polynomial(o.basis, i, z) * bias_polynomial(o.basis, j, y) * bias_polynomial(o.basis, k, w);
          // As powers, the terms of which are larger than their sum.
          const double reach = std::fmax(1, abs(z)) * std::fmax(1, abs(y)) * std::fmax(1, abs(w));
          size += abs(term) * 60 * std::pow(reach, o.degree);
        }
    const double factor = std::exp(sum);
    return rounded{x * factor, abs(x) * factor * (2 + size)};
  });
}
inline void reference_of(sample_reference& r, const suture::histogram_shift& o, const operation_fields&) {
  const double low = real(o.range.low), extent = real(o.range.high) - low, lines = o.count - 1;
  pointwise(r, [&](double x, auto, auto) {
    if (!(x >= low && x <= low + extent)) return rounded{x, abs(x) < 2 * (abs(low) + extent) ? abs(x) : 0};
    const double place = (x - low) / extent * lines;
    const double k = std::fmin(std::floor(place), lines - 1);
    const double a = real(o.floating[static_cast<std::size_t>(k)]),
                 b = real(o.floating[static_cast<std::size_t>(k) + 1]);
    return rounded{low + extent * (a + (place - k) * (b - a)), 2 * (abs(low) + extent) * (lines + 1)};
  });
}
inline void reference_of(sample_reference& r, const suture::coarse_dropout& o, const operation_fields& f) {
  const auto words = f.field(1);
  const auto& n = r.grid.extents;
  const double low = real(o.fill.low), extent = real(o.fill.high) - low;
  for (std::size_t c = 0; c < r.channels.size(); ++c)
    for (std::size_t e = 0; e < r.voxels(); ++e) {
      const std::int64_t at[3] = {static_cast<std::int64_t>(e) / (n[1] * n[2]),
                                  static_cast<std::int64_t>(e) / n[2] % n[1], static_cast<std::int64_t>(e) % n[2]};
      bool inside = false;
      for (std::int32_t b = 0; b < o.count; ++b) {
        const auto& hole = o.holes[static_cast<std::size_t>(b)];
        bool in = true;
        for (int k = 0; k < 3; ++k) in = in && at[k] >= hole.start[k] && at[k] < hole.start[k] + hole.size[k];
        inside = inside || in;
      }
      if (inside != o.keep_holes)
        r.channels[c][e] = {low + extent * reference::element_uniform(words, c * r.voxels() + e),
                            4 * float_epsilon * (abs(low) + extent)};
    }
}
inline void reference_of(sample_reference& r, const suture::additive_noise& o, const operation_fields& f) {
  const auto words = f.field(1);
  const double m = real(o.mean), s = real(o.sigma);
  pointwise(r, [&](double x, std::size_t c, std::size_t e) {
    const double n = reference::element_normal(words, c * r.voxels() + e);
    return rounded{x + m + s * n, abs(x) + abs(m) + 8 * s * std::fmax(1, abs(n))};
  });
}
inline void reference_of(sample_reference& r, const suture::magnitude_noise& o, const operation_fields& f) {
  const auto first = f.field(1), second = f.field(2);
  const double m = real(o.mean), s = real(o.sigma);
  pointwise(r, [&](double x, std::size_t c, std::size_t e) {
    const double n = reference::element_normal(first, c * r.voxels() + e),
                 i = reference::element_normal(second, c * r.voxels() + e);
    const double size = abs(x) + 2 * abs(m) + 8 * s * (std::fmax(1, abs(n)) + std::fmax(1, abs(i)));
    return rounded{std::hypot(x + m + s * n, m + s * i), 2 * size};
  });
}

// The Poisson number of mean `mean`: below 12 that of the uniform value u, else of the normal value w; -1 where
// rounding may make it another.
inline double poisson_number(double mean, double u, double w) {
  if (abs(mean - 12) < 1e-4) return -1;
  if (mean > 12) {
    const double root = std::sqrt(mean);
    const double n = mean + root * w + 1. / 3 + w * w / 6 - (w / 36 + w * w * w / 72) / root +
                     (-8. / 405 + 7 * w * w / 810 + w * w * w * w / 270) / mean;
    const double rounding = 8 * float_epsilon * (mean + root * std::fmax(1, abs(w))) + 1e-5;
    if (n < 0) return n < -rounding ? 0 : -1;
    if (n > 4e6) return n;  // not whole in float, and right to its rounding
    return abs(n - std::nearbyint(n)) < rounding ? -1 : std::floor(n);
  }
  double term = std::exp(-mean), sum = term;
  int n = 0;
  while (u >= sum && n < 60) {
    if (u - sum < 1e-5) return -1;
    term *= mean / ++n;
    sum += term;
  }
  return sum - u < 1e-5 || u > 1 - 1e-5 ? -1 : n;
}
inline void reference_of(sample_reference& r, const suture::poisson_noise::drawn& o, const operation_fields& f) {
  const auto few = f.field(1), many = f.field(2);
  const double counts = real(o.counts);
  for (std::size_t c = 0; c < r.channels.size(); ++c)
    for (std::size_t e = 0; e < r.voxels(); ++e) {
      bounded& x = r.channels[c][e];
      if (x.error == unknown || std::isnan(x.value)) continue;
      const std::uint64_t at = c * r.voxels() + e;
      const double u = reference::element_uniform(few, at), w = reference::element_normal(many, at);
      const auto number = [&](double v) { return poisson_number(std::fmax(v, 0) * counts, u, w); };
      const double n = number(x.value), low = number(x.value - x.error), high = number(x.value + x.error);
      // Few and many counts are drawn from numbers of their own.
      const bool either = ((x.value - x.error) * counts < 12) != ((x.value + x.error) * counts < 12);
      if (either || n < 0 || low < 0 || high < 0) {
        x.error = unknown;
        continue;
      }
      x = {n / counts,
           std::fmax(abs(high - n), abs(low - n)) / counts + 8 * float_epsilon * (n + std::sqrt(n) * 8) / counts};
    }
}

// By what a fit left.
template <class Result>
const Result& fitted_of(std::span<const Result> fitted, std::int32_t channels, std::size_t sample,
                        std::size_t channel) {
  return fitted[sample * static_cast<std::size_t>(channels) +
                std::min(channel, static_cast<std::size_t>(channels - 1))];
}
inline void reference_of(sample_reference& r, const suture::z_score& o, const operation_fields&, std::size_t sample) {
  pointwise(r, [&](double x, std::size_t c, auto) {
    const suture::moments& m = fitted_of(o.fitted, o.channels, sample, c);
    const double s = std::fmax(m.standard_deviation, 1e-8);
    return rounded{o.nonzero && x == 0 ? 0 : (x - m.mean) / s, (abs(x) + abs(m.mean)) / s};
  });
  if (o.nonzero)
    for (auto& channel : r.channels)
      for (bounded& x : channel)  // what may or may not have been 0
        if (x.error > 1e-3) x.error = unknown;
}
template <class Op>
void scaled_by_range(sample_reference& r, const Op& o, bool clip, std::size_t sample) {
  const double b = real(o.b_min), extent = real(o.b_max) - b;
  pointwise(r, [&](double x, std::size_t c, auto) {
    const suture::intensity_range& m = fitted_of(o.fitted, o.channels, sample, c);
    const double scale = m.high > m.low ? extent / (m.high - m.low) : 0;
    const double y = (x - m.low) * scale + b;
    return rounded{clip ? limited(y, b, b + extent) : y, (abs(x) + abs(m.low)) * scale + abs(b) + extent};
  });
}
inline void reference_of(sample_reference& r, const suture::percentile_scale& o, const operation_fields&,
                         std::size_t sample) {
  scaled_by_range(r, o, o.clip, sample);
}
inline void reference_of(sample_reference& r, const suture::min_max_scale& o, const operation_fields&,
                         std::size_t sample) {
  scaled_by_range(r, o, true, sample);
}
inline void reference_of(sample_reference& r, const suture::limit_to_range& o, const operation_fields&,
                         std::size_t sample) {
  pointwise(r, [&](double x, std::size_t c, auto) {
    const suture::intensity_range& m = fitted_of(o.fitted, o.channels, sample, c);
    if (m.status == suture::fit_status::empty) return rounded{x, 0};
    return rounded{limited(x, m.low, m.high), abs(m.low) + abs(m.high)};
  });
}
template <int N>
void reference_of(sample_reference& r, const suture::histogram_match<N>& o, const operation_fields&,
                  std::size_t sample) {
  for (std::size_t c = 0; c < r.channels.size(); ++c) {
    const auto& m = fitted_of(o.fitted, o.channels, sample, c);
    bool rises = m.status == suture::fit_status::ok;
    for (int k = 1; k < N; ++k) rises = rises && m.source[k] > m.source[k - 1] + 1e-3f;
    if (!rises) {
      forget(r.channels[c]);
      continue;
    }
    r.only = static_cast<int>(c);
    pointwise(r, [&](double x, auto, auto) {
      int k = 0;
      while (k < N - 2 && x >= real(m.source[k + 1])) ++k;
      const double slope = (real(m.target[k + 1]) - real(m.target[k])) / (real(m.source[k + 1]) - real(m.source[k]));
      return rounded{(x - real(m.source[k])) * slope + real(m.target[k]),
                     (abs(x) + abs(real(m.source[k]))) * slope + abs(real(m.target[k])) + abs(real(m.target[k + 1]))};
    });
    r.only = -1;
  }
}

}  // namespace fuzz
