// SPDX-License-Identifier: Apache-2.0
// What resampling as nnU-Net does needs: no overshoot (against scikit-image), labels by majority, slices one by one,
// the axis and the target spacing it chooses (worked out by hand and against naive definitions).
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <suture/fit/target_spacing.hpp>
#include <suture/ops/geometry/separate_axis.hpp>
#include <suture/ops/value/limit_to_range.hpp>
#include <suture/sample/majority.hpp>
#include <suture/suture.hpp>

#include "ref/nnunet.hpp"
#include "support/expect_says.hpp"
#include "support/oracle_geometry.hpp"

namespace {

using namespace suture;

// One image through a pipeline.
template <class Out, class In, class Pipeline>
std::vector<Out> image_through(const Pipeline& p, const std::vector<In>& values, const grid& g) {
  const std::vector<view<const In>> in{contiguous(values.data(), g)};
  const auto planned = plan(p, in);
  std::vector<Out> out(static_cast<std::size_t>(planned.output_grid(0).voxels()));
  const std::vector<view<Out>> to{contiguous(out.data(), planned.output_grid(0))};
  run(cpu{}, planned, image(in, to));
  return out;
}
template <class T, class Pipeline>
std::vector<T> labels_through(const Pipeline& p, const std::vector<T>& values, const grid& g) {
  const std::vector<view<const T>> in{contiguous(values.data(), g)};
  const auto planned = plan(p, in);
  std::vector<T> out(static_cast<std::size_t>(planned.output_grid(0).voxels()));
  const std::vector<view<T>> to{contiguous(out.data(), planned.output_grid(0))};
  run(cpu{}, planned, labels(in, to));
  return out;
}

// [overshoot]
// The range of each source limits what is interpolated of it.
std::vector<float> without_overshoot(const std::vector<float>& values, const grid& g, const extent3& extents) {
  const std::vector<view<const float>> cts{contiguous(values.data(), g)};
  std::vector<intensity_range> ranges(cts.size());
  fit(cpu{}, fit_range{}, cts, everything{}, std::span(ranges));
  const auto pipeline = resize{.extents = extents} | sampling<cubic_bspline, edge>{} | limit_to_range{.fitted = ranges};
  return image_through<float>(pipeline, values, g);
}
// [/overshoot]

TEST(limit_to_range, resizes_as_scikit_image_with_clip) {
  const auto is_cubic = [](const support::oracle_case& c) {
    return c.has("order", 3) && c.has("mode", "edge") && c.has("clip", true) && !c.has("anti_aliasing", true);
  };
  support::for_each_oracle(support::calls("skimage.transform.resize", is_cubic), [](const support::oracle_case& c) {
    const auto x = c.input<float>("x");
    const auto y = c.output<float>("y");
    const grid g{.extents = {x.shape[0], x.shape[1], x.shape[2]}};
    const auto made = without_overshoot(x.values, g, {y.shape[0], y.shape[1], y.shape[2]});
    const auto [low, high] = std::minmax_element(x.values.begin(), x.values.end());
    ASSERT_EQ(made.size(), y.values.size());
    for (std::size_t i = 0; i < made.size(); ++i) ASSERT_NEAR(made[i], y.values[i], 3e-5f * (*high - *low)) << i;
  });
}

TEST(limit_to_range, keeps_every_sample_in_its_own_range) {
  // A step: the spline overshoots on both sides.
  std::vector<float> step(2 * 20);
  for (std::size_t i = 0; i < step.size(); ++i) step[i] = (i % 20 < 10 ? 1.0f : 5.0f) + (i < 20 ? 0.0f : 100.0f);
  const grid g{.extents = {1, 1, 20}};
  const std::vector<grid> grids(2, g);
  const auto in = batch_views(static_cast<const float*>(step.data()), grids);
  const auto free = image_through<float>(resize{{1, 1, 47}} | sampling<cubic_bspline, edge>{},
                                         std::vector<float>(step.begin(), step.begin() + 20), g);
  EXPECT_LT(*std::min_element(free.begin(), free.end()), 0.95f);
  EXPECT_GT(*std::max_element(free.begin(), free.end()), 5.05f);

  std::vector<intensity_range> ranges(2);
  fit(cpu{}, fit_range{}, in, everything{}, std::span(ranges));
  const auto planned = plan(resize{{1, 1, 47}} | sampling<cubic_bspline, edge>{} | limit_to_range{ranges}, in);
  std::vector<float> out(2 * 47);
  const auto to = batch_views(out.data(), planned.output_grids());
  run(cpu{}, planned, image(in, to));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const float base = i < 47 ? 0.0f : 100.0f;
    ASSERT_GE(out[i], base + 1) << i;
    ASSERT_LE(out[i], base + 5) << i;
  }
  EXPECT_EQ(*std::min_element(out.begin(), out.begin() + 47), 1);
  EXPECT_EQ(*std::max_element(out.begin(), out.begin() + 47), 5);
}

