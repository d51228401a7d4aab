// SPDX-License-Identifier: Apache-2.0
// Crops about voxels of classes: the index against plain lists of indices, the choice against a naive reference, the
// place against the coordinates of the grid that they are cropped from.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "ref/patch.hpp"
#include "support/class_balanced_training.hpp"
#include "support/expect_says.hpp"
#include "support/labeled_batch.hpp"

namespace {

using namespace suture;
using support::blobs;

grid volume(std::int64_t z, std::int64_t y, std::int64_t x, const point3& spacing = {1, 1, 1}) {
  return {.extents = {z, y, x}, .spacing = spacing, .origin = {-31, 12.5, 7}};
}
reference::size3 size_of(const extent3& e) { return {e[0], e[1], e[2]}; }

template <class L>
reference::index_lists lists_of(const std::vector<L>& labels, std::size_t classes) {
  reference::index_lists lists(classes);
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (static_cast<std::size_t>(labels[i]) < classes)
      lists[static_cast<std::size_t>(labels[i])].push_back(static_cast<std::int64_t>(i));
  return lists;
}

void expect_lists(const class_index& index, const reference::index_lists& lists) {
  ASSERT_EQ(index.classes(), static_cast<std::int32_t>(lists.size()));
  for (std::size_t c = 0; c < lists.size(); ++c) {
    const auto number = static_cast<std::int32_t>(c);
    ASSERT_EQ(index.total(number), lists[c].size()) << c;
    for (std::size_t rank = 0; rank < lists[c].size(); ++rank)
      ASSERT_EQ(index.voxel(number, rank), lists[c][rank]) << c << ' ' << rank;
  }
}

TEST(class_index, finds_the_voxels_of_lists_of_indices) {
  for (const extent3& n : {extent3{1, 1, 1}, {1, 1, 15}, {2, 3, 16}, {3, 1, 17}, {1, 5, 127}, {9, 70, 33}, {130, 1, 1}})
    for (const int longest : {1, 60, 900}) {
      const grid g = volume(n[0], n[1], n[2]);
      const std::vector<std::uint8_t> labels = blobs(g, static_cast<unsigned>(n[2]) + 5, longest);
      const auto map = label_classes(contiguous<const std::uint8_t>(labels.data(), g), 5);
      const std::vector<class_index> one = index_classes(cpu{.threads = 1}, map),
                                     four = index_classes(cpu{.threads = 4}, map);
      ASSERT_EQ(one.size(), 1u);
      EXPECT_EQ(one[0].extents(), n);
      expect_lists(one[0], lists_of(labels, 5));
      EXPECT_TRUE(one[0] == four[0]);
    }
}

TEST(class_index, reads_any_strides_and_types) {
  const grid g = volume(9, 21, 35);
  const std::vector<std::int16_t> dense = blobs<std::int16_t>(g, 5);
  // x slowest, and every row reversed.
  std::vector<std::int16_t> other(dense.size());
  const view<const std::int16_t> v{other.data() + 20 * 9, g, {1, -9, 21 * 9}, 1, 0};
  for (std::int64_t z = 0; z < 9; ++z)
    for (std::int64_t y = 0; y < 21; ++y)
      for (std::int64_t x = 0; x < 35; ++x)
        other[static_cast<std::size_t>(20 * 9 + z - 9 * y + 21 * 9 * x)] =
            dense[static_cast<std::size_t>((z * 21 + y) * 35 + x)];
  expect_lists(index_classes(cpu{}, label_classes(v, 5))[0], lists_of(dense, 5));
}

TEST(class_index, is_the_same_in_every_order_of_axes) {
  constexpr int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const extent3& n : {extent3{37, 43, 50}, extent3{70, 9, 17}, extent3{1, 530, 500}}) {
    const grid g = volume(n[0], n[1], n[2]);
    const std::vector<std::uint8_t> dense = blobs(g, 5, 60);
    for (const auto& order : orders) {
      std::vector<std::uint8_t> other(dense.size());
      view<const std::uint8_t> v{other.data(), g, {}, 1, 0};
      std::int64_t step = 1;
      for (int j = 2; j >= 0; --j) {
        v.stride[order[j]] = step;
        step *= n[order[j]];
      }
      for (std::int64_t at = 0; at < step; ++at)
        other[static_cast<std::size_t>(at / n[2] / n[1] * v.stride[0] + at / n[2] % n[1] * v.stride[1] +
                                       at % n[2] * v.stride[2])] = dense[static_cast<std::size_t>(at)];
      for (const int threads : {1, 3})
        expect_lists(index_classes(cpu{.threads = threads}, label_classes(v, 5))[0], lists_of(dense, 5));
    }
  }
}

