// SPDX-License-Identifier: Apache-2.0
// What the digests of stain fits and normalization are made from.
#pragma once

#include <suture/image/digest.hpp>

#include "samples.hpp"

namespace digest_test {

// Prints every digest. Backend: host_backend.hpp or device_backend.cuh.
template <class Backend>
void print_stains(Backend backend) {
  const color_cases data;
  const std::size_t n = data.grids.size();
  std::vector<view<const std::uint8_t>> images, masks;
  std::vector<view<const float>> floats;
  for (std::size_t i = 0; i < n; ++i) {
    const grid& g = data.grids[i];
    std::vector<float> values;
    for (const std::uint8_t x : data.images[i])
      values.push_back(static_cast<float>(x) / 255 + static_cast<float>(mix64(values.size()) % 100) * 2e-5f);
    values[7] = __builtin_nanf("");
    images.push_back(channels_last<const std::uint8_t>(backend.place(data.images[i]), g, 3));
    floats.push_back(channels_last<const float>(backend.place(values), g, 3));
    masks.push_back(contiguous<const std::uint8_t>(backend.place(data.labels[i]), g));
  }
  // Of the fitted bases, and of the images normalized by them.
  const auto print_chain = [&](const char* name, const auto& fit_of, const auto& in, const auto& selection,
                               bool together, const auto& chain_of) {
    const std::size_t results = together ? 1 : in.size();
    const std::span<stain_basis> fitted(backend.template room<stain_basis>(results), results);
    fit(backend.exec(std::size_t{1} << 20), fit_of, in, selection, fitted);
    std::uint64_t numbers = 0, colors = 0;
    const auto add = [&](double x) { numbers = mix64(numbers ^ bit_cast<std::uint64_t>(x)); };
    for (const stain_basis& b : backend.back(fitted.data(), results)) {
      for (int k = 0; k < 2; ++k) {
        for (int c = 0; c < 3; ++c) {
          add(b.stains[c][k]);
          add(static_cast<double>(b.unmixing.row[k][c]));
        }
        add(b.max_concentration[k]);
      }
      add(static_cast<double>(b.tally.count));
      add(static_cast<double>(b.pixels));
      add(static_cast<double>(static_cast<std::uint32_t>(b.status)));
    }
    std::vector<view<float>> outputs;
    for (const auto& image : in)
      outputs.push_back(
          contiguous(backend.template room<float>(static_cast<std::size_t>(3 * image.grid.voxels())), image.grid, 3));
    const auto p = plan(chain_of(fitted), in);
    const auto bound = image(in, outputs);
    run(backend.exec(workspace_bytes(p, bound)), p, bound);
    for (std::size_t i = 0; i < in.size(); ++i) {
      const grid& g = in[i].grid;
      const auto host = backend.back(outputs[i].data, static_cast<std::size_t>(3 * g.voxels()));
      colors = combine_digest(colors, i, digest(contiguous(host.data(), g, 3)));
    }
    std::printf("%-24s %016llx %016llx\n", name, static_cast<unsigned long long>(numbers),
                static_cast<unsigned long long>(colors));
  };
  const auto print = [&](const char* name, const auto& fit_of, const auto& in, const auto& selection,
                         const macenko_mode& m, bool together) {
    print_chain(name, fit_of, in, selection, together,
                [&](std::span<const stain_basis> fitted) { return m.normalize(fitted, {}, together); });
  };
  const auto mode = [&](const char* name, const macenko_mode& m) {
    print(name, m.fit, images, everything{}, m, false);
  };
  mode("macenko", macenko::standard);
  mode("macenko_torchstain", macenko::torchstain);
  mode("macenko_torchstain_torch", macenko::torchstain_torch);
  mode("macenko_matlab", macenko::matlab);
  mode("macenko_henorm", macenko::henorm);
  mode("macenko_monai", macenko::monai);
  mode("macenko_cucim", macenko::cucim);
  mode("macenko_staintools", macenko::staintools);
  mode("macenko_tiatoolbox", macenko::tiatoolbox);
  mode("macenko_vahadane", macenko::vahadane);
  print("macenko_together", fit_macenko{.together = true}, images, everything{}, macenko::standard, true);
  print("macenko_refined", fit_macenko{.refinements = 4, .together = true}, images, inside(masks), macenko::henorm,
        true);
  print("macenko_masked", fit_macenko{.fallback = stain_fallback::given}, images, inside(masks), macenko::standard,
        false);
  print("macenko_float", fit_macenko{.centered = false, .full_scale = 1}, floats, everything{}, macenko::matlab, false);
  print("macenko_blank", fit_macenko{.least_density = 20, .fallback = stain_fallback::given}, images, everything{},
        macenko::standard, false);
  // Powers of 2 from one operation to the next.
  const auto jittered = [&](const char* name, const auto& in, const macenko_mode& m, double least_share) {
    fit_macenko how = m.fit;
    how.least_share = least_share;
    print_chain(name, how, in, everything{}, false, [&](std::span<const stain_basis> fitted) {
      return m.normalize(fitted) | hed_jitter{.alpha = {1.05f, .9f, 1.1f}, .beta = {.01f, -.01f, .02f}};
    });
  };
  jittered("macenko_jittered", images, macenko::standard, .01);
  jittered("macenko_jittered_blank", images, macenko::standard, 1);
  jittered("macenko_jittered_float", floats, macenko::vahadane, .01);
  // Tiles large enough that keys are found among few pixels.
  std::vector<view<const std::uint8_t>> large;
  for (const std::int64_t size : {256, 219}) {
    const grid g{.extents = {1, 192, size}};
    std::vector<std::uint8_t> values;
    for (std::uint64_t i = 0; i < 192 * static_cast<std::uint64_t>(size); ++i)
      for (std::uint64_t c = 0; c < 3; ++c) {
        const std::uint64_t h = mix64(i), first = h % 90, second = h / 90 % 60;
        values.push_back(static_cast<std::uint8_t>(225 -
                                                   first *
                                                       (c == 0   ? 10
                                                        : c == 1 ? 11
                                                                 : 6) /
                                                       10 -
                                                   second *
                                                       (c == 0   ? 3
                                                        : c == 1 ? 13
                                                                 : 9) /
                                                       10 +
                                                   h / 5400 % 7));
      }
    large.push_back(channels_last<const std::uint8_t>(backend.place(values), g, 3));
  }
  print("macenko_large", macenko::standard.fit, large, everything{}, macenko::standard, false);
  print("macenko_large_matlab", macenko::matlab.fit, large, everything{}, macenko::matlab, false);
}

}  // namespace digest_test
