// SPDX-License-Identifier: Apache-2.0
// As recipes.hpp, with operations on colour. Every operation of ops/stain stands in at least one of them.
#pragma once

#include "samples.hpp"
#include "support/channel_mix.hpp"

namespace digest_test {

// Calls f(name, pipeline) for every pipeline.
template <class F>
void for_each_colour_recipe(const F& f) {
  using support::channel_mix;
  const extent3 patch{1, 32, 40};

  f("colour_taps", channel_mix{.amount = .25f} | random_affine{.scale = {.8f, 1.25f}, .probability = .8f} |
                       random_elastic{.control_spacing_mm = 16, .max_displacement_mm = 4} |
                       sampling<linear, reflect>{} | crop_or_pad{patch} | cast<suture::half>{});
  f("colour_outputs", random_rot90{} | random_flip{} | sampling<linear, constant>{.border = {.value = 245}} |
                          crop_or_pad{{2, 30, 45}} | channel_mix{.amount = .1f} | gaussian_noise{.sigma = 4} |
                          random_gamma{.value_range = {0, 255}} | channel_mix{.amount = -.3f} | cast<std::uint8_t>{});
  f("colour_pointwise",
    gaussian_noise{.sigma = 3} | channel_mix{.amount = .5f} | rescale{.slope = 1 / 255.f} | cast<bfloat16>{});
  f("colour_bspline", channel_mix{.amount = .3f} | affine_matrix{.linear = {{{1, 0, 0}, {0, .9, .2}, {0, -.2, .9}}}} |
                          sampling<cubic_bspline, edge>{});
  f("colour_cubic", gaussian_noise{.sigma = 2} | channel_mix{.amount = .3f} | resample{.spacing_mm = {20, .7, 1.3}} |
                        sampling<catmull_rom, mirror>{} | channel_mix{.amount = .2f});
}

}  // namespace digest_test
