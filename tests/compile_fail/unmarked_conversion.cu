// expect: error: calling a __host__ function("weight::operator ()(int) const") from a __host__ __device__ function
// SPDX-License-Identifier: Apache-2.0
// Without SUTURE_FN there is no device code of it.
#include <suture/suture.cuh>

struct weight {
  float operator()(std::int32_t label) const { return label > 0 ? 5.0f : 1.0f; }
};

void weigh(const suture::cuda& exec, std::span<const suture::view<const std::uint8_t>> in,
           std::span<const suture::view<float>> out) {
  run(exec, suture::plan(suture::flip{}, in), suture::labels(in, out, weight{}));
}
