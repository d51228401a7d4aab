// SPDX-License-Identifier: Apache-2.0
// Memory that the executor cannot read is refused before a launch, by view and sample, and so is a workspace that is
// none; an error that an earlier CUDA call left is said to be that.
#include <gtest/gtest.h>
#include <suture/suture.cuh>

#include "support/device_array.cuh"
#include "support/expect_says.hpp"
#include "support/launches.cuh"

namespace {

using namespace suture;
using support::device_array;

const grid volume{.extents = {4, 6, 8}};
constexpr std::size_t voxels = 4 * 6 * 8;
constexpr const char* off = "check_memory = false of the executor skips this check";

// Two volumes and room for what is made of them, on both sides.
struct memory {
  std::vector<float> host = std::vector<float>(2 * voxels, 1.5f), host_out = std::vector<float>(2 * voxels);
  device_array<float> device{host}, device_out{2 * voxels};
  std::vector<std::uint8_t> labels = std::vector<std::uint8_t>(2 * voxels, 1), labels_out = labels;
  device_array<std::uint8_t> device_labels{labels}, device_labels_out{labels};

  template <class T>
  static std::vector<view<T>> two(T* first, T* second) {
    return {contiguous(first, volume), contiguous(second, volume)};
  }
  auto in() { return two(device.data(), device.data() + voxels); }
  auto out() { return two(device_out.data(), device_out.data() + voxels); }
};

auto planned() { return plan(flip{{false, false, true}}, std::vector{volume, volume}); }

TEST(Memory, OfTheHostIsNamedByViewAndSample) {
  memory m;
  const auto p = planned();
  const cuda_workspace workspace(4096);
  const cuda on{nullptr, workspace};
  float *h = m.host.data(), *o = m.host_out.data();
  const auto in = memory::two(m.device.data(), h), out = memory::two(m.device_out.data(), o);
  EXPECT_SAYS(run(on, p, image(in, m.out())), "image: sample 1: input: pointer ");
  EXPECT_SAYS(run(on, p, image(m.in(), out)), "image: sample 1: output: pointer ");
  EXPECT_SAYS(run(on, p, image(in, m.out())), " is host memory; give device memory, or host memory that is pinned");
  EXPECT_SAYS(run(on, p, image(in, m.out())), off);
  EXPECT_SAYS(prepare(on, p, image(in, m.out())), "image: sample 1: input: ");
  EXPECT_SAYS(load(on, p, image(in, m.out())), "image: sample 1: input: ");
  EXPECT_SAYS(run_loaded(on, p, image(in, m.out())), "image: sample 1: input: ");

  const grid half_size = level_grid(volume, {2, 3, 4});
  const auto seg = memory::two(m.device_labels.data(), m.device_labels.data() + voxels);
  const auto seg_out = memory::two(m.device_labels_out.data(), m.device_labels_out.data() + voxels);
  std::vector<std::uint8_t> level(48);
  const std::vector level_views{contiguous(level.data(), half_size), contiguous(level.data() + 24, half_size)};
  EXPECT_SAYS(run(on, p, labels(seg, seg_out, deep_supervision(level_views))), "labels: sample 0: level: pointer ");
}

TEST(Memory, ThatIsPinnedRegisteredOrManagedServesBoth) {
  memory m;
  const auto p = planned();
  const cuda_workspace workspace(4096);
  float *pinned = nullptr, *managed = nullptr;
  check_cuda(cudaMallocHost(&pinned, voxels * sizeof(float)), "pinned");
  check_cuda(cudaMallocManaged(&managed, voxels * sizeof(float)), "managed");
  for (float* shared : {pinned, managed}) {
    std::copy_n(m.host.data(), voxels, shared);
    const auto in = memory::two(shared, m.device.data());
    run(cuda{nullptr, workspace}, p, image(in, m.out()));
    check_cuda(cudaDeviceSynchronize(), "run");
    EXPECT_EQ(m.device_out.values(), m.host);
    const auto on_host = memory::two(shared, m.host.data());
    run(cpu{}, p, image(on_host, memory::two(m.host_out.data(), m.host_out.data() + voxels)));
    EXPECT_EQ(m.host_out, m.host);
  }
  check_cuda(cudaHostRegister(m.host.data(), m.host.size() * sizeof(float), 0), "register");
  run(cuda{nullptr, workspace}, p, image(memory::two(m.host.data(), m.host.data() + voxels), m.out()));
  check_cuda(cudaDeviceSynchronize(), "run");
  EXPECT_EQ(m.device_out.values(), m.host);
  check_cuda(cudaHostUnregister(m.host.data()), "unregister");
  check_cuda(cudaFreeHost(pinned), "pinned");
  check_cuda(cudaFree(managed), "managed");
}

TEST(Memory, OfTheDeviceIsRefusedByTheCpu) {
  memory m;
  const auto p = planned();
  float *h = m.host.data(), *o = m.host_out.data();
  const auto in = memory::two(h, h + voxels), out = memory::two(o, o + voxels);
  EXPECT_SAYS(run(cpu{}, p, image(memory::two(h, m.device.data()), out)), "image: sample 1: input: pointer ");
  EXPECT_SAYS(run(cpu{}, p, image(memory::two(h, m.device.data()), out)), "is it device memory?");
  EXPECT_SAYS(run(cpu{}, p, image(in, memory::two(m.device_out.data(), o))), "image: sample 0: output: pointer ");
  EXPECT_SAYS(run(cpu{}, p, image(in, memory::two(m.device_out.data(), o))), off);
  EXPECT_SAYS(prepare(cpu{.workspace = {reinterpret_cast<std::byte*>(m.device.data()), 1024}}, p, image(in, out)),
              "workspace: pointer ");
  EXPECT_EQ(m.host_out, std::vector<float>(2 * voxels));
}

TEST(Memory, IsLookedAtWhileAStreamCaptures) {
  memory m;
  const auto p = planned();
  const cuda_workspace workspace(4096);
  const auto in = memory::two(m.device.data(), m.host.data());
  std::string said;
  support::captured_work replay([&](cudaStream_t stream) {
    said = message([&] { run(cuda{stream, workspace}, p, image(in, m.out())); });
    run(cuda{stream, workspace}, p, image(m.in(), m.out()));
  });
  EXPECT_NE(said.find("image: sample 1: input: pointer "), said.npos) << said;
  replay.launch();
  EXPECT_EQ(m.device_out.values(), m.host);
}

TEST(Memory, IsNotLookedAtWhereThatIsSwitchedOff) {
  memory m;
  const auto p = planned();
  const cuda_workspace workspace(4096);
  const auto in = memory::two(m.device.data(), m.host.data());
  // Nothing is launched: the graph that is captured is thrown away.
  support::captured_work never([&](cudaStream_t stream) {
    run(cuda{.stream = stream, .workspace = workspace, .check_memory = false}, p, image(in, m.out()));
  });
  EXPECT_EQ(m.host_out, std::vector<float>(2 * voxels));
}

TEST(Memory, OfAWorkspaceIsSaidToBeNoneOrOfTheHost) {
  memory m;
  const auto p = planned();
  const auto pair = image(m.in(), m.out());
  const std::string needed = std::to_string(workspace_bytes(p, pair));
  EXPECT_SAYS(run(cuda{}, p, pair),
              "workspace: none was given, " + needed + " bytes are needed, as workspace_bytes() says");
  EXPECT_SAYS(prepare(cpu{}, p, pair), "pointer ");
  alignas(256) static std::byte on_host[4096];
  EXPECT_SAYS(run(cuda{nullptr, on_host}, p, pair), "workspace: pointer ");
  EXPECT_SAYS(run(cuda{nullptr, on_host}, p, pair), " is host memory; ");
  EXPECT_SAYS(run(cuda{nullptr, std::span(on_host).first(8)}, p, pair),
              "workspace: 8 bytes given, " + needed + " needed, as workspace_bytes() says");
  float* o = m.host_out.data();
  EXPECT_SAYS(prepare(cpu{}, p, image(memory::two(m.host.data(), m.host.data()), memory::two(o, o + voxels))),
              "workspace: none was given, ");
}

// Whatever else takes pointers looks at them.
TEST(Memory, OfFitsMasksPatchesAndPointsToo) {
  memory m;
  const cuda_workspace workspace(1 << 20);
  const cuda on{nullptr, workspace};
  const auto host_in = memory::two(m.device.data(), m.host.data());
  const device_array<moments> results(2);
  EXPECT_SAYS(fit(on, fit_moments{}, host_in, everything{}, results.span()), "fit_moments: sample 1: image: pointer ");
  std::vector<moments> host_results(2);
  EXPECT_SAYS(fit(on, fit_moments{}, m.in(), everything{}, host_results), "fit_moments: results: pointer ");
  EXPECT_SAYS(fit(cuda{}, fit_moments{}, m.in(), everything{}, results.span()),
              "fit_moments: workspace: none was given");
  EXPECT_SAYS(run(on, plan(z_score{.fitted = host_results}, m.in()), image(m.in(), m.out())),
              "z_score: fitted results: pointer ");
  EXPECT_SAYS(run(cpu{}, plan(z_score{.fitted = results.span()}, m.in()), image(host_in, host_in)), "pointer ");

  const auto seg = memory::two(m.device_labels.data(), m.device_labels.data() + voxels);
  const auto host_seg = memory::two(m.labels.data(), m.labels.data() + voxels);
  const auto seg_out = memory::two(m.device_labels_out.data(), m.device_labels_out.data() + voxels);
  EXPECT_SAYS(binary_erosion(on, host_seg, seg_out), "binary_erosion: sample 0: input: pointer ");
  EXPECT_SAYS(binary_erosion(on, seg, host_seg), "binary_erosion: sample 0: output: pointer ");
  std::vector<bounding_box_result> boxes(2);
  EXPECT_SAYS(bounding_box(on, seg, std::span(boxes)), "bounding_box: results: pointer ");
  EXPECT_SAYS(binary_erosion(cpu{}, seg, host_seg), "binary_erosion: sample 0: input: pointer ");
  EXPECT_SAYS(binary_erosion(cuda{}, seg, seg_out), "binary_erosion: workspace: none was given");
  EXPECT_SAYS(mask_image(on, host_seg, m.in()), "mask_image: sample 0: label map: pointer ");

  const auto classes = label_classes(host_seg, 3);
  const device_array<std::byte> counts(class_counts_bytes(classes));
  EXPECT_SAYS(count_classes(on, classes, counts.span()), "count_classes: sample 0: view: pointer ");
  std::vector<std::byte> host_counts(counts.size());
  EXPECT_SAYS(count_classes(on, label_classes(seg, 3), host_counts), "count_classes: counts: pointer ");

  const auto p = plan(flip{}, std::vector{volume});
  const std::vector<point3> points{{1, 2, 3}};
  const std::vector<std::int64_t> offsets{0, 1};
  const device_array<located_point> moved(1);
  EXPECT_SAYS(to_output(on, p, ragged<point3>{points, offsets}, moved.span()), "to_output: points: pointer ");
  const device_array<point3> device_points(points);
  const device_array<std::int64_t> device_offsets(offsets);
  std::vector<located_point> host_moved(1);
  const auto on_the_cpu = [&](const ragged<point3>& lists, std::span<located_point> to) {
    to_output(cpu{}, p, lists, to);
  };
  EXPECT_SAYS(on_the_cpu({device_points.span(), offsets}, host_moved), "to_output: points: pointer ");
  EXPECT_SAYS(on_the_cpu({points, device_offsets.span()}, host_moved), "to_output: offsets: pointer ");
  EXPECT_SAYS(on_the_cpu({points, offsets}, moved.span()), "to_output: results: pointer ");
}

TEST(Memory, OfMasksThatAFitOfTheCpuLooksAt) {
  memory m;
  std::vector<moments> results(2);
  const auto on_host = memory::two(m.host.data(), m.host.data() + voxels);
  const auto masks = memory::two(m.labels.data(), m.device_labels.data());
  EXPECT_SAYS(fit(cpu{}, fit_moments{}, on_host, inside(masks), results), "fit_moments: sample 1: map: pointer ");
}

// Coverage as well, which some calls do without.
TEST(Memory, OfWindowsThatAreAveragedAndPutTogether) {
  memory m;
  const cuda_workspace workspace(1 << 20);
  const cuda on{nullptr, workspace};
  const patch_grid g = sliding_window_grid(volume.extents, volume.extents);
  const patch_window window = constant_window(volume.extents);
  const auto out = m.out()[0], host_out = contiguous(m.host_out.data(), volume);
  const patch_tensor<float> patches{m.device.data(), 1, 0, 1}, host_patches{m.host.data(), 1, 0, 1};
  const patch_tensor<float> also{m.device.data(), 1, 0, 1}, host_also{m.host.data(), 1, 0, 1};

  EXPECT_SAYS(reassemble(on, g, window, host_patches, out), "reassemble: patches: pointer ");
  EXPECT_SAYS(reassemble(on, g, window, patches, host_also, out), "reassemble: coverage: pointer ");
  EXPECT_SAYS(reassemble(on, g, window, patches, also, host_out), "reassemble: output: pointer ");
  EXPECT_SAYS(reassemble(cpu{}, g, window, host_patches, also, host_out), "reassemble: coverage: pointer ");

  const covered_mean rule{.outside = 0};
  const auto covered = m.out()[1], host_covered = contiguous(m.host_out.data() + voxels, volume);
  EXPECT_SAYS(average(on, host_patches, also, out, rule, covered), "average: patches: pointer ");
  EXPECT_SAYS(average(on, patches, host_also, out, rule, covered), "average: coverage: pointer ");
  EXPECT_SAYS(average(on, patches, also, out, rule, host_covered), "average: covered: pointer ");
  EXPECT_SAYS(average(cpu{}, host_patches, host_also, host_out, rule, covered), "average: covered: pointer ");
}

TEST(Memory, AnErrorOfAnEarlierCallIsSaidToBeThat) {
  memory m;
  const auto p = planned();
  const cuda_workspace workspace(1 << 20);
  const device_array<moments> results(2);
  const auto fail_elsewhere = [] { EXPECT_EQ(cudaSetDevice(100000), cudaErrorInvalidDevice); };
  fail_elsewhere();
  EXPECT_SAYS(run(cuda{nullptr, workspace}, p, image(m.in(), m.out())), "cuda: cudaErrorInvalidDevice (");
  fail_elsewhere();
  EXPECT_SAYS(run(cuda{nullptr, workspace}, p, image(m.in(), m.out())), "was left by a CUDA call before the one at ");
  fail_elsewhere();
  EXPECT_SAYS(fit(cuda{nullptr, workspace}, fit_moments{}, m.in(), everything{}, results.span()),
              "was left by a CUDA call before the one at ");
  run(cuda{nullptr, workspace}, p, image(m.in(), m.out()));  // it has been told
  check_cuda(cudaDeviceSynchronize(), "run");
  EXPECT_EQ(m.device_out.values(), m.host);
}

}  // namespace
