// SPDX-License-Identifier: Apache-2.0
// Bad input gets an error before anything runs, and its message names the operation, the sample and the value.
#include <gtest/gtest.h>
#include <suture/suture.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <set>

namespace {

using namespace suture;

grid grid_of(std::int64_t z, std::int64_t y, std::int64_t x) {
  grid g;
  g.extents = {z, y, x};
  return g;
}

// The message of the error that f must throw.
template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const error& e) {
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

void expect_parts(const std::string& message, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
}

const std::uint64_t two_ids[] = {11, 12};

// A good batch of two samples that single tests spoil.
struct batch {
  std::vector<grid> grids{grid_of(8, 9, 10), grid_of(12, 9, 8)};
  std::vector<std::vector<std::int16_t>> in_data, out_data;
  std::vector<std::vector<std::uint8_t>> seg_data, seg_out_data;
  std::vector<view<const std::int16_t>> in;
  std::vector<view<std::int16_t>> out;
  std::vector<view<const std::uint8_t>> seg;
  std::vector<view<std::uint8_t>> seg_out;

  batch() {
    in_data.resize(2);
    out_data.resize(2);
    seg_data.resize(2);
    seg_out_data.resize(2);
    for (std::size_t i = 0; i < 2; ++i) {
      const auto n = static_cast<std::size_t>(grids[i].voxels());
      in_data[i].assign(n, 100);
      out_data[i].assign(n, -7);
      seg_data[i].assign(n, 1);
      seg_out_data[i].assign(n, 77);
      in.push_back(contiguous<const std::int16_t>(in_data[i].data(), grids[i]));
      out.push_back(contiguous(out_data[i].data(), grids[i]));
      seg.push_back(contiguous<const std::uint8_t>(seg_data[i].data(), grids[i]));
      seg_out.push_back(contiguous(seg_out_data[i].data(), grids[i]));
    }
  }

  std::string run_error(cpu exec = {}) {
    const auto p = plan(flip{{true, false, false}} | cast<std::int16_t>{}, grids);
    const std::string message = error_of([&] { run(exec, p, image(in, out), labels(seg, seg_out)); });
    for (const auto& data : out_data)
      for (std::int16_t v : data) EXPECT_EQ(v, -7) << "an output was written";
    for (const auto& data : seg_out_data)
      for (std::uint8_t v : data) EXPECT_EQ(v, 77) << "an output was written";
    return message;
  }
};

TEST(plan, a_good_batch_runs) {
  batch b;
  const auto p = plan(flip{{true, false, false}} | cast<std::int16_t>{}, b.grids);
  run(cpu{}, p, image(b.in, b.out), labels(b.seg, b.seg_out));
  for (const auto& data : b.out_data)
    for (std::int16_t v : data) ASSERT_EQ(v, 100);
}

TEST(plan, an_empty_batch) {
  expect_parts(error_of([] { plan(flip{}, std::vector<grid>{}); }), {"plan", "empty"});
}

TEST(plan, extents_that_are_not_positive) {
  expect_parts(error_of([] {
                 plan(flip{}, std::vector<grid>{grid_of(4, 4, 4), grid_of(4, 0, 4)});
               }),
               {"plan", "sample 1", "(4, 0, 4)"});
  expect_parts(error_of([] { plan(flip{}, std::vector<grid>{grid_of(4, 4, -3)}); }), {"sample 0", "(4, 4, -3)"});
}

TEST(plan, extents_whose_product_overflows) {
  const std::int64_t big = std::int64_t{1} << 40;
  expect_parts(error_of([&] { plan(flip{}, std::vector<grid>{grid_of(big, big, big)}); }), {"sample 0", "overflow"});
}

TEST(plan, spacing_that_is_not_positive_or_not_a_number) {
  for (double bad : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    grid g = grid_of(4, 4, 4);
    g.spacing[1] = bad;
    expect_parts(error_of([&] { plan(flip{}, std::vector<grid>{grid_of(2, 2, 2), g}); }), {"sample 1", "spacing"});
  }
}

TEST(plan, direction_that_is_singular_or_not_orthonormal) {
  grid g = grid_of(4, 4, 4);
  g.direction = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 0}}};
  expect_parts(error_of([&] { plan(flip{}, std::vector<grid>{g}); }),
               {"sample 0", "orthonormal", "column 2 has length 0"});
  g.direction = {{{1, 0.2, 0}, {0, 1, 0}, {0, 0, 1}}};
  expect_parts(error_of([&] { plan(flip{}, std::vector<grid>{g}); }), {"columns 0 and 1", "0.2"});
  g.direction = {{{1, 0, 0}, {0, .6, .8}, {0, .8, .6}}};
  expect_parts(error_of([&] { plan(flip{}, std::vector<grid>{g}); }), {"orthonormal", "columns 1 and 2", "0.96"});
}

