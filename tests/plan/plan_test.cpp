// SPDX-License-Identifier: Apache-2.0
// What a plan refuses, naming the operation, the sample and the value, and what it keeps or draws.
#include <gtest/gtest.h>
#include <suture/suture.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <set>

#include "support/expect_says.hpp"
#include "support/grid_of.hpp"

namespace {

using namespace suture;
using support::grid_of;

const std::uint64_t two_ids[] = {11, 12};

TEST(plan, an_empty_batch) {
  expect_parts(message([] { plan(flip{}, std::vector<grid>{}); }), {"plan", "empty"});
}

TEST(plan, extents_that_are_not_positive) {
  expect_parts(message([] {
                 plan(flip{}, std::vector<grid>{grid_of(4, 4, 4), grid_of(4, 0, 4)});
               }),
               {"plan", "sample 1", "(4, 0, 4)"});
  expect_parts(message([] { plan(flip{}, std::vector<grid>{grid_of(4, 4, -3)}); }), {"sample 0", "(4, 4, -3)"});
}

TEST(plan, extents_whose_product_overflows) {
  const std::int64_t big = std::int64_t{1} << 40;
  expect_parts(message([&] { plan(flip{}, std::vector<grid>{grid_of(big, big, big)}); }),
               {"sample 0", "more than 2^56 voxels"});
}

TEST(plan, spacing_that_is_not_positive_or_not_a_number) {
  for (double bad : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    grid g = grid_of(4, 4, 4);
    g.spacing[1] = bad;
    expect_parts(message([&] { plan(flip{}, std::vector<grid>{grid_of(2, 2, 2), g}); }), {"sample 1", "spacing"});
  }
}

TEST(plan, direction_that_is_singular_or_not_orthonormal) {
  grid g = grid_of(4, 4, 4);
  g.direction = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 0}}};
  expect_parts(message([&] { plan(flip{}, std::vector<grid>{g}); }),
               {"sample 0", "orthonormal", "column 2 has length 0"});
  g.direction = {{{1, 0.2, 0}, {0, 1, 0}, {0, 0, 1}}};
  expect_parts(message([&] { plan(flip{}, std::vector<grid>{g}); }), {"columns 0 and 1", "0.2"});
  g.direction = {{{1, 0, 0}, {0, .6, .8}, {0, .8, .6}}};
  expect_parts(message([&] { plan(flip{}, std::vector<grid>{g}); }), {"orthonormal", "columns 1 and 2", "0.96"});
}

TEST(plan, wrong_count_of_sample_ids) {
  const std::vector<grid> grids{grid_of(4, 4, 4), grid_of(4, 4, 4), grid_of(4, 4, 4)};
  expect_parts(message([&] { plan(random_flip{}, grids, {.sample_ids = two_ids}); }), {"2 sample ids", "3 samples"});
  expect_parts(message([&] { plan(random_flip{}, grids, {}); }), {"0 sample ids", "3 samples"});
  plan(random_flip{}, grids, {.evaluation = true});
  plan(flip{}, grids, {});
}

TEST(plan, two_samples_of_one_id) {
  const std::vector<grid> grids(4, grid_of(4, 4, 4));
  const std::uint64_t ids[] = {5, 1ull << 63, 6, 1ull << 63};
  EXPECT_SAYS(
      plan(flip{} | gaussian_noise{}, grids, {.sample_ids = ids}),
      "suture: plan: samples 1 and 3 have the same id 9223372036854775808, so they would get the same draws; give "
      "each an id of its own, or set same_ids");
  // What draws nothing cares for no id.
  plan(flip{}, grids, {.sample_ids = ids});
  plan(gaussian_noise{}, grids, {.sample_ids = ids, .evaluation = true});
  const auto asked_for = plan(gaussian_noise{.sigma = {0, 1}}, grids, {.sample_ids = ids, .same_ids = true});
  const auto sigma = [&](std::size_t i) { return asked_for.drawn<0>(i).parameters.sigma; };
  EXPECT_EQ(sigma(1), sigma(3));
  EXPECT_NE(sigma(0), sigma(1));
}

TEST(plan, probability_outside_zero_to_one) {
  const std::vector<grid> grids{grid_of(4, 4, 4), grid_of(4, 4, 4)};
  for (float bad : {-0.1f, 1.5f, std::numeric_limits<float>::quiet_NaN()})
    expect_parts(message([&] { plan(gaussian_noise{.probability = bad}, grids, {.sample_ids = two_ids}); }),
                 {"gaussian_noise", "probability"});
}

