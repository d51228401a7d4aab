// SPDX-License-Identifier: Apache-2.0
// Stains fitted, normalized, turned and jittered: the compile time is bounded.
#include <suture/suture.cuh>

using namespace suture;

void stained_tiles(const suture::cuda& exec, const settings& s, std::span<const view<const std::uint8_t>> in,
                   std::span<const view<suture::half>> out, std::span<stain_basis> fitted) {
  fit(exec, macenko::standard.fit, in, everything{}, fitted);
  const auto recipe = random_affine{.rotate_deg = {180, 0, 0}} | macenko::standard.normalize(fitted) |
                      random_hed_jitter{} | cast<suture::half>{};
  run(exec, plan(recipe, in, s), image(in, out));
}
