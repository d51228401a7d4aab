// SPDX-License-Identifier: Apache-2.0
// Tissue masks: known thresholds, L* of scikit-image on real tiles, and the steps after against naive references.
#include "suture/mask/tissue_mask.hpp"

#include <cmath>
#include <random>

#include "ref/mask.hpp"
#include "support/oracle.hpp"
#include "suture/fit/percentiles.hpp"

namespace {

using bytes = std::vector<std::uint8_t>;
using suture::tissue_mask_options;
using suture::tissue_rule;

// `values` of equal R, G and B: their gray level is the value.
bytes grays(const bytes& values) {
  bytes rgb;
  for (int c = 0; c < 3; ++c) rgb.insert(rgb.end(), values.begin(), values.end());
  return rgb;
}

struct made {
  bytes mask;
  suture::tissue_mask_result result;
};

made make(const bytes& planar_rgb, std::int64_t height, std::int64_t width, const tissue_mask_options& options = {}) {
  const suture::grid g{.extents = {1, height, width}};
  made m{bytes(static_cast<std::size_t>(height * width), 9), {}};
  suture::tissue_mask(suture::cpu{2}, suture::contiguous(planar_rgb.data(), g, 3), suture::contiguous(m.mask.data(), g),
                      {&m.result, 1}, options);
  return m;
}

bytes repeated(const std::vector<std::pair<int, int>>& runs) {
  bytes v;
  for (const auto& [value, count] : runs)
    v.insert(v.end(), static_cast<std::size_t>(count), static_cast<std::uint8_t>(value));
  return v;
}

// The known answers of scikit-image's threshold_otsu.
TEST(TissueMask, OtsuKnownThresholds) {
  const bytes a = repeated({{10, 4}, {12, 6}, {20, 2}, {200, 5}, {210, 3}});
  const made m = make(grays(a), 1, 20);
  EXPECT_EQ(m.result.threshold, 20);
  EXPECT_EQ(m.result.pixels, 12u);
  EXPECT_EQ(m.mask, repeated({{1, 12}, {0, 8}}));
  EXPECT_EQ(make(grays({0, 0, 1, 1, 2, 2, 3, 3}), 2, 4).result.threshold, 1);
}

// The threshold that a search over all splits in long double finds; the mask that follows.
TEST(TissueMask, OtsuIsTheBestSplit) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 engine(seed);
    const std::int64_t height = 7, width = 61 + seed;
    bytes rgb(static_cast<std::size_t>(3 * height * width));
    for (auto& v : rgb)
      v = static_cast<std::uint8_t>(seed % 2 != 0 ? engine() % 256 : engine() % 5 * 50 + engine() % 9);
    const std::size_t n = rgb.size() / 3;
    for (const tissue_rule rule : {tissue_rule::gray, tissue_rule::saturation}) {
      std::vector<int> levels(n);
      for (std::size_t i = 0; i < n; ++i) {
        const double r = rgb[i], g = rgb[n + i], b = rgb[2 * n + i];
        const double most = std::max({r, g, b}), least = std::min({r, g, b});
        // OpenCV: luma weights rounded to 15 bits; 255 / max rounded to 12 bits.
        levels[i] =
            rule == tissue_rule::gray ? static_cast<int>(std::floor((9798 * r + 19235 * g + 3735 * b) / 32768 + .5))
            : most > 0 ? static_cast<int>(std::floor((most - least) * std::nearbyint(1044480 / most) / 4096 + .5))
                       : 0;
      }
      long double best = -1;
      int threshold = 0;
      for (int t = 0; t < 255; ++t) {
        long double n1 = 0, n2 = 0, s1 = 0, s2 = 0;
        for (const int v : levels) (v <= t ? n1 : n2) += 1, (v <= t ? s1 : s2) += v;
        if (n1 == 0 || n2 == 0) continue;
        const long double score = n1 * n2 * (s1 / n1 - s2 / n2) * (s1 / n1 - s2 / n2);
        if (score > best * (1 + 1e-15L)) best = score, threshold = t;
      }
      const made m = make(rgb, height, width, {.rule = rule});
      ASSERT_EQ(m.result.threshold, threshold);
      for (std::size_t i = 0; i < n; ++i)
        ASSERT_EQ(m.mask[i], rule == tissue_rule::gray ? levels[i] <= threshold : levels[i] > threshold);
    }
  }
}

