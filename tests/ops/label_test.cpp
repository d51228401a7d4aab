// SPDX-License-Identifier: Apache-2.0
// What becomes of label maps on their way out: conversions, and the smaller grids of deep supervision.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "support/aligned_memory.hpp"
#include "support/expect_says.hpp"
#include "support/oracle.hpp"
#include "suture/suture.hpp"

namespace {

using suture::deep_supervision;
using suture::labels;
using suture::one_hot;
using suture::regions;
using suture::remap;

template <class T>
using maps = std::vector<std::vector<T>>;

// A ragged batch of label maps with values from -1 to 5, in runs and alone.
template <class T>
struct batch {
  std::vector<suture::grid> grids;
  maps<T> memory;
  std::vector<suture::view<const T>> views;

  explicit batch(const std::vector<suture::extent3>& sizes, std::int64_t channels = 1, int lowest = -1) {
    memory.reserve(sizes.size());
    for (const suture::extent3& n : sizes) {
      grids.push_back({.extents = n});
      std::vector<T> v(static_cast<std::size_t>(n[0] * n[1] * n[2] * channels));
      for (std::size_t i = 0; i < v.size(); ++i)
        v[i] = static_cast<T>(lowest + static_cast<int>((suture::mix64(i / 5) + (i % 11 == 3 ? i : 0)) % 7));
      memory.push_back(v);
      views.push_back(suture::contiguous<const T>(memory.back().data(), grids.back(), channels));
    }
  }
};

template <class T>
struct results {
  maps<T> memory;
  std::vector<suture::view<T>> views;