TEST(plan, images_of_a_sample_share_geometry_and_draw_values_of_their_own) {
  const std::vector<grid> grids{grid_of(4, 4, 4), grid_of(4, 4, 4)};
  const auto augment = random_affine{.rotate_deg = 15} | gaussian_noise{.sigma = {0, 1}};
  const auto of_image = [&](std::uint32_t image) {
    return plan(augment, grids, {.seed = 5, .sample_ids = two_ids, .image = image});
  };
  const auto plain = plan(augment, grids, {.seed = 5, .sample_ids = two_ids});
  const auto first = of_image(0), second = of_image(1), third = of_image(2);
  for (std::size_t i = 0; i < grids.size(); ++i) {
    const auto sigma = [&](const auto& planned) { return planned.template drawn<1>(i).parameters.sigma; };
    for (const auto* other : {&first, &second, &third})
      EXPECT_EQ(plain.template drawn<0>(i).parameters.rotate_deg, other->template drawn<0>(i).parameters.rotate_deg);
    EXPECT_EQ(sigma(plain), sigma(first));
    EXPECT_NE(sigma(first), sigma(second));
    EXPECT_NE(sigma(first), sigma(third));
    EXPECT_NE(sigma(second), sigma(third));
  }
}

// What is off on a sample is not drawn for it, but can be asked for; what is wrong with a recipe shows on the first
// sample all the same.
TEST(plan, keeps_or_draws_again_what_was_drawn) {
  constexpr std::size_t n = 37;
  const std::vector<grid> grids(n, grid_of(30, 40, 50));
  std::vector<std::uint64_t> ids(n);
  for (std::size_t i = 0; i < n; ++i) ids[i] = 500 + 3 * i;
  const random_affine turn{.rotate_deg = 30, .scale = {.8f, 1.25f}, .translate = 4, .probability = .4f};
  const random_crop cut{.size = {16, 16, 16}, .probability = .6f};
  const random_gaussian_blur blur{.probability = .3f};
  const auto planned = plan(turn | cut | blur, grids, {.seed = 5, .epoch = 2, .sample_ids = ids});
  int acted = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const site here{"test", static_cast<std::int64_t>(i)};
    draws of_turn(5, 2, ids[i], random_affine::kind << 4), of_cut(5, 2, ids[i], random_crop::kind << 4),
        of_blur(5, 2, ids[i], random_gaussian_blur::kind << 4);
    const bool turns = of_turn.bernoulli(.4f), cuts = of_cut.bernoulli(.6f), blurs = of_blur.bernoulli(.3f);
    const affine a = turn.draw(of_turn, grids[i], here);
    const crop c = cut.draw(of_cut, grids[i], here);
    EXPECT_EQ(planned.drawn<0>(i).on, turns);
    EXPECT_EQ(planned.drawn<0>(i).parameters.rotate_deg, a.rotate_deg);
    EXPECT_EQ(planned.drawn<0>(i).parameters.translate, a.translate);
    EXPECT_EQ(planned.drawn<1>(i).on, cuts);
    EXPECT_EQ(planned.drawn<1>(i).parameters.start, c.start);
    EXPECT_EQ(planned.output_grid(i).extents, cuts ? cut.size : grids[i].extents);
    const auto b = blur.draw(of_blur, here);
    EXPECT_EQ(planned.drawn<2>(i).on, blurs);
    EXPECT_EQ(planned.drawn<2>(i).parameters.sigma[7][2], b.sigma[7][2]);
    EXPECT_EQ(get<0>(planned.sample(i).stage_functors).on, blurs ? 1u : 0u);
    if (blurs) {
      EXPECT_EQ(get<0>(planned.sample(i).stage_functors).functor.sigmas[7][2], b.sigma[7][2]);
    }
    acted += turns + cuts + blurs;
  }
  EXPECT_GT(acted, 20);
  expect_parts(message([&] {
                 plan(random_gamma{.range = {-1, 2}, .probability = 0}, grids, {.sample_ids = ids});
               }),
               {"random_gamma", "sample 0", "range"});
}

template <class T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

