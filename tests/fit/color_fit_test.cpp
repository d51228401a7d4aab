// SPDX-License-Identifier: Apache-2.0
// Mean and deviation of colors against their definition in double, and Reinhard's normalization by them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "ref/color.hpp"
#include "support/expect_says.hpp"
#include "support/tiles.hpp"
#include "suture/fit/color_moments.hpp"
#include "suture/ops/stain/reinhard.hpp"

namespace {

using namespace suture;
using reference::color;
using byte = std::uint8_t;

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

// A stained tile: white to purple, with some black and white.
std::vector<byte> stained(std::int64_t pixels, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<byte> tile;
  for (std::int64_t i = 0; i < pixels; ++i) {
    const auto stain = static_cast<unsigned>(random() % 120);
    for (unsigned c = 0; c < 3; ++c)
      tile.push_back(static_cast<byte>(235 - stain * (c == 1 ? 16 : 11 - 2 * c) / 10 + random() % 16));
  }
  return tile;
}

template <class Space>
struct reference_of;
template <>
struct reference_of<lab> : reference::lab {};
template <>
struct reference_of<ruderman> : reference::ruderman {};
template <>
struct reference_of<hsv> : reference::hsv {};
template <>
struct reference_of<hed> : reference::hed {};

struct exact_moments {
  double mean[3] = {}, deviation[3] = {};
};
template <class Space, class T, class Uses>
exact_moments exactly(const std::vector<T>& tile, int ddof, double white, const Uses& uses) {
  std::vector<color> values;
  for (std::size_t i = 0; i < tile.size(); i += 3)
    if (uses(i / 3))
      values.push_back(reference_of<Space>::from_rgb(reference::unit(
          {static_cast<double>(tile[i]) / white, tile[i + 1] / white, static_cast<double>(tile[i + 2]) / white})));
  exact_moments m;
  const auto n = static_cast<double>(values.size());
  for (std::size_t k = 0; k < 3; ++k) {
    for (const color& v : values) m.mean[k] += v[k] / n;
    for (const color& v : values) m.deviation[k] += (v[k] - m.mean[k]) * (v[k] - m.mean[k]);
    m.deviation[k] = std::sqrt(m.deviation[k] / (n - ddof));
  }
  return m;
}

template <class Space, class T, class Selection = everything>
color_moments<Space> fitted(const std::vector<T>& tile, std::int64_t height, std::int64_t width,
                            const fit_color_moments<Space>& how = {}, const Selection& selection = {},
                            int threads = 0) {
  color_moments<Space> result;
  const auto image = channels_last<const T>(tile.data(), {.extents = {1, height, width}}, 3);
  fit(cpu{.threads = threads}, how, image, selection, std::span(&result, 1));
  return result;
}

template <class Space>
class ColorMoments : public ::testing::Test {};
using spaces = ::testing::Types<lab, ruderman, hsv, hed>;
TYPED_TEST_SUITE(ColorMoments, spaces);

template <class Space>
constexpr double tolerance = std::is_same_v<Space, lab>        ? 3e-5
                             : std::is_same_v<Space, ruderman> ? 3e-6
                                                               : 3e-7;

TYPED_TEST(ColorMoments, AreThoseOfTheDefinition) {
  for (const auto& [height, width] :
       {std::pair{1, 2}, {1, 15}, {3, 16}, {1, 17}, {5, 63}, {2, 64}, {2, 65}, {40, 127}}) {
    const auto tile = stained(height * width, static_cast<unsigned>(width));
    for (const int ddof : {0, 1}) {
      const auto m = fitted<TypeParam>(tile, height, width, {.ddof = ddof});
      const auto expected = exactly<TypeParam>(tile, ddof, 255, [](std::size_t) { return true; });
      EXPECT_EQ(m.tally.count, static_cast<std::uint64_t>(height * width));
      EXPECT_EQ(m.ddof, ddof);
      EXPECT_EQ(m.status, fit_status::ok);
      for (std::size_t k = 0; k < 3; ++k) {
        EXPECT_NEAR(m.mean[k], expected.mean[k], tolerance<TypeParam>);
        EXPECT_NEAR(m.standard_deviation[k], expected.deviation[k], tolerance<TypeParam>);
        EXPECT_EQ(m.center[k], static_cast<float>(m.mean[k]));
        EXPECT_EQ(m.reciprocal[k], static_cast<float>(1 / m.standard_deviation[k]));
      }
    }
  }
}

TYPED_TEST(ColorMoments, OfTheSelectedPixels) {
  const auto tile = stained(40 * 33, 5);
  std::vector<byte> mask(40 * 33);
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = i * 7 % 5 == 0 ? 0 : static_cast<byte>(i % 4);
  const auto masks = contiguous<const byte>(mask.data(), {.extents = {1, 40, 33}});
  const auto m = fitted<TypeParam>(tile, 40, 33, {}, inside(masks));
  const auto expected = exactly<TypeParam>(tile, 0, 255, [&](std::size_t i) { return mask[i] != 0; });
  const auto l = fitted<TypeParam>(tile, 40, 33, {}, labeled(masks, label_set({2}, 3)));
  const auto expected_label = exactly<TypeParam>(tile, 0, 255, [&](std::size_t i) { return mask[i] == 2; });
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(m.mean[k], expected.mean[k], tolerance<TypeParam>);
    EXPECT_NEAR(m.standard_deviation[k], expected.deviation[k], tolerance<TypeParam>);
    EXPECT_NEAR(l.mean[k], expected_label.mean[k], tolerance<TypeParam>);
  }
  EXPECT_EQ(l.tally.undeclared, static_cast<std::uint64_t>(std::count(mask.begin(), mask.end(), 3)));
}

