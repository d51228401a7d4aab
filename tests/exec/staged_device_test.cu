// SPDX-License-Identifier: Apache-2.0
// Pipelines of several stages on the device: what they launch, how they replay, and what they hand to a user's kernel.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "digest/host.hpp"
#include "support/device_array.cuh"
#include "support/expect_says.hpp"
#include "support/launches.cuh"

namespace {

using namespace suture;
using digest_test::cases;
using support::device_array;

const extent3 size{19, 24, 37};

auto nnunet() {
  return random_affine{.rotate_deg = 15} | crop_or_pad{size} | gaussian_noise{.sigma = 5, .probability = .1f} |
         random_gaussian_blur{.kernel = blur_kernel::nnunet, .channel_probability = .5f, .probability = .6f} |
         random_brightness_factor{.probability = .5f} |
         random_patch_contrast{.law = interval_law::mixture, .probability = .6f} |
         random_low_resolution{.channel_probability = .5f, .probability = .5f} |
         random_patch_gamma{.law = interval_law::mixture, .invert = true, .probability = .5f} |
         random_patch_gamma{.law = interval_law::mixture, .probability = .5f} | cast<suture::half>{};
}

// Two samples on the device, and room for what becomes of them.
struct batch {
  cases data;
  std::vector<device_array<std::int16_t>> images;
  std::vector<device_array<std::uint8_t>> labels_in;
  std::vector<view<const std::int16_t>> in;
  std::vector<view<const std::uint8_t>> seg;
  device_array<suture::half> out{2 * 2 * 19 * 24 * 37};
  device_array<std::uint8_t> seg_out{2 * 19 * 24 * 37};

