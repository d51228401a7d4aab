// SPDX-License-Identifier: Apache-2.0
// The three channels of a voxel taken together: what colour and stain operations work on.
#pragma once

namespace suture {

template <class T>
struct pixel {
  T c[3];
};

// Red, green, blue, in the units of the image (0 .. 255 for uint8 tiles).
using rgb = pixel<float>;

}  // namespace suture
