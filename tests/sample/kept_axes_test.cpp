// SPDX-License-Identifier: Apache-2.0
// Samples that keep the axes of their source, scaled, mirrored, moved and beyond its borders: rows are copied where
// they stand on voxels, and what rows and planes share is kept. Every voxel has the bits of a lone one all the same.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "support/aligned_memory.hpp"
#include "suture/suture.hpp"

namespace {

using namespace suture;

enum class voxels { ordinary, negative_zeros, huge, infinite_neighbors };

// Where of every `step` elements along x one is a voxel.
template <class T>
view<const T> spread(const std::vector<T>& memory, const extent3& n, std::int64_t step) {
  grid g;
  g.extents = n;
  view<const T> v = contiguous<const T>(memory.data(), g);
  v.stride = {n[1] * n[2] * step, n[2] * step, step};
  return v;
}

template <class T>
std::vector<T> image_of(const extent3& n, std::int64_t step, voxels kind) {
  std::vector<T> memory(static_cast<std::size_t>(n[0] * n[1] * n[2] * step));
  std::uint64_t state = 11;
  for (T& value : memory) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto level = static_cast<float>(static_cast<std::int64_t>(state >> 50) - 8192);
    value = storage<T>::store(level);
    if (kind == voxels::negative_zeros && state >> 59 == 0) value = storage<T>::store(-0.0f);
    if (kind == voxels::huge && state >> 59 == 1) value = storage<T>::store(std::numeric_limits<float>::max());
  }
  // In the last column but 39: what is moved by 40 voxels reads those before it, with this one as their neighbor.
  if (kind == voxels::infinite_neighbors && n[2] > 40)
    for (std::int64_t row = 0; row < n[0] * n[1]; ++row)
      memory[static_cast<std::size_t>(((row + 1) * n[2] - 40) * step)] =
          storage<T>::store(std::numeric_limits<float>::infinity());
  return memory;
}

// Halves of two labels with islands of others: strips that agree, two labels, many.
template <class T>
std::vector<T> labels_of(const extent3& n, std::int64_t step) {
  std::vector<T> memory(static_cast<std::size_t>(n[0] * n[1] * n[2] * step), T{99});
  std::uint64_t state = 7;
  for (std::size_t i = 0; i < memory.size(); i += static_cast<std::size_t>(step)) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const std::int64_t x = static_cast<std::int64_t>(i) / step % n[2];
    memory[i] = static_cast<T>(state >> 60 == 0 ? 2 + (state >> 40) % 5 : x < n[2] / 2 ? 0 : 1);
  }
  return memory;
}

template <class Image, class Label, class Pipeline>
void expect_lone_voxels(const Pipeline& pipeline, const extent3& n, std::int64_t step, voxels kind) {
  SCOPED_TRACE(testing::Message() << n[0] << " x " << n[1] << " x " << n[2] << ", every " << step);
  const auto image_memory = image_of<Image>(n, step, kind);
  const auto label_memory = labels_of<Label>(n, step);
  const std::vector in{spread(image_memory, n, step)};
  const std::vector seg{spread(label_memory, n, step)};
  const std::uint64_t ids[] = {3};
  const auto p = plan(pipeline, in, {.seed = 2, .sample_ids = ids});
  const grid& g = p.output_grid(0);
  std::vector<float> out(static_cast<std::size_t>(g.voxels()));
  std::vector<Label> seg_out(out.size());
  const std::vector out_views{contiguous(out.data(), g)};
  const std::vector seg_views{contiguous(seg_out.data(), g)};
  const auto images = image(in, out_views);
  const auto masks = labels(seg, seg_views);
  run(cpu{}, p, images, masks);
  const support::aligned_memory workspace(workspace_bytes(p, images, masks));
  const auto evaluate = prepare(cpu{.workspace = workspace.span()}, p, images, masks);
  std::size_t v = 0;
  std::int64_t wrong_values = 0, wrong_labels = 0;
  for (std::int32_t z = 0; z < g.extents[0]; ++z)
    for (std::int32_t y = 0; y < g.extents[1]; ++y)
      for (std::int32_t x = 0; x < g.extents[2]; ++x, ++v) {
        const float lone = evaluate.template get<0>(0, z, y, x);
        wrong_values += std::memcmp(&lone, &out[v], sizeof lone) != 0;
        wrong_labels += evaluate.template get<1>(0, z, y, x) != seg_out[v];
      }
  EXPECT_EQ(wrong_values, 0) << "of " << v;
  EXPECT_EQ(wrong_labels, 0) << "of " << v;
  EXPECT_GT(v, 0u);
}

template <class T>
class kept_axes : public testing::Test {};
// Of the image and of its labels.
using types = testing::Types<std::pair<float, std::int8_t>, std::pair<half, std::uint16_t>,
                             std::pair<std::int16_t, std::uint8_t>>;
TYPED_TEST_SUITE(kept_axes, types);

// check(border) for every border.
template <class Check>
void for_each_border(const Check& check) {
  check(sampling<linear, constant, vote>{.border = {-1000}, .label_outside = 6});
  check(sampling<linear, constant, vote>{.border = {-0.0f}, .label_outside = 6});
  check(sampling<linear, edge, vote>{});
  check(sampling<linear, reflect, vote>{});
  check(sampling<linear, mirror, nearest>{});
  check(sampling<linear, wrap, majority>{});
}

TYPED_TEST(kept_axes, scaled) {
  using Image = typename TypeParam::first_type;
  using Label = typename TypeParam::second_type;
  for (const extent3& n : {extent3{1, 1, 1}, {2, 15, 16}, {17, 9, 127}, {13, 34, 33}})
    for (const std::int64_t step : {1, 2})
      for_each_border([&](const auto& border) {
        // One type of pipeline, which compiles once.
        const auto check = [&](const affine& scaled, const flip& mirrored) {
          expect_lone_voxels<Image, Label>(scaled | mirrored | border, n, step, voxels::ordinary);
        };
        check(affine{.scale = {.7, .8, .73}}, flip{});
        check(affine{.scale = {1.4, 1.3, 1.37}, .translate = {1.3, -2.6, 3.2}}, flip{{true, true, false}});
        check(affine{.scale = {2.5, .4, 1}}, flip{{false, false, true}});
      });
}

TYPED_TEST(kept_axes, moved_by_whole_voxels) {
  using Image = typename TypeParam::first_type;
  using Label = typename TypeParam::second_type;
  for (const extent3& n : {extent3{1, 1, 1}, {2, 15, 16}, {17, 9, 127}, {3, 34, 70}})
    for (const std::int64_t step : {1, 2})
      for (const voxels kind : {voxels::ordinary, voxels::negative_zeros, voxels::huge, voxels::infinite_neighbors})
        for_each_border([&](const auto& border) {
          const auto check = [&](const affine& moved, const flip& mirrored) {
            expect_lone_voxels<Image, Label>(moved | mirrored | border, n, step, kind);
          };
          check(affine{}, flip{{false, false, true}});
          check(affine{.translate = {0, 0, -1}}, flip{});
          check(affine{.translate = {0, 1, 0}}, flip{{true, false, false}});
          check(affine{.translate = {-1, 2, 40}}, flip{{false, true, false}});
          check(affine{.translate = {2, -3, -33}}, flip{});
          check(affine{.translate = {0, 0, 500}}, flip{});
          check(affine{.translate = {-300, 0, 0}}, flip{});
        });
}

}  // namespace
