// SPDX-License-Identifier: Apache-2.0
// Color spaces in double, written from their definitions: red, green, blue in [0, 1].
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

namespace reference {

using color = std::array<double, 3>;
using matrix = std::array<color, 3>;

inline matrix inverse(const matrix& m) {
  const auto minor = [&](std::size_t i, std::size_t j) {
    const std::size_t a = (i + 1) % 3, b = (i + 2) % 3, c = (j + 1) % 3, d = (j + 2) % 3;
    return m[a][c] * m[b][d] - m[a][d] * m[b][c];
  };
  const double determinant = m[0][0] * minor(0, 0) + m[0][1] * minor(0, 1) + m[0][2] * minor(0, 2);
  matrix result{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) result[j][i] = minor(i, j) / determinant;
  return result;
}
// m v, and v m with v as a row.
inline color times(const matrix& m, const color& v) {
  color r{};
  for (std::size_t i = 0; i < 3; ++i) r[i] = m[i][0] * v[0] + m[i][1] * v[1] + m[i][2] * v[2];
  return r;
}
inline color row_times(const color& v, const matrix& m) {
  color r{};
  for (std::size_t i = 0; i < 3; ++i) r[i] = v[0] * m[0][i] + v[1] * m[1][i] + v[2] * m[2][i];
  return r;
}
template <class F>
color each(const color& v, const F& f) {
  return {f(v[0]), f(v[1]), f(v[2])};
}
inline color unit(const color& v) {
  return each(v, [](double x) { return std::clamp(x, 0.0, 1.0); });
}

inline constexpr matrix rgb_from_hed{{{0.65, 0.70, 0.29}, {0.07, 0.99, 0.11}, {0.27, 0.57, 0.78}}};

struct hed {
  static color from_rgb(const color& v) {
    const color s = row_times(each(v, [](double x) { return std::log(std::max(x, 1e-6)) / std::log(1e-6); }),
                              inverse(rgb_from_hed));
    return each(s, [](double x) { return std::max(x, 0.0); });
  }
  static color to_rgb(const color& s) {
    return unit(each(row_times(s, rgb_from_hed), [](double x) { return std::exp(std::log(1e-6) * x); }));
  }
};

// The conversion before scikit-image 0.18.
struct hed_plus2 {
  static color from_rgb(const color& v) {
    return row_times(each(v, [](double x) { return -std::log(x + 2); }), inverse(rgb_from_hed));
  }
  static color to_rgb(const color& s) {
    return unit(each(row_times(s, rgb_from_hed), [](double x) { return std::exp(-x) - 2; }));
  }
};

struct hsv {
  static color from_rgb(const color& v) {
    const double high = *std::max_element(v.begin(), v.end()), low = *std::min_element(v.begin(), v.end());
    const double extent = high - low;
    double hue = 0;
    if (extent > 0) {
      if (v[0] == high) hue = (v[1] - v[2]) / extent;
      if (v[1] == high) hue = 2 + (v[2] - v[0]) / extent;
      if (v[2] == high) hue = 4 + (v[0] - v[1]) / extent;
      hue /= 6;
      hue -= std::floor(hue);
    }
    return {hue, high > 0 ? extent / high : 0, high};
  }
  static color to_rgb(const color& w) {
    const double h = (w[0] - std::floor(w[0])) * 6, s = w[1], v = w[2], f = h - std::floor(h);
    const double p = v * (1 - s), q = v * (1 - f * s), t = v * (1 - (1 - f) * s);
    const color sectors[6] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
    return unit(sectors[static_cast<int>(h) % 6]);
  }
};

struct lab {
  static constexpr matrix xyz_from_rgb{
      {{0.412453, 0.357580, 0.180423}, {0.212671, 0.715160, 0.072169}, {0.019334, 0.119193, 0.950227}}};
  static constexpr color white{0.95047, 1, 1.08883};

  static color from_rgb(const color& v) {
    const color xyz = times(
        xyz_from_rgb, each(v, [](double x) { return x > 0.04045 ? std::pow((x + 0.055) / 1.055, 2.4) : x / 12.92; }));
    color f{};
    for (std::size_t i = 0; i < 3; ++i) {
      const double t = xyz[i] / white[i];
      f[i] = t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116;
    }
    return {116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])};
  }
  static color to_rgb(const color& v) {
    const double y = (v[0] + 16) / 116;
    color f{v[1] / 500 + y, y, std::max(0.0, y - v[2] / 200)};
    for (std::size_t i = 0; i < 3; ++i)
      f[i] = white[i] * (f[i] > 0.2068966 ? f[i] * f[i] * f[i] : (f[i] - 16.0 / 116) / 7.787);
    return unit(each(times(inverse(xyz_from_rgb), f),
                     [](double x) { return x > 0.0031308 ? 1.055 * std::pow(x, 1 / 2.4) - 0.055 : 12.92 * x; }));
  }
};

struct ruderman {
  static constexpr matrix lms_from_rgb{{{0.3811, 0.5783, 0.0402}, {0.1967, 0.7244, 0.0782}, {0.0241, 0.1288, 0.8444}}};

  static color from_rgb(const color& v) {
    const color c = each(times(lms_from_rgb, v), [](double x) { return std::log(std::max(255 * x, 0x1p-52)); });
    return {(c[0] + c[1] + c[2]) / std::sqrt(3.0), (c[0] + c[1] - 2 * c[2]) / std::sqrt(6.0),
            (c[0] - c[1]) / std::sqrt(2.0)};
  }
  static color to_rgb(const color& v) {
    const double l = v[0] / std::sqrt(3.0), a = v[1] / std::sqrt(6.0), b = v[2] / std::sqrt(2.0);
    const color cones = each({l + a + b, l + a - b, l - 2 * a}, [](double x) { return std::exp(x); });
    return unit(each(times(inverse(lms_from_rgb), cones), [](double x) { return x / 255; }));
  }
};

}  // namespace reference
