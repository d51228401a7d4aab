// SPDX-License-Identifier: Apache-2.0
// Operations on patch statistics, fields, color and neighborhoods with finite but extreme parameters on finite but
// extreme images: refused by plan in a sentence, or never NaN, and finite where the image and the parameters are of a
// size that is in use. Where an operation takes differences of voxels these stay within the range of float, where it
// takes sums of lines, those do.
#include <gtest/gtest.h>
#include <suture/suture.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace suture;

constexpr float most = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::denorm_min();
const std::vector<float> parameters{0,  -0.0f, least, 1e-20f, 1e-8f, .5f,    1,    -1,
                                    40, 1000,  1e8f,  1e20f,  1e30f, -1e31f, most, -most};
const extent3 extents{2, 3, 7};
constexpr float half_the_range = 1.5e38f, of_a_line = 1e36f;

// Images of voxels up to `largest` in magnitude.
std::vector<std::vector<float>> images(float largest) {
  std::vector<std::vector<float>> result;
  for (const std::vector<float>& values : {std::vector<float>{0, 1, .25f, 3, 255, 40, -100},
                                           {1e-20f, -1e-20f, 3e-20f},
                                           {least, -least, 0},
                                           {5},
                                           {0},
                                           {1e30f, -1e30f, 3},
                                           {1e36f, -1e36f},
                                           {1.5e38f, -1.5e38f, 0},
                                           {most, -most, 0, 1e38f}}) {
    if (std::any_of(values.begin(), values.end(), [&](float v) { return std::abs(v) > largest; })) continue;
    result.emplace_back();
    for (std::size_t i = 0; i < 3 * 2 * 3 * 7; ++i) result.back().push_back(values[mix64(i) % values.size()]);
  }
  return result;
}
bool is_ordinary(float v) { return std::abs(v) <= 255; }

struct tally {
  int refused = 0, ran = 0;
};

template <class Pipeline>
void run_on(const Pipeline& pipeline, const std::string& what, const std::vector<float>& in, tally& count,
            bool ordinary) {
  const grid g{.extents = extents};
  std::vector<float> out(in.size());
  try {
    const std::uint64_t id = 1;
    const auto p = plan(pipeline, g, {.seed = 1, .sample_ids = {&id, 1}});
    run(cpu{.threads = 1}, p,
        image(contiguous<const float>(in.data(), g, 3), contiguous(out.data(), p.output_grid(0), 3)));
  } catch (const error& refused) {
    EXPECT_NE(std::string(refused.what()).find("sample 0"), std::string::npos) << what << ": " << refused.what();
    ++count.refused;
    return;
  }
  ++count.ran;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (std::isnan(out[i]) || (ordinary && !std::isfinite(out[i]))) {
      ADD_FAILURE() << what << ": " << out[i] << " of " << in[i];
      return;
    }
  }
}

template <class Operation>
void sweep(const Operation& operation, const std::string& what, tally& count, bool ordinary_parameters,
           float largest = most) {
  for (const std::vector<float>& in : images(largest)) {
    bool ordinary = ordinary_parameters;
    for (const float v : in) ordinary = ordinary && is_ordinary(v);
    run_on(identity{} | operation, std::string(Operation::name) + " " + what, in, count, ordinary);
  }
}

// make(p, q) is an operation with these parameters.
template <class Make>
void sweep_two(const Make& make, tally& count, float largest = most) {
  for (const float p : parameters)
    for (const float q : parameters)
      sweep(make(p, q), std::to_string(p) + " " + std::to_string(q), count, is_ordinary(p) && is_ordinary(q), largest);
}

TEST(extreme_parameters, of_patch_statistics) {
  tally count;
  sweep_two([](float p, float q) { return random_patch_gamma{.range = {p, q}}; }, count, half_the_range);
  sweep_two(
      [](float p, float q) {
        return random_patch_gamma{.range = {p, q}, .invert = true};
      },
      count, half_the_range);
  sweep_two(
      [](float p, float q) {
        return random_patch_gamma{.range = {p, q}, .retain_statistics = false};
      },
      count, half_the_range);
  sweep_two([](float p, float q) { return random_patch_contrast{.range = {p, q}}; }, count, half_the_range);
  sweep_two(
      [](float p, float q) {
        return random_patch_contrast{.range = {p, q}, .preserve_range = false};
      },
      count, half_the_range);
  EXPECT_GT(count.refused, 500);
  EXPECT_GT(count.ran, 500);
}

