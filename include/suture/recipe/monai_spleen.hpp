// SPDX-License-Identifier: Apache-2.0
// This header has MONAI's tutorial "Spleen 3D segmentation": CT, one organ.
#pragma once

#include <span>

#include "../mask/bounding_box.hpp"
#include "../ops/geometry/crop_at.hpp"
#include "../ops/geometry/orient.hpp"
#include "../ops/geometry/resample.hpp"
#include "../ops/value/scale_intensity.hpp"
#include "../sample/sampling.hpp"

namespace suture {

// Preprocessing, once per volume: -57 .. 164 HU to 0 .. 1, cut to the box of the voxels above 0 (`foreground`, of
// crop_foreground: bounding_box with threshold -57 on the volume), RAS, 1.5 x 1.5 x 2 mm.
inline auto monai_spleen_preprocess(const box_crop& foreground) {
  return scale_intensity{.a_min = -57, .a_max = 164, .clip = true} | foreground | orient{"RAS"} |
         resample{.spacing_mm = {2, 1.5, 1.5}, .map = coordinate_map::origin_preserving} |
         sampling<linear, edge, nearest>{};
}

// Training: patches of 96^3, half around spleen, half around background. starts are those of select_patches for
// pos_neg_patch{.size = {96, 96, 96}} and foreground_background(labels, images, 0), four draws for each volume and
// epoch. Source: MONAI tutorials, spleen_segmentation_3d.
inline auto monai_spleen_training(std::span<const extent3> starts) {
  return crop_at{.starts = starts, .size = {96, 96, 96}};
}

}  // namespace suture
