// SPDX-License-Identifier: Apache-2.0
// Sharpness on a device: the bits of the host, in a graph, and errors before launch.
#include <gtest/gtest.h>
#include <suture/fit/sharpness.cuh>

#include <random>

#include "support/executors.cuh"
#include "support/expect_says.hpp"

namespace {

using namespace suture;
using support::device_array;

// Ragged tiles, more than fit the arguments of one kernel.
struct tiles {
  std::vector<grid> grids;
  std::vector<std::vector<std::uint8_t>> data;
  std::vector<device_array<std::uint8_t>> copies;
  std::int64_t channels;

  tiles(std::int64_t n, std::int64_t with_channels, bool ragged = true) : channels(with_channels) {
    std::mt19937 random(11);
    for (std::int64_t i = 0; i < n; ++i) {
      const extent3 size = !ragged  ? extent3{1, 40, 33}
                           : i == 3 ? extent3{1, 97, 300}
                           : i == 4 ? extent3{1, 1, 1}
                                    : extent3{1, 1 + i * 7 % 37, 1 + i * 5 % 41};
      grids.push_back({.extents = size});
      std::vector<std::uint8_t> v(static_cast<std::size_t>(channels * grids.back().voxels()));
      for (auto& b : v) b = i == 6 ? std::uint8_t{200} : static_cast<std::uint8_t>(random() % 256);
      copies.emplace_back(v);
      data.push_back(std::move(v));
    }
  }
  std::vector<view<const std::uint8_t>> views(bool device) {
    std::vector<view<const std::uint8_t>> v;
    for (std::size_t i = 0; i < grids.size(); ++i) {
      const std::uint8_t* at = device ? copies[i].data() : data[i].data();
      v.push_back(i % 2 != 0 ? contiguous(at, grids[i], channels) : channels_last(at, grids[i], channels));
    }
    return v;
  }
};

TEST(SharpnessDevice, GivesTheBitsOfTheHost) {
  for (const std::int64_t channels : {1, 3}) {
    tiles t(70, channels);
    std::vector<sharpness> host(70);
    fit(cpu{}, fit_sharpness{}, t.views(false), everything{}, std::span(host));
    device_array<sharpness> results(std::vector<sharpness>(70));
    const cuda_workspace workspace(workspace_bytes(fit_sharpness{}, t.views(true)));
    fit(cuda{.workspace = workspace}, fit_sharpness{}, t.views(true), everything{},
        std::span<sharpness>(results.data(), 70));
    EXPECT_EQ(results.values(), host);
    EXPECT_EQ(host[6].status, fit_status::constant);
  }
}

TEST(SharpnessDevice, IsCapturedInAGraph) {
  tiles t(5, 3, false);
  std::vector<sharpness> host(5);
  fit(cpu{}, fit_sharpness{}, t.views(false), everything{}, std::span(host));
  device_array<sharpness> results(std::vector<sharpness>(5));
  const auto views = t.views(true);
  const cuda_workspace workspace(workspace_bytes(fit_sharpness{}, views));
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreate(&stream), "test");
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "test");
  fit(cuda{stream, workspace}, fit_sharpness{}, views, everything{}, std::span<sharpness>(results.data(), 5));
  cudaGraph_t graph = nullptr;
  check_cuda(cudaStreamEndCapture(stream, &graph), "test");
  cudaGraphExec_t run = nullptr;
  check_cuda(cudaGraphInstantiate(&run, graph, 0), "test");
  for (int i = 0; i < 2; ++i) {
    check_cuda(cudaGraphLaunch(run, stream), "test");
    check_cuda(cudaStreamSynchronize(stream), "test");
    EXPECT_EQ(results.values(), host);
  }
  cudaGraphExecDestroy(run);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

TEST(SharpnessDevice, BadInput) {
  tiles t(3, 3, false);
  const auto views = t.views(true);
  device_array<sharpness> results(std::vector<sharpness>(3));
  const std::span<sharpness> all(results.data(), 3);
  const cuda_workspace workspace(workspace_bytes(fit_sharpness{}, views));
  EXPECT_SAYS(fit(cuda{.workspace = workspace}, fit_sharpness{}, views, everything{}, all.first(2)), "2 results");
  EXPECT_SAYS(fit(cuda{}, fit_sharpness{}, views, everything{}, all), "workspace");
  auto mixed = views;
  mixed[2].channels = 1;
  EXPECT_SAYS(fit(cuda{.workspace = workspace}, fit_sharpness{}, mixed, everything{}, all), "3 in the first tile");
}

}  // namespace
