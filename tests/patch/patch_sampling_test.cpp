// SPDX-License-Identifier: Apache-2.0
// Patch sampling on the host: against lists of indices, in distribution, and every case without a voxel to draw.
#include <gtest/gtest.h>
#include <suture/exec/cpu/run.hpp>
#include <suture/ops/geometry/crop_at.hpp>
#include <suture/ops/geometry/flip.hpp>
#include <suture/patch/select_patches.hpp>

#include <cmath>
#include <map>
#include <random>

#include "ref/patch.hpp"
#include "support/expect_says.hpp"
#include "support/labeled_batch.hpp"

namespace {

using namespace suture;
using namespace support;

template <class Rule, class Classes>
std::vector<patch_choice> selected(const Rule& rule, const Classes& map, const patch_draws& draws, int threads = 1) {
  table_memory m = table_of(map, threads);
  std::vector<patch_choice> out(map.samples() * static_cast<std::size_t>(draws.patches));
  select_patches(cpu{.threads = threads}, rule, map, m.bytes(), draws, out);
  return out;
}

reference::index_lists lists_of(const std::vector<std::uint8_t>& labels, std::size_t classes) {
  reference::index_lists lists(classes);
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (labels[i] < classes) lists[labels[i]].push_back(static_cast<std::int64_t>(i));
  return lists;
}

reference::size3 size_of(const extent3& e) { return {e[0], e[1], e[2]}; }

TEST(patches, are_those_drawn_from_lists_of_indices) {
  const labeled_batch b;
  const extent3 size{1, 1, 16};
  const std::vector<float> ratios{0.5f, 1.0f, 0.0f, 2.25f, 0.125f};
  const std::vector<double> same(ratios.begin(), ratios.end());
  const patch_draws draws{.seed = 11, .epoch = 4, .sample_ids = b.ids, .patches = 50, .ordinal = 3};
  const auto got = selected(class_balanced_patch{.size = size, .ratios = ratios}, label_classes(b.labels, 5), draws);
  for (std::size_t i = 0; i < b.grids.size(); ++i) {
    const auto lists = lists_of(b.data[i], 5);
    for (std::size_t p = 0; p < 50; ++p) {
      const reference::patch expected =
          reference::draw_voxel(lists, same, reference::words_of_patch(11, 4, b.ids[i], 3, p));
      const patch_choice& c = got[i * 50 + p];
      ASSERT_GE(expected.of_class, 0);
      EXPECT_EQ(c.voxel, expected.voxel) << i << ' ' << p;
      EXPECT_EQ(c.of_class, expected.of_class);
      EXPECT_EQ(c.status, expected.absent ? patch_status::class_absent : patch_status::chosen);
      EXPECT_EQ(size_of(c.start), reference::start_clamped(expected.voxel, size_of(b.grids[i].extents), size_of(size)));
    }
  }
}

TEST(patches, of_nnu_net_are_forced_and_placed_as_its_loader_does) {
  const labeled_batch b;
  const extent3 size{18, 20, 25}, margin{3, 4, 0};  // larger than some volumes
  const std::vector<double> ratios{0, 1, 1, 1, 1};
  const std::vector<std::uint8_t> flags{1, 0, 1, 0};
  for (const bool flagged : {false, true}) {
    const patch_draws draws{.seed = 5,
                            .sample_ids = b.ids,
                            .patches = 200,
                            .forced = flagged ? std::span<const std::uint8_t>(flags) : std::span<const std::uint8_t>()};
    const auto got = selected(oversampled_patch{.size = size, .margin = margin, .probability = .33f},
                              label_classes(b.labels, 5), draws);
    for (std::size_t i = 0; i < b.grids.size(); ++i) {
      const auto lists = lists_of(b.data[i], 5);
      const auto n = size_of(b.grids[i].extents);
      for (std::size_t p = 0; p < 200; ++p) {
        const auto words = reference::words_of_patch(5, 0, b.ids[i], 0, p);
        const patch_choice& c = got[i * 200 + p];
        const bool about = flagged ? flags[i] == 1 : reference::u24(words.a[0]) < static_cast<double>(.33f);
        if (!about) {
          EXPECT_EQ(c.status, patch_status::anywhere);
          EXPECT_EQ(size_of(c.start), reference::start_anywhere(words, n, size_of(size), size_of(margin)));
          continue;
        }
        const auto expected = reference::draw_voxel(lists, ratios, words);
        EXPECT_EQ(c.voxel, expected.voxel);
        auto start = reference::place(expected.voxel, n);
        for (std::size_t k = 0; k < 3; ++k)
          start[k] = std::max(reference::bounds(n[k], size_of(size)[k], size_of(margin)[k])[0],
                              start[k] - size_of(size)[k] / 2);
        EXPECT_EQ(size_of(c.start), start);
      }
    }
  }
}

// Bounds as numpy and Python give them for get_bbox.
TEST(patches, anywhere_reach_the_bounds_of_nnu_net) {
  // shape 40, patch 32, need_to_pad 5: lbs = -5 // 2 = -3, ubs = 40 + 2 + 1 - 32 = 11; shape 20: pad 12, -6 .. -6 + ...
  const std::vector<std::uint8_t> labels(40 * 20 * 33, 0);
  const auto v = contiguous<const std::uint8_t>(labels.data(), volume(40, 20, 33));
  const std::uint64_t id = 9;
  const auto got = selected(oversampled_patch{.size = {32, 32, 32}, .margin = {5, 5, 0}, .probability = 0},
                            label_classes(v, 2), {.sample_ids = {&id, 1}, .patches = 4000});
  extent3 low{100, 100, 100}, high{-100, -100, -100};
  for (const patch_choice& c : got)
    for (int k = 0; k < 3; ++k) {
      low[k] = std::min(low[k], c.start[k]);
      high[k] = std::max(high[k], c.start[k]);
    }
  EXPECT_EQ(low, (extent3{-3, -6, 0}));
  EXPECT_EQ(high, (extent3{11, -6, 1}));
}

TEST(patches, of_weights_are_those_drawn_from_a_list_with_repeats) {
  const grid g = volume(9, 30, 37);
  std::mt19937 random(3);
  std::vector<std::uint16_t> weights(static_cast<std::size_t>(g.voxels()));
  for (auto& w : weights) w = random() % 3 == 0 ? static_cast<std::uint16_t>(random() % 40) : std::uint16_t{0};
  const extent3 size{4, 7, 10};
  reference::index_lists lists(1);
  for (std::int64_t i = 0; i < g.voxels(); ++i) {
    const auto at = reference::place(i, size_of(g.extents));
    bool fits = true;
    for (std::size_t k = 0; k < 3; ++k) {
      const std::int64_t start = at[k] - size_of(size)[k] / 2;
      fits = fits && start >= 0 && start + size_of(size)[k] <= size_of(g.extents)[k];
    }
    for (int w = 0; fits && w < weights[static_cast<std::size_t>(i)]; ++w) lists[0].push_back(i);
  }
  const auto v = contiguous<const std::uint16_t>(weights.data(), g);
  const std::uint64_t id = 21;
  const auto got = selected(weighted_patch{}, weight_map(v, size), {.seed = 8, .sample_ids = {&id, 1}, .patches = 300});
  for (std::size_t p = 0; p < 300; ++p) {
    const auto expected = reference::draw_voxel(lists, {1}, reference::words_of_patch(8, 0, id, 0, p));
    EXPECT_EQ(got[p].voxel, expected.voxel);
    EXPECT_EQ(size_of(got[p].start), reference::start_clamped(expected.voxel, size_of(g.extents), size_of(size)));
  }
}

TEST(patches, without_weight_are_anywhere) {
  const grid g = volume(5, 6, 7);
  const std::vector<std::uint8_t> weights(static_cast<std::size_t>(g.voxels()), 0);
  const auto v = contiguous<const std::uint8_t>(weights.data(), g);
  const std::uint64_t id = 2;
  const auto got = selected(weighted_patch{}, weight_map(v, {2, 6, 3}), {.sample_ids = {&id, 1}, .patches = 100});
  std::map<std::int64_t, int> starts;
  for (std::size_t p = 0; p < 100; ++p) {
    EXPECT_EQ(got[p].status, patch_status::empty);
    EXPECT_EQ(size_of(got[p].start),
              reference::start_anywhere(reference::words_of_patch(0, 0, 2, 0, p), {5, 6, 7}, {2, 6, 3}, {0, 0, 0}));
    ++starts[got[p].start[0]];
  }
  EXPECT_EQ(starts.size(), 4u);
}

// A count of n draws of probability p lies within 5 standard deviations; what would be seen by chance 6 times in ten
// million is a fault.
void expect_share(std::int64_t count, std::int64_t n, double p, const char* what) {
  const double mean = static_cast<double>(n) * p;
  EXPECT_LT(std::abs(static_cast<double>(count) - mean), 5 * std::sqrt(mean * (1 - p)) + 1e-9) << what;
}

// Pearson's statistic over equally likely cells: mean k - 1, variance 2 (k - 1).
void expect_uniform(const std::map<std::int64_t, int>& cells, std::size_t k, std::int64_t n) {
  ASSERT_EQ(cells.size(), k);
  const double expected = static_cast<double>(n) / static_cast<double>(k);
  double statistic = 0;
  for (const auto& [cell, count] : cells) statistic += (count - expected) * (count - expected) / expected;
  const double freedom = static_cast<double>(k) - 1;
  EXPECT_LT(std::abs(statistic - freedom), 6 * std::sqrt(2 * freedom));
}

TEST(patches, take_each_class_by_its_ratio_and_each_voxel_alike) {
  const grid g = volume(6, 40, 30);
  std::vector<std::uint8_t> labels(static_cast<std::size_t>(g.voxels()), 0);
  for (std::size_t i = 0; i < 90; ++i) labels[(i * 79) % labels.size()] = 1;  // 90 voxels
  for (std::size_t i = 0; i < 40; ++i) labels[5000 + i * 3] = 2;              // 40 voxels, across a block
  const auto v = contiguous<const std::uint8_t>(labels.data(), g);
  std::vector<std::uint64_t> ids(1);
  constexpr std::int32_t n = 40000;
  const std::vector<float> ratios{1, 2, 5};
  const auto got = selected(class_balanced_patch{.size = {1, 1, 1}, .ratios = ratios}, label_classes(v, 3),
                            {.seed = 1, .sample_ids = ids, .patches = n});
  std::map<std::int64_t, int> of_class, voxels[3];
  for (const patch_choice& c : got) {
    ++of_class[c.of_class];
    ASSERT_EQ(labels[static_cast<std::size_t>(c.voxel)], c.of_class);
    ++voxels[c.of_class][c.voxel];
    EXPECT_EQ(c.start, (extent3{c.voxel / 1200, c.voxel / 30 % 40, c.voxel % 30}));
  }
  expect_share(of_class[0], n, 1. / 8, "class 0");
  expect_share(of_class[1], n, 2. / 8, "class 1");
  expect_share(of_class[2], n, 5. / 8, "class 2");
  const auto ones = static_cast<std::size_t>(std::count(labels.begin(), labels.end(), 1));
  expect_uniform(voxels[1], ones, of_class[1]);
  expect_uniform(voxels[2], 40, of_class[2]);
}

TEST(patches, of_positive_and_negative_follow_their_ratio) {
  const grid g = volume(1, 50, 60);
  std::vector<std::uint8_t> labels(3000, 0);
  std::vector<std::int16_t> image(3000, -1000);
  for (std::size_t i = 0; i < 3000; ++i) image[i] = i % 10 == 0 ? std::int16_t{50} : std::int16_t{-1000};
  for (std::size_t i = 700; i < 720; ++i) labels[i] = 2;
  const auto seg = contiguous<const std::uint8_t>(labels.data(), g);
  const auto ct = contiguous<const std::int16_t>(image.data(), g);
  const std::uint64_t id = 4;
  constexpr std::int32_t n = 20000;
  const auto got = selected(pos_neg_patch{.size = {1, 1, 1}, .positive = 3, .negative = 1},
                            foreground_background(seg, ct, 0.0f), {.seed = 77, .sample_ids = {&id, 1}, .patches = n});
  std::map<std::int64_t, int> foreground, background;
  for (const patch_choice& c : got) ++(c.of_class == 1 ? foreground : background)[c.voxel];
  const auto sum = [](const auto& cells) {
    std::int64_t s = 0;
    for (const auto& [v, count] : cells) s += count;
    return s;
  };
  expect_share(sum(foreground), n, .75, "foreground");
  expect_uniform(foreground, 20, sum(foreground));
  expect_uniform(background, 298, sum(background));  // 300 above the threshold, 2 of them foreground
}

TEST(patches, fall_back_on_the_set_that_is_there) {
  const grid g = volume(8, 9, 10);
  const std::vector<std::uint8_t> none(720, 0), all(720, 1);
  const std::vector<float> dark(720, -1.0f), bright(720, 1.0f);
  const std::uint64_t id = 1;
  const patch_draws draws{.sample_ids = {&id, 1}, .patches = 64};
  const pos_neg_patch rule{.size = {3, 4, 5}};
  const auto seg = [&](const auto& d) { return contiguous<const std::uint8_t>(d.data(), g); };
  const auto ct = [&](const auto& d) { return contiguous<const float>(d.data(), g); };
  for (const patch_choice& c : selected(rule, foreground_background(seg(none), ct(bright)), draws)) {
    EXPECT_EQ(c.of_class, 0);
    EXPECT_EQ(c.status, patch_status::class_absent);
  }
  for (const patch_choice& c : selected(rule, foreground_background(seg(all), ct(dark)), draws)) {
    EXPECT_EQ(c.of_class, 1);
    EXPECT_EQ(c.status, patch_status::class_absent);
  }
  for (const patch_choice& c : selected(rule, foreground_background(seg(none), ct(dark)), draws)) {
    EXPECT_EQ(c.status, patch_status::empty);
    EXPECT_EQ(c.of_class, -1);
    EXPECT_EQ(c.voxel, -1);
    EXPECT_EQ(c.start, (extent3{8 / 2 - 3 / 2, 9 / 2 - 4 / 2, 10 / 2 - 5 / 2}));  // center_crop
  }
  // All background: nnU-Net crops anywhere.
  for (std::size_t p = 0; const patch_choice& c : selected(oversampled_patch{.size = {3, 4, 5}, .probability = 1},
                                                           label_classes(seg(none), 4), draws)) {
    EXPECT_EQ(c.status, patch_status::empty);
    EXPECT_EQ(size_of(c.start),
              reference::start_anywhere(reference::words_of_patch(0, 0, 1, 0, p++), {8, 9, 10}, {3, 4, 5}, {0, 0, 0}));
  }
}

TEST(patches, know_nothing_of_the_batch) {
  const labeled_batch b;
  const class_balanced_patch rule{.size = {1, 1, 8}};
  const auto together = selected(rule, label_classes(b.labels, 5), {.seed = 3, .sample_ids = b.ids, .patches = 6}, 3);
  for (std::size_t i = 0; i < b.labels.size(); ++i) {
    const auto alone =
        selected(rule, label_classes(b.labels[i], 5), {.seed = 3, .sample_ids = {&b.ids[i], 1}, .patches = 2});
    for (std::size_t p = 0; p < 2; ++p) {
      EXPECT_EQ(alone[p].voxel, together[i * 6 + p].voxel);
      EXPECT_EQ(alone[p].start, together[i * 6 + p].start);
    }
  }
}

TEST(patches, become_crops_of_a_plan) {
  const labeled_batch b;
  const extent3 size{1, 1, 12};
  const patch_draws draws{.seed = 6, .sample_ids = b.ids};
  const auto choices = selected(class_balanced_patch{.size = size}, label_classes(b.labels, 5), draws);
  const std::vector<extent3> starts = patch_starts(choices);
  const auto p = plan(crop_at{.starts = starts, .size = size}, b.labels);
  const auto grids = p.output_grids();
  std::vector<std::uint8_t> out(4 * 12);
  const auto views = batch_views(out.data(), std::span<const grid>(grids));
  run(cpu{}, p, labels(b.labels, views));
  for (std::size_t i = 0; i < 4; ++i) {
    const extent3& n = b.grids[i].extents;
    const auto first = (starts[i][0] * n[1] + starts[i][1]) * n[2] + starts[i][2];
    for (std::size_t x = 0; x < 12; ++x) EXPECT_EQ(out[i * 12 + x], b.data[i][static_cast<std::size_t>(first) + x]);
    EXPECT_EQ(out[i * 12 + static_cast<std::size_t>(choices[i].voxel - first)], choices[i].of_class);
    EXPECT_EQ(grids[i].origin[2], static_cast<double>(starts[i][2]));
  }
}

TEST(patches, are_used_like_this) {
  const labeled_batch b;
  const std::vector<view<const std::uint8_t>>& segmentations = b.labels;
  const std::vector<std::uint64_t>& sample_ids = b.ids;
  const extent3 size{1, 1, 12};
  // [patches]
  const auto classes = suture::label_classes(segmentations, 5);
  std::vector<std::uint64_t> memory(suture::class_counts_bytes(classes) / 8);
  const auto counts = std::as_writable_bytes(std::span(memory));
  suture::count_classes(suture::cpu{}, classes, counts);  // once per data set

  std::vector<suture::patch_choice> choices(segmentations.size());
  suture::select_patches(suture::cpu{}, suture::class_balanced_patch{.size = size}, classes, counts,
                         {.seed = 42, .epoch = 3, .sample_ids = sample_ids}, choices);
  const std::vector<suture::extent3> starts = suture::patch_starts(choices);
  const auto train = suture::crop_at{.starts = starts, .size = size} | suture::random_flip{};
  // [/patches]
  const auto p = plan(train, segmentations, {.seed = 42, .epoch = 3, .sample_ids = sample_ids});
  for (std::size_t i = 0; i < segmentations.size(); ++i) {
    EXPECT_EQ(p.output_grid(i).extents, size);
    EXPECT_GE(choices[i].of_class, 1);
  }
}

TEST(crop_at, fills_what_lies_outside_by_the_border_rule) {
  const std::vector<float> image{1, 2, 3, 4};
  const auto in = contiguous<const float>(image.data(), volume(1, 1, 4));
  const std::vector<extent3> starts{{0, 0, -2}};
  const auto p = plan(crop_at{.starts = starts, .size = {1, 1, 7}, .may_leave = true} |
                          sampling<linear, constant>{.border = {.value = -7}},
                      std::vector{in});
  std::vector<float> out(7);
  run(cpu{}, p, suture::image(in, contiguous(out.data(), p.output_grid(0))));
  EXPECT_EQ(out, (std::vector<float>{-7, -7, 1, 2, 3, 4, -7}));
}

TEST(crop_at, says_what_is_wrong) {
  const std::vector<grid> two{volume(4, 4, 4), volume(4, 4, 4)};
  const std::vector<extent3> one{{0, 0, 0}}, outside{{0, 0, 0}, {0, 2, 0}}, far{{0, 0, 0}, {0, 0, 1 << 22}};
  EXPECT_SAYS(plan(crop_at{.starts = one, .size = {2, 2, 2}}, two), "crop_at: 1 start for 2 samples");
  EXPECT_SAYS(plan(crop_at{.size = {2, 2, 2}}, two), "crop_at: 0 starts for 2 samples");
  EXPECT_SAYS(plan(crop_at{.starts = outside, .size = {2, 2, 2}}, std::vector{two[0]}),
              "crop_at: 2 starts for 1 sample");
  EXPECT_SAYS(plan(crop_at{.starts = outside, .size = {2, 3, 2}}, two), "sample 1: box from (0, 2, 0)");
  EXPECT_SAYS(plan(crop_at{.starts = outside, .size = {2, 0, 2}, .may_leave = true}, two), "patch (2, 0, 2)");
  EXPECT_SAYS(plan(crop_at{.starts = far, .size = {2, 2, 2}, .may_leave = true}, two), "sample 1: start");
}

TEST(patches, say_what_is_wrong) {
  const labeled_batch b;
  const auto map = label_classes(b.labels, 5);
  table_memory m = table_of(map);
  std::vector<patch_choice> out(4);
  const patch_draws draws{.sample_ids = b.ids};
  const auto with = [&](const auto& rule, const patch_draws& d) {
    select_patches(cpu{}, rule, map, m.bytes(), d, out);
  };
  const extent3 one{1, 1, 1};
  EXPECT_SAYS(with(class_balanced_patch{.size = {2, 1, 1}}, draws),
              "class_balanced_patch: sample 0: patch (2, 1, 1) is larger");
  EXPECT_SAYS(with(class_balanced_patch{.size = {0, 1, 1}}, draws), "must be positive");
  EXPECT_SAYS(with(oversampled_patch{.size = one, .probability = 1.5f}, draws), "probability 1.5");
  EXPECT_SAYS(with(oversampled_patch{.size = one, .margin = {0, -1, 0}}, draws), "margin");
  const std::vector<float> few{1, 2}, negative{1, 1, -1, 1, 1}, zero(5, 0.0f);
  table_memory never(class_counts_bytes(map));
  std::fill(never.words.begin(), never.words.end(), 0);
  EXPECT_SAYS(select_patches(cpu{}, oversampled_patch{.size = one}, map, never.bytes(), draws, out),
              "oversampled_patch: sample 0: the counts are all 0; count_classes fills them in");
  EXPECT_SAYS(with(class_balanced_patch{.size = one, .ratios = few}, draws), "2 ratios for 5 classes");
  EXPECT_SAYS(with(class_balanced_patch{.size = one, .ratios = negative}, draws), "ratio -1 of class 2");
  EXPECT_SAYS(with(class_balanced_patch{.size = one, .ratios = zero}, draws), "every ratio is 0");
  EXPECT_SAYS(with(class_balanced_patch{.size = one}, {}), "0 sample ids for 4 samples");
  EXPECT_SAYS(with(class_balanced_patch{.size = one}, {.sample_ids = b.ids, .patches = 0}), "patches 0");
  EXPECT_SAYS(with(class_balanced_patch{.size = one}, {.sample_ids = b.ids, .patches = 2}), "8 are made");
  EXPECT_SAYS(with(class_balanced_patch{.size = one}, {.sample_ids = b.ids, .ordinal = 16}), "ordinal 16");
  const std::vector<std::uint8_t> flag{1};
  EXPECT_SAYS(with(class_balanced_patch{.size = one}, {.sample_ids = b.ids, .forced = flag}), "1 forced flags");
  EXPECT_SAYS(class_counts_bytes(label_classes(b.labels, 0)), "classes 0 must be in 1..1024");
  EXPECT_SAYS(class_counts_bytes(label_classes(b.labels, 1025)), "classes 1025");
  EXPECT_SAYS(class_counts_bytes(label_classes(std::vector<view<const std::uint8_t>>{}, 2)), "the batch is empty");
  EXPECT_SAYS(count_classes(cpu{}, map, m.bytes().first(8)), "8 bytes given");
  table_memory wide(class_counts_bytes(map) + 8);
  EXPECT_SAYS(count_classes(cpu{}, map, wide.bytes().subspan(1)), "not aligned to 8 bytes");
  std::vector<std::uint64_t> shared(4096);
  const auto inside = contiguous<const std::uint8_t>(reinterpret_cast<std::uint8_t*>(shared.data()), volume(2, 2, 2));
  EXPECT_SAYS(count_classes(cpu{}, label_classes(inside, 2), std::as_writable_bytes(std::span(shared))), "overlap");
  const auto null = contiguous<const std::uint8_t>(nullptr, volume(2, 2, 2));
  EXPECT_SAYS(class_counts_bytes(label_classes(null, 2)), "null pointer");
  const std::vector<std::uint8_t> channels(16);
  EXPECT_SAYS(class_counts_bytes(label_classes(contiguous(channels.data(), volume(2, 2, 2), 2), 2)), "2 channels");
  std::vector<std::uint8_t> weights(8);
  EXPECT_SAYS(class_counts_bytes(weight_map(contiguous(weights.data(), volume(2, 2, 2)), {3, 1, 1})), "pad the volume");
  const std::vector<float> image(27);
  EXPECT_SAYS(class_counts_bytes(foreground_background(contiguous(weights.data(), volume(2, 2, 2)),
                                                       contiguous(image.data(), volume(3, 3, 3)))),
              "differ from (2, 2, 2)");
  // A table of other voxels is found out rather than read past.
  std::fill(m.words.begin(), m.words.end(), 1000000);
  EXPECT_SAYS(with(class_balanced_patch{.size = one}, draws), "the counts are not those of these voxels");
}

}  // namespace
