// SPDX-License-Identifier: Apache-2.0
// Stain fits on the device leave the bits of the CPU: tiles, images together, rounds for other machines, in a graph.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <suture/fit/macenko.cuh>
#include <suture/fit/macenko_modes.hpp>
#include <suture/image/digest.hpp>
#include <vector>

#include "support/device_array.cuh"
#include "support/expect_says.hpp"
#include "support/launches.cuh"
#include "support/stained_tile.hpp"

namespace {

using namespace suture;

grid plane(std::int64_t y, std::int64_t x) { return {.extents = {1, y, x}}; }

template <class T>
struct stained_batch {
  std::vector<grid> grids{plane(61, 70), plane(3, 1100), plane(1, 1), plane(40, 40), plane(17, 16), plane(25, 31)};
  std::vector<std::vector<T>> values;
  std::vector<std::vector<std::int16_t>> labels;
  std::vector<std::unique_ptr<support::device_array<T>>> device_values;
  std::vector<std::unique_ptr<support::device_array<std::int16_t>>> device_labels;
  std::vector<view<const T>> host, device;
  std::vector<view<const std::int16_t>> host_maps, device_maps;

  stained_batch() {
    for (std::size_t i = 0; i < grids.size(); ++i) {
      const grid& g = grids[i];
      const bool planar = i % 2 != 0;
      auto bytes = i == 3   ? std::vector<std::uint8_t>(static_cast<std::size_t>(3 * g.voxels()), 255)  // glass
                   : i == 4 ? support::gray_tile(g)
                            : support::stained_tile(g, 100 + i, .6);
      std::vector<T> v;
      for (std::int64_t k = 0; k < 3 * g.voxels(); ++k) {
        const auto at = planar ? k % g.voxels() * 3 + k / g.voxels() : k;
        float x = bytes[static_cast<std::size_t>(at)];
        if constexpr (!std::is_same_v<T, std::uint8_t>) {
          x = x / 255 + .0003f * static_cast<float>(mix64(static_cast<std::uint64_t>(k)) % 13);
          if (k % 997 == 5) x = std::numeric_limits<float>::quiet_NaN();
          if (k % 1009 == 5) x = 1.7f;
        }
        v.push_back(storage<T>::store(x));
      }
      std::vector<std::int16_t> l;
      for (std::int64_t k = 0; k < g.voxels(); ++k)
        l.push_back(static_cast<std::int16_t>(static_cast<int>(mix64(static_cast<std::uint64_t>(k)) % 7) - 1));
      values.push_back(v);
      labels.push_back(l);
      device_values.push_back(std::make_unique<support::device_array<T>>(v));
      device_labels.push_back(std::make_unique<support::device_array<std::int16_t>>(l));
      const auto view_of = [&](const T* data) { return planar ? contiguous(data, g, 3) : channels_last(data, g, 3); };
      host.push_back(view_of(values.back().data()));
      device.push_back(view_of(device_values.back()->data()));
      host_maps.push_back(contiguous(static_cast<const std::int16_t*>(labels.back().data()), g));
      device_maps.push_back(contiguous(static_cast<const std::int16_t*>(device_labels.back()->data()), g));
    }
  }
};

template <class T, class OnHost, class OnDevice>
void expect_same(fit_macenko how, const stained_batch<T>& b, const OnHost& on_host, const OnDevice& on_device) {
  how.full_scale = std::is_same_v<T, std::uint8_t> ? 255.0f : 1.0f;
  const std::size_t groups = how.together ? 1 : b.grids.size();
  std::vector<stain_basis> expected(groups);
  fit(cpu{}, how, b.host, on_host, std::span(expected));
  support::device_array<stain_basis> results{std::vector<stain_basis>(groups)};
  const cuda_workspace workspace(workspace_bytes(how, b.device));
  fit(cuda{nullptr, workspace}, how, b.device, on_device, std::span(results.data(), groups));
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto found = results.values();
  for (std::size_t g = 0; g < groups; ++g) EXPECT_TRUE(found[g] == expected[g]) << "result " << g;
  EXPECT_EQ(expected[0].status, stain_status::ok);
}

template <class T>
class macenko_device : public testing::Test {};
using tile_types = testing::Types<std::uint8_t, float>;
TYPED_TEST_SUITE(macenko_device, tile_types);

TYPED_TEST(macenko_device, leaves_the_bits_of_the_cpu) {
  const stained_batch<TypeParam> b;
  const everything all;
  expect_same(fit_macenko{}, b, all, all);
  expect_same(fit_macenko{.fallback = stain_fallback::given}, b, labeled(b.host_maps, {{1, 2, 3}, 5}),
              labeled(b.device_maps, {{1, 2, 3}, 5}));
  expect_same(fit_macenko{.together = true}, b, all, all);
  expect_same(fit_macenko{.refinements = 3, .together = true}, b, all, all);
  expect_same(fit_macenko{.centered = false, .concentrations_of_all = true, .together = true}, b, inside(b.host_maps),
              inside(b.device_maps));
}

TYPED_TEST(macenko_device, leaves_the_bits_of_the_cpu_in_every_mode) {
  const stained_batch<TypeParam> b;
  const everything all;
  for (const macenko_mode& m : {macenko::torchstain_torch, macenko::matlab, macenko::monai, macenko::cucim,
                                macenko::staintools, macenko::tiatoolbox, macenko::vahadane})
    expect_same(m.fit, b, all, all);
}

TEST(macenko_device_rounds, merge_with_those_of_the_host) {
  const stained_batch<std::uint8_t> b;
  const fit_macenko how{.together = true};
  stain_basis expected;
  fit(cpu{}, how, b.host, everything{}, std::span(&expected, 1));

  macenko_search search(how);
  support::device_array<macenko_counts> counts{std::vector<macenko_counts>(1)};
  const std::vector<view<const std::uint8_t>> here(b.device.begin(), b.device.begin() + 2);
  const cuda_workspace workspace(workspace_bytes(fit_macenko_round{search}, here));
  while (!search.done()) {
    fit(cuda{nullptr, workspace}, fit_macenko_round{search}, here, everything{}, std::span(counts.data(), 1));
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (std::size_t i = 2; i < b.host.size(); ++i) search.add(cpu{}, b.host[i]);
    search.add_counts(counts.values()[0]);
    search.advance();
  }
  EXPECT_TRUE(search.basis() == expected);
}

TEST(macenko_device, stored_stains_are_the_basis_of_the_fit) {
  const stained_batch<std::uint8_t> b;
  const fit_macenko how{.penalty = .01};
  support::device_array<stain_basis> results{std::vector<stain_basis>(b.grids.size())};
  const cuda_workspace workspace(workspace_bytes(how, b.device));
  fit(cuda{nullptr, workspace}, how, b.device, everything{}, results.span());
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (stain_basis fitted : results.values()) {
    if (fitted.status != stain_status::ok) continue;
    const stain_basis stored = basis_of(reference_of(fitted), how);
    fitted.tally = {};
    fitted.pixels = 0;
    EXPECT_TRUE(stored == fitted);
  }
}

TEST(macenko_device, can_be_captured) {
  const stained_batch<std::uint8_t> b;
  std::vector<stain_basis> expected(b.grids.size());
  fit(cpu{}, fit_macenko{}, b.host, everything{}, std::span(expected));
  support::device_array<stain_basis> results{std::vector<stain_basis>(expected.size())};
  const cuda_workspace workspace(workspace_bytes(fit_macenko{}, b.device));
  const auto queue = [&](cudaStream_t stream) {
    fit(cuda{stream, workspace}, fit_macenko{}, b.device, everything{}, results.span());
  };
  EXPECT_EQ(support::launches(queue), 2u);
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t runs = nullptr;
  check_cuda(cudaStreamCreate(&stream), "stream");
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  queue(stream);
  check_cuda(cudaStreamEndCapture(stream, &graph), "capture");
  check_cuda(cudaGraphInstantiate(&runs, graph, 0), "instantiate");
  check_cuda(cudaGraphLaunch(runs, stream), "launch");
  check_cuda(cudaStreamSynchronize(stream), "run");
  EXPECT_TRUE(results.values() == expected);
  cudaGraphExecDestroy(runs);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

TEST(macenko_device, refuses_bad_input) {
  const stained_batch<std::uint8_t> b;
  support::device_array<stain_basis> results{std::vector<stain_basis>(b.grids.size())};
  EXPECT_SAYS(fit(cuda{}, fit_macenko{}, b.device, everything{}, std::span(results.data(), b.grids.size())),
              "workspace");
  EXPECT_SAYS(fit(cuda{}, fit_macenko{}, b.device, everything{}, std::span(results.data(), 1)), "6 needed");
}

}  // namespace