  results(const std::vector<suture::grid>& grids, std::int64_t channels) {
    memory.reserve(grids.size());
    for (const suture::grid& g : grids) {
      memory.emplace_back(static_cast<std::size_t>(channels * g.voxels()), suture::storage<T>::store(99));
      views.push_back(suture::contiguous(memory.back().data(), g, channels));
    }
  }
};

const std::vector<suture::extent3> sizes{{1, 1, 1},   {1, 15, 17},  {17, 1, 16},   {16, 17, 1},  {15, 16, 15},
                                         {127, 3, 2}, {2, 127, 15}, {16, 15, 127}, {17, 17, 17}, {3, 2, 64}};

const auto turned = suture::affine{.rotate_deg = {8, 5, 20}} | suture::flip{{true, false, true}} |
                    suture::sampling<suture::linear, suture::constant>{.label_outside = -1};
const auto voted = suture::affine{.rotate_deg = {8, 5, 20}} |
                   suture::sampling<suture::linear, suture::constant, suture::vote>{.label_outside = -1};

// A literal map of one row through the identity.
template <class Out, class Conversion>
std::vector<Out> row(const std::vector<std::int8_t>& map, const Conversion& conversion, std::int64_t channels = 1) {
  const suture::grid g{.extents = {1, 1, static_cast<std::int64_t>(map.size())}};
  std::vector<Out> out(map.size() * static_cast<std::size_t>(channels));
  const auto plan = suture::plan(suture::identity{}, std::vector{g});
  suture::run(suture::cpu{}, plan,
              labels(suture::contiguous(map.data(), g), suture::contiguous(out.data(), g, channels), conversion));
  return out;
}

TEST(Remap, Literals) {
  const std::vector<std::int8_t> map{-1, 0, 1, 2, 4, -1, 3};
  EXPECT_EQ(row<std::int8_t>(map, remap{{{-1, 0}}}), (std::vector<std::int8_t>{0, 0, 1, 2, 4, 0, 3}));
  EXPECT_EQ(row<std::int16_t>(map, remap{.table = {{4, 300}, {2, -7}}}),
            (std::vector<std::int16_t>{-1, 0, 1, -7, 300, -1, 3}));
  EXPECT_EQ(row<std::uint8_t>(map, remap{.table = {{4, 3}, {1, 1}}, .others = 0}),
            (std::vector<std::uint8_t>{0, 0, 1, 0, 3, 0, 0}));
  EXPECT_EQ(row<float>(map, remap{.table = {{4, 3}}}), (std::vector<float>{-1, 0, 1, 2, 3, -1, 3}));
  EXPECT_EQ(row<std::int8_t>(map, remap{}), map);
}

TEST(Remap, SwapsAreNotChained) {
  EXPECT_EQ(row<std::int8_t>({1, 2, 3}, remap{{{1, 2}, {2, 1}}}), (std::vector<std::int8_t>{2, 1, 3}));
}

// Labels that follow each other, nearly so, or lie far apart, in any order and up to the ends of their type: for every
// label in rows, and one by one.
TEST(Remap, TablesNearAndFar) {
  using table = decltype(remap::table);
  const auto every = [](int first, int step, int count) {
    std::vector<suture::label_change> changes;
    for (int i = 0; i < count; ++i) changes.push_back({first + step * i, 1000 + i});
    return table(changes);
  };
  std::vector<std::int8_t> map;
  for (int label = -128; label <= 127; ++label) map.push_back(static_cast<std::int8_t>(label));
  const suture::grid g{.extents = {1, 1, static_cast<std::int64_t>(map.size())}};
  const auto plan = suture::plan(suture::identity{}, std::vector{g});
  const auto in = suture::contiguous<const std::int8_t>(map.data(), g);
  for (const table& t :
       {table{}, table{{-128, 5}}, table{{127, -5}}, table{{-128, 5}, {127, 6}}, table{{127, 6}, {126, 5}},
        table{{4, 9}, {1, 8}}, table{{5, 9}, {1, 8}}, table{{3, -1}, {1, -2}, {2, -3}, {-1, -4}}, every(-32, 1, 64),
        every(0, 2, 32), every(0, 2, 33), every(-128, 1, 40), every(64, 1, 64)})
    for (const std::optional<std::int32_t> others : {std::optional<std::int32_t>{}, std::optional<std::int32_t>{77}}) {
      const remap conversion{.table = t, .others = others};
      const auto in_rows = row<std::int16_t>(map, conversion);
      const auto bound = labels<std::int16_t>(in, conversion);
      const support::aligned_memory workspace(suture::workspace_bytes(plan, bound));
      const auto evaluate = suture::prepare(suture::cpu{.workspace = workspace.span()}, plan, bound);
      for (std::size_t i = 0; i < map.size(); ++i) {
        std::int32_t expected = others.value_or(map[i]);
        for (const suture::label_change& change : t)
          if (change.from == map[i]) expected = change.to;
        ASSERT_EQ(in_rows[i], expected) << "label " << int{map[i]} << ", table of " << t.size();
        ASSERT_EQ(evaluate(0, 0, 0, static_cast<std::int32_t>(i)), expected) << "label " << int{map[i]};
      }
    }
}

TEST(Remap, EveryChannelOfALabelMap) {
  const batch<std::int16_t> in({{3, 5, 33}, {1, 2, 9}}, 2);
  results<std::int32_t> out(in.grids, 2);
  suture::run(suture::cpu{}, suture::plan(suture::identity{}, in.grids),
              labels(in.views, out.views, remap{{{3, 1000000}, {-1, 0}}}));
  for (std::size_t s = 0; s < 2; ++s)
    for (std::size_t i = 0; i < in.memory[s].size(); ++i) {
      const int label = in.memory[s][i];
      ASSERT_EQ(out.memory[s][i], label == 3 ? 1000000 : label == -1 ? 0 : label);
    }
}

// Brain tumors: tumor core, whole tumor, enhancing tumor, by hand.
TEST(Regions, BrainTumors) {
  using row8 = std::vector<std::uint8_t>;
  EXPECT_EQ(row<std::uint8_t>({0, 1, 2, 4}, suture::brats_regions_1_2_4, 3),
            (row8{0, 1, 0, 1, /**/ 0, 1, 1, 1, /**/ 0, 0, 0, 1}));
  EXPECT_EQ(row<std::uint8_t>({0, 1, 2, 3}, suture::brats_regions_1_2_3, 3),
            (row8{0, 1, 0, 1, /**/ 0, 1, 1, 1, /**/ 0, 0, 0, 1}));
  EXPECT_EQ(row<std::uint8_t>({0, 1, 2, 3}, suture::decathlon_brain_tumor_regions, 3),
            (row8{0, 0, 1, 1, /**/ 0, 1, 1, 1, /**/ 0, 0, 1, 0}));
}

TEST(Regions, IgnoreLabel) {
  // In no region, and in a channel of its own where one is asked for.
  const std::vector<std::int8_t> map{0, 1, 2, 9, 1};
  EXPECT_EQ(row<std::int8_t>(map, regions{.sets = {{1, 2}, {2}}}, 2),
            (std::vector<std::int8_t>{0, 1, 1, 0, 1, /**/ 0, 0, 1, 0, 0}));
  EXPECT_EQ(row<std::int8_t>(map, regions{.sets = {{1, 2}, {2}}, .ignore = 9}, 3),
            (std::vector<std::int8_t>{0, 1, 1, 0, 1, /**/ 0, 0, 1, 0, 0, /**/ 0, 0, 0, 1, 0}));
}

TEST(OneHot, Literals) {
  const std::vector<std::int8_t> map{0, 1, 2, 3, -1, 2};
  EXPECT_EQ(row<std::uint8_t>(map, one_hot{.classes = 3}, 3),
            (std::vector<std::uint8_t>{1, 0, 0, 0, 0, 0, /**/ 0, 1, 0, 0, 0, 0, /**/ 0, 0, 1, 0, 0, 1}));
  EXPECT_EQ(row<std::uint8_t>(map, one_hot{.classes = 3, .background = false}, 2),
            (std::vector<std::uint8_t>{0, 1, 0, 0, 0, 0, /**/ 0, 0, 1, 0, 0, 1}));
  EXPECT_EQ(row<std::uint8_t>(map, one_hot{.classes = 3, .background = false, .ignore = -1}, 3),
            (std::vector<std::uint8_t>{0, 1, 0, 0, 0, 0, /**/ 0, 0, 1, 0, 0, 1, /**/ 0, 0, 0, 0, 1, 0}));
}

template <class T>
class EveryOutput : public testing::Test {};
using outputs = testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, float,
                               suture::half, suture::bfloat16>;
TYPED_TEST_SUITE(EveryOutput, outputs);

TYPED_TEST(EveryOutput, HoldsZeroAndOne) {
  const auto out = row<TypeParam>({0, 1, 2, 1}, one_hot{.classes = 3}, 3);
  const float expected[] = {1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 1, 0};
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(suture::storage<TypeParam>::load(out[i]), expected[i]);
}

// The conversion of what is sampled without one, by nearest and by vote, in ragged batches of edge sizes.
template <class Pipeline>
void expect_converted_after_sampling(const Pipeline& pipeline) {
  const batch<std::int16_t> in(sizes);
  const auto plan = suture::plan(pipeline, in.grids);
  results<std::int16_t> kept(plan.output_grids(), 1), mapped(plan.output_grids(), 1);
  results<suture::half> tumor(plan.output_grids(), 4);
  results<float> hot(plan.output_grids(), 5);
  suture::run(suture::cpu{}, plan, labels(in.views, kept.views),
              labels(in.views, mapped.views, remap{{{-1, 0}, {5, -9}}}),
              labels(in.views, tumor.views, regions{.sets = {{1, 4}, {1, 2, 4}, {4}}, .ignore = -1}),
              labels(in.views, hot.views, one_hot{.classes = 6, .background = false}));
  for (std::size_t s = 0; s < in.grids.size(); ++s) {
    const std::size_t n = kept.memory[s].size();
    for (std::size_t i = 0; i < n; ++i) {
      const int label = kept.memory[s][i];
      ASSERT_EQ(mapped.memory[s][i], label == -1 ? 0 : label == 5 ? -9 : label);
      const bool in_region[] = {label == 1 || label == 4, label == 1 || label == 2 || label == 4, label == 4,
                                label == -1};
      for (std::size_t k = 0; k < 4; ++k)
        ASSERT_EQ(tumor.memory[s][k * n + i].bits, in_region[k] ? 0x3c00 : 0) << "region " << k;
      for (std::size_t k = 0; k < 5; ++k)
        ASSERT_EQ(hot.memory[s][k * n + i], label == static_cast<int>(k) + 1 ? 1.0f : 0.0f) << "class " << k + 1;
    }
  }
}
TEST(Conversions, AreAppliedAfterSampling) {
  expect_converted_after_sampling(turned);
  expect_converted_after_sampling(voted);
  expect_converted_after_sampling(suture::identity{});
  expect_converted_after_sampling(suture::gamma{.exponent = 2});  // no geometry
}

TEST(Conversions, OutputOfAnyStrides) {
  const batch<std::int8_t> in({{4, 7, 37}});
  const suture::grid& g = in.grids[0];
  std::vector<float> memory(static_cast<std::size_t>(3 * g.voxels()));
  const auto interleaved = suture::channels_last(memory.data(), g, 3);
  results<float> dense(in.grids, 3);
  const auto plan = suture::plan(turned, in.grids);
  suture::run(suture::cpu{}, plan, labels(in.views, interleaved, suture::brats_regions_1_2_4),
              labels(in.views, dense.views, suture::brats_regions_1_2_4));
  for (std::size_t i = 0; i < static_cast<std::size_t>(g.voxels()); ++i)
    for (std::size_t k = 0; k < 3; ++k)
      ASSERT_EQ(memory[3 * i + k], dense.memory[0][k * static_cast<std::size_t>(g.voxels()) + i]);
}

// Conversions of one's own: without parameters to check, and to several channels.
// [conversion]
// The weight of a voxel in a loss: 0 where it is to be ignored, `tumor` where there is any.
struct loss_weight {
  float tumor = 5;

