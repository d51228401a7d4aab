// SPDX-License-Identifier: Apache-2.0
// Points and boxes through elastic deformations: published numbers, the executor's own coordinates, and the way back.
#include <algorithm>
#include <array>
#include <type_traits>

#include "support/points.hpp"
#include "support/refused_memory.hpp"

namespace {

using namespace support;
using namespace suture;

// The displacement of seven published control values along x, 4 of them per cell, the other axes constant.
auto published_displacement(double scale, double margin) {
  const auto control = [scale](std::int32_t component, std::int32_t, std::int32_t, std::int32_t x) {
    constexpr std::array<double, 7> phi{0, 0, 1, -1, 0.5, 0, 0};
    return component == 2 ? static_cast<float>(scale * phi[static_cast<std::size_t>(x)]) : 0.0F;
  };
  const double cells = 4 / (64 + 2 * margin);
  return suture::detail::spline_displacement<decltype(control)>(
      {5, 4, 7}, {suture::diagonal({0.1, 0.05, cells}), {0.05, 0.025, (0.5 + margin) * cells}}, control);
}

TEST(Elastic, ReproducesPublishedDisplacements) {
  auto itk = published_displacement(1, 0.125);
  expect_near(itk({3, 8, 0}), {0, 0, 0.1868396589}, printed);
  expect_near(itk({3, 8, 10}), {0, 0, 0.5232278912}, printed);
  expect_near(itk({3, 8, 31.5}), {0, 0, -0.4166666667}, printed);
  expect_near(itk({3, 8, 63}), {0, 0, 0.0934149202}, printed);
  auto plain = published_displacement(1, 0);
  expect_near(plain({3, 8, 0}), {0, 0, 0.1827596029}, printed);
  expect_near(plain({3, 8, 10}), {0, 0, 0.5217081706}, printed);
  expect_near(plain({3, 8, 63}), {0, 0, 0.0913772583}, printed);
}

TEST(Elastic, ReproducesPublishedDisplacementsWithoutMemory) {
  auto u = published_displacement(1, 0.125);
  point3 first{};
  point3 second{};
  point3 again{};
  {
    const support::refused_memory none;
    first = u({3, 8, 10});
    second = u({3, 8, 31.5});
    again = u({3, 8, 10});
  }
  expect_near(first, {0, 0, 0.5232278912}, printed);
  expect_near(second, {0, 0, -0.4166666667}, printed);
  expect_near(again, {0, 0, 0.5232278912}, printed);
  expect_near(u({3, 8, 63}), {0, 0, 0.0934149202}, printed);
}

TEST(Elastic, ReproducesPublishedInverses) {
  auto u = published_displacement(4, 0.125);
  for (const auto& [x, y] : {std::pair{20.0, 18.5911678829}, {33.0, 34.6233960315}}) {
    const suture::detail::undisplaced found = suture::detail::undisplace({3, 8, x}, u);
    EXPECT_TRUE(found.converged);
    expect_near(found.y, {3, 8, y}, 1e-6);
    EXPECT_NEAR(found.y[2] + u(found.y)[2], x, 1e-6);
  }
}

// Kept apart from the caller: GCC cannot see that a column sets its sums before it reads them.
template <class Pipeline>
[[gnu::noinline]] point3 located(suture::column<Pipeline>& walk) {
  suture::coordinate c[3];
  walk.locate(c);
  point3 p{};
  for (int k = 0; k < 3; ++k) p[k] = static_cast<double>(c[k].base) + static_cast<double>(c[k].fraction);
  return p;
}

// What the executor samples at the voxels of a planned sample.
template <class Plan>
class executor_coordinates {
public:
  executor_coordinates(const Plan& plan, std::size_t i) : sample_(plan.sample(i)) {
    if constexpr (Plan::pipeline_type::has_deformation) {
      const auto& n = sample_.controls.drawn.control_points;
      if (!sample_.controls.on) return;
      for (std::int32_t z = 0; z < n[0]; ++z)
        for (std::int32_t y = 0; y < n[1]; ++y)
          for (std::int32_t x = 0; x < n[2]; ++x)
            vectors_.push_back(suture::detail::expanded(sample_.controls, z, y, x));
      sample_.controls.vectors = vectors_.data();
    }
  }
  // The voxels from z = 0 on at (y, x).
  std::vector<point3> column(std::int64_t voxels, std::int32_t y, std::int32_t x) const {
    std::vector<point3> result;
    suture::column<typename Plan::pipeline_type> walk(sample_, 0, y, x);
    for (std::int64_t z = 0; z < voxels; ++z, walk.step()) result.push_back(located(walk));
    return result;
  }

private:
  typename Plan::parameters_type sample_;
  std::vector<suture::control_vector> vectors_;
};

// Every voxel of every fourth column of the output, against the coordinate the executor samples there.
template <class Plan>
void expect_the_executors_coordinates(const Plan& plan) {
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const executor_coordinates<Plan> executor(plan, i);
    const suture::extent3 n = plan.output_grid(i).extents;
    std::vector<point3> outputs;
    std::vector<point3> expected;
    for (std::int32_t y = 0; y < n[1]; y += 2)
      for (std::int32_t x = 0; x < n[2]; x += 2) {
        const std::vector<point3> column = executor.column(n[0], y, x);
        expected.insert(expected.end(), column.begin(), column.end());
        for (std::int64_t z = 0; z < n[0]; ++z)
          outputs.push_back({static_cast<double>(z), static_cast<double>(y), static_cast<double>(x)});
      }
    std::vector<point3> sources(outputs.size());
    suture::to_source(plan, i, outputs, sources);
    double worst = 0;
    for (std::size_t j = 0; j < sources.size(); ++j) worst = std::max(worst, distance(sources[j], expected[j]));
    EXPECT_LT(worst, 1e-4) << "sample " << i << ", " << sources.size() << " voxels";
    EXPECT_GT(sources.size(), 10000U);
  }
}

