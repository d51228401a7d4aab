// SPDX-License-Identifier: Apache-2.0
// This header has MONAI's tutorial "DynUNet pipeline" for task 10 of the Medical Segmentation Decathlon, colon cancer
// in CT.
#pragma once

#include <span>

#include "../mask/bounding_box.hpp"
#include "../ops/filter/gaussian_blur.hpp"
#include "../ops/geometry/crop_at.hpp"
#include "../ops/geometry/flip.hpp"
#include "../ops/geometry/random_scale.hpp"
#include "../ops/geometry/resample.hpp"
#include "../ops/value/brightness.hpp"
#include "../ops/value/ct_normalize.hpp"
#include "../ops/value/gaussian_noise.hpp"
#include "../sample/sampling.hpp"

namespace suture {

// Preprocessing, once per volume: cut to `foreground`, resampled to 3 x 0.78 x 0.78 mm, and only then clipped and
// normalized. Where a volume is 3 times as thick as fine the tutorial takes the nearest slice; here all axes are cubic.
inline auto monai_colon_preprocess(const box_crop& foreground) {
  return foreground | resample{.spacing_mm = {3, .78, .78}} | sampling<cubic_bspline, edge, nearest>{} |
         ct_normalize{.lower = -30, .upper = 165.82f, .mean = 62.18f, .standard_deviation = 32.65f};
}

// Training: patches of 192 x 160 x 56 (x, y, z), half of them around tumor or colon, half around background; starts are
// those of select_patches for pos_neg_patch. Where a zoom below 1 reaches beyond the patch, the volume is read; MONAI
// repeats the rim. Source: MONAI tutorials, modules/dynunet_pipeline.
inline auto monai_colon_training(std::span<const extent3> starts) {
  return crop_at{.starts = starts, .size = {56, 160, 192}, .may_leave = true} |
         random_scale{.range = {.9f, 1.2f}, .probability = .15f} | random_flip{} | sampling<linear, edge, nearest>{} |
         gaussian_noise{.sigma = {0, .01f}, .probability = .15f} |
         random_gaussian_blur{.sigma = {.5f, 1.15f}, .kernel = blur_kernel::monai, .probability = .15f} |
         random_brightness_factor{.range = {.7f, 1.3f}, .probability = .15f};
}

}  // namespace suture
