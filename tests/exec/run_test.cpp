// SPDX-License-Identifier: Apache-2.0
// What a run is given beside its plan: bad views, workspaces and threads get an error before anything is written.
#include <gtest/gtest.h>
#include <suture/suture.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "support/expect_says.hpp"
#include "support/grid_of.hpp"

namespace {

using namespace suture;
using support::grid_of;

// A good batch of two samples that single tests spoil.
struct batch {
  std::vector<grid> grids{grid_of(8, 9, 10), grid_of(12, 9, 8)};
  std::vector<std::vector<std::int16_t>> in_data, out_data;
  std::vector<std::vector<std::uint8_t>> seg_data, seg_out_data;
  std::vector<view<const std::int16_t>> in;
  std::vector<view<std::int16_t>> out;
  std::vector<view<const std::uint8_t>> seg;
  std::vector<view<std::uint8_t>> seg_out;

  batch() {
    in_data.resize(2);
    out_data.resize(2);
    seg_data.resize(2);
    seg_out_data.resize(2);
    for (std::size_t i = 0; i < 2; ++i) {
      const auto n = static_cast<std::size_t>(grids[i].voxels());
      in_data[i].assign(n, 100);
      out_data[i].assign(n, -7);
      seg_data[i].assign(n, 1);
      seg_out_data[i].assign(n, 77);
      in.push_back(contiguous<const std::int16_t>(in_data[i].data(), grids[i]));
      out.push_back(contiguous(out_data[i].data(), grids[i]));
      seg.push_back(contiguous<const std::uint8_t>(seg_data[i].data(), grids[i]));
      seg_out.push_back(contiguous(seg_out_data[i].data(), grids[i]));
    }
  }

