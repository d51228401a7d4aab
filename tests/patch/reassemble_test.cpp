// SPDX-License-Identifier: Apache-2.0
// Patches that cover a volume: their starts and windows against nnU-Net, their weighted mean against sums in double
// precision.
#include <gtest/gtest.h>
#include <suture/exec/cpu/run.hpp>
#include <suture/ops/geometry/crop_at.hpp>
#include <suture/patch/reassemble.hpp>

#include <cstring>
#include <random>

#include "support/expect_says.hpp"
#include "support/oracle.hpp"
#include "support/test_time_augmentation.hpp"

namespace {

using namespace suture;

using axis_starts = std::vector<std::int64_t>;

TEST(patch_grid, dense_steps_by_one_voxel_at_least_and_fits_at_the_ends) {
  // int(2 (1 - 0.9)) = 0, which MONAI raises to 1; a patch as large as the volume; a volume of whole steps.
  const patch_grid g = dense_patch_grid({5, 7, 12}, {2, 7, 4}, {.9, .5, 0});
  EXPECT_EQ(g.starts[0], (axis_starts{0, 1, 2, 3}));
  EXPECT_EQ(g.starts[1], (axis_starts{0}));
  EXPECT_EQ(g.starts[2], (axis_starts{0, 4, 8}));
}

// Printed by compute_steps_for_sliding_window of nnU-Net v2, with NumPy 2.4.
TEST(patch_grid, sliding_window_is_that_of_nnu_net) {
  const patch_grid a = sliding_window_grid({30, 224, 224}, {28, 160, 128});
  EXPECT_EQ(a.starts[0], (axis_starts{0, 2}));
  EXPECT_EQ(a.starts[1], (axis_starts{0, 64}));
  EXPECT_EQ(a.starts[2], (axis_starts{0, 48, 96}));
  const patch_grid b = sliding_window_grid({101, 145, 512}, {64, 64, 96});
  EXPECT_EQ(b.starts[0], (axis_starts{0, 18, 37}));  // 18.5 goes to even
  EXPECT_EQ(b.starts[1], (axis_starts{0, 27, 54, 81}));
  EXPECT_EQ(b.starts[2], (axis_starts{0, 46, 92, 139, 185, 231, 277, 324, 370, 416}));
  const patch_grid c = sliding_window_grid({97, 128, 333}, {33, 128, 50}, .3);
  EXPECT_EQ(c.starts[0], (axis_starts{0, 9, 18, 27, 37, 46, 55, 64}));
  EXPECT_EQ(c.starts[1], (axis_starts{0}));
  EXPECT_EQ(c.starts[2],
            (axis_starts{0, 15, 30, 45, 60, 74, 89, 104, 119, 134, 149, 164, 179, 194, 209, 223, 238, 253, 268, 283}));
  const patch_grid d = sliding_window_grid({10, 11, 13}, {4, 4, 4}, .75);
  EXPECT_EQ(d.starts[1], (axis_starts{0, 2, 5, 7}));  // 7 / 3 apart
}

// scipy.ndimage.gaussian_filter of a unit impulse, (8, 9, 16), sigma = size / 8, divided by its maximum.
TEST(patch_window, of_sliding_windows_is_nnu_nets_gaussian) {
  const patch_window w = sliding_window_gaussian({8, 9, 16});
  const struct {
    std::size_t z, y, x;
    double value;
  } expected[] = {{0, 0, 0, 2.0235699946536467e-10}, {4, 4, 8, 1.0},
                  {7, 8, 15, 4.369694462570986e-08}, {2, 3, 11, 0.029597608098655956},
                  {4, 0, 8, 0.0017981666618475832},  {0, 4, 8, 0.0003354626279025118}};
  for (const auto& e : expected) {
    const double got = double{w.weight[0][e.z]} * double{w.weight[1][e.y]} * double{w.weight[2][e.x]};
    EXPECT_NEAR(got, e.value, 3e-7 * e.value) << e.z << ' ' << e.y << ' ' << e.x;
  }
  EXPECT_EQ(w.least, 0.0f);
}

struct predictions {
  patch_grid grid;
  std::int64_t channels;
  std::vector<float> values;

