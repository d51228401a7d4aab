// SPDX-License-Identifier: Apache-2.0
// Bias fields, noise, shifted histograms, dropout and parameters per channel give the same bits on the device as on the
// host.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "support/executors.cuh"

namespace {

using namespace suture;

// Values from below 0 to far above 1, and a few that are not finite.
std::vector<float> values_of(const grid& g, std::int64_t channels) {
  std::vector<float> x(static_cast<std::size_t>(g.voxels() * channels));
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i * 37 % 101) / 70 - .2f;
    if (i % 11 == 0) x[i] *= 40;
    if (i % 501 == 0) x[i] = std::numeric_limits<float>::quiet_NaN();
    if (i % 503 == 0) x[i] = std::numeric_limits<float>::infinity();
    if (i % 509 == 0) x[i] = 1e15f;
  }
  return x;
}

template <class Executor, class Operations>
std::vector<float> result(const Operations& operations, const grid& g, std::int64_t channels,
                          const std::vector<float>& x) {
  const std::vector<std::uint64_t> ids{77};
  typename Executor::template buffer<float> in(x), out(std::vector<float>(x.size(), -1.0f));
  const auto in_view = contiguous(static_cast<const float*>(in.data()), g, channels);
  const auto out_view = contiguous(out.data(), g, channels);
  const auto p = plan(operations, std::vector{g}, {.seed = 12, .epoch = 1, .sample_ids = ids});
  Executor::run(p, image(in_view, out_view));
  return out.values();
}

template <class Operations>
void expect_same_bits(const Operations& operations, const extent3& n, std::int64_t channels) {
  const grid g{.extents = n};
  const std::vector<float> x = values_of(g, channels);
  const auto host = result<support::host_executor>(operations, g, channels, x);
  const auto device = result<support::device_executor>(operations, g, channels, x);
  std::size_t different = 0;
  for (std::size_t i = 0; i < x.size(); ++i) different += std::memcmp(&host[i], &device[i], sizeof(float)) != 0 ? 1 : 0;
  EXPECT_EQ(different, 0u) << n << " of " << channels << " channels";
}
template <class Operations>
void expect_same_bits(const Operations& operations) {
  for (const extent3 n : {extent3{5, 9, 37}, extent3{1, 17, 16}, extent3{2, 1, 127}})
    expect_same_bits(operations, n, 3);
}

TEST(intensity_device, bias_fields) {
  expect_same_bits(random_bias_field{});
  for (const int degree : {1, 4, 5}) expect_same_bits(random_bias_field{.degree = degree});
  expect_same_bits(random_bias_field{.coefficients = {-.5f, .5f}, .basis = bias_basis::monomial});
}

TEST(intensity_device, counting_noise) {
  for (const float counts : {.01f, 8.0f, 20.0f, 5000.0f, 1e12f}) expect_same_bits(poisson_noise{.counts = counts});
}

// Rows of a multiple of four voxels, whose lanes make normals for each other, and others; blocks of threads that are
// cut off along every axis, and more channels than normals are made for at a time.
TEST(intensity_device, noise) {
  const auto one = random_flip{} | gaussian_noise{.sigma = {.1f, .2f}};
  const auto two = rician_noise{.sigma = .1f};
  const auto four = gaussian_noise{.sigma = .1f} | rician_noise{.sigma = .1f} | gaussian_noise{.probability = 0} |
                    gaussian_noise{.sigma = .3f, .probability = .999f};
  for (const std::int64_t x : {1, 4, 15, 16, 17, 20, 36, 127, 128})
    for (const std::int64_t channels : {1, 3}) {
      expect_same_bits(one, {19, 11, x}, channels);
      expect_same_bits(two, {9, 9, x}, channels);
      expect_same_bits(four, {6, 3, x}, channels);
    }
  for (const std::int64_t channels : {2, 4, 7, 8, 16, 17, 33})
    for (const std::int64_t x : {12, 15}) {
      expect_same_bits(one, {18, 5, x}, channels);
      expect_same_bits(two, {18, 5, x}, channels);
      expect_same_bits(four, {18, 5, x}, channels);
    }
}

// More than a block of threads has room for: every voxel then makes its own.
TEST(intensity_device, much_noise) {
  const auto four = [](const auto& operation) { return operation | operation | operation | operation; };
  const auto noise = gaussian_noise{.sigma = .1f};
  expect_same_bits(four(noise) | four(noise) | four(noise), {5, 9, 20}, 1);
}

TEST(intensity_device, histograms_and_dropout) {
  expect_same_bits(random_histogram_shift{.control_points = {3, 32}});
  expect_same_bits(random_coarse_dropout{.holes = 5, .size = {2, 2, 5}, .max_size = {3, 4, 60}});
  expect_same_bits(random_coarse_dropout{.holes = 3, .size = {2, 2, 5}, .fill = {0, 1}, .keep_holes = true});
}

TEST(intensity_device, parameters_per_channel) {
  expect_same_bits(per_channel(random_gamma{}) | per_channel(gaussian_noise{}, {.probability = .5f}) |
                   per_channel(random_bias_field{}, {.synchronized = true}));
}

}  // namespace
