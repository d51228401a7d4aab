// SPDX-License-Identifier: Apache-2.0
// Conversions of a label after it has been sampled: labels(in, out, conversion).
//
// A conversion is a trivially copyable functor from a label to what is stored, on host and device alike:
//   std::int32_t operator()(std::int32_t label) const     one value for every channel of the label map (or float)
//   C operator()(std::int32_t label) const, where C has   several channels out of a label map of one channel
//     std::int32_t operator[](std::int32_t channel) const
//   and std::int32_t channels() const
// or has  auto prepare(const label_types&, const site&) const  that checks its parameters and returns such a functor.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "../base/error.hpp"
#include "../base/numeric.hpp"

namespace suture {

// The ranges of integers that a label map is read from and stored as, both ends included.
struct label_types {
  std::int64_t lowest_read, highest_read;
  std::int64_t lowest_stored, highest_stored;
  std::string_view stored_name;

  bool stores(std::int64_t value) const { return value >= lowest_stored && value <= highest_stored; }
};

// The default conversion of images and label maps: values are stored unchanged.
struct as_finished {
  SUTURE_FN std::int32_t operator()(std::int32_t label) const { return label; }
  template <class T, int Count>
  SUTURE_INLINE void convert_row(const T (&row)[Count], T (&out)[Count]) const {
    for (int l = 0; l < Count; ++l) out[l] = row[l];
  }
};

template <class C>
concept prepared_conversion = requires(const C& c, const label_types& types, const site& where) {
  c.prepare(types, where);
};

namespace detail {

template <class C>
struct conversion_functor {
  using type = C;
};
template <prepared_conversion C>
struct conversion_functor<C> {
  using type =
      decltype(std::declval<const C&>().prepare(std::declval<const label_types&>(), std::declval<const site&>()));
};

template <class R>
concept stored_number = std::same_as<R, std::int32_t> || std::same_as<R, float>;

template <class R>
concept stored_channels = requires(const R& result, std::int32_t channel) {
  { result[channel] } -> stored_number;
};

template <class F>
concept converts_alone = requires(const F& f, std::int32_t label) {
  { f(label) } -> stored_number;
};
template <class F>
concept converts_to_channels = requires(const F& f, std::int32_t label) {
  { f(label) } -> stored_channels;
  { f.channels() } -> std::same_as<std::int32_t>;
};

// The integers that a storage type holds, without a gap: all of an integer type, up to 2^significand of the others.
template <class T>
struct exact_integers {
  static constexpr int bits = storage<T>::name == "float16" ? 11 : storage<T>::name == "bfloat16" ? 8 : 24;
  static constexpr std::int64_t highest = std::int64_t{1} << bits, lowest = -highest;
};
template <std::integral T>
struct exact_integers<T> {
  static constexpr std::int64_t highest = std::numeric_limits<T>::max(), lowest = std::numeric_limits<T>::min();
};

template <class In, class Out>
constexpr label_types label_types_of() {
  return {exact_integers<In>::lowest, exact_integers<In>::highest, exact_integers<Out>::lowest,
          exact_integers<Out>::highest, storage<Out>::name};
}

// Converts to an element of the output: integers saturate, floating-point types round to nearest even.
template <class Out, stored_number R>
SUTURE_FN Out stored_as(R value) {
  if constexpr (std::is_same_v<Out, std::int64_t> && std::is_integral_v<R>) {
    return value;
  } else if constexpr (std::is_integral_v<Out> && std::is_integral_v<R>) {
    constexpr auto low = static_cast<std::int32_t>(exact_integers<Out>::lowest);
    constexpr auto high = static_cast<std::int32_t>(exact_integers<Out>::highest);
    return static_cast<Out>(value < low ? low : value > high ? high : value);
  } else {
    return storage<Out>::store(static_cast<float>(value));
  }
}

// Returns one output channel of a converted label.
template <class Out, class R>
SUTURE_FN Out stored_channel(const R& converted, std::int32_t channel) {
  if constexpr (stored_number<R>)
    return stored_as<Out>(converted);
  else
    return stored_as<Out>(converted[channel]);
}

}  // namespace detail

template <class C>
using conversion_functor_t = typename detail::conversion_functor<C>::type;

// A functor that converts labels, or an object whose prepare() returns one.
template <class C>
concept label_conversion =
    detail::converts_alone<conversion_functor_t<C>> || detail::converts_to_channels<conversion_functor_t<C>>;

}  // namespace suture