TEST(class_index, tells_foreground_and_background) {
  const grid g = volume(1, 2, 4);
  const std::vector<std::int16_t> labels{0, 1, 0, -1, 0, 0, 0, 3, /* second channel */ 0, 0, 2, 0, 0, 0, 0, 0};
  const std::vector<float> image{5, 5, 5, 5, -5, NAN, INFINITY, NAN};
  const auto seg = contiguous<const std::int16_t>(labels.data(), g, 2);
  expect_lists(index_classes(cpu{}, foreground_background(seg, contiguous<const float>(image.data(), g), 0.0f))[0],
               {{0, 3}, {1, 2, 7}});
  expect_lists(index_classes(cpu{}, foreground_background(seg))[0], {{0, 3, 4, 5, 6}, {1, 2, 7}});
}

// 8 bytes for each run, 8 for each class's total and 8 for each beginning of a class, and one more.
TEST(class_index, takes_the_memory_it_says) {
  const grid g = volume(4, 5, 6);
  std::vector<std::uint8_t> labels(120, 0);
  for (const std::size_t v : {7u, 8u, 9u, 50u}) labels[v] = 1;  // 2 runs, so 3 of the background
  const auto index = index_classes(cpu{}, label_classes(contiguous<const std::uint8_t>(labels.data(), g), 3));
  EXPECT_EQ(index[0].bytes(), 5u * 8 + 3 * 8 + 4 * 8);
}

// Ragged cases of several spacings.
struct batch {
  std::vector<grid> grids{volume(17, 31, 29, {2.5, .8, .9}), volume(40, 33, 26), volume(20, 33, 41, {2, 2, 2}),
                          volume(12, 50, 45, {3, .7, .7})};
  std::vector<std::uint64_t> ids{7, 1000000007, 3, 1ull << 40};
  std::vector<std::vector<std::uint8_t>> data;
  std::vector<view<const std::uint8_t>> labels;
  std::vector<class_index> index;
  std::vector<const class_index*> cases;

  batch() {
    for (std::size_t i = 0; i < grids.size(); ++i) data.push_back(blobs(grids[i], static_cast<unsigned>(i)));
    for (std::size_t i = 0; i < grids.size(); ++i)
      labels.push_back(contiguous<const std::uint8_t>(data[i].data(), grids[i]));
    index = index_classes(cpu{}, label_classes(labels, 5));
    for (const class_index& each : index) cases.push_back(&each);
  }
};

TEST(crop_by_class, chooses_as_from_lists_of_indices) {
  const batch b;
  const extent3 size{7, 12, 16};
  const std::vector<float> ratios{0.5f, 1.0f, 0.0f, 2.25f, 0.125f};
  const std::vector<double> same(ratios.begin(), ratios.end());
  for (std::uint32_t epoch = 0; epoch < 60; ++epoch) {
    const auto p = plan(crop_by_class{.rule = class_balanced_patch{.size = size, .ratios = ratios}, .cases = b.cases},
                        b.grids, {.seed = 11, .epoch = epoch, .sample_ids = b.ids});
    for (std::size_t i = 0; i < b.grids.size(); ++i) {
      const reference::patch expected =
          reference::draw_voxel(lists_of(b.data[i], 5), same, reference::words_of_patch(11, epoch, b.ids[i], 0, 0));
      const class_crop c = p.drawn<0>(i).parameters;
      ASSERT_EQ(c.voxel, expected.voxel) << i << ' ' << epoch;
      EXPECT_EQ(c.of_class, expected.of_class);
      EXPECT_EQ(c.status, expected.absent ? patch_status::class_absent : patch_status::chosen);
      EXPECT_EQ(size_of(c.start), reference::start_clamped(expected.voxel, size_of(b.grids[i].extents), size_of(size)));
      EXPECT_EQ(p.output_grid(i).extents, size);
      const point3 first = b.grids[i].index_to_physical()(vec_cast<double>(c.start));
      for (int k = 0; k < 3; ++k) EXPECT_NEAR(p.output_grid(i).origin[k], first[k], 1e-9);
    }
  }
}

