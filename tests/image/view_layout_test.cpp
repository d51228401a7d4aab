// SPDX-License-Identifier: Apache-2.0
// What the strides of views may be: one that is written holds every element once, one that is read may repeat them.
#include <gtest/gtest.h>
#include <suture/suture.hpp>

#include <limits>
#include <random>
#include <set>
#include <vector>

#include "support/expect_says.hpp"
#include "support/grid_of.hpp"

namespace {

using namespace suture;
using support::grid_of;

constexpr auto up_to_chance = "lay several voxels onto one element";

// Held against a list of all elements.
TEST(strides, that_repeat_an_element_are_found) {
  std::mt19937 random(5);
  const auto below = [&](int n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
  int repeated = 0, apart = 0;
  for (int round = 0; round < 60000; ++round) {
    std::int64_t count[4], stride[4];
    const int most = 2 + static_cast<int>(below(9)), furthest = 2 + static_cast<int>(below(70));
    for (int k = 0; k < 4; ++k) {
      count[k] = 1 + below(most);
      stride[k] = below(2 * furthest) - furthest;
    }
    std::set<std::int64_t> elements;
    for (std::int64_t a = 0; a < count[0]; ++a)
      for (std::int64_t b = 0; b < count[1]; ++b)
        for (std::int64_t c = 0; c < count[2]; ++c)
          for (std::int64_t d = 0; d < count[3]; ++d)
            elements.insert(a * stride[0] + b * stride[1] + c * stride[2] + d * stride[3]);
    const bool repeats = static_cast<std::int64_t>(elements.size()) < count[0] * count[1] * count[2] * count[3];
    ASSERT_EQ(detail::repeats_elements(count, stride), repeats)
        << count[0] << " " << count[1] << " " << count[2] << " " << count[3] << ", strides " << stride[0] << " "
        << stride[1] << " " << stride[2] << " " << stride[3];
    (repeats ? repeated : apart) += 1;
  }
  EXPECT_GT(repeated, 5000);
  EXPECT_GT(apart, 5000);
}

// Two large axes meet where the product of their strides does, and no sooner.
TEST(strides, of_large_views_are_told_apart_exactly) {
  constexpr std::int64_t p = 1000003, q = 999983;  // primes
  const auto repeats = [](std::int64_t z, std::int64_t y) {
    const std::int64_t count[4] = {1, z, y, 1}, stride[4] = {0, p, -q, 0};
    return detail::repeats_elements(count, stride);
  };
  EXPECT_FALSE(repeats(q, p + 5));
  EXPECT_FALSE(repeats(q + 5, p));
  EXPECT_TRUE(repeats(q + 1, p + 1));
}

class written : public testing::Test {
protected:
  const grid g = grid_of(6, 5, 4);
  std::vector<float> in = std::vector<float>(2000, 1.0f), out = std::vector<float>(2000);
  std::vector<std::uint8_t> labels = std::vector<std::uint8_t>(2000, 1), labels_out = std::vector<std::uint8_t>(2000);

  template <class T>
  view<T> strided(std::vector<T>& memory, const extent3& stride, std::int64_t channels = 1,
                  std::int64_t channel_stride = 0) const {
    return {memory.data() + 1000, g, stride, channels, channel_stride};
  }
};

TEST_F(written, views_hold_every_element_once) {
  const auto p = plan(brightness{.offset = 1}, g);
  const auto run_to = [&](const view<float>& to) {
    run(cpu{}, p, image(contiguous<const float>(in.data(), g, to.channels), to));
  };
  for (const extent3& s : {extent3{20, 20, 1}, extent3{4, 4, 1}, extent3{1, 1, 1}, extent3{20, 3, 1}, extent3{9, 4, 1},
                           extent3{-4, 20, 1}, extent3{6, -10, 15}})
    EXPECT_SAYS(run_to(strided(out, s)), up_to_chance);
  EXPECT_SAYS(run_to(strided(out, {20, 4, 1}, 2, 1)),
              "image: sample 0: output: strides (20, 4, 1) and channel_stride 1 "
              "for extents (6, 5, 4) and 2 channels lay several voxels");
  EXPECT_SAYS(run_to(strided(out, {20, 4, 1}, 2, 119)), up_to_chance);
  EXPECT_SAYS(run_to(strided(out, {20, 0, 1})), "a stride of 0");
  EXPECT_SAYS(run_to(strided(out, {20, 4, 1}, 2)), "channel_stride 0 for 2 channels");
  // Reversed, transposed, padded, channels last, and axes that lie within each other's gaps.
  for (const extent3& s : {extent3{-20, -4, -1}, extent3{1, 6, 30}, extent3{30, 5, 1}, extent3{4, 24, 1},
                           extent3{5, 50, 7}, extent3{20, 4, -1}})
    EXPECT_NO_THROW(run_to(strided(out, s))) << s;
  EXPECT_NO_THROW(run_to(strided(out, {40, 8, 2}, 2, 1)));
  EXPECT_NO_THROW(run_to(strided(out, {40, 4, 1}, 2, 20)));
  // Of an axis of one voxel the stride says nothing.
  const grid row = grid_of(1, 1, 4);
  const auto of_row = plan(brightness{.offset = 1}, row);
  EXPECT_NO_THROW(run(cpu{}, of_row,
                      image(contiguous<const float>(in.data(), row), view<float>{out.data(), row, {1, 0, 1}, 1, 1})));
}

// Whatever writes a view looks.
TEST_F(written, views_of_every_entry_are_checked) {
  const extent3 bad{20, 3, 1};
  const auto from = contiguous<const std::uint8_t>(labels.data(), g);
  const auto masks = strided(labels_out, bad);
  const auto p = plan(flip{}, g);
  EXPECT_SAYS(run(cpu{}, p, suture::labels(from, masks)), "labels: sample 0: output: strides (20, 3, 1)");
  std::vector<std::uint8_t> full(2000);
  const grid half = grid_of(3, 3, 2);
  const view<std::uint8_t> level{labels_out.data(), half, {6, 1, 1}};
  EXPECT_SAYS(run(cpu{}, p, suture::labels(from, contiguous(full.data(), g), deep_supervision(level))),
              "labels: sample 0: level: strides (6, 1, 1)");
  std::vector<std::int32_t> hot(2000);
  EXPECT_SAYS(run(cpu{}, p, suture::labels(from, strided(hot, {20, 4, 1}, 2, 1), one_hot{.classes = 2})),
              "output: strides (20, 4, 1) and channel_stride 1");
  const patch_grid whole = dense_patch_grid(g.extents, g.extents);
  EXPECT_SAYS(
      reassemble(cpu{}, whole, constant_window(g.extents), patch_tensor<float>{in.data(), 1, 0, 1}, strided(out, bad)),
      up_to_chance);
  EXPECT_SAYS(average(cpu{}, patch_tensor<float>{in.data(), 1, 0, 1}, patch_tensor<float>{in.data(), 1, 0, 1},
                      strided(out, bad), {.outside = 0}),
              up_to_chance);
  EXPECT_SAYS(fill_holes(cpu{}, from, masks), up_to_chance);
  std::vector<largest_component_result> largest(1);
  EXPECT_SAYS(keep_largest_component(cpu{}, from, masks, connectivity::faces, largest), up_to_chance);
  EXPECT_SAYS(binary_dilation(cpu{}, from, masks), up_to_chance);
  EXPECT_SAYS(gray_erosion(cpu{}, from, masks), up_to_chance);
  EXPECT_SAYS(body_mask(cpu{}, contiguous<const float>(in.data(), g), masks, largest), up_to_chance);
  std::vector<std::uint32_t> components(1);
  EXPECT_SAYS(label_components(cpu{}, from, strided(hot, bad), connectivity::faces, components), up_to_chance);
  EXPECT_SAYS(mask_image(cpu{}, from, strided(out, bad)), up_to_chance);
  const std::uint64_t ids[] = {1};
  const std::int32_t one[] = {1};
  EXPECT_SAYS(disturb_labels(cpu{}, random_binary_operation{.labels = one}, masks, {.sample_ids = ids}), up_to_chance);
}

// What is read may repeat voxels, as expand() leaves it: the result is that of a copy that does not.
TEST(read, views_may_repeat_voxels) {
  const grid g = grid_of(6, 7, 40);
  const auto voxels = static_cast<std::size_t>(2 * g.voxels());
  std::mt19937 random(2);
  std::vector<float> memory(voxels);
  for (float& v : memory) v = static_cast<float>(random() % 1000);
  std::vector<std::uint8_t> map(memory.begin(), memory.end());
  struct layout {
    extent3 stride;
    std::int64_t channel_stride;
  };
  for (const layout& l : {layout{{0, 40, 1}, 280}, layout{{280, 0, 1}, 3}, layout{{40, 1, 0}, 0}, layout{{0, 0, 0}, 0},
                          layout{{3, 2, 1}, 1}, layout{{280, 40, 1}, 0}}) {
    const view<const float> repeated{memory.data(), g, l.stride, 2, l.channel_stride};
    const view<const std::uint8_t> labels_repeated{map.data(), g, l.stride};
    std::vector<float> whole(voxels);
    std::vector<std::uint8_t> whole_labels(voxels);
    std::size_t i = 0;
    for (std::int64_t c = 0; c < 2; ++c)
      for (std::int64_t z = 0; z < g.extents[0]; ++z)
        for (std::int64_t y = 0; y < g.extents[1]; ++y)
          for (std::int64_t x = 0; x < g.extents[2]; ++x, ++i) {
            const std::int64_t at = z * l.stride[0] + y * l.stride[1] + x * l.stride[2];
            whole[i] = memory[static_cast<std::size_t>(c * l.channel_stride + at)];
            whole_labels[i] = map[static_cast<std::size_t>(at)];
          }
    const auto same = [&](const auto& pipeline) {
      const auto p = plan(pipeline, g);
      const grid& to = p.output_grid(0);
      const auto size = static_cast<std::size_t>(2 * to.voxels());
      std::vector<float> a(size, -1), b(size, -2);
      std::vector<std::uint8_t> la(size, 1), lb(size, 2);
      run(cpu{}, p, image(repeated, contiguous(a.data(), to, 2)), labels(labels_repeated, contiguous(la.data(), to)));
      run(cpu{}, p, image(contiguous<const float>(whole.data(), g, 2), contiguous(b.data(), to, 2)),
          labels(contiguous<const std::uint8_t>(whole_labels.data(), g), contiguous(lb.data(), to)));
      EXPECT_EQ(a, b) << l.stride << " " << l.channel_stride;
      la.resize(size / 2);
      lb.resize(size / 2);
      EXPECT_EQ(la, lb) << l.stride;
    };
    same(brightness{.offset = 1});
    same(identity{});
    same(flip{{true, false, true}});
    same(resample{.spacing_mm = {.7, 1.3, .9}});
    same(affine{.rotate_deg = {0, 0, 20}} | sampling<linear, edge, vote>{});
    same(resample{.spacing_mm = {.7, 1, .9}} | sampling<cubic_bspline, mirror>{} | patch_z_score{});
    std::vector<moments> of_repeated(2), of_whole(2);
    fit(cpu{}, fit_moments{}, repeated, everything{}, of_repeated);
    fit(cpu{}, fit_moments{}, contiguous<const float>(whole.data(), g, 2), everything{}, of_whole);
    for (std::size_t c = 0; c < 2; ++c) EXPECT_EQ(of_repeated[c].mean, of_whole[c].mean);
  }
}

TEST(channels, beyond_all_bounds_are_refused_before_they_are_multiplied) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const grid g = grid_of(8, 9, 10);
  std::vector<float> in(720), out(720);
  const auto p = plan(flip{} | sampling<cubic_bspline, mirror>{} | gaussian_blur{}, g);
  for (const std::int64_t channels : {most, std::int64_t{65536}, std::int64_t{0}, -most}) {
    const std::string words = "channels " + std::to_string(channels) + " must be in 1..65535";
    const auto first = image(contiguous<const float>(in.data(), g, channels), contiguous(out.data(), g, channels));
    const auto last = image(channels_last<const float>(in.data(), g, channels), channels_last(out.data(), g, channels));
    EXPECT_SAYS(workspace_bytes(p, first), "image: sample 0: input: " + words);
    EXPECT_SAYS(run(cpu{}, p, first), "image: sample 0: input: " + words);
    EXPECT_SAYS(run(cpu{}, p, last), "image: sample 0: input: " + words);
    EXPECT_SAYS(batch_views(in.data(), std::span(&g, 1), channels), "batch_views: " + words);
    EXPECT_SAYS(batch_views_channels_last(in.data(), std::span(&g, 1), channels),
                "batch_views_channels_last: " + words);
  }
}

}  // namespace
