// SPDX-License-Identifier: Apache-2.0
// A fit and the operation that applies it, queued one after the other on a device: the bits of the CPU.
#include <gtest/gtest.h>

#include <random>
#include <suture/suture.cuh>
#include <vector>

#include "support/device_array.cuh"
#include "support/expect_says.hpp"

namespace {

using namespace suture;
using support::device_array;

// Fits two ragged samples of two channels and applies the result ahead of a resampling, on either side.
template <class Fit, class MakeOperation>
void expect_same(const Fit& how, const MakeOperation& operation) {
  const std::vector<grid> grids{{.extents = {3, 6, 10}, .spacing = {2, 1, 1}}, {.extents = {2, 5, 33}}};
  std::vector<std::vector<std::int16_t>> values;
  std::vector<device_array<std::int16_t>> device_values;
  std::vector<view<const std::int16_t>> here, there;
  std::mt19937 random(5);
  for (const grid& g : grids) {
    std::vector<std::int16_t> v(static_cast<std::size_t>(2 * g.voxels()));
    for (auto& x : v) x = static_cast<std::int16_t>(random() % 3 == 0 ? 0 : static_cast<int>(random() % 1500) - 700);
    values.push_back(v);
    device_values.emplace_back(v);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    here.push_back(contiguous(static_cast<const std::int16_t*>(values[i].data()), grids[i], 2));
    there.push_back(contiguous(static_cast<const std::int16_t*>(device_values[i].data()), grids[i], 2));
  }
  using result = typename Fit::result;
  std::vector<result> fitted(4);
  fit(cpu{}, how, here, nonzero{}, std::span(fitted));
  device_array<result> device_fitted(4);

  const auto geometry = resample{.spacing_mm = {1, 1, 1}} | center_crop{{2, 4, 9}};
  const std::size_t n = 2 * 2 * 2 * 4 * 9;
  const auto host_plan = plan(operation(fitted) | geometry | operation(fitted), here);
  const auto device_plan = plan(operation(device_fitted.span()) | geometry | operation(device_fitted.span()), there);
  const auto outputs = host_plan.output_grids();
  std::vector<float> out(n);
  run(cpu{}, host_plan, image(here, batch_views(out.data(), std::span<const grid>(outputs), 2)));

  device_array<float> device_out(n);
  const auto out_views = batch_views(device_out.data(), std::span<const grid>(outputs), 2);
  cuda_workspace fit_memory(workspace_bytes(how, there)), memory(workspace_bytes(device_plan, image(there, out_views)));
  cudaStream_t stream;
  check_cuda(cudaStreamCreate(&stream), "stream");
  fit(cuda{stream, fit_memory}, how, there, nonzero{}, device_fitted.span());
  run(cuda{stream, memory}, device_plan, image(there, out_views));
  check_cuda(cudaStreamSynchronize(stream), "stream");
  cudaStreamDestroy(stream);
  const std::vector<float> found = device_out.values();
  int differ = 0;
  for (std::size_t i = 0; i < n; ++i) differ += float_bits(found[i]) != float_bits(out[i]) ? 1 : 0;
  EXPECT_EQ(differ, 0) << "of " << n;
  EXPECT_NE(*std::max_element(out.begin(), out.end()), *std::min_element(out.begin(), out.end()));
}

TEST(apply_device, z_score) {
  expect_same(fit_moments{}, [](std::span<const moments> m) { return z_score{.fitted = m, .channels = 2}; });
  expect_same(fit_moments{.ddof = 1}, [](std::span<const moments> m) { return z_score{m, 2, true}; });
}
TEST(apply_device, percentile_scale) {
  expect_same(fit_range{.lower = 1, .upper = 99}, [](std::span<const intensity_range> r) {
    return percentile_scale{.fitted = r, .channels = 2, .b_min = -1, .b_max = 2, .clip = false};
  });
  expect_same(fit_range{},
              [](std::span<const intensity_range> r) { return min_max_scale{.fitted = r, .channels = 2}; });
}
TEST(apply_device, limit_to_range) {
  expect_same(fit_range{.lower = 20, .upper = 70},
              [](std::span<const intensity_range> r) { return limit_to_range{.fitted = r, .channels = 2}; });
}
TEST(apply_device, histogram_match) {
  expect_same(fit_landmarks<4>{{1, 40, 70, 99}, {0, 10, 60, 100}},
              [](std::span<const landmark_map<4>> m) { return histogram_match<4>{.fitted = m, .channels = 2}; });
}

// As docs/operations.md shows it: nothing is waited for between the fit and what reads it.
TEST(apply_device, fits_and_applies_in_one_stream) {
  const grid g{.extents = {5, 7, 9}};
  std::vector<float> values(static_cast<std::size_t>(4 * g.voxels()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 5 == 0 ? 0 : i * 37 % 501);
  const device_array<float> device_values(values);
  device_array<float> out(values.size());
  device_array<moments> results(4);
  const std::vector mris{contiguous(static_cast<const float*>(device_values.data()), g, 4)};
  const std::vector normalized{contiguous(out.data(), g, 4)};
  cudaStream_t stream;
  check_cuda(cudaStreamCreate(&stream), "stream");
  const std::span<suture::moments> fitted = results.span();
  // `mris` and `fitted` are in device memory, four results for each image.
  const suture::cuda_workspace fit_memory(suture::workspace_bytes(suture::fit_moments{}, mris));
  suture::fit(suture::cuda{stream, fit_memory}, suture::fit_moments{}, mris, suture::nonzero{}, fitted);

  const auto pipeline = suture::z_score{.fitted = fitted, .channels = 4, .nonzero = true};
  const auto plan = suture::plan(pipeline, mris);
  const auto pair = suture::image(mris, normalized);
  const suture::cuda_workspace memory(suture::workspace_bytes(plan, pair));
  suture::run(suture::cuda{stream, memory}, plan, pair);  // in the same stream, behind the fit
  check_cuda(cudaStreamSynchronize(stream), "stream");
  const std::vector host{contiguous(static_cast<const float*>(values.data()), g, 4)};
  std::vector<moments> on_host(4);
  fit(cpu{}, fit_moments{}, host, nonzero{}, std::span(on_host));
  std::vector<float> expected(values.size());
  run(cpu{}, suture::plan(z_score{.fitted = on_host, .channels = 4, .nonzero = true}, host),
      image(host, std::vector{contiguous(expected.data(), g, 4)}));
  EXPECT_EQ(out.values(), expected);

  // Results that are not of the image's channels are told before a launch here too.
  const auto one = suture::plan(z_score{.fitted = fitted}, mris);
  EXPECT_SAYS(run(cuda{stream, memory}, one, pair), "z_score: sample 0: 4 fitted results given");
  cudaStreamDestroy(stream);
}

}  // namespace