TEST(Executor, SamplesWhereToSourceSays) {
  const ragged_batch batch;
  for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
    const suture::settings s{.seed = 21, .epoch = epoch, .sample_ids = batch.ids};
    // Elastic between two other maps; padding reaches beyond the mesh of control points.
    expect_the_executors_coordinates(
        suture::plan(suture::resample{.spacing_mm = {1, 1, 1}} |
                         suture::random_affine{.rotate_deg = 30, .scale = {.7F, 1.4F}, .shear = .1F, .translate = 6} |
                         suture::random_elastic{.control_spacing_mm = 18, .max_displacement_mm = 6} |
                         suture::pad_to{{70, 60, 60}} | suture::random_crop{.size = {40, 41, 42}},
                     batch.grids, s));
    // Everything right of the deformation, which is off for some samples.
    expect_the_executors_coordinates(suture::plan(suture::random_elastic{.control_spacing_mm = {25, 20, 15},
                                                                         .max_displacement_mm = {4, 6, 5},
                                                                         .mesh = suture::mesh_span::itk,
                                                                         .probability = .6F} |
                                                      suture::resample{.spacing_mm = {1.5, 1.5, 1.5}} |
                                                      suture::rot90{} | suture::random_affine{.rotate_deg = 180} |
                                                      suture::crop_or_pad{{30, 40, 50}},
                                                  batch.grids, s));
  }
}

TEST(Executor, SamplesWhereToSourceSaysInLargeImages) {
  const suture::grid slide{.extents = {1, 120000, 90000}, .spacing = {1, 0.00025, 0.00025}};
  const auto plan = plan_of(suture::affine{.rotate_deg = {17, 0, 0}, .scale = {1, 1.1, 1.1}}, slide);
  const executor_coordinates<std::remove_const_t<decltype(plan)>> executor(plan, 0);
  generator random(6);
  for (int i = 0; i < 2000; ++i) {
    const auto y = static_cast<std::int32_t>(random.uniform(0, 120000));
    const auto x = static_cast<std::int32_t>(random.uniform(0, 90000));
    expect_near(suture::to_source(plan, 0, {0, static_cast<double>(y), static_cast<double>(x)}),
                executor.column(1, y, x)[0], 1e-6);
  }
}