// Those that select_patches draws for the first patch of a sample, where nothing is left of the crop.
template <class Rule, class Map>
void expect_the_patches_of_select_patches(const Rule& rule, const Map& map, const batch& b,
                                          std::span<const std::uint8_t> forced = {}) {
  const std::vector<class_index> index = index_classes(cpu{}, map);
  std::vector<const class_index*> cases;
  for (const class_index& each : index) cases.push_back(&each);
  std::vector<std::uint64_t> table(class_counts_bytes(map) / 8);
  count_classes(cpu{}, map, std::as_writable_bytes(std::span(table)));
  for (std::uint32_t epoch = 0; epoch < 40; ++epoch) {
    std::vector<patch_choice> choices(b.grids.size());
    select_patches(cpu{}, rule, map, std::as_bytes(std::span(table)),
                   {.seed = 3, .epoch = epoch, .sample_ids = b.ids, .forced = forced}, choices);
    const auto p = plan(crop_by_class{.rule = rule, .cases = cases, .forced = forced}, b.grids,
                        {.seed = 3, .epoch = epoch, .sample_ids = b.ids});
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const class_crop c = p.template drawn<0>(i).parameters;
      EXPECT_EQ(c.start, choices[i].start) << i << ' ' << epoch;
      EXPECT_EQ(c.voxel, choices[i].voxel);
      EXPECT_EQ(c.of_class, choices[i].of_class);
      EXPECT_EQ(c.status, choices[i].status);
    }
  }
}

TEST(crop_by_class, of_unchanged_volumes_is_that_of_select_patches) {
  const batch b;
  const std::vector<float> ratios{1, 1, 0, 3, .5f};
  const std::vector<std::uint8_t> forced{1, 0, 1, 0};
  const auto labels = label_classes(b.labels, 5);
  expect_the_patches_of_select_patches(class_balanced_patch{.size = {5, 6, 7}}, labels, b);
  expect_the_patches_of_select_patches(class_balanced_patch{.size = {12, 31, 26}, .ratios = ratios}, labels, b);
  expect_the_patches_of_select_patches(pos_neg_patch{.size = {4, 9, 8}, .positive = 2}, foreground_background(b.labels),
                                       b);
  const oversampled_patch nnunet{.size = {18, 40, 25}, .margin = {3, 4, 0}};  // larger than some volumes
  expect_the_patches_of_select_patches(nnunet, labels, b);
  expect_the_patches_of_select_patches(nnunet, labels, b, forced);
}

// Where a voxel of the source lies at another spacing, along one axis, by the definition of half_pixel.
double at_half_pixel(double voxel, double from, double to) { return (voxel + .5) * to / from - .5; }

TEST(crop_by_class, is_placed_where_the_voxel_lies_at_another_spacing) {
  const batch b;
  const extent3 size{9, 12, 16};
  int limited = 0, free = 0;
  for (std::uint32_t epoch = 0; epoch < 60; ++epoch) {
    const auto p = plan(
        resample{.spacing_mm = {1, 1, 1}} | crop_by_class{.rule = class_balanced_patch{.size = size}, .cases = b.cases},
        b.grids, {.seed = 5, .epoch = epoch, .sample_ids = b.ids});
    const auto whole = plan(resample{.spacing_mm = {1, 1, 1}}, b.grids);
    for (std::size_t i = 0; i < b.grids.size(); ++i) {
      const class_crop c = p.drawn<1>(i).parameters;
      ASSERT_EQ(b.data[i][static_cast<std::size_t>(c.voxel)], c.of_class);
      const auto voxel = reference::place(c.voxel, size_of(b.grids[i].extents));
      const extent3 n = whole.output_grid(i).extents;
      for (int k = 0; k < 3; ++k) {
        const double at = at_half_pixel(static_cast<double>(voxel[static_cast<std::size_t>(k)]),
                                        static_cast<double>(b.grids[i].extents[k]), static_cast<double>(n[k]));
        const double middle = static_cast<double>(c.start[k] + size[k] / 2);
        if (c.start[k] > 0 && c.start[k] < n[k] - size[k]) {
          EXPECT_LE(std::abs(middle - at), .5 + 1e-5) << i << ' ' << k;
          ++free;
        } else {
          ASSERT_GE(c.start[k], 0);
          ASSERT_LE(c.start[k], n[k] - size[k]);
          ++limited;
        }
      }
      // The plan moves the voxel into the patch, to the middle if nothing limits it.
      const point3 moved =
          to_output(p, i,
                    point3{static_cast<double>(voxel[0]), static_cast<double>(voxel[1]), static_cast<double>(voxel[2])})
              .point;
      for (int k = 0; k < 3; ++k) {
        EXPECT_GE(moved[k], -.5 - 1e-5);
        EXPECT_LE(moved[k], static_cast<double>(size[k]) - .5 + 1e-5);
      }
    }
  }
  EXPECT_GT(limited, 50);
  EXPECT_GT(free, 100);
}

