// SPDX-License-Identifier: Apache-2.0
// Prints the digests of patch sampling, reassembly and tiles, computed on the CPU.
#include "patches.hpp"

namespace digest_test {

struct host_patches {
  template <class T>
  std::vector<view<const T>> views(const std::vector<std::vector<T>>& data, const std::vector<grid>& grids,
                                   std::int64_t channels) {
    std::vector<view<const T>> v;
    for (std::size_t i = 0; i < data.size(); ++i) v.push_back(contiguous(data[i].data(), grids[i], channels));
    return v;
  }
  template <class Rule, class Classes>
  std::vector<patch_choice> select(const Rule& rule, const Classes& classes, const patch_draws& draws) {
    std::vector<std::uint64_t> table(class_counts_bytes(classes) / 8);
    count_classes(cpu{}, classes, std::as_writable_bytes(std::span(table)));
    std::vector<patch_choice> choices(classes.samples() * static_cast<std::size_t>(draws.patches));
    select_patches(cpu{}, rule, classes, std::as_bytes(std::span(table)), draws, choices);
    return choices;
  }
  template <class Classes>
  std::vector<class_index> indexes(const Classes& classes) {
    return index_classes(cpu{}, classes);
  }
  std::uint64_t reassembled(const patch_cases& data, const patch_window& window,
                            const std::vector<float>& coverage = {}) {
    const extent3& n = data.patches.image;
    std::vector<float> out(static_cast<std::size_t>(2 * n[0] * n[1] * n[2]));
    const patch_tensor<float> predictions{data.predictions.data(), 2, 0, data.patches.count()};
    const auto to = contiguous(out.data(), grid{.extents = n}, 2);
    if (coverage.empty())
      reassemble(cpu{}, data.patches, window, predictions, to);
    else
      reassemble(cpu{}, data.patches, window, predictions, {coverage.data(), 1, 0, data.patches.count()}, to);
    return digest_of_volume(out, n);
  }
  std::vector<sharpness> sharpness_of(const std::vector<std::vector<std::uint8_t>>& data,
                                      const std::vector<grid>& grids, std::int64_t channels) {
    std::vector<sharpness> results(data.size());
    fit(cpu{}, fit_sharpness{}, views(data, grids, channels), everything{}, std::span(results));
    return results;
  }
  template <class Result, class Plan, class T>
  std::vector<Result> moved(const Plan& plan, const std::vector<T>& values, const std::vector<std::int64_t>& offsets) {
    std::vector<Result> results(values.size());
    move_lists(cpu{}, plan, ragged<T>{values, offsets}, std::span(results));
    return results;
  }
  std::uint64_t averaged(const std::vector<float>& volumes, const std::vector<float>& weights, const grid& g) {
    std::vector<float> out(static_cast<std::size_t>(3 * g.voxels()));  // two means and their weight
    average(cpu{}, patch_tensor<float>{volumes.data(), 2, 0, 3}, {weights.data(), 1, 0, 3},
            contiguous(out.data(), g, 2), {.outside = -1}, contiguous(out.data() + 2 * g.voxels(), g));
    return digest_of_volume(out, g.extents, 3);
  }
  template <class Plan>
  std::vector<std::vector<float>> through(const Plan& plan, const std::vector<view<const float>>& images) {
    std::vector<std::vector<float>> results;
    std::vector<view<float>> out;
    for (std::size_t i = 0; i < plan.size(); ++i) {
      results.emplace_back(static_cast<std::size_t>(2 * plan.output_grid(i).voxels()));
      out.push_back(contiguous(results.back().data(), plan.output_grid(i), 2));
    }
    run(cpu{}, plan, image(images, out));
    return results;
  }
};

}  // namespace digest_test

int main() {
  digest_test::print_all(digest_test::host_patches{});
  return 0;
}
