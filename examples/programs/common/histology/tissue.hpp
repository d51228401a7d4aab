// SPDX-License-Identifier: Apache-2.0
// Stroma, fat, cells, vessels and glands, as they lie on glass: sharp, flat and before any light.
#pragma once

#include "canvas.hpp"

namespace suture::examples::histology {

// height, width: micrometers of the slide.
void paint_tissue(canvas& c, std::uint64_t seed, float height, float width);

}  // namespace suture::examples::histology
