// SPDX-License-Identifier: Apache-2.0
// Filters and operations on patch statistics, against their definitions in double.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "digest/samples.hpp"
#include "support/expect_says.hpp"

namespace {

using namespace suture;

// A patch of two channels in double, as (channel, z, y, x).
struct patch {
  extent3 n;
  std::vector<double> v;

  double& at(std::int64_t c, std::int64_t z, std::int64_t y, std::int64_t x) {
    return v[static_cast<std::size_t>(((c * n[0] + z) * n[1] + y) * n[2] + x)];
  }
};

patch random_patch(const extent3& n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> value(20, 50);
  patch p{n, std::vector<double>(static_cast<std::size_t>(2 * n[0] * n[1] * n[2]))};
  for (double& v : p.v) v = static_cast<double>(value(random));
  return p;
}

template <class Pipeline>
std::vector<float> result(const Pipeline& pipeline, const patch& p, const settings& s) {
  const std::vector<float> values(p.v.begin(), p.v.end());
  const std::vector<view<const float>> in{contiguous(values.data(), {.extents = p.n}, 2)};
  const auto planned = plan(pipeline, in, s);
  std::vector<float> out(values.size());
  const std::vector<view<float>> outs{contiguous(out.data(), planned.output_grid(0), 2)};
  run(cpu{}, planned, image(in, outs));
  return out;
}
template <class Pipeline>
std::vector<float> result(const Pipeline& pipeline, const patch& p) {
  const std::uint64_t ids[] = {8};
  return result(pipeline, p, {.seed = 3, .sample_ids = ids});
}

void expect_close(const std::vector<float>& values, const patch& expected, double tolerance, const char* what) {
  ASSERT_EQ(values.size(), expected.v.size());
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(values[i]) - expected.v[i]));
  EXPECT_LE(worst, tolerance) << what << ", " << expected.n[0] << " x " << expected.n[1] << " x " << expected.n[2];
}

const std::vector<extent3> sizes{{1, 1, 1}, {1, 15, 16}, {1, 75, 33}, {17, 3, 1}, {2, 3, 127}, {9, 10, 17}};
constexpr double range = 400;  // of values, about

// scipy.ndimage.gaussian_filter along one axis, written out.
patch blurred(patch p, int axis, double sigma, blur_kernel kernel) {
  if (sigma == 0 || (kernel == blur_kernel::monai && p.n[axis] == 1)) return p;
  const int r = kernel == blur_kernel::scipy    ? static_cast<int>(4 * sigma + 0.5)
                : kernel == blur_kernel::nnunet ? static_cast<int>((6 * sigma + 0.5) / 2)
                                                : static_cast<int>(std::max(4 * sigma, 0.5) + 0.5);
  std::vector<double> w;
  for (int k = -r; k <= r; ++k)
    w.push_back(kernel == blur_kernel::monai ? 0.5 * (std::erf((k + 0.5) / (sigma * std::sqrt(2))) -
                                                      std::erf((k - 0.5) / (sigma * std::sqrt(2))))
                                             : std::exp(-0.5 * k * k / (sigma * sigma)));
  if (kernel != blur_kernel::monai) {
    double sum = 0;
    for (double each : w) sum += each;
    for (double& each : w) each /= sum;
  }
  const auto outside = [&](std::int64_t i, std::int64_t n) -> std::int64_t {
    if (kernel == blur_kernel::monai) return i < 0 || i >= n ? -1 : i;
    while (i < 0 || i >= n) {
      if (kernel == blur_kernel::nnunet && n == 1) return 0;
      const std::int64_t about_faces = kernel == blur_kernel::scipy ? 1 : 0;
      i = i < 0 ? -i - about_faces : 2 * n - 2 + about_faces - i;
    }
    return i;
  };
  patch result = p;
  for (std::int64_t c = 0; c < 2; ++c)
    for (std::int64_t z = 0; z < p.n[0]; ++z)
      for (std::int64_t y = 0; y < p.n[1]; ++y)
        for (std::int64_t x = 0; x < p.n[2]; ++x) {
          double sum = 0;
          for (int k = -r; k <= r; ++k) {
            std::int64_t at[3] = {z, y, x};
            at[axis] = outside(at[axis] + k, p.n[axis]);
            if (at[axis] >= 0) sum += w[static_cast<std::size_t>(k + r)] * p.at(c, at[0], at[1], at[2]);
          }
          result.at(c, z, y, x) = sum;
        }
  return result;
}

