// SPDX-License-Identifier: Apache-2.0
// Patch sampling on a device: the tables and the choices of the host, captured in a graph, and errors before launch.
#include <gtest/gtest.h>
#include <suture/patch/class_index.cuh>
#include <suture/patch/select_patches.cuh>

#include <cstring>
#include <random>

#include "support/class_balanced_training.hpp"
#include "support/executors.cuh"

namespace {

using namespace suture;

using support::device_array;

// Ragged volumes, more than fit the arguments of one kernel, in host and device memory.
template <class T>
struct volumes {
  std::vector<grid> grids;
  std::vector<std::vector<T>> data;
  std::vector<device_array<T>> copies;

  // Values -below .. values - below - 1 in runs; the first `blank` volumes hold -below alone.
  volumes(std::size_t n, unsigned seed, int values, int below, std::size_t blank = 0) {
    std::mt19937 random(seed);
    for (std::size_t i = 0; i < n; ++i) {
      const auto j = static_cast<std::int64_t>(i);
      grid g;
      g.extents = i == 5 ? extent3{23, 25, 27} : i == 6 ? extent3{1, 1, 300} : extent3{4 + j % 3, 5 + j % 7, 3 + j % 5};
      std::vector<T> v(static_cast<std::size_t>(g.voxels()));
      for (std::size_t k = 0; k < v.size();) {
        const auto run = 1 + random() % 20;
        const auto value = static_cast<T>(static_cast<int>(random() % static_cast<unsigned>(values)) - below);
        for (std::size_t e = std::min<std::size_t>(v.size(), k + run); k < e; ++k)
          v[k] = i < blank ? static_cast<T>(-below) : value;
      }
      grids.push_back(g);
      copies.emplace_back(v);
      data.push_back(std::move(v));
    }
  }
  std::vector<view<const T>> views(bool device) {
    std::vector<view<const T>> v;
    for (std::size_t i = 0; i < grids.size(); ++i)
      v.push_back(contiguous<const T>(device ? copies[i].data() : data[i].data(), grids[i]));
    return v;
  }
};

std::vector<std::uint64_t> ids_for(std::size_t n) {
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < n; ++i) ids.push_back(900 + 13 * i);
  return ids;
}

constexpr std::byte dirt{0xA5};

// The table of both executors, and the choices of host from host table, host from device table, and device.
template <class Rule, class Classes>
void expect_the_same(const Rule& rule, const Classes& on_host, const Classes& on_device, const patch_draws& draws) {
  const std::size_t bytes = class_counts_bytes(on_host);
  std::vector<std::uint64_t> host_words(bytes / 8);
  const auto host_table = std::as_writable_bytes(std::span(host_words));
  count_classes(cpu{}, on_host, host_table);
  device_array<std::byte> table(std::vector<std::byte>(bytes, dirt));
  count_classes(cuda{}, on_device, std::span<std::byte>(table.data(), bytes));

  const std::size_t n = on_host.samples() * static_cast<std::size_t>(draws.patches);
  device_array<std::byte> choices(std::vector<std::byte>(n * sizeof(patch_choice), dirt));
  const std::span<patch_choice> out(reinterpret_cast<patch_choice*>(choices.data()), n);
  select_patches(cuda{}, rule, on_device, std::span<const std::byte>(table.data(), bytes), draws, out);
  check_cuda(cudaDeviceSynchronize(), "select_patches");

  const std::vector<std::byte> copied = table.values();
  // Between the counts of two samples four bytes may be unused.
  for (std::size_t i = 0; i < on_host.samples(); ++i) {
    const class_counts a = counts_of(on_host, host_table, i), b = counts_of(on_host, copied, i);
    for (std::int32_t c = 0; c < a.classes + 2; ++c) EXPECT_EQ(a.totals[c], b.totals[c]) << i << ' ' << c;
    for (std::int64_t k = 0; k < a.classes * a.blocks; ++k) ASSERT_EQ(a.counts[k], b.counts[k]) << i << ' ' << k;
  }
  std::vector<patch_choice> expected(n), from_copy(n);
  select_patches(cpu{}, rule, on_host, host_table, draws, expected);
  select_patches(cpu{}, rule, on_host, copied, draws, from_copy);
  const std::vector<std::byte> got = choices.values();
  EXPECT_EQ(std::memcmp(expected.data(), from_copy.data(), got.size()), 0);
  for (std::size_t i = 0; i < n; ++i) {
    patch_choice c;
    std::memcpy(&c, got.data() + i * sizeof c, sizeof c);
    EXPECT_EQ(c.voxel, expected[i].voxel) << i;
    EXPECT_EQ(c.start, expected[i].start) << i;
    EXPECT_EQ(c.of_class, expected[i].of_class) << i;
    EXPECT_EQ(c.status, expected[i].status) << i;
  }
}

