// SPDX-License-Identifier: Apache-2.0
// Selections of the voxels that a fit uses.
//
//   everything{}                 every voxel
//   nonzero{}                    values other than 0
//   above{t}                     values greater than t
//   inside(masks)                where a mask beside the image is not 0
//   labeled(maps, labels)        where a label map beside the image holds one of the labels
//
// Selected values that are NaN or infinite are left out, and counted as fit_tally::excluded.
#pragma once

#include <initializer_list>
#include <span>

#include "../evaluate/binding.hpp"

namespace suture {

// Labels among the classes 0 .. classes-1, at most 256. A voxel labeled otherwise is reported as undeclared.
// Errors: classes not in 1 .. 256, a label outside of them.
struct label_set {
  std::uint64_t members[4] = {};
  std::int32_t classes = 256;

  label_set(std::initializer_list<int> labels, int declared = 256)
      : label_set(std::span<const std::int32_t>(labels.begin(), labels.size()), declared) {}
  label_set(std::span<const std::int32_t> labels, int declared) : classes(declared) {
    require(declared >= 1 && declared <= 256, {"label_set"}, "classes ", declared, " must be in 1..256");
    for (const std::int32_t l : labels) {
      require(l >= 0 && l < declared, {"label_set"}, "label ", l, " is outside the declared classes 0..", declared - 1);
      members[l >> 6] |= std::uint64_t{1} << (l & 63);
    }
  }
  // Selects every class but the background, 0.
  static label_set foreground(int declared = 256) {
    label_set s({}, declared);
    for (int l = 1; l < declared; ++l) s.members[l >> 6] |= std::uint64_t{1} << (l & 63);
    return s;
  }
};

namespace detail {

enum class verdict { rejected, selected, undeclared };

// The element type of the map of a selection that has none.
using no_map = std::uint8_t;

template <class Map>
struct map_selection {
  using map_type = Map;
  static constexpr bool has_map = true;
  given_views<const Map> maps_const;
  given_views<Map> maps_mutable;

