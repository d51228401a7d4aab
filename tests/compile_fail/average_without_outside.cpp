// expect: suture: average wants to know what a voxel is that no volume covers
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

void mean_of_views(const suture::patch_tensor<float>& restored, const suture::patch_tensor<float>& coverage,
                   const suture::view<float>& window) {
  suture::average(suture::cpu{}, restored, coverage, window);
}
