// SPDX-License-Identifier: Apache-2.0
// Patches put together on a device: the bits of the host.
#include <gtest/gtest.h>
#include <suture/patch/average.cuh>
#include <suture/patch/reassemble.cuh>

#include <array>
#include <cstring>
#include <random>

#include "support/executors.cuh"
#include "support/test_time_augmentation.hpp"

namespace {

using namespace suture;

using support::device_array;

grid volume(const extent3& n) { return {.extents = n}; }

template <class T>
std::vector<T> values(std::int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> v(static_cast<std::size_t>(n));
  for (auto& x : v) x = storage<T>::store(static_cast<float>(random() % 100000) * 1e-3f - 40);
  return v;
}

// Planes first .. of the volume by both executors, as bytes.
template <class T, class Out>
void expect_the_same(const patch_grid& g, const patch_window& w, std::int64_t channels, std::int64_t first,
                     std::int64_t planes) {
  const auto patches = values<T>(g.count() * channels * g.size[0] * g.size[1] * g.size[2], 7);
  const grid slab = volume({planes, g.image[1], g.image[2]});
  std::vector<Out> expected(static_cast<std::size_t>(slab.voxels() * channels));
  reassemble(cpu{}, g, w, patch_tensor<T>{patches.data(), channels, 0, g.count()},
             contiguous(expected.data(), slab, channels), first);
  device_array<T> patches_copy(patches);
  device_array<Out> out(std::vector<Out>(expected.size()));
  const cuda_workspace workspace(workspace_bytes(g));
  reassemble(cuda{.workspace = workspace}, g, w, patch_tensor<T>{patches_copy.data(), channels, 0, g.count()},
             contiguous(out.data(), slab, channels), first);
  check_cuda(cudaDeviceSynchronize(), "reassemble");
  const std::vector<Out> got = out.values();
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(std::memcmp(&got[i], &expected[i], sizeof(Out)), 0) << i;

  // The same with patches that cover their voxels in part, the first of them not at all.
  const std::int64_t size = g.size[0] * g.size[1] * g.size[2];
  auto coverage = values<float>(g.count() * size, 8);
  for (std::size_t i = 0; i < coverage.size(); ++i)
    if (static_cast<std::int64_t>(i) < size || coverage[i] < 0) coverage[i] = i % 5 == 0 ? NAN : 0.0f;
  reassemble(cpu{}, g, w, patch_tensor<T>{patches.data(), channels, 0, g.count()}, {coverage.data(), 1, 0, g.count()},
             contiguous(expected.data(), slab, channels), first, 3);
  device_array<float> coverage_copy(coverage);
  reassemble(cuda{.workspace = workspace}, g, w, patch_tensor<T>{patches_copy.data(), channels, 0, g.count()},
             {coverage_copy.data(), 1, 0, g.count()}, contiguous(out.data(), slab, channels), first, 3);
  check_cuda(cudaDeviceSynchronize(), "reassemble");
  const std::vector<Out> covered = out.values();
  int differ = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::memcmp(&covered[i], &expected[i], sizeof(Out)), 0) << i;
    differ += std::memcmp(&covered[i], &got[i], sizeof(Out)) != 0 ? 1 : 0;
  }
  EXPECT_GT(differ, 0);
}