TEST(TissueMask, OtsuOfTilesIsThatOfOpenCv) {
  support::for_each_oracle(support::calls("skimage.filters.threshold_otsu"), [](const support::oracle_case& c) {
    const auto rgb = c.input<std::uint8_t>("rgb");
    const suture::grid g{.extents = {1, rgb.shape[0], rgb.shape[1]}};
    bytes mask(static_cast<std::size_t>(g.voxels()));
    suture::tissue_mask_result result{};
    suture::tissue_mask(suture::cpu{1}, suture::channels_last(rgb.values.data(), g, 3),
                        suture::contiguous(mask.data(), g), {&result, 1});
    EXPECT_EQ(result.threshold, c.expected.at("u8_gray_cv2").get<double>());
  });
}

// OpenCV's gray level of a known color.
TEST(TissueMask, GrayLevel) {
  // 151 against its neighbors: a threshold between 150 and 152 shows where it lies.
  const bytes rgb{200, 151, 0, 120, 151, 0, 180, 151, 0};
  EXPECT_EQ(make(rgb, 1, 3).mask, (bytes{0, 0, 1}));
  const bytes pair{200, 152, 120, 152, 180, 152};
  EXPECT_EQ(make(pair, 1, 2).result.threshold, 151);
}

// L* in long double.
TEST(TissueMask, LuminosityOfEveryGrayAndOfRandomColors) {
  const auto lightness = [](int r, int g, int b) {
    const auto linear = [](int v) {
      const long double u = v / 255.0L;
      return u > .04045L ? std::pow((u + .055L) / 1.055L, 2.4L) : u / 12.92L;
    };
    const long double y = .212671L * linear(r) + .715160L * linear(g) + .072169L * linear(b);
    return y > .008856L ? 116 * std::cbrt(y) - 16 : 116 * 7.787L * y;
  };
  std::mt19937 engine(1);
  bytes rgb(3 * 4096);
  for (auto& v : rgb) v = static_cast<std::uint8_t>(engine() % 256);
  for (std::size_t i = 0; i < 256; ++i)
    for (std::size_t c = 0; c < 3; ++c) rgb[c * 4096 + i] = static_cast<std::uint8_t>(i);
  for (const float limit : {80.0f, 50.0f, 5.0f, 100.0f}) {
    const made m = make(rgb, 64, 64, {.rule = tissue_rule::luminosity, .luminosity = limit});
    EXPECT_EQ(m.result.threshold, -1);
    for (std::size_t i = 0; i < 4096; ++i) {
      const long double l = lightness(rgb[i], rgb[4096 + i], rgb[8192 + i]);
      if (std::abs(l - static_cast<long double>(limit)) < 1e-6L) continue;
      ASSERT_EQ(m.mask[i], l < static_cast<long double>(limit)) << l;
    }
  }
}

TEST(TissueMask, LuminosityOfTilesIsThatOfScikitImage) {
  support::for_each_oracle(support::calls("skimage.color.rgb2lab"), [](const support::oracle_case& c) {
    const auto rgb = c.input<std::uint8_t>("rgb");
    const auto lab = c.output<double>("y");
    const suture::grid g{.extents = {1, rgb.shape[0], rgb.shape[1]}};
    bytes mask(static_cast<std::size_t>(g.voxels()));
    for (const float limit : {80.0f, 55.0f}) {
      suture::tissue_mask_result result{};
      suture::tissue_mask(suture::cpu{1}, suture::channels_last(rgb.values.data(), g, 3),
                          suture::contiguous(mask.data(), g), {&result, 1},
                          {.rule = tissue_rule::luminosity, .luminosity = limit});
      std::uint32_t pixels = 0;
      for (std::size_t i = 0; i < mask.size(); ++i) {
        const bool tissue = lab.values[3 * i] < static_cast<double>(limit);
        pixels += tissue;
        ASSERT_EQ(mask[i], tissue) << lab.values[3 * i];
      }
      EXPECT_EQ(result.pixels, pixels);
      EXPECT_EQ(result.status, pixels > 0 ? suture::mask_status::ok : suture::mask_status::empty);
    }
  });
}

