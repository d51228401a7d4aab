// SPDX-License-Identifier: Apache-2.0
// Functions of a request that choose, index and reassemble patches, for callers in other languages: on the CPU or, with
// abi/patch.cuh, on a device. Template arguments are element types and the executor.
#pragma once

#include <memory>

#include "../patch/average.hpp"
#include "../patch/class_index.hpp"
#include "../patch/reassemble.hpp"
#include "../patch/select_patches.hpp"
#include "executor.hpp"
#include "parameters.hpp"
#include "patch_grid.hpp"

namespace suture::abi {

// Callers in other languages rely on these sizes.
static_assert(sizeof(patch_choice) == 40 && sizeof(slide_tile) == 48 && sizeof(slide_level) == 24);

namespace detail {

template <class L>
auto read_label_classes(reader& r) {
  auto labels = r.input<L>("maps");
  return label_class_map<L>{std::move(labels), r.next<std::int32_t>("classes")};
}

// Reads the class map of a rule. Inputs: label maps or weights, then images if I is not void. Number: `image_threshold`
// for pos_neg_patch with images, none without; `size` for weighted_patch, `classes` for other rules.
template <class Rule, class L, class I>
auto read_classes(reader& r) {
  if constexpr (!std::is_void_v<I>) {
    static_assert(std::is_same_v<Rule, pos_neg_patch>, "only pos_neg_patch looks at images");
    auto labels = r.input<L>("maps");
    auto images = r.input<I>("images");
    return foreground_class_map<L, I>{std::move(labels), std::move(images), r.next<float>("image_threshold")};
  } else if constexpr (std::is_same_v<Rule, pos_neg_patch>) {
    return foreground_class_map<L, float>{r.input<L>("maps"), {}, 0};
  } else if constexpr (std::is_same_v<Rule, weighted_patch>) {
    const auto size = r.next<extent3>("size");
    return weight_map(r.input<L>("maps"), size);
  } else {
    return read_label_classes<L>(r);
  }
}

}  // namespace detail

// Chooses the patches of each sample. L is the element type of labels or weights, I of images, or void where there are
// none. Inputs: maps, images. Numbers: those of the rule, those of read_classes, patches, ordinal. Lists: those of the
// rule, forced flags. Result: samples * patches choices.
template <class Rule, class L, class I, class Executor>
void select_patches(const request& given) {
  reader r(given, "select_patches");
  Rule rule;
  if constexpr (described<Rule>) rule = r.next<Rule>("rule");
  const auto map = detail::read_classes<Rule, L, I>(r);
  patch_draws draws{.seed = given.seed, .epoch = given.epoch, .sample_ids = r.ids()};
  draws.patches = r.next<std::int32_t>("patches");
  draws.ordinal = r.next<std::uint16_t>("ordinal");
  draws.forced = r.list<std::uint8_t>("forced");
  const auto choices = r.result<patch_choice>("choices", given.samples * draws.patches);
  place<Executor>::run_with_table(r, class_counts_bytes(map), choices, [&](auto& exec, auto table, auto chosen) {
    suture::count_classes(exec, map, table);
    suture::select_patches(exec, rule, map, table, draws, chosen);
  });
}

// Counts the voxels of each class in each sample. Input: maps. Number: classes. Result: samples * classes counts.
template <class L, class Executor>
void count_classes(const request& given) {
  reader r(given, "count_classes");
  const auto map = detail::read_label_classes<L>(r);
  map.check();
  const auto counts = r.result<std::uint64_t>("counts", given.samples * map.classes);
  place<Executor>::run(r, 0, [&](const Executor& exec) {
    auto* count = counts.data();
    for (const class_index& index : suture::index_classes(exec, map))
      count = std::copy_n(index.totals(), map.classes, count);
  });
}

// Builds a class_index for each sample. The caller owns it and frees it by free_class_indexes (abi/plain.hpp). Input:
// labels. Numbers: classes; 1 if the classes are foreground and background; 1 if labels are remapped, followed by the
// parameters of `remap`. Result: a pointer for each sample.
template <class L, class Executor>
void index_classes(const request& given) {
  reader r(given, "crop_by_class");
  const auto labels = r.input<L>("labels");
  const auto classes = r.next<std::int32_t>("classes");
  const auto foreground = r.next<bool>("foreground");
  remap change;
  const auto remapped = r.next<bool>("remapped");
  if (remapped) change = r.next<remap>("remap");
  const auto handles = r.result<class_index*>("indexes", given.samples);
  place<Executor>::run(r, 0, [&](const Executor& exec) {
    std::vector<class_index> made;
    if (remapped)
      made = suture::index_classes(exec, remapped_class_map<L>{labels, classes, change, foreground});
    else if (foreground)
      made = suture::index_classes(exec, foreground_class_map<L, float>{labels, {}, 0});
    else
      made = suture::index_classes(exec, label_class_map<L>{labels, classes});
    std::vector<std::unique_ptr<class_index>> kept;
    for (class_index& index : made) kept.push_back(std::make_unique<class_index>(std::move(index)));
    for (std::size_t i = 0; i < kept.size(); ++i) handles[i] = kept[i].release();
  });
}

// Reassembles a volume from its patches. Numbers: extents of the volume, size and number of the patches, window,
// outside. Lists: the starts of the patches along z, y and x. Inputs: the patches as one tensor; if Covered, the
// coverage of each of their voxels, 0 to 1. Output: the volume.
template <class T, bool Covered, class Executor>
void reassemble(const request& given) {
  reader r(given, "reassemble");
  patch_grid grid{r.next<extent3>("image"), r.next<extent3>("size"), {}};
  const auto count = r.next<std::int64_t>("patches");
  const auto window = r.next<window_kind>("window");
  const auto outside = r.next<float>("outside");
  for (auto& along : grid.starts) {
    const auto starts = r.list<std::int64_t>("starts");
    along.assign(starts.begin(), starts.end());
  }
  const auto from = detail::one(r.input<T>("patches"), r, "patches");
  require(count == grid.count() && from.grid.extents == grid.size, r.where(), "patches: expected ", grid.count(),
          " of ", grid.size, ", got ", count, " of ", from.grid.extents);
  const patch_tensor<T> tensor{from.data, from.channels, 0, count};
  patch_tensor<float> coverage;
  if constexpr (Covered) coverage = {detail::one(r.input<float>("coverage"), r, "coverage").data, 1, 0, count};
  const auto out = detail::one(r.output<float>("volume"), r, "volume");
  require(out.grid.extents == grid.image, r.where(), "volume: expected ", grid.image, ", got ", out.grid.extents);
  place<Executor>::run(r, device_bytes<Executor>(grid), [&](const Executor& exec) {
    if constexpr (Covered)
      suture::reassemble(exec, grid, window_of(window, grid.size), tensor, coverage, out, 0, outside);
    else
      suture::reassemble(exec, grid, window_of(window, grid.size), tensor, out);
  });
}

// Averages predictions of one volume, weighted by their coverages. Numbers: how many predictions, least, outside.
// Inputs: the predictions as one tensor, their coverages. Outputs: the mean, its coverage.
template <class T, class Executor>
void average(const request& given) {
  reader r(given, "average");
  const auto count = r.next<std::int64_t>("restored");
  covered_mean rule;
  rule.least = r.next<float>("least");
  rule.outside = r.next<float>("outside");
  const auto from = detail::one(r.input<T>("restored"), r, "restored");
  const auto weights = detail::one(r.input<float>("coverage"), r, "coverage");
  const auto out = detail::one(r.output<float>("mean"), r, "mean");
  const auto covered = detail::one(r.output<float>("covered"), r, "covered");
  require(weights.grid.extents == from.grid.extents && out.grid.extents == from.grid.extents, r.where(),
          "mean: expected extents ", from.grid.extents, ", got ", out.grid.extents, " and coverages of ",
          weights.grid.extents);
  place<Executor>::run(r, 0, [&](const Executor& exec) {
    suture::average(exec, patch_tensor<T>{from.data, from.channels, 0, count},
                    patch_tensor<float>{weights.data, 1, 0, count}, out, rule, covered);
  });
}

}  // namespace suture::abi
