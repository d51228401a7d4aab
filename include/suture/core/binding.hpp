// SPDX-License-Identifier: Apache-2.0
// Pairs of input and output views, one pair per sample: image(in, out) and labels(in, out). Everything bound to one
// run moves through the same map, drawn once.
#pragma once

#include <ranges>

#include "item.hpp"
#include "view.hpp"

namespace suture {

template <class In, class Out, bool IsLabel>
struct binding {
  using input = In;
  using output = Out;
  static constexpr bool is_label = IsLabel;
  static constexpr std::string_view name = IsLabel ? "labels" : "image";

  std::span<const view<const In>> in_const;
  std::span<const view<In>> in_mutable;
  std::span<const view<Out>> out;

  std::size_t samples() const { return in_const.empty() ? in_mutable.size() : in_const.size(); }
  view<const In> source(std::size_t i) const {
    return in_const.empty() ? static_cast<view<const In>>(in_mutable[i]) : in_const[i];
  }
};

namespace detail {
template <bool IsLabel, class In, class Out>
auto bind(std::span<const view<In>> in, std::span<const view<Out>> out) {
  static_assert(!std::is_const_v<Out>, "suture: the output view must be writable");
  using T = std::remove_const_t<In>;
  static_assert(is_storage_v<T> && is_storage_v<Out>,
                "suture: unsupported element type; use int8, uint8, int16, uint16, int32, float, half or bfloat16");
  binding<T, Out, IsLabel> b{{}, {}, out};
  if constexpr (std::is_const_v<In>)
    b.in_const = in;
  else
    b.in_mutable = in;
  return b;
}

template <class Range>
auto as_views(const Range& r) {
  using value = std::ranges::range_value_t<Range>;
  return std::span<const value>(std::ranges::data(r), std::ranges::size(r));
}
template <class T>
auto as_views(const view<T>& v) {
  return std::span<const view<T>>(&v, 1);
}
// The element type of a view or a range of views.
template <class Views>
using view_element_t = std::remove_pointer_t<decltype(as_views(std::declval<const Views&>())[0].data)>;
}  // namespace detail

// An image and where its result goes: a view each, or a contiguous range of views, one per sample. The views are
// referred to, not copied.
template <class In, class Out>
auto image(const In& in, const Out& out) {
  return detail::bind<false>(detail::as_views(in), detail::as_views(out));
}

// A label map and where its result goes. Integer labels; input and output have the same element type.
template <class In, class Out>
auto labels(const In& in, const Out& out) {
  auto b = detail::bind<true>(detail::as_views(in), detail::as_views(out));
  using binding_type = decltype(b);
  static_assert(std::is_integral_v<typename binding_type::input>, "suture: label maps are integers");
  static_assert(std::is_same_v<typename binding_type::input, typename binding_type::output>,
                "suture: a label map keeps its element type");
  return b;
}

// Without a place to write to: for an evaluator that hands its values, of type Out, to the caller's own code.
template <class Out, class In>
auto image(const In& in) {
  return detail::bind<false>(detail::as_views(in), std::span<const view<Out>>{});
}
template <class In>
auto labels(const In& in) {
  const auto views = detail::as_views(in);
  using T = std::remove_const_t<detail::view_element_t<In>>;
  static_assert(std::is_integral_v<T>, "suture: label maps are integers");
  return detail::bind<true>(views, std::span<const view<T>>{});
}

template <class Binding>
constexpr bool is_binding_v = false;
template <class In, class Out, bool L>
constexpr bool is_binding_v<binding<In, Out, L>> = true;

}  // namespace suture