// On a grid that lies half a voxel further every voxel is midway between two. It is the upper one, whatever the last
// bits of an oblique grid far away say.
TEST(crop_by_class, takes_the_upper_of_two_voxels_as_near) {
  const std::uint64_t id = 1;
  grid g = volume(1, 1, 40);
  g.direction = {{{.8, -.6, 0}, {.36, .48, .8}, {-.48, -.64, .6}}};
  for (const double away : {0.0, 1e3 / 3, -4567.89}) {
    g.origin = {away, -away, away / 7};
    grid target = g;
    target.origin = g.index_to_physical()({0, 0, -.5});
    for (std::size_t v = 10; v < 30; ++v) {
      std::vector<std::uint8_t> labels(40, 0);
      labels[v] = 1;
      const auto index = index_classes(cpu{}, label_classes(contiguous<const std::uint8_t>(labels.data(), g), 2));
      const class_index* const cases[] = {&index[0]};
      const auto p =
          plan(resample_to{target} | crop_by_class{.rule = class_balanced_patch{.size = {1, 1, 3}}, .cases = cases},
               std::vector{g}, {.sample_ids = {&id, 1}});
      EXPECT_EQ(p.drawn<1>(0).parameters.start[2] + 1, static_cast<std::int64_t>(v) + 1) << away;  // of v + .5
    }
  }
}

// Labels cropped so and sampled to the nearest have the class drawn where its voxel came to lie.
TEST(crop_by_class, shows_the_class_that_was_drawn) {
  const batch b;
  const extent3 size{9, 12, 16};
  const auto chain = resample{.spacing_mm = {.9, .6, .6}} | pad_to{{40, 40, 60}} |
                     crop_by_class{.rule = class_balanced_patch{.size = size}, .cases = b.cases} |
                     sampling<linear, constant, nearest>{};
  for (std::uint32_t epoch = 0; epoch < 10; ++epoch) {
    const auto p = plan(chain, b.labels, {.epoch = epoch, .sample_ids = b.ids});
    const auto grids = p.output_grids();
    std::vector<std::uint8_t> out(4 * 9 * 12 * 16);
    const auto views = batch_views(out.data(), std::span<const grid>(grids));
    run(cpu{}, p, labels(b.labels, views));
    for (std::size_t i = 0; i < 4; ++i) {
      const class_crop c = p.drawn<2>(i).parameters;
      const auto voxel = reference::place(c.voxel, size_of(b.grids[i].extents));
      const point3 at =
          to_output(p, i,
                    point3{static_cast<double>(voxel[0]), static_cast<double>(voxel[1]), static_cast<double>(voxel[2])})
              .point;
      const auto z = std::llround(at[0]), y = std::llround(at[1]), x = std::llround(at[2]);
      EXPECT_EQ(views[i].data[(z * 12 + y) * 16 + x], c.of_class) << i << ' ' << epoch;
    }
  }
}

