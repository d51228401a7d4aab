// SPDX-License-Identifier: Apache-2.0
// A synthetic abdominal CT with labels, so that everything can be tried without patient data: portal-venous phase,
// contrast-filled colon with lesions of its wall. Made from a seed; the same seed and grid give the same voxels.
#pragma once

#include <cstdint>

#include "volume.hpp"

namespace suture::examples {

struct phantom_options {
  std::uint64_t seed = 1;
  extent3 extents{120, 440, 440};
  point3 spacing{2.5, 0.8, 0.8};  // millimeters; the patient is about 340 mm wide and 230 mm deep
  double noise = 12;              // standard deviation in soft tissue, HU
};

// Labels of the phantom.
inline constexpr std::uint8_t label_colon = 1;
inline constexpr std::uint8_t label_lesion = 2;

struct phantom {
  volume<std::int16_t> image;  // Hounsfield units
  label_volume labels;
};

// Patient supine, head first: x to the left, y to the back, z to the head; the origin of space is in the middle of the
// body at the level of L3. Throws suture::error for a grid without voxels or a noise that is not positive or zero.
phantom make_phantom(const phantom_options& options);

}  // namespace suture::examples