  batch() {
    for (std::size_t i = 0; i < 2; ++i) {
      images.emplace_back(data.images[i]);
      labels_in.emplace_back(data.labels[i]);
      in.push_back(contiguous<const std::int16_t>(images[i].data(), data.grids[i], 2));
      seg.push_back(contiguous<const std::uint8_t>(labels_in[i].data(), data.grids[i]));
    }
  }
  std::vector<view<suture::half>> outs(const std::vector<grid>& g) const {
    return batch_views(out.data(), std::span(g), 2);
  }
  std::vector<view<std::uint8_t>> seg_outs(const std::vector<grid>& g) const {
    return batch_views(seg_out.data(), std::span(g));
  }
  std::vector<std::uint16_t> bits() const {
    std::vector<std::uint16_t> b;
    for (suture::half h : out.values()) b.push_back(h.bits);
    for (std::uint8_t l : seg_out.values()) b.push_back(l);
    return b;
  }
};

template <class Chain>
std::vector<std::uint16_t> on_host(const batch& b, const Chain& chain, const settings& s) {
  std::vector<view<const std::int16_t>> in;
  std::vector<view<const std::uint8_t>> seg;
  for (std::size_t i = 0; i < 2; ++i) {
    in.push_back(contiguous(b.data.images[i].data(), b.data.grids[i], 2));
    seg.push_back(contiguous(b.data.labels[i].data(), b.data.grids[i]));
  }
  const auto p = plan(chain, in, s);
  std::vector<suture::half> out(b.out.size());
  std::vector<std::uint8_t> seg_out(b.seg_out.size());
  const auto grids = p.output_grids();
  run(cpu{}, p, image(in, batch_views(out.data(), std::span(grids), 2)),
      labels(seg, batch_views(seg_out.data(), std::span(grids))));
  std::vector<std::uint16_t> bits;
  for (suture::half h : out) bits.push_back(h.bits);
  for (std::uint8_t l : seg_out) bits.push_back(l);
  return bits;
}

TEST(staged, the_recipe_of_nnunet_is_six_launches) {
  const batch b;
  const auto p = plan(nnunet(), b.in, {.seed = 1, .sample_ids = std::span(b.data.ids).first(2)});
  const auto grids = p.output_grids();
  const auto outs = b.outs(grids);
  const auto seg_outs = b.seg_outs(grids);
  const auto pair = image(b.in, outs);
  const auto masks = labels(b.seg, seg_outs);
  EXPECT_EQ(p.stages(), 6);
  const cuda_workspace workspace(workspace_bytes(p, pair, masks));
  EXPECT_EQ(support::launches([&](cudaStream_t stream) { run(suture::cuda{stream, workspace}, p, pair, masks); }), 6u);
  // Two places for the batch between stages, and little else.
  const std::size_t between = 2 * b.out.size() * sizeof(float);
  EXPECT_LT(workspace_bytes(p, pair, masks), between + 40000);
}

// A graph captured once, and plans of other seeds and samples loaded into it.
template <class Chain>
void expect_replays(const Chain& chain) {
  const batch b;
  const std::vector<std::uint64_t> first{1, 2};
  const auto captured = plan(chain, b.in, {.seed = 1, .sample_ids = first});
  const auto grids = captured.output_grids();
  const auto outs = b.outs(grids);
  const auto seg_outs = b.seg_outs(grids);
  const auto pair = image(b.in, outs);
  const auto masks = labels(b.seg, seg_outs);
  const cuda_workspace workspace(workspace_bytes(captured, pair, masks));
  support::captured_work replay([&](cudaStream_t stream) {
    run_loaded(suture::cuda{stream, workspace}, captured, pair, masks);
  });
  for (std::uint64_t seed = 1; seed < 6; ++seed) {
    const std::vector<std::uint64_t> ids{10 * seed, 10 * seed + 7};
    const settings s{.seed = seed, .epoch = 3, .sample_ids = ids};
    const auto p = plan(chain, b.in, s);
    EXPECT_EQ(workspace_bytes(p, pair, masks), workspace.span().size());
    load(suture::cuda{replay.stream(), workspace}, p, pair, masks);
    replay.launch();
    EXPECT_EQ(b.bits(), on_host(b, chain, s)) << "seed " << seed;
  }
}

TEST(staged, a_graph_captured_once_replays_any_draw) { expect_replays(nnunet()); }

TEST(staged, a_graph_with_an_elastic_deformation_too) {
  expect_replays(window{.center = 40, .width = 400} |
                 random_elastic{.control_spacing_mm = 14, .max_displacement_mm = 4, .probability = .5f} |
                 crop_or_pad{size} | gaussian_noise{} | cast<suture::half>{});
}

// The last stage that changes a channel stores it, whichever that is; the fused part where none does. On the device as
// on the host, and each of these was met.
template <class Chain>
void expect_every_writer(const Chain& chain) {
  const batch b;
  int changed[3] = {};  // images of which stages change none, one, both of the channels
  for (std::uint64_t seed = 1; seed < 40; ++seed) {
    const std::vector<std::uint64_t> ids{seed};
    const std::size_t k = seed % 2;
    const auto p = plan(chain, std::span(b.in).subspan(k, 1), {.seed = seed, .sample_ids = ids});
    const auto grids = p.output_grids();
    const std::vector<view<const std::int16_t>> host_in{contiguous(b.data.images[k].data(), b.data.grids[k], 2)};
    std::vector<suture::half> expected(static_cast<std::size_t>(2 * grids[0].voxels()));
    run(cpu{}, p, image(host_in, batch_views(expected.data(), std::span(grids), 2)));

    const device_array<suture::half> out(expected.size());
    const auto outs = batch_views(out.data(), std::span(grids), 2);
    const auto pair = image(std::span(b.in).subspan(k, 1), outs);
    const cuda_workspace workspace(workspace_bytes(p, pair));
    run(suture::cuda{nullptr, workspace}, p, pair);
    std::size_t different = 0;
    const auto made = out.values();
    for (std::size_t i = 0; i < made.size(); ++i) different += made[i].bits != expected[i].bits;
    EXPECT_EQ(different, 0u) << "seed " << seed;
    using stages = detail::staging<typename decltype(p)::pipeline_type>;
    ++changed[int{stages::changes(p.sample(0), 0)} + int{stages::changes(p.sample(0), 1)}];
  }
  for (int k : changed) EXPECT_GT(k, 3);
}

TEST(staged, whoever_changes_a_channel_last_stores_it) {
  expect_every_writer(
      random_affine{.rotate_deg = 15, .probability = .5f} | crop_or_pad{size} |
      random_gaussian_blur{.channel_probability = .5f, .probability = .3f} | random_patch_contrast{.probability = .3f} |
      random_low_resolution{.channel_probability = .5f, .probability = .3f} | random_gibbs_ringing{.probability = .2f} |
      random_patch_gamma{.law = interval_law::mixture, .probability = .2f} | cast<suture::half>{});
}

TEST(staged, whoever_changes_a_channel_last_stores_it_where_nothing_is_moved) {
  expect_every_writer(window{.center = 40, .width = 400} |
                      random_low_resolution{.channel_probability = .5f, .probability = .5f} |
                      random_patch_gamma{.probability = .2f} | cast<suture::half>{});
}

// Other voxels in the same memory: nothing of those before is left in the sums between stages.
TEST(staged, a_graph_serves_other_voxels_of_one_plan) {
  const auto chain =
      crop_or_pad{size} | patch_z_score{} | random_kspace_spike{} | patch_z_score{} | cast<suture::half>{};
  batch b;
  const std::vector<std::uint64_t> ids{3, 4};
  const settings s{.seed = 8, .sample_ids = ids};
  const auto p = plan(chain, b.in, s);
  const auto grids = p.output_grids();
  const auto outs = b.outs(grids);
  const auto seg_outs = b.seg_outs(grids);
  const auto pair = image(b.in, outs);
  const auto masks = labels(b.seg, seg_outs);
  const cuda_workspace workspace(workspace_bytes(p, pair, masks));
  support::captured_work replay([&](cudaStream_t stream) {
    run_loaded(suture::cuda{stream, workspace}, p, pair, masks);
  });
  load(suture::cuda{replay.stream(), workspace}, p, pair, masks);
  for (int launch = 0; launch < 3; ++launch) {
    replay.launch();
    EXPECT_EQ(b.bits(), on_host(b, chain, s)) << "launch " << launch;
    for (std::size_t i = 0; i < 2; ++i) {
      std::vector<std::int16_t>& voxels = b.data.images[i];
      for (std::int16_t& v : voxels) v = static_cast<std::int16_t>(v / 2 + 100);
      check_cuda(cudaMemcpy(b.images[i].data(), voxels.data(), voxels.size() * 2, cudaMemcpyHostToDevice), "voxels");
    }
    check_cuda(cudaDeviceSynchronize(), "voxels");
  }
}

// y = sixteen bits of what is known of the patch; which of them depends on the place along x.
struct moments_seen {
  static constexpr std::string_view name = "moments_seen";