// Outputs in every order of axes hold what the host leaves in (z, y, x).
template <class Out>
void expect_the_same_in_every_order(const patch_grid& g, const patch_window& w) {
  constexpr std::int64_t channels = 2;
  const auto patches = values<float>(g.count() * channels * g.size[0] * g.size[1] * g.size[2], 7);
  const grid all = volume(g.image);
  std::vector<Out> expected(static_cast<std::size_t>(all.voxels() * channels));
  const view<Out> host = contiguous(expected.data(), all, channels);
  reassemble(cpu{}, g, w, patch_tensor<float>{patches.data(), channels, 0, g.count()}, host);
  device_array<float> patches_copy(patches);
  const cuda_workspace workspace(workspace_bytes(g));
  for (const auto& order : {std::array{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
    device_array<Out> memory(std::vector<Out>(expected.size()));
    view<Out> out = contiguous(memory.data(), all, channels);
    std::int64_t step = 1;
    for (std::size_t j = 3; j-- > 0; step *= all.extents[order[j]]) out.stride[order[j]] = step;
    reassemble(cuda{.workspace = workspace}, g, w, patch_tensor<float>{patches_copy.data(), channels, 0, g.count()},
               out);
    check_cuda(cudaDeviceSynchronize(), "reassemble");
    const std::vector<Out> got = memory.values();
    const auto at = [](const view<Out>& v, std::int64_t c, std::int64_t z, std::int64_t y, std::int64_t x) {
      return static_cast<std::size_t>(c * v.channel_stride + z * v.stride[0] + y * v.stride[1] + x * v.stride[2]);
    };
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t z = 0; z < g.image[0]; ++z)
        for (std::int64_t y = 0; y < g.image[1]; ++y)
          for (std::int64_t x = 0; x < g.image[2]; ++x)
            ASSERT_EQ(std::memcmp(&got[at(out, c, z, y, x)], &expected[at(host, c, z, y, x)], sizeof(Out)), 0)
                << order[0] << order[1] << order[2] << ": " << c << ' ' << z << ' ' << y << ' ' << x;
  }
}

TEST(reassemble_on_a_device, serves_every_order_of_axes) {
  const extent3 size{4, 5, 24};
  const patch_grid g = sliding_window_grid({9, 14, 150}, size);
  expect_the_same_in_every_order<float>(g, gaussian_window(size));
  expect_the_same_in_every_order<suture::half>(g, gaussian_window(size));
}

TEST(reassemble_on_a_device, gives_the_bits_of_the_host) {
  const extent3 image{9, 14, 150}, size{4, 5, 24};  // rows of more than a block
  const patch_grid g = sliding_window_grid(image, size);
  expect_the_same<float, float>(g, gaussian_window(size), 3, 0, 9);
  expect_the_same<suture::half, suture::half>(g, sliding_window_gaussian(size), 2, 0, 9);
  expect_the_same<bfloat16, float>(g, constant_window(size), 1, 3, 4);
}

TEST(reassemble_on_a_device, takes_tables_longer_than_one_launch_carries) {
  const extent3 image{1, 1, 1400}, size{1, 1, 40};
  expect_the_same<float, float>(dense_patch_grid(image, size, {0, 0, .975}), gaussian_window(size), 1, 0, 1);
}

TEST(reassemble_on_a_device, can_be_captured) {
  const extent3 image{3, 6, 20}, size{2, 4, 8};
  const patch_grid g = dense_patch_grid(image, size);
  const patch_window w = gaussian_window(size);
  const auto patches = values<float>(g.count() * 64, 9);
  std::vector<float> expected(360);
  reassemble(cpu{}, g, w, patch_tensor<float>{patches.data(), 1, 0, g.count()},
             contiguous(expected.data(), volume(image)));
  device_array<float> patches_copy(patches), out(std::vector<float>(360, 0.0f));
  const cuda_workspace workspace(workspace_bytes(g));
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t again;
  check_cuda(cudaStreamCreate(&stream), "stream");
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
  reassemble(cuda{.stream = stream, .workspace = workspace}, g, w,
             patch_tensor<float>{patches_copy.data(), 1, 0, g.count()}, contiguous(out.data(), volume(image)));
  check_cuda(cudaStreamEndCapture(stream, &graph), "capture");
  check_cuda(cudaGraphInstantiate(&again, graph, 0), "graph");
  EXPECT_EQ(out.values(), std::vector<float>(360, 0.0f));
  check_cuda(cudaGraphLaunch(again, stream), "graph");
  check_cuda(cudaStreamSynchronize(stream), "graph");
  EXPECT_EQ(out.values(), expected);
  check_cuda(cudaGraphExecDestroy(again), "graph");
  check_cuda(cudaGraphDestroy(graph), "graph");
  check_cuda(cudaStreamDestroy(stream), "stream");
}

TEST(reassemble_on_a_device, is_checked_before_anything_is_launched) {
  const extent3 image{3, 6, 20}, size{2, 4, 8};
  const patch_grid g = dense_patch_grid(image, size);
  const auto patches = values<float>(g.count() * 64, 9);
  device_array<float> patches_copy(patches), out(std::vector<float>(360, 5.0f));
  const cuda_workspace workspace(workspace_bytes(g));
  const auto to = contiguous(out.data(), volume(image));
  const patch_tensor<float> from{patches_copy.data(), 1, 0, g.count()};
  EXPECT_THROW(reassemble(cuda{}, g, gaussian_window(size), from, to), error);  // no workspace
  EXPECT_THROW(reassemble(cuda{.workspace = workspace}, g, gaussian_window({2, 4, 9}), from, to), error);
  EXPECT_THROW(reassemble(cuda{.workspace = workspace}, g, gaussian_window(size),
                          patch_tensor<float>{patches_copy.data(), 1, 0, 3}, to),
               error);
  EXPECT_EQ(out.values(), std::vector<float>(360, 5.0f));
}

template <class T, class Out>
void expect_the_same_mean(const grid& g) {
  const auto volumes = values<T>(5 * 3 * g.voxels(), 3);
  std::vector<float> weights = values<float>(5 * g.voxels(), 4);
  for (float& w : weights) w = w < 0 ? 0 : w / 60;
  std::vector<Out> expected(static_cast<std::size_t>(3 * g.voxels()));
  std::vector<float> covered(static_cast<std::size_t>(g.voxels()));
  average(cpu{}, patch_tensor<T>{volumes.data(), 3, 0, 5}, {weights.data(), 1, 0, 5},
          channels_last(expected.data(), g, 3), {.least = .5f, .outside = 7}, contiguous(covered.data(), g));
  device_array<T> volumes_copy(volumes);
  device_array<float> weights_copy(weights);
  device_array<Out> out(std::vector<Out>(expected.size()));
  device_array<float> covered_on_device(std::vector<float>(covered.size()));
  average(cuda{}, patch_tensor<T>{volumes_copy.data(), 3, 0, 5}, {weights_copy.data(), 1, 0, 5},
          channels_last(out.data(), g, 3), {.least = .5f, .outside = 7}, contiguous(covered_on_device.data(), g));
  check_cuda(cudaDeviceSynchronize(), "average");
  EXPECT_EQ(covered_on_device.values(), covered);
  const std::vector<Out> got = out.values();
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(std::memcmp(&got[i], &expected[i], sizeof(Out)), 0) << i;
}

TEST(average_on_a_device, gives_the_bits_of_the_host) {
  for (const extent3& n : {extent3{1, 1, 1}, {3, 15, 16}, {2, 17, 127}}) {
    expect_the_same_mean<float, float>(volume(n));
    expect_the_same_mean<suture::half, bfloat16>(volume(n));
  }
}

// Two classes whose probabilities are the voxel and the rest.
__host__ __device__ void predict_voxel(const float* images, std::int64_t i, std::int64_t voxels, float* out) {
  const std::int64_t image = i / voxels, v = i % voxels;
  out[2 * image * voxels + v] = images[i];
  out[(2 * image + 1) * voxels + v] = 1 - images[i];
}
__global__ void predict_kernel(const float* images, std::int64_t count, std::int64_t voxels, float* out) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count * voxels) predict_voxel(images, i, voxels, out);
}

