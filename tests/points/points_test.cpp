// SPDX-License-Identifier: Apache-2.0
// Points and boxes move through the map the voxels are read by: published numbers, closed forms, and where bright
// voxels turn up in the output.
#include <algorithm>
#include <cstring>
#include <limits>

#include "support/expect_says.hpp"
#include "support/library.hpp"
#include "support/points.hpp"
#include "suture/image/digest.hpp"

namespace {

using namespace support;
using namespace suture;

// Both directions of a map without rounding: `source` is read at output position `output`.
template <class Plan>
void expect_exactly(const Plan& plan, const point3& output, const point3& source) {
  EXPECT_EQ(suture::to_source(plan, 0, output), source);
  const located_point there = suture::to_output(plan, 0, source);
  EXPECT_EQ(there.point, output);
  EXPECT_EQ(there.residual, 0);
  EXPECT_TRUE(there.converged);
}

template <class Plan>
void expect_box_exactly(const Plan& plan, const box& source, const box& output) {
  const box_result there = suture::to_output(plan, 0, source);
  EXPECT_EQ(there.unclipped.low, output.low);
  EXPECT_EQ(there.unclipped.high, output.high);
  EXPECT_TRUE(there.converged);
  const box back = suture::to_source(plan, 0, output);
  EXPECT_EQ(back.low, source.low);
  EXPECT_EQ(back.high, source.high);
}

const suture::grid asymmetric{.extents = {20, 31, 44}, .spacing = {2.5, 1, 0.75}, .origin = {-3, 5, 7}};

TEST(ClosedForms, Flip) {
  const auto plan = plan_of(suture::flip{.axes = {true, false, true}}, asymmetric);
  expect_exactly(plan, {0, 0, 0}, {19, 0, 43});
  expect_exactly(plan, {3.25, 4.5, 40}, {15.75, 4.5, 3});
  expect_box_exactly(plan, {{2, 3, 4}, {5, 8, 11}}, {{15, 3, 33}, {18, 8, 40}});
  const box_result whole = suture::to_output(plan, 0, box{{0, 0, 0}, {20, 31, 44}});
  EXPECT_EQ(whole.clipped.low, (point3{0, 0, 0}));
  EXPECT_EQ(whole.clipped.high, (point3{20, 31, 44}));
  EXPECT_EQ(whole.visible, 1);
}

TEST(ClosedForms, CropAndPad) {
  const auto crop = plan_of(suture::crop{.start = {2, 3, 4}, .size = {10, 9, 8}}, asymmetric);
  expect_exactly(crop, {0, 0, 0}, {2, 3, 4});
  expect_exactly(crop, {-1.5, 20, 7.25}, {0.5, 23, 11.25});
  expect_box_exactly(crop, {{0, 0, 0}, {5, 6, 7}}, {{-2, -3, -4}, {3, 3, 3}});
  const auto pad = plan_of(suture::pad{.before = {1, 2, 3}, .after = {4, 0, 9}}, asymmetric);
  expect_exactly(pad, {0, 0, 0}, {-1, -2, -3});
  expect_box_exactly(pad, {{0, 0, 0}, {20, 31, 44}}, {{1, 2, 3}, {21, 33, 47}});
}

TEST(ClosedForms, QuarterTurn) {
  // out(i, j) = in(j, N_second - 1 - i) along the axes (y, x), N_x = 44.
  const auto plan = plan_of(suture::rot90{.axes = {1, 2}}, asymmetric);
  expect_exactly(plan, {7, 0, 0}, {7, 0, 43});
  expect_exactly(plan, {7.5, 40.25, 12}, {7.5, 12, 2.75});
  expect_box_exactly(plan, {{1, 2, 3}, {4, 6, 8}}, {{1, 36, 2}, {4, 41, 6}});
}

// Turns about every axis take a box there and back to itself.
TEST(ClosedForms, QuarterTurnsOfBoxes) {
  const box b{{1, 2.5, 3}, {4.25, 6, 48}};
  for (const suture::axis_pair axes : {suture::axis_pair{0, 1}, {1, 2}, {2, 0}, {2, 1}})
    for (int turns = -1; turns < 4; ++turns) {
      const auto plan = plan_of(suture::rot90{.axes = axes, .quarter_turns = turns}, asymmetric);
      expect_box_exactly(plan, b, suture::to_output(plan, 0, b).unclipped);
      const auto both = plan_of(suture::rot90{.axes = axes, .quarter_turns = turns} |
                                    suture::flip{.axes = {true, false, true}} | suture::crop{{1, 2, 3}, {9, 8, 7}},
                                asymmetric);
      expect_box_exactly(both, b, suture::to_output(both, 0, b).unclipped);
    }
}

TEST(ClosedForms, Resampling) {
  // Half-pixel: edges scale, and index i is edge i + 1/2.
  const auto twice = plan_of(suture::resize{{40, 62, 88}}, asymmetric);
  expect_exactly(twice, {0, 1, 2}, {-0.25, 0.25, 0.75});
  expect_box_exactly(twice, {{1, 2, 3}, {4, 6, 8}}, {{2, 4, 6}, {8, 12, 16}});
  const auto third = plan_of(suture::resize{{60, 93, 132}}, asymmetric);
  generator random(1);
  for (int i = 0; i < 100; ++i) {
    const point3 p = random.within(asymmetric.extents, 5);
    point3 expected{};
    for (int k = 0; k < 3; ++k) expected[k] = 3 * (p[k] + 0.5) - 0.5;
    const located_point there = suture::to_output(third, 0, p);
    expect_near(there.point, expected, 1e-12);
    EXPECT_LT(there.residual, 1e-12);
  }
  // With corners aligned, centers scale by (N_o - 1) / (N_i - 1).
  const auto corners = plan_of(suture::resize{{39, 61, 87}, suture::coordinate_map::align_corners}, asymmetric);
  expect_exactly(corners, {0, 0, 0}, {0, 0, 0});
  expect_exactly(corners, {38, 60, 86}, {19, 30, 43});
  // 2.5 x 1 x 0.75 mm to 1 mm.
  const auto to_mm = plan_of(suture::resample{.map = suture::coordinate_map::origin_preserving}, asymmetric);
  expect_near(suture::to_source(to_mm, 0, {5, 7, 9}), {2, 7, 12}, 1e-12);
  expect_near(suture::to_output(to_mm, 0, {2, 7, 12}).point, {5, 7, 9}, 1e-12);
}

// Where a voxel lies in millimeters is what relabeling and resampling keep: grids are an independent account of it.
TEST(ClosedForms, PhysicalPlaceIsKept) {
  const suture::grid g{.extents = {20, 31, 44},
                       .spacing = {2.5, 1, 0.75},
                       .origin = {-3, 5, 7},
                       .direction = {{{0.8, -0.6, 0}, {0.6, 0.8, 0}, {0, 0, 1}}}};
  const auto plan = plan_of(suture::orient{"RAS"} | suture::resample{.spacing_mm = {1.3, 1.1, 0.9}} |
                                suture::rot90{.axes = {2, 0}} | suture::pad_to{{60, 60, 60}} |
                                suture::flip{.axes = {false, true, false}} | suture::center_crop{{30, 31, 32}},
                            g);
  const suture::affine_map to_mm = g.index_to_physical();
  const suture::affine_map from_mm = plan.output_grid(0).index_to_physical();
  generator random(2);
  for (int i = 0; i < 200; ++i) {
    const point3 p = random.within(g.extents, 3);
    const located_point there = suture::to_output(plan, 0, p);
    expect_near(from_mm(there.point), to_mm(p), 1e-10, "millimeters");
    EXPECT_LT(there.residual, 1e-11);
    expect_near(suture::to_source(plan, 0, there.point), p, 1e-11);
  }
}

const suture::matrix3 sheared{{{0.9, -0.3, 0.2}, {0.25, 1.1, -0.15}, {-0.1, 0.2, 0.8}}};

TEST(Affine, AgreesWithItsMatrixAndItsInverse) {
  const point3 shift{3.25, -1.5, 0.75};
  const auto plan = plan_of(suture::affine_matrix{sheared, shift, false}, asymmetric);
  const reference::affine map{{{{0.9, -0.3, 0.2}, {0.25, 1.1, -0.15}, {-0.1, 0.2, 0.8}}}, support::point(shift)};
  const reference::affine back = reference::inverted(map);
  generator random(3);
  for (int i = 0; i < 200; ++i) {
    const point3 p = random.within(asymmetric.extents, 20);
    expect_near(suture::to_source(plan, 0, p), support::point(map(support::point(p))), 1e-12);
    const located_point there = suture::to_output(plan, 0, p);
    expect_near(there.point, support::point(back(support::point(p))), 1e-12);
    EXPECT_TRUE(there.converged);
    EXPECT_LT(there.residual, 1e-12);
    expect_near(suture::to_source(plan, 0, there.point), p, 1e-12);
    expect_near(suture::to_output(plan, 0, suture::to_source(plan, 0, p)).point, p, 1e-12);
  }
}

// Published numbers: the box (10, 20)-(30, 60) in (x, y) turned by +30 degrees about (50, 50), x' = c x - s y.
TEST(Boxes, NeedEveryCornerOfARotation) {
  const suture::grid image{.extents = {1, 100, 100}};
  // From y towards x the angle is -30 degrees; an image of 100 voxels has its center at edge 50.
  const auto plan = plan_of(suture::affine{.rotate_deg = {-30, 0, 0}}, image);
  const box_result there = suture::to_output(plan, 0, box{{0, 20, 10}, {1, 60, 30}});
  expect_near(there.unclipped.low, {0, 4.0192378865, 10.3589838486}, printed);
  expect_near(there.unclipped.high, {1, 48.6602540378, 47.6794919243}, printed);
  EXPECT_EQ(there.clipped.low, there.unclipped.low);
  EXPECT_EQ(there.clipped.high, there.unclipped.high);
  EXPECT_EQ(there.visible, 1);
  EXPECT_TRUE(there.converged);
}

box random_box(generator& random) {
  box b{};
  for (int k = 0; k < 3; ++k) {
    b.low[k] = random.uniform(-5, 30);
    b.high[k] = b.low[k] + random.uniform(0.1, 20);
  }
  return b;
}
point3 middle_of(const box& b) {
  point3 middle{};
  for (int k = 0; k < 3; ++k) middle[k] = (b.low[k] + b.high[k]) / 2 - 0.5;
  return middle;
}

// The envelope of a box under x -> M x + t has its center at the moved center and half extents |M| h.
TEST(Boxes, AffineEnvelopeIsExact) {
  const auto plan = plan_of(suture::affine_matrix{sheared, {3.25, -1.5, 0.75}}, asymmetric);
  const reference::matrix back =
      reference::inverted(reference::matrix{{{0.9, -0.3, 0.2}, {0.25, 1.1, -0.15}, {-0.1, 0.2, 0.8}}});
  generator random(4);
  for (int i = 0; i < 100; ++i) {
    const box b = random_box(random);
    const point3 middle = middle_of(b);
    const box_result there = suture::to_output(plan, 0, b);
    const point3 moved = suture::to_output(plan, 0, middle).point;
    double whole = 1;
    double part = 1;
    for (int k = 0; k < 3; ++k) {
      double half = 0;
      for (int j = 0; j < 3; ++j)
        half += std::abs(back[static_cast<std::size_t>(k)][static_cast<std::size_t>(j)]) * (b.high[j] - b.low[j]) / 2;
      EXPECT_NEAR(there.unclipped.low[k], moved[k] + 0.5 - half, 1e-11);
      EXPECT_NEAR(there.unclipped.high[k], moved[k] + 0.5 + half, 1e-11);
      const auto n = static_cast<double>(asymmetric.extents[k]);
      const double low = std::fmin(std::fmax(moved[k] + 0.5 - half, 0), n);
      const double high = std::fmin(std::fmax(moved[k] + 0.5 + half, 0), n);
      EXPECT_NEAR(there.clipped.low[k], low, 1e-11);
      EXPECT_NEAR(there.clipped.high[k], high, 1e-11);
      whole *= 2 * half;
      part *= high - low;
    }
    EXPECT_NEAR(there.visible, part / whole, 1e-11);
  }
}

// On the way back half extents grow by |M|, and the points of the surface lie within.
TEST(Boxes, AffineEnvelopeInTheSourceIsExact) {
  const auto plan = plan_of(suture::affine_matrix{sheared, {3.25, -1.5, 0.75}}, asymmetric);
  generator random(14);
  for (int i = 0; i < 100; ++i) {
    const box b = random_box(random);
    const point3 middle = middle_of(b);
    const box there = suture::to_source(plan, 0, b);
    const point3 moved = suture::to_source(plan, 0, middle);
    for (int k = 0; k < 3; ++k) {
      double half = 0;
      for (int j = 0; j < 3; ++j) half += std::abs(sheared[k][j]) * (b.high[j] - b.low[j]) / 2;
      EXPECT_NEAR(there.low[k], moved[k] + 0.5 - half, 1e-11);
      EXPECT_NEAR(there.high[k], moved[k] + 0.5 + half, 1e-11);
    }
    expect_envelope(plan, 0, b, 1e-11);
    expect_returned(plan, 0, b, 1e-11);
  }
}

// By 45 degrees there and back both sides of a rectangle become the sum of the two, about the same center.
TEST(Boxes, GrowUnderRotation) {
  const auto plan = plan_of(suture::affine{.rotate_deg = {45, 0, 0}}, {.extents = {1, 100, 100}});
  const box there = suture::to_output(plan, 0, box{{0, 30, 20}, {1, 50, 28}}).unclipped;
  for (int k = 1; k < 3; ++k) EXPECT_NEAR(there.high[k] - there.low[k], 28 / std::sqrt(2.0), 1e-12);
  const box back = suture::to_source(plan, 0, there);
  expect_near(back.low, {0, 26, 10}, 1e-11);
  expect_near(back.high, {1, 54, 38}, 1e-11);
}

// A detection on a patch that overhangs its volume keeps its size, outside too.
TEST(Boxes, AreNotClippedToTheSource) {
  const suture::extent3 start{-4, 5, 40};
  const auto plan =
      plan_of(suture::crop_at{.starts = {&start, 1}, .size = {16, 16, 16}, .may_leave = true}, asymmetric);
  expect_box_exactly(plan, {{-4, 5, 40}, {12, 21, 56}}, {{0, 0, 0}, {16, 16, 16}});
  expect_box_exactly(plan, {{-3, 7, 46.5}, {-1, 9, 50}}, {{1, 2, 6.5}, {3, 4, 10}});
}

TEST(Boxes, AreClippedToTheOutputAndFiltered) {
  const auto plan = plan_of(suture::crop{.start = {4, 4, 4}, .size = {8, 8, 8}}, asymmetric);
  const auto moved = [&](const box& b) { return suture::to_output(plan, 0, b); };
  // Half of it, a quarter of it, a slice of half a voxel, none of it, all of it.
  const box_result half = moved({{4, 4, 10}, {8, 8, 14}});
  EXPECT_EQ(half.clipped.low, (point3{0, 0, 6}));
  EXPECT_EQ(half.clipped.high, (point3{4, 4, 8}));
  EXPECT_EQ(half.visible, 0.5);
  const box_result quarter = moved({{4, 2, 10}, {8, 6, 14}});
  EXPECT_EQ(quarter.visible, 0.25);
  const box_result slice = moved({{4, 4, 11.5}, {8, 8, 13.5}});
  EXPECT_EQ(slice.visible, 0.25);
  const box_result outside = moved({{4, 4, 20}, {8, 8, 24}});
  EXPECT_EQ(outside.visible, 0);
  EXPECT_EQ(outside.unclipped.low, (point3{0, 0, 16}));
  EXPECT_EQ(outside.clipped.low[2], outside.clipped.high[2]);
  const box_result touching = moved({{4, 4, 0}, {8, 8, 4}});
  EXPECT_EQ(touching.visible, 0);
  const box_result all = moved({{4, 4, 4}, {12, 12, 12}});
  EXPECT_EQ(all.visible, 1);

  const suture::box_filter some{};
  EXPECT_TRUE(some.keeps(half));
  EXPECT_TRUE(some.keeps(quarter));
  EXPECT_FALSE(some.keeps(slice));
  EXPECT_FALSE(some.keeps(outside));
  EXPECT_FALSE(some.keeps(touching));
  EXPECT_TRUE(some.keeps(all));
  const suture::box_filter third{.least_visible = 1.0 / 3, .least_thickness = 3};
  EXPECT_FALSE(third.keeps(half));  // two voxels thick
  EXPECT_FALSE(third.keeps(quarter));
  EXPECT_TRUE(third.keeps(all));
  const suture::box_filter visible{.least_visible = 0.5, .least_thickness = 0};
  EXPECT_TRUE(visible.keeps(half));
  EXPECT_FALSE(visible.keeps(slice));
  EXPECT_FALSE((suture::box_filter{.least_visible = 0, .least_thickness = 0}.keeps(outside)));

  const box_result flat{{{0, 4, 4}, {1, 9, 6}}, {{0, 4, 4}, {1, 9, 6}}, 1, true};  // 5 x 2 pixels of a 2D image
  EXPECT_FALSE((suture::box_filter{.least_thickness = 2}.keeps(flat)));
  EXPECT_TRUE((suture::box_filter{.least_thickness = 2, .axes = 2}.keeps(flat)));
  EXPECT_FALSE((suture::box_filter{.least_thickness = 3, .axes = 2}.keeps(flat)));

  std::vector<box_result> results{half, quarter, slice, outside, touching, all};
  EXPECT_EQ(std::erase_if(results, [&](const box_result& b) { return !some.keeps(b); }), 3U);
}

// A bright 3x3x3 blob in the source must turn up, by its center of mass, where to_output says.
TEST(Content, AppearsWhereToOutputSays) {
  const ragged_batch batch;
  const auto ops = suture::resample{.spacing_mm = {1, 1, 1}} |
                   suture::random_affine{.rotate_deg = 30, .scale = {.9F, 1.2F}, .translate = 3} |
                   suture::random_elastic{.control_spacing_mm = 20, .max_displacement_mm = 6} |
                   suture::random_crop{.size = {30, 32, 26}};
  const suture::extent3 n{30, 32, 26};
  generator random(10);
  int seen = 0;
  double bent = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const suture::settings s{.seed = seed, .sample_ids = batch.ids};
    const auto plan = suture::plan(ops, batch.grids, s);
    std::vector<std::vector<float>> images;
    std::vector<std::vector<float>> results;
    std::vector<point3> expected;
    for (std::size_t i = 0; i < batch.grids.size(); ++i) {
      // The voxel nearest to where the output's middle comes from, or a voxel nearby.
      point3 p{};
      for (int k = 0; k < 3; ++k) p[k] = random.uniform(0.35, 0.65) * static_cast<double>(n[k] - 1);
      p = suture::to_source(plan, i, p);
      suture::extent3 at{};
      for (int k = 0; k < 3; ++k) {
        at[k] = std::clamp<std::int64_t>(std::llround(p[k]), 1, batch.grids[i].extents[k] - 2);
        p[k] = static_cast<double>(at[k]);
      }
      const located_point there = suture::to_output(plan, i, p);
      EXPECT_TRUE(there.converged);
      expected.push_back(there.point);
      const auto& map = plan.geometry(i);
      bent = std::max(bent, distance(map.to_source(map.to_deformed(there.point)), p));
      std::vector<float> image(static_cast<std::size_t>(batch.grids[i].voxels()));
      const suture::extent3& size = batch.grids[i].extents;
      for (std::int64_t z = at[0] - 1; z <= at[0] + 1; ++z)
        for (std::int64_t y = at[1] - 1; y <= at[1] + 1; ++y)
          for (std::int64_t x = at[2] - 1; x <= at[2] + 1; ++x)
            image[static_cast<std::size_t>((z * size[1] + y) * size[2] + x)] = 1000;
      images.push_back(image);
      results.emplace_back(static_cast<std::size_t>(n[0] * n[1] * n[2]));
    }
    std::vector<suture::view<const float>> in;
    std::vector<suture::view<float>> out;
    for (std::size_t i = 0; i < images.size(); ++i) {
      in.push_back(suture::contiguous(static_cast<const float*>(images[i].data()), batch.grids[i]));
      out.push_back(suture::contiguous(results[i].data(), plan.output_grid(i)));
    }
    suture::run(suture::cpu{.threads = 1}, plan, suture::image(in, out));
    for (std::size_t i = 0; i < results.size(); ++i) {
      double mass = 0;
      double moment[3]{};
      bool cut = false;
      std::size_t v = 0;
      for (std::int64_t z = 0; z < n[0]; ++z)
        for (std::int64_t y = 0; y < n[1]; ++y)
          for (std::int64_t x = 0; x < n[2]; ++x) {
            const auto value = static_cast<double>(results[i][v++]);
            if (value == 0) continue;
            cut = cut || z == 0 || y == 0 || x == 0 || z == n[0] - 1 || y == n[1] - 1 || x == n[2] - 1;
            mass += value;
            moment[0] += value * static_cast<double>(z);
            moment[1] += value * static_cast<double>(y);
            moment[2] += value * static_cast<double>(x);
          }
      if (cut) continue;
      ++seen;
      ASSERT_GT(mass, 5000);
      const point3 center{moment[0] / mass, moment[1] / mass, moment[2] / mass};
      // The map bends within the blob (up to 12 mm across), and the output samples it at whole voxels.
      expect_near(center, expected[i], 0.2, "seed " + std::to_string(seed) + " sample " + std::to_string(i));
    }
  }
  EXPECT_GE(seen, 16) << "of 24; the others reach the border of the output";
  EXPECT_GT(bent, 2);
}