// TIAToolbox's luminosity mask of real H&E tiles: percentiles 2 and 98 of all values stretched to 0 .. 255, cut to
// whole levels, then OpenCV's 8-bit L* below 0.8 * 255, which is L* below 203.5 / 2.55 but for OpenCV's own rounding.
TEST(TissueMask, LuminosityOfStretchedTilesIsThatOfTiaToolbox) {
  support::for_each_oracle(support::calls("tiatoolbox get_luminosity_tissue_mask",
                                          [](const support::oracle_case& c) { return c.has("threshold", 0.8); }),
                           [](const support::oracle_case& c) {
                             auto rgb = c.input<std::uint8_t>("source");
                             const auto expected = c.output<std::uint8_t>("mask");
                             const suture::grid g{.extents = {1, rgb.shape[0], rgb.shape[1]}};
                             suture::percentiles<2> stretch{};
                             suture::fit(suture::cpu{1}, suture::fit_percentiles<2>{.q = {2, 98}, .pooled = true},
                                         suture::channels_last<const std::uint8_t>(rgb.values.data(), g, 3),
                                         suture::everything{}, std::span(&stretch, 1));
                             for (auto& v : rgb.values) {
                               const double share = (v - stretch.value[0]) / (stretch.value[1] - stretch.value[0]);
                               v = static_cast<std::uint8_t>(std::min(std::max(share, 0.0), 1.0) * 255);
                             }
                             bytes mask(static_cast<std::size_t>(g.voxels()));
                             suture::tissue_mask_result result{};
                             suture::tissue_mask(suture::cpu{1},
                                                 suture::channels_last<const std::uint8_t>(rgb.values.data(), g, 3),
                                                 suture::contiguous(mask.data(), g), {&result, 1},
                                                 {.rule = tissue_rule::luminosity, .luminosity = 79.80392f});
                             std::size_t differ = 0;
                             for (std::size_t i = 0; i < mask.size(); ++i) differ += mask[i] != expected.values[i];
                             EXPECT_LE(differ, mask.size() / 1000);
                             EXPECT_GT(result.pixels, mask.size() / 10);
                           });
}

TEST(TissueMask, DropsSmallPiecesThenDilates) {
  const reference::size3 n{1, 50, 90};
  std::mt19937 engine(5);
  bytes values(4500);
  for (auto& v : values) v = std::uint8_t{engine() % 100 < 30 ? std::uint8_t{100} : std::uint8_t{230}};
  bytes expected(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) expected[i] = values[i] == 100;
  expected = reference::dilated(reference::at_least(expected, n, 2, 12), n, 2, {0, 3, 3}, false);
  const made m = make(grays(values), 50, 90, {.least_size = 12, .dilation_radius = 3});
  EXPECT_EQ(m.mask, expected);
  EXPECT_EQ(m.result.pixels, static_cast<std::uint32_t>(std::count(expected.begin(), expected.end(), 1)));
}

TEST(TissueMask, OfOneLevelIsEmpty) {
  for (const std::uint8_t level : bytes{0, 128, 255})
    for (const tissue_rule rule : {tissue_rule::gray, tissue_rule::saturation}) {
      const made m = make(grays(bytes(200, level)), 10, 20, {.rule = rule});
      EXPECT_EQ(m.result.status, suture::mask_status::empty);
      EXPECT_EQ(m.result.threshold, rule == tissue_rule::gray ? level : 0);
      EXPECT_EQ(m.mask, bytes(200, 0));
    }
  EXPECT_EQ(make({255, 255, 255}, 1, 1, {.rule = tissue_rule::luminosity}).result.status, suture::mask_status::empty);
  EXPECT_EQ(make({0, 0, 0}, 1, 1, {.rule = tissue_rule::luminosity}).mask, bytes{1});
}

TEST(TissueMask, BadInput) {
  const bytes rgb(24, 1);
  EXPECT_THROW(make(rgb, 2, 4, {.luminosity = 0}), suture::error);
  EXPECT_THROW(make(rgb, 2, 4, {.luminosity = std::nanf("")}), suture::error);
  EXPECT_THROW(make(rgb, 2, 4, {.least_size = -1}), suture::error);
  EXPECT_THROW(make(rgb, 2, 4, {.dilation_radius = -1}), suture::error);
  EXPECT_THROW(make(rgb, 2, 4, {.dilation_radius = 64}), suture::error);
  bytes mask(8);
  suture::tissue_mask_result result{};
  const suture::grid flat{.extents = {1, 2, 4}}, deep{.extents = {2, 1, 4}};
  EXPECT_THROW(suture::tissue_mask(suture::cpu{1}, suture::contiguous(rgb.data(), flat, 1),
                                   suture::contiguous(mask.data(), flat), {&result, 1}),
               suture::error);
  EXPECT_THROW(suture::tissue_mask(suture::cpu{1}, suture::contiguous(rgb.data(), deep, 3),
                                   suture::contiguous(mask.data(), deep), {&result, 1}),
               suture::error);
  EXPECT_THROW(suture::tissue_mask(suture::cpu{1}, suture::contiguous(rgb.data(), flat, 3),
                                   suture::contiguous(mask.data(), flat), {}),
               suture::error);
}

}  // namespace