TEST(filters, blur_is_the_convolution_of_every_kernel) {
  for (const extent3& n : sizes)
    for (blur_kernel kernel : {blur_kernel::scipy, blur_kernel::nnunet, blur_kernel::monai}) {
      const patch p = random_patch(n, 1);
      const double sigma[3] = {.7, 1.3, 3.1};
      patch expected = p;
      for (int axis = 0; axis < 3; ++axis) expected = blurred(expected, axis, sigma[axis], kernel);
      expect_close(result(gaussian_blur{.sigma = {.7, 1.3, 3.1}, .kernel = kernel}, p), expected, 2e-6 * range, "blur");
      expect_close(result(gaussian_blur{.sigma = {0, 0, 1}, .kernel = kernel}, p), blurred(p, 2, 1, kernel),
                   2e-6 * range, "blur along x");
    }
}

// MONAI's GaussianSmooth of a 2D image of ones is erf(4.5 / sqrt 2)^2 in the middle: nothing is filtered along z.
TEST(filters, the_kernel_monai_does_not_darken_images_of_one_slice) {
  for (const extent3& n : {extent3{1, 21, 23}, extent3{21, 1, 23}, extent3{21, 23, 1}}) {
    SCOPED_TRACE(testing::Message() << n[0] << " x " << n[1] << " x " << n[2]);
    const patch ones{n, std::vector<double>(static_cast<std::size_t>(2 * n[0] * n[1] * n[2]), 1)};
    const std::size_t middle = static_cast<std::size_t>((n[0] / 2 * n[1] + n[1] / 2) * n[2] + n[2] / 2);
    constexpr auto kernel = blur_kernel::monai;
    EXPECT_NEAR(result(gaussian_blur{.sigma = 1, .kernel = kernel}, ones)[middle], 0.9999864, 1e-6);
    EXPECT_NEAR(result(random_gaussian_blur{.sigma = 1, .kernel = kernel}, ones)[middle], 0.9999864, 1e-6);
    EXPECT_NEAR(result(sharpen{.sigma = 1, .kernel = kernel}, ones)[middle], 1.0000136, 1e-6);
    EXPECT_NEAR(result(random_sharpen{.sigma = 1, .amount = 1, .kernel = kernel}, ones)[middle], 1.0000136, 1e-6);
  }
}

TEST(filters, a_blur_of_sigma_zero_changes_nothing) {
  const patch p = random_patch({5, 6, 7}, 2);
  const std::vector<float> same(p.v.begin(), p.v.end());
  EXPECT_EQ(result(gaussian_blur{.sigma = 0}, p), same);
  EXPECT_EQ(result(random_gaussian_blur{.probability = 0}, p), same);
  EXPECT_EQ(result(random_gaussian_blur{.channel_probability = 0}, p), same);
}

// The square of such a sigma is no float.
TEST(filters, a_blur_of_a_tiny_sigma_changes_nothing) {
  const patch p = random_patch({5, 6, 7}, 2);
  const std::vector<float> same(p.v.begin(), p.v.end());
  for (const double sigma : {1e-3, 1e-18, 1e-20, 1e-30, 1e-45})
    for (const blur_kernel kernel : {blur_kernel::scipy, blur_kernel::nnunet, blur_kernel::monai}) {
      SCOPED_TRACE(testing::Message() << "sigma " << sigma << ", kernel " << static_cast<int>(kernel));
      EXPECT_EQ(result(gaussian_blur{.sigma = sigma, .kernel = kernel}, p), same);
      EXPECT_EQ(result(sharpen{.sigma = sigma, .kernel = kernel}, p), same);
    }
}

