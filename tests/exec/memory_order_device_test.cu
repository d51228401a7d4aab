// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs in every order of axes on CUDA, with channels first and last: the bits of the CPU's arrays
// (z, y, x), whose voxels memory_order_test.cpp holds against lone ones.
#include <gtest/gtest.h>
#include <suture/sample/majority.hpp>
#include <suture/suture.cuh>

#include <array>
#include <cstring>

#include "support/executors.cuh"
#include "support/launches.cuh"

namespace {

using namespace suture;

constexpr int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

struct layout {
  int order[3];
  bool channels_last;
};

// A view whose axes lie in memory in this order, the last one densest, with channels before or behind all of them.
template <class T>
view<T> in_order(T* data, const grid& g, std::int64_t channels, const layout& l) {
  view<T> v{data, g, {}, channels, 1};
  std::int64_t step = l.channels_last ? channels : 1;
  for (int j = 2; j >= 0; --j) {
    v.stride[l.order[j]] = step;
    step *= g.extents[l.order[j]];
  }
  if (!l.channels_last) v.channel_stride = step;
  return v;
}

// The elements of one layout in another.
template <class T>
std::vector<T> laid_out(const std::vector<T>& from, const grid& g, std::int64_t channels, const layout& of,
                        const layout& as) {
  std::vector<T> to(from.size());
  const auto a = in_order(from.data(), g, channels, of);
  const auto b = in_order(to.data(), g, channels, as);
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t z = 0; z < g.extents[0]; ++z)
      for (std::int64_t y = 0; y < g.extents[1]; ++y)
        for (std::int64_t x = 0; x < g.extents[2]; ++x)
          b.data[c * b.channel_stride + z * b.stride[0] + y * b.stride[1] + x * b.stride[2]] =
              a.data[c * a.channel_stride + z * a.stride[0] + y * a.stride[1] + x * a.stride[2]];
  return to;
}

constexpr layout plain{{0, 1, 2}, false};
const grid volume{.extents = {19, 38, 43}};

template <class T>
std::pair<std::vector<T>, std::vector<std::uint8_t>> voxels_of(std::int64_t channels, const grid& from = volume) {
  const auto n = static_cast<std::size_t>(from.voxels());
  std::vector<T> values(n * static_cast<std::size_t>(channels));
  std::vector<std::uint8_t> classes(n);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = storage<T>::store(static_cast<float>(mix64(i) % 1000) - 500);
  for (std::size_t i = 0; i < n; ++i) classes[i] = static_cast<std::uint8_t>(mix64(i / 3) % 4);
  return {values, classes};
}

// An image and its labels, both as (z, y, x) when they come and go.
template <class Executor, class T, class Pipeline>
std::pair<std::vector<float>, std::vector<std::uint8_t>> through(const Pipeline& pipeline, std::int64_t channels,
                                                                 const layout& in_layout, const layout& out_layout,
                                                                 const layout& seg_layout, const grid& from = volume) {
  const auto [values, classes] = voxels_of<T>(channels, from);
  const std::uint64_t id = 5;
  const auto p = plan(pipeline, std::span(&from, 1), {.seed = 3, .sample_ids = {&id, 1}});
  const grid& to = p.output_grid(0);
  const auto m = static_cast<std::size_t>(to.voxels());
  typename Executor::template buffer<T> in(laid_out(values, from, channels, plain, in_layout));
  typename Executor::template buffer<std::uint8_t> seg(laid_out(classes, from, 1, plain, seg_layout));
  typename Executor::template buffer<float> out(std::vector<float>(m * static_cast<std::size_t>(channels), -1));
  typename Executor::template buffer<std::uint8_t> seg_out(std::vector<std::uint8_t>(m, 0xab));
  Executor::run(
      p, image(in_order<const T>(in.data(), from, channels, in_layout), in_order(out.data(), to, channels, out_layout)),
      labels(in_order<const std::uint8_t>(seg.data(), from, 1, seg_layout),
             in_order(seg_out.data(), to, 1, seg_layout)));
  return {laid_out(out.values(), to, channels, out_layout, plain),
          laid_out(seg_out.values(), to, 1, seg_layout, plain)};
}