  SUTURE_FN float operator()(std::int32_t label) const { return label < 0 ? 0.0f : label > 0 ? tumor : 1.0f; }
};
// [/conversion]
struct bit_planes {
  struct bits {
    std::int32_t label;
    SUTURE_FN std::int32_t operator[](std::int32_t channel) const { return (label >> channel) & 1; }
  };
  std::int32_t count;
  std::int32_t channels() const { return count; }
  SUTURE_FN bits operator()(std::int32_t label) const { return {label}; }
};

TEST(Conversions, OfOnesOwn) {
  EXPECT_EQ(row<float>({-1, 0, 2, 1}, loss_weight{.tumor = 3.5f}), (std::vector<float>{0, 1, 3.5f, 3.5f}));
  EXPECT_EQ(row<std::uint8_t>({-1, 0, 2, 1}, loss_weight{.tumor = 1000}), (std::vector<std::uint8_t>{0, 1, 255, 255}));
  EXPECT_EQ(row<std::uint8_t>({0, 1, 2, 5}, bit_planes{3}, 3),
            (std::vector<std::uint8_t>{0, 1, 0, 1, /**/ 0, 0, 1, 0, /**/ 0, 0, 0, 1}));
}

// Images are not stored as integers of 64 bits, label maps are: losses index by them.
TEST(Conversions, IntoIntegersOf64Bits) {
  static_assert(!suture::is_image_storage_v<std::int64_t> && suture::is_label_storage_v<std::int64_t>);
  EXPECT_EQ(row<std::int64_t>({-1, 0, 2, 1}, remap{}), (std::vector<std::int64_t>{-1, 0, 2, 1}));
  EXPECT_EQ(row<std::int64_t>({-1, 0, 2, 1}, remap{{{-1, 2147483647}, {2, -2147483647}}}),
            (std::vector<std::int64_t>{2147483647, 0, -2147483647, 1}));
  EXPECT_EQ(row<std::int64_t>({0, 1, 2, 5}, one_hot{.classes = 2}, 2),
            (std::vector<std::int64_t>{1, 0, 0, 0, /**/ 0, 1, 0, 0}));
  EXPECT_EQ(row<std::int64_t>({-1, 0, 2, 1}, loss_weight{.tumor = 3.5f}), (std::vector<std::int64_t>{0, 1, 4, 4}));
}

// bool is read as the bytes 0 and 1, of images and of label maps.
TEST(Conversions, MasksOfBool) {
  const batch<std::uint8_t> in({{5, 6, 40}, {3, 9, 7}}, 1, 0);
  maps<std::uint8_t> bytes = in.memory;
  std::vector<suture::view<const std::uint8_t>> plain;
  std::vector<suture::view<const bool>> masks;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (std::uint8_t& byte : bytes[i]) byte = byte > 3 ? 1 : 0;
    plain.push_back(suture::contiguous<const std::uint8_t>(bytes[i].data(), in.grids[i]));
    masks.push_back(suture::contiguous(reinterpret_cast<const bool*>(bytes[i].data()), in.grids[i]));
  }
  const auto plan = suture::plan(suture::affine{.rotate_deg = {8, 5, 20}}, masks);
  const auto made = [&](const auto& views) {
    results<std::uint8_t> kept(plan.output_grids(), 1);
    results<float> shares(plan.output_grids(), 1);
    results<std::int64_t> wide(plan.output_grids(), 1);
    suture::run(suture::cpu{}, plan, suture::image(views, shares.views), labels(views, wide.views, remap{}));
    const auto kept_plan = suture::plan(suture::flip{}, views);
    suture::run(suture::cpu{}, kept_plan, labels(views, kept.views));
    return std::tuple(kept.memory, shares.memory, wide.memory);
  };
  EXPECT_EQ(made(masks), made(plain));
  static_assert(std::is_same_v<decltype(labels(masks))::output, std::uint8_t>);
}

