// SPDX-License-Identifier: Apache-2.0
// Sharpness of tiles: OpenCV's numbers, a naive reference, what does not matter, and bad input.
#include "suture/fit/sharpness.hpp"

#include <random>

#include "support/expect_says.hpp"
#include "support/tiles.hpp"

namespace {

using namespace suture;
using bytes = std::vector<std::uint8_t>;
using support::noise;

template <class Views>
std::vector<sharpness> fitted(const Views& views, int threads = 1) {
  std::vector<sharpness> results(detail::as_views(views).size());
  fit(cpu{threads}, fit_sharpness{}, views, everything{}, std::span(results));
  return results;
}
sharpness of(const bytes& rgb, std::int64_t height, std::int64_t width) {
  return fitted(channels_last(rgb.data(), {.extents = {1, height, width}}, 3))[0];
}

// OpenCV 5.0 on the same noise: g = cv2.cvtColor(tile, cv2.COLOR_RGB2GRAY); cv2.Laplacian(g, cv2.CV_64F).var(),
// g.mean(), g.std().
TEST(Sharpness, IsThatOfOpenCv) {
  struct known {
    std::int64_t height, width;
    std::uint32_t seed;
    double laplacian_variance, mean, deviation;
  };
  for (const known& k : {known{1, 1, 1, 0.0, 88.0, 0.0},  //
                         known{1, 15, 2, 13373.715555555556, 133.2, 56.15716042203938},
                         known{15, 1, 3, 9185.359999999999, 118.6, 41.00048780197621},
                         known{16, 17, 4, 51189.719723183385, 129.31985294117646, 50.30857621872084},
                         known{127, 33, 5, 48399.54305783359, 127.07349081364829, 48.84743990048647},
                         known{2, 2, 6, 45776.0, 144.5, 27.463612289718917},
                         known{64, 300, 7, 49242.17329504123, 127.20755208333334, 49.21764689501829}}) {
    const sharpness s = of(noise(k.height, k.width, k.seed), k.height, k.width);
    EXPECT_NEAR(s.laplacian_variance, k.laplacian_variance, 1e-14 * k.laplacian_variance);
    EXPECT_NEAR(s.mean, k.mean, 1e-14 * k.mean);
    EXPECT_NEAR(s.standard_deviation, k.deviation, 1e-14 * k.deviation);
    EXPECT_EQ(s.pixels, static_cast<std::uint64_t>(k.height * k.width));
    EXPECT_EQ(s.status, k.deviation > 0 ? fit_status::ok : fit_status::constant);
  }
}

// The definition, in long double, on one channel; the widest values, and rows longer than a block of sums.
TEST(Sharpness, OfOneChannelIsTheDefinition) {
  std::mt19937 engine(3);
  for (const auto& [height, width] : {std::pair{1, 2}, {2, 1}, {17, 16}, {65, 127}, {3, 2500}, {130, 5}}) {
    bytes v(static_cast<std::size_t>(height * width));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = engine() % 2 != 0 ? 255 : 0;
    const auto mirror = [](int i, int n) { return n == 1 ? 0 : i < 0 ? -i : i >= n ? 2 * n - 2 - i : i; };
    const auto at = [&, h = height, w = width](int y, int x) {
      return static_cast<long double>(v[static_cast<std::size_t>(mirror(y, h) * w + mirror(x, w))]);
    };
    long double sum = 0, squares = 0;
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        const long double l = at(y - 1, x) + at(y + 1, x) + at(y, x - 1) + at(y, x + 1) - 4 * at(y, x);
        sum += l;
        squares += l * l;
      }
    const long double n = static_cast<long double>(v.size()), mean = sum / n;
    const auto expected = static_cast<double>(squares / n - mean * mean);
    const sharpness s = fitted(contiguous(v.data(), {.extents = {1, height, width}}))[0];
    EXPECT_NEAR(s.laplacian_variance, expected, 1e-13 * expected);
  }
}