TEST(limit_to_range, degenerate_and_bad_input) {
  const voxel at{};
  const intensity_range none{.status = fit_status::empty};
  EXPECT_EQ((limit_to_range{{&none, 1}}.prepare({"limit_to_range"})(-17, at)), -17);
  intensity_range r{.low = -0.0, .high = 2, .status = fit_status::ok};
  const auto limited = limit_to_range{{&r, 1}}.prepare({"limit_to_range"});
  EXPECT_EQ(limited(3, at), 2);
  EXPECT_FALSE(std::signbit(limited(-3, at)));
  EXPECT_EQ(limited(std::numeric_limits<float>::quiet_NaN(), at), 0);
  EXPECT_SAYS((limit_to_range{{}}.prepare({"limit_to_range"})), "no fitted results");
  EXPECT_SAYS((limit_to_range{{&r, 1}, 0}.prepare({"limit_to_range"})), "channels 0");
}

TEST(majority, is_nnunets_rule_on_random_maps) {
  std::mt19937 random(3);
  const extent3 sizes[] = {{9, 11, 13}, {1, 16, 17}, {15, 1, 5}, {127, 2, 3}, {1, 1, 1}};
  for (const extent3& n : sizes)
    for (const extent3& to : {extent3{7, 19, 23}, extent3{18, 22, 26}, extent3{1, 5, 4}}) {
      const grid g{.extents = n};
      // Blobs of five labels, one of them negative, as nnU-Net marks what is outside.
      std::vector<std::int16_t> map(static_cast<std::size_t>(g.voxels()));
      for (std::size_t i = 0; i < map.size(); ++i)
        map[i] =
            i > 0 && random() % 3 != 0 ? map[i - 1] : static_cast<std::int16_t>(static_cast<int>(random() % 5) - 1);
      const reference::volume in({n[0], n[1], n[2]}, map);
      reference::volume doubt;
      const auto expected = reference::nnunet_labels(in, {to[0], to[1], to[2]}, -1, &doubt);
      const auto made = labels_through(resize{to} | sampling<linear, edge, majority>{}, map, g);
      for (std::size_t i = 0; i < made.size(); ++i)
        if (doubt.values[i] == 0) {
          ASSERT_EQ(made[i], expected.values[i]) << i << " of " << to << " from " << n;
        }
    }
}

TEST(majority, exactly_half_is_enough_and_the_higher_label_wins) {
  const grid g{.extents = {1, 1, 2}};
  const auto halved = resize{{1, 1, 1}} | sampling<linear, edge, majority>{};
  EXPECT_EQ(labels_through<std::uint8_t>(halved, {3, 0}, g)[0], 3);
  EXPECT_EQ(labels_through<std::uint8_t>(halved, {3, 8}, g)[0], 8);
  EXPECT_EQ(labels_through<std::uint8_t>(halved, {8, 3}, g)[0], 8);
  EXPECT_EQ(labels_through<std::uint8_t>(halved, {7, 7}, g)[0], 7);
  // The fractions along y and z are thirds, whose weights are rounded; the half along x stays a half.
  const grid thirds{.extents = {2, 2, 2}};
  const auto made = labels_through<std::uint8_t>(resize{{3, 3, 1}} | sampling<linear, edge, majority>{},
                                                 {5, 0, 5, 0, 5, 0, 5, 0}, thirds);
  EXPECT_EQ(made, std::vector<std::uint8_t>(9, 5));
  // Three labels and none with a half: the background, where vote would name one.
  const grid quad{.extents = {1, 2, 2}};
  EXPECT_EQ(labels_through<std::uint8_t>(resize{{1, 1, 1}} | sampling<linear, edge, majority>{}, {1, 2, 3, 4}, quad)[0],
            0);
  EXPECT_EQ(labels_through<std::uint8_t>(resize{{1, 1, 1}} | sampling<linear, edge, vote>{}, {1, 2, 3, 4}, quad)[0], 1);
}