TEST(Conversions, EvaluatorGivesTheChannelsOfTheRun) {
  const batch<std::int8_t> in({{5, 6, 40}, {3, 9, 7}});
  const auto plan = suture::plan(voted, in.grids);
  results<suture::half> out(plan.output_grids(), 3);
  results<std::int8_t> kept(plan.output_grids(), 1);
  suture::run(suture::cpu{}, plan, labels(in.views, out.views, suture::brats_regions_1_2_4),
              labels(in.views, kept.views, remap{{{-1, 0}}}));
  const auto tumors = labels<suture::half>(in.views, suture::brats_regions_1_2_4);
  const auto kept_in = labels<std::int8_t>(in.views, remap{{{-1, 0}}});
  const std::size_t bytes = suture::workspace_bytes(plan, tumors, kept_in);
  auto* const space = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{256}));
  const auto evaluate = suture::prepare(suture::cpu{.workspace = {space, bytes}}, plan, tumors, kept_in);
  for (std::size_t s = 0; s < 2; ++s) {
    const suture::extent3 n = plan.output_grid(s).extents;
    std::size_t i = 0;
    for (std::int32_t channel = 0; channel < 3; ++channel)
      for (std::int32_t z = 0; z < n[0]; ++z)
        for (std::int32_t y = 0; y < n[1]; ++y)
          for (std::int32_t x = 0; x < n[2]; ++x, ++i) {
            const auto number = static_cast<std::int32_t>(s);
            ASSERT_EQ(evaluate(number, z, y, x, channel).bits, out.memory[s][i].bits);
            if (channel == 0) {
              ASSERT_EQ(evaluate.get<1>(number, z, y, x), kept.memory[s][i]);
            }
          }
  }
  ::operator delete (space, std::align_val_t{256});
}