TEST(crop_by_class, follows_any_geometry_left_of_it) {
  const batch b;
  const extent3 size{3, 5, 4};
  const auto chain = orient{"RAS"} | random_affine{.rotate_deg = 40, .scale = {.8f, 1.2f}, .translate = 3} |
                     random_flip{} | pad{{5, 5, 5}, {9, 8, 7}} |
                     crop_by_class{.rule = oversampled_patch{.size = size, .margin = {400, 400, 400}, .probability = 1},
                                   .cases = b.cases};
  for (std::uint32_t epoch = 0; epoch < 30; ++epoch) {
    const auto p = plan(chain, b.grids, {.epoch = epoch, .sample_ids = b.ids});
    for (std::size_t i = 0; i < b.grids.size(); ++i) {
      const class_crop c = p.drawn<4>(i).parameters;
      const auto voxel = reference::place(c.voxel, size_of(b.grids[i].extents));
      const point3 at =
          to_output(p, i,
                    point3{static_cast<double>(voxel[0]), static_cast<double>(voxel[1]), static_cast<double>(voxel[2])})
              .point;
      // A voxel that the affine has moved out of the volume counts as the nearest inside.
      const extent3 n{b.grids[i].extents[0] + 14, b.grids[i].extents[1] + 13, b.grids[i].extents[2] + 12};
      for (int k = 0; k < 3; ++k) {
        const double in_volume = at[k] + static_cast<double>(c.start[k]);
        if (in_volume >= 0 && in_volume <= static_cast<double>(n[k] - 1))
          EXPECT_LE(std::abs(at[k] - static_cast<double>(size[k] / 2)), .5 + 1e-5) << i << ' ' << k;
        else
          EXPECT_EQ(c.start[k] + size[k] / 2, in_volume < 0 ? 0 : n[k] - 1);
      }
    }
  }
}

TEST(crop_by_class, keeps_to_the_ratios_and_is_uniform_within_a_class) {
  const grid g = volume(4, 6, 50, {3, 1, 1});
  std::vector<std::uint8_t> labels(static_cast<std::size_t>(g.voxels()), 0);
  for (std::size_t v = 100; v < 140; ++v) labels[v] = 1;
  for (std::size_t v = 700; v < 704; ++v) labels[v] = 2;
  const auto index = index_classes(cpu{}, label_classes(contiguous<const std::uint8_t>(labels.data(), g), 3));
  constexpr std::size_t n = 20000;
  const std::vector<grid> grids(n, g);
  const std::vector<const class_index*> cases(n, &index[0]);
  std::vector<std::uint64_t> ids(n);
  for (std::size_t i = 0; i < n; ++i) ids[i] = i;
  const std::vector<float> ratios{1, 2, 5};
  const auto p = plan(
      resample{} | crop_by_class{.rule = class_balanced_patch{.size = {2, 2, 2}, .ratios = ratios}, .cases = cases},
      grids, {.seed = 8, .sample_ids = ids});
  std::vector<double> drawn(3, 0), voxels(static_cast<std::size_t>(g.voxels()), 0);
  for (std::size_t i = 0; i < n; ++i) {
    const class_crop c = p.drawn<1>(i).parameters;
    ++drawn[static_cast<std::size_t>(c.of_class)];
    ++voxels[static_cast<std::size_t>(c.voxel)];
  }
  const double share[] = {1. / 8, 2. / 8, 5. / 8};
  for (std::size_t c = 0; c < 3; ++c)  // within five standard deviations
    EXPECT_NEAR(drawn[c], n * share[c], 5 * std::sqrt(n * share[c] * (1 - share[c])));
  for (std::size_t v = 100; v < 140; ++v) EXPECT_NEAR(voxels[v], drawn[1] / 40, 5 * std::sqrt(drawn[1] / 40)) << v;
  for (std::size_t v = 700; v < 704; ++v) EXPECT_NEAR(voxels[v], drawn[2] / 4, 5 * std::sqrt(drawn[2] / 4)) << v;
}

