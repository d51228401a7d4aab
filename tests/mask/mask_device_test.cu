// SPDX-License-Identifier: Apache-2.0
// Masks on the device: the same bytes as on the host, whose results the host tests prove.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "support/device_array.cuh"
#include "support/launches.cuh"
#include "suture/mask/body_mask.hpp"
#include "suture/mask/bounding_box.hpp"
#include "suture/mask/gray_morphology.hpp"
#include "suture/mask/loops.cuh"
#include "suture/mask/mask_image.hpp"
#include "suture/mask/tissue_mask.hpp"

namespace {

using bytes = std::vector<std::uint8_t>;
using suture::connectivity;
template <class T>
using device = support::device_array<T>;

// Random values, smoothed along x so that runs have some length.
std::vector<std::int16_t> image_of(const suture::extent3& n, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<std::int16_t> v(static_cast<std::size_t>(n[0] * n[1] * n[2]));
  int last = 0;
  for (auto& x : v) x = static_cast<std::int16_t>(last = (last * 3 + static_cast<int>(engine() % 2001) - 1000) / 4);
  return v;
}

const suture::extent3 sizes[] = {{1, 1, 1}, {3, 7, 1}, {2, 5, 16}, {1, 30, 70}, {4, 9, 127}, {3, 6, 130}};

// Two samples at once, the second of another size.
template <class T, class Out, class Result, class Operation>
void compare(const Operation& operation) {
  for (const suture::extent3& n : sizes) {
    const suture::grid grids[2] = {{.extents = n}, {.extents = {2, 6, 65}}};
    std::vector<suture::view<const T>> host_in, device_in;
    std::vector<suture::view<Out>> host_out, device_out;
    std::vector<std::vector<T>> in;
    std::vector<std::vector<Out>> out;
    std::vector<device<T>> in_memory;
    std::vector<device<Out>> out_memory;
    for (unsigned i = 0; i < 2; ++i) {
      const auto image = image_of(grids[i].extents, i + static_cast<unsigned>(n[2]));
      std::vector<T> values(image.size());
      for (std::size_t k = 0; k < image.size(); ++k) {
        values[k] = static_cast<T>(std::is_same_v<T, std::uint8_t> ? image[k] > 0 : image[k]);
        if constexpr (std::is_same_v<T, float>)
          if (k % 50 == 7) values[k] = std::nanf("");
      }
      in.push_back(values);
      out.emplace_back(values.size(), Out{77});
      in_memory.emplace_back(values);
      out_memory.emplace_back(out.back());
    }
    for (std::size_t i = 0; i < 2; ++i) {
      host_in.push_back(suture::contiguous<const T>(in[i].data(), grids[i]));
      host_out.push_back(suture::contiguous(out[i].data(), grids[i]));
      device_in.push_back(suture::contiguous<const T>(in_memory[i].data(), grids[i]));
      device_out.push_back(suture::contiguous(out_memory[i].data(), grids[i]));
    }
    std::vector<Result> results(2), nothing(2);
    device<Result> result_memory(nothing);
    const std::size_t needed = 1 << 20;
    const suture::cuda_workspace workspace(needed);
    operation(suture::cpu{1}, host_in, host_out, std::span<Result>(results));
    operation(suture::cuda{.workspace = workspace}, device_in, device_out, std::span<Result>(result_memory.data(), 2));
    suture::check_cuda(cudaDeviceSynchronize(), "test");
    for (std::size_t i = 0; i < 2; ++i)  // as bits, so that a NaN equals itself
      ASSERT_EQ(std::memcmp(out_memory[i].values().data(), out[i].data(), out[i].size() * sizeof(Out)), 0)
          << n << ' ' << i;
    const std::vector<Result> found = result_memory.values();
    ASSERT_EQ(std::memcmp(found.data(), results.data(), 2 * sizeof(Result)), 0) << n;
  }
}

TEST(MaskDevice, Label) {
  for (const auto touching : {connectivity::faces, connectivity::edges, connectivity::corners})
    compare<std::uint8_t, std::int32_t, std::uint32_t>(
        [&](const auto& exec, const auto& in, const auto& out, auto results) {
          suture::label_components(exec, in, out, touching, results);
        });
}

TEST(MaskDevice, LabelSizes) {
  const suture::grid g{.extents = {3, 9, 70}};
  bytes mask;
  for (const auto v : image_of(g.extents, 5)) mask.push_back(v > 200);
  std::vector<std::int32_t> labels(mask.size());
  std::vector<std::uint32_t> sizes_of(50, 9), count(1);
  const std::span<std::uint32_t> room = sizes_of;
  suture::label_components(suture::cpu{1}, suture::contiguous(mask.data(), g), suture::contiguous(labels.data(), g),
                           connectivity::faces, count, {&room, 1});
  device<std::uint8_t> d_mask(mask);
  device<std::int32_t> d_labels(std::vector<std::int32_t>(mask.size(), 0));
  device<std::uint32_t> d_sizes(std::vector<std::uint32_t>(50, 9)), d_count(std::vector<std::uint32_t>(1, 0));
  const std::span<std::uint32_t> d_room(d_sizes.data(), 50);
  const auto view = suture::contiguous<const std::uint8_t>(d_mask.data(), g);
  const suture::cuda_workspace workspace(suture::workspace_bytes(suture::mask_work::label_components{}, view));
  suture::label_components(suture::cuda{.workspace = workspace}, view, suture::contiguous(d_labels.data(), g),
                           connectivity::faces, {d_count.data(), 1}, {&d_room, 1});
  EXPECT_EQ(d_labels.values(), labels);
  EXPECT_EQ(d_count.values(), count);
  EXPECT_EQ(d_sizes.values(), sizes_of);
}

TEST(MaskDevice, LargestAndNotSmall) {
  compare<std::uint8_t, std::uint8_t, suture::largest_component_result>(
      [&](const auto& exec, const auto& in, const auto& out, auto results) {
        suture::keep_largest_component(exec, in, out, connectivity::faces, results);
      });
  compare<std::int16_t, std::uint8_t, std::uint32_t>([&](const auto& exec, const auto& in, const auto& out, auto) {
    suture::remove_small_components(exec, in, out, connectivity::corners, 4);
  });
}

TEST(MaskDevice, FillHoles) {
  for (const auto enclosed : {suture::hole_filling::volume, suture::hole_filling::slices})
    compare<std::uint8_t, std::uint8_t, std::uint32_t>(
        [&](const auto& exec, const auto& in, const auto& out, auto) { suture::fill_holes(exec, in, out, enclosed); });
}

TEST(MaskDevice, Morphology) {
  using suture::element_shape;
  for (const suture::structuring_element& e : {suture::structuring_element{element_shape::box, {1, 2, 5}},
                                               suture::structuring_element{element_shape::cross, {2, 2, 2}},
                                               suture::structuring_element{element_shape::ball, {0, 3, 3}}})
    compare<std::uint8_t, std::uint8_t, std::uint32_t>([&](const auto& exec, const auto& in, const auto& out, auto) {
      suture::binary_opening(exec, in, out, e, true);
      suture::binary_dilation(exec, out, out, e);
      suture::binary_closing(exec, out, out, e);
    });
}

TEST(MaskDevice, GrayMorphology) {
  using suture::element_shape;
  for (const suture::structuring_element& e : {suture::structuring_element{element_shape::box, {1, 2, 5}},
                                               suture::structuring_element{element_shape::cross, {2, 2, 2}},
                                               suture::structuring_element{element_shape::ball, {0, 3, 3}}}) {
    compare<std::int16_t, std::int16_t, std::uint32_t>(
        [&](const auto& exec, const auto& in, const auto& out, auto) { suture::gray_dilation(exec, in, out, e, 900); });
    compare<std::int32_t, std::int32_t, std::uint32_t>(
        [&](const auto& exec, const auto& in, const auto& out, auto) { suture::gray_erosion(exec, in, out, e); });
    compare<float, float, std::uint32_t>(
        [&](const auto& exec, const auto& in, const auto& out, auto) { suture::gray_erosion(exec, in, out, e); });
  }
}

TEST(MaskDevice, BoundingBox) {
  compare<float, std::uint8_t, suture::bounding_box_result>(
      [&](const auto& exec, const auto& in, const auto&, auto results) {
        suture::bounding_box(exec, in, results, 300);
      });
}

TEST(MaskDevice, BodyMask) {
  for (const std::int64_t opening : {0, 1})
    compare<std::int16_t, std::uint8_t, suture::largest_component_result>(
        [&](const auto& exec, const auto& in, const auto& out, auto results) {
          suture::body_mask(exec, in, out, results, {.opening_radius = opening});
        });
}

// Views in every order of axes, of rows and columns that are no whole words: the voxels of the host's (z, y, x).
TEST(MaskDevice, OrdersOfAxes) {
  constexpr int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const suture::extent3& n : {suture::extent3{35, 40, 70}, {3, 64, 32}, {1, 33, 5}, {50, 1, 3}}) {
    const suture::grid g{.extents = n};
    const std::vector<std::int16_t> image = image_of(n, 3);
    bytes expected(image.size());
    suture::largest_component_result size{};
    suture::body_mask(suture::cpu{1}, suture::contiguous(image.data(), g), suture::contiguous(expected.data(), g),
                      {&size, 1});
    // Spread twice, by a cross and by a box, and emptied outside of the body.
    const suture::structuring_element cross{suture::element_shape::cross, {1, 1, 1}};
    const suture::structuring_element box{suture::element_shape::box, {1, 1, 2}};
    std::vector<std::int16_t> once(image.size()), spread(image.size());
    suture::gray_dilation(suture::cpu{1}, suture::contiguous(image.data(), g), suture::contiguous(once.data(), g),
                          cross);
    suture::gray_dilation(suture::cpu{1}, suture::contiguous(once.data(), g), suture::contiguous(spread.data(), g),
                          box);
    suture::mask_image(suture::cpu{1}, suture::contiguous(expected.data(), g), suture::contiguous(spread.data(), g),
                       {.below = 1, .value = -7});
    for (const auto& order : orders) {
      const auto view_of = [&]<class T>(T* data) {
        suture::view<T> v{data, g, {}, 1, 1};
        std::int64_t step = 1;
        for (int j = 2; j >= 0; --j) {
          v.stride[order[j]] = step;
          step *= n[order[j]];
        }
        return v;
      };
      std::vector<std::int16_t> turned(image.size());
      const auto each = [&](const auto& visit) {
        for (std::int64_t z = 0, i = 0; z < n[0]; ++z)
          for (std::int64_t y = 0; y < n[1]; ++y)
            for (std::int64_t x = 0; x < n[2]; ++x, ++i) {
              const auto& stride = view_of(turned.data()).stride;
              visit(static_cast<std::size_t>(i),
                    static_cast<std::size_t>(z * stride[0] + y * stride[1] + x * stride[2]));
            }
      };
      each([&](std::size_t i, std::size_t at) { turned[at] = image[i]; });
      device<std::int16_t> in(turned);
      device<std::uint8_t> out(bytes(image.size(), 77));
      device<suture::largest_component_result> result(1);
      const auto from = view_of(static_cast<const std::int16_t*>(in.data()));
      const suture::cuda_workspace workspace(1 << 21);
      const suture::cuda exec{.workspace = workspace};
      suture::body_mask(exec, from, view_of(out.data()), {result.data(), 1});
      const bytes made = out.values();
      EXPECT_EQ(result.values()[0].voxels, size.voxels);
      device<std::int16_t> d_once(image.size()), d_spread(image.size());
      suture::gray_dilation(exec, from, view_of(d_once.data()), cross);
      suture::gray_dilation(exec, view_of(d_once.data()), view_of(d_spread.data()), box);
      suture::mask_image(exec, view_of(out.data()), view_of(d_spread.data()), {.below = 1, .value = -7});
      const std::vector<std::int16_t> made_image = d_spread.values();
      each([&](std::size_t i, std::size_t at) {
        ASSERT_EQ(made[at], expected[i]) << n << ' ' << order[2] << ' ' << i;
        ASSERT_EQ(made_image[at], spread[i]) << n << ' ' << order[2] << ' ' << i;
      });
    }
  }
}