// The tiles of a scanner: in parts, in any order, by any number of threads, the bits of one image.
TYPED_TEST(ColorMoments, MergeToTheSameBits) {
  const auto tile = stained(300 * 301, 9);
  const auto whole = fitted<TypeParam>(tile, 300, 301, {.ddof = 1}, everything{}, 1);
  EXPECT_EQ(fitted<TypeParam>(tile, 300, 301, {.ddof = 1}, everything{}, 3), whole);
  EXPECT_EQ(fitted<TypeParam>(tile, 1, 300 * 301, {.ddof = 1}), whole);
  color_sums<TypeParam> total, other;
  for (const std::int64_t first : {200, 0, 299, 120}) {
    const std::int64_t last = first == 200 ? 299 : first == 0 ? 120 : first == 299 ? 300 : 200;
    const auto rows = channels_last<const byte>(tile.data() + first * 301 * 3, {.extents = {1, last - first, 301}}, 3);
    (first == 0 ? other : total).add(cpu{}, rows);
  }
  total.merge(other);
  EXPECT_EQ(total.moments(1), whole);
}

TYPED_TEST(ColorMoments, OfDegenerateTiles) {
  // One color, and one pixel.
  const std::vector<byte> even{200, 120, 180, 200, 120, 180, 200, 120, 180};
  for (const auto& m : {fitted<TypeParam>(even, 1, 3), fitted<TypeParam>(even, 3, 1, {.ddof = 1}),
                        fitted<TypeParam>(std::vector<byte>{1, 2, 3}, 1, 1, {.ddof = 1})}) {
    EXPECT_EQ(m.status, fit_status::constant);
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_EQ(m.standard_deviation[k], 0);
      EXPECT_EQ(m.reciprocal[k], 0);
    }
  }
  // Grays: two channels vary by rounding alone (hed: not so, its stains have no gray).
  if constexpr (!std::is_same_v<TypeParam, hed> && !std::is_same_v<TypeParam, ruderman>) {
    std::vector<byte> grays;
    for (int i = 0; i < 256; ++i) grays.insert(grays.end(), 3, static_cast<byte>(i));
    const auto m = fitted<TypeParam>(grays, 16, 16);
    EXPECT_EQ(m.status, (std::is_same_v<TypeParam, hsv> ? fit_status::constant : fit_status::ok));
  }
  // Nothing selected.
  const std::vector<byte> none(3, 0);
  const auto m = fitted<TypeParam>(even, 1, 3, {}, inside(contiguous<const byte>(none.data(), {.extents = {1, 1, 3}})));
  EXPECT_EQ(m.status, fit_status::empty);
  EXPECT_EQ(m.mean[0], 0);
  EXPECT_EQ(m.standard_deviation[2], 1);
}

TYPED_TEST(ColorMoments, LeaveOutWhatIsNotFinite) {
  std::vector<float> tile;
  for (const byte v : stained(64, 2)) tile.push_back(static_cast<float>(v) / 255);
  tile[3 * 5] = not_a_number;
  tile[3 * 9 + 1] = std::numeric_limits<float>::infinity();
  tile[3 * 10 + 2] = -.5f;  // counts as 0
  tile[3 * 11] = 1.5f;      // counts as 1
  const auto m = fitted<TypeParam>(tile, 8, 8, {.white = 1});
  EXPECT_EQ(m.tally.excluded, 2u);
  EXPECT_EQ(m.tally.count, 62u);
  const auto expected = exactly<TypeParam>(tile, 0, 1, [](std::size_t i) { return i != 5 && i != 9; });
  for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(m.mean[k], expected.mean[k], tolerance<TypeParam>);
}