// What the documentation shows.
TEST(Conversions, OfTheDocumentation) {
  const batch<std::int8_t> tumors({{40, 64, 48}, {33, 50, 70}}, 1, 0);
  const auto& [grids, memory, seg] = tumors;
  const auto train = suture::random_affine{.rotate_deg = 15} | suture::center_crop{{32, 32, 32}};
  const auto plan = suture::plan(train, grids, {.seed = 1, .sample_ids = std::vector<std::uint64_t>{4, 9}});
  results<float> out(plan.output_grids(), 3);
  std::vector<suture::grid> half_grids, quarter_grids;
  // [targets]
  for (const suture::grid& g : plan.output_grids()) {
    half_grids.push_back(suture::level_grid(g, suture::level_extents(g.extents, {.5, .5, .5})));
    quarter_grids.push_back(suture::level_grid(g, suture::level_extents(g.extents, {.5, .25, .25})));
  }
  // [/targets]
  results<float> halves(half_grids, 3), quarters(quarter_grids, 3);
  const auto &targets = out.views, &half = halves.views, &quarter = quarters.views;
  // [bind]
  suture::run(suture::cpu{}, plan,
              suture::labels(seg, targets, suture::brats_regions_1_2_4, suture::deep_supervision(half, quarter)));
  // [/bind]
  for (const results<float>* r : {&out, &halves, &quarters})
    for (const auto& values : r->memory)
      for (const float v : values) ASSERT_TRUE(v == 0 || v == 1);
}

// --- smaller grids

// torch's nearest-exact in exact arithmetic: floor((i + 1/2) N / n).
std::int64_t nearest_exact(std::int64_t i, std::int64_t full, std::int64_t level) {
  std::int64_t x = 0;
  while ((x + 1) * 2 * level <= (2 * i + 1) * full) ++x;
  return x;
}

TEST(Levels, EveryAxisPicksEveryVoxelOnce) {
  const auto expect_axis = [](std::uint32_t full, std::uint32_t level) {
    const suture::detail::level_axis axis{level, full};
    std::uint32_t next = 0;  // voxel of the level
    for (std::uint32_t x = 0; x < full; ++x) {
      if (next == level || (2 * next + 1) * std::uint64_t{full} / (2 * level) != x) continue;
      ASSERT_EQ(axis.picked(next), x) << next << " of " << full << " to " << level;
      ++next;
    }
    ASSERT_EQ(next, level);
  };
  for (std::uint32_t full = 1; full <= 130; ++full)
    for (std::uint32_t level = 1; level <= full; ++level) expect_axis(full, level);
  for (const std::uint32_t full : {1000u, 4095u, 16385u, 32767u, 32768u})
    for (const std::uint32_t level : {1u, 2u, 3u, 333u, full / 2, full / 2 + 1, full - 1, full})
      if (level <= full) expect_axis(full, level);
}