  struct functor {
    struct with_moments {
      moments seen;
      SUTURE_FN float operator()(float, const voxel& at = {}) const {
        const int which = at.x % 24;
        const double parts[4] = {seen.mean, seen.standard_deviation, seen.minimum, seen.maximum};
        const std::uint64_t bits = which < 16   ? bit_cast<std::uint64_t>(parts[which / 4])
                                   : which < 20 ? seen.tally.count
                                                : seen.tally.excluded;
        return static_cast<float>(bits >> (16 * (which % 4)) & 0xffff);
      }
    };
    SUTURE_FN bool active(std::int32_t) const { return true; }
    SUTURE_FN with_moments with(const moments& patch, std::int32_t) const { return {patch}; }
  };

  functor prepare(const site&) const { return {}; }
};

template <class Chain>
void expect_same_bits(const Chain& chain, const std::vector<float>& values, const grid& g, const std::string& what) {
  const device_array<float> on_device(values);
  const device_array<float> out(values.size());
  std::vector<float> expected(values.size());
  const std::vector<std::uint64_t> ids{7};
  const auto p = plan(chain, std::vector{g}, {.sample_ids = ids});
  const std::vector from{contiguous<const float>(values.data(), g)},
      device_from{contiguous<const float>(on_device.data(), g)};
  const std::vector to{contiguous(expected.data(), g)}, device_to{contiguous(out.data(), g)};
  const auto on_cuda = image(device_from, device_to);
  const cuda_workspace workspace(workspace_bytes(p, on_cuda));
  run(cpu{}, p, image(from, to));
  run(cuda{nullptr, workspace}, p, on_cuda);
  check_cuda(cudaDeviceSynchronize(), "test");
  const auto made = out.values();
  for (std::size_t i = 0; i < made.size(); ++i)
    ASSERT_EQ(bit_cast<std::uint32_t>(made[i]), bit_cast<std::uint32_t>(expected[i])) << what << ", voxel " << i;
}

// Sums that fit a thread's registers and sums that do not, side by side in every way.
TEST(staged, moments_of_any_values_are_those_of_the_host) {
  const grid g{.extents = {37, 21, 70}};
  const auto count = static_cast<std::size_t>(37 * 21 * 70);
  std::uint32_t state = 1;
  const auto random = [&] { return state = state * 1664525u + 1013904223u; };
  const auto unit = [&] { return static_cast<float>(random() >> 8) * 0x1p-23f - 1; };
  const auto power = [](int exponent) { return std::ldexp(1.0f, exponent); };
  const std::vector<std::pair<std::string, std::function<float(std::size_t)>>> kinds = {
      {"normalized", [&](std::size_t) { return unit() + unit() + unit(); }},
      {"some small", [&](std::size_t i) { return unit() * (i % 97 == 0 ? 1e-9f : 1.0f); }},
      {"any bits", [&](std::size_t) { return random(), bit_cast<float>(random() ^ random() >> 16); }},
      {"subnormal", [&](std::size_t) { return unit() * 0x1p-128f; }},
      {"small", [&](std::size_t) { return unit() * 0x1p-110f; }},
      {"tiny and ordinary", [&](std::size_t) { return unit() * (random() >> 31 != 0 ? 1.0f : 1e-20f); }},
      {"huge", [&](std::size_t) { return unit() * 3e38f; }},
      {"large", [&](std::size_t) { return unit() * 0x1p100f; }},
      {"growing along z", [&](std::size_t i) { return unit() * power(static_cast<int>(i / (21 * 70)) * 3 - 40); }},
      {"shrinking along z", [&](std::size_t i) { return unit() * power(40 - static_cast<int>(i / (21 * 70)) * 3); }},
      {"one of each limit", [&](std::size_t i) { return unit() * power(static_cast<int>(i % 32) * 8 - 120); }},
      {"zero first", [&](std::size_t i) { return i < count / 2 ? (i % 2 == 0 ? -0.0f : 0.0f) : unit() * 1e-7f; }},
      {"whole numbers", [&](std::size_t) { return static_cast<float>(static_cast<int>(random() >> 20) - 1024); }},
      {"at a limit", [&](std::size_t i) { return i % 2 == 0 ? -32.0f : std::nextafter(32.0f, 0.0f); }},
      {"minus zero", [&](std::size_t) { return -0.0f; }},
      {"not finite",
       [&](std::size_t i) { return i % 3 == 0 ? std::numeric_limits<float>::infinity() : std::nanf(""); }},
      {"some finite", [&](std::size_t i) { return i % 5 != 0 ? -std::numeric_limits<float>::infinity() : unit(); }},
  };
  for (const auto& [what, make] : kinds) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = make(i);
    expect_same_bits(crop_or_pad{g.extents} | moments_seen{}, values, g, what);
    expect_same_bits(gaussian_blur{.sigma = 1} | moments_seen{}, values, g, what + ", blurred");
    expect_same_bits(random_patch_contrast{} | moments_seen{}, values, g, what + ", with contrast");
  }
}