TEST(filters, channels_are_blurred_or_not_each_by_itself) {
  const patch p = random_patch({6, 9, 12}, 3);
  const std::vector<float> before(p.v.begin(), p.v.end());
  const std::size_t half = before.size() / 2;
  int changed[2][2] = {};
  for (std::uint64_t id = 0; id < 400; ++id) {
    const std::uint64_t ids[] = {id};
    const auto after = result(random_gaussian_blur{.channel_probability = .5f}, p, {.seed = 1, .sample_ids = ids});
    const auto middle = static_cast<std::ptrdiff_t>(half);
    ++changed[std::equal(before.begin(), before.begin() + middle, after.begin())]
             [std::equal(before.begin() + middle, before.end(), after.begin() + middle)];
  }
  for (const auto& row : changed)
    for (int count : row) EXPECT_NEAR(count, 100, 40);  // 4.6 standard deviations
}

// torch.nn.functional.interpolate down by nearest-exact (or nearest) and up linearly, written out.
patch coarse(const patch& p, double zoom, bool exact, const bool (&axes)[3]) {
  patch result = p;
  for (int axis = 0; axis < 3; ++axis) {
    if (!axes[axis]) continue;
    const std::int64_t n = p.n[axis];
    const auto m = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::nearbyint(static_cast<double>(n) * zoom)));
    patch next = result;
    for (std::int64_t c = 0; c < 2; ++c)
      for (std::int64_t z = 0; z < p.n[0]; ++z)
        for (std::int64_t y = 0; y < p.n[1]; ++y)
          for (std::int64_t x = 0; x < p.n[2]; ++x) {
            std::int64_t at[3] = {z, y, x};
            const double q = std::max(
                0.0, (static_cast<double>(at[axis]) + 0.5) * static_cast<double>(m) / static_cast<double>(n) - 0.5);
            const auto j = static_cast<std::int64_t>(q);
            const double t = q - static_cast<double>(j);
            const auto value = [&](std::int64_t k) {
              k = std::min(k, m - 1);
              at[axis] = exact ? (2 * k + 1) * n / (2 * m) : k * n / m;
              return result.at(c, at[0], at[1], at[2]);
            };
            next.at(c, z, y, x) = (1 - t) * value(j) + t * value(j + 1);
          }
    result = next;
  }
  return result;
}

TEST(filters, low_resolution_is_nearest_down_and_linear_up) {
  for (const extent3& n : sizes)
    for (float zoom : {.3f, .5f, .77f, .99f, 1.0f})
      for (bool exact : {true, false}) {
        const patch p = random_patch(n, 4);
        const auto pick = exact ? coarse_pick::nearest_exact : coarse_pick::nearest_lower;
        const double z = static_cast<double>(zoom);
        expect_close(result(random_low_resolution{.zoom = zoom, .pick = pick}, p),
                     coarse(p, z, exact, {true, true, true}), 2e-6 * range, "low resolution");
        expect_close(result(random_low_resolution{.zoom = zoom, .pick = pick, .axes = {false, true, true}}, p),
                     coarse(p, z, exact, {false, true, true}), 2e-6 * range, "low resolution in the plane");
      }
}

struct summary {
  double mean = 0, deviation = 0, minimum = 0, maximum = 0;
};
summary summary_of(const patch& p, std::size_t channel) {
  const std::size_t n = p.v.size() / 2;
  const double* const v = p.v.data() + channel * n;
  summary s;
  for (std::size_t i = 0; i < n; ++i) s.mean += v[i] / static_cast<double>(n);
  for (std::size_t i = 0; i < n; ++i) s.deviation += (v[i] - s.mean) * (v[i] - s.mean) / static_cast<double>(n);
  s.deviation = std::sqrt(s.deviation);
  s.minimum = *std::min_element(v, v + n);
  s.maximum = *std::max_element(v, v + n);
  return s;
}

template <class F>
patch by_channel(patch p, const F& f) {
  const std::size_t n = p.v.size() / 2;
  for (std::size_t c = 0; c < 2; ++c) {
    const summary s = summary_of(p, c);
    for (std::size_t i = 0; i < n; ++i) p.v[c * n + i] = f(p.v[c * n + i], s);
  }
  return p;
}

