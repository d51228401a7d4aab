// SPDX-License-Identifier: Apache-2.0
// A pipeline of ten operations, image and labels together: its compile time is bounded.
#include <suture/suture.cuh>

using namespace suture;

void ten_operations(const suture::cuda& exec, const settings& s, std::span<const view<const std::int16_t>> in,
                    std::span<const view<suture::half>> out, std::span<const view<const std::uint8_t>> seg,
                    std::span<const view<std::uint8_t>> seg_out) {
  const auto recipe = window{.center = 40, .width = 400} | resample{.spacing_mm = {1, 1, 1}} |
                      random_flip{.probability = .5f} | random_affine{.rotate_deg = 15, .probability = .5f} |
                      random_elastic{.probability = .3f} | random_crop{.size = {96, 96, 96}} |
                      random_gamma{.range = {.7f, 1.5f}} | random_contrast{.pivot = .5f} |
                      gaussian_noise{.sigma = .02f} | cast<suture::half>{};
  run(exec, plan(recipe, in, s), image(in, out), labels(seg, seg_out));
}
