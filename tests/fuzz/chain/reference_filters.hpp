// SPDX-License-Identifier: Apache-2.0
// Filters and operations on patch statistics by their definitions, in double.
#pragma once

#include "bounded.hpp"
#include "ref/fourier.hpp"
#include "reference_values.hpp"

namespace fuzz {

// Calls f(channel, element, z, y, x).
template <class F>
void each_place(const sample_reference& r, const F& f) {
  const auto& n = r.grid.extents;
  for (std::size_t c = 0; c < r.channels.size(); ++c)
    for (std::size_t e = 0; e < r.voxels(); ++e) {
      const auto at = static_cast<std::int64_t>(e);
      f(c, e, at / (n[1] * n[2]), at / n[2] % n[1], at % n[2]);
    }
}
inline std::size_t place_of(const sample_reference& r, std::int64_t z, std::int64_t y, std::int64_t x) {
  return static_cast<std::size_t>((z * r.grid.extents[1] + y) * r.grid.extents[2] + x);
}
inline std::size_t parameters_of(std::size_t channel) { return std::min<std::size_t>(channel, 7); }

struct blur_line {
  std::vector<double> weights{1};
  reference::integer radius = 0;
  suture::blur_kernel kernel = suture::blur_kernel::scipy;
  blur_line(double sigma, suture::blur_kernel k, double truncate = 0) : kernel(k) {
    if (!(sigma > 0)) return;
    double reach = kernel == suture::blur_kernel::nnunet ? 3 * sigma + .25 : 4 * sigma + .5;
    if (truncate > 0) reach = truncate * sigma + .5;
    radius = static_cast<reference::integer>(reach);
    if (kernel == suture::blur_kernel::monai && truncate == 0) radius = std::max<reference::integer>(radius, 1);
    weights.clear();
    double sum = 0;
    for (reference::integer i = -radius; i <= radius; ++i) {
      const auto d = static_cast<double>(i);
      const double w =
          kernel == suture::blur_kernel::monai
              ? (std::erf((d + .5) / (sigma * std::sqrt(2.))) - std::erf((d - .5) / (sigma * std::sqrt(2.)))) / 2
              : std::exp(-d * d / (2 * sigma * sigma));
      weights.push_back(w);
      sum += w;
    }
    if (kernel != suture::blur_kernel::monai)
      for (double& w : weights) w /= sum;
  }
};

// One channel blurred along all axes. Weights are made in float: 2e-6 of their sum.
inline std::vector<bounded> blurred(const sample_reference& r, std::vector<bounded> v,
                                    const std::array<blur_line, 3>& lines) {
  const auto& n = r.grid.extents;
  for (const std::size_t axis : {2u, 1u, 0u}) {
    const blur_line& line = lines[axis];
    if (line.radius == 0 && line.weights[0] == 1) continue;
    if (line.kernel == suture::blur_kernel::monai && n[static_cast<int>(axis)] == 1) continue;
    std::vector<bounded> out(v.size());
    for (std::size_t e = 0; e < v.size(); ++e) {
      const auto at = static_cast<std::int64_t>(e);
      std::int64_t place[3] = {at / (n[1] * n[2]), at / n[2] % n[1], at % n[2]};
      const std::int64_t here = place[axis], count = n[static_cast<int>(axis)];
      double size = 0;
      for (reference::integer i = -line.radius; i <= line.radius; ++i) {
        std::int64_t from = here + i;
        if (line.kernel == suture::blur_kernel::monai) {
          if (from < 0 || from >= count) continue;
        } else {
          from = reference::border_index(
              line.kernel == suture::blur_kernel::scipy ? reference::border::reflect : reference::border::mirror, from,
              count);
        }
        place[axis] = from;
        const bounded& tap = v[place_of(r, place[0], place[1], place[2])];
        const double w = line.weights[static_cast<std::size_t>(i + line.radius)];
        out[e].value += w * tap.value;
        out[e].error += w * tap.error;
        size += w * abs(tap.value);
      }
      out[e].error += (2e-6 + 8 * float_epsilon) * size;
    }
    v = out;
  }
  return v;
}
template <class Sigma>
std::array<blur_line, 3> lines_of(const Sigma& sigma, suture::blur_kernel kernel, double truncate = 0) {
  return {blur_line(static_cast<double>(sigma[0]), kernel, truncate),
          blur_line(static_cast<double>(sigma[1]), kernel, truncate),
          blur_line(static_cast<double>(sigma[2]), kernel, truncate)};
}
inline void sharpen_channel(sample_reference& r, std::size_t c, const std::array<blur_line, 3>& lines, double amount) {
  const std::vector<bounded> low = blurred(r, r.channels[c], lines);
  for (std::size_t e = 0; e < low.size(); ++e) {
    bounded& x = r.channels[c][e];
    const double y = x.value + amount * (x.value - low[e].value);
    x = {y, x.error * (1 + abs(amount)) + abs(amount) * low[e].error +
                4 * float_epsilon * (abs(x.value) + abs(amount) * (abs(x.value) + abs(low[e].value)))};
  }
}
inline void reference_of(sample_reference& r, const suture::gaussian_blur& o, const operation_fields&) {
  const float sigma[3] = {static_cast<float>(o.sigma[0]), static_cast<float>(o.sigma[1]),
                          static_cast<float>(o.sigma[2])};
  for (auto& channel : r.channels) channel = blurred(r, channel, lines_of(sigma, o.kernel, real(o.truncate)));
}
inline void reference_of(sample_reference& r, const suture::random_gaussian_blur::drawn& o, const operation_fields&) {
  for (std::size_t c = 0; c < r.channels.size(); ++c)
    r.channels[c] = blurred(r, r.channels[c], lines_of(o.sigma[parameters_of(c)], o.kernel));
}
inline void reference_of(sample_reference& r, const suture::sharpen& o, const operation_fields&) {
  const float sigma[3] = {static_cast<float>(o.sigma[0]), static_cast<float>(o.sigma[1]),
                          static_cast<float>(o.sigma[2])};
  for (std::size_t c = 0; c < r.channels.size(); ++c) sharpen_channel(r, c, lines_of(sigma, o.kernel), real(o.amount));
}
inline void reference_of(sample_reference& r, const suture::random_sharpen::drawn& o, const operation_fields&) {
  for (std::size_t c = 0; c < r.channels.size(); ++c) {
    const float s = o.sigma[parameters_of(c)];
    if (s > 0) sharpen_channel(r, c, lines_of(std::array{s, s, s}, o.kernel), real(o.amount[parameters_of(c)]));
  }
}

inline void median_of_channel(sample_reference& r, std::size_t c) {
  const std::vector<bounded> from = r.channels[c];
  const auto& n = r.grid.extents;
  each_place(r, [&](std::size_t channel, std::size_t e, std::int64_t z, std::int64_t y, std::int64_t x) {
    if (channel != c) return;
    std::vector<double> values;
    double error = 0;
    bool nan = false;
    for (int dz = -1; dz <= 1; ++dz)
      for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
          const auto at = [](std::int64_t i, std::int64_t count) {
            return reference::border_index(reference::border::reflect, i, count);
          };
          const bounded& v = from[place_of(r, at(z + dz, n[0]), at(y + dy, n[1]), at(x + dx, n[2]))];
          values.push_back(v.value);
          error = std::fmax(error, v.error);
          nan = nan || std::isnan(v.value);
        }
    std::sort(values.begin(), values.end());
    r.channels[c][e] = {nan ? NAN : values[13], error};
  });
}
inline void reference_of(sample_reference& r, const suture::median_filter&, const operation_fields&) {
  for (std::size_t c = 0; c < r.channels.size(); ++c) median_of_channel(r, c);
}
inline void reference_of(sample_reference& r, const suture::random_median_filter::drawn& o, const operation_fields&) {
  for (std::size_t c = 0; c < r.channels.size(); ++c)
    if (o.channels[parameters_of(c)]) median_of_channel(r, c);
}