TEST(MaskDevice, TissueMask) {
  const suture::grid g{.extents = {1, 19, 130}};
  bytes rgb;
  for (const auto v : image_of({1, 19, 390}, 4))
    rgb.push_back(static_cast<std::uint8_t>(v > 100 ? 90 + v % 60 : 220 + v % 9));
  device<std::uint8_t> d_rgb(rgb);
  const auto from = suture::channels_last<const std::uint8_t>(d_rgb.data(), g, 3);
  const suture::cuda_workspace workspace(suture::workspace_bytes(suture::mask_work::tissue_mask{}, from));
  for (const auto rule :
       {suture::tissue_rule::gray, suture::tissue_rule::saturation, suture::tissue_rule::luminosity}) {
    const suture::tissue_mask_options options{.rule = rule, .least_size = 4, .dilation_radius = 2};
    bytes mask(19 * 130, 7);
    suture::tissue_mask_result result{}, found{};
    suture::tissue_mask(suture::cpu{1}, suture::channels_last<const std::uint8_t>(rgb.data(), g, 3),
                        suture::contiguous(mask.data(), g), {&result, 1}, options);
    device<std::uint8_t> d_mask(bytes(mask.size(), 7));
    device<suture::tissue_mask_result> d_result(1);
    suture::tissue_mask(suture::cuda{.workspace = workspace}, from, suture::contiguous(d_mask.data(), g),
                        {d_result.data(), 1}, options);
    EXPECT_EQ(d_mask.values(), mask);
    found = d_result.values()[0];
    EXPECT_EQ(found.threshold, result.threshold);
    EXPECT_EQ(found.pixels, result.pixels);
    EXPECT_EQ(found.status, result.status);
    EXPECT_GT(found.pixels, 100u);
  }
}

