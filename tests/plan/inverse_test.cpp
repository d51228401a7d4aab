// SPDX-License-Identifier: Apache-2.0
// Geometry that undoes that of a plan: exact where it can be, as the definitions in double say where not.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/aligned_memory.hpp"
#include "support/expect_close.hpp"
#include "support/expect_says.hpp"
#include "support/library.hpp"
#include "support/training_recipe.hpp"

namespace {

using namespace suture;
using reference::size3;
using support::expect_close;

using reads_outside = sampling<linear, constant>;
const std::vector<std::uint64_t> one_id{11};
const size3 sizes[] = {{1, 1, 1}, {1, 15, 16}, {15, 16, 17}, {17, 1, 15}, {3, 127, 5}, {16, 17, 127}};

std::vector<float> values_of(std::size_t n) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i * 7919 % 1009) / 512 - .25f;
  return x;
}

// A batch of one through a plan.
template <class Plan>
std::vector<float> through(const Plan& p, const std::vector<float>& x, std::int64_t channels = 1) {
  std::vector<float> y(static_cast<std::size_t>(p.output_grid(0).voxels() * channels));
  run(cpu{}, p,
      image(contiguous(x.data(), p.source_grid(0), channels), contiguous(y.data(), p.output_grid(0), channels)));
  return y;
}

// Of sample i its output's indices along z, y and x, as the channels of an image: brought back they say where each
// voxel of the source was read.
std::vector<float> indices_of(const grid& g) {
  std::vector<float> v;
  for (int k = 0; k < 3; ++k)
    for (std::int64_t z = 0; z < g.extents[0]; ++z)
      for (std::int64_t y = 0; y < g.extents[1]; ++y)
        for (std::int64_t x = 0; x < g.extents[2]; ++x) v.push_back(static_cast<float>(extent3{z, y, x}[k]));
  return v;
}

// ---- exactly ----

TEST(Inverse, FlipsTurnsAndPermutationsGoBackToTheBit) {
  for (const size3& n : sizes) {
    const grid g{.extents = support::extents(n), .spacing = {2.5, 1, .7}, .origin = {5, -3, 8}};
    const std::vector<float> x = values_of(static_cast<std::size_t>(2 * g.voxels()));
    const auto out = plan(flip{{true, false, true}} | permute{{2, 0, 1}} | random_rot90{.axes = {0, 2}} | random_flip{},
                          std::vector{g}, {.sample_ids = one_id});
    const auto back = plan(inverse_of(out) | reads_outside{.border = {.value = 9}}, out.output_grids());
    EXPECT_EQ(back.output_grid(0).extents, g.extents);
    EXPECT_EQ(back.output_grid(0).spacing, g.spacing);
    EXPECT_EQ(back.output_grid(0).origin, g.origin);
    EXPECT_EQ(through(back, through(out, x, 2), 2), x) << g.extents;
  }
}

TEST(Inverse, CropsAndPadsComeBackToTheirPlace) {
  for (const size3& n : sizes) {
    const grid g{.extents = support::extents(n)};
    const std::vector<float> x = values_of(static_cast<std::size_t>(g.voxels()));
    extent3 size{};
    for (int k = 0; k < 3; ++k) size[k] = (g.extents[k] + 1) / 2;
    const auto out = plan(random_crop{.size = size} | pad{.before = {1, 0, 2}, .after = {0, 3, 1}}, std::vector{g},
                          {.sample_ids = one_id});
    const auto back = plan(inverse_of(out) | reads_outside{.border = {.value = -7}}, out.output_grids());
    const std::vector<float> y = through(back, through(out, x));
    // A volume of ones, brought back along, says what was covered: here the patch with its padding.
    std::vector<float> ones(static_cast<std::size_t>(out.output_grid(0).voxels()), 1);
    const auto covered = through(plan(inverse_of(out), out.output_grids()), ones);
    const point3 start = out.geometry(0).to_source.offset;  // where the padding begins
    const extent3 padded = out.output_grid(0).extents;
    std::size_t i = 0;
    for (std::int64_t z = 0; z < g.extents[0]; ++z)
      for (std::int64_t row = 0; row < g.extents[1]; ++row)
        for (std::int64_t c = 0; c < g.extents[2]; ++c, ++i) {
          bool in_output = true, in_crop = true;
          for (int k = 0; k < 3; ++k) {
            const double at = static_cast<double>(extent3{z, row, c}[k]) - start[k];
            const double before = point3{1, 0, 2}[k];
            in_output = in_output && at >= 0 && at < static_cast<double>(padded[k]);
            in_crop = in_crop && at >= before && at < before + static_cast<double>(size[k]);
          }
          EXPECT_EQ(covered[i], in_output ? 1.0f : 0.0f);
          EXPECT_TRUE(!in_crop || y[i] == x[i]);
          EXPECT_TRUE(in_output || y[i] == -7);
        }
  }
}

