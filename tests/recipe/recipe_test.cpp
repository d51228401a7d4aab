// SPDX-License-Identifier: Apache-2.0
// Published recipes: how they are put together, and how often and how far they change a sample.
#include <gtest/gtest.h>

#include <suture/mask/mask_image.hpp>
#include <suture/recipe/monai_brats.hpp>
#include <suture/recipe/monai_colon.hpp>
#include <suture/recipe/monai_spleen.hpp>
#include <suture/recipe/nnunet.hpp>
#include <suture/suture.hpp>

#include "support/expect_says.hpp"

namespace {

using namespace suture;

// Of published code: compute_initial_patch_size with the rotations of the configuration.
TEST(Nnunet, EnlargesAPatchAsItsLoaderDoes) {
  EXPECT_EQ((nnunet_shape{{128, 128, 128}}.enlarged()), (extent3{205, 205, 205}));
  EXPECT_EQ((nnunet_shape{{96, 160, 160}}.enlarged()), (extent3{191, 257, 219}));
  EXPECT_EQ((nnunet_shape{{28, 256, 256}}.enlarged()), (extent3{28, 301, 301}));
  EXPECT_EQ((nnunet_shape{{1, 512, 512}}.enlarged()), (extent3{1, 602, 602}));
  EXPECT_EQ((nnunet_shape{{1, 512, 256}}.enlarged()), (extent3{1, 659, 301}));
}

TEST(Nnunet, TurnsInThePlaneWhereSlicesAreThick) {
  EXPECT_FALSE((nnunet_shape{{128, 128, 128}}.in_plane()));
  EXPECT_FALSE((nnunet_shape{{64, 192, 192}}.dummy_2d()));  // three times is not above
  EXPECT_TRUE((nnunet_shape{{63, 192, 192}}.dummy_2d()));
  EXPECT_TRUE((nnunet_shape{{1, 512, 512}}.in_plane()));
  EXPECT_EQ((nnunet_shape{{96, 160, 160}}.rotation()[1].high), 30);
  EXPECT_EQ((nnunet_shape{{28, 256, 256}}.rotation()[0].high), 180);
  EXPECT_EQ((nnunet_shape{{28, 256, 256}}.rotation()[1].high), 0);
  EXPECT_EQ((nnunet_shape{{1, 512, 512}}.rotation()[0].high), 180);
  EXPECT_EQ((nnunet_shape{{1, 512, 340}}.rotation()[0].high), 15);
}

// Of published plans: pool_op_kernel_sizes of Dataset005_Prostate, multiplied up, without the last.
TEST(Nnunet, SupervisesAtTheSizesOfItsPlans) {
  EXPECT_EQ(
      nnunet_deep_supervision_scales({20, 320, 256}, {3.6, .62, .62}),
      (std::vector<point3>{{1, .5, .5}, {1, .25, .25}, {.5, .125, .125}, {.25, .0625, .0625}, {.25, .03125, .03125}}));
  EXPECT_EQ(nnunet_deep_supervision_scales({128, 128, 128}, {1, 1, 1}),
            (std::vector<point3>{{.5, .5, .5}, {.25, .25, .25}, {.125, .125, .125}, {.0625, .0625, .0625}}));
  EXPECT_EQ(nnunet_deep_supervision_scales({1, 16, 16}, {1, 1, 1}), (std::vector<point3>{{1, .5, .5}}));
  EXPECT_TRUE(nnunet_deep_supervision_scales({7, 7, 7}, {1, 1, 1}).empty());
  EXPECT_TRUE(nnunet_deep_supervision_scales({1, 4, 11}, {1, 1, 1}).empty());  // one axis alone wants 12
}

// How often something happened, and between which values.
struct seen {
  int count = 0;
  double low = INFINITY, high = -INFINITY, sum = 0;
  void add(double v) {
    ++count;
    low = std::min(low, v);
    high = std::max(high, v);
    sum += v;
  }
  // Within 5 standard deviations of `share` of n, from near `from` to near `to`.
  void expect(const char* what, int n, double share, double from, double to, double mean) const {
    EXPECT_NEAR(count, n * share, 5 * std::sqrt(n * share * (1 - share)) + 1e-9) << what;
    const double near = (to - from) * 20 / count;
    EXPECT_GE(low, from) << what;
    EXPECT_LE(high, to) << what;
    EXPECT_NEAR(low, from, near) << what;
    EXPECT_NEAR(high, to, near) << what;
    EXPECT_NEAR(sum / count, mean, 3 * (to - from) / std::sqrt(count)) << what;
  }
};

// Plans n samples in two batches, for f(plan, index).
template <class Pipeline, class F>
void draw_many(const Pipeline& pipeline, int n, const grid& volume, const F& f) {
  const std::vector<grid> batch(static_cast<std::size_t>(n / 2), volume);
  std::vector<std::uint64_t> ids(batch.size());
  for (const std::uint64_t begin : {std::uint64_t{0}, std::uint64_t{batch.size()}}) {
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = begin + i;
    const auto planned = plan(pipeline, batch, {.seed = 17, .epoch = 4, .sample_ids = ids});
    for (std::size_t i = 0; i < ids.size(); ++i) f(planned, i);
  }
}

template <class Recipe>
void expect_nnunet(const Recipe& recipe, int n, const grid& volume, bool v2_8, bool in_plane) {
  seen noise, angle, scale, flips[3], blur, blurred_channel, brightness, contrast, coarse, coarse_channel, inverted,
      gamma;
  seen sigma_shared;
  int along_z = 0, straight = 0;
  draw_many(recipe, n, volume, [&](const auto& planned, std::size_t i) {
    const affine_map pull = planned.geometry(i).to_source * planned.geometry(i).to_deformed;
    const auto& a = pull.linear;
    const double factor =
        in_plane ? std::sqrt(std::abs(a[1][1] * a[2][2] - a[1][2] * a[2][1])) : std::cbrt(std::abs(determinant(a)));
    if (std::abs(factor - 1) > 1e-9) scale.add(factor);
    const double turned = in_plane ? a[2][1] : a[2][0];
    if (std::abs(turned) > 1e-9) angle.add(std::asin(std::min(1.0, std::abs(turned) / factor)));
    if (in_plane) along_z += std::abs(std::abs(a[0][0]) - 1) > 1e-9 || a[0][1] != 0 || a[1][0] != 0;
    if (a[2][1] == 0 && a[2][0] == 0) {  // not turned
      ++straight;
      for (int k = 0; k < 3; ++k)
        if (a[k][k] < 0) flips[k].add(0);
    }

    const auto& sample = planned.sample(i);
    const auto& n0 = get<0>(sample.output_functors);
    if (n0.on) noise.add(static_cast<double>(n0.functor.sigma));
    const auto& b = get<0>(sample.stage_functors);
    if (b.on) {
      blur.add(0);
      for (int c = 0; c < 8; ++c)
        if (b.functor.active(c)) {
          blurred_channel.add(static_cast<double>(b.functor.sigmas[c][1]));
          if (b.functor.sigmas[c][0] == b.functor.sigmas[c][1]) sigma_shared.add(0);
        }
    }
    const auto& f = get<1>(sample.stage_functors);
    if (f.on)
      for (int c = 0; c < 8; ++c) brightness.add(static_cast<double>(f.functor.channel[c].functor.factor));
    const auto& k = get<2>(sample.stage_functors);
    if (k.on)
      for (float each : k.functor.factor) contrast.add(static_cast<double>(each));
    const auto& l = get<3>(sample.stage_functors);
    if (l.on) {
      coarse.add(0);
      for (int c = 0; c < 8; ++c)
        if (l.functor.coarse[c][2] != sample.extents[2]) {
          coarse_channel.add(static_cast<double>(l.functor.coarse[c][2]) / sample.extents[2]);
          if (in_plane) {
            EXPECT_EQ(l.functor.coarse[c][0], sample.extents[0]);
          }
        }
    }
    const auto& gi = get<4>(sample.stage_functors);
    const auto& g = get<5>(sample.stage_functors);
    if (gi.on) {
      EXPECT_TRUE(gi.functor.invert && gi.functor.retain_statistics);
      for (float each : gi.functor.exponent) inverted.add(static_cast<double>(each));
    }
    if (g.on) {
      EXPECT_TRUE(!g.functor.invert && g.functor.retain_statistics);
      for (float each : g.functor.exponent) gamma.add(static_cast<double>(each));
    }
  });
  const double mixed_scale = .5 * (.85 + 1.2), mixed = .5 * (.875 + 1.125), mixed_gamma = .5 * (.85 + 1.25);
  const double pi = 3.14159265358979;
  noise.expect("noise", n, .1, 0, .1, .05);
  if (!in_plane) angle.expect("angle about y", n, .2, 0, pi / 6, pi / 12);
  EXPECT_NEAR(angle.count, .2 * n, 5 * std::sqrt(.16 * n));
  scale.expect("scale", n, .2, .7, 1.4, v2_8 ? 1.05 : mixed_scale);
  EXPECT_NEAR(blur.count, .2 * n, 5 * std::sqrt(.16 * n));
  blurred_channel.expect("blur", 8 * n, .1, .5, 1, .75);
  EXPECT_NEAR(sigma_shared.count, v2_8 ? 0 : blurred_channel.count, 8);
  EXPECT_NEAR(brightness.count, .15 * n * 8, 8 * 5 * std::sqrt(.1275 * n));
  EXPECT_NEAR(brightness.sum / brightness.count, v2_8 ? mixed : 1, .005);
  EXPECT_NEAR(contrast.count, .15 * n * 8, 8 * 5 * std::sqrt(.1275 * n));
  EXPECT_NEAR(contrast.sum / contrast.count, mixed, .005);
  EXPECT_GE(contrast.low, .75);
  EXPECT_LT(contrast.high, 1.25);
  EXPECT_NEAR(coarse.count, .25 * n, 5 * std::sqrt(.1875 * n));
  EXPECT_NEAR(coarse_channel.sum / coarse_channel.count, .75, .02);
  EXPECT_GE(coarse_channel.low, .5);
  EXPECT_NEAR(inverted.count, .1 * n * 8, 8 * 5 * std::sqrt(.09 * n));
  EXPECT_NEAR(gamma.count, .3 * n * 8, 8 * 5 * std::sqrt(.21 * n));
  EXPECT_NEAR(gamma.sum / gamma.count, mixed_gamma, .01);
  EXPECT_GE(gamma.low, .7);
  EXPECT_LT(gamma.high, 1.5);
  EXPECT_EQ(along_z, 0);
  for (const seen& each : flips) EXPECT_NEAR(each.count, .5 * straight, 5 * std::sqrt(.25 * straight));
}

TEST(Nnunet, DrawsWhatItsDefaultTrainerDraws) {
  constexpr int n = 100000;
  const grid volume{.extents = {300, 300, 300}};
  const std::vector<extent3> starts(n / 2, extent3{3, 4, 5});
  const nnunet_training t{.shape = {{64, 80, 96}}, .starts = starts};
  expect_nnunet(nnunet_v2_8(t), n, volume, true, false);
}
TEST(Nnunet, DrawsWhatItsFormerTrainerDrew) {
  constexpr int n = 40000;
  const grid volume{.extents = {300, 300, 300}};
  const std::vector<extent3> starts(n / 2, extent3{3, 4, 5});
  expect_nnunet(nnunet_v2_3({.shape = {{64, 80, 96}}, .starts = starts}), n, volume, false, false);
}
TEST(Nnunet, LeavesThickSlicesInTheirPlane) {
  constexpr int n = 40000;
  const grid volume{.extents = {60, 400, 400}};
  const std::vector<extent3> starts(n / 2, extent3{3, 4, 5});
  expect_nnunet(nnunet_v2_8({.shape = {{20, 80, 96}}, .starts = starts}), n, volume, true, true);
}

TEST(Nnunet, PatchesAreChosenAndCut) {
  const grid ct{.extents = {20, 30, 32}};
  std::vector<std::uint8_t> segmentation(static_cast<std::size_t>(ct.voxels()), 0);
  segmentation[12345] = 1;
  const std::vector segmentations{contiguous<const std::uint8_t>(segmentation.data(), ct)};
  const auto classes = label_classes(segmentations, 2);
  std::vector<std::uint64_t> memory(class_counts_bytes(classes) / 8);
  const auto counts = std::as_writable_bytes(std::span(memory));
  count_classes(cpu{}, classes, counts);
  const std::vector<std::uint64_t> ids{5};
  std::vector<patch_choice> choices(1);
  // [nnunet]
  const suture::nnunet_shape shape{.patch = {12, 16, 16}};
  const suture::oversampled_patch rule{.size = shape.enlarged(), .margin = shape.margin()};
  suture::select_patches(suture::cpu{}, rule, classes, counts, {.seed = 42, .epoch = 3, .sample_ids = ids}, choices);
  const auto starts = suture::patch_starts(choices);
  const auto train = suture::nnunet_v2_8({.shape = shape, .starts = starts}) | suture::cast<suture::half>{};
  // [/nnunet]
  const auto planned = suture::plan(train, std::vector<grid>{ct}, {.seed = 42, .epoch = 3, .sample_ids = ids});
  EXPECT_EQ(planned.output_grid(0).extents, shape.patch);
  EXPECT_EQ(planned.stages(), 6);
}

// A patch that nothing fired on is the volume where the loader would have cut it.
TEST(Nnunet, AnUntouchedPatchIsTheVolume) {
  const nnunet_shape shape{{6, 8, 8}};
  const grid volume{.extents = {20, 22, 24}};
  std::vector<float> values(static_cast<std::size_t>(volume.voxels()));
  std::vector<std::int8_t> classes(values.size(), 1);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 251);
  const extent3 big = shape.enlarged();
  const std::vector<extent3> starts{{-3, 5, 19}};
  const auto chain = nnunet_v2_8({.shape = shape, .starts = starts});
  const std::vector in{contiguous<const float>(values.data(), volume)};
  const std::vector seg{contiguous<const std::int8_t>(classes.data(), volume)};
  const auto planned = plan(chain, in, {.evaluation = true});
  ASSERT_EQ(planned.output_grid(0).extents, shape.patch);
  std::vector<float> out(384);
  std::vector<std::int8_t> labels_out(384);
  run(cpu{}, planned, image(in, batch_views(out.data(), planned.output_grids())),
      labels(seg, batch_views(labels_out.data(), planned.output_grids())));
  for (std::int64_t z = 0, i = 0; z < 6; ++z)
    for (std::int64_t y = 0; y < 8; ++y)
      for (std::int64_t x = 0; x < 8; ++x, ++i) {
        const std::int64_t sz = starts[0][0] + big[0] / 2 - 3 + z, sy = starts[0][1] + big[1] / 2 - 4 + y,
                           sx = starts[0][2] + big[2] / 2 - 4 + x;
        const bool inside = sz >= 0 && sz < 20 && sy >= 0 && sy < 22 && sx >= 0 && sx < 24;
        const auto at = static_cast<std::size_t>(i);
        EXPECT_EQ(out[at], inside ? static_cast<float>(((sz * 22 + sy) * 24 + sx) % 251) : 0.0f);
        EXPECT_EQ(labels_out[at], inside ? 1 : -1);
      }
}

