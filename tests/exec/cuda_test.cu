// SPDX-License-Identifier: Apache-2.0
// The CUDA executor: same bits as the CPU, graph capture, the evaluator in a user's kernel, errors before launch.
#include <gtest/gtest.h>
#include <suture/suture.cuh>

#include <cstring>

#include "support/device_array.cuh"
#include "support/expect_says.hpp"
#include "support/launches.cuh"

namespace {

using namespace suture;
using support::device_array;

const extent3 patch{17, 20, 36};

auto recipe() {
  return window{.center = 40, .width = 400} | resample{.spacing_mm = {1.5, 1, 1}} |
         random_affine{.rotate_deg = 15, .scale = {.85f, 1.25f}, .probability = .6f} |
         random_elastic{.control_spacing_mm = 14, .max_displacement_mm = 4, .probability = .6f} | pad_to{patch} |
         random_crop{.size = patch} | random_gamma{.probability = .5f} | gaussian_noise{.probability = .5f} |
         cast<suture::half>{};
}

// Ragged volumes with label maps, on host and device, and where the patches go.
struct dataset {
  std::vector<grid> grids;
  std::vector<std::uint64_t> ids;
  std::vector<std::vector<std::int16_t>> image_data;
  std::vector<std::vector<std::uint8_t>> label_data;
  std::vector<device_array<std::int16_t>> image_device;
  std::vector<device_array<std::uint8_t>> label_device;

  explicit dataset(std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      grid g;
      g.extents = {14 + 3 * static_cast<std::int64_t>(i % 3), 30, 40 - 2 * static_cast<std::int64_t>(i % 5)};
      g.spacing = {2.5, 1, .9};
      grids.push_back(g);
      ids.push_back(100 + 7 * i);
      const auto voxels = static_cast<std::size_t>(g.voxels());
      std::vector<std::int16_t> a(voxels);
      std::vector<std::uint8_t> b(voxels);
      for (std::size_t v = 0; v < voxels; ++v) {
        a[v] = static_cast<std::int16_t>(mix64(v + i) % 500 - 200);
        b[v] = static_cast<std::uint8_t>(v / 9 % 4);
      }
      image_device.emplace_back(a);
      label_device.emplace_back(b);
      image_data.push_back(std::move(a));
      label_data.push_back(std::move(b));
    }
  }
  std::vector<view<const std::int16_t>> images(bool device) const {
    std::vector<view<const std::int16_t>> v;
    for (std::size_t i = 0; i < grids.size(); ++i)
      v.push_back(contiguous<const std::int16_t>(device ? image_device[i].data() : image_data[i].data(), grids[i]));
    return v;
  }
  std::vector<view<const std::uint8_t>> labels_in(bool device) const {
    std::vector<view<const std::uint8_t>> v;
    for (std::size_t i = 0; i < grids.size(); ++i)
      v.push_back(contiguous<const std::uint8_t>(device ? label_device[i].data() : label_data[i].data(), grids[i]));
    return v;
  }
};

struct patches {
  std::vector<std::uint16_t> images;
  std::vector<std::uint8_t> labels;
  bool operator==(const patches&) const = default;
};

template <class Out>
std::vector<std::uint16_t> bits(const std::vector<Out>& v) {
  std::vector<std::uint16_t> b(v.size());
  std::memcpy(b.data(), v.data(), v.size() * sizeof(Out));
  return b;
}

patches on_host(const dataset& d, const settings& s) {
  const auto in = d.images(false);
  const auto seg = d.labels_in(false);
  const auto p = plan(recipe(), in, s);
  const std::vector<grid> out_grids = p.output_grids();
  std::vector<suture::half> out(in.size() * static_cast<std::size_t>(out_grids[0].voxels()));
  std::vector<std::uint8_t> seg_out(out.size());
  const auto out_views = batch_views(out.data(), std::span<const grid>(out_grids));
  const auto seg_views = batch_views(seg_out.data(), std::span<const grid>(out_grids));
  run(cpu{}, p, image(in, out_views), labels(seg, seg_views));
  return {bits(out), seg_out};
}