  predictions(const patch_grid& g, std::int64_t c, unsigned seed) : grid(g), channels(c) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> value(-3, 5);
    values.resize(static_cast<std::size_t>(g.count() * c * g.size[0] * g.size[1] * g.size[2]));
    for (float& v : values) v = value(random);
  }
  patch_tensor<float> tensor() const { return {values.data(), channels, 0, grid.count()}; }

  // One patch after the other added to a sum, as MONAI and nnU-Net do, in double precision.
  std::vector<double> mean(const patch_window& w) const {
    const extent3 n = grid.image, size = grid.size;
    std::vector<double> sum(static_cast<std::size_t>(channels * n[0] * n[1] * n[2]), 0), weight(sum.size(), 0);
    std::size_t at = 0;
    for (std::int64_t p = 0; p < grid.count(); ++p)
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t z = 0; z < size[0]; ++z)
          for (std::int64_t y = 0; y < size[1]; ++y)
            for (std::int64_t x = 0; x < size[2]; ++x) {
              const extent3 s = grid.start(p);
              const double k = std::max<double>(w.least, double{w.weight[0][static_cast<std::size_t>(z)]} *
                                                             double{w.weight[1][static_cast<std::size_t>(y)]} *
                                                             double{w.weight[2][static_cast<std::size_t>(x)]});
              const auto v = static_cast<std::size_t>(((c * n[0] + s[0] + z) * n[1] + s[1] + y) * n[2] + s[2] + x);
              sum[v] += k * double{values[at++]};
              weight[v] += k;
            }
    for (std::size_t v = 0; v < sum.size(); ++v) sum[v] /= weight[v];
    return sum;
  }
};

grid volume(const extent3& n) { return {.extents = n}; }

TEST(reassemble, is_the_weighted_mean_of_the_patches) {
  const extent3 image{13, 17, 31}, size{5, 8, 9};
  const predictions p(sliding_window_grid(image, size), 3, 1);
  for (const patch_window& w : {constant_window(size), gaussian_window(size), sliding_window_gaussian(size)}) {
    std::vector<float> out(3 * 13 * 17 * 31, -99.0f), threaded(out);
    reassemble(cpu{.threads = 1}, p.grid, w, p.tensor(), contiguous(out.data(), volume(image), 3));
    const std::vector<double> expected = p.mean(w);
    for (std::size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], expected[i], 3e-6) << i;
    reassemble(cpu{.threads = 4}, p.grid, w, p.tensor(), contiguous(threaded.data(), volume(image), 3));
    EXPECT_EQ(out, threaded);
  }
}

// The patches of an evaluation, cut by a plan and put together again, are the image.
TEST(reassemble, undoes_the_cut) {
  const extent3 image{6, 10, 23}, size{4, 4, 8};
  std::vector<float> voxels(6 * 10 * 23);
  for (std::size_t i = 0; i < voxels.size(); ++i) voxels[i] = static_cast<float>(i % 251);
  const patch_grid g = dense_patch_grid(image, size, {.5, .5, .5});
  const std::vector<extent3> starts = g.all_starts();
  const std::vector<view<const float>> batch(starts.size(), contiguous<const float>(voxels.data(), volume(image)));
  const auto plan = suture::plan(crop_at{.starts = starts, .size = size}, batch);
  std::vector<float> patches(starts.size() * 4 * 4 * 8);
  std::vector<view<float>> into;
  for (std::size_t p = 0; p < starts.size(); ++p)
    into.push_back(contiguous(patches.data() + p * 128, plan.output_grid(p)));
  run(cpu{}, plan, suture::image(batch, into));
  std::vector<float> out(voxels.size());
  reassemble(cpu{}, g, constant_window(size), patch_tensor<float>{patches.data(), 1, 0, g.count()},
             contiguous(out.data(), volume(image)));
  EXPECT_EQ(out, voxels);
}