// Ragged masks, as many as wanted, in device memory.
struct many {
  std::vector<device<std::int16_t>> in_memory;
  std::vector<device<std::uint8_t>> out_memory;
  std::vector<std::vector<std::int16_t>> images;
  std::vector<suture::view<const std::int16_t>> in;
  std::vector<suture::view<std::uint8_t>> out;

  explicit many(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const suture::grid g{.extents = {1 + i % 3, 5 + i % 7, 20 + 9 * i}};
      images.push_back(image_of(g.extents, static_cast<unsigned>(i)));
      in_memory.emplace_back(images.back());
      out_memory.emplace_back(images.back().size());
      in.push_back(suture::contiguous<const std::int16_t>(in_memory.back().data(), g));
      out.push_back(suture::contiguous(out_memory.back().data(), g));
    }
  }
};

// Every sample of a batch is in the same launches, whatever their number and sizes.
TEST(MaskDevice, LaunchesDoNotDependOnTheBatch) {
  const auto expect_launches = [](std::size_t expected, const auto& operation) {
    for (const std::int64_t count : {1, 2, 17}) {
      const many m(count);
      const suture::cuda_workspace workspace(std::size_t{1} << 20);
      const std::size_t found = support::launches([&](cudaStream_t stream) {
        operation(suture::cuda{stream, workspace}, m);
      });
      EXPECT_EQ(found, expected) << count << " samples";
    }
  };
  device<suture::largest_component_result> largest(17);
  device<suture::bounding_box_result> boxes(17);
  const auto results_of = [](const auto& memory, const many& m) { return memory.span().first(m.in.size()); };
  expect_launches(
      12, [&](const auto& exec, const many& m) { suture::body_mask(exec, m.in, m.out, results_of(largest, m)); });
  expect_launches(14, [&](const auto& exec, const many& m) {
    suture::body_mask(exec, m.in, m.out, results_of(largest, m), {.opening_radius = 1});
  });
  expect_launches(9, [&](const auto& exec, const many& m) {
    suture::keep_largest_component(exec, m.in, m.out, connectivity::corners, results_of(largest, m));
  });
  expect_launches(5, [](const auto& exec, const many& m) { suture::fill_holes(exec, m.in, m.out); });
  expect_launches(4, [](const auto& exec, const many& m) { suture::binary_opening(exec, m.in, m.out); });
  expect_launches(4, [&](const auto& exec, const many& m) { suture::bounding_box(exec, m.in, results_of(boxes, m)); });
}