patch gamma_of(const patch& p, double exponent, bool invert, bool retain) {
  const patch y = by_channel(p, [&](double x, const summary& s) {
    const double from = invert ? -x : x, low = invert ? -s.maximum : s.minimum, r = s.maximum - s.minimum;
    const double value = std::pow((from - low) / std::max(r, 1e-7), exponent) * r + low;
    return invert ? -value : value;
  });
  if (!retain) return y;
  patch result = y;
  const std::size_t n = p.v.size() / 2;
  for (std::size_t c = 0; c < 2; ++c) {
    const summary before = summary_of(p, c), after = summary_of(y, c);
    for (std::size_t i = 0; i < n; ++i)
      result.v[c * n + i] =
          (y.v[c * n + i] - after.mean) * before.deviation / std::max(after.deviation, 1e-7) + before.mean;
  }
  return result;
}

// scipy.ndimage.median_filter of size 3, written out.
patch median_of(patch p) {
  patch result = p;
  const auto within = [](std::int64_t i, std::int64_t n) { return i < 0 ? 0 : i < n ? i : n - 1; };  // reflect by one
  for (std::int64_t c = 0; c < 2; ++c)
    for (std::int64_t z = 0; z < p.n[0]; ++z)
      for (std::int64_t y = 0; y < p.n[1]; ++y)
        for (std::int64_t x = 0; x < p.n[2]; ++x) {
          std::vector<double> around;
          for (std::int64_t k = 0; k < 27; ++k)
            around.push_back(p.at(c, within(z + k / 9 - 1, p.n[0]), within(y + k / 3 % 3 - 1, p.n[1]),
                                  within(x + k % 3 - 1, p.n[2])));
          std::nth_element(around.begin(), around.begin() + 13, around.end());
          result.at(c, z, y, x) = around[13];
        }
  return result;
}

TEST(filters, median_is_that_of_the_27_voxels) {
  for (const extent3& n : sizes) {
    const patch p = random_patch(n, 10);
    const patch expected = median_of(p);
    EXPECT_EQ(result(median_filter{}, p), std::vector<float>(expected.v.begin(), expected.v.end()));
    EXPECT_EQ(result(random_median_filter{.channel_probability = 0}, p), std::vector<float>(p.v.begin(), p.v.end()));
  }
  patch p{{4, 9, 11}, std::vector<double>(792, 3)};  // ties
  for (std::size_t i = 0; i < p.v.size(); i += 3) p.v[i] = static_cast<double>(i % 4);
  const patch expected = median_of(p);
  EXPECT_EQ(result(median_filter{}, p), std::vector<float>(expected.v.begin(), expected.v.end()));
}

// A row of medians has the bits of single ones, also of zeros with signs and of numbers that are none.
TEST(filters, median_of_a_row_is_that_of_each_voxel) {
  constexpr int width = 32;
  const median_functor median{~0u};
  std::mt19937 random(12);
  for (int turn = 0; turn < 300; ++turn) {
    std::vector<float> memory(9 * (width + 2));
    for (float& v : memory) {
      const auto kind = turn < 100 ? 0 : random() % 40;
      v = static_cast<float>(random() % 9) - 4;
      if (kind < 15) v = random() % 2 == 0 ? 0.0f : -0.0f;
      if (turn >= 200 && kind == 39) v = std::bit_cast<float>(0x7fc00000u | static_cast<std::uint32_t>(random() % 99));
    }
    const float* rows[9];
    for (std::size_t i = 0; i < 9; ++i) rows[i] = memory.data() + i * (width + 2);
    float run[width];
    median.filter_run(rows, {0, 1, 2}, run);
    for (int l = 0; l < width; ++l) {
      const auto read = [&](std::int32_t z, std::int32_t y, std::int32_t x) { return rows[3 * z + y][x]; };
      const float alone = median(read, {3, 3, width + 2}, 1, 1, l + 1, 0);
      EXPECT_EQ(std::bit_cast<std::uint32_t>(run[l]), std::bit_cast<std::uint32_t>(alone)) << turn << ' ' << l;
    }
  }
}

TEST(filters, median_of_nan_is_nan) {
  patch p = random_patch({5, 6, 7}, 11);
  p.at(0, 2, 3, 3) = std::nan("");
  const auto y = result(median_filter{}, p);
  std::size_t lost = 0;
  for (float value : y) lost += std::isnan(value) ? 1u : 0u;
  EXPECT_EQ(lost, 27u);
}