TEST(reassemble, in_slabs_gives_the_bits_of_the_whole) {
  const extent3 image{21, 9, 14}, size{6, 5, 7};
  const predictions p(dense_patch_grid(image, size, {.5, .3, .6}), 2, 4);
  const patch_window w = gaussian_window(size);
  std::vector<float> whole(2 * 21 * 9 * 14);
  reassemble(cpu{}, p.grid, w, p.tensor(), contiguous(whole.data(), volume(image), 2));
  const std::int64_t row = p.grid.along(1) * p.grid.along(2), plane = 9 * 14;
  for (std::int64_t z = 0; z < 21; z += 4) {
    const std::int64_t planes = std::min<std::int64_t>(4, 21 - z);
    // The patches that reach into the slab, no others.
    std::int64_t first = p.grid.along(0), last = 0;
    for (std::int64_t i = 0; i < p.grid.along(0); ++i) {
      const std::int64_t s = p.grid.starts[0][static_cast<std::size_t>(i)];
      if (s + size[0] > z && s < z + planes) {
        first = std::min(first, i);
        last = i + 1;
      }
    }
    const std::int64_t elements = 2 * size[0] * size[1] * size[2];
    const patch_tensor<float> some{p.values.data() + first * row * elements, 2, first * row, (last - first) * row};
    std::vector<float> slab(static_cast<std::size_t>(2 * planes * plane));
    const auto out = contiguous(slab.data(), volume({planes, 9, 14}), 2);
    reassemble(cpu{}, p.grid, w, some, out, z);
    for (std::int64_t c = 0; c < 2; ++c)
      EXPECT_EQ(std::memcmp(slab.data() + c * planes * plane, whole.data() + (c * 21 + z) * plane,
                            static_cast<std::size_t>(planes * plane) * sizeof(float)),
                0);
    const patch_tensor<float> fewer{some.data, 2, some.first, some.count - 1};
    EXPECT_THROW(reassemble(cpu{}, p.grid, w, fewer, out, z), error);
  }
}

// How much of each voxel the patches cover: some nothing, some all, the rest in part.
std::vector<float> coverage_of(const patch_grid& g, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> k(static_cast<std::size_t>(g.count() * g.size[0] * g.size[1] * g.size[2]));
  for (float& v : k) {
    const auto kind = random() % 4;
    v = kind == 0 ? 0.0f : kind == 1 ? 1.0f : static_cast<float>(1 + random() % 4000) * 1e-3f;
  }
  return k;
}

TEST(reassemble, writes_the_same_in_every_order_of_axes) {
  constexpr int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  const extent3 size{5, 8, 9};
  for (const extent3& n : {extent3{37, 67, 40}, extent3{70, 9, 17}}) {
    const predictions p(sliding_window_grid(n, size), 2, 3);
    const std::vector<float> k = coverage_of(p.grid, 8);
    const patch_tensor<float> given{p.values.data(), 2, 0, p.grid.count()}, covered{k.data(), 1, 0, p.grid.count()};
    const patch_window window = gaussian_window(size);
    const auto voxels = static_cast<std::size_t>(n[0] * n[1] * n[2]);
    std::vector<float> plain(2 * voxels), plain_covered(2 * voxels);
    reassemble(cpu{}, p.grid, window, given, contiguous(plain.data(), volume(n), 2));
    reassemble(cpu{}, p.grid, window, given, covered, contiguous(plain_covered.data(), volume(n), 2), 0, -1);
    for (const auto& order : orders)
      for (const bool channels_last : {false, true}) {
        std::vector<float> memory(2 * voxels + 1, 77);
        view<float> out{memory.data(), volume(n), {}, 2, 1};
        std::int64_t step = channels_last ? 2 : 1;
        for (int j = 2; j >= 0; --j) {
          out.stride[order[j]] = step;
          step *= n[order[j]];
        }
        if (!channels_last) out.channel_stride = step;
        const auto expect = [&](const std::vector<float>& expected) {
          for (std::int64_t c = 0; c < 2; ++c)
            for (std::int64_t at = 0; at < n[0] * n[1] * n[2]; ++at)
              ASSERT_EQ(out.data[c * out.channel_stride + at / n[2] / n[1] * out.stride[0] +
                                 at / n[2] % n[1] * out.stride[1] + at % n[2] * out.stride[2]],
                        expected[static_cast<std::size_t>(c) * voxels + static_cast<std::size_t>(at)])
                  << order[0] << order[1] << order[2] << " at " << at;
          ASSERT_EQ(memory.back(), 77);
        };
        reassemble(cpu{.threads = 3}, p.grid, window, given, out);
        expect(plain);
        reassemble(cpu{.threads = 3}, p.grid, window, given, covered, out, 0, -1);
        expect(plain_covered);
      }
  }
}