// A loop that one sample leaves out is still one launch for the others: images of one channel and of two.
TEST(MaskDevice, BatchesOfDifferentLoops) {
  const suture::grid g{.extents = {2, 5, 70}};
  const auto values = image_of({2, 10, 70}, 3);
  const device<std::int16_t> memory(values);
  std::vector<suture::view<const std::int16_t>> here, there;
  for (const std::int64_t channels : {1, 2, 1, 2, 1}) {
    here.push_back(suture::contiguous(values.data(), g, channels));
    there.push_back(suture::contiguous<const std::int16_t>(memory.data(), g, channels));
  }
  std::vector<suture::bounding_box_result> expected(5);
  suture::bounding_box(suture::cpu{1}, here, expected, 400);
  const device<suture::bounding_box_result> results(5);
  const suture::cuda_workspace workspace(suture::workspace_bytes(suture::mask_work::bounding_box{}, there));
  const auto work = [&](cudaStream_t stream) {
    suture::bounding_box(suture::cuda{stream, workspace}, there, results.span(), 400);
  };
  EXPECT_EQ(support::launches(work), 5u);
  work(nullptr);
  const auto found = results.values();
  EXPECT_EQ(std::memcmp(found.data(), expected.data(), 5 * sizeof(suture::bounding_box_result)), 0);
}

