// SPDX-License-Identifier: Apache-2.0
// One graph of run_loaded serves any volumes: other pointers, extents, spacings, strides and draws, with the bits of
// the CPU. Without a batch it writes nothing, and load refuses a batch that does not fit it.
#include <gtest/gtest.h>
#include <suture/suture.cuh>

#include <cstring>
#include <optional>

#include "support/device_array.cuh"
#include "support/expect_says.hpp"
#include "support/launches.cuh"

namespace {

using namespace suture;
using support::device_array;

constexpr extent3 size{10, 13, 18}, half_size{5, 6, 9}, quarter_size{2, 3, 5};
constexpr std::size_t voxels = 10 * 13 * 18, half_voxels = 5 * 6 * 9, quarter_voxels = 2 * 3 * 5;
constexpr std::size_t samples = 2;

std::uint64_t number(std::uint64_t n) { return mix64(n * 0x9e3779b97f4a7c15u); }

// Volumes of a batch, each case of other extents, spacings, places in memory and layouts.
struct volumes {
  std::vector<grid> grids;
  std::vector<std::uint64_t> ids;
  std::vector<std::size_t> first;  // elements ahead of each volume
  bool interleaved = false;
  std::int64_t channels = 1;
  std::vector<std::int16_t> images;  // of all samples, one behind the other
  std::vector<std::uint8_t> labels;

  volumes(std::uint64_t which, std::int64_t of_channels) : channels(of_channels) {
    interleaved = channels > 1 && which % 2 == 1;
    std::size_t used = 3 + 5 * which % 64;
    for (std::size_t i = 0; i < samples; ++i) {
      const std::uint64_t n = number(10 * which + i);
      grid g;
      for (int k = 0; k < 3; ++k) {
        g.extents[k] = 4 + static_cast<std::int64_t>(n >> (8 * k) & 31);
        g.spacing[k] = .6 + .03 * static_cast<double>(n >> (24 + 8 * k) & 63);
        g.origin[k] = static_cast<double>(which);
      }
      grids.push_back(g);
      ids.push_back(n >> 20);
      first.push_back(used);
      used += static_cast<std::size_t>(g.voxels() * channels) + 7;
    }
    images.resize(used);
    labels.resize(used);
    for (std::size_t v = 0; v < used; ++v) {
      images[v] = static_cast<std::int16_t>(number(v + which) % 900) - 400;
      labels[v] = static_cast<std::uint8_t>(v / 5 % 4);
    }
  }
  std::vector<view<const std::int16_t>> image_views(const std::int16_t* data) const {
    std::vector<view<const std::int16_t>> views;
    for (std::size_t i = 0; i < samples; ++i)
      views.push_back(interleaved ? channels_last(data + first[i], grids[i], channels)
                                  : contiguous(data + first[i], grids[i], channels));
    return views;
  }
  std::vector<view<const std::uint8_t>> label_views(const std::uint8_t* data) const {
    std::vector<view<const std::uint8_t>> views;
    for (std::size_t i = 0; i < samples; ++i) views.push_back(contiguous(data + first[i], grids[i]));
    return views;
  }
};

// Of the images and of the label maps of a batch, levels included.
std::size_t image_halves(std::int64_t channels) { return samples * voxels * static_cast<std::size_t>(channels); }
constexpr std::size_t label_bytes = samples * (voxels + half_voxels + quarter_voxels);

// Where a batch goes.
template <class Halves, class Bytes>
struct outputs {
  Halves& images;
  Bytes& labels;
  std::int64_t channels;

