// SPDX-License-Identifier: Apache-2.0
// A fit of a user's own on a device: the bits of the CPU, for any batch.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fit/one_pass_fit.hpp"
#include "support/device_array.cuh"
#include "support/expect_says.hpp"
#include "suture/fit/one_pass.cuh"
#include "suture/image/digest.hpp"

namespace {

using namespace suture;
using one_pass_test::fit_share_above;
using support::device_array;

template <class T>
void expect_the_bits_of_the_cpu(bool pooled) {
  const grid grids[] = {
      {.extents = {5, 31, 127}}, {.extents = {1, 1, 1}}, {.extents = {2, 3, 1500}}, {.extents = {17, 70, 130}}};
  std::vector<std::vector<T>> values;
  std::vector<device_array<T>> on_device;
  std::vector<view<const T>> host, device;
  for (const grid& g : grids) {
    std::vector<T> v(static_cast<std::size_t>(2 * g.voxels()));
    for (std::size_t i = 0; i < v.size(); ++i)
      v[i] = static_cast<T>(static_cast<int>(mix64(i + values.size()) % 200) - 100);
    values.push_back(v);
    on_device.emplace_back(v);
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    host.push_back(contiguous<const T>(values[i].data(), grids[i], 2));
    device.push_back(contiguous<const T>(on_device[i].data(), grids[i], 2));
  }
  const fit_share_above how{.level = 12, .pooled = pooled};
  std::vector<double> expected(pooled ? 4 : 8);
  fit(cpu{}, how, host, nonzero{}, std::span(expected));
  device_array<double> found(std::vector<double>(expected.size(), -1));
  const cuda_workspace memory(workspace_bytes(how, device));
  fit(suture::cuda{.workspace = memory}, how, device, nonzero{}, std::span(found.data(), expected.size()));
  check_cuda(cudaDeviceSynchronize(), "fit");
  EXPECT_EQ(found.values(), expected);
  EXPECT_GT(expected[0], 0.3);
}

TEST(OnePassFit, LeavesTheBitsOfTheCpu) {
  expect_the_bits_of_the_cpu<std::int16_t>(false);
  expect_the_bits_of_the_cpu<float>(false);
  expect_the_bits_of_the_cpu<float>(true);
}

TEST(OnePassFit, RefusesMemoryOfTheHost) {
  const grid g{.extents = {4, 6, 8}};
  std::vector<float> values(192, 1.5f);
  std::vector<std::uint8_t> mask(192, 1);
  const device_array<float> on_device(values);
  const device_array<std::uint8_t> device_mask(mask);
  const auto two = [&](const auto* first, const auto* second) {
    return std::vector{contiguous(first, g), contiguous(second, g)};
  };
  const auto images = two(on_device.data(), on_device.data());
  const auto masks = two(device_mask.data(), std::as_const(mask).data());
  const fit_share_above how{.level = 1};
  const cuda_workspace memory(workspace_bytes(how, images));
  const suture::cuda on{nullptr, memory};
  device_array<double> found(std::vector<double>(2));
  std::vector<double> on_host(2);
  const std::span<double> to(found.data(), 2);
  EXPECT_SAYS(fit(on, how, two(on_device.data(), std::as_const(values).data()), everything{}, to),
              "fit_share_above: sample 1: image: pointer ");
  EXPECT_SAYS(fit(on, how, images, inside(masks), to), "fit_share_above: sample 1: map: pointer ");
  EXPECT_SAYS(fit(on, how, images, everything{}, std::span(on_host)), "fit_share_above: results: pointer ");
}

}  // namespace
