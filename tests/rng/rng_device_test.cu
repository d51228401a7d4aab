// SPDX-License-Identifier: Apache-2.0
// Random words against cuRAND's device generator, and random fields with the same bits on device and host.
#include <cuda_runtime.h>
#include <curand_kernel.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "support/device_array.cuh"
#include "suture/rng/draw.hpp"

namespace {

using support::device_array;
using suture::bit_cast;

constexpr std::uint32_t threads = 4096;
constexpr std::uint64_t seed = 0x0123456789ABCDEFu;

// A subsequence and an offset per thread, carries into the upper words included.
__host__ __device__ std::uint64_t subsequence(std::uint32_t i) { return i * 0x9E3779B97F4A7C15u; }
__host__ __device__ std::uint64_t first_block(std::uint32_t i) { return (std::uint64_t{i & 3u} << 32) - (i & 7u); }

__global__ void curand_words(std::uint32_t* out) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  curandStatePhilox4_32_10_t state;
  curand_init(seed, subsequence(i), (first_block(i) & 0x3fffffffffffffffu) * 4, &state);
  for (int k = 0; k < 2; ++k) {
    const uint4 words = curand4(&state);
    out[i * 8 + 4 * k + 0] = words.x;
    out[i * 8 + 4 * k + 1] = words.y;
    out[i * 8 + 4 * k + 2] = words.z;
    out[i * 8 + 4 * k + 3] = words.w;
  }
}

__global__ void curand_block(std::uint32_t* out) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  const uint4 words = curand_Philox4x32_10(make_uint4(i, ~i, i * 7u, i * i), make_uint2(i * 11u, i * 13u));
  out[i * 4 + 0] = words.x;
  out[i * 4 + 1] = words.y;
  out[i * 4 + 2] = words.z;
  out[i * 4 + 3] = words.w;
}

__global__ void own_block(std::uint32_t* out) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  const suture::philox_block words = suture::philox4x32({{i, ~i, i * 7u, i * i}}, {{i * 11u, i * 13u}});
  for (std::uint32_t k = 0; k < 4; ++k) out[i * 4 + k] = words[k];
}

TEST(CurandDevice, Blocks) {
  device_array<std::uint32_t> theirs(threads * 4), ours(threads * 4);
  curand_block<<<threads / 128, 128>>>(theirs.data());
  own_block<<<threads / 128, 128>>>(ours.data());
  ASSERT_EQ(cudaGetLastError(), cudaSuccess);
  const auto expected = theirs.values();
  EXPECT_EQ(ours.values(), expected);
  for (std::uint32_t i = 0; i < threads; ++i)
    for (std::uint32_t k = 0; k < 4; ++k)
      ASSERT_EQ(suture::philox4x32({{i, ~i, i * 7u, i * i}}, {{i * 11u, i * 13u}})[k], expected[i * 4 + k]);
}

TEST(CurandDevice, Sequences) {
  device_array<std::uint32_t> theirs(threads * 8);
  curand_words<<<threads / 128, 128>>>(theirs.data());
  ASSERT_EQ(cudaGetLastError(), cudaSuccess);
  const auto expected = theirs.values();
  for (std::uint32_t i = 0; i < threads; ++i)
    for (std::uint32_t k = 0; k < 8; ++k) {
      const std::uint64_t start = first_block(i) & 0x3fffffffffffffffu;
      const std::uint64_t block = start + k / 4;
      const std::uint64_t s = subsequence(i);
      const suture::philox_block words =
          suture::philox4x32({{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                               static_cast<std::uint32_t>(s), static_cast<std::uint32_t>(s >> 32)}},
                             {{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}});
      ASSERT_EQ(words[k % 4], expected[i * 8 + k]) << i << ' ' << k;
    }
}

// Elements around the end of 32 bits.
SUTURE_FN std::uint64_t element(std::uint32_t i) { return (std::uint64_t{1} << 32) - threads / 2 + i; }

__global__ void evaluate(suture::random_field field, float* uniform, float* normal, float* uniform4, float* normal4) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  uniform[i] = field.uniform(element(i));
  normal[i] = field.normal(element(i));
  if (i % 4 != 0) return;
  float u[4], z[4];
  field.uniform4(element(i) / 4, u);
  field.normal4(element(i) / 4, z);
  for (int k = 0; k < 4; ++k) {
    uniform4[i + k] = u[k];
    normal4[i + k] = z[k];
  }
}

TEST(RandomField, SameBitsOnHostAndDevice) {
  const suture::random_field field = suture::draws(seed, 7, 42, 3).field(1);
  device_array<float> uniform(threads), normal(threads), uniform4(threads), normal4(threads);
  evaluate<<<threads / 128, 128>>>(field, uniform.data(), normal.data(), uniform4.data(), normal4.data());
  ASSERT_EQ(cudaGetLastError(), cudaSuccess);
  const auto u = uniform.values(), z = normal.values();
  for (std::uint32_t i = 0; i < threads; ++i) {
    ASSERT_EQ(bit_cast<std::uint32_t>(u[i]), bit_cast<std::uint32_t>(field.uniform(element(i)))) << i;
    ASSERT_EQ(bit_cast<std::uint32_t>(z[i]), bit_cast<std::uint32_t>(field.normal(element(i)))) << i;
  }
  EXPECT_EQ(uniform4.values(), u);
  EXPECT_EQ(normal4.values(), z);
}

constexpr int drawn = 7;

SUTURE_HD void draw(std::uint32_t sample, float (&out)[drawn]) {
  suture::draws random(seed, 1, sample, 2);
  out[0] = random.uniform(-0.3f, 0.7f);
  out[1] = random.bernoulli(0.3f) ? 1.0f : 0.0f;
  out[2] = static_cast<float>(random.integer(1000));
  out[3] = random.normal(1.0f, 0.2f);
  out[4] = random.log_uniform(0.5f, 2.0f);
  out[5] = random.mixture(0.7f, 1.5f);
  out[6] = random.field(2).normal(sample);
}

__global__ void draw_all(float* out) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  float values[drawn];
  draw(i, values);
  for (int k = 0; k < drawn; ++k) out[i * drawn + k] = values[k];
}

TEST(Draws, SameBitsOnHostAndDevice) {
  device_array<float> out(threads * drawn);
  draw_all<<<threads / 128, 128>>>(out.data());
  ASSERT_EQ(cudaGetLastError(), cudaSuccess);
  const auto device = out.values();
  for (std::uint32_t i = 0; i < threads; ++i) {
    float host[drawn];
    draw(i, host);
    for (int k = 0; k < drawn; ++k)
      ASSERT_EQ(bit_cast<std::uint32_t>(device[i * drawn + k]), bit_cast<std::uint32_t>(host[k])) << i << ' ' << k;
  }
}

}  // namespace