TEST(patches_on_a_device, of_classes_are_those_of_the_host) {
  volumes<std::int16_t> labels(37, 1, 9, 1);  // -1 .. 7, of which 0 .. 5 are declared
  const auto ids = ids_for(37);
  const std::vector<float> ratios{1, .5f, 2, 0, 3, .25f};
  const patch_draws draws{.seed = 4, .epoch = 2, .sample_ids = ids, .patches = 3};
  const auto host = label_classes(labels.views(false), 6), device = label_classes(labels.views(true), 6);
  expect_the_same(class_balanced_patch{.size = {1, 1, 3}, .ratios = ratios}, host, device, draws);
  expect_the_same(oversampled_patch{.size = {6, 6, 6}, .margin = {1, 2, 3}, .probability = .5f}, host, device, draws);
}

TEST(patches_on_a_device, of_foreground_and_background_are_those_of_the_host) {
  volumes<std::uint8_t> labels(9, 2, 2, 0, 3);
  volumes<float> images(9, 3, 7, 3, 2);
  const auto ids = ids_for(9);
  const patch_draws draws{.seed = 4, .sample_ids = ids, .patches = 4, .ordinal = 2};
  const pos_neg_patch rule{.size = {1, 1, 3}, .positive = 1, .negative = 2};
  expect_the_same(rule, foreground_background(labels.views(false), images.views(false), .5f),
                  foreground_background(labels.views(true), images.views(true), .5f), draws);
  expect_the_same(rule, foreground_background(labels.views(false)), foreground_background(labels.views(true)), draws);
}

TEST(patches_on_a_device, of_weights_are_those_of_the_host) {
  volumes<std::uint16_t> weights(8, 5, 60000, 0, 1);
  const auto ids = ids_for(8);
  const std::vector<std::uint8_t> forced{1, 1, 1, 0, 1, 1, 1, 1};
  expect_the_same(weighted_patch{}, weight_map(weights.views(false), {1, 1, 2}),
                  weight_map(weights.views(true), {1, 1, 2}), {.sample_ids = ids, .patches = 5, .forced = forced});
}

TEST(patches_on_a_device, are_found_among_many_blocks) {
  grid g;
  g.extents = {130, 131, 132};  // 549 blocks: more than a block of the kernel has lanes
  std::vector<std::uint8_t> labels(static_cast<std::size_t>(g.voxels()), 0);
  for (std::size_t i = 3; i < labels.size(); i += 1001) labels[i] = 1;
  const auto host = label_classes(contiguous<const std::uint8_t>(labels.data(), g), 2);
  device_array<std::uint8_t> copy(labels);
  const auto device = label_classes(contiguous<const std::uint8_t>(copy.data(), g), 2);
  std::vector<std::uint64_t> table(class_counts_bytes(host) / 8);
  count_classes(cpu{}, host, std::as_writable_bytes(std::span(table)));
  device_array<std::uint64_t> table_copy(table);
  constexpr std::size_t n = 40;
  const std::uint64_t id = 3;
  const patch_draws draws{.sample_ids = {&id, 1}, .patches = static_cast<std::int32_t>(n)};
  const std::vector<float> ratios{1, 3};
  const class_balanced_patch rule{.size = {1, 1, 1}, .ratios = ratios};
  std::vector<patch_choice> expected(n);
  select_patches(cpu{}, rule, host, std::as_bytes(std::span(table)), draws, expected);
  device_array<patch_choice> choices{std::vector<patch_choice>(n)};
  select_patches(cuda{}, rule, device, std::as_bytes(std::span(table_copy.data(), table.size())), draws,
                 std::span(choices.data(), n));
  check_cuda(cudaDeviceSynchronize(), "select_patches");
  const std::vector<patch_choice> got = choices.values();
  for (std::size_t i = 0; i < n; ++i) {
    EXPECT_EQ(got[i].voxel, expected[i].voxel);
    EXPECT_EQ(labels[static_cast<std::size_t>(got[i].voxel)], got[i].of_class);
  }
}