TEST(crop_by_class, falls_back_where_classes_are_absent) {
  const grid g = volume(10, 11, 12, {2, 1, 1});
  std::vector<std::uint8_t> labels(static_cast<std::size_t>(g.voxels()), 0);
  const auto index_of_labels = [&] {
    return index_classes(cpu{}, label_classes(contiguous<const std::uint8_t>(labels.data(), g), 3));
  };
  const auto none = index_of_labels();
  labels[7] = 2;
  const auto some = index_of_labels();
  const std::vector<grid> grids(2, g);
  const std::vector<std::uint64_t> ids{1, 2};
  const class_index* const cases[] = {&none[0], &some[0]};
  const extent3 size{6, 4, 4};
  // No class with a ratio above 0 has a voxel: the middle, on the grid it is cropped from.
  const auto p = plan(resample{} | crop_by_class{.rule = class_balanced_patch{.size = size}, .cases = cases}, grids,
                      {.sample_ids = ids});
  const class_crop first = p.drawn<1>(0).parameters, second = p.drawn<1>(1).parameters;
  EXPECT_EQ(first.status, patch_status::empty);
  EXPECT_EQ(first.voxel, -1);
  EXPECT_EQ(first.of_class, -1);
  EXPECT_EQ(first.start, (extent3{20 / 2 - 3, 11 / 2 - 2, 12 / 2 - 2}));
  EXPECT_EQ(second.status, patch_status::class_absent);  // class 1 has none
  EXPECT_EQ(second.voxel, 7);
  EXPECT_EQ(second.start, (extent3{0, 0, 5}));
  // nnU-Net's goes anywhere.
  std::set<std::int64_t> starts;
  for (std::uint32_t epoch = 0; epoch < 40; ++epoch) {
    const auto q = plan(crop_by_class{.rule = oversampled_patch{.size = size, .probability = 1}, .cases = cases}, grids,
                        {.epoch = epoch, .sample_ids = ids});
    EXPECT_EQ(q.drawn<0>(0).parameters.status, patch_status::empty);
    starts.insert(q.drawn<0>(0).parameters.start[2]);
  }
  EXPECT_GT(starts.size(), 5u);
}

TEST(crop_by_class, takes_patches_larger_than_the_volume) {
  const batch b;
  const extent3 size{60, 44, 70};
  const crop_by_class inside{.rule = class_balanced_patch{.size = size}, .cases = b.cases};
  EXPECT_SAYS(plan(inside, b.grids, {.sample_ids = b.ids}),
              "crop_by_class: sample 0 (id 7): patch (60, 44, 70) is larger than the volume (17, 31, 29); pad the "
              "volume first (pad_to, crop_or_pad)");
  const auto padded = plan(resample{} | pad_to{size} | inside, b.grids, {.sample_ids = b.ids});
  // nnU-Net's reads beyond the volume; what is there is the border.
  const auto left = plan(crop_by_class{.rule = oversampled_patch{.size = size, .probability = 1}, .cases = b.cases} |
                             sampling<linear, constant, nearest>{.label_outside = 99},
                         b.grids, {.sample_ids = b.ids});
  std::vector<std::uint8_t> out(4 * 60 * 44 * 70);
  const auto grids = left.output_grids();
  const auto views = batch_views(out.data(), std::span<const grid>(grids));
  run(cpu{}, left, labels(b.labels, views));
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(padded.output_grid(i).extents, size);
    const extent3 s = left.drawn<0>(i).parameters.start, n = b.grids[i].extents;
    std::size_t v = 0;
    for (std::int64_t z = s[0]; z < s[0] + size[0]; ++z)
      for (std::int64_t y = s[1]; y < s[1] + size[1]; ++y)
        for (std::int64_t x = s[2]; x < s[2] + size[2]; ++x, ++v) {
          const bool in = z >= 0 && z < n[0] && y >= 0 && y < n[1] && x >= 0 && x < n[2];
          ASSERT_EQ(views[i].data[v], in ? b.data[i][static_cast<std::size_t>((z * n[1] + y) * n[2] + x)] : 99);
        }
  }
}

TEST(crop_by_class, does_not_depend_on_the_batch) {
  const batch b;
  const auto chain = [](std::span<const class_index* const> cases) {
    return resample{} |
           crop_by_class{.rule = oversampled_patch{.size = {9, 12, 16}, .probability = .5f}, .cases = cases} |
           random_affine{.rotate_deg = 10} | random_elastic{.control_spacing_mm = 10, .max_displacement_mm = 2};
  };
  const auto together = plan(chain(b.cases), b.grids, {.seed = 2, .sample_ids = b.ids});
  for (std::size_t i = 0; i < 4; ++i) {
    const auto alone =
        plan(chain({&b.cases[i], 1}), std::vector{b.grids[i]}, {.seed = 2, .sample_ids = {&b.ids[i], 1}});
    EXPECT_EQ(alone.drawn<1>(0).parameters.start, together.drawn<1>(i).parameters.start);
    EXPECT_EQ(alone.drawn<1>(0).parameters.voxel, together.drawn<1>(i).parameters.voxel);
    EXPECT_TRUE(identical(alone.output_grid(0), together.output_grid(i)));
  }
}