// The grid that geometry is drawn on is not kept: it is made once more from all geometry before it.
TEST(plan, draws_again_on_the_grid_so_far) {
  constexpr std::size_t n = 37;
  std::vector<grid> grids(n, grid_of(30, 40, 50));
  std::vector<std::uint64_t> ids(n);
  std::vector<extent3> starts(n);
  for (std::size_t i = 0; i < n; ++i) {
    ids[i] = 40 + i;
    starts[i] = {1, 2, static_cast<std::int64_t>(i % 5)};
    grids[i].extents[0] += static_cast<std::int64_t>(i % 3);
  }
  const random_crop cut{.size = {20, 20, 20}, .probability = .5f}, last{.size = {8, 8, 8}, .probability = .7f};
  const auto before = crop_at{.starts = starts, .size = {29, 36, 44}} | resize{.extents = {40, 30, 44}} | cut |
                      random_rot90{.probability = .5f} | random_flip{.probability = .6f};
  const settings s{.seed = 9, .epoch = 4, .sample_ids = ids};
  const auto whole = plan(before | last, grids, s);
  const auto part = plan(before, grids, s);
  for (std::size_t i = 0; i < n; ++i) {
    draws random(9, 4, ids[i], (random_crop::kind << 4) + 1);
    EXPECT_EQ(whole.drawn<5>(i).on, random.bernoulli(.7f));
    EXPECT_EQ(whole.drawn<5>(i).parameters.start, last.draw(random, part.output_grid(i), {"test"}).start) << i;
  }
}

// What was chosen beforehand is the plan's from then on; the starts themselves may go.
TEST(plan, keeps_what_was_chosen) {
  const std::vector<grid> grids(3, grid_of(30, 40, 50));
  const std::vector<std::uint64_t> ids{5, 6, 7};
  const std::vector<extent3> starts{{1, 2, 3}, {0, 9, 4}, {10, 0, 0}};
  const random_crop last{.size = {8, 8, 8}};
  const settings s{.seed = 9, .sample_ids = ids};
  const auto from = [&](std::span<const extent3> given) {
    return plan(crop_at{.starts = given, .size = {20, 30, 40}} | last, grids, s);
  };
  const auto expected = from(starts);
  std::vector<extent3> mine = starts;
  const auto kept = from(mine);
  mine.assign(3, extent3{1 << 20, 0, 0});
  mine = {};
  const auto copy = kept;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(copy.drawn<0>(i).start, starts[i]);
    EXPECT_EQ(copy.drawn<1>(i).parameters.start, expected.drawn<1>(i).parameters.start);
    EXPECT_TRUE(same_bits(copy.output_grid(i), expected.output_grid(i)));
  }
}

// What picks voxels does without a step what its step does, bit for bit.
template <class Op>
void expect_picked_as_by_step(const Op& op) {
  const site here{"test", 1};
  grid g = grid_of(31, 40, 53);
  g.spacing = {1.5, .8, .7};
  g.origin = {-7, 11, 300};
  g.direction = detail::rotation(0, 20) * detail::rotation(1, -35);
  affine_map map{detail::rotation(2, 10) * detail::rotation(0, -5), {3, .25, -8}};
  const geometry_step step = op.step(g, here);
  const affine_map expected = composed(map, step.pull);
  EXPECT_TRUE(detail::pick(op.picked(g, here), g, g, map));
  EXPECT_TRUE(same_bits(g, step.output)) << Op::name;
  EXPECT_TRUE(same_bits(map, expected)) << Op::name;
}

TEST(plan, voxels_picked_as_by_their_step) {
  const std::vector<extent3> starts{{0, 0, 0}, {3, 0, 41}}, outside{{0, 0, 0}, {-9, 4, 50}};
  expect_picked_as_by_step(crop{.start = {1, 0, 7}, .size = {30, 3, 5}});
  expect_picked_as_by_step(center_crop{.size = {31, 16, 1}});
  expect_picked_as_by_step(crop_at{.starts = starts, .size = {4, 5, 6}}.chosen(1));
  expect_picked_as_by_step(crop_at{.starts = outside, .size = {99, 5, 66}, .may_leave = true}.chosen(1));
  for (int axes = 0; axes < 8; ++axes)
    expect_picked_as_by_step(flip{.axes = {(axes & 4) != 0, (axes & 2) != 0, (axes & 1) != 0}});
}

