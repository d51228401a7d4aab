// SPDX-License-Identifier: Apache-2.0
// Fits on the device leave the bits of the CPU, whatever the batch, and can be captured in a graph.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <suture/fit/fingerprint.hpp>
#include <suture/fit/fit.cuh>
#include <vector>

#include "support/device_array.cuh"
#include "support/launches.cuh"

namespace {

using namespace suture;
using support::device_array;

grid box(std::int64_t z, std::int64_t y, std::int64_t x) {
  grid g;
  g.extents = {z, y, x};
  return g;
}

// The elements of a dense array (channel, z, y, x) as (channel, x, y, z), and a view whose array lies so.
template <class T>
std::vector<T> across(const std::vector<T>& from, const extent3& n) {
  std::vector<T> to(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto v = static_cast<std::int64_t>(i);
    const std::int64_t x = v % n[2], y = v / n[2] % n[1], z = v / n[2] / n[1] % n[0], channel = v / n[2] / n[1] / n[0];
    to[static_cast<std::size_t>(((channel * n[2] + x) * n[1] + y) * n[0] + z)] = from[i];
  }
  return to;
}
template <class T>
view<T> across(view<T> v) {
  v.stride = {1, v.grid.extents[0], v.grid.extents[0] * v.grid.extents[1]};
  return v;
}

// A batch of ragged two-channel images with a label map each, on both sides; on the device the first lies across.
template <class T>
struct batch {
  std::vector<grid> grids{box(3, 9, 41), box(1, 2, 1100), box(1, 1, 1)};
  std::vector<std::vector<T>> values;
  std::vector<std::vector<std::int16_t>> labels;
  std::vector<device_array<T>> device_values;
  std::vector<device_array<std::int16_t>> device_labels;
  std::vector<view<const T>> host, device;
  std::vector<view<const std::int16_t>> host_maps, device_maps;

  batch() {
    std::mt19937 random(3);
    std::normal_distribution<float> tissue(40, 60);
    for (const grid& g : grids) {
      const auto n = static_cast<std::size_t>(g.voxels());
      std::vector<T> v(2 * n);
      for (std::size_t i = 0; i < v.size(); ++i) {
        const auto kind = random() % 10;
        float x = kind < 4 ? 0 : kind < 9 ? tissue(random) : static_cast<float>(random() % 20000) - 9000;
        if constexpr (std::is_same_v<T, float>) {
          if (i % 97 == 5) x = std::numeric_limits<float>::quiet_NaN();
          if (i % 89 == 7) x = 1e-30f * tissue(random);
        }
        v[i] = storage<T>::store(x);
      }
      std::vector<std::int16_t> l(n);
      for (auto& x : l) x = static_cast<std::int16_t>(static_cast<int>(random() % 7) - 1);
      values.push_back(v);
      labels.push_back(l);
    }
    for (std::size_t i = 0; i < grids.size(); ++i) {
      device_values.emplace_back(i == 0 ? across(values[i], grids[i].extents) : values[i]);
      device_labels.emplace_back(i == 0 ? across(labels[i], grids[i].extents) : labels[i]);
      host.push_back(contiguous(static_cast<const T*>(values[i].data()), grids[i], 2));
      device.push_back(contiguous(static_cast<const T*>(device_values[i].data()), grids[i], 2));
      host_maps.push_back(contiguous(static_cast<const std::int16_t*>(labels[i].data()), grids[i]));
      device_maps.push_back(contiguous(static_cast<const std::int16_t*>(device_labels[i].data()), grids[i]));
    }
    device[0] = across(device[0]);
    device_maps[0] = across(device_maps[0]);
  }
};

template <class Fit, class T, class OnHost, class OnDevice>
void expect_same(const Fit& how, const batch<T>& b, const OnHost& on_host, const OnDevice& on_device) {
  SCOPED_TRACE(std::string(Fit::name) + " of " + std::string(storage_name<T>()) + (how.pooled ? ", pooled" : ""));
  const std::size_t groups = b.grids.size() * (how.pooled ? 1 : 2);
  std::vector<typename Fit::result> expected(groups);
  fit(cpu{}, how, b.host, on_host, std::span(expected));
  device_array<typename Fit::result> results(groups);
  cuda_workspace workspace(workspace_bytes(how, b.device));
  fit(cuda{nullptr, workspace}, how, b.device, on_device, results.span());
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto found = results.values();
  for (std::size_t g = 0; g < groups; ++g) EXPECT_EQ(found[g], expected[g]) << "group " << g;
}

template <class T>
class fit_device : public testing::Test {};
using stored_types = testing::Types<std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, float>;
TYPED_TEST_SUITE(fit_device, stored_types);

TYPED_TEST(fit_device, leaves_the_bits_of_the_cpu) {
  const batch<TypeParam> b;
  const everything all;
  expect_same(fit_moments{.ddof = 1}, b, all, all);
  expect_same(fit_moments{.pooled = true}, b, labeled(b.host_maps, {{1, 3}, 4}), labeled(b.device_maps, {{1, 3}, 4}));
  expect_same(fit_percentiles<4>{{.5, 33.3, 50, 99.5}}, b, nonzero{}, nonzero{});
  expect_same(fit_range{.lower = 1, .upper = 99, .pooled = true}, b, inside(b.host_maps), inside(b.device_maps));
  expect_same(fit_landmarks<3>{{1, 50, 99}, {0, 50, 100}}, b, above{10}, above{10});
  expect_same(fit_otsu{}, b, all, all);
  expect_same(fit_otsu{.pooled = true}, b, above{1e30f}, above{1e30f});  // nothing
}

// Every sample of a batch is in the same launches.
TEST(fit_device_batch, does_not_show_in_the_launches) {
  const device_array<float> values(3 * 5 * 70);
  const auto launches_of = [&](const auto& how, std::size_t samples) {
    using result = typename std::remove_cvref_t<decltype(how)>::result;
    const std::vector<view<const float>> images(samples,
                                                contiguous<const float>(values.data(), grid{.extents = {3, 5, 70}}));
    const device_array<result> results(samples);
    const cuda_workspace workspace(workspace_bytes(how, images));
    return support::launches([&](cudaStream_t stream) {
      fit(cuda{stream, workspace}, how, images, everything{}, results.span());
    });
  };
  for (const std::size_t samples : {1, 2, 100}) {
    EXPECT_EQ(launches_of(fit_moments{}, samples), 4u) << samples;
    EXPECT_EQ(launches_of(fit_range{.lower = 1, .upper = 99}, samples), 8u) << samples;
    EXPECT_EQ(launches_of(fit_otsu{}, samples), 6u) << samples;
  }
}

TEST(fit_device_batch, opencv_rule) {
  expect_same(fit_otsu{.rule = otsu_rule::opencv}, batch<std::uint8_t>(), everything{}, everything{});
}

TEST(fit_device_batch, histograms_become_fingerprints) {
  const batch<std::int16_t> b;
  const auto here = labeled(b.host_maps, {{1, 3}, 4}), there = labeled(b.device_maps, {{1, 3}, 4});
  device_array<histogram_counts<std::int16_t>> results(6);
  const fit_histogram<std::int16_t> how;
  cuda_workspace workspace(workspace_bytes(how, b.device));
  fit(cuda{nullptr, workspace}, how, b.device, there, results.span());
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto counts = results.values();
  std::vector<histogram_counts<std::int16_t>> expected(6);
  fit(cpu{}, how, b.host, here, std::span(expected));
  cohort_fingerprint from_host, from_device;
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<value_counts> channels;
    for (std::size_t c = 0; c < 2; ++c) {
      const histogram h(counts[2 * i + c]);
      EXPECT_EQ(h, histogram(expected[2 * i + c]));
      channels.emplace_back(h);
    }
    const std::string name = "case " + std::to_string(i);
    from_device.add({name, b.grids[i].extents, b.grids[i].spacing}, channels);
    from_host.add(cpu{}, name, b.host[i], b.host_maps[i], {{1, 3}, 4});
  }
  EXPECT_EQ(from_device, from_host);
}