// Where the patch of a planned sample reads, from the first voxel of its enlarged patch.
affine_map from_enlarged(const detail::sample_geometry& g, const extent3& start) {
  affine_map a = g.to_source * g.to_deformed;
  for (int k = 0; k < 3; ++k) a.offset[k] -= static_cast<double>(start[k]);
  return a;
}
bool leaves(const point3& at, const extent3& size) {
  for (int k = 0; k < 3; ++k)
    if (at[k] < -1e-6 || at[k] > static_cast<double>(size[k]) - 1 + 1e-6) return true;
  return false;
}

// How often and how far the volume is read where nnU-Net has zeros, in a volume that ends nowhere: the figures of
// docs/recipes.md.
TEST(Nnunet, ReadsTheVolumeBeyondTheEnlargedPatch) {
  struct figures {
    extent3 patch;
    double samples, of_differing, of_all, most;
  };
  for (const figures& f : {figures{{128, 128, 128}, .055, .0056, .0003, .10},
                           {{96, 160, 160}, .104, .0052, .0005, .12},
                           {{28, 256, 256}, .201, .079, .0159, .34}}) {
    const nnunet_shape shape{f.patch};
    const extent3 size = shape.enlarged(), start{300, 500, 500};
    constexpr std::size_t n = 20000;
    const std::vector<grid> volumes(n, {.extents = {1000, 1500, 1500}});
    const std::vector<extent3> starts(n, start);
    std::vector<std::uint64_t> ids(n);
    for (std::size_t i = 0; i < n; ++i) ids[i] = i;
    const auto planned = plan(nnunet_v2_8({.shape = shape, .starts = starts}), volumes, {.seed = 5, .sample_ids = ids});
    constexpr int cells = 20;
    int differing = 0;
    double sum = 0, most = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const affine_map read = from_enlarged(planned.geometry(i), start);
      const auto leaves_at = [&](double z, double y, double x) {  // from 0 to 1, the edges of the patch
        const double share[3] = {z, y, x};
        point3 at{};
        for (int k = 0; k < 3; ++k)
          at[k] = std::clamp(share[k] * static_cast<double>(f.patch[k]) - .5, 0.0, static_cast<double>(f.patch[k] - 1));
        return leaves(read(at), size);
      };
      bool any = false;
      for (int c = 0; c < 8; ++c) any |= leaves_at(c & 1, c >> 1 & 1, c >> 2);
      if (!any) continue;
      ++differing;
      int outside = 0;
      for (int c = 0; c < cells * cells * cells; ++c)
        outside +=
            leaves_at((c / cells / cells + .5) / cells, (c / cells % cells + .5) / cells, (c % cells + .5) / cells);
      const double share = outside / double{cells * cells * cells};
      sum += share;
      most = std::max(most, share);
    }
    EXPECT_NEAR(differing / double{n}, f.samples, .01);
    EXPECT_NEAR(sum / differing, f.of_differing, .1 * f.of_differing);
    EXPECT_NEAR(sum / n, f.of_all, .15 * f.of_all);
    EXPECT_NEAR(most, f.most, .15 * f.most);
  }
}