TEST(filters, sharpen_adds_what_the_blur_takes_away) {
  for (const extent3& n : sizes)
    for (blur_kernel kernel : {blur_kernel::scipy, blur_kernel::nnunet, blur_kernel::monai}) {
      const patch p = random_patch(n, 12);
      const double sigma[3] = {.5, 1, 2.4};
      patch expected = p;
      for (int axis = 0; axis < 3; ++axis) expected = blurred(expected, axis, sigma[axis], kernel);
      for (std::size_t i = 0; i < p.v.size(); ++i) expected.v[i] = p.v[i] + 1.5 * (p.v[i] - expected.v[i]);
      expect_close(result(sharpen{.sigma = {.5, 1, 2.4}, .amount = 1.5f, .kernel = kernel}, p), expected, 5e-6 * range,
                   "sharpen");
    }
  const patch p = random_patch({6, 9, 12}, 13);
  patch expected = p;  // what stands left of it acts on the voxels it reads, what stands right on its result
  for (double& v : expected.v) v = 2 * v + 1;
  const patch before = expected;
  for (int axis = 0; axis < 3; ++axis) expected = blurred(expected, axis, 1, blur_kernel::scipy);
  for (std::size_t i = 0; i < p.v.size(); ++i) expected.v[i] = .5 * (2 * before.v[i] - expected.v[i]);
  expect_close(
      result(gaussian_blur{.sigma = 0} | rescale{.slope = 2, .intercept = 1} | sharpen{} | rescale{.slope = .5f}, p),
      expected, 1e-5 * range, "in a chain");
  EXPECT_EQ(result(random_sharpen{.channel_probability = 0}, p), std::vector<float>(p.v.begin(), p.v.end()));
}

TEST(filters, a_sigma_is_drawn_for_every_axis_channel_or_sample) {
  for (const sigma_of each : {sigma_of::axis, sigma_of::channel, sigma_of::sample}) {
    draws random(1, 2, 3, 4);
    const auto drawn = random_gaussian_blur{.each = each}.draw(random, {"test"});
    EXPECT_EQ(drawn.sigma[0][0] == drawn.sigma[0][1], each != sigma_of::axis);
    EXPECT_EQ(drawn.sigma[1][0] == drawn.sigma[1][2], each != sigma_of::axis);
    EXPECT_EQ(drawn.sigma[0][0] == drawn.sigma[1][0], each == sigma_of::sample);
  }
}

TEST(patch_statistics, contrast_turns_about_the_mean_of_the_channel) {
  for (const extent3& n : sizes) {
    const patch p = random_patch(n, 5);
    for (bool preserve : {true, false})
      expect_close(result(random_patch_contrast{.range = 1.25f, .preserve_range = preserve}, p),
                   by_channel(p,
                              [&](double x, const summary& s) {
                                const double y = (x - s.mean) * 1.25 + s.mean;
                                return preserve ? std::clamp(y, s.minimum, s.maximum) : y;
                              }),
                   1e-6 * range, "contrast");
  }
}

TEST(patch_statistics, gamma_runs_over_the_range_of_the_channel_and_keeps_its_moments) {
  for (const extent3& n : sizes) {
    const patch p = random_patch(n, 6);
    for (bool invert : {false, true})
      for (bool retain : {false, true})
        for (float exponent : {.7f, 1.0f, 1.5f})
          expect_close(result(random_patch_gamma{.range = exponent, .invert = invert, .retain_statistics = retain}, p),
                       gamma_of(p, static_cast<double>(exponent), invert, retain), 2e-5 * range, "gamma");
  }
}

TEST(patch_statistics, what_follows_a_restored_gamma_sees_the_moments_it_left) {
  const patch p = random_patch({9, 17, 33}, 7);
  const auto chain = random_patch_gamma{.range = .7f, .invert = true} | random_patch_gamma{.range = 1.4f} |
                     random_patch_contrast{.range = .8f};
  const patch expected = by_channel(gamma_of(gamma_of(p, .7, true, true), 1.4, false, true),
                                    [](double x, const summary& s) { return (x - s.mean) * .8 + s.mean; });
  expect_close(result(chain, p), expected, 4e-5 * range, "two gammas and contrast");
}