TEST(Levels, HoldWhatNearestExactPicks) {
  const batch<std::int16_t> in(sizes);
  const auto plan = suture::plan(turned, in.grids);
  results<std::int16_t> out(plan.output_grids(), 1);
  results<float> hot(plan.output_grids(), 3);
  // Halves, anisotropic pooling, something odd, one voxel, and the full size.
  const suture::point3 scales[] = {{.5, .5, .5}, {1, .5, .25}, {.7, .9, .35}, {.001, .001, .001}, {1, 1, 1}};
  std::vector<std::vector<suture::grid>> level_grids;
  for (const suture::point3& scale : scales) {
    level_grids.emplace_back();
    for (const suture::grid& g : plan.output_grids()) {
      suture::extent3 n{};
      for (int k = 0; k < 3; ++k)
        n[k] = std::max<std::int64_t>(1, std::llround(static_cast<double>(g.extents[k]) * scale[k]));
      level_grids.back().push_back(suture::level_grid(g, n));
    }
  }
  std::vector<results<std::int16_t>> levels;
  std::vector<results<float>> hot_levels;
  std::vector<std::vector<suture::view<std::int16_t>>> level_views;
  for (const auto& grids : level_grids) {
    levels.emplace_back(grids, 1);
    hot_levels.emplace_back(grids, 3);
    level_views.push_back(levels.back().views);
  }
  suture::run(suture::cpu{}, plan, labels(in.views, out.views, deep_supervision(level_views)),
              labels(in.views, hot.views, one_hot{.classes = 3},
                     deep_supervision(hot_levels[0].views, hot_levels[1].views, hot_levels[2].views,
                                      hot_levels[3].views, hot_levels[4].views)));
  for (std::size_t l = 0; l < level_grids.size(); ++l)
    for (std::size_t s = 0; s < in.grids.size(); ++s) {
      const suture::extent3 n = level_grids[l][s].extents, full = out.views[s].grid.extents;
      const std::size_t voxels = levels[l].memory[s].size();
      std::size_t i = 0;
      for (std::int64_t z = 0; z < n[0]; ++z)
        for (std::int64_t y = 0; y < n[1]; ++y)
          for (std::int64_t x = 0; x < n[2]; ++x, ++i) {
            const auto at = static_cast<std::size_t>(
                (nearest_exact(z, full[0], n[0]) * full[1] + nearest_exact(y, full[1], n[1])) * full[2] +
                nearest_exact(x, full[2], n[2]));
            const int label = out.memory[s][at];
            ASSERT_EQ(levels[l].memory[s][i], label) << "level " << l << " sample " << s << " voxel " << i;
            for (std::size_t k = 0; k < 3; ++k)
              ASSERT_EQ(hot_levels[l].memory[s][k * voxels + i], label == static_cast<int>(k) ? 1.0f : 0.0f);
          }
    }
}

// Where torch enlarges an axis the level keeps it, and its rule is applied here.
TEST(Levels, AgreeWithTorch) {
  const auto is_nearest = [](const support::oracle_case& c) { return c.has("mode", "nearest-exact"); };
  support::for_each_oracle(
      support::calls("torch.nn.functional.interpolate", is_nearest), [](const support::oracle_case& c) {
        const auto x = c.input<std::int16_t>("x");
        const auto y = c.output<std::int16_t>("y");
        suture::extent3 full{}, size{}, kept{};
        for (int k = 0; k < 3; ++k) {
          const auto axis = static_cast<std::size_t>(k);
          full[k] = x.shape[axis], size[k] = y.shape[axis], kept[k] = std::min(full[k], size[k]);
        }
        const std::vector<suture::grid> grids{{.extents = full}};
        results<std::int16_t> out(grids, 1), level({{.extents = kept}}, 1);
        suture::run(suture::cpu{}, suture::plan(suture::identity{}, grids),
                    labels(suture::contiguous(x.values.data(), grids[0]), out.views, deep_supervision(level.views)));
        std::size_t i = 0;
        const auto at = [&](std::int64_t index, int k) {
          return size[k] > full[k] ? nearest_exact(index, full[k], size[k]) : index;
        };
        for (std::int64_t z = 0; z < size[0]; ++z)
          for (std::int64_t v = 0; v < size[1]; ++v)
            for (std::int64_t w = 0; w < size[2]; ++w, ++i)
              ASSERT_EQ(level.memory[0][static_cast<std::size_t>((at(z, 0) * kept[1] + at(v, 1)) * kept[2] + at(w, 2))],
                        y.values[i])
                  << "at " << i;
      });
}