inline void reference_of(sample_reference& r, const suture::random_low_resolution::drawn& o, const operation_fields&) {
  const auto from = r.channels;
  const auto& n = r.grid.extents;
  struct pair {
    std::int64_t a, b;
    double t;
  };
  each_place(r, [&](std::size_t c, std::size_t e, std::int64_t z, std::int64_t y, std::int64_t x) {
    const std::int64_t at[3] = {z, y, x};
    pair pairs[3];
    bool same = true;
    for (int k = 0; k < 3; ++k) {
      const double zoom = o.axes[k] ? real(o.zoom[parameters_of(c)]) : 1;
      const std::int64_t coarse =
          std::max<std::int64_t>(1, reference::round_half_even(static_cast<double>(n[k]) * zoom));
      same = same && coarse == n[k];
      const double position = std::fmax(
          0, (static_cast<double>(at[k]) + .5) * static_cast<double>(coarse) / static_cast<double>(n[k]) - .5);
      const auto j = static_cast<std::int64_t>(std::floor(position + 1e-9));
      const auto picked = [&](std::int64_t i) {
        i = std::min(i, coarse - 1);
        return o.pick == suture::coarse_pick::nearest_exact ? (2 * i + 1) * n[k] / (2 * coarse) : i * n[k] / coarse;
      };
      pairs[k] = {picked(j), picked(j + 1), std::fmax(0, position - static_cast<double>(j))};
    }
    if (same) return;
    bounded sum;
    double size = 0;
    for (int i = 0; i < 8; ++i) {
      const auto side = [&](int k) { return (i >> k) & 1 ? pairs[k].b : pairs[k].a; };
      double w = 1;
      for (int k = 0; k < 3; ++k) w *= (i >> k) & 1 ? pairs[k].t : 1 - pairs[k].t;
      if (w == 0) continue;
      const bounded& tap = from[c][place_of(r, side(0), side(1), side(2))];
      sum.value += w * tap.value;
      sum.error += w * tap.error;
      size += w * abs(tap.value);
    }
    r.channels[c][e] = {sum.value, sum.error + 16 * float_epsilon * size};
  });
}

