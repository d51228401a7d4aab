// SPDX-License-Identifier: Apache-2.0
// Prints the digests of patch sampling, reassembly and tiles, computed on the device.
#include <suture/fit/sharpness.cuh>
#include <suture/patch/average.cuh>
#include <suture/patch/class_index.cuh>
#include <suture/patch/reassemble.cuh>
#include <suture/patch/select_patches.cuh>
#include <suture/points/points.cuh>

#include "device_backend.cuh"
#include "patches.hpp"

namespace digest_test {

struct device_patches : device_backend {
  template <class T>
  std::vector<view<const T>> views(const std::vector<std::vector<T>>& data, const std::vector<grid>& grids,
                                   std::int64_t channels) {
    std::vector<view<const T>> v;
    for (std::size_t i = 0; i < data.size(); ++i) v.push_back(contiguous<const T>(place(data[i]), grids[i], channels));
    return v;
  }
  template <class Rule, class Classes>
  std::vector<patch_choice> select(const Rule& rule, const Classes& classes, const patch_draws& draws) {
    const std::size_t bytes = class_counts_bytes(classes);
    const std::span<std::byte> table(room<std::byte>(bytes), bytes);
    count_classes(cuda{}, classes, table);
    const std::size_t n = classes.samples() * static_cast<std::size_t>(draws.patches);
    const std::span<patch_choice> choices(room<patch_choice>(n), n);
    select_patches(cuda{}, rule, classes, table, draws, choices);
    return back(choices.data(), n);
  }
  template <class Classes>
  std::vector<class_index> indexes(const Classes& classes) {
    return index_classes(cuda{}, classes);
  }
  std::uint64_t reassembled(const patch_cases& data, const patch_window& window,
                            const std::vector<float>& coverage = {}) {
    const extent3& n = data.patches.image;
    const auto voxels = static_cast<std::size_t>(2 * n[0] * n[1] * n[2]);
    float* out = room<float>(voxels);
    const cuda_workspace workspace(workspace_bytes(data.patches));
    const cuda exec{.workspace = workspace};
    const patch_tensor<float> predictions{place(data.predictions), 2, 0, data.patches.count()};
    const auto to = contiguous(out, grid{.extents = n}, 2);
    if (coverage.empty())
      reassemble(exec, data.patches, window, predictions, to);
    else
      reassemble(exec, data.patches, window, predictions, {place(coverage), 1, 0, data.patches.count()}, to);
    return digest_of_volume(back(out, voxels), n);
  }
  std::vector<sharpness> sharpness_of(const std::vector<std::vector<std::uint8_t>>& data,
                                      const std::vector<grid>& grids, std::int64_t channels) {
    const auto tiles = views(data, grids, channels);
    const std::span<sharpness> results(room<sharpness>(data.size()), data.size());
    const cuda_workspace workspace(workspace_bytes(fit_sharpness{}, tiles));
    fit(cuda{.workspace = workspace}, fit_sharpness{}, tiles, everything{}, results);
    return back(results.data(), data.size());
  }
  template <class Result, class Plan, class T>
  std::vector<Result> moved(const Plan& plan, const std::vector<T>& values, const std::vector<std::int64_t>& offsets) {
    const cuda_workspace workspace(workspace_bytes(plan));
    Result* results = room<Result>(values.size());
    const ragged<T> lists{{place(values), values.size()}, {place(offsets), offsets.size()}};
    move_lists(cuda{.workspace = workspace}, plan, lists, std::span(results, values.size()));
    return back(results, values.size());
  }
  std::uint64_t averaged(const std::vector<float>& volumes, const std::vector<float>& weights, const grid& g) {
    const auto voxels = static_cast<std::size_t>(3 * g.voxels());  // two means and their weight
    float* out = room<float>(voxels);
    average(cuda{}, patch_tensor<float>{place(volumes), 2, 0, 3}, {place(weights), 1, 0, 3}, contiguous(out, g, 2),
            {.outside = -1}, contiguous(out + 2 * g.voxels(), g));
    return digest_of_volume(back(out, voxels), g.extents, 3);
  }
  template <class Plan>
  std::vector<std::vector<float>> through(const Plan& plan, const std::vector<view<const float>>& images) {
    std::vector<view<float>> out;
    for (std::size_t i = 0; i < plan.size(); ++i) {
      const grid& g = plan.output_grid(i);
      out.push_back(contiguous(room<float>(static_cast<std::size_t>(2 * g.voxels())), g, 2));
    }
    const auto pair = image(images, out);
    const cuda_workspace workspace(workspace_bytes(plan, pair));
    run(cuda{.workspace = workspace}, plan, pair);
    check_cuda(cudaDeviceSynchronize(), "run");
    std::vector<std::vector<float>> results;
    for (const auto& v : out) results.push_back(back(v.data, static_cast<std::size_t>(2 * v.grid.voxels())));
    return results;
  }
};

}  // namespace digest_test

int main() {
  digest_test::print_all(digest_test::device_patches{});
  return 0;
}