  auto image_views() const { return batch_views(images.data(), grids(size), channels); }
  auto label_views() const { return batch_views(labels.data(), grids(size)); }
  auto level_views() const {
    return deep_supervision(batch_views(labels.data() + samples * voxels, grids(half_size)),
                            batch_views(labels.data() + samples * (voxels + half_voxels), grids(quarter_size)));
  }
  static std::span<const grid> grids(const extent3& n) {
    static const std::vector<grid> all[3] = {std::vector<grid>(samples, grid{.extents = size}),
                                             std::vector<grid>(samples, grid{.extents = half_size}),
                                             std::vector<grid>(samples, grid{.extents = quarter_size})};
    return n == size ? all[0] : n == half_size ? all[1] : all[2];
  }
};

template <class Out, class Volumes, class Images, class Labels>
auto pairs_of(const Out& out, const Volumes& v, const Images& images, const Labels& labels_in) {
  return std::pair(image(v.image_views(images.data()), out.image_views()),
                   labels(v.label_views(labels_in.data()), out.label_views(), out.level_views()));
}

template <class T>
std::vector<std::uint8_t> bytes_of(const std::vector<T>& values) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

auto ct() {
  return window{.center = 40, .width = 400} | resample{.spacing_mm = {1.2, 1, 1}} |
         random_affine{.rotate_deg = 15, .scale = {.85f, 1.25f}, .probability = .7f} |
         random_elastic{.control_spacing_mm = 9, .max_displacement_mm = 2, .limit_to_safe = true, .probability = .5f} |
         crop_or_pad{size} | random_gamma{.probability = .5f} | gaussian_noise{.sigma = .02f} | cast<suture::half>{};
}
// Sums between stages beside control vectors, of which there are more or fewer for every volume.
auto staged() {
  return random_affine{.rotate_deg = 15, .probability = .7f} |
         random_elastic{.control_spacing_mm = 9, .max_displacement_mm = 2, .limit_to_safe = true, .probability = .5f} |
         crop_or_pad{size} | random_gaussian_blur{.channel_probability = .5f, .probability = .5f} |
         random_patch_contrast{} | random_low_resolution{.channel_probability = .5f, .probability = .5f} |
         random_kspace_spike{.probability = .5f} | patch_z_score{} | cast<suture::half>{};
}
auto cubic() {
  return random_affine{.rotate_deg = 15, .probability = .7f} | sampling<cubic_bspline, edge>{} | crop_or_pad{size} |
         cast<suture::half>{};
}

template <class Chain>
void expect_serves(const Chain& chain, std::int64_t channels, std::uint64_t cases) {
  using on_device = outputs<const device_array<suture::half>, const device_array<std::uint8_t>>;
  const std::size_t halves = image_halves(channels);
  // Two places for the outputs take turns.
  const device_array<suture::half> out[2] = {device_array<suture::half>(halves), device_array<suture::half>(halves)};
  const device_array<std::uint8_t> out_labels[2] = {device_array<std::uint8_t>(label_bytes),
                                                    device_array<std::uint8_t>(label_bytes)};
  const auto drawn = [](const volumes& v, std::uint64_t which) {
    return settings{.seed = which, .epoch = static_cast<std::uint32_t>(which % 3), .sample_ids = v.ids};
  };
  std::size_t bytes = 0;
  for (std::uint64_t which = 0; which < cases; ++which) {
    const volumes v(which, channels);
    const auto [a, b] = pairs_of(on_device{out[0], out_labels[0], channels}, v, v.images, v.labels);
    bytes = std::max(bytes, workspace_bytes(plan(chain, v.grids, drawn(v, which)), a, b));
  }
  const cuda_workspace workspace(bytes);

  const volumes first(cases / 2, channels);
  const device_array<std::int16_t> first_images(first.images);
  const device_array<std::uint8_t> first_labels(first.labels);
  const auto planned = plan(chain, first.grids, drawn(first, 1));
  const auto [a, b] = pairs_of(on_device{out[0], out_labels[0], channels}, first, first_images, first_labels);
  std::optional<decltype(run_loaded(cuda{}, planned, a, b))> captured;
  support::captured_work graph([&](cudaStream_t stream) {
    captured.emplace(run_loaded(cuda{stream, workspace}, planned, a, b));
  });

  for (std::uint64_t which = 0; which < cases; ++which) {
    const volumes v(which, channels);
    const auto p = plan(chain, v.grids, drawn(v, which));
    std::vector<suture::half> expected(halves);
    std::vector<std::uint8_t> expected_labels(label_bytes);
    const outputs<std::vector<suture::half>, std::vector<std::uint8_t>> on_host{expected, expected_labels, channels};
    const auto [host_image, host_labels] = pairs_of(on_host, v, v.images, v.labels);
    run(cpu{}, p, host_image, host_labels);

    const device_array<std::int16_t> images(v.images);
    const device_array<std::uint8_t> label_maps(v.labels);
    const auto& to = out[which % 2];
    const auto& to_labels = out_labels[which % 2];
    check_cuda(cudaMemset(to.data(), 0xa5, halves * sizeof(suture::half)), "clear");
    check_cuda(cudaMemset(to_labels.data(), 0xa5, to_labels.size()), "clear");
    const auto [in, seg] = pairs_of(on_device{to, to_labels, channels}, v, images, label_maps);
    load(cuda{graph.stream(), workspace}, *captured, p, in, seg);
    for (int launch = 0; launch < 2; ++launch) {  // a second one repeats the draws
      graph.launch();
      ASSERT_EQ(bytes_of(to.values()), bytes_of(expected)) << "case " << which << ", launch " << launch;
      ASSERT_EQ(to_labels.values(), expected_labels) << "case " << which << ", launch " << launch;
    }
  }
}

TEST(Graph, ServesAHundredBatchesOfOtherVolumes) { expect_serves(ct(), 1, 120); }
TEST(Graph, ServesOtherVolumesWithStages) { expect_serves(staged(), 2, 20); }
TEST(Graph, ServesOtherVolumesThatAreFilteredFirst) { expect_serves(cubic(), 2, 12); }

// A graph captured with two outputs, each of which is the larger one along some axis, serves every batch of outputs
// that are no larger along any axis.
template <class Chain>
void expect_serves_extents(const Chain& chain) {
  const auto grids_of = [](extent3 a, extent3 b) { return std::vector<grid>{{.extents = a}, {.extents = b}}; };
  const std::vector<std::vector<grid>> batches = {
      grids_of({20, 5, 8}, {3, 12, 40}),  // at the capture
      grids_of({20, 12, 40}, {20, 12, 40}),
      grids_of({1, 12, 40}, {20, 1, 1}),
      grids_of({20, 12, 1}, {3, 5, 8}),
  };
  constexpr std::size_t most = 20 * 12 * 40;
  std::vector<std::int16_t> scans(2 * most);
  for (std::size_t i = 0; i < scans.size(); ++i) scans[i] = static_cast<std::int16_t>(i * 7919 % 2003);
  const device_array<std::int16_t> in(scans);
  const device_array<float> out(2 * most);
  const auto views = [&](auto* data, const std::vector<grid>& grids) {
    return std::vector{contiguous(data, grids[0]), contiguous(data + most, grids[1])};
  };
  const std::uint64_t ids[] = {3, 8};
  const auto planned = [&](const std::vector<grid>& grids) {
    return plan(chain, grids, {.seed = 5, .sample_ids = ids});
  };
  const auto bound = [&](const std::vector<grid>& grids) {
    return image(views(static_cast<const std::int16_t*>(in.data()), grids), views(out.data(), grids));
  };
  std::size_t bytes = 0;
  for (const auto& grids : batches) bytes = std::max(bytes, workspace_bytes(planned(grids), bound(grids)));
  const cuda_workspace workspace(bytes);
  const auto first = planned(batches[0]);
  const auto pair = bound(batches[0]);
  std::optional<decltype(run_loaded(cuda{}, first, pair))> captured;
  support::captured_work graph([&](cudaStream_t stream) {
    captured.emplace(run_loaded(cuda{stream, workspace}, first, pair));
  });
  for (const auto& grids : batches) {
    const auto p = planned(grids);
    std::vector<float> expected(2 * most, -1);
    run(cpu{}, p, image(views(static_cast<const std::int16_t*>(scans.data()), grids), views(expected.data(), grids)));
    const std::vector<float> cleared(2 * most, -1);
    check_cuda(cudaMemcpy(out.data(), cleared.data(), cleared.size() * sizeof(float), cudaMemcpyDefault), "clear");
    load(cuda{graph.stream(), workspace}, *captured, p, bound(grids));
    graph.launch();
    ASSERT_EQ(bytes_of(out.values()), bytes_of(expected)) << grids[0].extents << " and " << grids[1].extents;
  }
}

TEST(Graph, ServesEveryOutputWithinTheExtentsOfTheCapture) {
  expect_serves_extents(clamp{0, 1500} | clamp{10, 1400});
  expect_serves_extents(flip{{true, true, true}} | sampling<>{} | gaussian_noise{.sigma = 5});
  expect_serves_extents(flip{{false, false, true}} | sampling<>{} | gaussian_blur{.sigma = 1} | patch_z_score{});
  expect_serves_extents(flip{{false, false, true}} | sampling<>{} | gibbs_ringing{.alpha = .5f} |
                        random_kspace_spike{});
}

// A graph and what its kernels may write.
template <class Chain>
struct captured_graph {
  volumes v;
  device_array<std::int16_t> images{v.images};
  device_array<std::uint8_t> label_maps{v.labels};
  device_array<suture::half> out;
  device_array<std::uint8_t> out_labels{label_bytes};
  Chain chain;