// Cut out, a patch is that of a copy of its enlarged patch, padded; read from the volume it differs beyond that alone.
TEST(Nnunet, CutOutReadsTheEnlargedPatchAlone) {
  const nnunet_shape shape{{20, 16, 24}};
  const extent3 size = shape.enlarged();
  const grid volume{.extents = {60, 64, 70}, .spacing = {2, 1, 1.5}, .origin = {5, -3, 11}};
  constexpr std::size_t samples = 60, voxels = 20 * 16 * 24;
  const auto at_volume = [&](std::int64_t z, std::int64_t y, std::int64_t x) {
    return static_cast<std::size_t>((z * 64 + y) * 70 + x);
  };
  std::vector<float> values(static_cast<std::size_t>(2 * volume.voxels()));
  std::vector<std::int8_t> classes(static_cast<std::size_t>(volume.voxels()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1 + static_cast<float>(mix64(i) % 1000) * 1e-3f;
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<std::int8_t>(mix64(i / 3) % 4);
  std::vector<extent3> starts;
  std::vector<std::uint64_t> ids;
  std::vector<std::vector<float>> padded;
  std::vector<std::vector<std::int8_t>> padded_classes;
  std::vector<view<const float>> copies;
  std::vector<view<const std::int8_t>> integer_shift_classes;
  const grid enlarged{.extents = size};
  for (std::uint64_t i = 0; i < samples; ++i) {
    starts.push_back(i % 2 == 0 ? extent3{9, 13, 12} : extent3{-7, 40, -30});
    ids.push_back(i);
    padded.emplace_back(static_cast<std::size_t>(2 * enlarged.voxels()), 0.0f);
    padded_classes.emplace_back(static_cast<std::size_t>(enlarged.voxels()), std::int8_t{-1});
    for (std::int64_t z = 0, v = 0; z < size[0]; ++z)
      for (std::int64_t y = 0; y < size[1]; ++y)
        for (std::int64_t x = 0; x < size[2]; ++x, ++v) {
          const std::int64_t sz = starts[i][0] + z, sy = starts[i][1] + y, sx = starts[i][2] + x;
          if (sz < 0 || sz >= 60 || sy < 0 || sy >= 64 || sx < 0 || sx >= 70) continue;
          padded[i][static_cast<std::size_t>(v)] = values[at_volume(sz, sy, sx)];
          padded[i][static_cast<std::size_t>(enlarged.voxels() + v)] = values[classes.size() + at_volume(sz, sy, sx)];
          padded_classes[i][static_cast<std::size_t>(v)] = classes[at_volume(sz, sy, sx)];
        }
    copies.push_back(contiguous<const float>(padded[i].data(), enlarged, 2));
    integer_shift_classes.push_back(contiguous<const std::int8_t>(padded_classes[i].data(), enlarged));
  }
  const std::vector cts(samples, contiguous<const float>(values.data(), volume, 2));
  const std::vector segmentations(samples, contiguous<const std::int8_t>(classes.data(), volume));
  // Geometry alone: what follows is the same, and would spread what differs.
  const auto geometry = [&](std::span<const extent3> from) {
    return crop_at{.starts = from, .size = size, .may_leave = true} |
           random_affine{.rotate_deg = shape.rotation(), .convention = affine_convention::nnunet} |
           random_scale{.range = {.7f, 1.4f}, .convention = affine_convention::nnunet} | center_crop{shape.patch} |
           random_flip{} | sampling<linear, constant, vote>{.label_outside = -1};
  };
  struct made {
    std::vector<float> image = std::vector<float>(2 * samples * voxels);
    std::vector<std::int8_t> target = std::vector<std::int8_t>(samples * voxels);
  };
  const settings draws{.seed = 3, .sample_ids = ids};
  const auto make = [&](const auto& planned, const auto& images, const auto& maps) {
    made m;
    const std::vector<grid> grids = planned.output_grids();
    run(cpu{}, planned, image(images, batch_views(m.image.data(), grids, 2)),
        labels(maps, batch_views(m.target.data(), grids)));
    return m;
  };
  const auto from_volume = plan(geometry(starts), cts, draws);
  const made read = make(from_volume, cts, segmentations);
  const std::vector<extent3> none(samples);
  const made copied = make(plan(geometry(none), copies, draws), copies, integer_shift_classes);
  const auto images = nnunet_cut_out(cts, shape, starts);
  const auto maps = nnunet_cut_out(segmentations, shape, starts);
  const auto alone = plan(geometry(images.starts), images.views, draws);
  const made cut = make(alone, images.views, maps.views);
  EXPECT_EQ(alone.output_grid(0).origin, from_volume.output_grid(0).origin);
  EXPECT_EQ(images.views[1].grid.extents, (extent3{size[0] - 7, 24, size[2] - 30}));
  int beyond = 0;
  for (std::size_t i = 0; i < samples; ++i) {
    const affine_map map = from_enlarged(from_volume.geometry(i), starts[i]);
    for (std::size_t v = 0; v < voxels; ++v) {
      const std::size_t first = 2 * i * voxels + v, second = first + voxels, label = i * voxels + v;
      ASSERT_NEAR(cut.image[first], copied.image[first], 1e-5) << i << ", " << v;
      ASSERT_NEAR(cut.image[second], copied.image[second], 1e-5) << i << ", " << v;
      ASSERT_EQ(cut.target[label], copied.target[label]) << i << ", " << v;
      if (leaves(map({static_cast<double>(v / 384), static_cast<double>(v / 24 % 16), static_cast<double>(v % 24)}),
                 size)) {
        beyond += cut.target[label] != read.target[label];
      } else {
        ASSERT_NEAR(cut.image[first], read.image[first], 1e-5) << i << ", " << v;
        ASSERT_EQ(cut.target[label], read.target[label]) << i << ", " << v;
      }
    }
  }
  EXPECT_GT(beyond, 1000);

  // The whole recipe.
  const made expected =
      make(plan(nnunet_v2_8({.shape = shape, .starts = none}), copies, draws), copies, integer_shift_classes);
  made recipe;
  const auto patches = batch_views(recipe.image.data(), alone.output_grids(), 2);
  const auto targets = batch_views(recipe.target.data(), alone.output_grids());
  {
    // [cut_out]
    const auto ct = suture::nnunet_cut_out(cts, shape, starts);
    const auto seg = suture::nnunet_cut_out(segmentations, shape, starts);
    const auto planned = suture::plan(suture::nnunet_v2_8({.shape = shape, .starts = ct.starts}), ct.views, draws);
    suture::run(suture::cpu{}, planned, suture::image(ct.views, patches), suture::labels(seg.views, targets));
    // [/cut_out]
  }
  for (std::size_t i = 0; i < recipe.image.size(); ++i) ASSERT_NEAR(recipe.image[i], expected.image[i], 1e-3) << i;
  EXPECT_EQ(recipe.target, expected.target);
}

TEST(Nnunet, CutOutIsRefusedWhereNothingIsToBeCut) {
  const std::vector<float> values(1000);
  const std::vector volumes(2, contiguous<const float>(values.data(), {.extents = {10, 10, 10}}));
  const nnunet_shape shape{{8, 8, 8}};
  const std::vector<extent3> starts{{-2, 0, 0}, {0, 10, 0}};
  EXPECT_SAYS(nnunet_cut_out(volumes, shape, std::span(starts).first(1)), "nnunet_cut_out: 1 starts for 2 volumes");
  EXPECT_SAYS(nnunet_cut_out(volumes, shape, starts),
              "nnunet_cut_out: sample 1: the enlarged patch of (12, 12, 12) from (0, 10, 0) lies outside the volume");
}

// Every step fires in some of the samples; one of three channels is not masked.
TEST(Nnunet, MasksChannelsBeforeTheLabelIsRemoved) {
  const nnunet_shape shape{{6, 17, 16}};
  const grid volume{.extents = {9, 22, 24}};
  constexpr std::size_t samples = 12, voxels = 6 * 17 * 16;
  std::vector<float> values(static_cast<std::size_t>(3 * volume.voxels()));
  std::vector<std::int8_t> classes(static_cast<std::size_t>(volume.voxels()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1 + static_cast<float>(mix64(i) % 1000) * 1e-3f;
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<std::int8_t>(mix64(i / 5) % 4) - 1;
  const std::vector mri(samples, contiguous<const float>(values.data(), volume, 3));
  const std::vector seg(samples, contiguous<const std::int8_t>(classes.data(), volume));
  const std::vector<extent3> starts(samples, extent3{-2, 0, 1});
  std::vector<std::uint64_t> ids(samples);
  for (std::size_t i = 0; i < samples; ++i) ids[i] = i;
  const auto planned = plan(nnunet_v2_8({.shape = shape, .starts = starts}), mri, {.seed = 7, .sample_ids = ids});
  const std::vector<grid> grids = planned.output_grids();

  std::vector<float> plain(3 * samples * voxels), masked(plain.size());
  std::vector<std::int8_t> sampled(samples * voxels), both(2 * sampled.size());
  run(cpu{}, planned, image(mri, batch_views(plain.data(), grids, 3)), labels(seg, batch_views(sampled.data(), grids)));

  const auto patches = batch_views(masked.data(), grids, 3);
  const auto targets = batch_views(both.data(), grids, 2);
  const std::vector<std::int64_t> masked_channels{0, 2};
  // [masked]
  suture::run(suture::cpu{}, planned, suture::image(mri, patches),
              suture::labels(seg, targets, suture::nnunet_masked_target{}));
  std::vector<suture::view<std::int8_t>> as_sampled;  // the second channel of each
  for (const auto& t : targets) as_sampled.push_back({t.data + t.channel_stride, t.grid, t.stride});
  suture::mask_image(suture::cpu{}, as_sampled, patches, {.channels = masked_channels});
  // [/masked]
  std::size_t without = 0;
  for (std::size_t i = 0; i < samples * voxels; ++i) {
    const std::size_t sample = i / voxels, voxel = i % voxels;
    ASSERT_EQ(both[2 * sample * voxels + voxel], std::max<int>(sampled[i], 0));
    ASSERT_EQ(both[(2 * sample + 1) * voxels + voxel], sampled[i]);
    for (std::size_t c = 0; c < 3; ++c) {
      const std::size_t at = (3 * sample + c) * voxels + voxel;
      ASSERT_EQ(masked[at], c != 1 && sampled[i] < 0 ? 0.0f : plain[at]);
    }
    without += sampled[i] < 0;
  }
  EXPECT_GT(without, samples * voxels / 8);
  EXPECT_LT(without, samples * voxels / 2);
}

TEST(Nnunet, PreprocessesToTheSizeAndRangeOfItsPlan) {
  const grid ct{.extents = {9, 20, 22}, .spacing = {5, .7, .7}};
  std::vector<std::int16_t> values(static_cast<std::size_t>(ct.voxels()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int16_t>(i * 37 % 1200) - 400;
  const std::vector in{contiguous<const std::int16_t>(values.data(), ct)};
  const ct_normalize cohort{.lower = -100, .upper = 300, .mean = 80, .standard_deviation = 50};
  const auto check = [&](const auto& planned, const extent3& size) {
    ASSERT_EQ(planned.output_grid(0).extents, size);
    std::vector<float> out(static_cast<std::size_t>(planned.output_grid(0).voxels()));
    run(cpu{}, planned, image(in, batch_views(out.data(), planned.output_grids())));
    EXPECT_EQ(*std::min_element(out.begin(), out.end()), -180 / 50.0f);
    EXPECT_EQ(*std::max_element(out.begin(), out.end()), 220 / 50.0f);
  };
  check(plan(nnunet_preprocess_ct(cohort, {2.5, 1, 1}), in), {18, 14, 15});
  check(plan(nnunet_preprocess_ct_in_plane(cohort, {2.5, 1, 1}, 0), in), {9, 14, 15});
}

TEST(MonaiBrats, NormalisesTheBrainAndLeavesAirAlike) {
  const grid mri{.extents = {20, 24, 26}};
  std::vector<float> values(static_cast<std::size_t>(4 * mri.voxels()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 3 == 0 ? 0 : static_cast<float>(i % 97) + 10;
  const std::vector in{contiguous<const float>(values.data(), mri, 4)};
  const auto planned = plan(monai_brats({16, 16, 16}), in, {.evaluation = true});
  std::vector<float> out(4 * 4096);
  run(cpu{}, planned, image(in, batch_views(out.data(), planned.output_grids(), 4)));
  for (std::size_t c = 0; c < 4; ++c) {
    double sum = 0, squares = 0;
    int brain = 0;
    for (std::size_t i = 0; i < 4096; ++i) {
      const auto v = static_cast<double>(out[c * 4096 + i]);
      ASSERT_TRUE(std::isfinite(v));
      brain += v != 0;
      sum += v;
      squares += v * v;
    }
    EXPECT_GT(brain, 2000);
    EXPECT_LT(brain, 3500);
    EXPECT_NEAR(sum / brain, 0, 1e-4);
    EXPECT_NEAR(squares / brain, 1, 1e-3);
  }
}

TEST(MonaiBrats, DrawsOneScaleAndOneShiftForASample) {
  seen scale, shift, flips;
  constexpr int n = 20000;
  draw_many(monai_brats({8, 8, 8}), n, {.extents = {20, 24, 26}}, [&](const auto& planned, std::size_t i) {
    const auto& sample = planned.sample(i);
    using functors = std::remove_cvref_t<decltype(sample.stage_functors)>;
    constexpr std::size_t last = functors::size - 1;
    scale.add(static_cast<double>(get<last - 1>(sample.stage_functors).functor.factor));
    shift.add(static_cast<double>(get<last>(sample.stage_functors).functor.offset));
    if (planned.geometry(i).to_source.linear[1][1] < 0) flips.add(0);
  });
  EXPECT_NEAR(flips.count, n / 2, 5 * std::sqrt(n / 4));
  scale.expect("scale", n, 1, .9, 1.1, 1);
  shift.expect("shift", n, 1, -.1, .1, 0);
}

TEST(MonaiSpleen, TurnsAVolumeIntoPatches) {
  const grid ct{.extents = {40, 60, 60}, .spacing = {5, 2, 2}};
  const auto planned = plan(monai_spleen_preprocess({.start = {2, 5, 5}, .size = {30, 50, 52}}), std::vector<grid>{ct});
  EXPECT_EQ(planned.output_grid(0).extents, (extent3{74, 66, 69}));  // round((n - 1) s / t + 1)
  const std::vector<extent3> starts{{3, 4, 5}};
  EXPECT_EQ(plan(monai_spleen_training(starts), std::vector<grid>{{.extents = {200, 200, 200}}}).output_grid(0).extents,
            (extent3{96, 96, 96}));
}

TEST(MonaiColon, DrawsWhatThePipelineDraws) {
  constexpr int n = 20000;
  const std::vector<extent3> starts(n / 2, extent3{3, 4, 5});
  seen zoom, noise, blur, scale;
  draw_many(monai_colon_training(starts), n, {.extents = {60, 200, 220}}, [&](const auto& planned, std::size_t i) {
    const auto& sample = planned.sample(i);
    const double factor = std::abs(planned.geometry(i).to_source.linear[0][0]);
    if (factor != 1) zoom.add(1 / factor);
    if (get<0>(sample.output_functors).on) noise.add(static_cast<double>(get<0>(sample.output_functors).functor.sigma));
    if (get<0>(sample.stage_functors).on)
      blur.add(static_cast<double>(get<0>(sample.stage_functors).functor.sigmas[0][2]));
    if (get<1>(sample.stage_functors).on) scale.add(static_cast<double>(get<1>(sample.stage_functors).functor.factor));
  });
  zoom.expect("zoom", n, .15, .9, 1.2, 1.05);
  noise.expect("noise", n, .15, 0, .01, .005);
  blur.expect("blur", n, .15, .5, 1.15, .825);
  scale.expect("scale", n, .15, .7, 1.3, 1);
  const auto planned = plan(monai_colon_preprocess({.size = {30, 100, 100}}),
                            std::vector<grid>{{.extents = {40, 120, 120}, .spacing = {5, .9, .9}}});
  EXPECT_EQ(planned.output_grid(0).extents, (extent3{50, 115, 115}));
}

}  // namespace