  std::string run_error(cpu exec = {}) {
    const auto p = plan(flip{{true, false, false}} | cast<std::int16_t>{}, grids);
    const std::string said = message([&] { run(exec, p, image(in, out), labels(seg, seg_out)); });
    for (const auto& data : out_data)
      for (std::int16_t v : data) EXPECT_EQ(v, -7) << "an output was written";
    for (const auto& data : seg_out_data)
      for (std::uint8_t v : data) EXPECT_EQ(v, 77) << "an output was written";
    return said;
  }
};

TEST(run, a_good_batch) {
  batch b;
  const auto p = plan(flip{{true, false, false}} | cast<std::int16_t>{}, b.grids);
  run(cpu{}, p, image(b.in, b.out), labels(b.seg, b.seg_out));
  for (const auto& data : b.out_data)
    for (std::int16_t v : data) ASSERT_EQ(v, 100);
}

// Temporary views live as long as the binding and its copies; those with a name are referred to.
TEST(run, with_temporary_views) {
  const grid g = grid_of(3, 4, 5);
  const std::vector<grid> grids{g, g};
  const auto p = plan(flip{.axes = {true, false, true}}, grids);
  std::vector<float> in(120), expected(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  const auto named_in = batch_views<const float>(in.data(), grids);
  const auto named_out = batch_views(expected.data(), grids);
  run(cpu{}, p, image(named_in, named_out));

  std::vector<float> out(in.size());
  const auto expect_as_named = [&](const auto& bound) {
    const auto copy = bound;
    for (const auto* each : {&bound, &copy}) {
      out.assign(out.size(), -1);
      run(cpu{}, p, *each);
      EXPECT_EQ(out, expected);
    }
  };
  expect_as_named(image(batch_views<const float>(in.data(), grids), batch_views(out.data(), grids)));
  expect_as_named(image(batch_views(in.data(), grids), batch_views(out.data(), grids)));
  auto bound = image(named_in, batch_views(out.data(), grids));
  bound = image(batch_views<const float>(in.data(), grids), batch_views(out.data(), grids));
  expect_as_named(bound);
  const auto first = contiguous(out.data(), g), second = contiguous(out.data() + 60, g);
  expect_as_named(image(named_in, std::array{first, second}));
  const auto later = [&] { return image(std::span(named_in), std::vector{first, second}); }();
  expect_as_named(later);

  const auto alone = image(contiguous<const float>(in.data(), g), contiguous(out.data(), g));
  out.assign(out.size(), -1);
  run(cpu{}, plan(flip{.axes = {true, false, true}}, g), alone);
  EXPECT_TRUE(std::equal(out.begin(), out.begin() + 60, expected.begin()));

  std::vector<float> elsewhere(in.size());
  auto named = batch_views(out.data(), grids);
  const auto refers = image(named_in, named);
  for (view<float>& v : named) v.data = elsewhere.data() + (v.data - out.data());
  run(cpu{}, p, refers);
  EXPECT_EQ(elsewhere, expected);
}

TEST(run, null_pointer) {
  batch b;
  b.in[1].data = nullptr;
  expect_parts(b.run_error(), {"image", "sample 1", "input: null pointer"});
  batch c;
  c.seg_out[0].data = nullptr;
  expect_parts(c.run_error(), {"labels", "sample 0", "output: null pointer"});
}

// What `view{.data, .grid}` leaves is no layout.
TEST(run, strides_of_zero) {
  batch b;
  b.out[1].stride = {0, 0, 0};
  expect_parts(b.run_error(), {"image", "sample 1", "output: strides (0, 0, 0)", "contiguous()"});
  batch c;
  c.out[0].stride[1] = 0;
  expect_parts(c.run_error(), {"image", "sample 0", "output: strides"});
  const grid plane = grid_of(1, 3, 1);
  const float voxels[3] = {1, 2, 3};
  float out[3];
  const view<const float> along_y{.data = voxels, .grid = plane, .stride = {0, 1, 0}};
  run(cpu{}, plan(brightness{.offset = 1}, plane), image(along_y, contiguous(out, plane)));
  EXPECT_EQ(out[2], 4.0f);
  const view<float> two{.data = out, .grid = grid_of(1, 1, 1), .channels = 2};
  expect_parts(message([&] { run(cpu{}, plan(brightness{}, two), image(contiguous(voxels, two.grid, 2), two)); }),
               {"image", "channel_stride 0 for 2 channels"});
}

TEST(batch_views, channels_last) {
  const std::vector<grid> grids(2, grid_of(2, 3, 4));
  float memory[2 * 24 * 3];
  const auto views = batch_views_channels_last(memory, grids, 3);
  EXPECT_EQ(views[1].data, memory + 72);
  EXPECT_EQ(views[1].stride, (extent3{36, 12, 3}));
  EXPECT_EQ(views[1].channel_stride, 1);
  EXPECT_EQ(views[1].channels, 3);
  const std::vector<grid> ragged{grid_of(2, 3, 4), grid_of(2, 3, 5)};
  expect_parts(message([&] { batch_views_channels_last(memory, ragged, 1); }),
               {"batch_views_channels_last", "sample 1"});
}

TEST(run, misaligned_pointer) {
  batch b;
  b.in[0].data = reinterpret_cast<const std::int16_t*>(reinterpret_cast<const char*>(b.in[0].data) + 1);
  expect_parts(b.run_error(), {"image", "sample 0", "aligned"});
}

TEST(run, label_map_of_another_geometry) {
  batch b;
  b.seg[1].grid.spacing = {2, 1, 1};
  expect_parts(b.run_error(), {"labels", "sample 1", "(2, 1, 1)"});
  batch c;
  c.seg[0].grid.origin = {0, 5, 0};
  expect_parts(c.run_error(), {"labels", "sample 0", "(0, 5, 0)"});
  batch d;
  d.seg[0].grid.extents = {8, 9, 9};
  expect_parts(d.run_error(), {"labels", "sample 0", "(8, 9, 9)", "Turn or resample the label map"});
  // What differs is what the message shows, however little it is.
  batch e;
  e.seg[0].grid.direction = {{{1, 0, 0}, {0, -1, 0}, {0, 0, 1}}};
  expect_parts(e.run_error(), {"labels", "sample 0", "direction of axis 1 (0, -1, 0), planned (0, 1, 0). Turn or"});
  batch f;
  f.seg[0].grid.origin[1] += 1.0 / 512;
  expect_parts(f.run_error(), {"labels", "sample 0", "origin", "0.00195312 voxels more along axis 1"});
}

// Slices of 5 mm along the x axis of the world, as in a sagittal scan, and turned by 36.9 degrees: the tolerance is a
// thousandth of a voxel along each axis of the array, wherever that points.
TEST(run, label_map_that_is_moved_along_an_axis) {
  const double c = .8, s = .6;
  for (const matrix3& direction :
       {matrix3{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}, matrix3{{{0, 1, 0}, {0, 0, 1}, {1, 0, 0}}},
        matrix3{{{c, 0, -s}, {0, 1, 0}, {s, 0, c}}}})
    for (int axis = 0; axis < 3; ++axis)
      for (const double voxels : {.9e-3, -.9e-3, 1.1e-3, -1.1e-3}) {
        const point3 spacing{5, 1, .25};
        batch b;
        b.grids[0].spacing = b.in[0].grid.spacing = b.seg[0].grid.spacing = spacing;
        b.grids[0].direction = b.in[0].grid.direction = b.seg[0].grid.direction = direction;
        for (int j = 0; j < 3; ++j) b.seg[0].grid.origin[j] += direction[j][axis] * spacing[axis] * voxels;
        const auto p = plan(flip{{true, false, false}} | cast<std::int16_t>{}, b.grids);
        const std::string said = message([&] { run(cpu{}, p, image(b.in, b.out), labels(b.seg, b.seg_out)); });
        if (std::abs(voxels) < 1e-3)
          EXPECT_EQ(said, "no error") << axis << ", " << voxels;
        else
          expect_parts(said,
                       {"labels", "sample 0", "origin", ("voxels more along axis " + std::to_string(axis)).c_str()});
      }
}

// A component far from 0 is stored with a rounding that may amount to more than a thousandth of a voxel.
TEST(run, origins_are_rounded) {
  const double c = .8, s = .6;
  for (const double moved : {3.6e-3, 6e-3}) {
    batch b;
    b.grids[0].direction = {{{c, 0, -s}, {0, 1, 0}, {s, 0, c}}};
    b.grids[0].origin = {4000, 0, 0};
    b.in[0].grid = b.seg[0].grid = b.grids[0];
    b.seg[0].grid.origin[0] += moved;  // .8 of it along axis 0, where 1e-3 + .8 * 4000e-6 voxels are allowed
    const auto p = plan(flip{{true, false, false}} | cast<std::int16_t>{}, b.grids);
    const std::string said = message([&] { run(cpu{}, p, image(b.in, b.out), labels(b.seg, b.seg_out)); });
    if (moved < 4e-3)
      EXPECT_EQ(said, "no error");
    else
      expect_parts(said, {"labels", "sample 0", "voxels more along axis 0"});
  }
}

TEST(run, output_of_wrong_shape) {
  batch b;
  b.out[1].grid.extents = {12, 9, 7};
  expect_parts(b.run_error(), {"image", "sample 1", "(12, 9, 7)", "(12, 9, 8)"});
  batch c;
  c.out[0].channels = 2;
  expect_parts(c.run_error(), {"image", "sample 0", "2 channels"});
}

TEST(run, negative_threads) {
  batch b;
  const auto p = plan(flip{} | cast<std::int16_t>{}, b.grids);
  expect_parts(message([&] { run(cpu{.threads = -3}, p, image(b.in, b.out)); }), {"cpu", "threads -3"});
}

TEST(run, wrong_number_of_views) {
  batch b;
  b.seg.pop_back();
  expect_parts(b.run_error(), {"labels", "1 input views", "2 planned"});
}

TEST(run, wrong_number_of_views_where_coefficients_are_sized) {
  batch b;
  b.in.pop_back();
  const auto p = plan(flip{} | sampling<cubic_bspline, mirror>{} | cast<std::int16_t>{}, b.grids);
  expect_parts(message([&] { run(cpu{}, p, image(b.in, b.out)); }), {"image", "1 input views", "2 planned"});
}

TEST(run, overlapping_input_and_output) {
  batch b;
  b.out[0] = contiguous(b.in_data[0].data() + 5, b.grids[0]);
  b.in_data[0].resize(b.in_data[0].size() + 5);
  b.in[0] = contiguous<const std::int16_t>(b.in_data[0].data(), b.grids[0]);
  b.out[0].data = b.in_data[0].data() + 5;
  expect_parts(b.run_error(), {"image", "sample 0", "overlaps"});
}

TEST(run, two_outputs_that_overlap) {
  batch b;
  b.out[1].data = b.out[0].data + 10;
  b.out_data[0].resize(3000, -7);
  b.out[0].data = b.out_data[0].data();
  b.out[1].data = b.out_data[0].data() + 10;
  expect_parts(b.run_error(), {"image", "overlaps"});
}

// Views of one array may lie among each other. What they are told apart by is held against a list of their elements.
TEST(run, views_that_interleave) {
  std::mt19937 random(3);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<float> memory(4000);
  int shared = 0, apart = 0;
  for (int round = 0; round < 4000; ++round) {
    std::int64_t steps[4] = {1 + below(3), 6 + below(4), 40 + below(20), 300 + below(100)};
    std::shuffle(std::begin(steps), std::end(steps), random);
    const auto part = [&] {
      view<float> v{.data = memory.data() + 1200 + below(800),
                    .grid = grid_of(1 + below(3), 1 + below(4), 1 + below(3)),
                    .stride = {steps[0], steps[1], steps[2]},
                    .channels = 1 + below(2),
                    .channel_stride = steps[3]};
      return v;
    };
    view<float> a = part(), b = part();
    if (round % 3 == 0) a.stride[1] = b.stride[1] = -a.stride[1];
    if (round % 5 == 0) a.stride[2] = 0;
    // Of an axis of one voxel the stride says nothing.
    for (int k = 0; k < 3; ++k)
      if (a.grid.extents[k] == 1) a.stride[k] = below(1000) - 500;
    if (b.channels == 1) b.channel_stride = below(1000);
    const auto elements = [](const view<float>& v) {
      std::set<const float*> all;
      for (std::int64_t c = 0; c < v.channels; ++c)
        for (std::int64_t z = 0; z < v.grid.extents[0]; ++z)
          for (std::int64_t y = 0; y < v.grid.extents[1]; ++y)
            for (std::int64_t x = 0; x < v.grid.extents[2]; ++x)
              all.insert(v.data + c * v.channel_stride + z * v.stride[0] + y * v.stride[1] + x * v.stride[2]);
      return all;
    };
    const auto of_a = elements(a), of_b = elements(b);
    const bool truly = std::any_of(of_a.begin(), of_a.end(), [&](const float* p) { return of_b.count(p) != 0; });
    ASSERT_EQ(detail::share_memory(detail::lattice_of(a), detail::lattice_of(b)), truly) << round;
    (truly ? shared : apart) += 1;
  }
  EXPECT_GT(shared, 100);
  EXPECT_GT(apart, 1000);
  // Columns of one plane, and the same with one twice.
  const grid column = grid_of(1, 4, 1);
  std::vector<float> from(20, 2.0f), to(20, 0.0f);
  std::vector<view<const float>> in;
  std::vector<view<float>> out;
  for (int x = 0; x < 5; ++x) {
    in.push_back({.data = from.data() + x, .grid = column, .stride = {20, 5, 1}});
    out.push_back({.data = to.data() + x, .grid = column, .stride = {20, 5, 1}});
  }
  const auto p = plan(brightness{.offset = 1}, in);
  run(cpu{}, p, image(in, out));
  EXPECT_EQ(to, std::vector<float>(20, 3.0f));
  out[3] = out[1];
  expect_parts(message([&] { run(cpu{}, p, image(in, out)); }), {"image", "overlaps an input or another output"});
}

TEST(run, inputs_may_share_memory) {
  batch b;
  b.in[1].data = b.in[0].data;
  b.in_data[0].resize(5000, 100);
  b.in[0].data = b.in[1].data = b.in_data[0].data();
  const auto p = plan(flip{{true, false, false}} | cast<std::int16_t>{}, b.grids);
  run(cpu{}, p, image(b.in, b.out), labels(b.seg, b.seg_out));
  EXPECT_EQ(b.out_data[1][0], 100);
}

TEST(run, workspace_too_small_or_misaligned) {
  alignas(256) static std::byte memory[1 << 16];
  batch b;
  expect_parts(b.run_error(cpu{.workspace = {memory, 64}}), {"workspace", "64 bytes"});
  expect_parts(b.run_error(cpu{.workspace = {memory + 8, sizeof memory - 8}}), {"workspace", "aligned"});
}

TEST(run, label_outside_that_the_label_type_cannot_hold) {
  batch b;
  const auto p = plan(flip{} | sampling<>{.label_outside = 300} | cast<std::int16_t>{}, b.grids);
  expect_parts(message([&] { run(cpu{}, p, labels(b.seg, b.seg_out)); }), {"labels", "300"});
}

TEST(run, strides_that_overflow) {
  batch b;
  b.in[0].stride[0] = std::int64_t{1} << 62;
  expect_parts(b.run_error(), {"image", "sample 0", "2^58 elements"});
  // Of two voxels, and of one, whose stride nobody needs.
  for (const std::int64_t n : {2, 1}) {
    const grid g = grid_of(n, 2, 2);
    float voxels[8] = {}, out[8];
    auto in = contiguous(voxels, g);
    in.stride[0] = std::numeric_limits<std::int64_t>::min();
    expect_parts(message([&] { run(cpu{}, plan(brightness{}, g), image(in, contiguous(out, g))); }),
                 {"image: sample 0: input: extents", "channel_stride ", "span 2^58 elements or more"});
  }
}

TEST(run, a_wrong_grid_is_named_by_its_role) {
  batch b;
  b.in[0].grid.spacing = {1, -1, 1};
  expect_parts(b.run_error(), {"image: sample 0: input: spacing (1, -1, 1) must be positive"});
}

TEST(views, a_dense_batch_needs_equal_extents) {
  const std::vector<grid> grids{grid_of(4, 4, 4), grid_of(4, 5, 4)};
  float data[1] = {};
  expect_parts(message([&] { batch_views(data, std::span<const grid>(grids)); }), {"sample 1", "(4, 5, 4)"});
}

}  // namespace
