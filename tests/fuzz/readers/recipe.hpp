// SPDX-License-Identifier: Apache-2.0
// The pipeline whose records are read by a harness.
#pragma once

#include "suture/replay/json.hpp"
#include "suture/suture.hpp"

namespace fuzz {

using namespace suture;

inline constexpr const extent3 starts[] = {{0, 1, 2}, {1, 0, 0}};

inline auto recipe() {
  return window{.center = 40, .width = 400} | random_affine{.rotate_deg = 15, .probability = .5f} |
         random_elastic{.control_spacing_mm = 8, .max_displacement_mm = 1, .probability = .5f} | random_flip{} |
         crop_at{.starts = starts, .size = {3, 4, 5}, .may_leave = true} |
         random_coarse_dropout{.holes = {1, 3}, .size = {1, 1, 1}} | random_gamma{} | gaussian_noise{} |
         random_gaussian_blur{.probability = .5f} | random_patch_contrast{};
}

}  // namespace fuzz
