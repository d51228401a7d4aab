// SPDX-License-Identifier: Apache-2.0
// As recipes.hpp, with operations on color. Every operation of ops/stain stands in at least one of them.
#pragma once

#include "samples.hpp"
#include "support/channel_mix.hpp"

namespace digest_test {

// Calls f(name, pipeline) for every pipeline.
template <class F>
void for_each_color_recipe(const F& f) {
  using support::channel_mix;
  const extent3 patch{1, 32, 40};

  f("color_taps", channel_mix{.amount = .25f} | random_affine{.scale = {.8f, 1.25f}, .probability = .8f} |
                      random_elastic{.control_spacing_mm = 16, .max_displacement_mm = 4} | sampling<linear, reflect>{} |
                      crop_or_pad{patch} | cast<suture::half>{});
  f("color_outputs", random_rot90{} | random_flip{} | sampling<linear, constant>{.border = {.value = 245}} |
                         crop_or_pad{{2, 30, 45}} | channel_mix{.amount = .1f} | gaussian_noise{.sigma = 4} |
                         random_gamma{.value_range = {0, 255}} | channel_mix{.amount = -.3f} | cast<std::uint8_t>{});
  f("color_pointwise",
    gaussian_noise{.sigma = 3} | channel_mix{.amount = .5f} | rescale{.slope = 1 / 255.f} | cast<bfloat16>{});
  f("color_bspline", channel_mix{.amount = .3f} | affine_matrix{.linear = {{{1, 0, 0}, {0, .9, .2}, {0, -.2, .9}}}} |
                         sampling<cubic_bspline, edge>{});
  f("color_cubic", gaussian_noise{.sigma = 2} | channel_mix{.amount = .3f} | resample{.spacing_mm = {20, .7, 1.3}} |
                       sampling<catmull_rom, mirror>{} | channel_mix{.amount = .2f});
  f("color_default_value", affine_matrix{.linear = {{{1, 0, 0}, {0, .9, .2}, {0, -.2, .9}}}} |
                               sampling<linear, default_value>{.border = {.value = 240}} | cast<std::uint8_t>{});
  f("hed_jitter", random_hed_jitter{.probability = .8f} | random_affine{.rotate_deg = {0, 0, 20}} |
                      sampling<linear, reflect>{} | random_hed_jitter{.units = hed_units::tellez_plus2} |
                      cast<std::uint8_t>{});
  f("stain_jitter",
    random_stain_jitter{} | random_flip{} | random_stain_jitter{.keep_rest = false, .tissue_density = 0});
  f("hsv_jitter", random_hsv_jitter{.hue = {-1, 1}, .saturation = {-1, 1}, .value = {-.5f, .5f}} |
                      random_grayscale{.probability = .5f} | channel_normalize{} | cast<suture::half>{});
  f("color_jitter", random_color_jitter{.brightness = {.5f, 1.5f}, .hue = {-.5f, .5f}, .random_order = true} |
                        crop_or_pad{patch} | sampling<linear, constant>{.border = {.value = 240}} |
                        random_color_jitter{.probability = .7f} | rescale{.slope = 1 / 255.f} |
                        random_color_jitter{.pivot = .5f, .white = 1});
  f("copied_tiles", random_rot90{} | random_flip{} | pad_to{.size = {3, 70, 75}} | random_crop{.size = {2, 66, 70}} |
                        sampling<linear, constant, vote>{.border = {.value = 240}} | cast<std::uint8_t>{});
  f("copied_tiles_with_colors", random_color_jitter{} | gaussian_noise{.sigma = 3} | random_rot90{} |
                                    crop_or_pad{patch} | sampling<catmull_rom, mirror>{} | random_stain_jitter{} |
                                    cast<suture::half>{});
  f("gray", grayscale{.rule = gray_rule::pillow} | random_rot90{} | grayscale{.rule = gray_rule::itu709} | grayscale{});
}

}  // namespace digest_test
