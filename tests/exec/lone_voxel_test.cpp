// SPDX-License-Identifier: Apache-2.0
// The walks of the CPU executor beside an evaluator that is asked for one voxel after the other.
#include <gtest/gtest.h>

#include <cstring>

#include "digest/host.hpp"
#include "digest/staged_recipes.hpp"
#include "support/aligned_memory.hpp"

namespace {

using namespace digest_test;
using support::aligned_memory;

template <class T>
std::uint64_t bits_of(T v) {
  std::uint64_t b = 0;
  std::memcpy(&b, &v, sizeof v);
  return b;
}

// A channel of what an evaluator gives.
template <class T>
T channel(T v, std::int32_t) {
  return v;
}
template <class T>
T channel(const pixel<T>& v, std::int32_t c) {
  return v.c[c];
}

// A lone voxel of the evaluator and the same voxel of a run.
template <class Cases, class Pipeline>
void expect_walk_equals_lone_voxels(const Cases& data, const char* name, const Pipeline& pipeline) {
  const std::size_t samples = data.grids.size();
  std::vector<view<const typename Cases::element>> in;
  std::vector<view<const std::uint8_t>> seg;
  for (std::size_t i = 0; i < samples; ++i) {
    in.push_back(Cases::source(data.images[i].data(), data.grids[i]));
    seg.push_back(contiguous(data.labels[i].data(), data.grids[i]));
  }
  const auto p = plan(pipeline, in, {.seed = 5, .epoch = 1, .sample_ids = data.ids});
  using Out = typename std::remove_cvref_t<decltype(p)>::pipeline_type::result_type;
  std::vector<std::vector<Out>> out(samples);
  std::vector<std::vector<std::uint8_t>> seg_out(samples);
  std::vector<view<Out>> out_views;
  std::vector<view<std::uint8_t>> seg_views;
  for (std::size_t i = 0; i < samples; ++i) {
    const grid& g = p.output_grid(i);
    out[i].resize(static_cast<std::size_t>(Cases::channels * g.voxels()));
    seg_out[i].resize(static_cast<std::size_t>(g.voxels()));
    out_views.push_back(contiguous(out[i].data(), g, Cases::channels));
    seg_views.push_back(contiguous(seg_out[i].data(), g));
  }
  const auto images = image(in, out_views);
  const auto masks = labels(seg, seg_views);
  run(cpu{}, p, images, masks);
  const aligned_memory workspace(workspace_bytes(p, images, masks));
  const auto evaluate = prepare(cpu{.workspace = workspace.span()}, p, images, masks);
  std::int64_t wrong = 0, compared = 0;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(samples); ++i) {
    const auto index = static_cast<std::size_t>(i);
    const extent3 n = p.output_grid(index).extents;
    std::size_t v = 0;
    for (std::int32_t c = 0; c < Cases::channels; ++c)
      for (std::int32_t z = 0; z < n[0]; ++z)
        for (std::int32_t y = 0; y < n[1]; ++y)
          for (std::int32_t x = 0; x < n[2]; ++x, ++v) {
            wrong += bits_of(channel(evaluate(i, z, y, x, c), c)) != bits_of(out[index][v]);
            if (c == 0) wrong += evaluate.template get<1>(i, z, y, x) != seg_out[index][v];
            ++compared;
          }
  }
  EXPECT_EQ(wrong, 0) << name << ": of " << compared << " voxels";
  EXPECT_GT(compared, 1000);
}

TEST(lone_voxels, a_walk_computes_what_a_lone_voxel_computes) {
  const cases data;
  for_each_recipe(
      [&](const char* name, const auto& pipeline) { expect_walk_equals_lone_voxels(data, name, pipeline); });
}

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
    expect_walk_equals_lone_voxels(data, name, geometry | sampling<linear, reflect, nearest>{});
  };
  expect_walk_equals_lone_voxels(data, "by cubics", turn | sampling<cubic_bspline, mirror>{});
  expect_walk_equals_lone_voxels(data, "beyond the edge", turn | bend | sampling<linear, edge, vote>{});
  each("turned", turn);
  each("bent", turn | bend);
  each("bent, then turned", bend | turn);
  each("scaled", resize{{1, 43, 61}} | random_flip{});
  each("moved", random_flip{} | pad_to{{1, 45, 96}});
  each("more planes", turn | resize{{3, 20, 50}});
  expect_walk_equals_lone_voxels(data, "windowed", window{.center = 40, .width = 400} | turn);
}

TEST(lone_voxels, the_last_stage_computes_what_a_lone_voxel_computes) {
  const cases data;
  for_each_staged_recipe(
      [&](const char* name, const auto& pipeline) { expect_walk_equals_lone_voxels(data, name, pipeline); });
}

TEST(lone_voxels, a_walk_computes_the_pixels_of_a_lone_voxel) {
  const color_cases data;
  for_each_color_recipe(
      [&](const char* name, const auto& pipeline) { expect_walk_equals_lone_voxels(data, name, pipeline); });
}

}  // namespace
