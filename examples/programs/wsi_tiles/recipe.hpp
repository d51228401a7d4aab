// SPDX-License-Identifier: Apache-2.0
// The recipe of this example, in one place for the CPU and the GPU.
#pragma once

#include <span>

#include "suture/suture.hpp"

namespace suture::examples {

struct recipe {
  std::int64_t size = 256;  // pixels of a tile
  double mpp = 0.5;         // its micrometers per pixel
  stain_reference reference{};
};

// How the stains of a slide are found, from some of its tiles.
inline constexpr fit_macenko slide_fit{.together = true};

// Tiles are read with a margin, so that they may be turned by any angle: more than the diagonal of a square.
inline std::int64_t read_size(const recipe& r) { return r.size + (r.size + 1) / 2; }

// `stains`: what fit_macenko found for the slide of each tile. Stains are worked on once a pixel, after it has moved.
inline auto make_pipeline(const recipe& r, std::span<const stain_basis> stains) {
  const double mm = r.mpp / 1000;
  return resample{.spacing_mm = {0, mm, mm}} |
         random_affine{.rotate_deg = {180, 0, 0}, .scale = {.9f, 1.1f}, .probability = .9f} |
         random_elastic{.control_spacing_mm = 64 * mm, .max_displacement_mm = {0, 8 * mm, 8 * mm}, .probability = .3f} |
         random_flip{} | center_crop{.size = {1, r.size, r.size}} | sampling<linear, reflect, vote>{} |
         macenko_normalize{.fitted = stains, .reference = r.reference} |
         random_hed_jitter{.alpha = {.9f, 1.1f}, .beta = {-.005f, .005f}, .probability = .9f} |
         rescale{.slope = 1 / 255.0f} | cast<half>{};
}

}  // namespace suture::examples
