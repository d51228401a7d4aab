// SPDX-License-Identifier: Apache-2.0
// Statistics of a list of numbers by their definitions: sorted copies, long double sums, every split tried.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace reference {

inline long double mean(const std::vector<double>& x) {
  long double sum = 0;
  for (const double v : x) sum += v;
  return sum / static_cast<long double>(x.size());
}

inline long double deviation(const std::vector<double>& x, int ddof) {
  const long double m = mean(x);
  long double sum = 0;
  for (const double v : x) sum += (v - m) * (v - m);
  return std::sqrt(sum / static_cast<long double>(static_cast<long>(x.size()) - ddof));
}

// numpy.percentile, method "linear". The volatile products keep a compiler from fusing what NumPy rounds twice.
inline double percentile(std::vector<double> x, double q) {
  std::sort(x.begin(), x.end());
  const volatile double h = static_cast<double>(x.size() - 1) * (q / 100);
  const double lower = std::floor(h);
  const double g = h - lower;
  const double a = x[static_cast<std::size_t>(lower)];
  const double b = x[std::min(static_cast<std::size_t>(lower) + 1, x.size() - 1)];
  const volatile double up = (b - a) * g, down = (b - a) * (1 - g);
  return g < 0.5 ? a + up : b - down;
}

// skimage.filters.threshold_otsu of whole numbers: one bin per value, the first of equal maxima.
inline double otsu_of_integers(const std::vector<double>& x) {
  std::map<double, long double> counts;
  for (const double v : x) counts[v] += 1;
  if (counts.size() == 1) return counts.begin()->first;
  double best = 0;
  long double best_score = -1;
  for (auto split = counts.begin(); std::next(split) != counts.end(); ++split) {
    long double n1 = 0, s1 = 0, n2 = 0, s2 = 0;
    for (const auto& [value, count] : counts) {
      (value <= split->first ? n1 : n2) += count;
      (value <= split->first ? s1 : s2) += count * value;
    }
    const long double score = n1 * n2 * (s1 / n1 - s2 / n2) * (s1 / n1 - s2 / n2);
    if (score > best_score * (1 + 1e-15L)) {
      best_score = score;
      best = split->first;
    }
  }
  return best;
}

}  // namespace reference
