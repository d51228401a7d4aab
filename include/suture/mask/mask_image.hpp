// SPDX-License-Identifier: Apache-2.0
// Images whose voxels are set to a constant where a label map marks them as outside the patient.
#pragma once

#include <cmath>

#include "loops.hpp"

namespace suture {

// mask_image: sets images to `value` where the label is below `below`, in `channels`, or in all if none are given.
//   labels  integer label maps, one channel
//   images  any storage type, of the labels' extents; changed in place
// Use it on the outputs of a run whose label map is bound without a conversion. Labels below 0 are those that nnU-Net's
// preprocessing gives to voxels outside the patient, or voxels outside the volume if label_outside is -1. It takes no
// workspace.
// Errors: shapes that differ, more than one channel of labels, an image that overlaps another view, a value that is not
// finite, a channel that the image does not have or that is above 63.
// Source: nnU-Net, batchgeneratorsv2 MaskImageTransform (channels of use_mask_for_norm).
struct image_mask {
  std::int32_t below = 0;
  float value = 0;
  std::span<const std::int64_t> channels = {};
};

namespace detail::masks {

template <class L, class T>
struct mask_voxels {
  strided<const L> map;
  strided<T> image;
  std::int32_t below;
  T value;
  bool all_channels;
  std::uint64_t channels;  // bit c: channel c
  std::int32_t width;

  SUTURE_FN bool masks(std::int64_t channel) const {
    return all_channels || (channel < 64 && (channels >> channel & 1) != 0);
  }
  SUTURE_FN void operator()(std::int32_t z, std::int32_t y, std::int32_t x) const {
    if (*map.at(z, y, x) >= below) return;
    T* const p = image.at(z, y, x);
    for (std::int64_t c = 0; c < image.channels; ++c)
      if (masks(c)) p[c * image.channel_stride] = value;
  }

  // Masks a row in pieces of 16 voxels, most of which are masked entirely or not at all.
  void row(std::int32_t z, std::int32_t y) const {
    constexpr std::int32_t stretch = 16;
    for (std::int32_t x0 = 0; x0 < width; x0 += stretch) {
      const std::int32_t count = std::min(stretch, width - x0);
      const L* const p = map.at(z, y, x0);
      std::int32_t masked = 0;
      if (map.stride[2] == 1)
        for (std::int32_t i = 0; i < count; ++i) masked += p[i] < below;
      else
        for (std::int32_t i = 0; i < count; ++i) masked += p[i * map.stride[2]] < below;
      if (masked == 0) continue;
      if (masked < count || image.stride[2] != 1) {
        for (std::int32_t x = x0; x < x0 + count; ++x) (*this)(z, y, x);
        continue;
      }
      for (std::int64_t c = 0; c < image.channels; ++c)
        if (masks(c)) std::fill_n(image.at(z, y, x0) + c * image.channel_stride, count, value);
    }
  }
};

template <class L, class T>
void check_masked(std::span<const view<L>> labels, std::span<const view<T>> images, const site& where) {
  check_mask_inputs(labels, where.operation);
  require(labels.size() == images.size(), where, labels.size(), " label maps for ", images.size(), " images");
  std::vector<memory_range> all;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const site sample{where.operation, static_cast<std::int64_t>(i)};
    check_writable(images[i], sample);
    require(images[i].grid.extents == labels[i].grid.extents, sample, "image extents ", images[i].grid.extents,
            " differ from the label map's ", labels[i].grid.extents);
    all.push_back({bytes(labels[i]), false, sample.sample});
    all.push_back({bytes(images[i]), true, sample.sample});
  }
  check_outputs_apart(std::move(all), where.operation);
}

}  // namespace detail::masks

template <class Executor, class Labels, class Images>
void mask_image(const Executor& exec, const Labels& label_maps, const Images& images, const image_mask& rule = {}) {
  using namespace detail::masks;
  using L = std::remove_const_t<view_element_t<Labels>>;
  using T = view_element_t<Images>;
  static_assert(std::is_integral_v<L>, "suture: label maps are integers");
  static_assert(!std::is_const_v<T>, "suture: an image is masked in place, so its view must be writable");
  const site where{"mask_image"};
  const auto maps = as_views(label_maps);
  const auto targets = as_views(images);
  check_masked(maps, targets, where);
  require(std::isfinite(rule.value), where, "value ", rule.value, " must be finite");
  std::uint64_t channels = 0;
  for (const std::int64_t c : rule.channels) {
    require(c >= 0 && c < 64, where, "channel ", c, " is not in 0 .. 63");
    for (std::size_t i = 0; i < targets.size(); ++i)
      require(c < targets[i].channels, {where.operation, static_cast<std::int64_t>(i)}, "the image has ",
              targets[i].channels, " channels, not channel ", c);
    channels |= std::uint64_t{1} << c;
  }
  mask_loops<Executor>::check_memory_of(exec, maps, where, "label map: ");
  mask_loops<Executor>::check_memory_of(exec, targets, where, "image: ");
  const std::vector<std::size_t> no_bytes(targets.size(), 0);
  mask_loops<Executor>::run(exec, no_bytes, where, [&](auto& loops, arena&, std::size_t i) {
    std::int32_t n[3];
    for (int k = 0; k < 3; ++k) n[k] = static_cast<std::int32_t>(targets[i].grid.extents[k]);
    loops.rows_or_voxels(
        n, strided_of(targets[i]).stride,
        mask_voxels<L, T>{strided_of(static_cast<view<const L>>(maps[i])), strided_of(targets[i]), rule.below,
                          storage<T>::store(rule.value), rule.channels.empty(), channels, n[2]});
  });
}

}  // namespace suture