// Displacements as strong as they may be without allow_folding, and no border held still.
TEST(Elastic, RoundTripsFromBothSides) {
  const suture::grid g{.extents = {40, 64, 48}};
  generator random(7);
  const std::uint64_t id = 4;
  double furthest = 0;
  for (std::uint32_t epoch = 0; epoch < 40; ++epoch) {
    const auto plan =
        plan_of(suture::random_affine{.rotate_deg = 45, .scale = {.8F, 1.3F}} |
                    suture::random_elastic{.control_spacing_mm = 8, .max_displacement_mm = 3.2, .locked_borders = 0} |
                    suture::random_flip{},
                g, {.seed = 33, .epoch = epoch, .sample_ids = {&id, 1}});
    for (int j = 0; j < 100; ++j) {
      // Anywhere in the source, and around it, where the displacement of the rim continues.
      const point3 p = random.within(g.extents, 10);
      const located_point there = suture::to_output(plan, 0, p);
      EXPECT_TRUE(there.converged);
      EXPECT_LT(there.residual, 1e-5);
      const point3 read = suture::to_source(plan, 0, there.point);
      EXPECT_NEAR(there.residual, distance(read, p), 1e-12);
      expect_near(read, p, 1e-5);
      const point3 q = random.within(g.extents, 10);
      expect_near(suture::to_output(plan, 0, suture::to_source(plan, 0, q)).point, q, 1e-5);
      const auto& map = plan.geometry(0);
      furthest = std::max(furthest, distance(map.to_source(map.to_deformed(there.point)), p));
    }
  }
  EXPECT_GT(furthest, 1.5);  // voxels: there was something to invert
}

TEST(Elastic, SaysWhereItFolds) {
  const suture::grid g{.extents = {40, 40, 40}};
  const std::uint64_t id = 1;
  const auto plan =
      plan_of(suture::random_elastic{.control_spacing_mm = 8, .max_displacement_mm = 40, .allow_folding = true}, g,
              {.seed = 1, .sample_ids = {&id, 1}});
  int diverged = 0;
  generator random(8);
  for (int i = 0; i < 100; ++i) {
    const point3 p = random.within(g.extents);
    const located_point there = suture::to_output(plan, 0, p);
    EXPECT_NEAR(there.residual, distance(suture::to_source(plan, 0, there.point), p), 1e-12);
    if (!there.converged)
      ++diverged;
    else
      EXPECT_LT(there.residual, 1e-4);
  }
  EXPECT_GT(diverged, 10);
  EXPECT_FALSE(suture::to_output(plan, 0, box{{5, 5, 5}, {35, 35, 35}}).converged);
}

// Two slices whose centers end the mesh are displaced each by its own amount. Control planes of 0, 0, 6 and 6 move the
// first by 1/6 of 6 along x and the second by 5/6 of it.
TEST(Boxes, HaveTheDisplacementsOfBothSlices) {
  std::vector<float> controls(3 * 64);
  std::fill(controls.end() - 32, controls.end(), 6.0F);
  const auto plan = plan_of(suture::elastic{.max_displacement_mm = {0, 6, 6},
                                            .locked_borders = 0,
                                            .control_points = {4, 4, 4},
                                            .mesh = suture::mesh_span::centers,
                                            .control_values = controls},
                            {.extents = {2, 64, 64}});
  const box moved = suture::to_source(plan, 0, box{{0, 10, 12}, {2, 50, 40}});
  expect_near(moved.low, {0, 10, 13}, 1e-6);
  expect_near(moved.high, {2, 50, 45}, 1e-6);
}

// Against the envelope of every voxel corner of the box's surface and inside, moved one by one.
TEST(Boxes, DeformedEnvelopeHoldsTheBox) {
  const ragged_batch batch;
  generator random(9);
  const suture::settings s{.seed = 3, .sample_ids = batch.ids};
  const auto plan = suture::plan(suture::resample{.spacing_mm = {1, 1, 1}} | suture::random_affine{.rotate_deg = 20} |
                                     suture::random_elastic{.control_spacing_mm = 16, .max_displacement_mm = 5},
                                 batch.grids, s);
  for (std::size_t i = 0; i < plan.size(); ++i)
    for (int j = 0; j < 3; ++j) {
      box b{};
      for (int k = 0; k < 3; ++k) {
        const auto n = static_cast<double>(plan.source_grid(i).extents[k]);
        b.low[k] = std::floor(random.uniform(0, n / 2));
        b.high[k] = std::floor(random.uniform(b.low[k] + 4, n));
      }
      std::vector<point3> voxels;
      for (double z = b.low[0]; z <= b.high[0]; z += 1)
        for (double y = b.low[1]; y <= b.high[1]; y += 1)
          for (double x = b.low[2]; x <= b.high[2]; x += 1) voxels.push_back({z - 0.5, y - 0.5, x - 0.5});
      std::vector<located_point> moved(voxels.size());
      suture::to_output(plan, i, voxels, moved);
      point3 low{1e9, 1e9, 1e9};
      point3 high{-1e9, -1e9, -1e9};
      for (const located_point& p : moved)
        for (int k = 0; k < 3; ++k) {
          low[k] = std::fmin(low[k], p.point[k] + 0.5);
          high[k] = std::fmax(high[k], p.point[k] + 0.5);
        }
      const box_result there = suture::to_output(plan, i, b);
      EXPECT_TRUE(there.converged);
      // Between two points of the lattice the surface bulges a little.
      expect_near(there.unclipped.low, low, 0.1, "low");
      expect_near(there.unclipped.high, high, 0.1, "high");
    }
}