TEST(ColorMomentErrors, NameWhatIsWrong) {
  const std::vector<byte> tile(4 * 4 * 4, 100);
  color_moments<lab> result[2];
  const auto of = [&](std::int64_t channels) {
    return channels_last<const byte>(tile.data(), {.extents = {1, 4, 4}}, channels);
  };
  EXPECT_SAYS(fit(cpu{}, fit_color_moments<lab>{.ddof = 2}, of(3), everything{}, std::span(result, 1)),
              "fit_color_moments: ddof 2 must be 0 or 1");
  EXPECT_SAYS(fit(cpu{}, fit_color_moments<lab>{.white = 0}, of(3), everything{}, std::span(result, 1)), "white 0");
  EXPECT_SAYS(fit(cpu{}, fit_color_moments<lab>{}, of(4), everything{}, std::span(result, 1)),
              "fit_color_moments: sample 0: 3 channels are needed (red, green, blue), the image has 4");
  EXPECT_SAYS(fit(cpu{}, fit_color_moments<lab>{}, of(3), everything{}, std::span(result, 2)), "2 results given");
  const auto small = contiguous<const byte>(tile.data(), {.extents = {1, 2, 4}});
  EXPECT_SAYS(fit(cpu{}, fit_color_moments<lab>{}, of(3), inside(small), std::span(result, 1)), "mask or label map");
  color_sums<lab> a, b;
  b.white = 1;
  EXPECT_SAYS(a.merge(b), "white 1 merged into white 255");
}

template <class Space>
class Reinhard : public ::testing::Test {};
TYPED_TEST_SUITE(Reinhard, spaces);

TYPED_TEST(Reinhard, FollowsItsFormula) {
  const auto source = stained(40 * 41, 3);
  auto other = stained(30 * 30, 4);
  for (std::size_t i = 0; i < other.size(); ++i) other[i] = static_cast<byte>(other[i] * 4 / 5 + i % 3 * 20);
  const auto from = fitted<TypeParam>(source, 40, 41), to = fitted<TypeParam>(other, 30, 30);
  for (const reinhard_rule rule : {reinhard_rule::plain, reinhard_rule::modified}) {
    const auto y = support::tile_result<float>(reinhard<TypeParam>{.fitted = {&from, 1}, .target = to, .rule = rule},
                                               source, 40, 41);
    double q = 1 - from.standard_deviation[0] / to.standard_deviation[0];
    if (q <= 0) q = .05;
    for (std::size_t i = 0; i < source.size(); i += 3) {
      color v = reference_of<TypeParam>::from_rgb({source[i] / 255.0, source[i + 1] / 255.0, source[i + 2] / 255.0});
      for (std::size_t k = 0; k < 3; ++k) {
        const double d = v[k] - from.mean[k];
        if (rule == reinhard_rule::plain)
          v[k] = d * to.standard_deviation[k] / from.standard_deviation[k] + to.mean[k];
        else
          v[k] = k == 0 ? from.mean[0] + d * (1 + q) : d + to.mean[k];
      }
      const color expected = reference_of<TypeParam>::to_rgb(v);
      for (std::size_t k = 0; k < 3; ++k) ASSERT_NEAR(y[i + k] / 255, expected[k], 2e-5);
    }
  }
}

// A sample with the result of its own, a target without deviation, one color, and nothing fitted.
TYPED_TEST(Reinhard, OfDegenerateFits) {
  support::tiles<byte> batch;
  const std::vector<byte> even{200, 120, 180, 200, 120, 180}, varied{200, 120, 180, 100, 90, 120};
  batch.add(even, 1, 2);
  batch.add(varied, 1, 2);
  const color_moments<TypeParam> from[2] = {fitted<TypeParam>(even, 1, 2), {.status = fit_status::empty}};
  const auto to = fitted<TypeParam>(stained(100, 1), 10, 10);
  const auto y = support::tile_results<float>(reinhard<TypeParam>{.fitted = from, .target = to}, batch);
  const rgb mean = TypeParam::to_rgb(
      {{static_cast<float>(to.mean[0]), static_cast<float>(to.mean[1]), static_cast<float>(to.mean[2])}});
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(y[0][i], 255 * mean.c[i % 3], 3e-3);  // moved to the mean, not scaled
    EXPECT_NEAR(y[1][i], varied[i], 1e-4);            // as it is
  }
  for (const reinhard_rule rule : {reinhard_rule::plain, reinhard_rule::modified}) {
    const auto z = support::tile_result<float>(
        reinhard<TypeParam>{
            .fitted = from, .target = {.mean = {1, 1, 1}, .standard_deviation = {0, 0, 0}}, .rule = rule},
        varied, 1, 2);
    for (const float v : z) EXPECT_TRUE(v >= 0 && v <= 255) << v;
  }
}

