// SPDX-License-Identifier: Apache-2.0
// Tiles of slides: levels and magnifications, exact shares of tissue, grids, random and balanced places, context.
#include "suture/patch/tile_list.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <set>

#include "support/expect_says.hpp"

namespace {

using namespace suture;
using bytes = std::vector<std::uint8_t>;

// As a 40x scanner makes them: levels of 1, 4 and 16, the second not quite.
slide_layout scanned() { return {{{4001, 5003, 1}, {1000, 1250, 4.002}, {250, 312, 16.0}}, 0.25}; }

bytes random_mask(std::int64_t pixels, unsigned seed, unsigned percent) {
  std::mt19937 engine(seed);
  bytes m(static_cast<std::size_t>(pixels));
  for (auto& v : m) v = engine() % 100 < percent ? std::uint8_t{7} : std::uint8_t{0};
  return m;
}
mask_area area_of(const slide_layout& s, const bytes& mask, std::int64_t h, std::int64_t w) {
  return {s, contiguous(mask.data(), {.extents = {1, h, w}})};
}

TEST(Slide, MagnificationIsTenOverMicrometers) {
  EXPECT_EQ(mpp_of_magnification(40), 0.25);
  EXPECT_EQ(mpp_of_magnification(5), 2);
  EXPECT_EQ(magnification_of_mpp(0.5), 20);
  EXPECT_SAYS(mpp_of_magnification(0), "must be positive");
  EXPECT_SAYS(magnification_of_mpp(std::nan("")), "must be positive");
}

// Hand-made: levels of 0.25, 1.0005 and 4 micrometers.
TEST(Slide, TheLevelIsTheCoarsestThatIsFineEnough) {
  const slide_layout s = scanned();
  EXPECT_EQ(level_for_mpp(s, 0.1), 0);
  EXPECT_EQ(level_for_mpp(s, 0.5), 0);
  EXPECT_EQ(level_for_mpp(s, 1), 1);        // 1.0005, within a hundredth
  EXPECT_EQ(level_for_mpp(s, 1, 1e-4), 0);  // and not within 1e-4
  EXPECT_EQ(level_for_mpp(s, 2), 1);
  EXPECT_EQ(level_for_mpp(s, 4), 2);
  EXPECT_EQ(level_for_mpp(s, 100), 2);
}

TEST(Slide, RegionsAreAboutTheirCenter) {
  const slide_layout s = scanned();
  const double mpps[] = {0.25, 0.5, 1, 2, 4};
  const auto regions = context_regions(s, 2000.5, 3000.5, 256, mpps);
  ASSERT_EQ(regions.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    const tile_region& r = regions[i];
    const double field =
        256 * mpps[i] / 0.25;  // even: the middle lies between two pixels, and half a pixel off is best
    EXPECT_EQ(r.y, static_cast<std::int64_t>(std::floor(2000.5 - field / 2 + 0.5)));
    EXPECT_EQ(r.x, static_cast<std::int64_t>(std::floor(3000.5 - field / 2 + 0.5)));
    const double downsample = s.levels[static_cast<std::size_t>(r.level)].downsample;
    EXPECT_NEAR(static_cast<double>(r.size) * downsample, field, downsample / 2);
    EXPECT_NEAR(r.scale * downsample * 0.25, mpps[i], i == 2 ? 6e-4 : 1e-12);
  }
  EXPECT_EQ(regions[0].size, 256);
  EXPECT_EQ(regions[1].size, 512);  // from level 0
  EXPECT_EQ(regions[2].level, 1);
  EXPECT_EQ(regions[2].size, 256);
  EXPECT_EQ(regions[2].scale, 1.0);  // 1.0005 counts as 1
  EXPECT_EQ(regions[3].size, 512);   // 2 / 1.0005 * 256 = 511.7
  EXPECT_EQ(regions[4].level, 2);
  // An odd tile about the middle of a pixel begins on a pixel.
  EXPECT_EQ(region_about(s, 100.5, 7.5, 15, 0.25).y, 93);
  EXPECT_EQ(region_about(s, 100.5, 7.5, 15, 0.25).x, 0);
  EXPECT_EQ(region_about(s, 0, 0, 16, 0.25).y, -8);
  EXPECT_EQ(region_about(s, 0, 0, 1, 0.01).size, 1);
}

// Scanners state .499 or .2508 for their 20x and 40x: such tiles are read without a resampling, others are not.
TEST(Slide, NearlyTheResolutionWantedIsTheResolutionWanted) {
  for (const double mpp : {.499, .5, .5049, .4951}) {
    const tile_region r = region_about({{{4001, 5003, 1}}, mpp}, 2000, 2000, 256, .5);
    EXPECT_EQ(r.size, 256) << mpp;
    EXPECT_EQ(r.scale, 1.0) << mpp;
  }
  const tile_region finer = region_about({{{4001, 5003, 1}}, .49}, 2000, 2000, 256, .5);
  EXPECT_EQ(finer.size, 261);  // 256 .5 / .49 = 261.2
  EXPECT_DOUBLE_EQ(finer.scale, .5 / .49);
}

TEST(Slide, BadInput) {
  slide_layout s = scanned();
  EXPECT_SAYS(level_for_mpp({}, 1), "no levels");
  EXPECT_SAYS(level_for_mpp(s, 0), "must be positive");
  EXPECT_SAYS(level_for_mpp(s, 1, 2), "tolerance");
  EXPECT_SAYS(region_about(s, 1, 1, 0, 1), "tile size 0");
  EXPECT_SAYS(region_about(s, std::nan(""), 1, 8, 1), "center");
  EXPECT_SAYS(region_about(s, 1, 1, 8, 1e12), "2^30");
  EXPECT_SAYS(context_regions(s, 1, 1, 8, {}), "no resolution");
  for (const double mpp : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    s.mpp = mpp;
    EXPECT_SAYS(level_for_mpp(s, 1), "states no resolution");
  }
  s = scanned();
  s.levels[2].downsample = 4;
  EXPECT_SAYS(level_for_mpp(s, 1), "does not exceed");
  s.levels[0].downsample = 2;
  EXPECT_SAYS(level_for_mpp(s, 1), "must be 1");
  s = scanned();
  s.levels[1].width = 0;
  EXPECT_SAYS(level_for_mpp(s, 1), "1..2^30");
}

// Every level-0 pixel cut into h x w parts, counted one by one.
TEST(MaskArea, SharesAreExact) {
  std::mt19937 engine(5);
  const std::array<std::array<std::int64_t, 4>, 5> shapes{
      {{12, 17, 12, 17}, {37, 30, 11, 9}, {16, 32, 1, 2}, {13, 13, 1, 1}, {23, 50, 7, 15}}};
  for (const auto& [H, W, h, w] : shapes) {
    const slide_layout s{{{H, W, 1}}, 1};
    const bytes mask = random_mask(h * w, static_cast<unsigned>(H), 60);
    const mask_area area = area_of(s, mask, h, w);
    EXPECT_EQ(area.pixels(), std::count(mask.begin(), mask.end(), 7));
    for (int trial = 0; trial < 60; ++trial) {
      const auto y = static_cast<std::int64_t>(engine() % 60) - 10, x = static_cast<std::int64_t>(engine() % 60) - 10;
      const auto sy = 1 + static_cast<std::int64_t>(engine() % 20), sx = 1 + static_cast<std::int64_t>(engine() % 20);
      std::int64_t parts = 0;
      for (std::int64_t v = y * h; v < (y + sy) * h; ++v)
        for (std::int64_t u = x * w; u < (x + sx) * w; ++u)
          if (v >= 0 && u >= 0 && v < H * h && u < W * w)
            parts += mask[static_cast<std::size_t>(v / H * w + u / W)] != 0 ? 1 : 0;
      ASSERT_EQ(area.share(y, x, sy, sx), static_cast<double>(parts) / static_cast<double>(sy * sx * h * w));
    }
  }
}

TEST(MaskArea, RanksPixels) {
  const slide_layout s{{{130, 70, 1}}, 1};
  const bytes mask = random_mask(13 * 7, 3, 40);
  const mask_area area = area_of(s, mask, 13, 7);
  std::int64_t rank = 0;
  for (std::size_t i = 0; i < mask.size(); ++i)
    if (mask[i] != 0) {
      ASSERT_EQ(area.ranked(rank++), static_cast<std::int64_t>(i));
    }
}

TEST(MaskArea, BadInput) {
  const slide_layout s{{{400, 500, 1}}, 1};
  const bytes mask(300 * 500, 1);
  EXPECT_SAYS(area_of(s, mask, 50, 50), "shape");
  EXPECT_SAYS(area_of(s, mask, 500, 300), "larger than the slide");
  EXPECT_NO_THROW(area_of(s, mask, 40, 51));  // a pixel off, as thumbnails are
  EXPECT_SAYS(area_of(s, mask, 40, 53), "shape");
  const auto of_channels = [&](std::int64_t channels) {
    return mask_area(s, contiguous(mask.data(), {.extents = {1, 40, 50}}, channels));
  };
  EXPECT_SAYS(of_channels(3), "3 channels");
  EXPECT_SAYS(mask_area(s, contiguous(mask.data(), {.extents = {2, 40, 50}})), "2 slices");
  EXPECT_SAYS(area_of(s, mask, 40, 50).share(0, 0, 0, 4), "0 by 4");
}

// Hand-made: 100 x 160 pixels, the left half tissue.
TEST(GridTiles, KeepWhatHasTissue) {
  const slide_layout s{{{100, 160, 1}}, 0.5};
  bytes mask(10 * 16, 0);
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = i % 16 < 8 ? 1 : 0;
  const mask_area area = area_of(s, mask, 10, 16);
  const auto all = grid_tiles(s, area, {.size = 32, .mpp = 0.5, .least_tissue = 0});
  ASSERT_EQ(all.size(), 15u);  // 3 rows of 5
  EXPECT_EQ(all[6].region.y, 32);
  EXPECT_EQ(all[6].region.x, 32);
  EXPECT_EQ(all[2].tissue, 0.5);  // columns 64 .. 95, tissue ends at 80
  const auto half = grid_tiles(s, area, {.size = 32, .mpp = 0.5, .least_tissue = 0.5});
  EXPECT_EQ(half.size(), 9u);
  EXPECT_EQ(grid_tiles(s, area, {.size = 32, .mpp = 0.5, .least_tissue = 0.51}).size(), 6u);
  EXPECT_EQ(grid_tiles(s, area, {.size = 32, .mpp = 0.5, .least_tissue = 1}).size(), 6u);
  EXPECT_EQ(grid_tiles(s, area, {.size = 32, .stride = 16, .mpp = 0.5, .least_tissue = 0}).size(), 45u);
  const auto partial = grid_tiles(s, area, {.size = 32, .mpp = 0.5, .least_tissue = 0, .partial = true});
  EXPECT_EQ(partial.size(), 20u);  // and a row of 4 pixels
  EXPECT_EQ(partial.back().region.y, 96);
  EXPECT_EQ(partial[15].tissue, 0.125);  // 4 of 32 rows
  // The same tiles at twice the magnification, read and then made smaller.
  const auto coarse = grid_tiles(s, area, {.size = 16, .mpp = 1, .least_tissue = 0});
  ASSERT_EQ(coarse.size(), 15u);
  EXPECT_EQ(coarse[14].region.x, 128);
  EXPECT_EQ(coarse[14].region.size, 32);
  EXPECT_EQ(coarse[14].region.scale, 2);
}

TEST(GridTiles, AreOfTheTissue) {
  const slide_layout slide = scanned();
  const bytes values = random_mask(80 * 100, 8, 50);
  const auto mask = contiguous(values.data(), {.extents = {1, 80, 100}});
  // [grid]
  const suture::mask_area tissue(slide, mask);  // uint8, {1, h, w}: covers the slide whatever its size
  const std::vector<suture::slide_tile> tiles =
      suture::grid_tiles(slide, tissue, {.size = 256, .stride = 192, .mpp = 0.5, .least_tissue = 0.5});
  // [/grid]
  EXPECT_GT(tiles.size(), 10u);
  for (const slide_tile& t : tiles) EXPECT_EQ(t.tissue, tissue.share(t.region.y, t.region.x, 512, 512));
}

// Grids of an uneven step never drift: every start is the exact product rounded.
TEST(GridTiles, StartsAreRoundedProducts) {
  const slide_layout s{{{3000, 2000, 1}}, 0.2527};
  const bytes mask(30 * 20, 1);
  const auto tiles = grid_tiles(s, area_of(s, mask, 30, 20), {.size = 127, .stride = 100, .mpp = 0.5});
  const long double step = 100 * 0.5L / 0.2527L;
  const auto extent = static_cast<std::int64_t>(std::floor(127 * 0.5L / 0.2527L + 0.5L));
  std::vector<std::pair<std::int64_t, std::int64_t>> expected, found;
  for (int i = 0;; ++i) {
    const auto y = static_cast<std::int64_t>(std::floor(i * step + 0.5L));
    if (y + extent > 3000) break;
    for (int j = 0;; ++j) {
      const auto x = static_cast<std::int64_t>(std::floor(j * step + 0.5L));
      if (x + extent > 2000) break;
      expected.emplace_back(y, x);
    }
  }
  for (const slide_tile& t : tiles) found.emplace_back(t.region.y, t.region.x);
  EXPECT_EQ(found, expected);
}

TEST(GridTiles, OfAnEmptyMaskAreNone) {
  const slide_layout s{{{100, 100, 1}}, 0.5};
  const bytes mask(100, 0);
  const mask_area area = area_of(s, mask, 10, 10);
  EXPECT_TRUE(grid_tiles(s, area, {.size = 10}).empty());
  EXPECT_TRUE(random_tiles(s, area, {.size = 10}, {.count = 5}).empty());
  EXPECT_EQ(grid_tiles(s, area, {.size = 100, .least_tissue = 0}).size(), 1u);
}

TEST(GridTiles, BadInput) {
  const slide_layout s{{{100, 90, 1}}, 0.5};
  const bytes mask(90, 1);
  const mask_area area = area_of(s, mask, 10, 9);
  EXPECT_SAYS(grid_tiles(s, area, {.size = 91}), "does not fit the slide");
  EXPECT_SAYS(grid_tiles(s, area, {.size = 46, .mpp = 1}), "does not fit the slide");
  EXPECT_EQ(grid_tiles(s, area, {.size = 91, .least_tissue = 0, .partial = true}).size(), 2u);
  EXPECT_SAYS(grid_tiles(s, area, {.size = 0}), "tile size 0");
  EXPECT_SAYS(grid_tiles(s, area, {.size = 8, .stride = -1}), "stride -1");
  EXPECT_SAYS(grid_tiles(s, area, {.size = 8, .stride = 1, .mpp = 0.1}), "less than a pixel");
  EXPECT_SAYS(grid_tiles(s, area, {.size = 8, .mpp = 0}), "mpp 0");
  for (const double share : {-0.1, 1.1, std::nan("")})
    EXPECT_SAYS(grid_tiles(s, area, {.size = 8, .least_tissue = share}), "least_tissue");
  EXPECT_SAYS(random_tiles(s, area, {.size = 91}, {}), "does not fit the slide");
  EXPECT_SAYS(random_tiles(s, area, {.size = 8}, {.count = -1}), "count -1");
}

TEST(RandomTiles, BelongToTheirSlideAndNumber) {
  const slide_layout s = scanned();
  const bytes mask = random_mask(80 * 100, 8, 50);
  const mask_area area = area_of(s, mask, 80, 100);
  const tile_options o{.size = 128, .mpp = 0.5, .least_tissue = 0.4};
  const auto places = [&](const tile_draws& d) {
    std::vector<std::pair<std::int64_t, std::int64_t>> v;
    for (const slide_tile& t : random_tiles(s, area, o, d)) {
      EXPECT_GE(t.tissue, 0.4);
      EXPECT_EQ(t.tissue, area.share(t.region.y, t.region.x, 256, 256));
      EXPECT_TRUE(t.region.y >= 0 && t.region.x >= 0 && t.region.y + 256 <= 4001 && t.region.x + 256 <= 5003);
      v.emplace_back(t.region.y, t.region.x);
    }
    return v;
  };
  const auto many = places({.seed = 3, .epoch = 2, .slide_id = 77, .count = 200});
  EXPECT_EQ(many.size(), 200u);
  EXPECT_EQ(std::set(many.begin(), many.end()).size(), 200u);
  const auto few = places({.seed = 3, .epoch = 2, .slide_id = 77, .count = 10});
  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
  EXPECT_NE(places({.seed = 4, .epoch = 2, .slide_id = 77, .count = 10}), few);
  EXPECT_NE(places({.seed = 3, .epoch = 1, .slide_id = 77, .count = 10}), few);
  EXPECT_NE(places({.seed = 3, .epoch = 2, .slide_id = 78, .count = 10}), few);
}

// Over a mask that is all tissue, centers away from the edges are uniform: chi-squared over 8 x 8 cells, 63 degrees of
// freedom, 99.99 % below 118.
TEST(RandomTiles, AreUniformOverTheTissue) {
  const slide_layout s{{{8100, 8100, 1}}, 0.5};
  const bytes mask(27 * 27, 1);
  std::array<double, 64> count{};
  const std::int64_t n = 20000;
  for (const slide_tile& t : random_tiles(s, area_of(s, mask, 27, 27), {.size = 2}, {.seed = 1, .count = n}))
    ++count[static_cast<std::size_t>((t.region.y + 1) * 8 / 8101 * 8 + (t.region.x + 1) * 8 / 8101)];
  double chi = 0;
  for (const double c : count) chi += (c - n / 64.0) * (c - n / 64.0) / (n / 64.0);
  EXPECT_LT(chi, 118);
}

TEST(RandomTiles, MayBeFewer) {
  const slide_layout s{{{1000, 1000, 1}}, 0.5};
  bytes mask(100, 0);
  mask[55] = 1;
  EXPECT_TRUE(random_tiles(s, area_of(s, mask, 10, 10), {.size = 200, .least_tissue = 0.9}, {.count = 4}).empty());
}

// Balanced tiles: a rare class is met as often as a common one.
TEST(TilesAbout, AnAnnotationAreBalanced) {
  const slide_layout slide = scanned();
  const std::int64_t h = 80, w = 100;
  bytes classes(static_cast<std::size_t>(h * w), 1);
  for (std::size_t i = 4000; i < 4020; ++i) classes[i] = 2;  // 20 of 8000 pixels
  const auto annotation = suture::contiguous(classes.data(), {.extents = {1, h, w}});
  const suture::mask_area tissue(slide, annotation);
  const auto map = suture::label_classes(annotation, 3);
  std::vector<std::uint64_t> memory(suture::class_counts_bytes(map) / 8);
  const auto counts = std::as_writable_bytes(std::span(memory));
  suture::count_classes(suture::cpu{}, map, counts);

  const std::uint64_t slide_id = 12;
  std::vector<suture::patch_choice> choices(100);
  suture::select_patches(suture::cpu{}, suture::class_balanced_patch{.size = {1, 1, 1}}, map, counts,
                         {.seed = 42, .sample_ids = {&slide_id, 1}, .patches = 100}, choices);
  const std::vector<suture::slide_tile> tiles =
      suture::tiles_about(slide, tissue, {1, h, w}, choices, {.size = 224, .mpp = 0.5});
  ASSERT_EQ(tiles.size(), 100u);
  int rare = 0;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const tile_region& r = tiles[i].region;
    const std::int64_t y = choices[i].voxel / w, x = choices[i].voxel % w;
    rare += choices[i].of_class == 2 ? 1 : 0;
    const auto start = [](std::int64_t pixel, std::int64_t pixels, std::int64_t length) {
      const double middle =
          (static_cast<double>(pixel) + 0.5) * static_cast<double>(length) / static_cast<double>(pixels);
      return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(middle)) - 224, 0, length - 448);
    };
    EXPECT_EQ(r.y, start(y, h, 4001));
    EXPECT_EQ(r.x, start(x, w, 5003));
    EXPECT_EQ(r.size, 448);
  }
  EXPECT_GT(rare, 30);
  EXPECT_LT(rare, 70);
  choices[0].voxel = -1;
  EXPECT_EQ(tiles_about(slide, tissue, {1, h, w}, choices, {.size = 224}).size(), 99u);
  choices[0].voxel = h * w;
  EXPECT_SAYS(tiles_about(slide, tissue, {1, h, w}, choices, {.size = 224}), "beyond extents");
  EXPECT_SAYS(tiles_about(slide, tissue, {1, w, h}, choices, {.size = 224}), "shape");
}

}  // namespace
