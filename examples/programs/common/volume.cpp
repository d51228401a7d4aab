// SPDX-License-Identifier: Apache-2.0
#include "volume.hpp"

namespace suture::examples {

void require_same_place(const grid& image, const grid& labels, const std::string& image_name,
                        const std::string& labels_name) {
  const site here{"label"};
  require(image.extents == labels.extents, here, labels_name, ": extents ", labels.extents, " differ from ",
          image.extents, " of ", image_name, " (z, y, x); resample one onto the other first");
  const affine_map to_image = image.physical_to_index() * labels.index_to_physical();
  for (int corner = 0; corner < 8; ++corner) {
    point3 p{};
    for (int k = 0; k < 3; ++k) p[k] = (corner >> k) & 1 ? static_cast<double>(image.extents[k] - 1) : 0.0;
    const point3 q = to_image(p);
    for (int k = 0; k < 3; ++k)
      require(std::abs(q[k] - p[k]) < 0.01, here, labels_name, ": does not lie where ", image_name, " lies: its voxel ",
              p, " is voxel ", q, " there; resample one onto the other first");
  }
}

}  // namespace suture::examples