// Mean and deviation written down are a source as they are a target; changed later they are refused, not half used.
TYPED_TEST(Reinhard, TakesStatedMoments) {
  const auto source = stained(40 * 41, 3);
  const auto found = fitted<TypeParam>(source, 40, 41), to = fitted<TypeParam>(stained(100, 1), 10, 10);
  const color_moments<TypeParam> stated{
      .mean = {found.mean[0], found.mean[1], found.mean[2]},
      .standard_deviation = {found.standard_deviation[0], found.standard_deviation[1], found.standard_deviation[2]}};
  EXPECT_EQ(status_name(stated.status), "stated");
  for (const reinhard_rule rule : {reinhard_rule::plain, reinhard_rule::modified}) {
    const auto made = [&](const color_moments<TypeParam>& from) {
      return support::tile_result<float>(reinhard<TypeParam>{.fitted = {&from, 1}, .target = to, .rule = rule}, source,
                                         40, 41);
    };
    EXPECT_EQ(made(stated), made(found));
    EXPECT_SAYS(made(color_moments<TypeParam>{}), "reinhard: sample 0: fitted: expected the results of a fit");
    color_moments<TypeParam> changed = found;
    changed.mean[1] = 5;
    EXPECT_SAYS(made(changed), "reinhard: sample 0: the moments of channel 1 were changed");
  }
}

// The snippets of docs/operations.md.
TEST(ReinhardSnippets, AreAsDocumented) {
  std::vector<std::vector<byte>> memory, mask_memory;
  std::vector<suture::view<const byte>> tiles, tissue;
  for (unsigned i = 0; i < 4; ++i) {
    const grid g{.extents = {1, 16, 20}};
    memory.push_back(stained(g.voxels(), i));
    mask_memory.emplace_back(static_cast<std::size_t>(g.voxels()), 1);
    tiles.push_back(channels_last<const byte>(memory.back().data(), g, 3));
    tissue.push_back(contiguous<const byte>(mask_memory.back().data(), g));
  }
  const auto target = fitted<lab>(stained(100, 9), 10, 10);
  const auto results = [&](const auto& chain) {
    using Out = typename suture::pipeline<std::remove_cvref_t<decltype(chain)>>::result_type;
    const std::uint64_t ids[] = {4, 3, 2, 1};
    const auto p = plan(chain, tiles, {.seed = 1, .sample_ids = ids});
    std::vector<Out> out(static_cast<std::size_t>(4 * 3 * 16 * 20));
    run(cpu{}, p, image(tiles, batch_views(out.data(), p.output_grids(), 3)));
    return out;
  };
  {
    const auto train = suture::random_affine{.rotate_deg = {180, 0, 0}} |
                       suture::sampling<suture::linear, suture::reflect>{} | suture::random_hed_jitter{} |
                       suture::random_color_jitter{.hue = {-.04f, .04f}, .probability = .5f} |
                       suture::channel_normalize{} | suture::cast<suture::half>{};
    EXPECT_EQ(results(train).size(), 4u * 3 * 16 * 20);
  }
  // [reinhard]
  std::vector<suture::color_moments<suture::lab>> fitted(tiles.size());
  suture::fit(suture::cpu{}, suture::fit_color_moments<suture::lab>{}, tiles, suture::inside(tissue),
              std::span(fitted));
  const auto pipeline = suture::reinhard<suture::lab>{.fitted = fitted, .target = target} | suture::random_flip{} |
                        suture::cast<std::uint8_t>{};
  // [/reinhard]
  const auto alone = results(pipeline);
  const std::size_t scanner_of[] = {0, 1, 1, 0};
  std::vector<suture::color_sums<suture::lab>> scanners(2);
  for (std::size_t i = 0; i < tiles.size(); ++i) scanners[scanner_of[i]].add(suture::cpu{}, tiles[i]);
  for (std::size_t i = 0; i < tiles.size(); ++i) fitted[i] = scanners[scanner_of[i]].moments();
  EXPECT_EQ(fitted[0], fitted[3]);
  EXPECT_EQ(fitted[0].tally.count, 2u * 16 * 20);
  EXPECT_NE(results(pipeline), alone);
}

}  // namespace