// Back to the source from anywhere in the output, some boxes across its border.
TEST(Boxes, DeformedEnvelopeInTheSourceHoldsTheBox) {
  const ragged_batch batch;
  generator random(15);
  const auto bend = suture::resample{.spacing_mm = {1, 1, 1}} |
                    suture::random_elastic{.control_spacing_mm = 16, .max_displacement_mm = 5, .locked_borders = 0};
  const auto check = [&](const auto& plan) {
    for (std::size_t i = 0; i < plan.size(); ++i)
      for (int j = 0; j < 4; ++j) {
        box b{};
        for (int k = 0; k < 3; ++k) {
          const auto n = static_cast<double>(plan.output_grid(i).extents[k]);
          b.low[k] = random.uniform(-4, n - 2);
          b.high[k] = b.low[k] + random.uniform(1, 40);
        }
        expect_envelope(plan, i, b, 0.1);  // between two points of the lattice the surface bulges a little
        expect_returned(plan, i, b, 0.1);
      }
  };
  const suture::settings s{.seed = 5, .sample_ids = batch.ids};
  check(suture::plan(bend, batch.grids, s));
  check(suture::plan(bend | suture::random_affine{.rotate_deg = 25, .scale = {.8F, 1.3F}} |
                         suture::random_crop{.size = {30, 31, 32}} | suture::random_flip{},
                     batch.grids, s));
}

// A 2D image is bent within its plane only, and a box there moves as the plane does.
TEST(Boxes, OfDeformedImages) {
  const suture::grid image{.extents = {1, 90, 120}, .spacing = {5, 0.7, 0.7}};
  const std::uint64_t id = 8;
  const auto plan = plan_of(suture::random_affine{.rotate_deg = {{-25, 25}, 0, 0}} |
                                suture::random_elastic{.control_spacing_mm = 20, .max_displacement_mm = 8} |
                                suture::random_crop{.size = {1, 70, 80}},
                            image, {.seed = 4, .sample_ids = {&id, 1}});
  const box b{{0, 30, 40}, {1, 52, 75}};
  const box_result there = suture::to_output(plan, 0, b);
  point3 low{0, 1e9, 1e9};
  point3 high{1, -1e9, -1e9};
  for (double y = b.low[1]; y <= b.high[1]; y += 1)
    for (double x = b.low[2]; x <= b.high[2]; x += 1) {
      const located_point p = suture::to_output(plan, 0, point3{0, y - 0.5, x - 0.5});
      EXPECT_TRUE(p.converged);
      EXPECT_EQ(p.point[0], 0);
      for (int k = 1; k < 3; ++k) {
        low[k] = std::fmin(low[k], p.point[k] + 0.5);
        high[k] = std::fmax(high[k], p.point[k] + 0.5);
      }
    }
  expect_near(there.unclipped.low, low, 0.01, "low");
  expect_near(there.unclipped.high, high, 0.01, "high");
  EXPECT_EQ(there.unclipped.low[0], 0);
  EXPECT_EQ(there.unclipped.high[0], 1);
  EXPECT_TRUE(there.converged);
  EXPECT_TRUE(suture::box_filter{}.keeps(there));
  const box patch{{0, 20, 30}, {1, 41, 66}};
  const box back = suture::to_source(plan, 0, patch);
  EXPECT_EQ(back.low[0], 0);
  EXPECT_EQ(back.high[0], 1);
  expect_envelope(plan, 0, patch, 0.01);
  expect_returned(plan, 0, patch, 0.01);
}

// Where it folds a box has an envelope all the same; to_output alone can fail.
TEST(Boxes, GoBackWhereADeformationFolds) {
  const std::uint64_t id = 1;
  const auto plan =
      plan_of(suture::random_elastic{.control_spacing_mm = 8, .max_displacement_mm = 40, .allow_folding = true},
              {.extents = {40, 40, 40}}, {.seed = 1, .sample_ids = {&id, 1}});
  expect_envelope(plan, 0, {{5, 6, 7}, {35, 25, 15}}, 3);
}

}  // namespace
