// SPDX-License-Identifier: Apache-2.0
// Intensity operations on single values, and on whole channels where they need statistics.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace reference {

// DICOM PS3.3 C.11.2.1: windowing.
inline double window_linear(double x, double center, double width, double low = 0, double high = 1) {
  const double c = center - 0.5;
  const double w = width - 1;
  if (x <= c - w / 2) return low;
  if (x > c + w / 2) return high;
  return ((x - c) / w + 0.5) * (high - low) + low;
}
inline double window_linear_exact(double x, double center, double width, double low = 0, double high = 1) {
  if (x <= center - width / 2) return low;
  if (x > center + width / 2) return high;
  return ((x - center) / width + 0.5) * (high - low) + low;
}
inline double window_sigmoid(double x, double center, double width, double low = 0, double high = 1) {
  return (high - low) / (1 + std::exp(-4 * (x - center) / width)) + low;
}

// MONAI ScaleIntensityRange.
inline double scale_range(double x, double a_min, double a_max, double b_min, double b_max, bool clip) {
  if (a_max == a_min) return x - a_min + b_min;
  const double y = (x - a_min) / (a_max - a_min) * (b_max - b_min) + b_min;
  return clip ? std::clamp(y, b_min, b_max) : y;
}

// nnU-Net CTNormalization.
inline double ct_normalized(double x, double low, double high, double mean, double deviation) {
  return (std::clamp(x, low, high) - mean) / std::max(deviation, 1e-8);
}

struct statistics {
  double mean = 0;
  double deviation = 0;  // of the population: divided by n
  double min = 0;
  double max = 0;
};

inline statistics statistics_of(const std::vector<double>& x) {
  long double sum = 0;
  for (const double v : x) sum += v;
  const long double mean = sum / static_cast<long double>(x.size());
  long double squares = 0;
  for (const double v : x) squares += (v - mean) * (v - mean);
  return {static_cast<double>(mean), static_cast<double>(std::sqrt(squares / static_cast<long double>(x.size()))),
          *std::min_element(x.begin(), x.end()), *std::max_element(x.begin(), x.end())};
}

// Gamma of batchgeneratorsv2: ((x - min) / max(range, 1e-7))^gamma * range + min.
inline double gamma_value(double x, double gamma, double min, double max) {
  return std::pow((x - min) / std::max(max - min, 1e-7), gamma) * (max - min) + min;
}
inline std::vector<double> gamma(std::vector<double> x, double exponent, bool invert = false,
                                 bool retain_statistics = false) {
  if (invert)
    for (double& v : x) v = -v;
  const statistics before = statistics_of(x);
  std::vector<double> y = x;
  for (double& v : y) v = gamma_value(v, exponent, before.min, before.max);
  if (retain_statistics) {
    const statistics after = statistics_of(y);
    for (double& v : y) v = (v - after.mean) * before.deviation / std::max(after.deviation, 1e-7) + before.mean;
  }
  if (invert)
    for (double& v : y) v = -v;
  return y;
}

// (x - mean) factor + mean, clamped to the range of x if asked.
// The mean exponent that takes x, scaled to [0, 1], to y, scaled to [0, 1].
inline double exponent_between(std::vector<double> x, std::vector<double> y, bool inverted_image) {
  for (std::vector<double>* v : {&x, &y}) {
    if (inverted_image)
      for (double& value : *v) value = -value;
    const statistics s = statistics_of(*v);
    for (double& value : *v) value = (value - s.min) / (s.max - s.min);
  }
  double sum = 0;
  int count = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] < 0.3 || x[i] > 0.7) continue;
    sum += std::log(y[i]) / std::log(x[i]);
    ++count;
  }
  return sum / count;
}

inline std::vector<double> contrast(const std::vector<double>& x, double factor, bool preserve_range) {
  const statistics s = statistics_of(x);
  std::vector<double> y = x;
  for (double& v : y) {
    v = (v - s.mean) * factor + s.mean;
    if (preserve_range) v = std::clamp(v, s.min, s.max);
  }
  return y;
}

// Noise, given the standard normals.
inline double gaussian_noise(double x, double deviation, double normal) { return x + deviation * normal; }
inline double rician_noise(double x, double deviation, double normal1, double normal2) {
  const double a = x + deviation * normal1;
  const double b = deviation * normal2;
  return std::sqrt(a * a + b * b);
}

}  // namespace reference