patches on_device(const std::vector<view<const std::int16_t>>& in, const std::vector<view<const std::uint8_t>>& seg,
                  const settings& s) {
  const auto p = plan(recipe(), in, s);
  const std::vector<grid> out_grids = p.output_grids();
  device_array<__half> out(in.size() * static_cast<std::size_t>(out_grids[0].voxels()));
  device_array<std::uint8_t> seg_out(out.size());
  const auto out_views = batch_views(out.data(), std::span<const grid>(out_grids));
  const auto seg_views = batch_views(seg_out.data(), std::span<const grid>(out_grids));
  cuda_workspace workspace(workspace_bytes(p, image(in, out_views), labels(seg, seg_views)));
  run(suture::cuda{nullptr, workspace}, p, image(in, out_views), labels(seg, seg_views));
  check_cuda(cudaDeviceSynchronize(), "run");
  return {bits(out.values()), seg_out.values()};
}

TEST(cuda, gives_the_bits_of_the_cpu_for_chunks_of_any_size) {
  const dataset d(40);  // records that need more than one upload
  const settings s{.seed = 9, .epoch = 2, .sample_ids = d.ids};
  EXPECT_EQ(on_device(d.images(true), d.labels_in(true), s), on_host(d, s));
}

// More rows than the second dimension of a launch counts tiles.
TEST(cuda, coefficients_of_a_very_long_axis) {
  const grid g{.extents = {1, 524300, 2}};
  const auto chain =
      resample{.spacing_mm = {1, 1.5, 1}} | sampling<cubic_bspline, mirror>{} | center_crop{.size = {1, 40, 2}};
  std::vector<float> x(static_cast<std::size_t>(g.voxels()));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * i % 1009);
  std::vector<float> host(80);
  const auto in_views = contiguous<const float>(x.data(), g);
  const auto p = plan(chain, std::vector{g});
  run(cpu{}, p, image(in_views, contiguous(host.data(), p.output_grid(0))));
  const device_array<float> in(x), out(80);
  const auto pair = image(contiguous<const float>(in.data(), g), contiguous(out.data(), p.output_grid(0)));
  const cuda_workspace workspace(workspace_bytes(p, pair));
  run(suture::cuda{nullptr, workspace}, p, pair);
  EXPECT_EQ(out.values(), host);
}

// How two channels lie in memory, from element `first` on.
struct layout {
  const char* name;
  std::int64_t first;
  extent3 stride;
  std::int64_t channel_stride;

  template <class T>
  view<T> at(T* memory, const grid& g) const {
    return {memory + first, g, stride, 2, channel_stride};
  }
};

std::vector<layout> layouts(const extent3& n) {
  const std::int64_t row = n[2], plane = n[1] * n[2], all = n[0] * plane, wide = (row + 11) / 8 * 8;
  return {{"dense", 0, {plane, row, 1}, all},
          {"from an odd element", 1, {plane, row, 1}, all},
          {"rows of whole pieces", 0, {n[1] * wide, wide, 1}, n[0] * n[1] * wide},
          {"channels last", 0, {2 * plane, 2 * row, 2}, 1},
          {"x backwards", row - 1, {plane, row, -1}, all},
          {"z along the rows", 0, {1, n[0], n[0] * n[1]}, all}};
}

