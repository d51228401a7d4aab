// SPDX-License-Identifier: Apache-2.0
// A fit of a user's own on the CPU, beside a loop over the voxels.
#include "fit/one_pass_fit.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "support/expect_says.hpp"
#include "suture/suture.hpp"

namespace {

using namespace suture;
using one_pass_test::fit_share_above;

std::vector<float> values_of(std::size_t n) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(mix64(i) % 1000) - 500;
  values[n / 2] = std::numeric_limits<float>::quiet_NaN();
  return values;
}

TEST(OnePassFit, CountsWhatALoopCounts) {
  for (const std::int64_t width : {1, 15, 16, 17, 127, 4099})
    for (const int threads : {1, 2, 5}) {
      const grid g{.extents = {3, 11, width}};
      const auto n = static_cast<std::size_t>(g.voxels());
      const std::vector<float> values = values_of(2 * n);
      std::vector<std::uint8_t> map(n);
      for (std::size_t i = 0; i < n; ++i) map[i] = static_cast<std::uint8_t>(mix64(i + 7) % 3 != 0);
      double expected[2];
      for (std::size_t channel = 0; channel < 2; ++channel) {
        double above = 0, all = 0;
        for (std::size_t i = 0; i < n; ++i) {
          const float v = values[channel * n + i];
          if (map[i] == 0 || v != v) continue;
          ++all;
          above += v > 120.5f ? 1 : 0;
        }
        expected[channel] = all == 0 ? 0 : above / all;
      }
      std::vector<double> found(2);
      fit(cpu{.threads = threads}, fit_share_above{.level = 120.5f}, contiguous(values.data(), g, 2),
          inside(contiguous(map.data(), g)), std::span(found));
      EXPECT_EQ(found[0], expected[0]) << width;
      EXPECT_EQ(found[1], expected[1]) << width;
    }
}

TEST(OnePassFit, PooledCountsAllChannels) {
  const grid g{.extents = {1, 2, 3}};
  const std::vector<std::int16_t> values{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  std::vector<double> found(1);
  fit(cpu{}, fit_share_above{.level = 9, .pooled = true}, contiguous(values.data(), g, 2), everything{},
      std::span(found));
  EXPECT_EQ(found[0], 3.0 / 12.0);
}

TEST(OnePassFit, ErrorsNameTheFitAndTheValue) {
  const grid g{.extents = {1, 2, 3}};
  const std::vector<float> values(6);
  std::vector<double> found(1), two(2);
  EXPECT_SAYS(fit(cpu{}, fit_share_above{.level = std::numeric_limits<float>::infinity()}, contiguous(values.data(), g),
                  everything{}, std::span(found)),
              "fit_share_above: level inf must be finite");
  EXPECT_SAYS(fit(cpu{}, fit_share_above{}, contiguous(values.data(), g), everything{}, std::span(two)),
              "fit_share_above");
}

}  // namespace