// The curve of so small a range is scaled by less than its deviation would take: its result, too, has deviation 1 then.
TEST(patch_statistics, what_follows_a_gamma_of_a_tiny_range_sees_the_deviation_it_left) {
  patch p{{4, 5, 6}, std::vector<double>(240)};
  for (std::size_t i = 0; i < p.v.size(); ++i) p.v[i] = static_cast<double>(i % 120) * 4e-10;
  for (const bool invert : {false, true}) {
    const auto y = result(random_patch_gamma{.range = 1.5f, .invert = invert} | patch_z_score{}, p);
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < 120; ++i) {
      sum += static_cast<double>(y[i]);
      squares += static_cast<double>(y[i]) * static_cast<double>(y[i]);
    }
    EXPECT_NEAR(sum / 120, 0, 1e-4);
    EXPECT_NEAR(std::sqrt(squares / 120), 1, 1e-4);
  }
}

TEST(patch_statistics, a_constant_patch_stays_as_it_is) {
  const patch p{{4, 5, 6}, std::vector<double>(240, 7.5)};
  const std::vector<float> same(240, 7.5f);
  EXPECT_EQ(result(random_patch_gamma{}, p), same);
  EXPECT_EQ(result(random_patch_gamma{.invert = true, .retain_statistics = false}, p), same);
  EXPECT_EQ(result(random_patch_contrast{}, p), same);
}

TEST(patch_statistics, nan_stays_and_is_not_counted) {
  patch p = random_patch({3, 8, 40}, 8), finite = p;
  p.v[100] = std::nan("");
  finite.v[100] = 20;  // about the mean: the moments hardly change
  const auto with = result(random_patch_contrast{.range = 1.2f, .preserve_range = false}, p);
  const auto without = result(random_patch_contrast{.range = 1.2f, .preserve_range = false}, finite);
  EXPECT_TRUE(std::isnan(with[100]));
  for (std::size_t i = 0; i < with.size(); ++i)
    if (i != 100) {
      ASSERT_NEAR(with[i], without[i], .1) << i;
    }
}

TEST(patch_statistics, infinities_stay_as_they_are) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  patch p = random_patch({3, 8, 40}, 8);
  p.v[7] = infinity;
  p.v[100] = -infinity;
  for (const bool invert : {false, true})
    for (const bool retain : {false, true}) {
      const auto got = result(random_patch_gamma{.range = 1.3f, .invert = invert, .retain_statistics = retain}, p);
      EXPECT_EQ(got[7], infinity) << invert << retain;
      EXPECT_EQ(got[100], -infinity) << invert << retain;
    }
}

// Puts the mean of its channel into every voxel.
struct show_mean {
  static constexpr std::string_view name = "show_mean";
  struct functor {
    struct known {
      float mean;
      SUTURE_FN float operator()(float) const { return mean; }
    };
    SUTURE_FN bool active(std::int32_t) const { return true; }
    SUTURE_FN known with(const moments& patch, std::int32_t) const { return {patch.center}; }
  };
  functor prepare(const site&) const { return {}; }
};

TEST(patch_statistics, have_the_bits_of_the_fit) {
  const patch p = random_patch({9, 17, 33}, 9);
  const auto before = result(gaussian_blur{} | rescale{.slope = .3f}, p);
  const std::vector<view<const float>> views{contiguous<const float>(before.data(), {.extents = p.n}, 2)};
  std::vector<moments> fitted(2);
  fit(cpu{}, fit_moments{}, views, everything{}, std::span(fitted));
  const auto shown = result(gaussian_blur{} | rescale{.slope = .3f} | show_mean{}, p);
  EXPECT_EQ(shown.front(), fitted[0].center);
  EXPECT_EQ(shown.back(), fitted[1].center);
}

template <class Chain>
constexpr int stages_of(const Chain&) {
  return pipeline<decltype(as_chain(std::declval<const Chain&>()))>::stages;
}