TEST(Inverse, GeometryMayFollow) {
  const grid g{.extents = {9, 21, 30}};
  const std::vector<float> x = values_of(static_cast<std::size_t>(g.voxels()));
  const crop box{.start = {2, 3, 4}, .size = {5, 6, 7}};
  const auto out = plan(random_flip{}, std::vector{g}, {.sample_ids = one_id});
  EXPECT_EQ(through(plan(inverse_of(out) | box, out.output_grids()), through(out, x)),
            through(plan(box, std::vector{g}), x));
  // The same behind a deformation that did not act.
  const auto bent = plan(random_elastic{.max_displacement_mm = 2, .probability = 0} | random_flip{}, std::vector{g},
                         {.sample_ids = one_id});
  EXPECT_EQ(through(plan(inverse_of(bent) | box, bent.output_grids()), through(bent, x)),
            through(plan(box, std::vector{g}), x));
}

// ---- as the definitions in double say ----

TEST(Inverse, AffineIsThatOfScipy) {
  const reference::matrix turn = reference::product(
      reference::product(reference::rotation_0(.3), reference::rotation_2(-.2)), reference::diagonal({1.1, .8, .9}));
  for (const size3& n : sizes) {
    const size3 cropped{n[0], (n[1] + 2) / 3, (n[2] + 1) / 2};
    const reference::volume v(n);
    // Pulls: the whole volume turned about its center, then a crop of it.
    reference::affine pull = reference::about(turn, v.center(), v.center());
    pull = reference::composed(pull, {reference::identity(), {0, 1. * static_cast<double>(n[1] - cropped[1]), 1}});
    const auto out = plan(support::geometry_of(pull, cropped), std::vector{support::voxel_grid(n)});
    const std::vector<float> x = values_of(static_cast<std::size_t>(out.output_grid(0).voxels()));
    const reference::affine back = reference::inverted(pull);
    const auto at = [&](const reference::point& p) { return back(p); };
    expect_close(through(plan(inverse_of(out) | reads_outside{.border = {.value = .5f}}, out.output_grids()), x),
                 reference::resampled(reference::volume(cropped, x), n, at,
                                      {reference::interpolation::linear, reference::outside::blend_constant, .5})
                     .values,
                 3e-5 * support::range_of(x) + 1e-6);
    expect_close(through(plan(inverse_of(out) | sampling<cubic_bspline, mirror>{}, out.output_grids()), x),
                 reference::resampled(reference::volume(cropped, x), n, at,
                                      {reference::interpolation::bspline, reference::outside::mirror, 0})
                     .values,
                 1e-4 * support::range_of(x) + 1e-6);
  }
}

