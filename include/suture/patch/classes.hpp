// SPDX-License-Identifier: Apache-2.0
// Class maps: rules that give every voxel of a batch a class, or a weight, by which it may be drawn. They read label
// maps, images and weight maps where these lie and store nothing per voxel.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "../base/numeric.hpp"
#include "../evaluate/binding.hpp"
#include "../image/view.hpp"

namespace suture {

// The most classes that may be declared.
inline constexpr std::int32_t max_classes = 1024;

namespace detail {

// A voxel's class and its weight in counts. Two numbers beyond the classes stand for voxels that are never drawn:
// `classes` for those of no class, `classes + 1` for those whose image is NaN or infinite.
struct weighted_class {
  std::int32_t of_class;
  std::uint32_t weight;
};

// The memory of a view, without its grid.
template <class T>
struct strided {
  const T* data;
  std::int64_t stride[3];
  std::int64_t channel_stride;
  std::int32_t channels;

  SUTURE_FN std::int64_t offset(std::int32_t z, std::int32_t y, std::int32_t x) const {
    return z * stride[0] + y * stride[1] + x * stride[2];
  }
};
template <class T>
strided<T> strided_of(const view<const T>& v) {
  return {v.data, {v.stride[0], v.stride[1], v.stride[2]}, v.channel_stride, static_cast<std::int32_t>(v.channels)};
}

inline void check_number_of_classes(std::int32_t classes, const site& where) {
  require(classes >= 1 && classes <= max_classes, where, "classes ", classes, " must be in 1..", max_classes);
}

// Returns the class of a label, or `classes` if it has none.
SUTURE_FN std::int32_t class_of_label(std::int32_t label, std::int32_t classes) {
  return label >= 0 && label < classes ? label : classes;
}

template <class L>
struct label_reader {
  strided<L> labels;
  std::int32_t classes;

  // Calls f(source) for every tensor that the reader reads.
  template <class F>
  SUTURE_INLINE void each_source(const F& f) const {
    f(labels);
  }
  // Returns whether the class of a voxel depends on its label alone.
  bool goes_by_label() const { return true; }

  SUTURE_FN weighted_class operator()(std::int32_t z, std::int32_t y, std::int32_t x) const {
    return {class_of_label(static_cast<std::int32_t>(labels.data[labels.offset(z, y, x)]), classes), 1};
  }
};

template <class L, class I>
struct foreground_reader {
  strided<L> labels;
  strided<I> image;  // no data: every voxel that is not foreground is background
  float threshold;

  template <class F>
  SUTURE_INLINE void each_source(const F& f) const {
    f(labels);
    if (image.data != nullptr) f(image);
  }
  bool goes_by_label() const { return labels.channels == 1 && image.data == nullptr; }

  SUTURE_FN weighted_class operator()(std::int32_t z, std::int32_t y, std::int32_t x) const {
    const L* label = labels.data + labels.offset(z, y, x);
    for (std::int32_t c = 0; c < labels.channels; ++c)
      if (label[c * labels.channel_stride] > 0) return {1, 1};
    if (image.data == nullptr) return {0, 1};
    const I* value = image.data + image.offset(z, y, x);
    bool above = false, finite = true;
    for (std::int32_t c = 0; c < image.channels; ++c) {
      const float v = storage<I>::load(value[c * image.channel_stride]);
      above = above || v > threshold;
      finite = finite && (float_bits(v) & 0x7f800000u) != 0x7f800000u;
    }
    return {!finite ? 3 : above ? 0 : 2, 1};
  }
};

template <class W>
struct weight_reader {
  strided<W> weights;
  std::int32_t first[3], last[3];  // the center voxels of the patches that lie inside the volume

  template <class F>
  SUTURE_INLINE void each_source(const F& f) const {
    f(weights);
  }
  bool goes_by_label() const { return false; }

  SUTURE_FN weighted_class operator()(std::int32_t z, std::int32_t y, std::int32_t x) const {
    const bool inside = z >= first[0] && z <= last[0] && y >= first[1] && y <= last[1] && x >= first[2] && x <= last[2];
    return {0, inside ? static_cast<std::uint32_t>(weights.data[weights.offset(z, y, x)]) : 0u};
  }
};

template <class T>
void check_views(const std::vector<view<const T>>& views, std::string_view operation) {
  require(!views.empty(), {operation}, "the batch is empty");
  require(views.size() <= 65535, {operation}, "batch of ", views.size(), " samples exceeds 65535");
  for (std::size_t i = 0; i < views.size(); ++i) check(views[i], {operation, static_cast<std::int64_t>(i)});
}

}  // namespace detail

// The class of a voxel is its label, 0 .. classes - 1. Voxels of other labels are never drawn;
// class_counts::unclassified counts them. label_classes(labels, classes) makes it.
template <class L>
struct label_class_map {
  static constexpr std::string_view name = "label_classes";
  std::vector<view<const L>> labels;
  std::int32_t classes = 0;