template <class T, class Pipeline>
void expect_the_bits_of_the_cpu(const Pipeline& pipeline, std::int64_t channels, const grid& from = volume) {
  const auto host = through<support::host_executor, T>(pipeline, channels, plain, plain, plain, from);
  const auto check = [&](const layout& in, const layout& out, const layout& seg) {
    SCOPED_TRACE(testing::Message() << "in " << in.order[0] << in.order[1] << in.order[2] << " out " << out.order[0]
                                    << out.order[1] << out.order[2] << " labels " << seg.order[0] << seg.order[1]
                                    << seg.order[2]);
    const auto device = through<support::device_executor, T>(pipeline, channels, in, out, seg, from);
    EXPECT_EQ(std::memcmp(device.first.data(), host.first.data(), host.first.size() * sizeof(float)), 0) << "image";
    EXPECT_TRUE(device.second == host.second) << "labels";
  };
  for (int i = 0; i < 6; ++i)
    for (const bool last : {false, true}) {
      if (last && channels == 1) continue;
      const auto as = [&](int k) {
        const int(&o)[3] = orders[(i + k) % 6];
        return layout{{o[0], o[1], o[2]}, last};
      };
      const layout map{{orders[i][0], orders[i][1], orders[i][2]}, false};
      check(as(0), as(0), map);
      check(as(1), as(0), {{orders[(i + 5) % 6][0], orders[(i + 5) % 6][1], orders[(i + 5) % 6][2]}, false});
    }
}

const auto displaced = random_elastic{.control_spacing_mm = 16, .max_displacement_mm = 5};

TEST(MemoryOrderOnDevice, PointwiseOperations) {
  expect_the_bits_of_the_cpu<std::int16_t>(brightness{1.5f} | contrast{1.2f}, 2);
  expect_the_bits_of_the_cpu<std::int16_t>(random_bias_field{} | gaussian_noise{.sigma = 3}, 1);
}

TEST(MemoryOrderOnDevice, CropsAndFlips) {
  const auto moves = random_crop{.size = {17, 33, 35}} | random_flip{.axis_probability = {1, 0, 1}};
  expect_the_bits_of_the_cpu<std::int16_t>(window{.center = 0, .width = 400} | moves, 1);
  const auto noisy = [](const extent3& size) {
    return random_crop{.size = size} | random_flip{.axis_probability = {1, 0, 1}} | gaussian_noise{.sigma = 3};
  };
  for (const extent3& size : {extent3{17, 33, 35}, {17, 33, 36}})  // normals are made alone, or by fours
    expect_the_bits_of_the_cpu<float>(noisy(size), 2);
  expect_the_bits_of_the_cpu<float>(pad_to{.size = {30, 50, 60}} | random_crop{.size = {28, 45, 55}} |
                                        sampling<linear, constant, nearest>{.border = {.value = -5}},
                                    1);
  expect_the_bits_of_the_cpu<float>(moves | sampling<catmull_rom, mirror, vote>{}, 1);
}

TEST(MemoryOrderOnDevice, Moves) {
  const auto rule = sampling<linear, constant, vote>{.border = {.value = 7}};
  expect_the_bits_of_the_cpu<std::int16_t>(resample{.spacing_mm = {1.3, .8, 1.1}} | rule, 1);
  expect_the_bits_of_the_cpu<std::uint8_t>(random_affine{.rotate_deg = 25} | rule, 2);
  for (const std::int64_t channels : {1, 2}) expect_the_bits_of_the_cpu<float>(displaced, channels);
}