// The probabilities of a scan by windows, each with three views of it.
template <class Machine, class Executor, class Predict>
std::vector<float> predicted(const Executor& exec, const std::vector<float>& voxels, const grid& g,
                             const Predict& predict) {
  const extent3 size{6, 8, 10};
  const std::int64_t n = 3, V = size[0] * size[1] * size[2];
  const std::int64_t count = sliding_window_grid(g.extents, size, .5).count();
  const auto room = [](std::int64_t elements, float value = -1) {
    return typename Machine::template buffer<float>(std::vector<float>(static_cast<std::size_t>(elements), value));
  };
  typename Machine::template buffer<float> scan(voxels);
  auto seen = room((n + 1) * V), probabilities = room(n * 2 * V), restored = room((n + 1) * 2 * V),
       ones = room(n * V, 1), coverage = room((n + 1) * V, 1), means = room(count * 2 * V), covered = room(count * V),
       whole = room(2 * g.voxels());
  support::predict_windows(
      exec, contiguous<const float>(scan.data(), g), size, 2, n,
      {seen.data(), probabilities.data(), restored.data(), ones.data(), coverage.data(), means.data(), covered.data()},
      [&](const float* images, std::int64_t views, float* out) { predict(images, views, V, out); },
      contiguous(whole.data(), g, 2));
  return whole.values();
}

TEST(test_time_augmentation_on_a_device, gives_the_bits_of_the_host) {
  const grid g = volume({9, 11, 21});
  std::vector<float> voxels = values<float>(g.voxels(), 5);
  for (float& v : voxels) v = (v + 40) / 100;
  const std::vector<float> expected = predicted<support::host_executor>(
      cpu{}, voxels, g, [](const float* images, std::int64_t count, std::int64_t V, float* out) {
        for (std::int64_t i = 0; i < count * V; ++i) predict_voxel(images, i, V, out);
      });
  for (std::size_t v = 0; v < voxels.size(); ++v) ASSERT_NEAR(expected[v] + expected[voxels.size() + v], 1, 2e-6) << v;
  const cuda_workspace workspace(1 << 20);
  const std::vector<float> got = predicted<support::device_executor>(
      cuda{.workspace = workspace}, voxels, g, [](const float* images, std::int64_t count, std::int64_t V, float* out) {
        predict_kernel<<<static_cast<unsigned>((count * V + 255) / 256), 256>>>(images, count, V, out);
        check_cuda(cudaGetLastError(), "predict");
      });
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(std::memcmp(&got[i], &expected[i], sizeof(float)), 0) << i;
}

}  // namespace
