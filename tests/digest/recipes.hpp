// SPDX-License-Identifier: Apache-2.0
// The pipelines whose digests must agree between compilers, flags, threads, batch splits and devices. Every operation
// of the library stands in at least one of them.
#pragma once

#include "samples.hpp"

namespace digest_test {

// Geometry that all images of a sample share, and values that each draws for itself.
inline auto noisy_recipe() {
  return random_affine{.rotate_deg = 15} | random_crop{.size = {9, 20, 22}} | gaussian_noise{.sigma = {0, 40}} |
         random_gaussian_blur{.channel_probability = .5f} | cast<suture::half>{};
}

// Calls f(name, pipeline, output element as a value) for every pipeline.
template <class F>
void for_each_recipe(const F& f) {
  const window w{.center = 40, .width = 400};
  const extent3 patch{19, 24, 26};

  f("ct", w | resample{.spacing_mm = {1.5, 1, 1}} | random_affine{.rotate_deg = 15, .scale = {.85f, 1.25f}} |
              random_elastic{.control_spacing_mm = 14, .max_displacement_mm = 4} | pad_to{patch} |
              random_crop{.size = patch} | random_gamma{.range = {.7f, 1.5f}} | gaussian_noise{.sigma = .02f} |
              cast<suture::half>{});
  f("ct_reflect_vote", w | resample{.spacing_mm = {1.2, 1, 1}, .map = coordinate_map::origin_preserving} |
                           random_affine{.rotate_deg = 40, .shear = .1f, .translate = 3} |
                           random_elastic{.control_spacing_mm = 12, .max_displacement_mm = 3, .probability = .7f} |
                           sampling<linear, reflect, vote>{} | crop_or_pad{patch} | random_flip{} |
                           random_contrast{.pivot = .5f} | random_brightness{} | clamp{} | cast<bfloat16>{});
  f("elastic_then_affine", rescale{.slope = .5f, .intercept = -10} |
                               random_elastic{.control_spacing_mm = 15, .max_displacement_mm = 3} |
                               random_affine{.rotate_deg = 30, .convention = affine_convention::monai} |
                               sampling<linear, mirror>{} | rician_noise{.sigma = 3} | cast<std::int16_t>{});
  f("bspline_mirror", random_affine{.rotate_deg = 10, .convention = affine_convention::nnunet} |
                          sampling<cubic_bspline, mirror>{} | center_crop{{15, 16, 17}});
  f("bspline_constant", w | resize{{13, 30, 41}} | random_rot90{} |
                            sampling<cubic_bspline, constant>{.border = {.value = -1}, .label_outside = 9} |
                            crop_or_pad{patch} | invert{.pivot = .5f} | cast<std::uint8_t>{});
  f("bspline_edge",
    resample{.spacing_mm = {1.3, 1.1, .7}, .map = coordinate_map::center_preserving} | sampling<cubic_bspline, edge>{});
  f("bspline_wrap",
    resample{.spacing_mm = {2, 1, 2}, .map = coordinate_map::align_corners} | sampling<cubic_bspline, wrap>{});
  f("bspline_reflect",
    affine{.rotate_deg = {3, 4, 5}, .scale = {1.1, 1.1, 1.1}} | sampling<cubic_bspline, reflect, majority>{});
  f("default_value", w | affine{.rotate_deg = {8, 12, 20}} |
                         sampling<linear, default_value, vote>{.border = {.value = -.5f}, .label_outside = 7} |
                         crop_or_pad{patch} | cast<suture::half>{});
  f("default_value_at_centers",
    resample{.spacing_mm = {1.3, 1.1, .7}} | crop_or_pad{{40, 45, 50}} |
        sampling<linear, default_value, nearest>{.border = {.value = 9, .rim = image_rim::centers}});
  f("bspline_default_value",
    random_elastic{.control_spacing_mm = 14, .max_displacement_mm = 4} | affine{.rotate_deg = {0, 0, 15}} |
        sampling<cubic_bspline, default_value>{.border = {.value = -1000, .rim = image_rim::centers}});
  f("catmull_rom", sigmoid_window{.center = 40, .width = 400} | orient{"RAS"} |
                       affine{.rotate_deg = {10, 20, 30}, .convention = affine_convention::torchio} |
                       sampling<catmull_rom, edge>{} | cast<suture::half>{});
  f("torch_cubic", affine_matrix{.linear = {{{.9, .1, 0}, {-.1, .95, .05}, {0, 0, 1.1}}}} |
                       sampling<torch_cubic, wrap, nearest_half_even>{} | random_brightness_factor{});
  f("relabel", permute{{2, 0, 1}} | flip{{true, false, true}} | rot90{} | pad{{1, 2, 3}, {3, 2, 1}} |
                   crop{{1, 1, 1}, {18, 15, 12}} | sampling<nearest, reflect, nearest>{} | cast<std::int8_t>{});
  const std::vector<extent3> starts(3, extent3{-2, 3, 30});
  f("crop_at", crop_at{.starts = starts, .size = {12, 9, 25}, .may_leave = true} | sampling<linear, reflect>{} |
                   cast<suture::half>{});
  f("pointwise", scale_intensity{.a_min = -200, .a_max = 300, .b_min = -1, .b_max = 1, .clip = true} |
                     random_gamma{.range = {.5f, 2}, .value_range = {-1, 1}, .law = interval_law::mixture} |
                     gaussian_noise{.sigma = {0, .1f}} | brightness{.offset = .25f} | brightness_factor{.factor = 3} |
                     contrast{.factor = 1.5f, .pivot = 1} | cast<std::uint16_t>{});
  f("ct_normalize", ct_normalize{.lower = -200, .upper = 310.5f, .mean = 40.25f, .standard_deviation = 91.7f} |
                        resample{.spacing_mm = {1, 1, 2}} | cast<suture::half>{});
  f("noise_before_geometry", gaussian_noise{.sigma = 10} | identity{} |
                                 affine{.rotate_deg = {0, 0, 20}, .convention = affine_convention::itk} |
                                 suture::gamma{.exponent = 1.3f, .range = {-300, 300}} | cast<std::int32_t>{});
  f("artifacts",
    w | random_bias_field{} | poisson_noise{.counts = {5, 50}} | random_histogram_shift{.control_points = {5, 15}} |
        random_coarse_dropout{.holes = {3, 9}, .size = {3, 3, 3}, .max_size = {9, 20, 20}, .fill = {0, 1}} |
        cast<suture::half>{});
  f("artifacts_on_taps",
    w | random_coarse_dropout{.holes = 4, .size = {0, 9, 11}, .keep_holes = true, .may_leave = true} |
        random_bias_field{.coefficients = {-.1f, .1f}, .degree = 5} | affine{.rotate_deg = {5, 0, 20}} |
        crop_or_pad{{1, 24, 70}} | random_bias_field{.coefficients = {-.3f, .3f}} |
        random_bias_field{.coefficients = {-.5f, .5f}, .basis = bias_basis::monomial});
  f("per_channel", w | per_channel(random_gamma{.law = interval_law::mixture}) |
                       per_channel(random_contrast{.pivot = .5f}, {.probability = .5f}) |
                       per_channel(random_brightness_factor{}, {.probability = .5f, .synchronized = true}) |
                       per_channel(gaussian_noise{.sigma = {0, .1f}}) | cast<bfloat16>{});
}

}  // namespace digest_test