// What the sample before has left for the next of its grid is what the next would have made.
template <class Pipeline>
void expect_each_as_by_itself(const Pipeline& pipeline) {
  grid first = grid_of(40, 50, 60), second = grid_of(44, 50, 60);
  first.spacing = {1.5, .8, .8};
  first.origin = {-7, 11, 300};
  second.spacing = {1, .8, .8};
  std::vector<grid> batch;
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 45; ++i) {
    batch.push_back(i % 7 < 4 ? first : second);
    ids.push_back(static_cast<std::uint64_t>(900 + i));
  }
  const auto all = plan(pipeline, batch, {.seed = 3, .epoch = 1, .sample_ids = ids});
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto one =
        plan(pipeline, std::span(&batch[i], 1), {.seed = 3, .epoch = 1, .sample_ids = std::span(&ids[i], 1)});
    const auto &a = all.sample(i), &b = one.sample(0);
    EXPECT_TRUE(same_bits(a.map, b.map)) << i;
    EXPECT_TRUE(same_bits(a.extents, b.extents)) << i;
    EXPECT_TRUE(same_bits(get<0>(a.source_functors), get<0>(b.source_functors))) << i;
    EXPECT_TRUE(same_bits(a.controls.to_control, b.controls.to_control)) << i;
    EXPECT_TRUE(same_bits(a.controls.drawn.to_control, b.controls.drawn.to_control)) << i;
    EXPECT_EQ(a.controls.drawn.field.uniform(5), b.controls.drawn.field.uniform(5)) << i;
    EXPECT_EQ(a.controls.on, b.controls.on) << i;
    EXPECT_TRUE(same_bits(all.output_grid(i), one.output_grid(0))) << i;
    EXPECT_TRUE(same_bits(all.geometry(i).to_source, one.geometry(0).to_source)) << i;
    EXPECT_TRUE(same_bits(all.geometry(i).to_deformed, one.geometry(0).to_deformed)) << i;
  }
}

TEST(plan, samples_of_one_grid_as_each_by_itself) {
  const window w{.center = 40, .width = 400};
  const random_affine turn{.rotate_deg = 15, .probability = .5f};
  const random_elastic bend{.control_spacing_mm = 24, .max_displacement_mm = 4, .probability = .5f};
  const resample to_1_mm{.spacing_mm = {1, 1, 1}};
  const resize halved{.extents = {20, 20, 20}};
  const center_crop large{.size = {30, 32, 34}}, small{.size = {16, 16, 16}};
  const random_crop cut{.size = {24, 26, 28}, .probability = .5f};
  const random_flip mirror{.probability = .5f};
  expect_each_as_by_itself(w | to_1_mm | turn | bend | large);
  expect_each_as_by_itself(w | large | turn | cut | bend | small);
  expect_each_as_by_itself(w | bend | mirror | large | halved | small);
  expect_each_as_by_itself(w | resize{.extents = {32, 32, 32}} | bend | cut | small);
}

TEST(plan, recipes_are_looked_at_before_anything_fires) {
  const std::vector<grid> grids{grid_of(4, 4, 4), grid_of(4, 4, 4)};
  expect_parts(message([&] {
                 plan(random_affine{.rotate_deg = {10, -10}, .probability = 0}, grids, {.sample_ids = two_ids});
               }),
               {"random_affine", "sample 0", "rotate_deg [10, -10]"});
  expect_parts(message([&] { plan(random_affine{.scale = 0.2f}, grids, {.evaluation = true}); }),
               {"random_affine", "scale"});
}

TEST(plan, inverted_range) {
  const std::vector<grid> grids{grid_of(4, 4, 4), grid_of(4, 4, 4)};
  expect_parts(message([&] {
                 plan(random_gamma{.range = {1.5f, .7f}}, grids, {.sample_ids = two_ids});
               }),
               {"random_gamma", "sample 0", "1.5"});
  expect_parts(message([&] {
                 plan(random_affine{.scale = {1.2f, .8f}}, grids, {.sample_ids = two_ids});
               }),
               {"random_affine", "sample 0", "1.2"});
}

TEST(plan, displacement_that_folds) {
  const std::vector<grid> grids{grid_of(40, 40, 40), grid_of(40, 40, 40)};
  const random_elastic folding{.control_spacing_mm = 10, .max_displacement_mm = 9};
  expect_parts(message([&] { plan(folding, grids, {.sample_ids = two_ids}); }),
               {"random_elastic", "sample 0", "9", "fold"});
}

