// SPDX-License-Identifier: Apache-2.0
// Views as a caller passed them.
#pragma once

#include <optional>
#include <span>
#include <utility>

#include "view.hpp"

namespace suture {

// One view per sample. Named views and ranges are referenced, and must outlive this object; temporary ones are kept in
// it, as by std::views::all.
template <class T>
class given_views {
public:
  given_views() = default;
  explicit given_views(std::span<const view<T>> others) : others_(others) {}
  explicit given_views(const view<T>& one) : one_(one) {}
  explicit given_views(std::vector<view<T>>&& all) : all_(std::move(all)) {}

  std::size_t size() const { return span().size(); }
  bool empty() const { return span().empty(); }
  const view<T>& operator[](std::size_t i) const { return span()[i]; }

private:
  std::span<const view<T>> span() const {
    if (one_) return {&*one_, 1};
    return all_.empty() ? others_ : std::span<const view<T>>(all_);
  }

  std::span<const view<T>> others_;
  std::optional<view<T>> one_;
  std::vector<view<T>> all_;
};

namespace detail {

// Instantiated once, so that passing two pointers instead of views prints one error message.
template <class Nothing>
void refuse_unbound() {
  static_assert(!std::is_void_v<Nothing>,
                "suture: bind a view, as suture::contiguous(pointer, grid) makes it, or a contiguous range of views");
}

template <class Range>
auto as_views(const Range& r) {
  if constexpr (std::ranges::contiguous_range<const Range>) {
    using value = std::ranges::range_value_t<Range>;
    return std::span<const value>(std::ranges::data(r), std::ranges::size(r));
  } else {
    refuse_unbound<void>();
    return std::span<const view<float>>();
  }
}
template <class T>
auto as_views(const view<T>& v) {
  return std::span<const view<T>>(&v, 1);
}
// The element type of a view or a range of views.
template <class Views>
using view_element_t =
    std::remove_pointer_t<decltype(as_views(std::declval<const std::remove_cvref_t<Views>&>())[0].data)>;

// Views of constant elements, from a view or a range of views of either kind.
template <class Views>
auto constant_views(const Views& given) {
  const auto views = as_views(given);
  return std::vector<view<const std::remove_const_t<view_element_t<Views>>>>(views.begin(), views.end());
}

// Whether the argument of a forwarding reference outlives the call.
template <class Views>
constexpr bool is_lent_v =
    std::is_lvalue_reference_v<Views> || std::ranges::enable_borrowed_range<std::remove_cvref_t<Views>>;

template <class Views>
auto as_given(Views&& views) {
  using range = std::remove_cvref_t<Views>;
  using T = view_element_t<Views>;
  [[maybe_unused]] const auto others = as_views(views);
  if constexpr (is_lent_v<Views>)
    return given_views<T>(others);
  else if constexpr (is_view_v<range>)
    return given_views<T>(views);
  else if constexpr (std::is_same_v<Views, std::vector<view<T>>>)
    return given_views<T>(std::move(views));
  else
    return given_views<T>(std::vector<view<T>>(others.begin(), others.end()));
}

}  // namespace detail

}  // namespace suture
