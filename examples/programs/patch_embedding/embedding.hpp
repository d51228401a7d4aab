// SPDX-License-Identifier: Apache-2.0
// The first layer of a vision transformer for volumes (ViT, UNETR) that takes its voxels from a pipeline instead of
// from memory: a patch is cut into cubes, the tokens, and the voxels of each are projected to features,
//   feature[f] = bias[f] + sum over v of weight[v][f] * voxel[v].
// Below are a CUDA kernel and its twin for the host. `voxels(sample, z, y, x)` is whatever gives the half at a place of
// a patch: the evaluator of a plan, which makes it on the spot, or a patch that was stored.
// Fused, patches take no memory and no traffic, but every voxel is made by itself, without the work that neighbors
// share in a run. On a CPU, where a run goes by strips of 32 voxels, that makes storing the faster way.
#pragma once

#include "suture/suture.hpp"

namespace suture::examples {

struct embedding {
  vec3<std::int32_t> patch{96, 96, 96};  // z, y, x; multiples of token
  std::int32_t token = 8;                // edge of a token in voxels
  std::int32_t features = 96;            // per token

  SUTURE_HD std::int32_t voxels() const { return token * token * token; }  // of a token
  SUTURE_HD std::int32_t tokens() const { return patch[0] / token * (patch[1] / token) * (patch[2] / token); }
  SUTURE_HD std::int32_t weights() const { return (voxels() + 1) * features; }  // a row per voxel, then the bias
};

// Voxel v of a token. Tokens and voxels are counted in array order.
template <class Voxels>
SUTURE_FN float token_voxel(const embedding& e, const Voxels& voxels, std::int32_t sample, std::int32_t token,
                            std::int32_t v) {
  const std::int32_t ny = e.patch[1] / e.token, nx = e.patch[2] / e.token;
  const std::int32_t z = token / (ny * nx) * e.token + v / (e.token * e.token);
  const std::int32_t y = token / nx % ny * e.token + v / e.token % e.token;
  const std::int32_t x = token % nx * e.token + v % e.token;
  return storage<half>::load(voxels(sample, z, y, x));
}

// Both forms add up in the order of the voxels, one fused multiply-add each, so their features have the same bits.

#if defined(__CUDACC__)
// A block per token of a sample: its threads make the voxels in shared memory, then each sums up features of its own.
// Launch with dim3(tokens, samples) blocks and a float of shared memory for each voxel of a token.
template <class Voxels>
__global__ void __launch_bounds__(128)
    embed_kernel(const __grid_constant__ Voxels voxels, embedding e, const float* weights, float* features) {
  extern __shared__ float token[];
  const auto number = static_cast<std::int32_t>(blockIdx.x), sample = static_cast<std::int32_t>(blockIdx.y);
  const auto first = static_cast<std::int32_t>(threadIdx.x), step = static_cast<std::int32_t>(blockDim.x);
  for (std::int32_t v = first; v < e.voxels(); v += step) token[v] = token_voxel(e, voxels, sample, number, v);
  __syncthreads();
  features += (static_cast<std::int64_t>(sample) * e.tokens() + number) * e.features;
  for (std::int32_t f = first; f < e.features; f += step) {
    float sum = weights[e.voxels() * e.features + f];
    for (std::int32_t v = 0; v < e.voxels(); ++v) sum = fma(token[v], weights[v * e.features + f], sum);
    features[f] = sum;
  }
}
#endif

template <class Voxels>
void embed(const Voxels& voxels, const embedding& e, std::int32_t samples, const float* weights, float* features) {
  const std::int64_t tokens = static_cast<std::int64_t>(samples) * e.tokens();
#if defined(_OPENMP)
#pragma omp parallel for schedule(dynamic)
#endif
  for (std::int64_t i = 0; i < tokens; ++i) {
    const auto sample = static_cast<std::int32_t>(i / e.tokens()), number = static_cast<std::int32_t>(i % e.tokens());
    float* const sum = features + i * e.features;
    for (std::int32_t f = 0; f < e.features; ++f) sum[f] = weights[e.voxels() * e.features + f];
    for (std::int32_t v = 0; v < e.voxels(); ++v) {
      const float x = token_voxel(e, voxels, sample, number, v);
      for (std::int32_t f = 0; f < e.features; ++f) sum[f] = fma(x, weights[v * e.features + f], sum[f]);
    }
  }
}

// Patches that were made before: dense (sample, z, y, x).
struct stored_patches {
  const half* data;
  vec3<std::int32_t> extents;

  SUTURE_FN half operator()(std::int32_t sample, std::int32_t z, std::int32_t y, std::int32_t x) const {
    return data[((static_cast<std::int64_t>(sample) * extents[0] + z) * extents[1] + y) * extents[2] + x];
  }
};

}  // namespace suture::examples
