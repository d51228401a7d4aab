// SPDX-License-Identifier: Apache-2.0
// The default training augmentation of nnU-Net, image and labels together: its compile time is bounded.
#include <suture/recipe/nnunet.hpp>
#include <suture/suture.cuh>

using namespace suture;

void nnunet_training(const suture::cuda& exec, const settings& s, std::span<const extent3> starts,
                     std::span<const view<const float>> in, std::span<const view<suture::half>> out,
                     std::span<const view<const std::int8_t>> seg, std::span<const view<std::int8_t>> seg_out) {
  const auto recipe = nnunet_v2_8({.shape = {{128, 128, 128}}, .starts = starts}) | cast<suture::half>{};
  run(exec, plan(recipe, in, s), image(in, out), labels(seg, seg_out));
}