TEST(Levels, OfSeveralChannelsAndAnyStrides) {
  const batch<std::int8_t> in({{4, 7, 37}}, 2);
  const auto plan = suture::plan(turned, in.grids);
  results<std::int8_t> out(plan.output_grids(), 2);
  const suture::grid half = suture::level_grid(plan.output_grid(0), {2, 3, 18});
  std::vector<std::int8_t> memory(static_cast<std::size_t>(2 * half.voxels()));
  const auto level = suture::channels_last(memory.data(), half, 2);
  suture::run(suture::cpu{}, plan, labels(in.views, out.views, deep_supervision(level)));
  const std::size_t full = out.memory[0].size() / 2;
  std::size_t i = 0;
  for (std::int64_t z = 0; z < 2; ++z)
    for (std::int64_t y = 0; y < 3; ++y)
      for (std::int64_t x = 0; x < 18; ++x, ++i)
        for (std::size_t k = 0; k < 2; ++k)
          ASSERT_EQ(memory[2 * i + k],
                    out.memory[0][k * full +
                                  static_cast<std::size_t>((nearest_exact(z, 4, 2) * 7 + nearest_exact(y, 7, 3)) * 37 +
                                                           nearest_exact(x, 37, 18))]);
}

// Temporary views of levels are kept, also those of a range of ranges; what has a name stays where it is.
TEST(Levels, OfTemporaryViews) {
  const batch<std::int8_t> in({{4, 6, 8}, {4, 6, 8}}, 1);
  const auto plan = suture::plan(turned, in.grids);
  results<std::int8_t> out(plan.output_grids(), 1);
  const std::vector small(2, suture::level_grid(plan.output_grid(0), {2, 3, 4}));
  std::vector<std::int8_t> expected(2 * 2 * 3 * 4), memory(expected.size());
  const auto named = batch_views(expected.data(), small);
  suture::run(suture::cpu{}, plan, labels(in.views, out.views, deep_supervision(named)));
  const auto expect_as_named = [&](const auto& bound) {
    memory.assign(memory.size(), -1);
    suture::run(suture::cpu{}, plan, bound);
    EXPECT_EQ(memory, expected);
  };
  expect_as_named(labels(in.views, out.views, deep_supervision(batch_views(memory.data(), small))));
  using levels = std::vector<std::vector<suture::view<std::int8_t>>>;
  const auto bound = labels(std::vector(in.views), std::vector(out.views),
                            deep_supervision(levels(1, batch_views(memory.data(), small))));
  expect_as_named(bound);
  levels all(1, batch_views(memory.data(), small));
  expect_as_named(labels(in.views, out.views, deep_supervision(all)));
  expect_as_named(labels(in.views, out.views, deep_supervision(std::span(all))));
  EXPECT_EQ(all[0].size(), 2u);
}

TEST(Levels, ExtentsAndGrids) {
  EXPECT_EQ(suture::level_extents({96, 15, 5}, {.5, .5, .5}), (suture::extent3{48, 8, 2}));  // 7.5 -> 8, 2.5 -> 2
  EXPECT_EQ(suture::level_extents({40, 224, 224}, {1, .25, .125}), (suture::extent3{40, 56, 28}));
  const suture::grid full{.extents = {8, 6, 10}, .spacing = {1, 2, .5}, .origin = {5, -3, 7}};
  const suture::grid half = suture::level_grid(full, {4, 6, 2});
  EXPECT_EQ(half.spacing, (suture::point3{2, 2, 2.5}));
  // The same box: its corner stands half a voxel before the first center.
  EXPECT_EQ(half.origin, (suture::point3{5.5, -3, 8}));
  EXPECT_SAYS(suture::level_extents({8, 8, 8}, {.5, 0, 1}), "deep_supervision: scale");
  EXPECT_SAYS(suture::level_extents({8, 8, 1}, {.5, 1, .5}), "leaves no voxel");
}

// --- errors

struct one_map {
  batch<std::int8_t> in{{{4, 5, 6}}};
  suture::grid g = in.grids[0];

  template <class Out = std::uint8_t, class... What>
  void run(std::int64_t channels, const What&... what) {
    results<Out> out(in.grids, channels);
    suture::run(suture::cpu{}, suture::plan(suture::identity{}, in.grids), labels(in.views, out.views, what...));
  }
};

