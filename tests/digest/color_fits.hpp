// SPDX-License-Identifier: Apache-2.0
// What the digests of fits of color, and of the operations that apply them, are made from.
#pragma once

#include "samples.hpp"

namespace digest_test {

// Prints every digest. Backend: see host_backend.hpp.
template <class Backend>
class color_fits {
public:
  explicit color_fits(Backend b) : backend(std::move(b)) {
    for (std::size_t i = 0; i < data.grids.size(); ++i) {
      tiles.push_back(channels_last<const std::uint8_t>(backend.place(data.images[i]), data.grids[i], 3));
      masks.push_back(contiguous<const std::uint8_t>(backend.place(data.labels[i]), data.grids[i]));
      outs.push_back(contiguous(backend.template room<float>(static_cast<std::size_t>(3 * data.grids[i].voxels())),
                                data.grids[i], 3));
    }
  }

  void print() {
    print_space<lab>();
    print_space<ruderman>();
    print_space<hsv>();
    print_space<hed>();
    const std::size_t n = 3 * tiles.size();
    const std::span<moments> fitted(backend.template room<moments>(n), n);
    const fit_moments how;
    fit(backend.exec(std::size_t{1} << 20), how, tiles, everything{}, fitted);
    const random_color_jitter jitter{.brightness = {.5f, 1.5f},
                                     .contrast = {.5f, 1.5f},
                                     .saturation = {0, 2},
                                     .hue = {-.5f, .5f},
                                     .fitted = fitted,
                                     .random_order = true};
    print_pipeline("color_jitter_fitted", jitter);
  }

private:
  template <class Space>
  void print_space() {
    const std::size_t n = tiles.size();
    const std::span<color_moments<Space>> fitted(backend.template room<color_moments<Space>>(n), n);
    fit(backend.exec(std::size_t{1} << 20), fit_color_moments<Space>{.ddof = 1}, tiles, inside(masks), fitted);
    std::uint64_t sum = 0;
    for (const color_moments<Space>& m : backend.back(fitted.data(), n))
      for (int k = 0; k < 3; ++k)
        for (const double value : {m.mean[k], m.standard_deviation[k], static_cast<double>(m.reciprocal[k])})
          sum = mix64(sum ^ bit_cast<std::uint64_t>(value));
    const std::string name(Space::name);
    std::printf("%-24s %016llx\n", ("moments_" + name).c_str(), static_cast<unsigned long long>(sum));
    const color_moments<Space> target = backend.back(fitted.data(), 1)[0];
    const auto left = [&](reinhard_rule rule) {
      return reinhard<Space>{.fitted = fitted, .target = target, .rule = rule} | identity{};
    };
    print_pipeline("reinhard_" + name, left(reinhard_rule::plain));
    print_pipeline("modified_" + name, left(reinhard_rule::modified));
    color_table<Space> table{};
    for (int k = 0; k < 3; ++k) {
      table.mean[k] = {target.mean[k], target.standard_deviation[k] / 4};
      table.standard_deviation[k] = {target.standard_deviation[k], target.standard_deviation[k] / 2};
    }
    for (const stain_na_law law : {stain_na_law::normal, stain_na_law::laplace, stain_na_law::uniform})
      print_pipeline("stain_na_" + name,
                     flip{{false, true, false}} | random_stain_na<Space>{.fitted = fitted, .table = table, .law = law});
  }

  template <class Pipeline>
  void print_pipeline(const std::string& name, const Pipeline& pipeline) {
    const auto p = plan(pipeline, tiles, {.seed = 7, .sample_ids = data.ids});
    run(backend.exec(workspace_bytes(p, image(tiles, outs))), p, image(tiles, outs));
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < outs.size(); ++i) {
      const auto host = backend.back(outs[i].data, static_cast<std::size_t>(3 * outs[i].grid.voxels()));
      sum = combine_digest(sum, data.ids[i], digest(contiguous(host.data(), outs[i].grid, 3)));
    }
    std::printf("%-24s %016llx\n", name.c_str(), static_cast<unsigned long long>(sum));
  }

  Backend backend;
  color_cases data;
  std::vector<view<const std::uint8_t>> tiles, masks;
  std::vector<view<float>> outs;
};

}  // namespace digest_test