TEST(Batches, AreTheSameAsOneByOne) {
  const ragged_batch batch;
  const suture::settings s{.seed = 3, .sample_ids = batch.ids};
  const auto plan = suture::plan(suture::random_affine{.rotate_deg = 20} |
                                     suture::random_elastic{.control_spacing_mm = 3, .max_displacement_mm = 1},
                                 batch.grids, s);
  generator random(11);
  // More cells than are kept at a time.
  std::vector<point3> points;
  for (int i = 0; i < 8000; ++i) points.push_back(random.within(batch.grids[1].extents, 4));
  std::vector<point3> sources(points.size());
  std::vector<located_point> outputs(points.size());
  suture::to_source(plan, 1, points, sources);
  suture::to_output(plan, 1, points, outputs);
  for (std::size_t i = 0; i < points.size(); i += 16) {
    EXPECT_EQ(sources[i], suture::to_source(plan, 1, points[i]));
    const located_point one = suture::to_output(plan, 1, points[i]);
    EXPECT_EQ(outputs[i].point, one.point);
    EXPECT_EQ(outputs[i].residual, one.residual);
    EXPECT_EQ(outputs[i].converged, one.converged);
  }
  const std::vector<box> boxes{{{1, 2, 3}, {11, 12, 13}}, {{20, 21, 22}, {40, 50, 45}}};
  std::vector<box_result> moved(2);
  suture::to_output(plan, 1, boxes, moved);
  for (std::size_t i = 0; i < 2; ++i) {
    const box_result one = suture::to_output(plan, 1, boxes[i]);
    EXPECT_EQ(moved[i].unclipped.low, one.unclipped.low);
    EXPECT_EQ(moved[i].clipped.high, one.clipped.high);
    EXPECT_EQ(moved[i].visible, one.visible);
  }
  std::vector<box> back(2);
  suture::to_source(plan, 1, boxes, back);
  for (std::size_t i = 0; i < 2; ++i) {
    const box one = suture::to_source(plan, 1, boxes[i]);
    EXPECT_EQ(back[i].low, one.low);
    EXPECT_EQ(back[i].high, one.high);
  }
}

