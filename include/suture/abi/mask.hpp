// SPDX-License-Identifier: Apache-2.0
// Functions of a request that compute masks (suture/mask), for callers in other languages: on the CPU or, with
// abi/mask.cuh, on a device.
//
// A request passes inputs, outputs, numbers, lists and results in the order in which the function reads each of them. T
// is the element type of the input.
#pragma once

#include <cstddef>
#include <optional>

#include "../mask/body_mask.hpp"
#include "../mask/bounding_box.hpp"
#include "../mask/components.hpp"
#include "../mask/fill_holes.hpp"
#include "../mask/gray_morphology.hpp"
#include "../mask/label_perturbation.hpp"
#include "../mask/mask_image.hpp"
#include "../mask/morphology.hpp"
#include "../mask/tissue_mask.hpp"
#include "executor.hpp"

namespace suture::abi {

// Callers in other languages rely on these sizes and offsets.
static_assert(sizeof(largest_component_result) == 2 * 4 && offsetof(largest_component_result, status) == 0 &&
              offsetof(largest_component_result, voxels) == 4);
static_assert(sizeof(bounding_box_result) == 7 * 4 && offsetof(bounding_box_result, status) == 0 &&
              offsetof(bounding_box_result, first) == 4 && offsetof(bounding_box_result, last) == 16);
static_assert(sizeof(tissue_mask_result) == 3 * 4 && offsetof(tissue_mask_result, status) == 0 &&
              offsetof(tissue_mask_result, threshold) == 4 && offsetof(tissue_mask_result, pixels) == 8);

template <>
struct codec<structuring_element> {
  static structuring_element read(reader& r, std::string_view) {
    const auto shape = r.next<element_shape>("shape");
    return {shape, r.next<extent3>("radius")};
  }
};

template <class T, class Executor>
void body_mask(const request& given) {
  reader r(given, "body_mask");
  const auto images = r.input<T>("images");
  const auto masks = r.output<std::uint8_t>("masks");
  const auto threshold = r.next<float>("threshold");
  const auto opening_radius = r.next<std::int64_t>("opening_radius");
  const auto found = r.result<largest_component_result>("found", given.samples);
  place<Executor>::run(r, workspace_bytes(mask_work::body_mask{}, images), found, [&](auto& exec, auto results) {
    suture::body_mask(exec, images, masks, results, {.threshold = threshold, .opening_radius = opening_radius});
  });
}

template <class T, class Executor>
void bounding_box(const request& given) {
  reader r(given, "bounding_box");
  const auto images = r.input<T>("images");
  const auto threshold = r.next<float>("threshold");
  const auto found = r.result<bounding_box_result>("found", given.samples);
  place<Executor>::run(r, workspace_bytes(mask_work::bounding_box{}, images), found,
                       [&](auto& exec, auto results) { suture::bounding_box(exec, images, results, threshold); });
}

// Computes the crop around a bounding box. The results are its start and its size in voxels, along (z, y, x).
inline void crop_foreground(const request& given) {
  reader r(given, "crop_foreground");
  grid image;
  image.extents = r.next<extent3>("extents");
  const bool empty = r.next<bool>("empty");
  bounding_box_result found{empty ? mask_status::empty : mask_status::ok, {}, {}};
  for (auto& k : found.first) k = r.next<std::int32_t>("first");
  for (auto& k : found.last) k = r.next<std::int32_t>("last");
  suture::crop_foreground settings;
  settings.margin = r.next<extent3>("margin");
  settings.divisible_by = r.next<extent3>("divisible_by");
  settings.allow_smaller = r.next<bool>("allow_smaller");
  const auto start = r.result<std::int64_t>("start", 3), size = r.result<std::int64_t>("size", 3);
  r.finish();
  const box_crop box = settings.placed(found, image);
  for (std::size_t k = 0; k < 3; ++k) {
    start[k] = box.start[static_cast<int>(k)];
    size[k] = box.size[static_cast<int>(k)];
  }
}

template <class T, class Executor>
void label_components(const request& given) {
  reader r(given, "label_components");
  const auto masks = r.input<T>("masks");
  const auto labels = r.output<std::int32_t>("labels");
  const auto touching = r.next<connectivity>("connectivity");
  const auto counts = r.result<std::uint32_t>("counts", given.samples);
  place<Executor>::run(r, workspace_bytes(mask_work::label_components{}, masks), counts, [&](auto& exec, auto results) {
    suture::label_components(exec, masks, labels, touching, results);
  });
}

template <class T, class Executor>
void keep_largest_component(const request& given) {
  reader r(given, "keep_largest_component");
  const auto masks = r.input<T>("masks");
  const auto kept = r.output<std::uint8_t>("kept");
  const auto touching = r.next<connectivity>("connectivity");
  const auto found = r.result<largest_component_result>("found", given.samples);
  place<Executor>::run(
      r, workspace_bytes(mask_work::keep_largest_component{}, masks), found,
      [&](auto& exec, auto results) { suture::keep_largest_component(exec, masks, kept, touching, results); });
}

template <class T, class Executor>
void remove_small_components(const request& given) {
  reader r(given, "remove_small_components");
  const auto masks = r.input<T>("masks");
  const auto kept = r.output<std::uint8_t>("kept");
  const auto touching = r.next<connectivity>("connectivity");
  const auto least = r.next<std::int64_t>("least");
  place<Executor>::run(r, workspace_bytes(mask_work::remove_small_components{}, masks), [&](const Executor& exec) {
    suture::remove_small_components(exec, masks, kept, touching, least);
  });
}

template <class T, class Executor>
void fill_holes(const request& given) {
  reader r(given, "fill_holes");
  const auto masks = r.input<T>("masks");
  const auto filled = r.output<std::uint8_t>("filled");
  const auto enclosed = r.next<hole_filling>("enclosed");
  place<Executor>::run(r, workspace_bytes(mask_work::fill_holes{}, masks),
                       [&](const Executor& exec) { suture::fill_holes(exec, masks, filled, enclosed); });
}

namespace detail {

// Reads the arguments of a binary morphology function and calls f(executor, masks, results, element, border value). All
// four functions need the same workspace.
template <class T, class Executor, class F>
void binary_morphology(const request& given, std::string_view name, const F& f) {
  reader r(given, name);
  const auto masks = r.input<T>("masks");
  const auto written = r.output<std::uint8_t>("results");
  const auto element = r.next<structuring_element>("element");
  const bool border_value = r.next<bool>("border_value");
  place<Executor>::run(r, workspace_bytes(mask_work::binary_erosion{}, masks),
                       [&](const Executor& exec) { f(exec, masks, written, element, border_value); });
}
template <class T, class Executor, class F>
void gray_morphology(const request& given, std::string_view name, const F& f) {
  reader r(given, name);
  const auto images = r.input<T>("images");
  const auto written = r.output<T>("results");
  const auto element = r.next<structuring_element>("element");
  const auto border_value = r.next<std::optional<double>>("border_value");
  place<Executor>::run(r, workspace_bytes(mask_work::gray_erosion{element}, images),
                       [&](const Executor& exec) { f(exec, images, written, element, border_value); });
}

}  // namespace detail

template <class T, class Executor>
void binary_erosion(const request& given) {
  detail::binary_morphology<T, Executor>(given, "binary_erosion",
                                         [](const auto&... all) { suture::binary_erosion(all...); });
}
template <class T, class Executor>
void binary_dilation(const request& given) {
  detail::binary_morphology<T, Executor>(given, "binary_dilation",
                                         [](const auto&... all) { suture::binary_dilation(all...); });
}
template <class T, class Executor>
void binary_opening(const request& given) {
  detail::binary_morphology<T, Executor>(given, "binary_opening",
                                         [](const auto&... all) { suture::binary_opening(all...); });
}
template <class T, class Executor>
void binary_closing(const request& given) {
  detail::binary_morphology<T, Executor>(given, "binary_closing",
                                         [](const auto&... all) { suture::binary_closing(all...); });
}

template <class T, class Executor>
void gray_erosion(const request& given) {
  detail::gray_morphology<T, Executor>(given, "gray_erosion", [](const auto&... all) { suture::gray_erosion(all...); });
}
template <class T, class Executor>
void gray_dilation(const request& given) {
  detail::gray_morphology<T, Executor>(given, "gray_dilation",
                                       [](const auto&... all) { suture::gray_dilation(all...); });
}

// Computes the tissue masks of uint8 RGB images.
template <class Executor>
void tissue_mask(const request& given) {
  reader r(given, "tissue_mask");
  const auto tiles = r.input<std::uint8_t>("tiles");
  const auto masks = r.output<std::uint8_t>("masks");
  tissue_mask_options settings;
  settings.rule = r.next<tissue_rule>("rule");
  settings.luminosity = r.next<float>("luminosity");
  settings.least_size = r.next<std::int64_t>("least_size");
  settings.dilation_radius = r.next<std::int64_t>("dilation_radius");
  const auto found = r.result<tissue_mask_result>("found", given.samples);
  place<Executor>::run(r, workspace_bytes(mask_work::tissue_mask{}, tiles), found,
                       [&](auto& exec, auto results) { suture::tissue_mask(exec, tiles, masks, results, settings); });
}

// Changes label maps of the integer type T in place.
template <class Rule, class T, class Executor>
void disturb_labels(const request& given) {
  reader r(given, Rule::name);
  const auto maps = r.inout<T>("maps");
  Rule rule;
  rule.labels = r.list<std::int32_t>("labels");
  rule.probability = r.next<float>("probability");
  rule.label_probability = r.next<float>("label_probability");
  if constexpr (std::is_same_v<Rule, suture::random_binary_operation>) {
    rule.smallest_radius = r.next<std::int64_t>("radius");
    rule.largest_radius = r.next<std::int64_t>("radius");
  } else {
    rule.largest_share = r.next<double>("largest_share");
  }
  place<Executor>::run(r, workspace_bytes(mask_work::disturb_labels{}, maps), [&](const Executor& exec) {
    suture::disturb_labels(exec, rule, maps, {.seed = given.seed, .epoch = given.epoch, .sample_ids = r.ids()});
  });
}
template <class T, class Executor>
inline constexpr auto& random_binary_operation = disturb_labels<suture::random_binary_operation, T, Executor>;
template <class T, class Executor>
inline constexpr auto& random_component_removal = disturb_labels<suture::random_component_removal, T, Executor>;

// Changes images of element type T in place, by label maps of the integer type L.
template <class L, class T, class Executor>
void mask_image(const request& given) {
  reader r(given, "mask_image");
  const auto maps = r.input<L>("label maps");
  const auto images = r.inout<T>("images");
  image_mask rule;
  rule.below = r.next<std::int32_t>("below");
  rule.value = r.next<float>("value");
  rule.channels = r.list<std::int64_t>("channels");
  place<Executor>::run(r, 0, [&](const Executor& exec) { suture::mask_image(exec, maps, images, rule); });
}

}  // namespace suture::abi