// A deviation below 1e-7 is not restored whole; what stands behind sees the one that is left.
TEST(staged, a_gamma_of_a_tiny_range_is_that_of_the_host) {
  std::vector<float> values(9 * 17 * 33);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 101) * 4e-10f;
  expect_same_bits(random_patch_gamma{.range = 1.5f} | patch_z_score{} | cast<float>{}, values,
                   {.extents = {9, 17, 33}}, "gamma");
}

// Radii that are written out and those that are not, on every axis.
TEST(staged, separable_filters_of_any_radius_are_those_of_the_host) {
  const grid g{.extents = {37, 21, 70}};
  std::vector<float> values(37 * 21 * 70);
  std::uint32_t state = 1;
  for (float& v : values) v = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) * 0x1p-20f - 7;
  values[1234] = -0.0f;
  values[40000] = std::numeric_limits<float>::infinity();
  const std::vector<axis_values> sigmas = {{0, 0, .7},  {.4, .7, 1}, {1, .4, .7}, {.7, 1, .4}, {1.3, 1.3, 1.3},
                                           {3, .7, .4}, {.7, 3, 1},  {.4, 1, 3},  {3, 0, 3},   {0, 3, 3}};
  for (const blur_kernel kernel : {blur_kernel::scipy, blur_kernel::nnunet, blur_kernel::monai})
    for (const axis_values& sigma : sigmas)
      expect_same_bits(
          gaussian_blur{.sigma = sigma, .kernel = kernel} | cast<float>{}, values, g,
          "sigma " + std::to_string(sigma[0]) + " " + std::to_string(sigma[1]) + " " + std::to_string(sigma[2]));
  expect_same_bits(gaussian_blur{.kernel = blur_kernel::monai} | cast<float>{}, values, grid{.extents = {1, 777, 70}},
                   "one slice");
}