// Lists of every sample at once; values that cannot be moved, or are in no list, say so and are 0.
TEST(Batches, OfListsAreTheSameAsOneByOne) {
  const ragged_batch batch;
  const suture::settings s{.seed = 3, .sample_ids = batch.ids};
  const auto plan = suture::plan(suture::random_affine{.rotate_deg = 20} |
                                     suture::random_elastic{.control_spacing_mm = 3, .max_displacement_mm = 1},
                                 batch.grids, s);
  const std::vector<std::int64_t> offsets{1, 1, 128, 145, 161};  // none, 127, 17 and 16; one before and two behind
  generator random(12);
  std::vector<point3> points;
  std::vector<box> boxes;
  for (int i = 0; i < 163; ++i) {
    const point3 p = random.within({50, 50, 50}, 9);
    points.push_back(p);
    boxes.push_back({p, {p[0] + 3, p[1] + random.uniform(0.1, 9), p[2] + 5}});
  }
  points[30][2] = std::numeric_limits<double>::quiet_NaN();
  boxes[30].high[0] = boxes[30].low[0];
  std::vector<located_point> moved(points.size());
  std::vector<suture::source_point> sources(points.size());
  std::vector<box_result> moved_boxes(boxes.size());
  suture::to_source(suture::cpu{.threads = 2}, plan, suture::ragged<point3>{points, offsets}, std::span(sources));
  suture::to_output(suture::cpu{.threads = 2}, plan, suture::ragged<point3>{points, offsets}, std::span(moved));
  suture::to_output(suture::cpu{}, plan, suture::ragged<box>{boxes, offsets}, std::span(moved_boxes));
  std::vector<suture::box_in_source> source_boxes(boxes.size());
  suture::to_source(suture::cpu{.threads = 2}, plan, suture::ragged<box>{boxes, offsets}, std::span(source_boxes));
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool valid = i >= 1 && i < 161 && i != 30;
    EXPECT_EQ(moved[i].valid, valid) << i;
    EXPECT_EQ(moved_boxes[i].valid, valid) << i;
    EXPECT_EQ(source_boxes[i].valid, valid) << i;
    EXPECT_EQ(sources[i].valid, valid) << i;
    if (!valid) {
      EXPECT_EQ(sources[i].point, (point3{0, 0, 0}));
      EXPECT_EQ(moved[i].point, (point3{0, 0, 0}));
      EXPECT_FALSE(moved[i].converged);
      EXPECT_EQ(moved_boxes[i].visible, 0);
      EXPECT_EQ(source_boxes[i].envelope.low, (point3{0, 0, 0}));
      EXPECT_EQ(source_boxes[i].envelope.high, (point3{0, 0, 0}));
      continue;
    }
    const std::size_t sample = i < 128 ? 1 : i < 145 ? 2 : 3;
    EXPECT_EQ(sources[i].point, suture::to_source(plan, sample, points[i]));
    const located_point one = suture::to_output(plan, sample, points[i]);
    EXPECT_EQ(moved[i].point, one.point);
    EXPECT_EQ(moved[i].residual, one.residual);
    if (i % 8 != 0) continue;
    const box_result whole = suture::to_output(plan, sample, boxes[i]);
    EXPECT_EQ(moved_boxes[i].unclipped.low, whole.unclipped.low);
    EXPECT_EQ(moved_boxes[i].clipped.high, whole.clipped.high);
    EXPECT_EQ(moved_boxes[i].visible, whole.visible);
    const box back = suture::to_source(plan, sample, boxes[i]);
    EXPECT_EQ(source_boxes[i].envelope.low, back.low);
    EXPECT_EQ(source_boxes[i].envelope.high, back.high);
  }
}