TEST(patches_on_a_device, can_be_captured_and_drawn_again) {
  volumes<std::uint8_t> labels(7, 2, 4, 0);
  const auto ids = ids_for(7);
  const auto map = label_classes(labels.views(true), 4);
  const std::size_t bytes = class_counts_bytes(map);
  device_array<std::byte> table(std::vector<std::byte>(bytes, dirt));
  device_array<patch_choice> choices(std::vector<patch_choice>(7));
  cudaStream_t stream;
  check_cuda(cudaStreamCreate(&stream), "stream");
  cudaGraph_t graph;
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
  const cuda exec{.stream = stream};
  count_classes(exec, map, std::span<std::byte>(table.data(), bytes));
  select_patches(exec, class_balanced_patch{.size = {1, 1, 1}}, map, std::span<const std::byte>(table.data(), bytes),
                 {.sample_ids = ids}, std::span<patch_choice>(choices.data(), 7));
  check_cuda(cudaStreamEndCapture(stream, &graph), "capture");
  cudaGraphExec_t again;
  check_cuda(cudaGraphInstantiate(&again, graph, 0), "graph");
  std::vector<std::vector<patch_choice>> runs;
  for (int i = 0; i < 2; ++i) {
    check_cuda(cudaGraphLaunch(again, stream), "graph");
    check_cuda(cudaStreamSynchronize(stream), "graph");
    runs.push_back(choices.values());
  }
  for (std::size_t i = 0; i < 7; ++i) {
    const patch_choice& c = runs[0][i];
    ASSERT_GE(c.voxel, 0);
    EXPECT_EQ(labels.data[i][static_cast<std::size_t>(c.voxel)], c.of_class);
    EXPECT_EQ(c.voxel, runs[1][i].voxel);
  }
  check_cuda(cudaGraphExecDestroy(again), "graph");
  check_cuda(cudaGraphDestroy(graph), "graph");
  check_cuda(cudaStreamDestroy(stream), "stream");
}

TEST(patches_on_a_device, of_another_table_say_that_none_was_found) {
  volumes<std::uint8_t> labels(1, 2, 2, 0);
  const auto map = label_classes(labels.views(true), 2);
  std::vector<std::byte> wrong(class_counts_bytes(map), std::byte{0});
  wrong[8] = std::byte{9};  // a total of class 1 without counts
  device_array<std::byte> table(wrong);
  device_array<patch_choice> choices(std::vector<patch_choice>(1));
  const std::uint64_t id = 0;
  select_patches(cuda{}, class_balanced_patch{.size = {1, 1, 1}}, map,
                 std::span<const std::byte>(table.data(), wrong.size()), {.sample_ids = {&id, 1}},
                 std::span<patch_choice>(choices.data(), 1));
  check_cuda(cudaDeviceSynchronize(), "select_patches");
  EXPECT_EQ(choices.values()[0].status, patch_status::empty);
  EXPECT_EQ(choices.values()[0].voxel, -1);
}

TEST(patches_on_a_device, are_checked_before_anything_is_launched) {
  volumes<std::uint8_t> labels(1, 2, 2, 0);
  const auto map = label_classes(labels.views(true), 2);
  device_array<std::byte> table(std::vector<std::byte>(class_counts_bytes(map), dirt));
  EXPECT_THROW(count_classes(cuda{}, map, std::span<std::byte>(table.data(), 8)), error);
  EXPECT_THROW(count_classes(cuda{}, label_classes(labels.views(true), 5000), std::span<std::byte>(table.data(), 8)),
               error);
  std::vector<patch_choice> none;
  EXPECT_THROW(select_patches(cuda{}, class_balanced_patch{.size = {1, 1, 1}}, map,
                              std::span<const std::byte>(table.data(), class_counts_bytes(map)), {}, none),
               error);
  for (const std::byte b : table.values()) EXPECT_EQ(b, dirt);
}

