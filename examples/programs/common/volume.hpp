// SPDX-License-Identifier: Apache-2.0
// A volume that owns its voxels, for programs that read, make and write images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "suture/image/grid.hpp"

namespace suture::examples {

// Voxels in array order (z, y, x), x fastest.
template <class T>
struct volume {
  suture::grid grid{};
  std::vector<T> voxels;
};

// CT is stored as int16; what does not fit (fractions, large numbers) stays float.
using image_volume = std::variant<volume<std::int16_t>, volume<float>>;
using label_volume = volume<std::uint8_t>;

inline const suture::grid& grid_of(const image_volume& image) {
  return std::visit([](const auto& v) -> const suture::grid& { return v.grid; }, image);
}

// Two images of the same voxels in the same place, up to a hundredth of a voxel as rounding in files leaves it. Throws
// suture::error naming both.
void require_same_place(const suture::grid& image, const suture::grid& labels, const std::string& image_name,
                        const std::string& labels_name);

inline std::size_t linear_index(const extent3& n, std::int64_t z, std::int64_t y, std::int64_t x) {
  return static_cast<std::size_t>((z * n[1] + y) * n[2] + x);
}

}  // namespace suture::examples