// What is thrown must say where, which sample, and what.
template <class F>
void expect_error(const F& f, const std::string& start, const std::string& part) {
  const std::string text = message(f);
  EXPECT_EQ(text.rfind(start, 0), 0U) << text << "; expected: " << start;
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Errors, NameOperationSampleAndValue) {
  const auto plan = plan_of(suture::flip{.axes = {true, false, false}}, asymmetric);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  expect_error([&] { (void)suture::to_source(plan, 1, {0, 0, 0}); }, "suture: to_source: ", "no sample 1");
  expect_error([&] { (void)suture::to_output(plan, 7, {0, 0, 0}); }, "suture: to_output: ", "no sample 7");
  expect_error([&] { (void)suture::to_source(plan, 0, {0, nan, 0}); }, "suture: to_source: sample 0: ", "nan");
  expect_error([&] { (void)suture::to_output(plan, 0, {0, 0, -infinity}); }, "suture: to_output: sample 0: ", "-inf");
  expect_error([&] { (void)suture::to_output(plan, 0, {1e300, 0, 0}); }, "suture: to_output: sample 0: ", "1e+300");
  expect_error(
      [&] {
        (void)suture::to_output(plan, 0, {5e6, 0, 0});
      },
      "suture: to_output: sample 0: ", "point (5000000, 0, 0) must be finite and within 4194304 voxels");
  expect_error(
      [&] {
        (void)suture::to_output(plan, 0, box{{0, 0, 0}, {1, infinity, 1}});
      },
      "suture: to_output: sample 0: ", "inf");
  expect_error(
      [&] {
        (void)suture::to_output(plan, 0, box{{0, 5, 0}, {1, 5, 1}});
      },
      "suture: to_output: sample 0: ", "empty along axis 1");
  expect_error(
      [&] {
        (void)suture::to_output(plan, 0, box{{0, 5, 2}, {1, 6, 1}});
      },
      "suture: to_output: sample 0: ", "empty along axis 2");
  const auto back = [&](const box& b) { (void)suture::to_source(plan, 0, b); };
  expect_error([&] { back({{0, 0, 0}, {1, infinity, 1}}); }, "suture: to_source: sample 0: ", "inf");
  expect_error([&] { back({{nan, 0, 0}, {1, 1, 1}}); }, "suture: to_source: sample 0: ", "nan");
  expect_error([&] { back({{0, 5, 0}, {1, 5, 1}}); }, "suture: to_source: sample 0: ", "empty along axis 1");
  expect_error(
      [&] {
        (void)suture::to_source(plan, 3, box{{0, 0, 0}, {1, 1, 1}});
      },
      "suture: to_source: ", "no sample 3");
  const std::vector<box> one_box{{{0, 0, 0}, {1, 1, 1}}};
  expect_error([&] { suture::to_source(plan, 0, one_box, std::span<box>{}); },
               "suture: to_source: sample 0: ", "1 given, room for 0");
  const std::vector<point3> two{{0, 0, 0}, {1, nan, 1}};
  std::vector<point3> one(1);
  std::vector<point3> results{{5, 5, 5}, {5, 5, 5}};
  expect_error([&] { suture::to_source(plan, 0, two, one); }, "suture: to_source: sample 0: ", "2 given, room for 1");
  expect_error([&] { suture::to_source(plan, 0, two, results); }, "suture: to_source: sample 0: ", "nan");
  EXPECT_EQ(results[0], (point3{5, 5, 5}));  // nothing was written
}

