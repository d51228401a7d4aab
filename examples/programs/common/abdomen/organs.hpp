// SPDX-License-Identifier: Apache-2.0
// Everything there is in a slice of a patient.
#pragma once

#include "canvas.hpp"

namespace suture::examples::abdomen {

// Adds to the covers how much of each voxel is colon and how much is lesion.
void paint_slice(canvas& c, const patient& who, std::vector<float>& colon_cover, std::vector<float>& lesion_cover);

}  // namespace suture::examples::abdomen