TEST(stages, are_as_few_as_can_be) {
  const random_patch_gamma gamma;
  const random_patch_contrast contrast;
  const gaussian_blur blur;
  const random_low_resolution coarse;
  EXPECT_EQ(stages_of(flip{} | brightness{1}), 1);
  EXPECT_EQ(stages_of(flip{} | blur), 2);
  EXPECT_EQ(stages_of(flip{} | blur | brightness{1} | cast<half>{}), 2);
  EXPECT_EQ(stages_of(flip{} | contrast), 3);  // one that only looks
  EXPECT_EQ(stages_of(flip{} | blur | contrast), 3);
  EXPECT_EQ(stages_of(flip{} | blur | contrast | coarse), 3);  // contrast acts on what the filter reads
  EXPECT_EQ(stages_of(flip{} | blur | coarse), 3);
  EXPECT_EQ(stages_of(flip{} | blur | gamma), 4);
  EXPECT_EQ(stages_of(flip{} | blur | gamma | gamma), 5);  // the second knows what the first has left
  EXPECT_EQ(stages_of(flip{} | blur | gamma | brightness{1} | gamma), 6);
  EXPECT_EQ(stages_of(flip{} | blur | contrast | coarse | gamma | gamma | cast<half>{}), 6);
}

TEST(stages, labels_move_with_the_fused_part) {
  const digest_test::cases data;
  const std::vector<view<const std::int16_t>> in{contiguous(data.images[1].data(), data.grids[1], 2)};
  const std::vector<view<const std::uint8_t>> seg{contiguous(data.labels[1].data(), data.grids[1])};
  const std::uint64_t ids[] = {4};
  const auto labels_of = [&](const auto& chain) {
    const auto p = plan(chain, in, {.seed = 2, .sample_ids = ids});
    const auto n = static_cast<std::size_t>(p.output_grid(0).voxels());
    std::vector<float> out(2 * n);
    std::vector<std::uint8_t> seg_out(n);
    const std::vector<view<float>> outs{contiguous(out.data(), p.output_grid(0), 2)};
    const std::vector<view<std::uint8_t>> seg_outs{contiguous(seg_out.data(), p.output_grid(0))};
    run(cpu{}, p, image(in, outs), labels(seg, seg_outs));
    return seg_out;
  };
  const auto geometry = random_affine{.rotate_deg = 20} | crop_or_pad{{20, 20, 20}};
  EXPECT_EQ(labels_of(geometry | gaussian_blur{} | random_patch_gamma{}), labels_of(geometry));
}

TEST(stages, a_run_in_stages_knows_nothing_of_the_batch) {
  const digest_test::cases data;
  const auto chain = random_affine{} | crop_or_pad{{20, 20, 20}} | random_gaussian_blur{.probability = .5f} |
                     random_patch_contrast{.probability = .5f} | random_patch_gamma{.probability = .5f};
  std::vector<std::uint64_t> alone;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::vector<view<const std::int16_t>> in{contiguous(data.images[i].data(), data.grids[i], 2)};
    const std::uint64_t ids[] = {data.ids[i]};
    const auto p = plan(chain, in, {.seed = 2, .sample_ids = ids});
    std::vector<float> out(16000);
    const std::vector<view<float>> outs{contiguous(out.data(), p.output_grid(0), 2)};
    run(cpu{}, p, image(in, outs));
    alone.push_back(digest(outs[0]));
  }
  std::vector<view<const std::int16_t>> in;
  for (std::size_t i = 0; i < 3; ++i) in.push_back(contiguous(data.images[i].data(), data.grids[i], 2));
  const auto p = plan(chain, in, {.seed = 2, .sample_ids = data.ids});
  std::vector<float> out(48000);
  const auto outs = batch_views(out.data(), p.output_grids(), 2);
  for (int threads : {1, 2, 5}) {
    run(cpu{.threads = threads}, p, image(in, outs));
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(digest(outs[i]), alone[i]) << threads << " threads, sample " << i;
  }
}

TEST(stages, more_channels_than_are_drawn_for_are_refused) {
  const std::vector<float> values(9 * 8, 1.0f);
  const std::vector<view<const float>> in{contiguous(values.data(), {.extents = {2, 2, 2}}, 9)};
  std::vector<float> out(values.size());
  const std::vector<view<float>> outs{contiguous(out.data(), in[0].grid, 9)};
  const std::uint64_t ids[] = {1};
  const auto run_with = [&](const auto& chain) { run(cpu{}, plan(chain, in, {.sample_ids = ids}), image(in, outs)); };
  EXPECT_SAYS(run_with(identity{} | random_gaussian_blur{}),
              "the image has 9 channels, random_gaussian_blur draws for each of at most 8");
  EXPECT_SAYS(run_with(identity{} | random_patch_gamma{}), "random_patch_gamma draws for each of at most 8");
  EXPECT_SAYS(run_with(identity{} | random_patch_contrast{}), "random_patch_contrast draws for each of at most 8");
  EXPECT_SAYS(run_with(identity{} | random_low_resolution{}), "random_low_resolution draws for each of at most 8");
  run_with(identity{} | gaussian_blur{});  // the same for all
  EXPECT_NEAR(out.back(), 1, 1e-6);
}