// The whole training recipe, redrawn and computed by the reference: what a voxel of the source reads after the way back
// is the output position that the reference takes to this voxel.
TEST(Inverse, ElasticGoesBackToWhereItCameFrom) {
  const support::recipe r;
  const std::vector<support::sample_data> batch = support::make_batch();
  std::vector<grid> grids;
  std::vector<std::uint64_t> ids;
  for (const auto& s : batch) {
    grids.push_back(s.grid());
    ids.push_back(s.id);
  }
  const auto out = plan(support::training(r), grids, {.seed = r.seed, .epoch = r.epoch, .sample_ids = ids});
  const auto back = plan(inverse_of(out) | sampling<linear, edge>{}, out.output_grids());
  std::vector<std::vector<float>> from, to;
  std::vector<view<const float>> in;
  std::vector<view<float>> results;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    from.push_back(indices_of(out.output_grid(i)));
    to.emplace_back(static_cast<std::size_t>(3 * grids[i].voxels()));
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    in.push_back(contiguous<const float>(from[i].data(), out.output_grid(i), 3));
    results.push_back(contiguous(to[i].data(), grids[i], 3));
  }
  run(cpu{}, back, image(in, results));
  int bent = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const support::expectation e(r, batch[i]);
    bent += e.bent ? 1 : 0;
    const extent3& n = grids[i].extents;
    const auto voxels = static_cast<std::size_t>(grids[i].voxels());
    std::size_t v = 0, compared = 0;
    double worst = 0;
    for (std::int64_t z = 0; z < n[0]; ++z)
      for (std::int64_t y = 0; y < n[1]; ++y)
        for (std::int64_t x = 0; x < n[2]; ++x, ++v) {
          reference::point p{};
          bool inside = true;  // of the patch: beyond it the border holds the index
          for (std::size_t k = 0; k < 3; ++k) {
            p[k] = static_cast<double>(to[i][k * voxels + v]);
            inside = inside && p[k] > .01 && p[k] < static_cast<double>(r.patch[k]) - 1.01;
          }
          if (!inside) continue;
          ++compared;
          const reference::point read = e.pull(p);
          const double at[3] = {static_cast<double>(z), static_cast<double>(y), static_cast<double>(x)};
          for (std::size_t k = 0; k < 3; ++k) worst = std::max(worst, std::abs(read[k] - at[k]));
        }
    EXPECT_GT(compared, 500u);
    EXPECT_LT(worst, 2e-4) << "sample " << i;  // the residual, 1e-4 voxel, and the rounding of float indices
  }
  EXPECT_GE(bent, 3);
}

// The displacements at the limit of what cannot fold, in one to three dimensions and on axes of every size.
TEST(Inverse, ElasticOfEverySizeAgreesWithPoints) {
  for (const size3& n : sizes)
    for (const double share : {.05, .399}) {
      const grid g{.extents = support::extents(n), .spacing = {2, 1, .8}};
      const auto out =
          plan(random_affine{.rotate_deg = 10} |
                   random_elastic{.control_spacing_mm = 6, .max_displacement_mm = share * 4, .locked_borders = 0} |
                   random_flip{},
               std::vector{g}, {.seed = 5, .sample_ids = one_id});
      const auto back = plan(inverse_of(out) | sampling<linear, edge>{}, out.output_grids());
      const std::vector<float> read = through(back, indices_of(out.output_grid(0)), 3);
      const auto voxels = static_cast<std::size_t>(g.voxels());
      std::vector<float> actual, expected;
      for (std::size_t v = 0; v < voxels; ++v) {
        const auto i = static_cast<std::int64_t>(v);
        const auto at = vec_cast<double>(
            extent3{i / (g.extents[1] * g.extents[2]), i / g.extents[2] % g.extents[1], i % g.extents[2]});
        const located_point p = to_output(out, 0, at);
        for (int k = 0; k < 3; ++k) {
          const double last = static_cast<double>(out.output_grid(0).extents[k] - 1);
          actual.push_back(read[static_cast<std::size_t>(k) * voxels + v]);
          expected.push_back(static_cast<float>(std::fmin(std::fmax(p.point[k], 0), last)));
        }
      }
      // 64 iterations may leave a point unfinished where displacements are at the limit; the image goes on.
      expect_close(actual, expected, share < .1 ? 1e-4 : 5e-3);
    }
}