TEST(reassemble, reads_halves_and_writes_any_strides) {
  const extent3 image{3, 4, 9}, size{2, 3, 5};
  const patch_grid g = sliding_window_grid(image, size);
  std::vector<half> patches(static_cast<std::size_t>(g.count() * 2 * 30), storage<half>::store(0.75f));
  std::vector<std::uint8_t> out(2 * 3 * 4 * 9, 9);
  reassemble(cpu{}, g, gaussian_window(size), patch_tensor<half>{patches.data(), 2, 0, g.count()},
             channels_last(out.data(), volume(image), 2));
  EXPECT_EQ(out, std::vector<std::uint8_t>(out.size(), 1));
}

TEST(reassemble, weighs_voxels_by_their_coverage) {
  for (const extent3& image : {extent3{13, 17, 31}, extent3{5, 8, 9}, extent3{6, 8, 16}}) {
    const extent3 size{5, 8, 9};
    const predictions p(sliding_window_grid(image, size), 2, 3);
    std::vector<float> k = coverage_of(p.grid, 8);
    for (std::int64_t i = 0; i < p.grid.count(); ++i) k[static_cast<std::size_t>(i * 5 * 8 * 9)] = 0;
    const patch_window window = gaussian_window(size);
    const std::int64_t voxels = image[0] * image[1] * image[2];
    std::vector<double> sum(static_cast<std::size_t>(2 * voxels), 0), weight(static_cast<std::size_t>(voxels), 0);
    for (std::int64_t i = 0; i < p.grid.count(); ++i)
      for (std::int64_t at = 0; at < 5 * 8 * 9; ++at) {
        const std::int64_t z = at / 72, y = at / 9 % 8, x = at % 9;
        const extent3 s = p.grid.start(i);
        const auto v = static_cast<std::size_t>(((s[0] + z) * image[1] + s[1] + y) * image[2] + s[2] + x);
        const double w = std::max<double>(window.least, double{window.weight[0][static_cast<std::size_t>(z)]} *
                                                            double{window.weight[1][static_cast<std::size_t>(y)]} *
                                                            double{window.weight[2][static_cast<std::size_t>(x)]}) *
                         double{k[static_cast<std::size_t>(i * 360 + at)]};
        weight[v] += w;
        for (std::int64_t c = 0; c < 2; ++c)
          sum[static_cast<std::size_t>(c * voxels) + v] +=
              w * double{p.values[static_cast<std::size_t>((i * 2 + c) * 360 + at)]};
      }
    std::vector<float> out(sum.size(), -99.0f), threaded(out);
    const patch_tensor<float> coverage{k.data(), 1, 0, p.grid.count()};
    reassemble(cpu{.threads = 1}, p.grid, window, p.tensor(), coverage, contiguous(out.data(), volume(image), 2), 0,
               -7.0f);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double w = weight[i % static_cast<std::size_t>(voxels)];
      if (w > 0)
        ASSERT_NEAR(out[i], sum[i] / w, 5e-6) << i;
      else
        ASSERT_EQ(out[i], -7.0f) << i;
    }
    EXPECT_EQ(out[0], -7.0f);  // the corner lies in one patch, which does not cover it
    reassemble(cpu{.threads = 4}, p.grid, window, p.tensor(), coverage, contiguous(threaded.data(), volume(image), 2),
               0, -7.0f);
    EXPECT_EQ(out, threaded);
  }
}

