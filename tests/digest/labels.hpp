// SPDX-License-Identifier: Apache-2.0
// What the digests of converted label maps and of their smaller grids are made from.
#pragma once

#include <suture/recipe/nnunet.hpp>

#include "samples.hpp"

namespace digest_test {

// The label maps of the samples as int8, every one lower by one: -1 is the label to ignore.
struct label_cases {
  cases volumes;
  std::vector<std::vector<std::int8_t>> labels;

  label_cases() {
    for (const auto& map : volumes.labels) {
      labels.emplace_back(map.size());
      for (std::size_t i = 0; i < map.size(); ++i) labels.back()[i] = static_cast<std::int8_t>(map[i] - 1);
    }
  }
};

// Where a result and its levels go.
template <class T, class Backend>
struct label_results {
  std::vector<view<T>> full;
  std::vector<std::vector<view<T>>> levels;

  label_results(Backend& backend, const std::vector<grid>& grids, std::int64_t channels,
                const std::vector<point3>& scales) {
    const auto room = [&](const grid& g) {
      return contiguous(backend.template room<T>(static_cast<std::size_t>(channels * g.voxels())), g, channels);
    };
    for (const grid& g : grids) full.push_back(room(g));
    for (const point3& scale : scales) {
      levels.emplace_back();
      for (const grid& g : grids) levels.back().push_back(room(level_grid(g, level_extents(g.extents, scale))));
    }
  }

  std::uint64_t digest_with(Backend& backend, const std::vector<std::uint64_t>& ids) const {
    std::uint64_t sum = 0;
    const auto add = [&](const std::vector<view<T>>& views) {
      for (std::size_t i = 0; i < views.size(); ++i) {
        const auto n = static_cast<std::size_t>(views[i].channels * views[i].grid.voxels());
        const std::vector<T> host = backend.back(views[i].data, n);
        sum = combine_digest(mix64(sum), ids[i], digest(contiguous(host.data(), views[i].grid, views[i].channels)));
      }
    };
    add(full);
    for (const auto& level : levels) add(level);
    return sum;
  }
};

// Every channel of every voxel as an evaluator gives it, into dense memory: sample after sample, channel by channel.
template <class Evaluator, class Out>
SUTURE_HD void evaluate_voxel(const Evaluator& evaluate, std::int32_t number, const extent3& n, std::int32_t channels,
                              std::int64_t voxel, Out* out) {
  const auto z = static_cast<std::int32_t>(voxel / (n[1] * n[2])), y = static_cast<std::int32_t>(voxel / n[2] % n[1]),
             x = static_cast<std::int32_t>(voxel % n[2]);
  for (std::int32_t channel = 0; channel < channels; ++channel)
    out[channel * n[0] * n[1] * n[2] + voxel] = evaluate(number, z, y, x, channel);
}

// Prints every digest. Backend: room, copies to and from where it runs, run(plan, bindings...), and evaluate(plan,
// binding, channels, out), which fills what `out` views by an evaluator.
template <class Backend>
void print_labels(Backend backend) {
  const label_cases data;
  const std::vector<grid>& grids = data.volumes.grids;
  const std::vector<std::uint64_t>& ids = data.volumes.ids;
  std::vector<view<const std::int8_t>> in;
  for (std::size_t i = 0; i < grids.size(); ++i)
    in.push_back(contiguous<const std::int8_t>(backend.place(data.labels[i]), grids[i]));
  // Where a label is 2 or more, as bool.
  std::vector<view<const bool>> masks;
  for (std::size_t i = 0; i < grids.size(); ++i) {
    std::vector<std::uint8_t> bytes;
    for (const std::int8_t label : data.labels[i]) bytes.push_back(label > 1 ? 1 : 0);
    masks.push_back(contiguous(reinterpret_cast<const bool*>(backend.place(bytes)), grids[i]));
  }
  const std::vector<point3> scales{{.5, .5, .5}, {1, .3, .25}, {1, 1, 1}};

  const auto print = [&](const char* name, const auto& pipeline) {
    const auto p = plan(pipeline, grids, {.seed = 20261120, .epoch = 3, .sample_ids = ids});
    const std::vector<grid> out = p.output_grids();
    const label_results<std::int16_t, Backend> mapped(backend, out, 1, {});
    const label_results<suture::half, Backend> tumors(backend, out, 4, scales);
    const label_results<float, Backend> hot(backend, out, 2, {});
    const label_results<std::int8_t, Backend> kept(backend, out, 1, scales);
    // A table that is searched, since its labels are far apart, and one that is not.
    backend.run(p, labels(in, mapped.full, remap{{{-1, 0}, {2, 300}, {100, 7}}}),
                labels(in, tumors.full, regions{.sets = {{0, 2}, {0, 1, 2}, {2}}, .ignore = -1},
                       deep_supervision(tumors.levels)),
                labels(in, hot.full, one_hot{.classes = 3, .background = false}),
                labels(in, kept.full, deep_supervision(kept.levels[0], kept.levels[1], kept.levels[2])));
    // Indexes of 64 bits for losses; shares of masks of bool.
    const label_results<std::int64_t, Backend> wide(backend, out, 1, {});
    const label_results<float, Backend> shares(backend, out, 1, {});
    backend.run(p, labels(in, wide.full, remap{{{2, 2147483647}}}), image(masks, shares.full));
    const label_results<std::int8_t, Backend> masked(backend, out, 2, scales);
    backend.run(p, labels(in, masked.full, nnunet_masked_target{}, deep_supervision(masked.levels)));
    const label_results<suture::half, Backend> evaluated(backend, out, 4, {});
    backend.evaluate(p, labels<suture::half>(in, regions{.sets = {{0, 2}, {0, 1, 2}, {2}}, .ignore = -1}), 4,
                     evaluated.full);
    std::printf("%-16s", name);
    for (const std::uint64_t d :
         {evaluated.digest_with(backend, ids), mapped.digest_with(backend, ids), tumors.digest_with(backend, ids),
          hot.digest_with(backend, ids), kept.digest_with(backend, ids), masked.digest_with(backend, ids),
          wide.digest_with(backend, ids), shares.digest_with(backend, ids)})
      std::printf(" %016llx", static_cast<unsigned long long>(d));
    std::printf("\n");
  };
  const auto turned = random_affine{.rotate_deg = 25, .scale = {.8f, 1.3f}} | random_flip{};
  print("nearest", turned | sampling<linear, constant>{.label_outside = -1});
  print("vote", turned | sampling<linear, constant, vote>{.label_outside = -1});
  print("no_geometry", brightness{.offset = 1});
}

}  // namespace digest_test