// The whole memory behind an image and a label map of these layouts after a run, on the CPU or the device.
template <class Pipeline>
std::pair<std::vector<std::uint16_t>, std::vector<std::uint8_t>> run_between(const Pipeline& pipeline, const grid& g,
                                                                             const layout& from, const layout& to,
                                                                             bool device) {
  const auto room = static_cast<std::size_t>(2 * g.extents[0] * g.extents[1] * (g.extents[2] + 11) + 1);
  std::vector<std::int16_t> values(room);
  std::vector<std::uint8_t> classes(room);
  for (std::size_t i = 0; i < room; ++i) {
    values[i] = static_cast<std::int16_t>(mix64(i) % 500 - 200);
    classes[i] = static_cast<std::uint8_t>(i / 5 % 4);
  }
  const std::vector<std::uint16_t> untouched(room, 0xabcd);
  const std::vector<std::uint8_t> untouched_labels(room, 0xab);
  const std::uint64_t id = 5;
  const auto planned = plan(pipeline, std::span(&g, 1), {.seed = 3, .sample_ids = {&id, 1}});
  if (!device) {
    std::vector<std::uint16_t> out = untouched;
    std::vector<std::uint8_t> seg_out = untouched_labels;
    run(cpu{}, planned,
        image(from.at<const std::int16_t>(values.data(), g), to.at(reinterpret_cast<suture::half*>(out.data()), g)),
        labels(from.at<const std::uint8_t>(classes.data(), g), to.at(seg_out.data(), g)));
    return {out, seg_out};
  }
  const device_array<std::int16_t> in(values);
  const device_array<std::uint8_t> seg(classes);
  const device_array<std::uint16_t> out(untouched);
  const device_array<std::uint8_t> seg_out(untouched_labels);
  const auto source = from.at<const std::int16_t>(in.data(), g);
  const auto target = to.at(reinterpret_cast<__half*>(out.data()), g);
  const auto source_labels = from.at<const std::uint8_t>(seg.data(), g);
  const auto target_labels = to.at(seg_out.data(), g);
  const auto images = image(source, target);
  const auto label_maps = labels(source_labels, target_labels);
  cuda_workspace workspace(workspace_bytes(planned, images, label_maps));
  run(suture::cuda{nullptr, workspace}, planned, images, label_maps);
  check_cuda(cudaDeviceSynchronize(), "run");
  return {out.values(), seg_out.values()};
}

TEST(cuda, any_layout_is_read_and_written_as_on_the_cpu) {
  const auto pointwise = window{.center = 40, .width = 400} | cast<suture::half>{};
  const auto noisy = window{.center = 40, .width = 400} | gaussian_noise{.sigma = .1f} | cast<suture::half>{};
  const auto turned = window{.center = 40, .width = 400} | random_affine{.rotate_deg = 40} | cast<suture::half>{};
  for (const std::int64_t width : {1, 15, 16, 17, 127}) {
    const grid g{.extents = {3, 5, width}};
    const std::vector<layout> all = layouts(g.extents);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const layout &from = all[i], &to = all[width == 17 ? (i + 1) % all.size() : i];
      SCOPED_TRACE(testing::Message() << width << " wide, " << from.name << " to " << to.name);
      EXPECT_EQ(run_between(pointwise, g, from, to, true), run_between(pointwise, g, from, to, false));
      EXPECT_EQ(run_between(noisy, g, from, to, true), run_between(noisy, g, from, to, false));
      EXPECT_EQ(run_between(turned, g, from, to, true), run_between(turned, g, from, to, false));
    }
  }
}

// Rows of every length, dense or with gaps, from the host and from the device.
TEST(cuda, a_resident_volume_holds_what_it_was_made_from) {
  for (const std::int64_t x : {1, 15, 16, 17, 31, 32, 33, 95, 96, 97, 127}) {
    const grid g{.extents = {3, 5, x}, .spacing = {2, 1, 1}};
    for (const std::int64_t gap : {0, 3}) {
      const std::int64_t row = x + gap, plane = 5 * row + gap, channel = 3 * plane + gap;
      std::vector<std::int16_t> values(static_cast<std::size_t>(2 * channel));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int16_t>(i);
      const device_array<std::int16_t> on_device(values);
      for (const std::int16_t* from :
           {static_cast<const std::int16_t*>(values.data()), static_cast<const std::int16_t*>(on_device.data())}) {
        resident_volume<std::int16_t> moved;
        moved = resident_volume(view<const std::int16_t>{from, g, {plane, row, 1}, 2, channel});
        const view<const std::int16_t>& v = moved.view();
        EXPECT_EQ(v.stride[1] * 2 % 128, 64);
        EXPECT_LT(v.stride[1] * 2, x * 2 + 128);
        EXPECT_EQ(v.channels, 2);
        EXPECT_EQ(v.grid.spacing, g.spacing);
        std::vector<std::int16_t> held(moved.bytes() / 2);
        check_cuda(cudaMemcpy2D(held.data(), static_cast<std::size_t>(x * 2), v.data,
                                static_cast<std::size_t>(v.stride[1] * 2), static_cast<std::size_t>(x * 2), 30,
                                cudaMemcpyDeviceToHost),
                   "held");
        std::size_t at = 0, wrong = 0;
        for (std::int64_t c = 0; c < 2; ++c)
          for (std::int64_t z = 0; z < 3; ++z)
            for (std::int64_t y = 0; y < 5; ++y)
              for (std::int64_t i = 0; i < x; ++i, ++at)
                wrong += held[at] != values[static_cast<std::size_t>(c * channel + z * plane + y * row + i)] ? 1 : 0;
        EXPECT_EQ(wrong, 0u) << x << " voxels, gap " << gap;
      }
    }
  }
}