// Two voxels whose centers end the mesh are an axis along which space bends: .45 cells then may fold it.
TEST(Inverse, TwoVoxelsAreAnAxisThatBends) {
  const auto bent = [](std::int64_t slices, mesh_span mesh) {
    return plan(random_elastic{.control_spacing_mm = {1, 16, 16},
                               .max_displacement_mm = {0, 7.2, 7.2},
                               .allow_folding = true,
                               .mesh = mesh},
                std::vector{grid{.extents = {slices, 64, 64}}}, {.sample_ids = one_id});
  };
  for (const mesh_span mesh : {mesh_span::faces, mesh_span::centers, mesh_span::itk}) {
    const auto two = bent(2, mesh);
    EXPECT_SAYS(plan(inverse_of(two), two.output_grids()), "may fold space");
    const auto single = bent(1, mesh);
    EXPECT_EQ(plan(inverse_of(single), single.output_grids()).output_grid(0).extents, (extent3{1, 64, 64}));
  }
}

// There and back a smooth image stays what it was, but for interpolating twice.
TEST(Inverse, SmoothImagesComeBack) {
  const grid g{.extents = {30, 41, 52}};
  std::vector<float> x;
  for (int z = 0; z < 30; ++z)
    for (int y = 0; y < 41; ++y)
      for (int c = 0; c < 52; ++c)
        x.push_back(static_cast<float>(std::sin(.2 * z) + std::cos(.15 * y) + std::sin(.1 * c)));
  const auto out =
      plan(random_affine{.rotate_deg = 10} | random_elastic{.control_spacing_mm = 16, .max_displacement_mm = 4} |
               sampling<cubic_bspline, mirror>{},
           std::vector{g}, {.sample_ids = one_id});
  const std::vector<float> ones(x.size(), 1);
  const auto y =
      through(plan(inverse_of(out) | sampling<cubic_bspline, mirror>{}, out.output_grids()), through(out, x));
  const auto covered = through(plan(inverse_of(out), out.output_grids()), ones);
  std::vector<double> inside;  // covered, and away from the rim, where the border bends the image
  for (int z = 0, i = 0; z < 30; ++z)
    for (int row = 0; row < 41; ++row)
      for (int c = 0; c < 52; ++c, ++i) {
        const bool rim = z < 5 || z >= 25 || row < 5 || row >= 36 || c < 5 || c >= 47;
        inside.push_back(!rim && covered[static_cast<std::size_t>(i)] == 1 ? 1 : 0);
      }
  expect_close(y, x, 5e-3, inside);
}

// ---- on every executor, of everything ----

TEST(Inverse, LoneVoxelsAndThreadsGiveTheBitsOfARun) {
  const grid g{.extents = {5, 17, 70}};
  const auto out =
      plan(random_affine{.rotate_deg = 20} | random_elastic{.control_spacing_mm = 8, .max_displacement_mm = 2},
           std::vector{g}, {.sample_ids = one_id});
  const auto back = plan(inverse_of(out), out.output_grids());
  const std::vector<float> x = values_of(static_cast<std::size_t>(2 * g.voxels()));
  const std::vector<float> whole = through(back, x, 2);
  std::vector<float> y(x.size()), other(x.size());
  const auto in = contiguous(x.data(), g, 2);
  const auto result = contiguous(y.data(), g, 2);
  const auto pair = image(in, result);
  run(cpu{.threads = 3}, back, pair);
  EXPECT_EQ(y, whole);
  const support::aligned_memory workspace(workspace_bytes(back, pair));
  const auto evaluate = prepare(cpu{.workspace = workspace.span()}, back, pair);
  for (std::int32_t i = 0; i < 2 * 5 * 17 * 70; ++i)
    ASSERT_EQ(evaluate(0, i / 1190 % 5, i / 70 % 17, i % 70, i / 5950), whole[static_cast<std::size_t>(i)]) << i;
}