TEST(majority, what_lies_outside_has_its_weight) {
  const grid g{.extents = {1, 1, 1}};
  const auto moved = [](double shift) {
    return affine_matrix{.translation = {0, 0, shift}} |
           sampling<linear, constant, majority>{.border = {}, .label_outside = 9};
  };
  EXPECT_EQ(labels_through<std::uint8_t>(moved(.25), {4}, g)[0], 4);
  EXPECT_EQ(labels_through<std::uint8_t>(moved(.5), {4}, g)[0], 9);
  EXPECT_EQ(labels_through<std::uint8_t>(moved(-.75), {4}, g)[0], 9);
}

TEST(separate_axis, follows_the_rule) {
  EXPECT_EQ(separate_axis({5, 1, 1}, {1, 1, 1}), 0);
  EXPECT_EQ(separate_axis({3, 1, 1}, {1, 1, 1}), -1);  // more than three times, not three times
  EXPECT_EQ(separate_axis({1, 1, 1}, {1, 4, 1}), 1);   // then the target decides
  EXPECT_EQ(separate_axis({.24, 1.25, 1.25}, {1, 1, 1}), -1);
  EXPECT_EQ(separate_axis({.24, 1.25, 1.25}, {1, 1, 9}), -1);  // the source has decided
  EXPECT_EQ(separate_axis({5, 5, 1}, {1, 1, 9}), -1);
  EXPECT_EQ(separate_axis({5, .7, .7}, {1, 1, 1}), 0);
  EXPECT_EQ(separate_axis({1, 1, 1}, {.5, .5, 2}), 2);
  EXPECT_EQ(separate_axis({1, 1, 2.5}, {1, 1, 1}, 2), 2);
  std::mt19937 random(5);
  const double choices[] = {.7, .7, 1, 1.5, 3, 5};
  for (int i = 0; i < 500; ++i) {
    reference::point s, t;
    for (std::size_t k = 0; k < 3; ++k) {
      s[k] = choices[random() % 6];
      t[k] = choices[random() % 6];
    }
    ASSERT_EQ(separate_axis({s[0], s[1], s[2]}, {t[0], t[1], t[2]}), reference::nnunet_separate_axis(s, t));
  }
  EXPECT_SAYS(separate_axis({0, 1, 1}, {1, 1, 1}), "spacing");
  EXPECT_SAYS(separate_axis({1, 1, 1}, {1, 1, 1}, .5), "threshold");
}

