// SPDX-License-Identifier: Apache-2.0
// The recipe of this example, in one place for the CPU and the GPU.
#pragma once

#include "suture/suture.hpp"

namespace suture::examples {

struct recipe {
  extent3 patch{96, 96, 96};
  point3 spacing_mm{1, 1, 1};
};

// The soft-tissue window every abdominal scan is read in.
inline constexpr float window_center = 40, window_width = 400;

inline auto make_pipeline(const recipe& r) {
  // Labels by vote: resampled from thick slices their borders stay smooth, as nearest would not leave them.
  return window{.center = window_center, .width = window_width} | resample{.spacing_mm = r.spacing_mm} |
         random_affine{.rotate_deg = 15, .scale = {.85f, 1.25f}, .probability = .5f} |
         random_elastic{.control_spacing_mm = 32, .max_displacement_mm = 8, .probability = .3f} |
         pad_to{.size = r.patch} | random_crop{.size = r.patch} | sampling<linear, constant, vote>{} |
         random_gamma{.range = {.7f, 1.5f}} | gaussian_noise{.sigma = .02f} | cast<half>{};
}

}  // namespace suture::examples