// As far as no coordinate reaches, where folding is allowed.
TEST(plan, displacement_beyond_every_volume) {
  const std::vector<grid> grids{grid_of(7, 8, 9), grid_of(7, 8, 9)};
  const auto moved = [&](double mm) {
    return plan(random_elastic{.max_displacement_mm = mm, .allow_folding = true, .probability = 0} |
                    resample{.spacing_mm = {1, 1, 1}},
                grids, {.sample_ids = two_ids});
  };
  EXPECT_NO_THROW(moved(4e6));
  expect_parts(message([&] { moved(1e17); }), {"plan: sample 0", "up to 1e+17 voxels", "lower max_displacement_mm"});
  expect_parts(message([&] { moved(1e300); }), {"plan: sample 0", "up to 1e+300 voxels"});
}

TEST(plan, control_cells_beyond_every_volume) {
  const auto padded = [](std::int64_t after) {
    return plan(elastic{.max_displacement_mm = 0, .control_points = {4, 4, 1 << 20}} | pad{.after = {0, 0, after}},
                std::vector<grid>{grid_of(2, 2, 2)});
  };
  EXPECT_NO_THROW(padded(2));
  expect_parts(message([&] { padded(32); }),
               {"plan: sample 0: output voxel (0, 0, 33) maps to position (", "4194304 control cells of elastic away"});
}

TEST(plan, window_width_that_is_not_positive) {
  const std::vector<grid> grids{grid_of(4, 4, 4)};
  expect_parts(message([&] { plan(window{.center = 40, .width = 0}, grids); }), {"window", "width 0"});
  expect_parts(message([&] { plan(window{.center = 40, .width = -400}, grids); }), {"window", "-400"});
}

TEST(plan, patch_larger_than_the_volume) {
  const std::vector<grid> grids{grid_of(40, 40, 40), grid_of(40, 20, 40)};
  expect_parts(message([&] {
                 plan(random_crop{.size = {32, 32, 32}}, grids, {.sample_ids = two_ids});
               }),
               {"random_crop", "sample 1", "(32, 32, 32)", "(40, 20, 40)", "pad"});
}

// With ids the message tells which of thousands of cases it was.
TEST(plan, errors_name_the_id) {
  const std::vector<grid> grids{grid_of(40, 40, 40), grid_of(40, 20, 40)};
  const random_crop cut{.size = {32, 32, 32}};
  EXPECT_TRUE(message([&] {
                plan(cut, grids, {.sample_ids = two_ids});
              }).starts_with("suture: random_crop: sample 1 (id 12): patch (32, 32, 32)"));
  EXPECT_TRUE(message([&] {
                plan(center_crop{.size = {32, 32, 32}}, grids, {.sample_ids = two_ids});
              }).starts_with("suture: center_crop: sample 1 (id 12): patch"));
  EXPECT_TRUE(message([&] {
                plan(window{.center = 0, .width = -1}, grids, {.sample_ids = two_ids});
              }).starts_with("suture: window: sample 0 (id 11): width -1"));
  EXPECT_TRUE(message([&] {
                plan(flip{}, std::vector<grid>{grid_of(4, -4, 4), grids[0]}, {.sample_ids = two_ids});
              }).starts_with("suture: plan: sample 0 (id 11): "));
  EXPECT_TRUE(message([&] {
                plan(cut, grids, {.evaluation = true});
              }).starts_with("suture: random_crop: sample 1: patch (32, 32, 32)"));
}

TEST(plan, coordinates_out_of_reach) {
  const affine_matrix far{.translation = {0, 0, 1e9}};
  expect_parts(message([&] { plan(far, std::vector<grid>{grid_of(4, 4, 4)}); }), {"plan", "sample 0", "source index"});
}

TEST(plan, a_single_grid_or_view) {
  const grid g = grid_of(2, 3, 4);
  const std::vector<std::uint64_t> id{7};
  const auto of_grid = plan(random_affine{.rotate_deg = 10}, g, {.sample_ids = id});
  const float voxel = 0;
  const auto of_view = plan(random_affine{.rotate_deg = 10}, contiguous(&voxel, g), {.sample_ids = id});
  const auto of_range = plan(random_affine{.rotate_deg = 10}, std::span(&g, 1), {.sample_ids = id});
  ASSERT_EQ(of_grid.size(), 1u);
  ASSERT_EQ(of_view.size(), 1u);
  EXPECT_EQ(std::memcmp(&of_grid.sample(0).map, &of_range.sample(0).map, sizeof of_range.sample(0).map), 0);
  EXPECT_EQ(std::memcmp(&of_view.sample(0).map, &of_range.sample(0).map, sizeof of_range.sample(0).map), 0);
}

}  // namespace