TEST(Errors, MapsThatCannotBeInverted) {
  for (const suture::matrix3& flat : {suture::matrix3{{{1, 0, 0}, {0, 0, 0}, {0, 0, 1}}},
                                      suture::matrix3{{{0.1, 0.2, 0.3}, {0.2, 0.4, 0.6}, {0, 0, 1}}}}) {
    const support::any_geometry project{true, {asymmetric, {flat, {0, 0, 0}}}, {}};
    const auto plan = plan_of(project, asymmetric);
    expect_near(suture::to_source(plan, 0, {1, 0, 0}), {flat[0][0], flat[1][0], 0}, 1e-15);
    EXPECT_EQ(suture::to_source(plan, 0, box{{0, 0, 2}, {1, 1, 3}}).low[2], 2);  // nothing is inverted
    expect_error(
        [&] {
          (void)suture::to_output(plan, 0, {0, 0, 0});
        },
        "suture: to_output: sample 0: ", "cannot be inverted");
    expect_error(
        [&] {
          (void)suture::to_output(plan, 0, box{{0, 0, 0}, {1, 1, 1}});
        },
        "suture: to_output: sample 0: ", "cannot be inverted");
  }
  // A small scale is no reason to refuse.
  const auto tiny = plan_of(suture::affine{.scale = {1e5, 1e5, 1e5}}, {.extents = {3, 3, 3}});
  expect_near(suture::to_output(tiny, 0, {1, 1.001, 1}).point, {1, 101, 1}, 1e-8);
}