TEST(Inverse, LabelsComeBackAsWell) {
  const grid g{.extents = {4, 6, 8}};
  std::vector<std::uint8_t> x(192), moved(192), y(192);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint8_t>(i % 7);
  const auto out = plan(random_flip{} | random_rot90{.axes = {0, 1}}, std::vector{g}, {.sample_ids = one_id});
  run(cpu{}, out, labels(contiguous<const std::uint8_t>(x.data(), g), contiguous(moved.data(), out.output_grid(0))));
  const auto back = plan(inverse_of(out), out.output_grids());
  run(cpu{}, back, labels(contiguous<const std::uint8_t>(moved.data(), out.output_grid(0)), contiguous(y.data(), g)));
  EXPECT_EQ(y, x);
}

// ---- test-time augmentation ----

TEST(Inverse, AsThePageSays) {
  const grid scan{.extents = {12, 30, 28}, .spacing = {2.5, 1, 1}};
  const auto voxels = static_cast<std::size_t>(scan.voxels());
  std::vector<float> smooth;
  for (int z = 0; z < 12; ++z)
    for (int y = 0; y < 30; ++y)
      for (int x = 0; x < 28; ++x) smooth.push_back(static_cast<float>(.5 + .02 * z - .01 * y + .013 * x));
  const std::vector<view<const float>> ct(4, contiguous<const float>(smooth.data(), scan));
  const std::vector<std::uint64_t> ids{0, 1, 2, 3};
  const auto augment = random_affine{.rotate_deg = {0, 0, 15}, .scale = {.9f, 1.1f}} | random_flip{} |
                       random_elastic{.control_spacing_mm = 10, .max_displacement_mm = 2} | sampling<linear, edge>{};
  std::vector<float> seen(4 * voxels), probabilities(4 * 2 * voxels), restored(4 * 2 * voxels), coverage(4 * voxels),
      mean(2 * voxels);
  const auto predict = [&] {  // two classes, each voxel for itself
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t v = 0; v < voxels; ++v) {
        probabilities[2 * i * voxels + v] = seen[i * voxels + v];
        probabilities[(2 * i + 1) * voxels + v] = 1 - seen[i * voxels + v];
      }
  };
  // Four augmented views of one scan, predicted, and each prediction brought back to where the scan lies.
  const auto out = suture::plan(augment, ct, {.seed = 42, .sample_ids = ids});
  const std::vector<suture::grid> grids = out.output_grids();
  const auto views = suture::batch_views(seen.data(), grids);
  suture::run(suture::cpu{}, out, suture::image(ct, views));
  predict();  // from `seen` the probabilities of two classes

  // [augmentation]
  const auto back = suture::plan(suture::inverse_of(out), grids);
  const std::vector<suture::grid> scans = back.output_grids();
  const std::vector<float> ones(4 * voxels, 1);
  const auto all = suture::batch_views(ones.data(), grids);
  const auto predicted = suture::batch_views<const float>(probabilities.data(), grids, 2);
  const auto returned = suture::batch_views(restored.data(), scans, 2);
  const auto covered = suture::batch_views(coverage.data(), scans);
  suture::run(suture::cpu{}, back, suture::image(predicted, returned), suture::image(all, covered));

  suture::average(suture::cpu{}, suture::patch_tensor<float>{restored.data(), 2, 0, 4},
                  suture::patch_tensor<float>{coverage.data(), 1, 0, 4}, suture::contiguous(mean.data(), scan, 2),
                  {.outside = 0});
  // [/augmentation]
  std::vector<double> inside;
  for (int z = 0, v = 0; z < 12; ++z)
    for (int y = 0; y < 30; ++y)
      for (int x = 0; x < 28; ++x, ++v) inside.push_back(y > 6 && y < 23 && x > 6 && x < 21 && z > 1 && z < 10 ? 1 : 0);
  expect_close(std::vector<float>(mean.begin(), mean.begin() + static_cast<std::ptrdiff_t>(voxels)), smooth, 2e-3,
               inside);
  for (std::size_t v = 0; v < voxels; ++v) EXPECT_NEAR(mean[v] + mean[voxels + v], 1, 1e-5) << v;
}

