// SPDX-License-Identifier: Apache-2.0
// This header has MONAI's tutorial "Brain tumor 3D segmentation" (BraTS): four MRI channels, three overlapping regions.
#pragma once

#include "../ops/geometry/crop.hpp"
#include "../ops/geometry/flip.hpp"
#include "../ops/geometry/orient.hpp"
#include "../ops/geometry/resample.hpp"
#include "../ops/value/brightness.hpp"
#include "../ops/value/patch_z_score.hpp"
#include "../sample/sampling.hpp"

namespace suture {

// Training: RAS, 1 mm, a random patch, flips, each channel normalized over its nonzero voxels in the patch, then a
// scale and a shift for the sample, which also change the zero background. Evaluation: the center patch without flips,
// scale and shift. `patch` is (z, y, x): the tutorial's [224, 224, 144] is along x, y, z. Targets: bind the label map
// with regions, brats_regions_... or decathlon_brain_tumor_regions by the numbering of its labels. Source: MONAI
// tutorials, brats_segmentation_3d.
inline auto monai_brats(const extent3& patch = {144, 224, 224}) {
  return orient{"RAS"} | resample{.spacing_mm = {1, 1, 1}, .map = coordinate_map::origin_preserving} |
         sampling<linear, edge, nearest>{} | random_crop{.size = patch} | random_flip{} | exclude{0} |
         patch_z_score{.nan = 0} | random_brightness_factor{.range = {.9f, 1.1f}} |
         random_brightness{.range = {-.1f, .1f}};
}

}  // namespace suture
