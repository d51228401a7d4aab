// expect: suture_needs_ieee_arithmetic__compile_without_use_fast_math
// flags: --use_fast_math
// SPDX-License-Identifier: Apache-2.0
// nvcc's fast math flushes and approximates: results would differ silently.
#include <suture/suture.cuh>

void flip_all(const suture::cuda& exec, std::span<const suture::view<const float>> in,
              std::span<const suture::view<float>> out) {
  run(exec, suture::plan(suture::flip{}, in), suture::image(in, out));
}