TEST(Average, IsTheWeightedMean) {
  for (const size3& n : sizes) {
    const grid g{.extents = support::extents(n)};
    const auto voxels = static_cast<std::size_t>(g.voxels());
    const std::vector<float> r = values_of(3 * 2 * voxels);
    std::vector<float> w = values_of(3 * voxels);
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = i % 4 == 0 ? 0 : std::abs(w[i]);
    for (std::size_t i = 0; i < 3; ++i) {
      w[i * voxels] = 0;                                   // voxel 0 is never covered
      if (voxels > 1) w[i * voxels + voxels - 1] = 2e-4f;  // the last one not enough
    }
    std::vector<suture::half> halves(r.size());
    for (std::size_t i = 0; i < r.size(); ++i) halves[i] = storage<suture::half>::store(r[i]);
    std::vector<float> out(2 * voxels), of_halves(2 * voxels);
    const patch_tensor<float> coverage{w.data(), 1, 0, 3};
    average(cpu{}, patch_tensor<float>{r.data(), 2, 0, 3}, coverage, contiguous(out.data(), g, 2), {.outside = -5});
    std::vector<float> covered(2 * voxels, -9);  // every second element
    average(cpu{.threads = 1}, patch_tensor<suture::half>{halves.data(), 2, 0, 3}, coverage,
            channels_last(of_halves.data(), g, 2), {.outside = -5},
            {.data = covered.data(), .grid = g, .stride = channels_last(covered.data(), g, 2).stride});
    for (std::size_t v = 0; v < voxels; ++v)
      for (std::size_t c = 0; c < 2; ++c) {
        double sum = 0, weights = 0, sum_of_halves = 0;
        for (std::size_t i = 0; i < 3; ++i) {
          sum += static_cast<double>(r[(2 * i + c) * voxels + v]);
          sum_of_halves += static_cast<double>(storage<suture::half>::load(halves[(2 * i + c) * voxels + v]));
          weights += static_cast<double>(w[i * voxels + v]);
        }
        const bool some = weights >= 1e-3;
        EXPECT_NEAR(out[c * voxels + v], some ? sum / weights : -5, some ? 1e-6 * (1 + 2 / weights) : 0);
        EXPECT_NEAR(of_halves[2 * v + c], some ? sum_of_halves / weights : -5, some ? 1e-6 * (1 + 2 / weights) : 0);
        EXPECT_NEAR(covered[2 * v + c], c == 1 ? -9 : some ? weights : 0, some && c == 0 ? 1e-5 : 0);
      }
    EXPECT_EQ(out[0], -5);
  }
}

