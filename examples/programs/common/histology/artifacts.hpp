// SPDX-License-Identifier: Apache-2.0
// What goes wrong with a slide: a fold, an area out of focus, a stroke of a pen.
#pragma once

#include <array>

#include "canvas.hpp"

namespace suture::examples::histology {

struct artifacts {
  point blur_center, fold_center, fold_across;
  float blur_radius, fold_half_length;
  std::array<point, 16> pen;

  // On a slide of so many micrometers.
  static artifacts of(std::uint64_t seed, float height, float width);

  // Tissue lying double along a crooked band.
  void fold(canvas& c, std::uint64_t seed) const;
  // Where the objective was not in focus; reads `margin` pixels beyond what it changes.
  void defocus(canvas& c, std::int64_t margin) const;
  // A marker's stroke, as how much ink lies on a place.
  float ink(point p) const;
};

}  // namespace suture::examples::histology