TEST(reassemble, covered_wholly_gives_the_bits_without_coverage) {
  const extent3 image{9, 11, 20}, size{4, 5, 9};
  const predictions p(dense_patch_grid(image, size, {.5, .3, .6}), 2, 4);
  const std::vector<float> ones(static_cast<std::size_t>(p.grid.count() * 4 * 5 * 9), 1.0f);
  for (const patch_window& w : {constant_window(size), gaussian_window(size), sliding_window_gaussian(size)}) {
    std::vector<float> without(2 * 9 * 11 * 20), with(without);
    reassemble(cpu{}, p.grid, w, p.tensor(), contiguous(without.data(), volume(image), 2));
    reassemble(cpu{}, p.grid, w, p.tensor(), {ones.data(), 1, 0, p.grid.count()},
               contiguous(with.data(), volume(image), 2));
    EXPECT_EQ(with, without);
  }
}

// What is not covered is not read: NaN and infinity there are those of a network that was given nothing.
TEST(reassemble, does_not_read_what_is_not_covered) {
  const extent3 image{4, 6, 12}, size{4, 6, 8};
  const patch_grid g = dense_patch_grid(image, size);
  std::vector<float> values(static_cast<std::size_t>(g.count() * 192), 2.0f), k(values.size(), 1.0f);
  for (std::size_t i = 0; i < 192; ++i) {  // the first patch
    values[i] = i % 2 == 0 ? NAN : INFINITY;
    k[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? -1.0f : 0.0f;
  }
  std::vector<float> out(4 * 6 * 12);
  reassemble(cpu{}, g, gaussian_window(size), patch_tensor<float>{values.data(), 1, 0, g.count()},
             {k.data(), 1, 0, g.count()}, contiguous(out.data(), volume(image)));
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], i % 12 < 4 ? 0.0f : 2.0f) << i;
}

// Two classes whose probabilities are the voxel and the rest.
void predict_voxels(const float* images, std::int64_t count, std::int64_t voxels, float* out) {
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t v = 0; v < voxels; ++v) {
      out[2 * i * voxels + v] = images[i * voxels + v];
      out[(2 * i + 1) * voxels + v] = 1 - images[i * voxels + v];
    }
}

// A ramp, and everything that predict_windows needs to find it again.
struct augmented_windows {
  static constexpr std::int64_t n = 3, V = 10 * 12 * 16;
  extent3 size{10, 12, 16};
  grid g = volume({20, 26, 30});
  patch_grid windows = sliding_window_grid(g.extents, size, .5);
  std::vector<float> voxels = room(g.voxels()), seen = room((n + 1) * V), probabilities = room(n * 2 * V),
                     restored = room((n + 1) * 2 * V), ones = room(n * V, 1), coverage = room((n + 1) * V, 1),
                     means = room(windows.count() * 2 * V), covered = room(windows.count() * V),
                     whole = room(2 * g.voxels());

  static std::vector<float> room(std::int64_t elements, float value = -1) {
    return std::vector<float>(static_cast<std::size_t>(elements), value);
  }
  augmented_windows() {
    std::size_t v = 0;
    for (int z = 0; z < 20; ++z)
      for (int y = 0; y < 26; ++y)
        for (int x = 0; x < 30; ++x) voxels[v++] = static_cast<float>(.1 + .01 * z + .011 * y + .012 * x);
  }
  template <class Predict>
  void predict(const Predict& how) {
    support::predict_windows(cpu{}, contiguous<const float>(voxels.data(), g), size, 2, n,
                             {seen.data(), probabilities.data(), restored.data(), ones.data(), coverage.data(),
                              means.data(), covered.data()},
                             how, contiguous(whole.data(), g, 2));
  }
  double sum(std::size_t v) const { return double{whole[v]} + double{whole[voxels.size() + v]}; }
};

