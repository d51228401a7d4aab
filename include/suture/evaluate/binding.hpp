// SPDX-License-Identifier: Apache-2.0
// Pairs of input and output views, one pair per sample: image(in, out) and labels(in, out). Everything bound to one
// run uses the same geometry, drawn once.
#pragma once

#include <span>

#include "../image/deep_supervision.hpp"
#include "../image/given_views.hpp"
#include "../image/label_conversion.hpp"
#include "sample_parameters.hpp"

namespace suture {

template <class In, class Out, bool IsLabel, class Conversion = as_finished, class Levels = no_levels>
struct binding {
  using input = In;
  using output = Out;
  using conversion_type = Conversion;
  static constexpr bool is_label = IsLabel;
  static constexpr bool converts = !std::is_same_v<Conversion, as_finished>;
  static constexpr bool has_levels = !std::is_same_v<Levels, no_levels>;
  static constexpr bool to_channels = IsLabel && detail::converts_to_channels<conversion_functor_t<Conversion>>;
  static constexpr std::string_view name = IsLabel ? "labels" : "image";

  given_views<const In> in_const;
  given_views<In> in_mutable;
  given_views<Out> out;
  Conversion conversion{};
  Levels levels{};

  std::size_t samples() const { return in_const.empty() ? in_mutable.size() : in_const.size(); }
  view<const In> source(std::size_t i) const {
    return in_const.empty() ? static_cast<view<const In>>(in_mutable[i]) : in_const[i];
  }
};

namespace detail {
// Converts an argument to input views. bool is read as a byte, 0 or 1.
template <class In>
auto as_source(In&& in) {
  if constexpr (std::is_same_v<std::remove_const_t<view_element_t<In>>, bool>) {
    std::vector<view<const std::uint8_t>> bytes;
    for (const auto& v : as_views(in))
      bytes.push_back(
          {reinterpret_cast<const std::uint8_t*>(v.data), v.grid, v.stride, v.channels, v.channel_stride, v.box});
    return given_views<const std::uint8_t>(std::move(bytes));
  } else {
    return as_given(std::forward<In>(in));
  }
}
// Element type that replaces a refused one, so that the compiler prints one error and none that follows from it.
template <bool IsLabel, class T>
using or_stand_in = std::conditional_t<IsLabel ? std::is_integral_v<T> && is_label_storage_v<T> : is_image_storage_v<T>,
                                       T, std::conditional_t<IsLabel, std::int32_t, float>>;

template <bool IsLabel, class In, class Out, class Conversion = as_finished, class Levels = no_levels>
auto bind(given_views<In> in, given_views<Out> out, const Conversion& conversion = {}, Levels levels = {}) {
  constexpr bool writable = !std::is_const_v<Out>;
  static_assert(writable, "suture: the output view must be writable");
  using T = std::remove_const_t<In>;
  using To = std::remove_const_t<Out>;
  constexpr bool supported = is_image_storage_v<T> && (IsLabel ? is_label_storage_v<To> : is_image_storage_v<To>);
  static_assert(
      supported,
      "suture: unsupported element type; use int8, uint8, int16, uint16, int32, float, half or bfloat16; bool "
      "may be read too, and label maps stored as int64");
  if constexpr (writable && supported) {
    binding<T, Out, IsLabel, Conversion, Levels> b{{}, {}, std::move(out), conversion, std::move(levels)};
    if constexpr (std::is_const_v<In>)
      b.in_const = std::move(in);
    else
      b.in_mutable = std::move(in);
    return b;
  } else {
    return binding<or_stand_in<IsLabel, T>, or_stand_in<IsLabel, To>, IsLabel, Conversion, Levels>{
        {}, {}, {}, conversion, std::move(levels)};
  }
}
}  // namespace detail

// An image and the view of its result: a view each, or a contiguous range of views, one per sample. Named views are
// referred to, not copied; temporary ones are kept.
template <class In, class Out>
auto image(In&& in, Out&& out) {
  return detail::bind<false>(detail::as_source(std::forward<In>(in)), detail::as_given(std::forward<Out>(out)));
}

namespace detail {
template <class T>
constexpr bool is_level_views_v = false;
template <class Out>
constexpr bool is_level_views_v<level_views<Out>> = true;

template <class Conversion>
constexpr void check_conversion() {
  if constexpr (!label_conversion<Conversion>) {
    static_assert(label_conversion<Conversion>,
                  "suture: a label conversion takes an int32 label and gives an int32 or float, or channels of them "
                  "(see image/label_conversion.hpp)");
  } else {
    static_assert(std::is_trivially_copyable_v<conversion_functor_t<Conversion>>,
                  "suture: a label conversion must be trivially copyable, it travels to the device by value");
  }
}

// Labels with a conversion, levels or both.
template <class In, class Out, class Conversion, class Levels>
auto bind_labels(given_views<In> in, given_views<Out> out, const Conversion& conversion, Levels levels) {
  static_assert(std::is_integral_v<In>, "suture: label maps are integers");
  if constexpr (!std::is_integral_v<In>)
    return bind<true>(given_views<std::int32_t>{}, given_views<or_stand_in<true, std::remove_const_t<Out>>>{},
                      conversion, std::move(levels));
  else if constexpr (std::is_same_v<Conversion, as_finished>)
    static_assert(std::is_same_v<std::remove_const_t<In>, Out>,
                  "suture: a label map keeps its element type; bind a conversion for another, remap{} say");
  else
    check_conversion<Conversion>();
  if constexpr (!std::is_same_v<Levels, no_levels>) {
    static_assert(is_level_views_v<Levels>,
                  "suture: levels are bound with deep_supervision(views of the first level, ...)");
    if constexpr (is_level_views_v<Levels>)
      static_assert(std::is_same_v<typename Levels::output, Out>,
                    "suture: the levels of a label map have the element type of its output");
  }
  if constexpr (std::is_integral_v<In>) return bind<true>(std::move(in), std::move(out), conversion, std::move(levels));
}
}  // namespace detail

// A label map and the view of its result. Labels are integers; input and output have the same element type.
template <class In, class Out>
auto labels(In&& in, Out&& out) {
  return detail::bind_labels(detail::as_source(std::forward<In>(in)), detail::as_given(std::forward<Out>(out)),
                             as_finished{}, no_levels{});
}

// A label map with a conversion of what is stored (remap, regions, one_hot or your own), with smaller grids to store it
// to as well (deep_supervision), or with both.
template <class In, class Out, class Conversion, class Levels>
auto labels(In&& in, Out&& out, const Conversion& conversion, const Levels& levels) {
  return detail::bind_labels(detail::as_source(std::forward<In>(in)), detail::as_given(std::forward<Out>(out)),
                             conversion, levels);
}
template <class In, class Out, class What>
auto labels(In&& in, Out&& out, const What& what) {
  if constexpr (detail::is_level_views_v<What>)
    return labels(std::forward<In>(in), std::forward<Out>(out), as_finished{}, what);
  else
    return labels(std::forward<In>(in), std::forward<Out>(out), what, no_levels{});
}

// Smaller grids for labels(in, out, ...), each a view or a contiguous range of views, one per sample; or one range of
// such ranges. At most eight.
template <class First, class... Others>
auto deep_supervision(First&& first, Others&&... others) {
  constexpr site where{"deep_supervision"};
  constexpr bool of_ranges = [] {
    if constexpr (detail::is_view_v<std::remove_cvref_t<First>>)
      return false;
    else
      return !detail::is_view_v<std::ranges::range_value_t<First>>;
  }();
  if constexpr (of_ranges) {
    static_assert(sizeof...(Others) == 0, "suture: give deep_supervision one range of levels, or the levels");
    level_views<detail::view_element_t<std::ranges::range_value_t<First>>> levels;
    require(std::ranges::size(first) <= most_levels, where, std::ranges::size(first), " levels, at most ", most_levels,
            " are possible");
    for (auto& level : first) {
      if constexpr (detail::is_lent_v<First>)
        levels.views[levels.count++] = detail::as_given(level);
      else
        levels.views[levels.count++] = detail::as_given(std::move(level));
    }
    return levels;
  } else {
    static_assert(sizeof...(Others) < most_levels, "suture: at most eight levels are possible");
    return level_views<detail::view_element_t<First>>{
        {detail::as_given(std::forward<First>(first)), detail::as_given(std::forward<Others>(others))...},
        1 + sizeof...(Others)};
  }
}

// Binds an image without an output, for an evaluator that passes its values, of type Out, to the caller's own code.
template <class Out, class In>
auto image(In&& in) {
  return detail::bind<false>(detail::as_source(std::forward<In>(in)), given_views<Out>{});
}
template <class In>
auto labels(In&& in) {
  using given = std::remove_const_t<detail::view_element_t<In>>;
  static_assert(std::is_integral_v<given>, "suture: label maps are integers");
  using T = std::conditional_t<std::is_same_v<given, bool>, std::uint8_t, given>;
  return detail::bind<true>(detail::as_source(std::forward<In>(in)), given_views<T>{});
}
template <class Out, class In, class Conversion>
auto labels(In&& in, const Conversion& conversion) {
  return detail::bind_labels(detail::as_source(std::forward<In>(in)), given_views<Out>{}, conversion, no_levels{});
}

template <class Binding>
constexpr bool is_binding_v = false;
template <class In, class Out, bool L, class C, class V>
constexpr bool is_binding_v<binding<In, Out, L, C, V>> = true;

namespace detail {
// Name of a conversion in error messages.
template <class Binding>
constexpr std::string_view conversion_name() {
  if constexpr (requires { Binding::conversion_type::name; })
    return Binding::conversion_type::name;
  else
    return "the conversion";
}

// The functor of a binding's conversion, its parameters checked.
template <class Binding>
auto prepared_conversion_of(const Binding& b) {
  if constexpr (prepared_conversion<typename Binding::conversion_type>)
    return b.conversion.prepare(label_types_of<typename Binding::input, typename Binding::output>(),
                                site{conversion_name<Binding>()});
  else
    return b.conversion;
}
}  // namespace detail

}  // namespace suture