TEST(crop_by_class, comes_back_by_inverse_of) {
  const batch b;
  const extent3 size{9, 12, 16};
  const auto out = plan(crop_by_class{.rule = class_balanced_patch{.size = size}, .cases = b.cases} | random_flip{},
                        b.labels, {.sample_ids = b.ids});
  const auto grids = out.output_grids();
  std::vector<std::uint8_t> patches(4 * 9 * 12 * 16);
  run(cpu{}, out, labels(b.labels, batch_views(patches.data(), std::span<const grid>(grids))));
  for (std::size_t i = 0; i < 4; ++i) {
    const auto alone =
        plan(crop_by_class{.rule = class_balanced_patch{.size = size}, .cases = {&b.cases[i], 1}} | random_flip{},
             std::vector{b.grids[i]}, {.sample_ids = {&b.ids[i], 1}});
    const auto back =
        plan(inverse_of(alone) | sampling<linear, constant, nearest>{.label_outside = 99}, alone.output_grids());
    std::vector<std::uint8_t> whole(b.data[i].size());
    run(cpu{}, back,
        labels(contiguous<const std::uint8_t>(patches.data() + i * 9 * 12 * 16, alone.output_grid(0)),
               contiguous(whole.data(), b.grids[i])));
    std::size_t covered = 0;
    for (std::size_t v = 0; v < whole.size(); ++v)
      if (whole[v] != 99) {
        ASSERT_EQ(whole[v], b.data[i][v]);
        ++covered;
      }
    EXPECT_EQ(covered, 9u * 12 * 16);
    EXPECT_NE(whole[static_cast<std::size_t>(alone.drawn<0>(0).parameters.voxel)], 99);
  }
}

TEST(crop_by_class, takes_the_middle_in_evaluation) {
  const batch b;
  const auto p = plan(resample{} | crop_by_class{.rule = class_balanced_patch{.size = {9, 12, 16}}}, b.grids,
                      {.evaluation = true});
  const auto whole = plan(resample{} | center_crop{.size = {9, 12, 16}}, b.grids);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(identical(p.output_grid(i), whole.output_grid(i)));
}

// Geometry that nothing can be traced back through: every row is that of y = 0.
struct flatten {
  static constexpr std::string_view name = "flatten";
  geometry_step step(const grid& input, const site&) const {
    geometry_step result{input, affine_map{}};
    result.pull.linear[1][1] = 0;
    return result;
  }
};