TEST(test_time_augmentation, of_windows_gives_probabilities_that_sum_to_one) {
  augmented_windows w;
  w.predict([&](const float* images, std::int64_t views, float* out) { predict_voxels(images, views, w.V, out); });
  for (std::size_t v = 0; v < w.voxels.size(); ++v) {
    ASSERT_NEAR(w.sum(v), 1, 2e-6) << v;
    const std::size_t z = v / 780, y = v / 30 % 26, x = v % 30;
    const bool inside = z > 2 && z < 17 && y > 2 && y < 23 && x > 2 && x < 27;  // views see no border there
    ASSERT_NEAR(w.whole[v], w.voxels[v], inside ? 5e-3 : 1) << v;
  }
  // Some voxels are seen by fewer views than others.
  EXPECT_LT(*std::min_element(w.covered.begin(), w.covered.end()), 3.0f);
  EXPECT_GE(*std::min_element(w.covered.begin(), w.covered.end()), 1.0f);
  EXPECT_NEAR(*std::max_element(w.covered.begin(), w.covered.end()), 4.0f, 1e-5f);
}

// Without the window itself its corners are covered by no view. What other windows say of them counts alone.
TEST(test_time_augmentation, does_not_count_what_no_view_of_a_window_covers) {
  augmented_windows w;
  std::fill_n(w.coverage.begin(), w.V, 0.0f);
  w.predict([&](const float* images, std::int64_t views, float* out) {
    if (out == w.restored.data())
      std::fill_n(out, 2 * w.V, 0.0f);
    else
      predict_voxels(images, views, w.V, out);
  });
  std::vector<int> covering(w.voxels.size(), 0);
  for (std::int64_t p = 0; p < w.windows.count(); ++p)
    for (std::int64_t i = 0; i < w.V; ++i) {
      const extent3 s = w.windows.start(p);
      const std::int64_t z = s[0] + i / 192, y = s[1] + i / 16 % 12, x = s[2] + i % 16;
      covering[static_cast<std::size_t>((z * 26 + y) * 30 + x)] +=
          w.covered[static_cast<std::size_t>(p * w.V + i)] > 0 ? 1 : 0;
    }
  std::vector<float> uncounted(w.whole.size());
  reassemble(cpu{}, w.windows, gaussian_window(w.size), patch_tensor<float>{w.means.data(), 2, 0, w.windows.count()},
             contiguous(uncounted.data(), w.g, 2));
  int covered = 0, pulled_down = 0;
  for (std::size_t v = 0; v < w.voxels.size(); ++v) {
    ASSERT_NEAR(w.sum(v), covering[v] > 0 ? 1 : 0, 2e-6) << v;
    covered += covering[v] > 0 ? 1 : 0;
    pulled_down += covering[v] > 0 && uncounted[v] + uncounted[w.voxels.size() + v] < .99f ? 1 : 0;
  }
  EXPECT_GT(covered, 15000);
  EXPECT_GT(pulled_down, 0);  // as it was without coverage
}

TEST(reassemble, says_what_is_wrong_with_a_coverage) {
  const extent3 image{4, 4, 4}, size{2, 2, 2};
  const predictions p(dense_patch_grid(image, size), 1, 1);
  const std::int64_t n = p.grid.count();
  std::vector<float> out(64), k(static_cast<std::size_t>(n * 8), 1.0f);
  const auto with = [&](const patch_tensor<float>& coverage, float outside = 0) {
    reassemble(cpu{}, p.grid, constant_window(size), p.tensor(), coverage, contiguous(out.data(), volume(image)), 0,
               outside);
  };
  EXPECT_SAYS(with({nullptr, 1, 0, n}), "reassemble: coverage: null pointer");
  EXPECT_SAYS(with({k.data(), 2, 0, n}), "reassemble: coverage has 2 channels");
  EXPECT_SAYS(with({k.data(), 1, 0, n - 1}), "reassemble: coverage of patches 0 .. 25 for patches 0 .. 26");
  EXPECT_SAYS(with({k.data(), 1, 1, n}), "reassemble: coverage of patches 1 .. 27 for patches 0 .. 26");
  EXPECT_SAYS(with({out.data(), 1, 0, n}), "reassemble: output overlaps the coverage in memory");
  EXPECT_SAYS(with({k.data(), 1, 0, n}, NAN), "reassemble: outside nan must be finite");
}