TEST(extreme_parameters, of_fields_and_curves) {
  tally count;
  sweep_two([](float p, float q) { return random_histogram_shift{.value_range = {p, q}}; }, count);
  sweep_two([](float p, float q) { return random_bias_field{.coefficients = {p, q}}; }, count);
  sweep_two(
      [](float p, float q) {
        return random_bias_field{.coefficients = {p, q}, .degree = 5, .basis = bias_basis::monomial};
      },
      count);
  sweep_two(
      [](float p, float q) {
        return random_coarse_dropout{.holes = 2, .size = {1, 3, 3}, .fill = {p, q}};
      },
      count);
  sweep_two([](float p, float q) { return random_contrast{.range = {p, q}}; }, count);
  EXPECT_GT(count.refused, 500);
  EXPECT_GT(count.ran, 500);
}

TEST(extreme_parameters, of_filters) {
  tally count;
  sweep_two([](float p, float q) { return gaussian_blur{.sigma = {p, q, 1}}; }, count, half_the_range);
  sweep_two([](float p, float q) { return gaussian_blur{.sigma = {p, q, 1}, .kernel = blur_kernel::monai}; }, count);
  sweep_two([](float p, float q) { return random_gaussian_blur{.sigma = {p, q}}; }, count, half_the_range);
  sweep_two([](float p, float q) { return sharpen{.sigma = p, .amount = q}; }, count, half_the_range);
  sweep_two([](float p, float q) { return random_sharpen{.amount = {p, q}}; }, count, half_the_range);
  sweep_two([](float p, float q) { return random_low_resolution{.zoom = {p, q}}; }, count, half_the_range);
  sweep_two([](float p, float q) { return random_gibbs_ringing{.alpha = {p, q}}; }, count, of_a_line);
  sweep_two([](float p, float q) { return random_kspace_spike{.intensity = {p, q}}; }, count, of_a_line);
  sweep_two(
      [](float p, float q) {
        return random_kspace_spike{.intensity = {p, q}, .relative = false};
      },
      count, of_a_line);
  sweep(median_filter{}, "", count, true);
  EXPECT_GT(count.refused, 500);
  EXPECT_GT(count.ran, 500);
}

TEST(extreme_parameters, of_color) {
  tally count;
  sweep_two([](float p, float q) { return random_color_jitter{.brightness = {p, q}}; }, count);
  sweep_two([](float p, float q) { return random_color_jitter{.contrast = {p, q}}; }, count);
  sweep_two([](float p, float q) { return random_color_jitter{.saturation = {p, q}}; }, count);
  sweep_two([](float p, float q) { return random_color_jitter{.pivot = p, .white = q}; }, count);
  sweep_two([](float p, float q) { return hsv_jitter{.hue = p, .saturation = q}; }, count);
  sweep_two([](float p, float q) { return hsv_jitter{.value = p, .white = q}; }, count);
  sweep_two([](float p, float q) { return random_hed_jitter{.alpha = {p, q}}; }, count);
  sweep_two([](float p, float q) { return random_hed_jitter{.beta = {p, q}}; }, count);
  sweep_two([](float p, float q) { return random_hed_jitter{.beta = p, .white = q}; }, count);
  sweep_two([](float p, float q) { return random_stain_jitter{.alpha = {p, q}}; }, count);
  sweep_two([](float p, float q) { return random_stain_jitter{.beta = {p, q}}; }, count);
  sweep_two([](float p, float q) { return random_stain_jitter{.tissue_density = p, .white = q}; }, count);
  sweep_two([](float p, float q) { return channel_normalize{.of = {{p, 0, 1}, {q, 1, .5f}}}; }, count);
  sweep_two([](float p, float q) { return channel_normalize{.of = {{.5f, 0, 1}, {p, 1, .5f}}, .white = q}; }, count);
  sweep(random_grayscale{}, "", count, true);
  EXPECT_GT(count.refused, 500);
  EXPECT_GT(count.ran, 500);
}

}  // namespace