struct channel_statistics_of {
  double mean = 0, deviation = 0, low = 0, high = 0, error = 0, deviation_error = 0;
  bool any = false;
  explicit channel_statistics_of(const std::vector<bounded>& channel) {
    std::vector<double> finite;
    for (const bounded& v : channel)
      if (std::isfinite(v.value)) finite.push_back(v.value);
    if (finite.empty()) return;
    any = true;
    const reference::statistics s = reference::statistics_of(finite);
    mean = s.mean, deviation = s.deviation, low = s.min, high = s.max;
    error = largest_error(channel) + float_epsilon * abs(mean);
    deviation_error = 2 * error;  // changes of up to e of every voxel change the deviation by no more than e
  }
};
inline void reference_of(sample_reference& r, const suture::random_patch_contrast::drawn& o, const operation_fields&) {
  for (std::size_t c = 0; c < r.channels.size(); ++c) {
    const channel_statistics_of s(r.channels[c]);
    const double f = real(o.factor[parameters_of(c)]);
    for (bounded& x : r.channels[c]) {
      double y = (x.value - s.mean) * f + s.mean;
      if (o.preserve_range && !std::isnan(y)) y = std::clamp(y, s.low, s.high);
      x = {y, x.error * abs(f) + s.error * (abs(f) + 1) + s.error +
                  4 * float_epsilon * ((abs(x.value) + abs(s.mean)) * abs(f) + abs(s.mean))};
    }
  }
}
inline void reference_of(sample_reference& r, const suture::patch_z_score& o, const operation_fields&) {
  for (auto& channel : r.channels) {
    const channel_statistics_of s(channel);
    const double d = s.deviation > 0 ? s.deviation : 1;
    const double relative = s.deviation > 0 ? s.deviation_error / d : s.error > 0 ? unknown : 0;
    for (bounded& x : channel) {
      if (std::isnan(x.value)) {
        x = {real(o.nan), x.error};
        continue;
      }
      const double y = (x.value - s.mean) / d;
      x = {y, relative > .1 ? unknown
                            : (x.error + s.error) / d + 2 * abs(y) * relative +
                                  4 * float_epsilon * (abs(x.value) + abs(s.mean)) / d};
    }
  }
}
inline void reference_of(sample_reference& r, const suture::random_patch_gamma::drawn& o, const operation_fields&) {
  for (std::size_t c = 0; c < r.channels.size(); ++c) {
    auto& channel = r.channels[c];
    const channel_statistics_of before(channel);
    const double range = before.high - before.low, e = real(o.exponent[parameters_of(c)]);
    if (!(range > 1e-3) || before.error > 1e-3 * range) {
      forget(channel);
      continue;
    }
    for (bounded& x : channel) {
      if (std::isnan(x.value)) continue;
      const auto curve = [&](double v) {
        const double n = std::clamp(o.invert ? (before.high - v) / range : (v - before.low) / range, 0., 1.);
        const double y = std::pow(n, e) * range;
        return o.invert ? before.high - y : before.low + y;
      };
      const double y = curve(x.value),
                   reach = x.error + 2 * before.error + 2 * float_epsilon * (abs(before.low) + abs(before.high));
      x = {y, std::fmax(abs(curve(x.value + reach) - y), abs(curve(x.value - reach) - y)) + 4 * before.error +
                  8 * float_epsilon * (range * (1 + e) + abs(before.low) + abs(before.high))};
    }
    if (!o.retain_statistics) continue;
    const channel_statistics_of after(channel);
    if (after.deviation < 1e-3 * range || after.error > 1e-3 * after.deviation) {
      forget(channel);
      continue;
    }
    const double scale = before.deviation / after.deviation;
    for (bounded& x : channel) {
      const double y = (x.value - after.mean) * scale + before.mean;
      x = {y, (x.error + after.error) * scale + before.error +
                  abs(x.value - after.mean) *
                      (before.deviation_error / after.deviation + scale * after.deviation_error / after.deviation) +
                  8 * float_epsilon * (scale * (abs(x.value) + abs(after.mean)) + abs(before.mean))};
    }
  }
}