TEST(cuda, a_resident_volume_keeps_channels_side_by_side) {
  const grid g{.extents = {3, 5, 17}};
  for (const std::int64_t gap : {0, 4}) {
    const std::int64_t row = 4 * 17 + gap, plane = 5 * row + gap;
    std::vector<std::int16_t> values(static_cast<std::size_t>(3 * plane));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int16_t>(i);
    const resident_volume held(view<const std::int16_t>{values.data(), g, {plane, row, 4}, 4, 1});
    const view<const std::int16_t>& v = held.view();
    EXPECT_EQ(v.stride[1] * 2 % 128, 64);
    EXPECT_EQ(v.stride[2], 4);
    EXPECT_EQ(v.channel_stride, 1);
    std::vector<std::int16_t> copied(held.bytes() / 2);
    check_cuda(cudaMemcpy(copied.data(), v.data, held.bytes(), cudaMemcpyDeviceToHost), "held");
    std::size_t wrong = 0;
    for (std::int64_t z = 0; z < 3; ++z)
      for (std::int64_t y = 0; y < 5; ++y)
        for (std::int64_t i = 0; i < 4 * 17; ++i)
          wrong += copied[static_cast<std::size_t>(z * v.stride[0] + y * v.stride[1] + i)] !=
                           values[static_cast<std::size_t>(z * plane + y * row + i)]
                       ? 1
                       : 0;
    EXPECT_EQ(wrong, 0u) << "gap " << gap;
  }
}

