// SPDX-License-Identifier: Apache-2.0
// Value operations with finite but extreme parameters on finite but extreme images: refused by plan in a sentence, or
// never NaN, and infinite only where the formula, in double, leaves the range of float.
#include <gtest/gtest.h>
#include <suture/suture.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/aligned_memory.hpp"
#include "support/expect_says.hpp"

namespace {

using namespace suture;

constexpr float most = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::denorm_min();
const std::vector<float> parameters{0,      -0.0f, least, -least, 1e-38f, 1e-20f, 1e-8f,  .5f,
                                    1,      -1,    1000,  1e8f,   1e15f,  1e20f,  -1e20f, 1e30f,
                                    -1e30f, 1e31f, 1e38f, 3e38f,  -3e38f, most,   -most};
const std::vector<float> voxels{0,    -0.0f, least,  -least, 1e-38f, -1e-20f, .25f,  1,     -1,     40,    -1000,
                                1e8f, 1e15f, -1e15f, 1e19f,  -1e20f, 1e30f,   1e31f, 1e38f, -1e38f, 3e38f, -3e38f};

template <class Operation>
std::vector<float> result_of(const Operation& operation, const std::vector<float>& in) {
  const grid g{.extents = {1, 1, static_cast<std::int64_t>(in.size())}};
  const std::uint64_t id = 1;
  const auto p = plan(operation, g, {.seed = 1, .sample_ids = {&id, 1}});
  std::vector<float> out(in.size());
  const auto pair = image(contiguous<const float>(in.data(), g), contiguous(out.data(), g));
  const support::aligned_memory workspace(workspace_bytes(p, pair));
  run(cpu{.threads = 1, .workspace = workspace.span()}, p, pair);
  return out;
}

// How many operations were refused and how many ran.
struct tally {
  int refused = 0, ran = 0;
};

// expected(x), in double, or NaN where nothing is said but that the result is finite.
template <class Operation, class Expected>
void sweep(const Operation& operation, const std::string& what, tally& count, const Expected& expected) {
  std::vector<float> out;
  try {
    out = result_of(operation, voxels);
  } catch (const error& refused) {
    EXPECT_NE(std::string(refused.what()).find(std::string(Operation::name)), std::string::npos) << refused.what();
    ++count.refused;
    return;
  }
  ++count.ran;
  for (std::size_t i = 0; i < voxels.size(); ++i) {
    const double y = expected(static_cast<double>(voxels[i]));
    EXPECT_FALSE(std::isnan(out[i])) << what << " of " << voxels[i];
    if (std::isnan(y) || std::abs(y) < .999999 * static_cast<double>(most)) {
      EXPECT_TRUE(std::isfinite(out[i])) << what << " of " << voxels[i] << ", in double " << y;
    }
  }
}
std::string named(std::initializer_list<float> values) {
  std::string text;
  for (const float v : values) text += std::to_string(v) + " ";
  return text;
}
const auto finite = [](double) { return std::nan(""); };

TEST(extreme_parameters, of_one_number) {
  tally count;
  for (const float p : parameters) {
    const auto a = static_cast<double>(p);
    sweep(brightness{.offset = p}, "brightness " + named({p}), count, [&](double x) { return x + a; });
    sweep(brightness_factor{.factor = p}, "factor " + named({p}), count, [&](double x) { return x * a; });
    sweep(invert{.pivot = p}, "invert " + named({p}), count, [&](double x) { return 2 * a - x; });
    sweep(gaussian_noise{.sigma = p}, "gaussian_noise " + named({p}), count,
          [&](double x) { return std::abs(x) + 7 * a; });
    sweep(rician_noise{.sigma = p}, "rician_noise " + named({p}), count,
          [&](double x) { return std::abs(x) + 10 * a; });
    sweep(poisson_noise{.counts = p}, "poisson_noise " + named({p}), count,
          [&](double x) { return 2 * std::abs(x) + 100 / a; });
    sweep(patch_z_score{}, "patch_z_score", count, [](double) { return 1e300; });
  }
  EXPECT_GT(count.refused, 20);
  EXPECT_GT(count.ran, 100);
}

TEST(extreme_parameters, of_two_numbers) {
  tally count;
  for (const float p : parameters)
    for (const float q : parameters) {
      const auto a = static_cast<double>(p), b = static_cast<double>(q);
      const std::string both = named({p, q});
      sweep(contrast{.factor = p, .pivot = q}, "contrast " + both, count, [&](double x) { return (x - b) * a + b; });
      sweep(rescale{.slope = p, .intercept = q}, "rescale " + both, count, [&](double x) { return x * a + b; });
      sweep(window{.center = p, .width = q}, "window " + both, count, finite);
      sweep(window{.center = 0, .width = 1000, .low = p, .high = q}, "window to " + both, count, finite);
      sweep(sigmoid_window{.center = p, .width = q}, "sigmoid_window " + both, count, finite);
      sweep(sigmoid_window{.center = 0, .width = 1000, .low = p, .high = q}, "sigmoid_window to " + both, count,
            finite);
      sweep(clamp{.low = p, .high = q}, "clamp " + both, count, finite);
      sweep(scale_intensity{.a_min = p, .a_max = q}, "scale_intensity " + both, count,
            [&](double x) { return (x - a) / (b - a); });
      sweep(scale_intensity{.a_min = 0, .a_max = 255, .b_min = p, .b_max = q}, "scale_intensity to " + both, count,
            [&](double x) { return x / 255 * (b - a) + a; });
      sweep(scale_intensity{.a_min = p, .a_max = q, .clip = true}, "clipped " + both, count, finite);
      sweep(scale_intensity{.a_min = 0, .a_max = 1, .b_min = p, .b_max = q, .clip = true}, "clipped to " + both, count,
            finite);
      sweep(ct_normalize{.lower = p, .upper = q, .mean = 1, .standard_deviation = 1e-9f}, "ct_normalize " + both, count,
            finite);
      sweep(ct_normalize{.lower = -100, .upper = 200, .mean = p, .standard_deviation = q}, "ct_normalize by " + both,
            count, finite);
      sweep(gaussian_noise{.sigma = 1, .mean = p}, "gaussian_noise about " + both, count,
            [&](double x) { return std::abs(x + a) + 7; });
      sweep(rician_noise{.sigma = q, .mean = p}, "rician_noise about " + both, count,
            [&](double x) { return std::hypot(std::abs(x) + std::abs(a) + 7 * b, std::abs(a) + 7 * b); });
      sweep(suture::gamma{.exponent = 1.5f, .range = {p, q}}, "gamma " + both, count, [&](double x) {
        const double n = (x - a) / (b - a), curve = std::pow(std::abs(n), 1.5);
        // A power beyond float is infinite, far outside the range.
        return curve > .999 * static_cast<double>(most) ? 1e300 : 1.001 * std::copysign(curve, n) * (b - a) + a;
      });
    }
  EXPECT_GT(count.refused, 1000);
  EXPECT_GT(count.ran, 1000);
}

// What was refused, and what for.
TEST(extreme_parameters, are_refused_in_a_sentence) {
  const std::vector<float> x{0, 1};
  EXPECT_SAYS(result_of(sigmoid_window{.center = 0, .width = 1, .low = -3e38f, .high = 3e38f}, x),
              "sigmoid_window: sample 0 (id 1): low -3e+38 and high 3e+38 are too far apart");
  EXPECT_SAYS(result_of(scale_intensity{.a_min = -3e38f, .a_max = 3e38f}, x),
              "scale_intensity: sample 0 (id 1): a_min -3e+38 must be finite, and at most 1e30 in magnitude");
  EXPECT_SAYS(result_of(rician_noise{.sigma = 1e31f}, x), "rician_noise: sample 0 (id 1): sigma");
  EXPECT_SAYS(result_of(ct_normalize{.lower = 0, .upper = 3e38f, .mean = 0, .standard_deviation = .5f}, x),
              "ct_normalize: sample 0 (id 1): lower 0 and upper 3e+38 are too many deviations of 0.5 from mean 0");
}

TEST(patch_z_score, of_the_smallest_numbers_is_finite) {
  for (const float v : {1e-45f, 3e-42f, 1e-39f}) {
    const std::vector<float> out = result_of(identity{} | patch_z_score{}, {v, -v, v, 0, 0, 0});
    for (const float y : out) EXPECT_TRUE(std::isfinite(y)) << v;
    EXPECT_GT(out[0], out[3]);
    EXPECT_GT(out[3], out[1]);
  }
  // Where the deviation is a normal number, it is divided by.
  const std::vector<float> out = result_of(identity{} | patch_z_score{}, {2e-38f, -2e-38f});
  EXPECT_NEAR(out[0], 1, 1e-6);
  EXPECT_NEAR(out[1], -1, 1e-6);
}

// The magnitude of numbers whose squares leave the range of float, beside ordinary ones in a row.
TEST(rician_noise, of_large_values_is_their_magnitude) {
  std::vector<float> in(70);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = i % 3 == 0 ? 1e25f : i % 3 == 1 ? -3e38f : 100;
  const std::vector<float> out = result_of(rician_noise{.sigma = 1e-3f}, in);
  for (std::size_t i = 0; i < in.size(); ++i) EXPECT_NEAR(out[i] / std::abs(in[i]), 1, 1e-4) << i;
}

// An infinite border would become NaN where weights have both signs.
TEST(borders, that_are_not_finite_are_refused_by_cubics) {
  const grid g{.extents = {4, 5, 6}};
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float border : {infinity, -infinity, std::nanf("")}) {
    const auto refused = [&]<class I>(I) {
      EXPECT_SAYS(plan(resample{.spacing_mm = {1, .7, 1}} | sampling<I, constant>{.border = {border}}, g),
                  "sampling: border value " +
                      std::string(std::isnan(border) ? "nan"
                                  : border > 0       ? "inf"
                                                     : "-inf") +
                      " must be finite");
    };
    refused(cubic_bspline{});
    refused(catmull_rom{});
    refused(torch_cubic{});
    EXPECT_NO_THROW(plan(resample{.spacing_mm = {1, .7, 1}} | sampling<linear, constant>{.border = {border}}, g));
    EXPECT_NO_THROW(plan(flip{} | sampling<nearest, constant>{.border = {border}}, g));
  }
}

}  // namespace