TEST(stages, bad_parameters_are_named) {
  const patch p = random_patch({4, 4, 4}, 1);
  EXPECT_SAYS(result(gaussian_blur{.sigma = -1}, p),
              "suture: gaussian_blur: sample 0 (id 8): sigma -1 voxels must not be negative");
  EXPECT_SAYS(result(gaussian_blur{.sigma = 4}, p),
              "gaussian_blur: sample 0 (id 8): sigma 4 voxels reaches 16 voxels far");
  EXPECT_SAYS(result(gaussian_blur{.sigma = NAN}, p), "gaussian_blur: sample 0 (id 8): sigma nan");
  EXPECT_SAYS(result(gaussian_blur{.sigma = INFINITY}, p), "gaussian_blur: sample 0 (id 8): sigma inf");
  EXPECT_SAYS(result(gaussian_blur{.sigma = 4e9}, p),
              "gaussian_blur: sample 0 (id 8): sigma 4000000000 voxels reaches 16000000000");
  EXPECT_SAYS(result(gaussian_blur{.truncate = -1}, p), "gaussian_blur: sample 0 (id 8): truncate -1 sigmas");
  EXPECT_SAYS(result(sharpen{.sigma = 4}, p), "sharpen: sample 0 (id 8): sigma 4 voxels reaches 16 voxels far");
  EXPECT_SAYS(result(sharpen{.amount = INFINITY}, p), "sharpen: sample 0 (id 8): amount inf must be finite");
  EXPECT_SAYS(result(random_sharpen{.amount = {2, 1}}, p), "random_sharpen: sample 0 (id 8): amount [2, 1]");
  EXPECT_SAYS(result(random_median_filter{.channel_probability = 2}, p),
              "random_median_filter: sample 0 (id 8): channel_probability 2 is not in [0, 1]");
  EXPECT_SAYS(result(random_gaussian_blur{.sigma = {1, .5f}}, p),
              "random_gaussian_blur: sample 0 (id 8): sigma [1, 0.5]");
  EXPECT_SAYS(result(random_gaussian_blur{.channel_probability = 1.5f}, p), "channel_probability 1.5 is not in [0, 1]");
  // Both ends of a range are checked, even where no sample draws from it.
  EXPECT_SAYS(result(random_gaussian_blur{.sigma = {.5f, 6}, .probability = 0}, p),
              "random_gaussian_blur: sample 0 (id 8): sigma 6 voxels reaches 24 voxels far, at most 15 are possible");
  EXPECT_SAYS(result(random_gaussian_blur{.sigma = {-.5f, 1}, .probability = 0}, p),
              "random_gaussian_blur: sample 0 (id 8): sigma -0.5 voxels must not be negative");
  EXPECT_SAYS(result(random_sharpen{.sigma = {.5f, 6}, .probability = 0}, p),
              "random_sharpen: sample 0 (id 8): sigma 6 voxels reaches 24 voxels far");
  EXPECT_SAYS(result(random_sharpen{.sigma = {-.5f, 1}, .probability = 0}, p),
              "random_sharpen: sample 0 (id 8): sigma -0.5 voxels");
  EXPECT_SAYS(result(random_low_resolution{.zoom = {0, 1}}, p),
              "random_low_resolution: sample 0 (id 8): zoom [0, 1] is not in (0, 1]");
  EXPECT_SAYS(result(random_low_resolution{.zoom = {.5f, 2}}, p), "is not in (0, 1]");
  EXPECT_SAYS(result(random_patch_gamma{.range = {0, 1}}, p),
              "random_patch_gamma: sample 0 (id 8): range [0, 1] must be positive");
  EXPECT_SAYS(result(random_patch_contrast{.range = {2, 1}}, p),
              "random_patch_contrast: sample 0 (id 8): range [2, 1]");
}

}  // namespace