// More counters than shared memory holds, and more samples than one launch of records carries.
TEST(fit_device_batch, many_percentiles_of_many_samples) {
  std::vector<float> values(40 * 60);
  std::mt19937 random(11);
  for (float& v : values) v = std::ldexp(static_cast<float>(random()), static_cast<int>(random() % 60) - 60);
  const device_array<float> device(values);
  std::vector<view<const float>> here, there;
  for (int i = 0; i < 40; ++i) {
    here.push_back(contiguous(static_cast<const float*>(values.data()) + 60 * i, box(3, 4, 5)));
    there.push_back(contiguous(static_cast<const float*>(device.data()) + 60 * i, box(3, 4, 5)));
  }
  const fit_percentiles<9> how{{0, 10, 20, 30, 45, 60, 75, 90, 100}};
  std::vector<percentiles<9>> expected(40);
  fit(cpu{}, how, here, everything{}, std::span(expected));
  device_array<percentiles<9>> results(40);
  cuda_workspace workspace(workspace_bytes(how, there));
  fit(cuda{nullptr, workspace}, how, there, everything{}, results.span());
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(results.values(), expected);
}

TEST(fit_device_batch, a_fit_is_captured_in_a_graph_and_replayed) {
  batch<float> b;
  std::vector<intensity_range> expected(6);
  fit(cpu{}, fit_range{.lower = 1, .upper = 99}, b.host, nonzero{}, std::span(expected));
  device_array<intensity_range> results(6);
  cuda_workspace workspace(workspace_bytes(fit_range{}, b.device));
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  check_cuda(cudaStreamCreate(&stream), "stream");
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
  fit(cuda{stream, workspace}, fit_range{.lower = 1, .upper = 99}, b.device, nonzero{}, results.span());
  check_cuda(cudaStreamEndCapture(stream, &graph), "capture");
  check_cuda(cudaGraphInstantiate(&executable, graph, 0), "capture");
  for (int replay = 0; replay < 2; ++replay) {
    check_cuda(cudaMemsetAsync(workspace.span().data(), 0x5a, workspace.span().size(), stream), "memset");
    check_cuda(cudaGraphLaunch(executable, stream), "replay");
    check_cuda(cudaStreamSynchronize(stream), "replay");
    EXPECT_EQ(results.values(), expected);
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

TEST(fit_device_batch, errors_come_before_any_launch) {
  const batch<float> b;
  device_array<moments> results(6);
  cuda_workspace workspace(workspace_bytes(fit_moments{}, b.device));
  const cuda exec{nullptr, workspace};
  EXPECT_THROW(fit(cuda{}, fit_moments{}, b.device, everything{}, results.span()), error);  // no workspace
  EXPECT_THROW(fit(exec, fit_moments{}, b.device, everything{}, results.span().first(5)), error);
  EXPECT_THROW(fit(exec, fit_moments{}, b.device, everything{}, std::span<moments>(static_cast<moments*>(nullptr), 6)),
               error);
  EXPECT_THROW(fit(exec, fit_moments{.ddof = 7}, b.device, everything{}, results.span()), error);
  fit(cuda{}, fit_moments{}, std::vector<view<const float>>{}, everything{}, std::span<moments>{});
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