TEST(crop_by_class, says_what_is_wrong) {
  const batch b;
  const extent3 size{4, 4, 4};
  const settings s{.sample_ids = b.ids};
  const auto with = [&](const crop_by_class& op) { plan(op, b.grids, s); };
  EXPECT_SAYS(with({.rule = class_balanced_patch{.size = size}}),
              "crop_by_class: 0 indexes for 4 samples; one of index_classes is needed for each");
  EXPECT_SAYS(with({.rule = class_balanced_patch{.size = size}, .cases = {b.cases.data(), 1}}),
              "1 index for 4 samples");
  const std::vector<std::uint8_t> flags(3);
  EXPECT_SAYS(with({.rule = class_balanced_patch{.size = size}, .cases = b.cases, .forced = flags}),
              "crop_by_class: 3 forced flags for 4 samples");
  EXPECT_SAYS(with({.cases = b.cases}), "crop_by_class: sample 0 (id 7): patch (0, 0, 0) must be positive");
  auto cases = b.cases;
  cases[2] = nullptr;
  EXPECT_SAYS(with({.rule = class_balanced_patch{.size = size}, .cases = cases}),
              "crop_by_class: sample 2 (id 3): null pointer for an index");
  cases[2] = cases[1];
  EXPECT_SAYS(
      with({.rule = class_balanced_patch{.size = size}, .cases = cases}),
      "crop_by_class: sample 2 (id 3): the index is of a label map of (40, 33, 26), the volume has (20, 33, 41)");
  const std::vector<float> two{1, 2}, negative{1, -2, 1, 1, 1}, zero(5, 0.0f);
  EXPECT_SAYS(with({.rule = class_balanced_patch{.size = size, .ratios = two}, .cases = b.cases}),
              "crop_by_class: sample 0 (id 7): 2 ratios for 5 classes");
  EXPECT_SAYS(with({.rule = class_balanced_patch{.size = size, .ratios = negative}, .cases = b.cases}),
              "ratio -2 of class 1 must not be negative");
  EXPECT_SAYS(with({.rule = class_balanced_patch{.size = size, .ratios = zero}, .cases = b.cases}), "every ratio is 0");
  EXPECT_SAYS(with({.rule = pos_neg_patch{.size = size}, .cases = b.cases}), "2 ratios for 5 classes");
  EXPECT_SAYS(with({.rule = oversampled_patch{.size = size, .probability = 1.5f}, .cases = b.cases}),
              "probability 1.5 is not in [0, 1]");
  EXPECT_SAYS(with({.rule = oversampled_patch{.size = size, .margin = {0, -1, 0}}, .cases = b.cases}),
              "margin (0, -1, 0) must not be negative");
  EXPECT_SAYS(plan(flatten{} | crop_by_class{.rule = class_balanced_patch{.size = size}, .cases = b.cases}, b.grids, s),
              "crop_by_class: sample 0 (id 7): the map from its input to the source has determinant 0");

  const view<const std::uint8_t> none{nullptr, b.grids[0], {1, 1, 1}};
  EXPECT_SAYS(index_classes(cpu{}, label_classes(none, 5)), "label_classes: sample 0: null pointer");
  EXPECT_SAYS(index_classes(cpu{}, label_classes(b.labels, 0)), "label_classes: classes 0 must be in 1..1024");
  const auto large = contiguous(b.data[0].data(), volume(2000, 2000, 2000));
  EXPECT_SAYS(index_classes(cpu{}, label_classes(large, 2)),
              "index_classes: sample 0: extents (2000, 2000, 2000) are more than 4294967295 voxels");
}

// The loop of docs/operations.md: a step gives the same patches alone and together, whatever the threads.
TEST(class_balanced_training, gives_the_patches_of_any_batch) {
  const batch b;
  std::vector<std::vector<std::int16_t>> voxels;
  std::vector<support::training_case> cases;
  for (std::size_t i = 0; i < 4; ++i) {
    voxels.emplace_back(b.data[i].size());
    for (std::size_t v = 0; v < voxels[i].size(); ++v)
      voxels[i][v] = static_cast<std::int16_t>(static_cast<int>(v * 37 % 801) - 300);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    const view<const std::uint8_t>& segmentation = b.labels[i];
    // [index]
    const auto classes = suture::index_classes(suture::cpu{}, suture::label_classes(segmentation, 3))[0];
    // [/index]
    cases.push_back({contiguous<const std::int16_t>(voxels[i].data(), b.grids[i]), segmentation, classes});
  }
  const std::vector<std::uint64_t> ids{0, 3, 13, 9, 8, 4, 15, 5};
  constexpr std::size_t V = 16 * 20 * 24;
  const extent3 size{16, 20, 24};
  std::vector<half> images(8 * V), image(V);
  std::vector<std::uint8_t> targets(8 * V), target(V);
  support::training_step(cpu{.threads = 4}, cases, 4, ids, 2, size, images.data(), targets.data());
  int foreground = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    support::training_step(cpu{.threads = 1}, cases, 4, {&ids[i], 1}, 2, size, image.data(), target.data());
    const grid g{.extents = size};
    EXPECT_EQ(digest(contiguous<const half>(image.data(), g)),
              digest(contiguous<const half>(images.data() + i * V, g)));
    EXPECT_TRUE(std::equal(target.begin(), target.end(), targets.begin() + static_cast<std::ptrdiff_t>(i * V)));
    for (const std::uint8_t t : target) foreground += t == 1 || t == 2 ? 1 : 0;
  }
  EXPECT_GT(foreground, 0);
}

}  // namespace
