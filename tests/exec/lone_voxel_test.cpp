// SPDX-License-Identifier: Apache-2.0
// The walks of the CPU executor beside an evaluator that is asked for one voxel after the other.
#include <gtest/gtest.h>

#include "digest/lone_voxels.hpp"

namespace {

using namespace digest_test;

// Turned against its control points, a strip crosses cells at places of its own in every row: none, one or many.
TEST(lone_voxels, a_strip_crosses_the_control_cells_of_lone_voxels) {
  const cases data;
  for (const double spacing : {1.5, 4.0, 40.0}) {
    const random_elastic bend{.control_spacing_mm = {1.7 * spacing, spacing, 1.3 * spacing},
                              .max_displacement_mm = .2 * spacing,
                              .locked_borders = 0};
    expect_walk_equals_lone_voxels(data, "turned",
                                   bend | random_affine{.rotate_deg = 40, .shear = .2f, .probability = 1});
    expect_walk_equals_lone_voxels(data, "permuted", bend | permute{.order = {2, 0, 1}} | resize{{9, 33, 70}});
  }
}

// Where axes are kept rows and planes of the source are interpolated once for all that read them, by cubics as well.
TEST(lone_voxels, rows_read_by_many_give_what_lone_voxels_do) {
  const cases data;
  const auto each = [&](const char* name, const auto& geometry) {
    const window w{.center = 40, .width = 400};
    const sampling<cubic_bspline, constant> filled{.border = {.value = -50}, .label_outside = 9};
    const sampling<catmull_rom, constant, vote> filled_votes{.border = {.value = .25f}, .label_outside = 7};
    expect_walk_equals_lone_voxels(data, name, geometry | sampling<cubic_bspline, mirror>{});
    expect_walk_equals_lone_voxels(data, name, w | geometry | filled);
    expect_walk_equals_lone_voxels(data, name, w | geometry | filled_votes);
    expect_walk_equals_lone_voxels(data, name, geometry | sampling<torch_cubic, edge, vote>{});
    expect_walk_equals_lone_voxels(data, name, geometry | sampling<linear, reflect>{});
  };
  each("enlarged", resample{.spacing_mm = {1.3, .7, .9}} | crop_or_pad{{30, 43, 70}});
  each("reduced", resize{{5, 11, 13}} | random_flip{.axis_probability = {.5f, 1, 1}});
  each("moved", random_flip{.axis_probability = {1, .5f, 1}} | crop_or_pad{{24, 45, 35}});
}

// Single slices of floats, zeros of either sign and the largest numbers among them, with labels that meet in threes.
struct plane_cases {
  using element = float;
  static constexpr std::int64_t channels = 2;
  static view<const element> source(const element* data, const grid& g) { return contiguous(data, g, channels); }

  std::vector<grid> grids{{.extents = {1, 40, 75}, .spacing = {5, .8, .8}},
                          {.extents = {1, 33, 64}, .direction = {{{1, 0, 0}, {0, .8, -.6}, {0, .6, .8}}}},
                          {.extents = {1, 1, 90}},
                          {.extents = {1, 35, 2}}};
  std::vector<std::vector<float>> images;
  std::vector<std::vector<std::uint8_t>> labels;
  std::vector<std::uint64_t> ids{4, 17, 9, 3};

  plane_cases() {
    const float special[] = {-0.0f, 0.0f, 3e38f, -3e38f, 1e-42f};
    for (std::size_t i = 0; i < grids.size(); ++i) {
      const auto n = static_cast<std::size_t>(grids[i].voxels());
      std::vector<float> image(2 * n);
      std::vector<std::uint8_t> label(n);
      for (std::size_t v = 0; v < 2 * n; ++v) {
        const std::uint64_t h = mix64(v * 5 + i);
        image[v] = v / 200 % 3 == 0 || h % 5 == 0 ? special[h / 8 % 5] : static_cast<float>(h % 600) - 300;
        if (v < n) label[v] = static_cast<std::uint8_t>((v / 6 % 4) + (h % 7 == 0 ? 1 : 0));
      }
      images.push_back(image);
      labels.push_back(label);
    }
  }
};

TEST(lone_voxels, a_slice_computes_what_a_lone_voxel_computes) {
  const plane_cases data;
  const random_affine turn{.rotate_deg = 25, .scale = {.8f, 1.2f}};
  const random_elastic bend{
      .control_spacing_mm = 9, .max_displacement_mm = 2, .locked_borders = 0, .limit_to_safe = true};
  const auto each = [&](const char* name, const auto& geometry) {
    for (const float border : {0.0f, -0.0f, -7.0f, 3e38f})
      expect_walk_equals_lone_voxels(
          data, name, geometry | sampling<linear, constant, vote>{.border = {.value = border}, .label_outside = 9});
    expect_walk_equals_lone_voxels(data, name, geometry | sampling<linear, edge, vote>{});
    expect_walk_equals_lone_voxels(data, name, geometry | sampling<linear, reflect, nearest>{});
    expect_walk_equals_lone_voxels(data, name, geometry | sampling<cubic_bspline, mirror>{});
  };
  each("turned", turn);
  each("bent", turn | bend);
  each("bent, then turned", bend | turn);
  each("scaled", resize{{1, 43, 61}} | random_flip{});
  each("moved", random_flip{} | pad_to{{1, 45, 96}});
  each("more planes", turn | resize{{3, 20, 50}});
  expect_walk_equals_lone_voxels(data, "windowed", window{.center = 40, .width = 400} | turn);
}

}  // namespace