TEST(Degenerate, PlansWithoutGeometryAndSingleVoxels) {
  const auto values = plan_of(suture::window{.center = 0, .width = 100}, asymmetric);
  expect_exactly(values, {1, 2.5, 3}, {1, 2.5, 3});
  expect_box_exactly(values, {{0, 0, 0}, {20, 31, 44}}, {{0, 0, 0}, {20, 31, 44}});
  const suture::grid voxel{.extents = {1, 1, 1}};
  const std::uint64_t id = 2;
  const suture::settings s{.seed = 1, .sample_ids = {&id, 1}};
  const auto still = plan_of(suture::random_elastic{.control_spacing_mm = 1, .max_displacement_mm = 0.3}, voxel, s);
  expect_exactly(still, {0, 0, 0}, {0, 0, 0});
  expect_box_exactly(still, {{0, 0, 0}, {1, 1, 1}}, {{0, 0, 0}, {1, 1, 1}});
  // In evaluation nothing random moves.
  const auto evaluated = plan_of(suture::random_affine{.rotate_deg = 90} |
                                     suture::random_elastic{.control_spacing_mm = 8, .max_displacement_mm = 3} |
                                     suture::random_crop{.size = {10, 11, 12}},
                                 asymmetric, {.seed = 1, .sample_ids = {&id, 1}, .evaluation = true});
  expect_exactly(evaluated, {0, 0, 0}, {5, 10, 16});
}