// Where lanes run along z, columns of one channel run along y of the source.
TEST(MemoryOrderOnDevice, Resampling) {
  const auto moves = resample{.spacing_mm = {.7, 1.6, 1.3}} | random_flip{.axis_probability = {1, 1, 0}};
  for (const std::int64_t channels : {1, 2})
    expect_the_bits_of_the_cpu<std::int16_t>(window{.center = 0, .width = 400} | moves, channels);
  expect_the_bits_of_the_cpu<float>(moves | sampling<linear, mirror, vote>{}, 1);
  expect_the_bits_of_the_cpu<float>(moves | sampling<linear, wrap, majority>{}, 1);
  expect_the_bits_of_the_cpu<float>(random_affine{.rotate_deg = {0, 25, 0}} |
                                        sampling<linear, constant, vote>{.border = {.value = -5}} |
                                        gaussian_noise{.sigma = 3},
                                    1);
}

TEST(MemoryOrderOnDevice, OperationsLeftOfMovesThatAskWhereTheyStand) {
  expect_the_bits_of_the_cpu<float>(random_bias_field{} | random_affine{.rotate_deg = 25}, 2);
  expect_the_bits_of_the_cpu<float>(gaussian_noise{.sigma = 3} | random_flip{.axis_probability = {1, 0, 1}}, 1);
}

TEST(MemoryOrderOnDevice, Colors) {
  const random_flip flip{.axis_probability = {1, 0, 1}};
  const random_color_jitter jitter{};
  const random_coarse_dropout boxes{.holes = 3, .size = {3, 5, 7}};
  for (const grid& from : {volume, grid{.extents = {1, 38, 43}}}) {
    expect_the_bits_of_the_cpu<std::uint8_t>(jitter | boxes, 3, from);
    expect_the_bits_of_the_cpu<std::uint8_t>(flip | jitter, 3, from);
    expect_the_bits_of_the_cpu<std::uint8_t>(jitter | flip | boxes, 3, from);
    expect_the_bits_of_the_cpu<std::uint8_t>(random_affine{.rotate_deg = 25} | jitter, 3, from);
  }
}

TEST(MemoryOrderOnDevice, Stages) {
  const random_crop crop{.size = {17, 33, 35}};
  expect_the_bits_of_the_cpu<std::int16_t>(crop | gaussian_blur{.sigma = {.6f, .8f, .4f}} | brightness{1.5f}, 1);
  expect_the_bits_of_the_cpu<std::int16_t>(crop | gaussian_blur{.sigma = {2.5f, 1.2f, 1.7f}}, 1);
  expect_the_bits_of_the_cpu<std::int16_t>(gaussian_blur{.sigma = {.5f, 2.2f, 3.1f}, .kernel = blur_kernel::monai}, 1);
  expect_the_bits_of_the_cpu<std::int16_t>(
      crop | gaussian_noise{.sigma = 3} | random_gaussian_blur{.sigma = {.5f, 2}} | gaussian_noise{.sigma = 3}, 2);
  expect_the_bits_of_the_cpu<float>(crop | sharpen{} | random_patch_contrast{}, 1);
  expect_the_bits_of_the_cpu<std::int16_t>(crop | random_low_resolution{} | random_patch_gamma{}, 2);
  expect_the_bits_of_the_cpu<std::int16_t>(
      crop | median_filter{} | gaussian_noise{.sigma = 3} | random_low_resolution{}, 1);
  expect_the_bits_of_the_cpu<std::int16_t>(random_affine{.rotate_deg = 25} | median_filter{}, 1);
  expect_the_bits_of_the_cpu<std::int16_t>(
      crop | random_coarse_shuffle{.holes = 5, .size = {4, 9, 11}} | random_patch_gamma{}, 1);
  expect_the_bits_of_the_cpu<std::int16_t>(crop | random_gibbs_ringing{} | random_kspace_spike{}, 1);
}