TEST(plan, wrong_count_of_sample_ids) {
  const std::vector<grid> grids{grid_of(4, 4, 4), grid_of(4, 4, 4), grid_of(4, 4, 4)};
  expect_parts(error_of([&] { plan(random_flip{}, grids, {.sample_ids = two_ids}); }), {"2 sample ids", "3 samples"});
  expect_parts(error_of([&] { plan(random_flip{}, grids, {}); }), {"0 sample ids", "3 samples"});
  plan(random_flip{}, grids, {.evaluation = true});
  plan(flip{}, grids, {});
}

TEST(plan, probability_outside_zero_to_one) {
  const std::vector<grid> grids{grid_of(4, 4, 4), grid_of(4, 4, 4)};
  for (float bad : {-0.1f, 1.5f, std::numeric_limits<float>::quiet_NaN()})
    expect_parts(error_of([&] { plan(gaussian_noise{.probability = bad}, grids, {.sample_ids = two_ids}); }),
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
    EXPECT_EQ(get<0>(planned.sample(i).later).on, blurs ? 1u : 0u);
    if (blurs) {
      EXPECT_EQ(get<0>(planned.sample(i).later).functor.sigmas[7][2], b.sigma[7][2]);
    }
    acted += turns + cuts + blurs;
  }
  EXPECT_GT(acted, 20);
  expect_parts(error_of([&] {
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
    EXPECT_TRUE(same_bits(get<0>(a.taps), get<0>(b.taps))) << i;
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
  expect_parts(error_of([&] {
                 plan(random_affine{.rotate_deg = {10, -10}, .probability = 0}, grids, {.sample_ids = two_ids});
               }),
               {"random_affine", "sample 0", "rotate_deg [10, -10]"});
  expect_parts(error_of([&] { plan(random_affine{.scale = 0.2f}, grids, {.evaluation = true}); }),
               {"random_affine", "scale"});
}

TEST(plan, inverted_range) {
  const std::vector<grid> grids{grid_of(4, 4, 4), grid_of(4, 4, 4)};
  expect_parts(error_of([&] {
                 plan(random_gamma{.range = {1.5f, .7f}}, grids, {.sample_ids = two_ids});
               }),
               {"random_gamma", "sample 0", "1.5"});
  expect_parts(error_of([&] {
                 plan(random_affine{.scale = {1.2f, .8f}}, grids, {.sample_ids = two_ids});
               }),
               {"random_affine", "sample 0", "1.2"});
}

TEST(plan, displacement_that_folds) {
  const std::vector<grid> grids{grid_of(40, 40, 40), grid_of(40, 40, 40)};
  const random_elastic folding{.control_spacing_mm = 10, .max_displacement_mm = 9};
  expect_parts(error_of([&] { plan(folding, grids, {.sample_ids = two_ids}); }),
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
  expect_parts(error_of([&] { moved(1e17); }), {"plan: sample 0", "up to 1e+17 voxels", "lower max_displacement_mm"});
  expect_parts(error_of([&] { moved(1e300); }), {"plan: sample 0", "up to 1e+300 voxels"});
}

TEST(plan, window_width_that_is_not_positive) {
  const std::vector<grid> grids{grid_of(4, 4, 4)};
  expect_parts(error_of([&] { plan(window{.center = 40, .width = 0}, grids); }), {"window", "width 0"});
  expect_parts(error_of([&] { plan(window{.center = 40, .width = -400}, grids); }), {"window", "-400"});
}

TEST(plan, patch_larger_than_the_volume) {
  const std::vector<grid> grids{grid_of(40, 40, 40), grid_of(40, 20, 40)};
  expect_parts(error_of([&] {
                 plan(random_crop{.size = {32, 32, 32}}, grids, {.sample_ids = two_ids});
               }),
               {"random_crop", "sample 1", "(32, 32, 32)", "(40, 20, 40)", "pad"});
}

// With ids the message tells which of thousands of cases it was.
TEST(plan, errors_name_the_id) {
  const std::vector<grid> grids{grid_of(40, 40, 40), grid_of(40, 20, 40)};
  const random_crop cut{.size = {32, 32, 32}};
  EXPECT_TRUE(error_of([&] {
                plan(cut, grids, {.sample_ids = two_ids});
              }).starts_with("suture: random_crop: sample 1 (id 12): patch (32, 32, 32)"));
  EXPECT_TRUE(error_of([&] {
                plan(center_crop{.size = {32, 32, 32}}, grids, {.sample_ids = two_ids});
              }).starts_with("suture: center_crop: sample 1 (id 12): patch"));
  EXPECT_TRUE(error_of([&] {
                plan(window{.center = 0, .width = -1}, grids, {.sample_ids = two_ids});
              }).starts_with("suture: window: sample 0 (id 11): width -1"));
  EXPECT_TRUE(error_of([&] {
                plan(flip{}, std::vector<grid>{grid_of(4, -4, 4), grids[0]}, {.sample_ids = two_ids});
              }).starts_with("suture: plan: sample 0 (id 11): "));
  EXPECT_TRUE(error_of([&] {
                plan(cut, grids, {.evaluation = true});
              }).starts_with("suture: random_crop: sample 1: patch (32, 32, 32)"));
}

TEST(plan, coordinates_out_of_reach) {
  const affine_matrix far{.translation = {0, 0, 1e9}};
  expect_parts(error_of([&] { plan(far, std::vector<grid>{grid_of(4, 4, 4)}); }), {"plan", "sample 0", "source index"});
}

// Temporary views live as long as the binding and its copies; those with a name are referred to.
TEST(run, with_temporary_views) {
  const grid g = grid_of(3, 4, 5);
  const std::vector<grid> grids{g, g};
  const auto p = plan(flip{.axes = {true, false, true}}, grids);
  std::vector<float> in(120), expected(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  const auto named_in = batch_views<const float>(in.data(), grids);
  const auto named_out = batch_views(expected.data(), grids);
  run(cpu{}, p, image(named_in, named_out));

  std::vector<float> out(in.size());
  const auto expect_as_named = [&](const auto& bound) {
    const auto copy = bound;
    for (const auto* each : {&bound, &copy}) {
      out.assign(out.size(), -1);
      run(cpu{}, p, *each);
      EXPECT_EQ(out, expected);
    }
  };
  expect_as_named(image(batch_views<const float>(in.data(), grids), batch_views(out.data(), grids)));
  expect_as_named(image(batch_views(in.data(), grids), batch_views(out.data(), grids)));
  auto bound = image(named_in, batch_views(out.data(), grids));
  bound = image(batch_views<const float>(in.data(), grids), batch_views(out.data(), grids));
  expect_as_named(bound);
  const auto first = contiguous(out.data(), g), second = contiguous(out.data() + 60, g);
  expect_as_named(image(named_in, std::array{first, second}));
  const auto later = [&] { return image(std::span(named_in), std::vector{first, second}); }();
  expect_as_named(later);

  const auto alone = image(contiguous<const float>(in.data(), g), contiguous(out.data(), g));
  out.assign(out.size(), -1);
  run(cpu{}, plan(flip{.axes = {true, false, true}}, g), alone);
  EXPECT_TRUE(std::equal(out.begin(), out.begin() + 60, expected.begin()));

  std::vector<float> elsewhere(in.size());
  auto named = batch_views(out.data(), grids);
  const auto refers = image(named_in, named);
  for (view<float>& v : named) v.data = elsewhere.data() + (v.data - out.data());
  run(cpu{}, p, refers);
  EXPECT_EQ(elsewhere, expected);
}

TEST(run, null_pointer) {
  batch b;
  b.in[1].data = nullptr;
  expect_parts(b.run_error(), {"image", "sample 1", "input: null pointer"});
  batch c;
  c.seg_out[0].data = nullptr;
  expect_parts(c.run_error(), {"labels", "sample 0", "output: null pointer"});
}

// What `view{.data, .grid}` leaves is no layout.
TEST(run, strides_of_zero) {
  batch b;
  b.out[1].stride = {0, 0, 0};
  expect_parts(b.run_error(), {"image", "sample 1", "output: strides (0, 0, 0)", "contiguous()"});
  batch c;
  c.out[0].stride[1] = 0;
  expect_parts(c.run_error(), {"image", "sample 0", "output: strides"});
  const grid plane = grid_of(1, 3, 1);
  const float voxels[3] = {1, 2, 3};
  float out[3];
  const view<const float> along_y{.data = voxels, .grid = plane, .stride = {0, 1, 0}};
  run(cpu{}, plan(brightness{.offset = 1}, plane), image(along_y, contiguous(out, plane)));
  EXPECT_EQ(out[2], 4.0f);
  const view<float> two{.data = out, .grid = grid_of(1, 1, 1), .channels = 2};
  expect_parts(error_of([&] { run(cpu{}, plan(brightness{}, two), image(contiguous(voxels, two.grid, 2), two)); }),
               {"image", "channel_stride 0 for 2 channels"});
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

TEST(batch_views, channels_last) {
  const std::vector<grid> grids(2, grid_of(2, 3, 4));
  float memory[2 * 24 * 3];
  const auto views = batch_views_channels_last(memory, grids, 3);
  EXPECT_EQ(views[1].data, memory + 72);
  EXPECT_EQ(views[1].stride, (extent3{36, 12, 3}));
  EXPECT_EQ(views[1].channel_stride, 1);
  EXPECT_EQ(views[1].channels, 3);
  const std::vector<grid> ragged{grid_of(2, 3, 4), grid_of(2, 3, 5)};
  expect_parts(error_of([&] { batch_views_channels_last(memory, ragged, 1); }),
               {"batch_views_channels_last", "sample 1"});
}

TEST(run, misaligned_pointer) {
  batch b;
  b.in[0].data = reinterpret_cast<const std::int16_t*>(reinterpret_cast<const char*>(b.in[0].data) + 1);
  expect_parts(b.run_error(), {"image", "sample 0", "aligned"});
}

TEST(run, label_map_of_another_geometry) {
  batch b;
  b.seg[1].grid.spacing = {2, 1, 1};
  expect_parts(b.run_error(), {"labels", "sample 1", "(2, 1, 1)"});
  batch c;
  c.seg[0].grid.origin = {0, 5, 0};
  expect_parts(c.run_error(), {"labels", "sample 0", "(0, 5, 0)"});
  batch d;
  d.seg[0].grid.extents = {8, 9, 9};
  expect_parts(d.run_error(), {"labels", "sample 0", "(8, 9, 9)"});
  // What differs is what the message shows, however little it is.
  batch e;
  e.seg[0].grid.direction = {{{1, 0, 0}, {0, -1, 0}, {0, 0, 1}}};
  expect_parts(e.run_error(), {"labels", "sample 0", "direction of axis 1 (0, -1, 0), planned (0, 1, 0)"});
  batch f;
  f.seg[0].grid.origin[1] += 1.0 / 512;
  expect_parts(f.run_error(), {"labels", "sample 0", "origin", "0.00195312 more in component 1"});
}

TEST(run, output_of_wrong_shape) {
  batch b;
  b.out[1].grid.extents = {12, 9, 7};
  expect_parts(b.run_error(), {"image", "sample 1", "(12, 9, 7)", "(12, 9, 8)"});
  batch c;
  c.out[0].channels = 2;
  expect_parts(c.run_error(), {"image", "sample 0", "2 channels"});
}

TEST(run, negative_threads) {
  batch b;
  const auto p = plan(flip{} | cast<std::int16_t>{}, b.grids);
  expect_parts(error_of([&] { run(cpu{.threads = -3}, p, image(b.in, b.out)); }), {"cpu", "threads -3"});
}

TEST(run, wrong_number_of_views) {
  batch b;
  b.seg.pop_back();
  expect_parts(b.run_error(), {"labels", "1 input views", "2 planned"});
}

TEST(run, wrong_number_of_views_where_coefficients_are_sized) {
  batch b;
  b.in.pop_back();
  const auto p = plan(flip{} | sampling<cubic_bspline, mirror>{} | cast<std::int16_t>{}, b.grids);
  expect_parts(error_of([&] { run(cpu{}, p, image(b.in, b.out)); }), {"image", "1 input views", "2 planned"});
}

TEST(run, overlapping_input_and_output) {
  batch b;
  b.out[0] = contiguous(b.in_data[0].data() + 5, b.grids[0]);
  b.in_data[0].resize(b.in_data[0].size() + 5);
  b.in[0] = contiguous<const std::int16_t>(b.in_data[0].data(), b.grids[0]);
  b.out[0].data = b.in_data[0].data() + 5;
  expect_parts(b.run_error(), {"image", "sample 0", "overlaps"});
}

TEST(run, two_outputs_that_overlap) {
  batch b;
  b.out[1].data = b.out[0].data + 10;
  b.out_data[0].resize(3000, -7);
  b.out[0].data = b.out_data[0].data();
  b.out[1].data = b.out_data[0].data() + 10;
  expect_parts(b.run_error(), {"image", "overlaps"});
}

// Views of one array may lie among each other. What they are told apart by is held against a list of their elements.
TEST(run, views_that_interleave) {
  std::mt19937 random(3);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<float> memory(4000);
  int shared = 0, apart = 0;
  for (int round = 0; round < 4000; ++round) {
    std::int64_t steps[4] = {1 + below(3), 6 + below(4), 40 + below(20), 300 + below(100)};
    std::shuffle(std::begin(steps), std::end(steps), random);
    const auto part = [&] {
      view<float> v{.data = memory.data() + 1200 + below(800),
                    .grid = grid_of(1 + below(3), 1 + below(4), 1 + below(3)),
                    .stride = {steps[0], steps[1], steps[2]},
                    .channels = 1 + below(2),
                    .channel_stride = steps[3]};
      return v;
    };
    view<float> a = part(), b = part();
    if (round % 3 == 0) a.stride[1] = b.stride[1] = -a.stride[1];
    const auto elements = [](const view<float>& v) {
      std::set<const float*> all;
      for (std::int64_t c = 0; c < v.channels; ++c)
        for (std::int64_t z = 0; z < v.grid.extents[0]; ++z)
          for (std::int64_t y = 0; y < v.grid.extents[1]; ++y)
            for (std::int64_t x = 0; x < v.grid.extents[2]; ++x)
              all.insert(v.data + c * v.channel_stride + z * v.stride[0] + y * v.stride[1] + x * v.stride[2]);
      return all;
    };
    const auto of_a = elements(a), of_b = elements(b);
    const bool truly = std::any_of(of_a.begin(), of_a.end(), [&](const float* p) { return of_b.count(p) != 0; });
    ASSERT_EQ(detail::share_memory(detail::lattice_of(a), detail::lattice_of(b)), truly) << round;
    (truly ? shared : apart) += 1;
  }
  EXPECT_GT(shared, 100);
  EXPECT_GT(apart, 1000);
  // Columns of one plane, and the same with one twice.
  const grid column = grid_of(1, 4, 1);
  std::vector<float> from(20, 2.0f), to(20, 0.0f);
  std::vector<view<const float>> in;
  std::vector<view<float>> out;
  for (int x = 0; x < 5; ++x) {
    in.push_back({.data = from.data() + x, .grid = column, .stride = {20, 5, 1}});
    out.push_back({.data = to.data() + x, .grid = column, .stride = {20, 5, 1}});
  }
  const auto p = plan(brightness{.offset = 1}, in);
  run(cpu{}, p, image(in, out));
  EXPECT_EQ(to, std::vector<float>(20, 3.0f));
  out[3] = out[1];
  expect_parts(error_of([&] { run(cpu{}, p, image(in, out)); }), {"image", "overlaps an input or another output"});
}

TEST(run, inputs_may_share_memory) {
  batch b;
  b.in[1].data = b.in[0].data;
  b.in_data[0].resize(5000, 100);
  b.in[0].data = b.in[1].data = b.in_data[0].data();
  const auto p = plan(flip{{true, false, false}} | cast<std::int16_t>{}, b.grids);
  run(cpu{}, p, image(b.in, b.out), labels(b.seg, b.seg_out));
  EXPECT_EQ(b.out_data[1][0], 100);
}

TEST(run, workspace_too_small_or_misaligned) {
  alignas(256) static std::byte memory[1 << 16];
  batch b;
  expect_parts(b.run_error(cpu{.workspace = {memory, 64}}), {"workspace", "64 bytes"});
  expect_parts(b.run_error(cpu{.workspace = {memory + 8, sizeof memory - 8}}), {"workspace", "aligned"});
}

TEST(run, label_outside_that_the_label_type_cannot_hold) {
  batch b;
  const auto p = plan(flip{} | sampling<>{.label_outside = 300} | cast<std::int16_t>{}, b.grids);
  expect_parts(error_of([&] { run(cpu{}, p, labels(b.seg, b.seg_out)); }), {"labels", "300"});
}

TEST(run, strides_that_overflow) {
  batch b;
  b.in[0].stride[0] = std::int64_t{1} << 62;
  expect_parts(b.run_error(), {"image", "sample 0", "overflow"});
  // Of two voxels, and of one, whose stride nobody needs.
  for (const std::int64_t n : {2, 1}) {
    const grid g = grid_of(n, 2, 2);
    float voxels[8] = {}, out[8];
    auto in = contiguous(voxels, g);
    in.stride[0] = std::numeric_limits<std::int64_t>::min();
    expect_parts(error_of([&] { run(cpu{}, plan(brightness{}, g), image(in, contiguous(out, g))); }),
                 {"image: sample 0: input: extents", "overflow"});
  }
}

TEST(views, a_dense_batch_needs_equal_extents) {
  const std::vector<grid> grids{grid_of(4, 4, 4), grid_of(4, 5, 4)};
  float data[1] = {};
  expect_parts(error_of([&] { batch_views(data, std::span<const grid>(grids)); }), {"sample 1", "(4, 5, 4)"});
}

}  // namespace