TEST(reassemble, says_what_is_wrong) {
  EXPECT_SAYS(dense_patch_grid({4, 4, 4}, {4, 5, 4}), "dense_patch_grid: patch (4, 5, 4) is larger than the volume");
  EXPECT_SAYS(dense_patch_grid({4, 4, 4}, {4, 0, 4}), "must be positive");
  EXPECT_SAYS(dense_patch_grid({4, 4, 4}, {2, 2, 2}, {0, 1, 0}), "overlap (0, 1, 0)");
  EXPECT_SAYS(sliding_window_grid({4, 4, 4}, {2, 2, 5}), "sliding_window_grid: patch");
  EXPECT_SAYS(sliding_window_grid({4, 4, 4}, {2, 2, 2}, 0), "step 0");
  EXPECT_SAYS(gaussian_window({4, 4, 4}, 0), "sigma_scale 0");
  EXPECT_SAYS(gaussian_window({4, 0, 4}), "must be positive");

  const extent3 image{4, 4, 4}, size{2, 2, 2};
  const predictions p(dense_patch_grid(image, size), 1, 1);
  const patch_window w = constant_window(size);
  std::vector<float> out(128);
  const auto to = contiguous(out.data(), volume(image));
  const auto with = [&](const patch_grid& g, const patch_window& v, const patch_tensor<float>& t, const view<float>& o,
                        std::int64_t plane = 0) { reassemble(cpu{}, g, v, t, o, plane); };
  EXPECT_SAYS(with(p.grid, constant_window({2, 3, 2}), p.tensor(), to), "a window of 3 voxels along axis 1");
  EXPECT_SAYS(with(p.grid, w, {nullptr, 1, 0, p.grid.count()}, to), "null pointer");
  EXPECT_SAYS(with(p.grid, w, {p.values.data(), 1, 0, p.grid.count() - 1}, to), "the planes need 0 .. 26");
  EXPECT_SAYS(with(p.grid, w, {p.values.data(), 1, 1, p.grid.count()}, to), "patches 1 .. 27 are given");
  EXPECT_SAYS(with(p.grid, w, {p.values.data(), 2, 0, p.grid.count()}, to), "output has 1 channels, patches 2");
  EXPECT_SAYS(with(p.grid, w, {p.values.data(), 1, 0, std::int64_t{1} << 60}, to), "overflow 64 bits");
  EXPECT_SAYS(with(p.grid, w, p.tensor(), contiguous(out.data(), volume({4, 4, 5}))), "are not of the volume");
  EXPECT_SAYS(with(p.grid, w, p.tensor(), to, 1), "planes 1 .. 4");
  EXPECT_SAYS(with(p.grid, w, {out.data(), 1, 0, p.grid.count()}, contiguous(out.data(), volume(image))), "overlaps");
  patch_grid hole = p.grid;
  hole.starts[2] = {0, 2, 1};
  EXPECT_SAYS(with(hole, w, p.tensor(), to), "along axis 2 do not cover");
  patch_window none = w;
  none.weight[0][0] = 0;
  EXPECT_SAYS(with(p.grid, none, p.tensor(), to), "weighs nothing");
  none.weight[0][0] = NAN;
  EXPECT_SAYS(with(p.grid, none, p.tensor(), to), "weight nan");
}

}  // namespace