// The same bits from every compiler and every setting that keeps IEEE arithmetic.
TEST(Bits, AreTheSameEverywhere) {
  const ragged_batch batch;
  const suture::settings s{.seed = 99, .epoch = 1, .sample_ids = batch.ids};
  const auto plan =
      suture::plan(suture::resample{.spacing_mm = {1, 1.1, 1.3}} |
                       suture::random_affine{.rotate_deg = 30, .scale = {.8F, 1.25F}, .shear = .1F, .translate = 5} |
                       suture::random_elastic{.control_spacing_mm = 20, .max_displacement_mm = 6, .probability = .8F} |
                       suture::random_crop{.size = {26, 27, 28}} | suture::random_flip{},
                   batch.grids, s);
  std::uint64_t sum = 0;
  std::uint64_t index = 0;
  const auto add = [&](const point3& p) {
    for (const double value : p.v) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      sum += suture::digest_term(index++, bits);
    }
  };
  for (std::size_t i = 0; i < plan.size(); ++i)
    for (int z = -2; z < 40; z += 7)
      for (int y = -3; y < 40; y += 5)
        for (int x = -4; x < 40; x += 3) {
          const point3 p{z + 0.25, y + 0.125, x + 0.375};
          add(suture::to_source(plan, i, p));
          const located_point there = suture::to_output(plan, i, p);
          add(there.point);
          add({there.residual, there.converged ? 1.0 : 0.0, 0});
          if (x % 4 == 0) {
            const box_result b = suture::to_output(plan, i, box{p, {p[0] + 9, p[1] + 11, p[2] + 6.5}});
            add(b.unclipped.low);
            add(b.clipped.high);
            add({b.visible, 0, 0});
          }
        }
  EXPECT_EQ(suture::mix64(sum), 13765843056241285248ULL);
}

}  // namespace