TEST(Errors, Remap) {
  one_map m;
  EXPECT_SAYS(m.run(1, remap{{{-1, 0}}}), "remap: labels that the table does not name are kept, but labels from -128");
  EXPECT_SAYS(m.run(1, remap{{{1, 256}}, 0}), "remap: 256 (from label 1) does not fit the output, uint8");
  EXPECT_SAYS(m.run(1, remap{{{1, 2}}, 999}), "others 999 does not fit");
  EXPECT_SAYS(m.run<std::int8_t>(1, remap{{{1, 2}, {1, 3}}}), "remap: label 1 stands twice");
  EXPECT_SAYS(m.run<std::int8_t>(1, remap{{{200, 2}}}), "remap: label 200 is none of the label map's type");
  EXPECT_SAYS(m.run<suture::bfloat16>(1, remap{{{1, 257}}}), "257 (from label 1) does not fit the output, bfloat16");
  EXPECT_SAYS(m.run<std::int8_t>(2, remap{{{1, 2}}}), "labels: sample 0: output has 2 channels, input 1");
  const std::vector<suture::label_change> many(65);
  EXPECT_SAYS(static_cast<void>(remap{.table = decltype(remap::table)(many)}), "more than 64 elements");
}

TEST(Errors, Regions) {
  one_map m;
  EXPECT_SAYS(m.run(2, suture::brats_regions_1_2_4), "output has 2 channels, regions makes 3");
  EXPECT_SAYS(m.run(1, regions{}), "regions: no region");
  EXPECT_SAYS(m.run(2, regions{.sets = {{1}, {}}}), "regions: region 1 has no label");
  EXPECT_SAYS(m.run(2, regions{.sets = {{1, 3}}, .ignore = 3}), "regions: region 0 holds the ignore label 3");
  EXPECT_SAYS(m.run(1, regions{.sets = {{128}}}), "label 128 is none of the label map's type");
  m.in = batch<std::int8_t>({{4, 5, 6}}, 2);
  EXPECT_SAYS(m.run(3, suture::brats_regions_1_2_4), "the label map has 2 channels; regions takes one");
  batch<std::int16_t> wide({{2, 2, 2}});
  results<std::uint8_t> out(wide.grids, 2);
  regions too_many{.sets = {{}, {}}};
  suture::region first, second;
  for (int i = 0; i < 40; ++i) first.push_back(i), second.push_back(100 + i);
  too_many.sets = {first, second};
  EXPECT_SAYS(
      suture::run(suture::cpu{}, suture::plan(suture::identity{}, wide.grids), labels(wide.views, out.views, too_many)),
      "regions: more than 64 different labels");
}

TEST(Errors, OneHot) {
  one_map m;
  EXPECT_SAYS(m.run(3, one_hot{.classes = 4}), "output has 3 channels, one_hot makes 4");
  EXPECT_SAYS(m.run(1, one_hot{}), "one_hot: classes 0");
  EXPECT_SAYS(m.run(1, one_hot{.classes = 1, .background = false}), "no channel");
  EXPECT_SAYS(m.run(4, one_hot{.classes = 4, .ignore = 3}), "the ignore label 3 is one of the 4 classes");
  EXPECT_SAYS(m.run(5, one_hot{.classes = 4, .ignore = 255}), "the ignore label 255 is none of the label map's type");
}

TEST(Errors, Levels) {
  one_map m;
  std::vector<std::int8_t> memory(4000);
  const auto level = [&](const suture::extent3& n, std::int64_t channels = 1) {
    return suture::contiguous(memory.data(), suture::grid{.extents = n}, channels);
  };
  const auto good = level({2, 2, 3});
  EXPECT_SAYS(m.run<std::int8_t>(1, deep_supervision(good, level({2, 6, 3}))),
              "labels: sample 0: level 1 of extents (2, 6, 3) is larger than the output's (4, 5, 6)");
  EXPECT_SAYS(m.run<std::int8_t>(1, deep_supervision(good, good)), "overlaps");
  EXPECT_SAYS(m.run<std::int8_t>(1, deep_supervision(level({2, 2, 3}, 2))), "level 0 has 2 channels, the output 1");
  EXPECT_SAYS(m.run<std::int8_t>(3, suture::brats_regions_1_2_4, deep_supervision(good)),
              "level 0 has 1 channels, the output 3");
  EXPECT_SAYS(m.run<std::int8_t>(1, deep_supervision(std::vector{good, good})), "level 0 has 2 views for 1 samples");
  EXPECT_SAYS(m.run<std::int8_t>(1, deep_supervision(std::vector(9, std::vector{good}))), "9 levels, at most 8");
  EXPECT_SAYS(m.run<std::int8_t>(1, deep_supervision(suture::view<std::int8_t>{})), "null pointer");
  m.in = batch<std::int8_t>({{1, 1, 32769}});
  EXPECT_SAYS(m.run<std::int8_t>(1, deep_supervision(level({1, 1, 5}))), "exceed 32768");
  m.run<std::int8_t>(1, deep_supervision(std::vector<std::vector<suture::view<std::int8_t>>>{}));  // none is none
}

}  // namespace
