// SPDX-License-Identifier: Apache-2.0
// Stains fitted to a tile, and colors normalized by them one at a time.
#pragma once

#include <vector>

#include "stained_tile.hpp"
#include "suture/suture.hpp"

namespace support {

template <class T>
suture::stain_basis fit_tile(const suture::fit_macenko& how, const std::vector<T>& interleaved, const suture::grid& g,
                             const suture::cpu& exec = {}) {
  suture::stain_basis b;
  suture::fit(exec, how, suture::channels_last(interleaved.data(), g, 3), suture::everything{}, std::span(&b, 1));
  return b;
}
template <class T>
suture::stain_basis fit_tile(const suture::fit_macenko& how, const std::vector<T>& interleaved) {
  return fit_tile(how, interleaved, {.extents = {1, 1, static_cast<std::int64_t>(interleaved.size() / 3)}});
}

inline suture::rgb normalized(const suture::macenko_normalize& how, const suture::rgb& color) {
  return how.prepare({"test"})(color, suture::voxel{});
}

}  // namespace support