  std::size_t samples() const { return maps_const.empty() ? maps_mutable.size() : maps_const.size(); }
  view<const Map> map(std::size_t i) const {
    return maps_const.empty() ? static_cast<view<const Map>>(maps_mutable[i]) : maps_const[i];
  }
};
struct plain_selection {
  using map_type = no_map;
  static constexpr bool has_map = false;
};

// Returns true for selections. For other types it prints one error message, and the caller does nothing more.
template <class Selection>
constexpr bool require_selection() {
  constexpr bool is_selection = requires { Selection::has_map; };
  static_assert(is_selection,
                "suture: what a fit looks at is everything{} or a selection with maps, such as inside(masks)");
  return is_selection;
}

}  // namespace detail

struct everything : detail::plain_selection {
  struct selector {
    template <class T>
    SUTURE_FN detail::verdict operator()(T, detail::no_map) const {
      return detail::verdict::selected;
    }
  };
  selector select() const { return {}; }
};

struct nonzero : detail::plain_selection {
  struct selector {
    template <class T>
    SUTURE_FN detail::verdict operator()(T value, detail::no_map) const {
      const bool zero = storage<T>::load(value) == 0;
      return zero ? detail::verdict::rejected : detail::verdict::selected;
    }
  };
  selector select() const { return {}; }
};

struct above : detail::plain_selection {
  float level;
  explicit above(float threshold) : level(threshold) {
    require(threshold == threshold, {"above"}, "threshold must be a number");
  }
  struct selector {
    float level;
    // NaN is selected, so that it is excluded and counted rather than overlooked.
    template <class T>
    SUTURE_FN detail::verdict operator()(T value, detail::no_map) const {
      bool below = false;
      if constexpr (std::is_same_v<T, std::int32_t>)  // float does not hold them all
        below = static_cast<double>(value) <= static_cast<double>(level);
      else
        below = storage<T>::load(value) <= level;
      return below ? detail::verdict::rejected : detail::verdict::selected;
    }
  };
  selector select() const { return {level}; }
};

template <class Map>
struct inside_selection : detail::map_selection<Map> {
  struct selector {
    template <class T>
    SUTURE_FN detail::verdict operator()(T, Map mask) const {
      return mask != 0 ? detail::verdict::selected : detail::verdict::rejected;
    }
  };
  selector select() const { return {}; }
};

template <class Map>
struct labeled_selection : detail::map_selection<Map> {
  label_set set;
  struct selector {
    label_set set;
    template <class T>
    SUTURE_FN detail::verdict operator()(T, Map label) const {
      const auto l = static_cast<std::int64_t>(label);
      if (l < 0 || l >= set.classes) return detail::verdict::undeclared;
      return (set.members[l >> 6] >> (l & 63) & 1) != 0 ? detail::verdict::selected : detail::verdict::rejected;
    }
  };
  selector select() const { return {set}; }
};

namespace detail {
template <class Selection, class Views>
void bind_maps(Selection& s, Views&& maps) {
  using element = view_element_t<Views>;
  static_assert(std::is_integral_v<element>, "suture: masks and label maps are integers");
  if constexpr (std::is_const_v<element>)
    s.maps_const = as_given(std::forward<Views>(maps));
  else
    s.maps_mutable = as_given(std::forward<Views>(maps));
}
template <class Views>
using map_element = std::remove_const_t<view_element_t<Views>>;
}  // namespace detail

// `masks`: one view per image, or a range of them; one channel, same extents as the image. Referred to, not copied;
// temporary ones are kept.
template <class Views>
auto inside(Views&& masks) {
  inside_selection<detail::map_element<Views>> s;
  detail::bind_maps(s, std::forward<Views>(masks));
  return s;
}
template <class Views>
auto labeled(Views&& maps, const label_set& labels) {
  labeled_selection<detail::map_element<Views>> s{{}, labels};
  detail::bind_maps(s, std::forward<Views>(maps));
  return s;
}

namespace detail {

// Voxels per fitted group, pooled channels included: the sums are exact to 2^40, the 64-bit counters of Otsu to 2^47.
inline constexpr std::int64_t most_voxels = std::int64_t{1} << 40;

template <class Selection>
void check_map_count(std::string_view name, std::size_t images, const Selection& selection) {
  if constexpr (Selection::has_map)
    require(selection.samples() == images, {name}, selection.samples(), " masks or label maps for ", images, " images");
}

// Checks one image, and the map of the selection beside it.
template <class T, class Selection>
void check_sample(std::string_view name, const view<const T>& image, const Selection& selection, std::size_t sample) {
  const site where{name, static_cast<std::int64_t>(sample)};
  check(image, where);
  require(image.grid.voxels() <= most_voxels / image.channels, where, "extents ", image.grid.extents,
          " exceed 2^40 voxels");
  if constexpr (Selection::has_map) {
    require(sample < selection.samples(), where, "only ", selection.samples(), " masks or label maps");
    const auto map = selection.map(sample);
    check(map, where, "mask or label map: ");
    require(map.grid.extents == image.grid.extents, where, "mask or label map of extents ", map.grid.extents,
            ", image of extents ", image.grid.extents);
    require(map.channels == 1, where, "mask or label map with ", map.channels, " channels; it must have one");
  }
}

// Checks images against selection and results. Returns the number of groups: samples times channels, or if pooled
// samples.
template <class T, class Selection>
std::size_t check_fit(std::string_view name, std::span<const view<const T>> images, const Selection& selection,
                      bool pooled, std::size_t results) {
  static_assert(is_image_storage_v<T>, "suture: unsupported element type of an image");
  check_map_count(name, images.size(), selection);
  for (std::size_t i = 0; i < images.size(); ++i) {
    check_sample(name, images[i], selection, i);
    require(images[i].channels == images[0].channels, {name, static_cast<std::int64_t>(i)}, images[i].channels,
            " channels, but ", images[0].channels, " in the first sample");
  }
  const std::size_t groups =
      images.empty() ? 0 : images.size() * (pooled ? 1 : static_cast<std::size_t>(images[0].channels));
  require(results == groups, {name}, results, " results given, ", groups, " needed: one per sample",
          pooled ? "" : " and channel");
  return groups;
}

template <class Selection>
constexpr void check_color_selection() {
  static_assert(Selection::has_map || std::is_same_v<Selection, everything>,
                "suture: colors are selected by masks or labels: everything, inside(...) or labeled(...)");
}

}  // namespace detail

}  // namespace suture