// A channel through its Fourier transform: change(spectrum, extents) has its way with it.
template <class Change>
void in_k_space(sample_reference& r, std::size_t c, const Change& change) {
  auto& channel = r.channels[c];
  const reference::size3d n{static_cast<std::size_t>(r.grid.extents[0]), static_cast<std::size_t>(r.grid.extents[1]),
                            static_cast<std::size_t>(r.grid.extents[2])};
  reference::spectrum s;
  double most = 0;
  for (const bounded& v : channel) {
    s.emplace_back(v.value, 0);
    most = std::fmax(most, abs(v.value));
  }
  const double error = largest_error(channel);
  if (!(most < 1e30) || error > 1e-3 * most) return forget(channel);  // not a number too
  s = reference::transformed(s, n);
  const double growth = change(s, n);
  s = reference::transformed(s, n, true);
  double most_after = 0;
  for (const auto& v : s) most_after = std::fmax(most_after, abs(v.real()));
  // Every voxel hangs on every other; 5e-6 of the largest is what tests state of the transform.
  const double spread = std::sqrt(static_cast<double>(channel.size()));
  for (std::size_t e = 0; e < channel.size(); ++e)
    channel[e] = {s[e].real(), growth * (spread * error + 5e-6 * (most + most_after))};
}
inline void ring(sample_reference& r, std::size_t c, double alpha) {
  in_k_space(r, c, [&](reference::spectrum& s, const reference::size3d& n) {
    const double radius = (1 - alpha) * static_cast<double>(std::max({n[0], n[1], n[2]})) * std::sqrt(2.) / 2;
    bool doubtful = false;
    for (std::size_t i = 0; i < s.size(); ++i) {
      const std::size_t k[3] = {i / (n[1] * n[2]), i / n[2] % n[1], i % n[2]};
      double square = 0;
      for (std::size_t a = 0; a < 3; ++a) {
        const double d = static_cast<double>(reference::shifted(k[a], n[a])) - (static_cast<double>(n[a]) - 1) / 2;
        square += d * d;
      }
      doubtful = doubtful || abs(std::sqrt(square) - radius) < 1e-6;
      if (std::sqrt(square) > radius) s[i] = 0;
    }
    return doubtful ? unknown : 1.0;
  });
}
inline void reference_of(sample_reference& r, const suture::gibbs_ringing& o, const operation_fields&) {
  for (std::size_t c = 0; c < r.channels.size(); ++c) ring(r, c, real(o.alpha));
}
inline void reference_of(sample_reference& r, const suture::random_gibbs_ringing::drawn& o, const operation_fields&) {
  for (std::size_t c = 0; c < r.channels.size(); ++c)
    if (o.channels[parameters_of(c)]) ring(r, c, real(o.alpha[parameters_of(c)]));
}

}  // namespace fuzz