  captured_graph(const Chain& of, std::int64_t channels) : v(3, channels), out(image_halves(channels)), chain(of) {
    check_cuda(cudaMemset(out.data(), 0xa5, out.size() * sizeof(suture::half)), "clear");
    check_cuda(cudaMemset(out_labels.data(), 0xa5, out_labels.size()), "clear");
  }
  auto pairs() const {
    using to = outputs<const device_array<suture::half>, const device_array<std::uint8_t>>;
    return pairs_of(to{out, out_labels, v.channels}, v, images, label_maps);
  }
  auto planned() const { return plan(chain, v.grids, {.seed = 4, .sample_ids = v.ids}); }
  std::size_t bytes() const {
    const auto [a, b] = pairs();
    return workspace_bytes(planned(), a, b);
  }
  void expect_nothing_is_written(std::span<std::byte> workspace) const {
    const auto [a, b] = pairs();
    const auto p = planned();
    support::captured_work graph([&, &a = a, &b = b](cudaStream_t stream) {
      run_loaded(cuda{stream, workspace}, p, a, b);
    });
    graph.launch();
    graph.launch();
    EXPECT_EQ(bytes_of(out.values()), std::vector<std::uint8_t>(out.size() * sizeof(suture::half), 0xa5));
    EXPECT_EQ(out_labels.values(), std::vector<std::uint8_t>(out_labels.size(), 0xa5));
  }
};

template <class Chain>
void expect_no_batch_writes_nothing(const Chain& chain, std::int64_t channels) {
  const captured_graph<Chain> graph(chain, channels);
  const auto other_chain = flip{{true, true, true}} | crop_or_pad{size} | cast<suture::half>{};
  const captured_graph<std::remove_const_t<decltype(other_chain)>> other(other_chain, channels);
  const cuda_workspace workspace(std::max(graph.bytes(), other.bytes()));
  graph.expect_nothing_is_written(workspace);  // as it was allocated
  for (const int garbage : {0xff, 0x5a, 0x01}) {
    check_cuda(cudaMemset(workspace.span().data(), garbage, workspace.span().size()), "garbage");
    graph.expect_nothing_is_written(workspace);
  }
  // A batch of another pipeline.
  const auto [a, b] = other.pairs();
  const auto p = other.planned();
  load(cuda{nullptr, workspace}, p, a, b);
  check_cuda(cudaDeviceSynchronize(), "load");
  graph.expect_nothing_is_written(workspace);
}

TEST(Graph, WritesNothingBeforeABatchIsLoaded) {
  expect_no_batch_writes_nothing(ct(), 1);
  expect_no_batch_writes_nothing(staged(), 2);
  expect_no_batch_writes_nothing(cubic(), 1);
}

TEST(Graph, LoadRefusesABatchThatDoesNotFit) {
  const grid g{.extents = {6, 7, 8}}, longer{.extents = {6, 7, 9}};
  const auto outside = [](float value, int label) {
    return flip{} | sampling<linear, constant, nearest>{.border = {value}, .label_outside = label};
  };
  const device_array<float> in(4 * 2 * 432), out(4 * 2 * 432);
  const cuda_workspace workspace(1 << 16), other_workspace(1 << 16);
  const auto views = [&](auto* data, std::vector<grid> grids, std::int64_t channels = 1) {
    std::vector<view<std::remove_pointer_t<decltype(data)>>> all;
    for (std::size_t i = 0; i < grids.size(); ++i) all.push_back(contiguous(data + i * 864, grids[i], channels));
    return all;
  };
  const auto bound = [&](const std::vector<grid>& grids, std::int64_t channels = 1) {
    return image(views(static_cast<const float*>(in.data()), grids, channels), views(out.data(), grids, channels));
  };
  const std::vector two{g, g};
  const auto chain = outside(0, 0);
  const auto p = plan(chain, two);
  const auto pair = bound(two);
  cuda on{nullptr, workspace};
  std::optional<decltype(run_loaded(on, p, pair))> captured;
  support::captured_work graph([&](cudaStream_t stream) {
    captured.emplace(run_loaded(cuda{stream, workspace}, p, pair));
  });
  load(on, *captured, p, pair);
  EXPECT_SAYS(load(cuda{nullptr, other_workspace}, *captured, p, pair), "load: the workspace begins at ");
  EXPECT_SAYS(load(on, *captured, plan(chain, std::vector{g}), bound({g})),
              "load: 1 samples, the plan that run_loaded");
  EXPECT_SAYS(load(on, *captured, plan(chain, std::vector{g, longer}), bound({g, longer})),
              "load: sample 1: output extents (6, 7, 9) exceed (6, 7, 8), ");
  EXPECT_SAYS(load(on, *captured, p, bound(two, 2)), "image: sample 0: 2 channels, the view ");
  EXPECT_SAYS(load(on, *captured, plan(outside(2, 0), two), pair), "load: border value 2, ");
  EXPECT_SAYS(load(on, *captured, plan(outside(0, -1), two), pair), "load: label_outside -1, ");
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
