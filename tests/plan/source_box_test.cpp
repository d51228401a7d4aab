// SPDX-License-Identifier: Apache-2.0
// The box that a sample reads: conservative, tight, and enough for the bits of the whole volume.
#include <gtest/gtest.h>

#include <cstring>

#include "support/expect_says.hpp"
#include "support/guarded_memory.hpp"
#include "suture/recipe/monai_brats.hpp"
#include "suture/recipe/nnunet.hpp"
#include "suture/suture.hpp"

namespace {

using namespace suture;

grid scan(const extent3& n) {
  grid g{.extents = n, .spacing = {1.5, .8, .8}};
  return g;
}

// Coordinates of every voxel of the output, by the same map point by point: the box of their taps, within the source.
template <class Plan>
voxel_box looked_at(const Plan& plan, std::size_t i) {
  const extent3 n = plan.output_grid(i).extents, size = plan.source_grid(i).extents;
  point3 low{1e9, 1e9, 1e9}, high{-1e9, -1e9, -1e9};
  std::vector<point3> voxels;
  for (std::int64_t z = 0; z < n[0]; ++z)
    for (std::int64_t y = 0; y < n[1]; ++y)
      for (std::int64_t x = 0; x < n[2]; ++x)
        voxels.push_back({static_cast<double>(z), static_cast<double>(y), static_cast<double>(x)});
  std::vector<point3> places(voxels.size());
  to_source(plan, i, std::span<const point3>(voxels), std::span<point3>(places));
  for (const point3& at : places)
    for (int k = 0; k < 3; ++k) {
      low[k] = std::min(low[k], at[k]);
      high[k] = std::max(high[k], at[k]);
    }
  voxel_box b{};
  for (int k = 0; k < 3; ++k) {
    const auto clamped = [&](double v) {
      return std::clamp(static_cast<std::int64_t>(v), std::int64_t{0}, size[k] - 1);
    };
    b.first[k] = clamped(std::floor(low[k]));
    b.size[k] = clamped(std::ceil(high[k])) - b.first[k] + 1;
  }
  return b;
}

TEST(source_box, of_a_sample_that_is_not_in_the_plan_is_refused) {
  const auto made = plan(flip{}, std::vector<grid>{{.extents = {4, 5, 6}}});
  EXPECT_EQ(source_box(made, 0).size, (extent3{4, 5, 6}));
  EXPECT_SAYS(source_box(made, 1), "suture: source_box: there is no sample 1 in a plan of 1");
}

TEST(source_box, holds_what_is_read_and_little_more) {
  double needed = 0, given = 0;
  const auto look = [&](const auto& chain, const grid& g, const settings& s) {
    const std::vector<grid> batch(4, g);
    const auto plan = suture::plan(chain, batch, s);
    for (std::size_t i = 0; i < plan.size(); ++i) {
      const voxel_box least = looked_at(plan, i), box = source_box(plan, i);
      EXPECT_TRUE(box.contains(least)) << "sample " << i;
      needed += static_cast<double>(least.voxels());
      given += static_cast<double>(box.voxels());
    }
  };
  const std::vector<std::uint64_t> ids{1, 2, 3, 4};
  const settings s{.seed = 42, .epoch = 1, .sample_ids = ids};
  const grid g = scan({150, 260, 260});
  const extent3 patch{64, 64, 64};
  const std::vector<extent3> starts(4, extent3{30, 60, 70});
  look(random_crop{.size = patch}, g, s);
  look(resample{.spacing_mm = {1, 1, 1}} | random_affine{.rotate_deg = 15, .scale = {.85f, 1.25f}} |
           random_crop{.size = patch},
       g, s);
  look(resample{.spacing_mm = {1, 1, 1}} | random_affine{.rotate_deg = 15, .scale = {.85f, 1.25f}} |
           random_elastic{.control_spacing_mm = 32, .max_displacement_mm = 8} | random_crop{.size = patch},
       g, s);
  look(random_elastic{.control_spacing_mm = 24, .max_displacement_mm = 6} | random_crop{.size = {96, 96, 96}}, g, s);
  look(random_rot90{} | random_flip{} | random_crop{.size = patch}, g, s);
  look(nnunet_v2_8({.shape = nnunet_shape{patch}, .starts = starts}), g, s);
  look(monai_brats(patch), g, s);
  EXPECT_LE(given / needed, 1.1);
}

// A box that holds what is asked for, of memory that ends with it.
struct part {
  guarded_memory memory;
  view<const std::int16_t> v;
};
part part_of(const std::vector<std::int16_t>& volume, const grid& g, const voxel_box& box, bool at_end) {
  guarded_memory memory(static_cast<std::size_t>(box.voxels()) * sizeof(std::int16_t), at_end);
  auto* out = reinterpret_cast<std::int16_t*>(memory.data());
  const auto v = partial_view<const std::int16_t>(out, g, box);
  for (std::int64_t z = 0; z < box.size[0]; ++z)
    for (std::int64_t y = 0; y < box.size[1]; ++y)
      for (std::int64_t x = 0; x < box.size[2]; ++x)
        *out++ = volume[static_cast<std::size_t>(((box.first[0] + z) * g.extents[1] + box.first[1] + y) * g.extents[2] +
                                                 box.first[2] + x)];
  return {std::move(memory), v};
}

TEST(source_box, gives_the_bits_of_the_whole_volume_at_edge_sizes) {
  for (const std::int64_t n : {1, 15, 16, 17, 127}) {
    const grid g = scan({40, 50, 160});
    std::vector<std::int16_t> volume(static_cast<std::size_t>(g.voxels()));
    std::uint32_t state = 1;
    for (auto& v : volume) v = static_cast<std::int16_t>((state = state * 1664525u + 1013904223u) >> 18);
    const auto chain = random_affine{.rotate_deg = 20} |
                       random_elastic{.control_spacing_mm = 24, .max_displacement_mm = 5} |
                       random_crop{.size = {std::min<std::int64_t>(n, 33), std::min<std::int64_t>(n, 31), n}};
    const auto whole = contiguous<const std::int16_t>(volume.data(), g);
    const auto plan = suture::plan(chain, whole, {.seed = 7, .sample_ids = std::vector<std::uint64_t>{9}});
    const auto size = static_cast<std::size_t>(plan.output_grid(0).voxels());
    std::vector<float> expected(size), got(size);
    run(cpu{}, plan, image(whole, contiguous(expected.data(), plan.output_grid(0))));
    for (const bool at_end : {false, true}) {
      const part p = part_of(volume, g, source_box(plan, 0), at_end);
      run(cpu{}, plan, image(p.v, contiguous(got.data(), plan.output_grid(0))));
      EXPECT_EQ(std::memcmp(expected.data(), got.data(), size * sizeof(float)), 0) << n;
    }
  }
}

TEST(source_box, borders_that_fold_back_are_in_it) {
  const grid g = scan({20, 20, 40});
  const auto box_of = [&](const auto& rule) {
    return source_box(suture::plan(pad{.before = {0, 0, 6}} | crop{.start = {5, 5, 0}, .size = {4, 4, 10}} | rule, g),
                      0);
  };
  EXPECT_EQ(box_of(sampling<nearest, constant>{}).size[2], 4);
  EXPECT_EQ(box_of(sampling<linear, constant>{}).size[2], 5);
  EXPECT_EQ(box_of(sampling<linear, edge>{}).size[2], 5);
  EXPECT_EQ(box_of(sampling<linear, mirror>{}).size[2], 7);   // voxel 6 stands for -6
  EXPECT_GE(box_of(sampling<linear, reflect>{}).size[2], 6);  // voxel 5 does
  EXPECT_EQ(box_of(sampling<linear, wrap>{}).size[2], 40);
  const auto bspline = suture::plan(crop{.start = {5, 5, 5}, .size = {4, 4, 4}} | sampling<cubic_bspline, mirror>{}, g);
  EXPECT_EQ(source_box(bspline, 0).voxels(), g.voxels());
  EXPECT_FALSE(needs_whole_source(bspline).empty());
}

TEST(source_box, a_box_that_is_too_small_is_refused) {
  const grid g = scan({20, 20, 40});
  std::vector<std::int16_t> values(static_cast<std::size_t>(g.voxels()));
  std::vector<float> out(512);
  const auto plan = suture::plan(crop{.start = {5, 6, 7}, .size = {8, 8, 8}}, g);
  const auto to = contiguous(out.data(), plan.output_grid(0));
  voxel_box box = source_box(plan, 0);
  EXPECT_EQ(box.first[2], 7);
  EXPECT_EQ(box.size[2], 9);  // of two taps
  box.size[2] -= 1;
  const auto small = partial_view<const std::int16_t>(values.data(), g, box);
  expect_parts(message([&] { run(cpu{}, plan, image(small, to)); }),
               {"image: sample 0: input: box: expected to hold", "source_box"});
  expect_parts(message([&] { partial_view(values.data(), g, {{5, 6, 39}, {8, 8, 2}}); }), {"partial_view", "extents"});
  const std::vector boxes{small};
  const extent3 starts[] = {{0, 0, 0}};
  const std::int64_t first[] = {0};
  expect_parts(message([&] { check(small, {"fit"}); }), {"fit: expected the whole image in memory"});
  expect_parts(message([&] { digest(small); }), {"digest: expected the whole image in memory"});
  expect_parts(message([&] { slices(small, 0, first); }), {"slices: expected the whole image in memory"});
  expect_parts(message([&] {
                 nnunet_cut_out(boxes, nnunet_shape{.patch = {8, 8, 8}}, starts);
               }),
               {"nnunet_cut_out: sample 0: expected the whole image in memory"});
  // Memory between the boxes of an image is the caller's: an output may lie there.
  const auto far = partial_view<const std::int16_t>(values.data(), g, source_box(plan, 0));
  EXPECT_EQ(bytes(far).last - bytes(far).first, 9u * 9 * 9 * 2);
}

}  // namespace
