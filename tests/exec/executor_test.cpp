// SPDX-License-Identifier: Apache-2.0
// Threads, batch splits and layouts of memory never change a bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "digest/host.hpp"
#include "support/aligned_memory.hpp"
#include "support/expect_says.hpp"

namespace {

using namespace digest_test;
using support::aligned_memory;

// The CT recipe of a set of seven samples.
auto recipe() {
  const extent3 patch{19, 24, 26};
  return window{.center = 40, .width = 400} | resample{.spacing_mm = {1.5, 1, 1}} |
         random_affine{.rotate_deg = 15, .scale = {.85f, 1.25f}, .probability = .6f} |
         random_elastic{.control_spacing_mm = 14, .max_displacement_mm = 4, .probability = .6f} | pad_to{patch} |
         random_crop{.size = patch} | random_gamma{.probability = .5f} | gaussian_noise{.probability = .5f} |
         cast<half>{};
}

cases seven_samples() {
  cases data;
  for (std::size_t i = 3; i < 7; ++i) {
    data.grids.push_back(data.grids[i - 3]);
    data.images.push_back(data.images[i - 3]);
    data.labels.push_back(data.labels[i - 3]);
    data.ids.push_back(1000 + i);
  }
  return data;
}

std::vector<std::size_t> first_to(std::size_t n) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

TEST(executor, bits_do_not_depend_on_threads) {
  const cases data = seven_samples();
  line one{"one"};
  add_batch(data, recipe(), first_to(7), 1, one);
  for (int threads = 2; threads <= 8; ++threads) {
    line many{"many"};
    add_batch(data, recipe(), first_to(7), threads, many);
    EXPECT_EQ(many.images, one.images) << threads << " threads";
    EXPECT_EQ(many.labels, one.labels) << threads << " threads";
  }
}

#if defined(__SSE__) && defined(_OPENMP)
TEST(executor, bits_do_not_depend_on_the_float_mode_of_its_threads) {
  const auto set_others = [](unsigned mode) {
#pragma omp parallel num_threads(8)
    if (omp_get_thread_num() != 0) _mm_setcsr(mode);
  };
  const auto flushing = [] {
    int threads = 0;
#pragma omp parallel num_threads(8) reduction(+ : threads)
    threads += (_mm_getcsr() & 0x8040) == 0x8040 ? 1 : 0;
    return threads;
  };
  set_others(_mm_getcsr() | 0x8040);  // subnormal numbers are 0
  const int before = flushing();      // with LLVM's OpenMP none, as its threads take the mode of the caller
  std::vector<float> sums(800);
  suture::detail::parallel_for(8, 800, [&](std::int64_t i) {
    const volatile float small = 1e-39f;
    float sum = 0;
    for (int j = 0; j < 10000; ++j) sum = small + small;  // long enough for every thread to have some
    sums[static_cast<std::size_t>(i)] = sum;
  });
  EXPECT_EQ(std::count(sums.begin(), sums.end(), 2 * 1e-39f), 800);
  EXPECT_EQ(flushing(), before);
  set_others(_mm_getcsr());
}
#endif

TEST(executor, bits_do_not_depend_on_batch_size) {
  const cases data = seven_samples();
  line whole{"whole"};
  add_batch(data, recipe(), first_to(7), 1, whole);
  for (std::size_t size = 1; size < 7; ++size) {
    line split{"split"};
    for (std::size_t first = 0; first < 7; first += size) {
      std::vector<std::size_t> batch;
      for (std::size_t i = first; i < std::min<std::size_t>(first + size, 7); ++i) batch.push_back(i);
      add_batch(data, recipe(), batch, 1, split);
    }
    EXPECT_EQ(split.images, whole.images) << "batches of " << size;
    EXPECT_EQ(split.labels, whole.labels) << "batches of " << size;
  }
}

TEST(executor, bits_do_not_depend_on_the_order_of_samples) {
  const cases data = seven_samples();
  line forward{"forward"}, shuffled{"shuffled"};
  add_batch(data, recipe(), first_to(7), 1, forward);
  add_batch(data, recipe(), {4, 0, 6, 2, 5, 1, 3}, 2, shuffled);
  EXPECT_EQ(shuffled.images, forward.images);
  EXPECT_EQ(shuffled.labels, forward.labels);
}

TEST(executor, seed_epoch_and_sample_id_change_the_bits) {
  const cases data;
  const auto once = [&](std::uint64_t seed, std::uint32_t epoch, std::uint64_t id) {
    const std::vector<view<const std::int16_t>> in{contiguous(data.images[0].data(), data.grids[0])};
    const std::uint64_t ids[] = {id};
    const auto p = plan(recipe(), in, {.seed = seed, .epoch = epoch, .sample_ids = ids});
    std::vector<half> out(static_cast<std::size_t>(p.output_grid(0).voxels()));
    const std::vector<view<half>> views{contiguous(out.data(), p.output_grid(0))};
    run(cpu{}, p, image(in, views));
    return digest(views[0]);
  };
  const std::uint64_t base = once(1, 0, 7);
  EXPECT_EQ(once(1, 0, 7), base);
  EXPECT_NE(once(2, 0, 7), base);
  EXPECT_NE(once(1, 1, 7), base);
  EXPECT_NE(once(1, 0, 8), base);
}

TEST(executor, inserting_another_kind_of_operation_shifts_no_draw) {
  const cases data;
  const std::vector<view<const std::int16_t>> in{contiguous(data.images[1].data(), data.grids[1])};
  const std::uint64_t ids[] = {9};
  const settings s{.seed = 3, .sample_ids = ids};
  const auto a = plan(random_crop{.size = {9, 9, 9}} | gaussian_noise{}, in, s);
  const auto b =
      plan(random_flip{.probability = 0} | random_crop{.size = {9, 9, 9}} | random_gamma{} | gaussian_noise{}, in, s);
  EXPECT_EQ(a.geometry(0).to_source.offset, b.geometry(0).to_source.offset);
}

TEST(executor, strides_of_any_layout_give_the_same_values) {
  const cases data;
  const grid g = data.grids[0];
  const auto n = static_cast<std::size_t>(g.voxels());
  // Channels last, and rows padded to 64 elements.
  std::vector<std::int16_t> last(2 * n), padded(static_cast<std::size_t>(2 * g.extents[0] * g.extents[1] * 64));
  for (std::size_t v = 0; v < n; ++v)
    for (std::size_t c = 0; c < 2; ++c) {
      last[2 * v + c] = data.images[0][c * n + v];
      const auto row = v / static_cast<std::size_t>(g.extents[2]), x = v % static_cast<std::size_t>(g.extents[2]);
      padded[(c * static_cast<std::size_t>(g.extents[0] * g.extents[1]) + row) * 64 + x] = data.images[0][c * n + v];
    }
  const view<const std::int16_t> first_view = contiguous(data.images[0].data(), g, 2);
  const view<const std::int16_t> last_view = channels_last<const std::int16_t>(last.data(), g, 2);
  view<const std::int16_t> padded_view = contiguous<const std::int16_t>(padded.data(), g, 2);
  padded_view.stride = {g.extents[1] * 64, 64, 1};
  padded_view.channel_stride = g.extents[0] * g.extents[1] * 64;
  const std::uint64_t ids[] = {1};
  std::vector<std::uint64_t> digests;
  for (const auto& in : {first_view, last_view, padded_view}) {
    const std::vector<view<const std::int16_t>> ins{in};
    const auto p = plan(recipe(), ins, {.seed = 1, .sample_ids = ids});
    const grid& o = p.output_grid(0);
    std::vector<half> out(2 * static_cast<std::size_t>(o.voxels())), out_last(out.size());
    const std::vector<view<half>> out_first{contiguous(out.data(), o, 2)};
    const std::vector<view<half>> out_channels_last{channels_last(out_last.data(), o, 2)};
    run(cpu{}, p, image(ins, out_first));
    run(cpu{}, p, image(ins, out_channels_last));
    digests.push_back(digest(out_first[0]));
    digests.push_back(digest(out_channels_last[0]));
  }
  for (std::uint64_t d : digests) EXPECT_EQ(d, digests[0]);
}

TEST(executor, an_evaluator_needs_no_output_memory) {
  const cases data;
  const std::vector<view<const std::int16_t>> in{contiguous(data.images[0].data(), data.grids[0])};
  const std::vector<view<const std::uint8_t>> seg{contiguous(data.labels[0].data(), data.grids[0])};
  const std::uint64_t ids[] = {1};
  const auto p = plan(recipe(), in, {.seed = 1, .sample_ids = ids});
  const extent3 n = p.output_grid(0).extents;
  std::vector<half> out(static_cast<std::size_t>(p.output_grid(0).voxels()));
  std::vector<std::uint8_t> seg_out(out.size());
  const std::vector<view<half>> out_views{contiguous(out.data(), p.output_grid(0))};
  const std::vector<view<std::uint8_t>> seg_views{contiguous(seg_out.data(), p.output_grid(0))};
  run(cpu{}, p, image(in, out_views), labels(seg, seg_views));

  const auto images = image<half>(in);
  const auto masks = labels(seg);
  const aligned_memory workspace(workspace_bytes(p, images, masks));
  const auto evaluate = prepare(cpu{.workspace = workspace.span()}, p, images, masks);
  std::size_t v = 0;
  for (std::int32_t z = 0; z < n[0]; ++z)
    for (std::int32_t y = 0; y < n[1]; ++y)
      for (std::int32_t x = 0; x < n[2]; ++x, ++v) {
        ASSERT_EQ(evaluate(0, z, y, x).bits, out[v].bits);
        ASSERT_EQ(evaluate.get<1>(0, z, y, x), seg_out[v]);
      }
  EXPECT_THROW(run(cpu{}, p, images), error);
}

// Noise before a rotation is computed once for each voxel of the source, in memory of prepare() that is freed at its end.
TEST(executor, an_evaluator_points_to_no_memory_of_prepare) {
  const cases data;
  const std::vector<view<const std::int16_t>> in{contiguous(data.images[0].data(), data.grids[0])};
  const std::uint64_t ids[] = {1};
  const auto p = plan(gaussian_noise{.probability = 1} | random_affine{.rotate_deg = 15, .probability = 1} |
                          center_crop{.size = {9, 9, 9}} | gaussian_blur{.sigma = 1},
                      in, {.seed = 1, .sample_ids = ids});
  std::vector<float> out(9 * 9 * 9);
  const std::vector<view<float>> out_views{contiguous(out.data(), p.output_grid(0))};
  run(cpu{}, p, image(in, out_views));
  const auto images = image<float>(in);
  const aligned_memory workspace(workspace_bytes(p, images));
  const auto evaluate = prepare(cpu{.workspace = workspace.span()}, p, images);
  EXPECT_EQ(evaluate.records[0].processed[0].data, nullptr);
  std::size_t v = 0;
  for (std::int32_t z = 0; z < 9; ++z)
    for (std::int32_t y = 0; y < 9; ++y)
      for (std::int32_t x = 0; x < 9; ++x, ++v) ASSERT_EQ(evaluate(0, z, y, x), out[v]);
}

// NumPy gives an axis of one voxel whatever stride it likes.
TEST(executor, an_axis_of_one_voxel_may_have_any_stride) {
  std::vector<float> voxels(20 * 30);
  for (std::size_t i = 0; i < voxels.size(); ++i) voxels[i] = static_cast<float>(i * i % 97);
  const grid g{.extents = {1, 20, 30}};
  const std::uint64_t ids[] = {1};
  std::vector<float> outs[3];
  const std::int64_t strides[] = {600, (std::int64_t{1} << 31) - 8, std::int64_t{1} << 57};
  for (int k = 0; k < 3; ++k) {
    view<const float> in = contiguous<const float>(voxels.data(), g);
    in.stride[0] = strides[k];
    const std::vector ins{in};
    const auto p = plan(affine{.rotate_deg = {12, 0, 0}} | sampling<catmull_rom, constant>{}, ins, {.sample_ids = ids});
    outs[k].resize(600);
    const std::vector out{contiguous(outs[k].data(), p.output_grid(0))};
    run(cpu{}, p, image(ins, out));
    const auto images = image<float>(ins);
    const aligned_memory workspace(workspace_bytes(p, images));
    const auto evaluate = prepare(cpu{.workspace = workspace.span()}, p, images);
    for (std::int32_t y = 0; y < 20; ++y)
      for (std::int32_t x = 0; x < 30; ++x)
        ASSERT_EQ(evaluate(0, 0, y, x), outs[k][static_cast<std::size_t>(30 * y + x)]);
    EXPECT_EQ(outs[k], outs[0]);
  }
}

TEST(executor, refuses_planes_of_too_many_coefficients) {
  const grid g{.extents = {1, 16384, 16384}};
  float one = 0;
  const std::vector in{contiguous<const float>(&one, g)};
  const auto p = plan(affine{.rotate_deg = {12, 0, 0}} | center_crop{{1, 1, 1}} | sampling<cubic_bspline, edge>{}, in);
  float result = 0;
  const std::vector out{contiguous(&result, p.output_grid(0))};
  EXPECT_SAYS(run(cpu{}, p, image(in, out)),
              "image: sample 0: a plane of 16384 x 16384 voxels has more than 2^28 B-spline coefficients");
}

}  // namespace