// One voxel or more along each axis, of one or two channels, planar or side by side. The unused strides point nowhere.
TEST(cuda, a_resident_volume_takes_any_stride_along_an_axis_of_one_voxel) {
  std::vector<std::int16_t> values(4000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int16_t>(i);
  for (int single = 0; single < 8; ++single)
    for (const bool side_by_side : {false, true})
      for (const std::int64_t channels : {1, 2})
        for (const std::int64_t unused : {0, -7, 1, 1000003}) {
          const extent3 n{single & 4 ? 1 : 3, single & 2 ? 1 : 5, single & 1 ? 1 : 6};
          view<const std::int16_t> from{values.data(), {.extents = n}, {300, 40, 1}, channels, 1500};
          if (side_by_side) {
            from.stride[2] = channels;
            from.channel_stride = 1;
          }
          const auto used = from.stride;
          for (int k = 0; k < 3; ++k)
            if (n[k] == 1) from.stride[k] = unused;
          if (channels == 1) from.channel_stride = unused;
          const resident_volume held(from);
          const view<const std::int16_t>& v = held.view();
          std::vector<std::int16_t> copied(held.bytes() / 2);
          check_cuda(cudaMemcpy(copied.data(), v.data, held.bytes(), cudaMemcpyDeviceToHost), "held");
          std::size_t wrong = 0;
          for (std::int64_t c = 0; c < channels; ++c)
            for (std::int64_t z = 0; z < n[0]; ++z)
              for (std::int64_t y = 0; y < n[1]; ++y)
                for (std::int64_t x = 0; x < n[2]; ++x) {
                  const auto at = z * v.stride[0] + y * v.stride[1] + x * v.stride[2] + c * v.channel_stride;
                  const auto of = z * used[0] + y * used[1] + x * used[2] + c * from.channel_stride;
                  wrong += copied.at(static_cast<std::size_t>(at)) != values[static_cast<std::size_t>(of)] ? 1 : 0;
                }
          EXPECT_EQ(wrong, 0u) << n << ", " << channels << " channels, unused stride " << unused;
        }
}

TEST(cuda, patches_of_resident_volumes_are_those_of_the_cpu) {
  const dataset d(5);
  std::vector<resident_volume<std::int16_t>> images_held;
  std::vector<resident_volume<std::uint8_t>> labels_held;
  std::vector<view<const std::int16_t>> in;
  std::vector<view<const std::uint8_t>> seg;
  for (std::size_t i = 0; i < d.grids.size(); ++i) {
    in.push_back(images_held.emplace_back(d.images(false)[i]).view());
    seg.push_back(labels_held.emplace_back(d.labels_in(false)[i]).view());
  }
  const settings s{.seed = 9, .epoch = 2, .sample_ids = d.ids};
  EXPECT_EQ(on_device(in, seg, s), on_host(d, s));
}

TEST(cuda, a_resident_volume_refuses_what_it_cannot_hold) {
  const grid g{.extents = {2, 3, 4}};
  std::vector<float> values(1000);
  const auto refused = [&](const view<const float>& from, const std::string& says) {
    EXPECT_SAYS(resident_volume<float>{from}, "resident_volume");
    EXPECT_SAYS(resident_volume<float>{from}, says);
  };
  refused({nullptr, g, {12, 4, 1}}, "null pointer");
  refused({values.data(), g, {12, 8, 2}}, "stride");
  refused({values.data() + 500, g, {12, -4, 1}}, "backwards");
  refused({values.data(), g, {12, 3, 1}}, "overlap");
  refused({values.data(), {.extents = {2, 0, 4}}, {12, 4, 1}}, "extents");
}

TEST(cuda, a_run_is_captured_in_a_graph_and_replayed) {
  const dataset d(3);
  const settings s{.seed = 4, .epoch = 1, .sample_ids = d.ids};
  const auto in = d.images(true);
  const auto seg = d.labels_in(true);
  device_array<__half> out(3 * 17 * 20 * 36);
  device_array<std::uint8_t> seg_out(out.size());
  cuda_workspace workspace;
  const auto capture = [&] {
    const auto p = plan(recipe(), in, s);
    const std::vector<grid> out_grids = p.output_grids();
    const auto out_views = batch_views(out.data(), std::span<const grid>(out_grids));
    const auto seg_views = batch_views(seg_out.data(), std::span<const grid>(out_grids));
    workspace.reserve(workspace_bytes(p, image(in, out_views), labels(seg, seg_views)));
    return support::captured_work([&](cudaStream_t stream) {
      run(suture::cuda{stream, workspace}, p, image(in, out_views), labels(seg, seg_views));
    });
  };
  support::captured_work captured = capture();  // the plan is gone; its parameters are in the graph
  const patches expected = on_host(d, s);
  for (int replay = 0; replay < 3; ++replay) {
    check_cuda(cudaMemsetAsync(out.data(), 0xa5, out.size() * sizeof(__half), captured.stream()), "memset");
    check_cuda(cudaMemsetAsync(workspace.span().data(), 0x5a, workspace.span().size(), captured.stream()), "memset");
    captured.launch();
    EXPECT_EQ((patches{bits(out.values()), seg_out.values()}), expected) << "replay " << replay;
  }
}

// A user's kernel: sums of 2 x 2 x 2 neighborhoods of the finished patch, which is never stored.
template <class Evaluator>
__global__ void pooled_kernel(Evaluator evaluate, std::int32_t items, float* pooled, std::uint8_t* corner_labels) {
  const auto i = static_cast<std::int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  const std::int32_t nz = 8, ny = 10, nx = 18;
  if (i >= items * nz * ny * nx) return;
  const std::int32_t x = i % nx, y = i / nx % ny, z = i / (nx * ny) % nz, item = i / (nx * ny * nz);
  float sum = 0;
  for (int k = 0; k < 8; ++k)
    sum += storage<suture::half>::load(evaluate(item, 2 * z + (k >> 2), 2 * y + (k >> 1 & 1), 2 * x + (k & 1)));
  pooled[i] = sum;
  corner_labels[i] = evaluate.template get<1>(item, 2 * z, 2 * y, 2 * x);
}

TEST(cuda, the_evaluator_runs_inside_a_users_kernel) {
  const dataset d(2);
  const settings s{.seed = 6, .sample_ids = d.ids};
  const auto in = d.images(true);
  const auto seg = d.labels_in(true);
  const auto p = plan(recipe(), in, s);
  const std::vector<grid> out_grids = p.output_grids();
  // Views describe types and shapes; nothing is written to them.
  device_array<suture::half> out(2 * 17 * 20 * 36);
  device_array<std::uint8_t> seg_out(out.size());
  const auto out_views = batch_views(out.data(), std::span<const grid>(out_grids));
  const auto seg_views = batch_views(seg_out.data(), std::span<const grid>(out_grids));
  cuda_workspace workspace(workspace_bytes(p, image(in, out_views), labels(seg, seg_views)));
  const auto evaluate = prepare(suture::cuda{nullptr, workspace}, p, image(in, out_views), labels(seg, seg_views));
  static_assert(std::is_trivially_copyable_v<std::remove_cvref_t<decltype(evaluate)>>);
  const int cells = 2 * 8 * 10 * 18;
  device_array<float> pooled(cells);
  device_array<std::uint8_t> corners(cells);
  pooled_kernel<<<(cells + 127) / 128, 128>>>(evaluate, 2, pooled.data(), corners.data());
  check_cuda(cudaDeviceSynchronize(), "pooled_kernel");

  const patches whole = on_host(d, s);
  const std::vector<float> sums = pooled.values();
  const std::vector<std::uint8_t> labels_found = corners.values();
  const auto at = [](int item, int z, int y, int x) {
    return static_cast<std::size_t>(((item * 17 + z) * 20 + y) * 36 + x);
  };
  for (int i = 0; i < cells; ++i) {
    const int x = i % 18, y = i / 18 % 10, z = i / 180 % 8, item = i / 1440;
    float sum = 0;
    for (int k = 0; k < 8; ++k)
      sum += storage<suture::half>::load(
          {whole.images[at(item, 2 * z + (k >> 2), 2 * y + (k >> 1 & 1), 2 * x + (k & 1))]});
    ASSERT_EQ(sums[static_cast<std::size_t>(i)], sum) << i;
    ASSERT_EQ(labels_found[static_cast<std::size_t>(i)], whole.labels[at(item, 2 * z, 2 * y, 2 * x)]) << i;
  }
}

TEST(cuda, a_workspace_that_is_too_small_is_refused_before_launch) {
  const dataset d(2);
  const auto in = d.images(true);
  const auto p = plan(flip{{true, true, true}} | cast<std::int16_t>{}, in);
  std::vector<device_array<std::int16_t>> out;
  std::vector<view<std::int16_t>> out_views;
  for (const grid& g : d.grids) {
    out.emplace_back(static_cast<std::size_t>(g.voxels()));
    out_views.push_back(contiguous(out.back().data(), g));
  }
  cuda_workspace workspace(1024);
  const std::span<std::byte> small = workspace.span().first(256);
  try {
    run(suture::cuda{nullptr, small}, p, image(in, out_views));
    FAIL() << "no error";
  } catch (const error& e) {
    EXPECT_NE(std::string(e.what()).find("workspace"), std::string::npos) << e.what();
  }
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(cuda, an_error_of_cuda_names_operation_and_call_site) {
  try {
    check_cuda(cudaErrorInvalidValue, "stage");
    FAIL() << "no error";
  } catch (const error& e) {
    const std::string message = e.what();
    EXPECT_NE(message.find("stage"), std::string::npos) << message;
    EXPECT_NE(message.find("cudaErrorInvalidValue"), std::string::npos) << message;
    EXPECT_NE(message.find("cuda_test.cu"), std::string::npos) << message;
  }
}

}  // namespace