TEST(separate_axis, nearest_slices_are_those_of_the_half_pixel_map) {
  EXPECT_EQ(nearest_slices(3, 3), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(nearest_slices(4, 2), (std::vector<std::int64_t>{1, 3}));  // ties go up
  EXPECT_EQ(nearest_slices(2, 5), (std::vector<std::int64_t>{0, 0, 1, 1, 1}));
  EXPECT_EQ(nearest_slices(1, 4), (std::vector<std::int64_t>(4, 0)));
  for (const std::int64_t from : {1, 15, 16, 17, 127})
    for (const std::int64_t to : {1, 5, 16, 23, 127, 300}) {
      const auto made = nearest_slices(from, to);
      ASSERT_EQ(made.size(), static_cast<std::size_t>(to));
      for (std::int64_t k = 0; k < to; ++k)
        ASSERT_EQ(
            made[static_cast<std::size_t>(k)],
            std::clamp<std::int64_t>(
                reference::round_half_up(reference::half_pixel(static_cast<double>(k), from, to) + 1e-9), 0, from - 1));
    }
  EXPECT_SAYS(nearest_slices(0, 3), "0 slices");
}

TEST(separate_axis, slices_keep_their_place) {
  grid g{.extents = {4, 5, 6}, .spacing = {5, 1, 2}, .origin = {1, 2, 3}};
  g.direction = {{{0.8, -0.6, 0}, {0.6, 0.8, 0}, {0, 0, 1}}};
  std::vector<int> values(120);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i);
  const auto whole = contiguous(values.data(), g);
  for (int axis = 0; axis < 3; ++axis) {
    const std::vector<std::int64_t> which{3, 0, 3};
    const auto parts = slices(whole, axis, which);
    ASSERT_EQ(parts.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      extent3 first{0, 0, 0};
      first[axis] = which[i];
      EXPECT_EQ(*parts[i].data, (first[0] * 5 + first[1]) * 6 + first[2]);
      EXPECT_EQ(parts[i].grid.extents[axis], 1);
      const point3 there = g.index_to_physical()(vec_cast<double>(first));
      for (int k = 0; k < 3; ++k) EXPECT_NEAR(parts[i].grid.origin[k], there[k], 1e-12);
    }
  }
  const std::vector<std::int64_t> beyond{4};
  EXPECT_SAYS(slices(whole, 0, beyond), "slice 4 of 4");
  EXPECT_SAYS(slices(whole, 3, beyond), "axis 3");
}

cohort_fingerprint cohort(const std::vector<point3>& spacings, const extent3& shape) {
  cohort_fingerprint f;
  for (std::size_t i = 0; i < spacings.size(); ++i)
    f.add({"case " + std::to_string(i), shape, spacings[i]}, {value_counts({{1, 1}})});
  return f;
}

TEST(target_spacing, is_nnunets) {
  // The median where nothing is anisotropic, or too few voxels to matter.
  EXPECT_EQ(target_spacing(cohort({{1, 1, 1}, {2, 1, 3}, {4, 1.5, 2}}, {100, 200, 200})), (point3{2, 1, 2}));
  EXPECT_EQ(target_spacing(cohort({{5, 1, 1}, {5, 1, 1}}, {100, 200, 200})), (point3{5, 1, 1}));
  // 10th percentile of 3, 5, 6, 7, 8: 3 + 0.4 (5 - 3).
  const std::vector<point3> thick{{5, 1, 1}, {7, 1, 1}, {3, 1, 1}, {8, 1, 1}, {6, 1, 1}};
  const point3 target = target_spacing(cohort(thick, {40, 200, 220}));
  EXPECT_NEAR(target[0], 3.8, 1e-12);
  EXPECT_EQ(target[1], 1);
  // But never finer than the other axes.
  const std::vector<point3> mixed{{.5, 1, 1.2}, {5, 1, 1.2}, {6, 1, 1.2}};
  EXPECT_NEAR(target_spacing(cohort({{.5, 1, 1.6}, {5, 1, 1.6}, {6, 1, 1.6}}, {40, 200, 220}))[0], 1.60001, 1e-9);
  EXPECT_NEAR(target_spacing(cohort(mixed, {40, 200, 220}))[0], 1.4, 1e-12);  // 0.5 + 0.2 (5 - 0.5)
  EXPECT_SAYS(target_spacing(cohort_fingerprint{}), "without cases");
  EXPECT_SAYS(target_spacing(cohort(thick, {40, 200, 220}), .5), "anisotropy");
}