template <class Evaluator>
__global__ void copy_patch(Evaluator evaluate, std::int32_t sample, std::int32_t channel, suture::half* to) {
  const auto x = static_cast<std::int32_t>(threadIdx.x);
  const auto y = static_cast<std::int32_t>(blockIdx.x), z = static_cast<std::int32_t>(blockIdx.y);
  to[(z * 24 + y) * 37 + x] = evaluate(sample, z, y, x, channel);
}

TEST(staged, the_last_stage_runs_inside_a_users_kernel) {
  const batch b;
  const settings s{.seed = 5, .sample_ids = std::span(b.data.ids).first(2)};
  const auto p = plan(nnunet(), b.in, s);
  const auto pair = image<suture::half>(b.in);
  const cuda_workspace workspace(workspace_bytes(p, pair));
  const auto evaluate = prepare(suture::cuda{nullptr, workspace}, p, pair);
  const std::size_t voxels = 19 * 24 * 37;
  for (std::int32_t sample = 0; sample < 2; ++sample)
    for (std::int32_t channel = 0; channel < 2; ++channel)
      copy_patch<<<dim3(24, 19), 37>>>(evaluate, sample, channel,
                                       b.out.data() + static_cast<std::size_t>(2 * sample + channel) * voxels);
  check_cuda(cudaDeviceSynchronize(), "copy_patch");
  const auto expected = on_host(b, nnunet(), s);
  const auto values = b.out.values();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) wrong += values[i].bits != expected[i];
  EXPECT_EQ(wrong, 0u);
}

TEST(staged, a_plane_of_too_many_voxels_is_refused_before_a_launch) {
  const grid plane{.extents = {1, 65536, 40000}};
  const std::vector wide{grid{.extents = {2, 2, 2}}, plane};
  const auto p = plan(gaussian_blur{.sigma = {0, 1, 1}} | cast<float>{}, wide);
  const device_array<float> few(8);  // the check comes before any voxel is read
  std::vector<view<const float>> in{
      contiguous<const float>(few.data(), wide[0]),
      contiguous<const float>(reinterpret_cast<const float*>(std::uintptr_t{1} << 41), plane)};
  device_array<float> other(8);
  std::vector<view<float>> out{contiguous(other.data(), wide[0]),
                               contiguous(reinterpret_cast<float*>(std::uintptr_t{1} << 40), plane)};
  const cuda_workspace workspace(4096);
  EXPECT_SAYS(run(cuda{nullptr, workspace}, p, image(in, out)),
              "suture: run: sample 1: a plane of 65536 x 40000 voxels is too large for filters");
}

}  // namespace