TEST(Sharpness, KnowsNothingOfStridesThreadsAndNeighbors) {
  const std::int64_t h = 150, w = 131;
  const grid g{.extents = {1, h, w}};
  const bytes rgb = noise(h, w, 9);
  bytes planar(rgb.size());
  const auto n = static_cast<std::size_t>(h * w);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t c = 0; c < 3; ++c) planar[c * n + i] = rgb[3 * i + c];
  const sharpness alone = of(rgb, h, w);
  EXPECT_EQ(fitted(contiguous(planar.data(), g, 3))[0], alone);
  const bytes other = noise(20, 30, 1);
  std::vector<view<const std::uint8_t>> batch;
  for (int i = 0; i < 7; ++i) {
    batch.push_back(channels_last<const std::uint8_t>(rgb.data(), g, 3));
    batch.push_back(channels_last<const std::uint8_t>(other.data(), {.extents = {1, 20, 30}}, 3));
  }
  for (const int threads : {1, 2, 3, 8}) {
    const auto results = fitted(batch, threads);
    for (std::size_t i = 0; i < batch.size(); i += 2) EXPECT_EQ(results[i], alone);
    for (std::size_t i = 1; i < batch.size(); i += 2) EXPECT_EQ(results[i], of(other, 20, 30));
  }
}

TEST(Sharpness, TellsBlankAndBlurredFromSharp) {
  const std::int64_t n = 64;
  bytes glass(static_cast<std::size_t>(3 * n * n), 240), blurred = glass;
  const sharpness blank = of(glass, n, n);
  EXPECT_EQ(blank.status, fit_status::constant);
  EXPECT_EQ(blank.laplacian_variance, 0);
  EXPECT_EQ(quality_of(blank), tile_quality::blank);
  for (std::size_t i = 0; i < glass.size(); ++i) glass[i] = static_cast<std::uint8_t>(glass[i] - i / 3 % 3);
  EXPECT_EQ(quality_of(of(glass, n, n)), tile_quality::blank);
  for (std::size_t i = 0; i < blurred.size(); ++i) {
    const std::size_t x = i / 3 % 64, y = i / 192;
    blurred[i] = static_cast<std::uint8_t>(100 + x + y);
  }
  EXPECT_EQ(quality_of(of(blurred, n, n)), tile_quality::blurred);
  EXPECT_EQ(quality_of(of(noise(n, n, 4), n, n)), tile_quality::good);
  EXPECT_EQ(quality_of(of(noise(n, n, 4), n, n), {.least_laplacian_variance = 1e6}), tile_quality::blurred);
}

TEST(Sharpness, BadInput) {
  const bytes v(96, 1);
  std::vector<sharpness> one(1), two(2);
  const auto fit_one = [&](const view<const std::uint8_t>& tile, std::vector<sharpness>& results) {
    fit(cpu{1}, fit_sharpness{}, tile, everything{}, std::span(results));
  };
  const grid flat{.extents = {1, 4, 8}};
  EXPECT_SAYS(fit_one(contiguous(v.data(), flat), two), "2 results for 1 tiles");
  EXPECT_SAYS(fit_one(contiguous(v.data(), flat, 2), one), "2 channels");
  EXPECT_SAYS(fit_one(contiguous(v.data(), {.extents = {2, 4, 8}}), one), "2 slices");
  EXPECT_SAYS(fit_one(contiguous(v.data(), {.extents = {1, 0, 8}}), one), "must be positive");
  EXPECT_SAYS(fit_one(contiguous<const std::uint8_t>(nullptr, flat), one), "null pointer");
  EXPECT_SAYS(quality_of(sharpness{}), "has not been fitted");
  fit_one(contiguous(v.data(), flat), one);
  EXPECT_SAYS(quality_of(one[0], {.least_deviation = -1}), "least_deviation");
  EXPECT_SAYS(quality_of(one[0], {.least_laplacian_variance = std::nan("")}), "least_laplacian_variance");
}

}  // namespace
