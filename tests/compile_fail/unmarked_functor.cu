// expect: error: calling a __host__ function("halved::operator ()(float) const") from a __host__ __device__ function
// SPDX-License-Identifier: Apache-2.0
// Without SUTURE_FN there is no device code of it.
#include <suture/suture.cuh>

struct halved {
  float operator()(float x) const { return suture::fma(x, 0.5f, 0.0f); }
};

void halve(const suture::cuda& exec, std::span<const suture::view<const float>> in,
           std::span<const suture::view<float>> out) {
  run(exec, suture::plan(halved{} | suture::flip{}, in), suture::image(in, out));
}