// Thick slices as nnU-Net resamples them: the slices are the samples of one plan.
std::vector<float> slice_by_slice(const view<const float>& ct, const extent3& extents) {
  const int axis = separate_axis(ct.grid.spacing, {1, 1, 1});  // 0: across the slices
  const grid target = resize{.extents = extents}.step(ct.grid, {"resize"}).output;
  std::vector<float> voxels(static_cast<std::size_t>(target.voxels()));

  std::vector<std::int64_t> every(static_cast<std::size_t>(extents[axis]));
  std::iota(every.begin(), every.end(), 0);
  const auto from = slices(ct, axis, nearest_slices(ct.grid.extents[axis], extents[axis]));
  const auto to = slices(contiguous(voxels.data(), target), axis, every);

  std::vector<intensity_range> ranges(from.size());
  fit(cpu{}, fit_range{}, from, everything{}, std::span(ranges));
  extent3 within = extents;
  within[axis] = 1;
  const auto pipeline =
      resize{.extents = within} | sampling<cubic_bspline, edge, majority>{} | limit_to_range{.fitted = ranges};
  run(cpu{}, plan(pipeline, from), image(from, to));
  return voxels;
}

TEST(separate_axis, slices_are_resampled_as_nnunet_does) {
  const grid g{.extents = {6, 15, 17}, .spacing = {6, 1.5, 1.5}};
  std::mt19937 random(6);
  std::vector<float> values(static_cast<std::size_t>(g.voxels()));
  for (float& v : values) v = static_cast<float>(random() % 4000) - 1000;
  const auto made = slice_by_slice(contiguous<const float>(values.data(), g), {36, 23, 26});
  const auto expected = reference::nnunet_image({{6, 15, 17}, values}, {36, 23, 26}, 0);
  for (std::size_t i = 0; i < made.size(); ++i) ASSERT_NEAR(made[i], expected.values[i], 3e-5 * 4000) << i;
}

// Sagittal and coronal scans: slices across x or y lie among each other in memory.
TEST(separate_axis, slices_across_any_axis) {
  const extent3 n{6, 15, 17}, m{36, 23, 26};
  std::mt19937 random(6);
  std::vector<float> values(6 * 15 * 17);
  for (float& v : values) v = static_cast<float>(random() % 4000) - 1000;
  const grid g{.extents = n, .spacing = {6, 1.5, 1.5}};
  const auto expected = slice_by_slice(contiguous<const float>(values.data(), g), m);
  for (const extent3& order : {extent3{1, 0, 2}, extent3{1, 2, 0}}) {  // array axis k of the other is order[k] of this
    grid other;
    extent3 extents{}, stride{}, made_stride{};
    const extent3 dense{15 * 17, 17, 1}, made_dense{23 * 26, 26, 1};
    for (int k = 0; k < 3; ++k) {
      const auto from = static_cast<int>(order[k]);
      other.extents[k] = n[from];
      other.spacing[k] = g.spacing[from];
      extents[k] = m[from];
      stride[k] = dense[from];
      made_stride[k] = made_dense[from];
    }
    std::vector<float> turned;
    for (std::int64_t z = 0; z < other.extents[0]; ++z)
      for (std::int64_t y = 0; y < other.extents[1]; ++y)
        for (std::int64_t x = 0; x < other.extents[2]; ++x)
          turned.push_back(values[static_cast<std::size_t>(z * stride[0] + y * stride[1] + x * stride[2])]);
    const auto made = slice_by_slice(contiguous<const float>(turned.data(), other), extents);
    ASSERT_EQ(made.size(), expected.size());
    std::size_t i = 0;
    for (std::int64_t z = 0; z < extents[0]; ++z)
      for (std::int64_t y = 0; y < extents[1]; ++y)
        for (std::int64_t x = 0; x < extents[2]; ++x, ++i)
          ASSERT_NEAR(made[i],
                      expected[static_cast<std::size_t>(z * made_stride[0] + y * made_stride[1] + x * made_stride[2])],
                      .02)
              << i;
  }
}

// So do those of several channels, one behind the other.
TEST(separate_axis, slices_of_several_channels) {
  const grid g{.extents = {4, 5, 6}};
  std::vector<float> values(3 * 120), out(3 * 120, -1);
  std::iota(values.begin(), values.end(), 0.0f);
  const std::int64_t every[] = {0, 1, 2, 3};
  const auto from = slices(contiguous<const float>(values.data(), g, 3), 0, every);
  const auto to = slices(contiguous(out.data(), g, 3), 0, every);
  run(cpu{}, plan(identity{}, from), image(from, to));
  EXPECT_EQ(out, values);
}

}  // namespace