TEST(Average, SaysWhatIsWrong) {
  const grid g{.extents = {2, 3, 4}};
  std::vector<float> r(3 * 24), w(3 * 24), out(24);
  const auto result = contiguous(out.data(), g);
  const patch_tensor<float> volumes{r.data(), 1, 0, 3}, coverage{w.data(), 1, 0, 3};
  EXPECT_SAYS(average(cpu{}, volumes, {w.data(), 1, 0, 2}, result, {}),
              "average: 2 coverages of 1 channels for 3 volumes");
  EXPECT_SAYS(average(cpu{}, volumes, {w.data(), 2, 0, 3}, result, {}), "3 coverages of 2 channels");
  EXPECT_SAYS(average(cpu{}, patch_tensor<float>{r.data(), 2, 0, 3}, coverage, result, {}),
              "output has 1 channels, the volumes 2");
  EXPECT_SAYS(average(cpu{}, patch_tensor<float>{r.data(), 1, 1, 3}, coverage, result, {}), "volumes begin at 1");
  EXPECT_SAYS(average(cpu{}, patch_tensor<float>{nullptr, 1, 0, 3}, coverage, result, {}), "null pointer");
  EXPECT_SAYS(average(cpu{}, patch_tensor<float>{r.data(), 1, 0, 0}, coverage, result, {}), "0 volumes are not in");
  EXPECT_SAYS(average(cpu{}, patch_tensor<float>{out.data(), 1, 0, 1}, {w.data(), 1, 0, 1}, result, {}),
              "output overlaps the volumes in memory");
  EXPECT_SAYS(average(cpu{}, volumes, coverage, result, {.least = 0}), "least coverage 0 must be positive");
  std::vector<float> beside(48);
  EXPECT_SAYS(average(cpu{}, volumes, coverage, result, {}, contiguous(beside.data(), g, 2)),
              "average: covered: extents (2, 3, 4) of 2 channels, the mean has (2, 3, 4); one channel is needed");
  EXPECT_SAYS(average(cpu{}, volumes, coverage, result, {}, contiguous(beside.data(), grid{.extents = {2, 3, 5}})),
              "average: covered: extents (2, 3, 5)");
  view<float> repeated = contiguous(beside.data(), g);
  repeated.stride[0] = 0;
  EXPECT_SAYS(average(cpu{}, volumes, coverage, result, {}, repeated), "average: covered: ");
  EXPECT_SAYS(average(cpu{}, volumes, coverage, result, {}, result), "covered overlaps the output in memory");
  EXPECT_SAYS(average(cpu{}, volumes, coverage, result, {}, contiguous(w.data(), g)),
              "output overlaps the coverage in memory");
}

// ---- what is refused ----

TEST(Inverse, ErrorsNameTheSampleAndTheValue) {
  const std::vector<grid> two{{.extents = {8, 9, 10}}, {.extents = {20, 30, 40}}};
  const std::vector<std::uint64_t> ids{1, 2};
  const auto out = plan(random_flip{}, two, {.sample_ids = ids});
  EXPECT_SAYS(
      plan(inverse_of(out), std::vector{two[0], two[0]}),
      "inverse_of: sample 1: extents (8, 9, 10) differ from (20, 30, 40), which the plan that is undone puts out");
  EXPECT_SAYS(plan(inverse_of(out), std::vector{two[0], two[1], two[1]}),
              "inverse_of: sample 2: there is no such sample in the plan of 2 that is undone");

  const auto flat = plan(support::geometry_of(reference::affine{reference::diagonal({1, 0, 1}), {0, 0, 0}}, {8, 9, 10}),
                         std::vector{two[0]});
  EXPECT_SAYS(plan(inverse_of(flat), flat.output_grids()),
              "inverse_of: sample 0: the map from output to source has determinant 0 and cannot be undone");

  const elastic may_fold{.control_spacing_mm = 5, .max_displacement_mm = 3, .allow_folding = true};
  const auto folded = plan(may_fold, two);
  EXPECT_SAYS(plan(inverse_of(folded), folded.output_grids()),
              "inverse_of: sample 0: displacements of (3, 3, 3) voxels may fold space");
  // What cannot fold can be undone, whatever was allowed; a plane may be bent further than a volume.
  const std::vector<grid> plane{{.extents = {1, 30, 40}}};
  for (const double share : {.39, .47}) {
    const auto bent =
        plan(elastic{.control_spacing_mm = 10, .max_displacement_mm = 10 * share, .allow_folding = true}, plane);
    EXPECT_SAYS(plan(inverse_of(bent), bent.output_grids()), "no error");
  }

  const auto bent = plan(elastic{.control_spacing_mm = 5, .max_displacement_mm = 1}, two);
  const auto back = plan(inverse_of(bent), bent.output_grids());
  EXPECT_SAYS(to_output(back, 0, point3{1, 1, 1}), "the plan undoes a deformation; move points the other way");
}

}  // namespace