TEST(class_index_on_a_device, is_that_of_the_host) {
  volumes<std::uint8_t> labels(9, 6, 5, 0);
  volumes<std::int16_t> images(9, 7, 500, 200);
  EXPECT_TRUE(index_classes(cuda{}, label_classes(labels.views(true), 4)) ==
              index_classes(cpu{}, label_classes(labels.views(false), 4)));
  EXPECT_TRUE(index_classes(cuda{}, foreground_background(labels.views(true), images.views(true), 30.0f)) ==
              index_classes(cpu{}, foreground_background(labels.views(false), images.views(false), 30.0f)));
  // Every row reversed, so that what is copied begins ahead of the pointer.
  const auto reversed = [&](bool device) {
    view<const std::uint8_t> v = labels.views(device)[5];
    v.data += v.grid.extents[2] - 1;
    v.stride[2] = -1;
    return v;
  };
  EXPECT_TRUE(index_classes(cuda{}, label_classes(reversed(true), 4)) ==
              index_classes(cpu{}, label_classes(reversed(false), 4)));
}

// The loop of docs/operations.md on both executors. That its steps are captured shows that nothing waits for the device
// or copies from it.
TEST(class_balanced_training_on_a_device, gives_the_bits_of_the_host_without_waiting) {
  volumes<std::uint8_t> labels(3, 11, 4, 0);
  volumes<std::int16_t> scans(3, 12, 700, 300);
  const point3 spacings[3] = {{2.5, .8, .9}, {1, 1, 1}, {3, 2, 2}};
  std::vector<support::training_case> on_host, on_device;
  for (std::size_t i = 0; i < 3; ++i) {
    labels.grids[i].spacing = scans.grids[i].spacing = spacings[i];
    const auto index = index_classes(cuda{}, label_classes(labels.views(true)[i], 3));
    on_host.push_back({scans.views(false)[i], labels.views(false)[i], index[0]});
    on_device.push_back({scans.views(true)[i], labels.views(true)[i], index[0]});
  }
  const std::vector<std::uint64_t> ids{0, 9, 5, 11, 2};
  const extent3 size{6, 8, 10};
  constexpr std::size_t V = 6 * 8 * 10;
  std::vector<suture::half> images(5 * V);
  std::vector<std::uint8_t> targets(5 * V);
  device_array<suture::half> device_images{std::vector<suture::half>(5 * V)};
  device_array<std::uint8_t> device_targets{std::vector<std::uint8_t>(5 * V)};
  const cuda_workspace workspace(1 << 20);
  cudaStream_t stream;
  check_cuda(cudaStreamCreate(&stream), "stream");
  for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
    cudaGraph_t graph;
    cudaGraphExec_t step;
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
    support::training_step(cuda{.stream = stream, .workspace = workspace}, on_device, 4, ids, epoch, size,
                           device_images.data(), device_targets.data());
    check_cuda(cudaStreamEndCapture(stream, &graph), "capture");
    check_cuda(cudaGraphInstantiate(&step, graph, 0), "instantiate");
    check_cuda(cudaGraphLaunch(step, stream), "launch");
    check_cuda(cudaStreamSynchronize(stream), "step");
    check_cuda(cudaGraphExecDestroy(step), "graph");
    check_cuda(cudaGraphDestroy(graph), "graph");
    support::training_step(cpu{}, on_host, 4, ids, epoch, size, images.data(), targets.data());
    const std::vector<suture::half> got = device_images.values();
    EXPECT_EQ(std::memcmp(got.data(), images.data(), images.size() * sizeof(suture::half)), 0);
    EXPECT_EQ(device_targets.values(), targets);
  }
  // A capture does see what waits: an index is made once for a case, not in a step.
  cudaGraph_t broken;
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
  EXPECT_THROW(index_classes(cuda{.stream = stream}, label_classes(labels.views(true), 3)), error);
  EXPECT_NE(cudaStreamEndCapture(stream, &broken), cudaSuccess);
  (void)cudaGetLastError();
  check_cuda(cudaStreamDestroy(stream), "stream");
}

}  // namespace
