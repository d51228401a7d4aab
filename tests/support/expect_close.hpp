// SPDX-License-Identifier: Apache-2.0
// Compares arrays of values: one failure with the worst element instead of thousands.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <vector>

namespace support {

// Every element within the absolute tolerance, where mask (if given) is not 0. At least one element in ten must be
// compared, so that a mask cannot silence the test.
template <class Actual, class Expected, class Mask = std::vector<double>>
void expect_close(const Actual& actual, const Expected& expected, double tolerance, const Mask& mask = {}) {
  ASSERT_EQ(std::size(actual), std::size(expected));
  ASSERT_TRUE(std::empty(mask) || std::size(mask) == std::size(expected));
  std::size_t compared = 0;
  std::size_t beyond = 0;
  std::size_t where = 0;
  double worst = -1;
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    if (!std::empty(mask) && mask[i] == 0) continue;
    ++compared;
    const auto a = static_cast<double>(actual[i]);
    const auto e = static_cast<double>(expected[i]);
    const double difference = a == e ? 0 : std::abs(a - e);
    if (!(difference <= tolerance)) ++beyond;
    if (!(difference <= worst)) {
      worst = difference;
      where = i;
    }
  }
  EXPECT_GE(10 * compared, std::size(expected)) << "the mask leaves almost nothing to compare";
  EXPECT_GT(compared, 0U);
  EXPECT_EQ(beyond, 0U) << "of " << compared << " elements; worst at " << where << ": "
                        << static_cast<double>(actual[where]) << " instead of " << static_cast<double>(expected[where])
                        << ", difference " << worst << ", tolerance " << tolerance;
}

template <class Values>
double range_of(const Values& values) {
  double low = INFINITY;
  double high = -INFINITY;
  for (const auto v : values) {
    low = std::fmin(low, static_cast<double>(v));
    high = std::fmax(high, static_cast<double>(v));
  }
  return high - low;
}

}  // namespace support
