// SPDX-License-Identifier: Apache-2.0
// As recipes.hpp, with operations that need more than one voxel of the patch.
#pragma once

#include "samples.hpp"

namespace digest_test {

// Calls f(name, pipeline) for every pipeline.
template <class F>
void for_each_staged_recipe(const F& f) {
  const extent3 patch{19, 24, 37};

  f("nnunet", random_affine{.rotate_deg = 15} | crop_or_pad{patch} | gaussian_noise{.sigma = 5} |
                  random_gaussian_blur{.kernel = blur_kernel::nnunet, .channel_probability = .5f, .probability = .8f} |
                  random_brightness_factor{} | random_patch_contrast{.law = interval_law::mixture, .probability = .8f} |
                  random_low_resolution{.channel_probability = .5f, .probability = .8f} |
                  random_patch_gamma{.law = interval_law::mixture, .invert = true, .probability = .7f} |
                  random_patch_gamma{.law = interval_law::mixture, .probability = .7f} | cast<suture::half>{});
  f("blur_scipy", window{.center = 40, .width = 400} | crop_or_pad{{9, 20, 41}} | gaussian_blur{.sigma = {.6, 1.7, 3}});
  f("blur_monai", crop_or_pad{{17, 40, 33}} | gaussian_blur{.sigma = {0, .8, 1.2}, .kernel = blur_kernel::monai} |
                      gaussian_noise{.sigma = 3} | cast<std::int16_t>{});
  f("two_blurs", flip{{true, false, false}} | crop_or_pad{{6, 9, 34}} | gaussian_blur{.sigma = .7} |
                     brightness{.offset = 3} | random_gaussian_blur{.sigma = {.4f, 3.7f}, .each = sigma_of::sample});
  f("low_resolution",
    random_low_resolution{.zoom = {.3f, 1}, .pick = coarse_pick::nearest_lower, .axes = {false, true, true}} |
        random_patch_gamma{.retain_statistics = false, .one_exponent = true} | gaussian_noise{.sigma = 2} |
        random_patch_contrast{.preserve_range = false, .one_factor = true} | cast<bfloat16>{});
  f("median_and_sharpen", flip{{false, true, false}} | brightness{.offset = 3} | median_filter{} |
                              contrast{.factor = 2} | sharpen{.sigma = {.5, 1, 2}, .amount = 1.5f} |
                              random_median_filter{.channel_probability = .5f} | gaussian_noise{.sigma = 2} |
                              random_sharpen{.kernel = blur_kernel::monai, .channel_probability = .7f} |
                              cast<suture::half>{});
  f("drawn_per_channel",
    gaussian_blur{.sigma = .8} | per_channel(random_brightness_factor{.probability = .7f}, {.probability = .5f}) |
        random_bias_field{} | random_histogram_shift{.value_range = {-300, 500}} |
        random_coarse_dropout{.holes = 5, .size = {3, 3, 3}, .max_size = {9, 20, 20}, .fill = {0, 99}} |
        random_patch_contrast{} | per_channel(random_bias_field{.degree = 1}) |
        per_channel(gaussian_noise{.sigma = 9}) | cast<std::int16_t>{});
  f("coarse_shuffle", crop_or_pad{patch} | brightness{.offset = 3} |
                          random_coarse_shuffle{.holes = {2, 6}, .size = {3, 5, 4}, .max_size = {9, 20, 20}} |
                          random_patch_contrast{} | cast<std::int16_t>{});
  // In a volume and in a plane; lengths of factors 2 to 5, of a prime, and of both.
  const auto kspace = [&](const extent3& size) {
    return crop_or_pad{size} | gaussian_noise{.sigma = 5} |
           random_gibbs_ringing{
               .alpha = {.2f, .8f}, .one_alpha = false, .channel_probability = .6f, .probability = .8f} |
           brightness{.offset = 3} | random_kspace_spike{.probability = .7f} | cast<float>{};
  };
  f("kspace", kspace({15, 16, 34}));
  f("kspace_plane", kspace({1, 127, 17}));
  f("statistics_first",
    random_patch_gamma{} | clamp{-300, 600} | random_patch_contrast{} | random_patch_gamma{.invert = true});
}

}  // namespace digest_test