  std::size_t samples() const { return labels.size(); }
  const suture::grid& grid(std::size_t i) const { return labels[i].grid; }
  detail::label_reader<L> reader(std::size_t i) const { return {detail::strided_of(labels[i]), classes}; }
  template <class F>
  void for_each_range(const F& f) const {
    for (const auto& v : labels) f(bytes(v));
  }
  void check() const {
    detail::check_number_of_classes(classes, {name});
    detail::check_views(labels, name);
    for (std::size_t i = 0; i < labels.size(); ++i)
      require(labels[i].channels == 1, {name, static_cast<std::int64_t>(i)}, "labels have ", labels[i].channels,
              " channels; one is needed");
  }
};

// Class 1 is foreground: label > 0 in any channel. Class 0 is background: voxels that are not foreground and, if images
// are given, whose image is above the threshold in any channel. Other voxels have no class. Those whose image is NaN or
// infinite in a channel are counted separately (class_counts::nonfinite). foreground_background(labels[, images,
// threshold]) makes it. Source: MONAI map_binary_to_indices (RandCropByPosNegLabel), whose foreground is label != 0.
template <class L, class I>
struct foreground_class_map {
  static constexpr std::string_view name = "foreground_background";
  static constexpr std::int32_t classes = 2;
  std::vector<view<const L>> labels;
  std::vector<view<const I>> images;
  float image_threshold = 0;

  std::size_t samples() const { return labels.size(); }
  const suture::grid& grid(std::size_t i) const { return labels[i].grid; }
  detail::foreground_reader<L, I> reader(std::size_t i) const {
    return {detail::strided_of(labels[i]), images.empty() ? detail::strided<I>{} : detail::strided_of(images[i]),
            image_threshold};
  }
  template <class F>
  void for_each_range(const F& f) const {
    for (const auto& v : labels) f(bytes(v));
    for (const auto& v : images) f(bytes(v));
  }
  void check() const {
    detail::check_views(labels, name);
    require(image_threshold == image_threshold, {name}, "the image threshold is NaN");
    if (images.empty()) return;
    detail::check_views(images, name);
    require(images.size() == labels.size(), {name}, images.size(), " images for ", labels.size(), " label maps");
    for (std::size_t i = 0; i < labels.size(); ++i)
      require(images[i].grid.extents == labels[i].grid.extents, {name, static_cast<std::int64_t>(i)}, "image extents ",
              images[i].grid.extents, " differ from ", labels[i].grid.extents, " of the labels");
  }
};

// One class, whose voxels are drawn in proportion to their weights, which are unsigned integers. A voxel counts only if
// the patch of `size` voxels centered on it lies inside the volume. As in TorchIO's WeightedSampler and MONAI's
// RandWeightedCrop, center = start + floor(size / 2); MONAI leaves out the last start. Integer sums are exact in any
// order. weight_map(weights, size) makes it.
template <class W>
struct weight_class_map {
  static constexpr std::string_view name = "weight_map";
  static constexpr std::int32_t classes = 1;
  std::vector<view<const W>> weights;
  extent3 size{0, 0, 0};

  std::size_t samples() const { return weights.size(); }
  const suture::grid& grid(std::size_t i) const { return weights[i].grid; }
  detail::weight_reader<W> reader(std::size_t i) const {
    detail::weight_reader<W> r{detail::strided_of(weights[i]), {}, {}};
    for (int k = 0; k < 3; ++k) {
      r.first[k] = static_cast<std::int32_t>(size[k] / 2);
      r.last[k] = static_cast<std::int32_t>(weights[i].grid.extents[k] - size[k] + size[k] / 2);
    }
    return r;
  }
  template <class F>
  void for_each_range(const F& f) const {
    for (const auto& v : weights) f(bytes(v));
  }
  void check() const {
    detail::check_views(weights, name);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const site where{name, static_cast<std::int64_t>(i)};
      require(weights[i].channels == 1, where, "weights have ", weights[i].channels, " channels; one is needed");
      for (int k = 0; k < 3; ++k)
        require(size[k] > 0 && size[k] <= weights[i].grid.extents[k], where, "patch ", size, " must be in 1..",
                weights[i].grid.extents, "; pad the volume first (pad_to, crop_or_pad)");
    }
  }
};

namespace detail {

template <class Labels>
struct label_element {
  using type = std::remove_const_t<view_element_t<Labels>>;
  static_assert(std::is_integral_v<type> && is_image_storage_v<type>, "suture: label maps are integers");
};
template <class Labels>
using label_element_t = typename label_element<Labels>::type;

}  // namespace detail

// These make the class map of a batch from one view or from a range of views, one per sample. Views are copied, voxels
// are not: they must remain readable while the class map is used.
template <class Labels>
auto label_classes(const Labels& labels, std::int32_t classes) {
  return label_class_map<detail::label_element_t<Labels>>{detail::constant_views(labels), classes};
}

template <class Labels>
auto foreground_background(const Labels& labels) {
  return foreground_class_map<detail::label_element_t<Labels>, float>{detail::constant_views(labels), {}, 0};
}
template <class Labels, class Images>
auto foreground_background(const Labels& labels, const Images& images, float image_threshold = 0) {
  using I = std::remove_const_t<detail::view_element_t<Images>>;
  static_assert(is_image_storage_v<I>, "suture: unsupported element type of an image");
  return foreground_class_map<detail::label_element_t<Labels>, I>{detail::constant_views(labels),
                                                                  detail::constant_views(images), image_threshold};
}

template <class Weights>
auto weight_map(const Weights& weights, const extent3& size) {
  using W = std::remove_const_t<detail::view_element_t<Weights>>;
  static_assert(std::is_same_v<W, std::uint8_t> || std::is_same_v<W, std::uint16_t>,
                "suture: weights are uint8 or uint16");
  return weight_class_map<W>{detail::constant_views(weights), size};
}

}  // namespace suture
