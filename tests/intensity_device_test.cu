// SPDX-License-Identifier: Apache-2.0
// Bias fields, counting noise, shifted histograms, dropout and parameters per channel give the same bits on the device
// as on the host.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "support/executors.cuh"

namespace {

using namespace suture;

constexpr std::int64_t channels = 3;

// Values from below 0 to far above 1, and a few that are not finite.
std::vector<float> values_of(const grid& g) {
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
std::vector<float> result(const Operations& operations, const grid& g, const std::vector<float>& x) {
  const std::vector<std::uint64_t> ids{77};
  typename Executor::template buffer<float> in(x), out(std::vector<float>(x.size(), -1.0f));
  const auto in_view = contiguous(static_cast<const float*>(in.data()), g, channels);
  const auto out_view = contiguous(out.data(), g, channels);
  const auto p = plan(operations, std::vector{g}, {.seed = 12, .epoch = 1, .sample_ids = ids});
  Executor::run(p, image(in_view, out_view));
  return out.values();
}

template <class Operations>
void expect_same_bits(const Operations& operations) {
  for (const extent3 n : {extent3{5, 9, 37}, extent3{1, 17, 16}, extent3{2, 1, 127}}) {
    const grid g{.extents = n};
    const std::vector<float> x = values_of(g);
    const auto host = result<support::host_executor>(operations, g, x);
    const auto device = result<support::device_executor>(operations, g, x);
    std::size_t different = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      different += std::memcmp(&host[i], &device[i], sizeof(float)) != 0 ? 1 : 0;
    EXPECT_EQ(different, 0u) << n;
  }
}

TEST(intensity_device, bias_fields) {
  expect_same_bits(random_bias_field{});
  for (const int degree : {1, 4, 5}) expect_same_bits(random_bias_field{.degree = degree});
  expect_same_bits(random_bias_field{.coefficients = {-.5f, .5f}, .basis = bias_basis::monomial});
}

TEST(intensity_device, counting_noise) {
  for (const float counts : {.01f, 8.0f, 20.0f, 5000.0f, 1e12f}) expect_same_bits(poisson_noise{.counts = counts});
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