// Workspace for the largest sample alone: the samples take turns, in more launches, and their masks are the same.
TEST(MaskDevice, WorksThroughALargeBatchInASmallWorkspace) {
  const many m(9);
  std::size_t largest = 0;
  for (const auto& v : m.in) largest = std::max(largest, suture::workspace_bytes(suture::mask_work::body_mask{}, v));
  ASSERT_LT(2 * largest, suture::workspace_bytes(suture::mask_work::body_mask{}, m.in));
  const suture::cuda_workspace workspace(largest);
  const device<suture::largest_component_result> results(9);
  suture::body_mask(suture::cuda{.workspace = workspace}, m.in, m.out, results.span());
  for (std::size_t i = 0; i < m.in.size(); ++i) {
    bytes expected(m.images[i].size());
    suture::largest_component_result result{};
    suture::body_mask(suture::cpu{1}, suture::contiguous(m.images[i].data(), m.in[i].grid),
                      suture::contiguous(expected.data(), m.in[i].grid), {&result, 1});
    EXPECT_EQ(m.out_memory[i].values(), expected) << i;
    EXPECT_EQ(results.values()[i].voxels, result.voxels) << i;
  }
}

// One graph, replayed: nothing is allocated, copied or waited for on the way.
TEST(MaskDevice, CanBeCaptured) {
  const suture::grid g{.extents = {3, 8, 70}};
  const auto image = image_of(g.extents, 11);
  bytes expected(image.size());
  suture::largest_component_result result{};
  suture::body_mask(suture::cpu{1}, suture::contiguous(image.data(), g), suture::contiguous(expected.data(), g),
                    {&result, 1});
  device<std::int16_t> in(image);
  device<std::uint8_t> out(bytes(image.size(), 7));
  device<suture::largest_component_result> results(1);
  const auto from = suture::contiguous<const std::int16_t>(in.data(), g);
  const suture::cuda_workspace workspace(suture::workspace_bytes(suture::mask_work::body_mask{}, from));
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  suture::check_cuda(cudaStreamCreate(&stream), "test");
  suture::check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "test");
  suture::body_mask(suture::cuda{stream, workspace}, from, suture::contiguous(out.data(), g), {results.data(), 1});
  suture::check_cuda(cudaStreamEndCapture(stream, &graph), "test");
  suture::check_cuda(cudaGraphInstantiate(&ready, graph, 0), "test");
  for (int i = 0; i < 2; ++i) suture::check_cuda(cudaGraphLaunch(ready, stream), "test");
  suture::check_cuda(cudaStreamSynchronize(stream), "test");
  EXPECT_EQ(out.values(), expected);
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

TEST(MaskDevice, WorkspaceIsCheckedBeforeALaunch) {
  const suture::grid g{.extents = {2, 3, 4}};
  device<std::uint8_t> in(bytes(24, 1)), out(bytes(24, 7));
  EXPECT_THROW(suture::fill_holes(suture::cuda{}, suture::contiguous<const std::uint8_t>(in.data(), g),
                                  suture::contiguous(out.data(), g)),
               suture::error);
  EXPECT_EQ(out.values(), bytes(24, 7));
}

}  // namespace
