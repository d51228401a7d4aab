// expect: suture: what a fit looks at is everything{} or a selection with maps, such as inside(masks)
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

void whole(suture::view<const float> image, suture::view<const std::uint8_t> mask, std::span<suture::moments> found) {
  suture::fit(suture::cpu{}, suture::fit_moments{}, image, mask, found);
}