// Levels of deep supervision beside an output that is moved, all of one order.
TEST(MemoryOrderOnDevice, Levels) {
  const auto classes = voxels_of<std::uint8_t>(1).second;
  const grid levels[2] = {{.extents = {9, 19, 21}}, {.extents = {5, 9, 11}}};
  const std::uint64_t id = 5;
  const auto p = plan(random_affine{.rotate_deg = 25}, std::span(&volume, 1), {.seed = 3, .sample_ids = {&id, 1}});
  const auto made = [&]<class Executor>(Executor, const layout& l) {
    typename Executor::template buffer<std::uint8_t> in(laid_out(classes, volume, 1, plain, l));
    typename Executor::template buffer<std::uint8_t> out(std::vector<std::uint8_t>(classes.size(), 0xab));
    typename Executor::template buffer<std::uint8_t> first(
        std::vector<std::uint8_t>(static_cast<std::size_t>(levels[0].voxels()), 0xab));
    typename Executor::template buffer<std::uint8_t> second(
        std::vector<std::uint8_t>(static_cast<std::size_t>(levels[1].voxels()), 0xab));
    Executor::run(
        p, labels(in_order<const std::uint8_t>(in.data(), volume, 1, l), in_order(out.data(), volume, 1, l),
                  deep_supervision(in_order(first.data(), levels[0], 1, l), in_order(second.data(), levels[1], 1, l))));
    return std::array{laid_out(out.values(), volume, 1, l, plain), laid_out(first.values(), levels[0], 1, l, plain),
                      laid_out(second.values(), levels[1], 1, l, plain)};
  };
  const auto host = made(support::host_executor{}, plain);
  for (const auto& o : orders)
    EXPECT_TRUE(made(support::device_executor{}, {{o[0], o[1], o[2]}, false}) == host) << o[0] << o[1] << o[2];
}

// Captured for arrays (z, y, x), whose blocks would not reach all voxels of the others.
template <class Pipeline>
void expect_one_graph_for_every_order(const Pipeline& pipeline) {
  const auto host = through<support::host_executor, float>(pipeline, 1, plain, plain, plain);
  const auto [values, classes] = voxels_of<float>(1);
  const std::uint64_t id = 5;
  const auto p = plan(pipeline, std::span(&volume, 1), {.seed = 3, .sample_ids = {&id, 1}});
  const support::device_array<float> out(values.size());
  const support::device_array<std::uint8_t> seg(classes), seg_out(classes.size());
  const auto label_pair =
      labels(in_order<const std::uint8_t>(seg.data(), volume, 1, plain), in_order(seg_out.data(), volume, 1, plain));
  const auto image_pair = [&](const float* in, const layout& l) {
    return image(in_order<const float>(in, volume, 1, l), in_order(out.data(), volume, 1, l));
  };
  const support::device_array<float> first(values);
  const cuda_workspace workspace(workspace_bytes(p, image_pair(first.data(), plain), label_pair));
  support::captured_work graph([&](cudaStream_t stream) {
    run_loaded(cuda{stream, workspace}, p, image_pair(first.data(), plain), label_pair);
  });
  for (const auto& o : orders) {
    SCOPED_TRACE(testing::Message() << o[0] << o[1] << o[2]);
    const layout l{{o[0], o[1], o[2]}, false};
    const support::device_array<float> in(laid_out(values, volume, 1, plain, l));
    check_cuda(cudaMemset(out.data(), 0xa5, out.size() * sizeof(float)), "clear");
    check_cuda(cudaMemset(seg_out.data(), 0xa5, seg_out.size()), "clear");
    load(cuda{graph.stream(), workspace}, p, image_pair(in.data(), l), label_pair);
    graph.launch();
    EXPECT_TRUE(laid_out(out.values(), volume, 1, l, plain) == host.first) << "image";
    EXPECT_TRUE(seg_out.values() == host.second) << "labels";
  }
}

TEST(MemoryOrderOnDevice, OneGraphServesEveryOrder) {
  expect_one_graph_for_every_order(displaced);
  expect_one_graph_for_every_order(gaussian_blur{.sigma = {.6f, .8f, .4f}} | random_patch_gamma{});
}

}  // namespace
