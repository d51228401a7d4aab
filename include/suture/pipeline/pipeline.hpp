// SPDX-License-Identifier: Apache-2.0
// The properties of a chain that are known at compile time: its value operations before the geometry
// (`source_functors`, which act on the voxels that interpolation reads), its geometry, the value operations after it
// (`output_functors`), and those of later stages (`stage_functors`).
#pragma once

#include <algorithm>
#include <array>

#include "../base/numeric.hpp"
#include "../rng/normal_at.hpp"
#include "concepts.hpp"
#include "stage_schedule.hpp"

SUTURE_REFUSE_HOST_CALLS
namespace suture {

// Tests whether two types are stored alike, such as half and __half.
template <class A, class B>
inline constexpr bool same_storage_v = storage_name<A>() == storage_name<B>();

// A value functor that may be off for a sample; it then costs one uniform branch.
template <class F>
struct switched {
  F functor;
  std::uint32_t on;
};

namespace detail {

// Applies a functor to a value; one for a single channel is applied to the three channels of a pixel in turn.
template <class F, class T>
SUTURE_FN auto call(const F& f, T v, const voxel& at) {
  if constexpr (std::is_same_v<T, rgb> && !applies<F, rgb>)
    return pixel<decltype(call(f, 0.0f, at))>{
        {call(f, v.c[0], in_channel(at, 0)), call(f, v.c[1], in_channel(at, 1)), call(f, v.c[2], in_channel(at, 2))}};
  else if constexpr (applies_with_voxel<F, T>)
    return f(v, at);
  else
    return f(v);
}
template <class F, class T>
SUTURE_FN auto call(const switched<F>& s, T v, const voxel& at) {
  return s.on ? call(s.functor, v, at) : v;
}

// is_on tests whether a functor acts on its sample; bare returns it without its switch.
template <class F>
SUTURE_FN bool is_on(const F&) {
  return true;
}
template <class F>
SUTURE_FN bool is_on(const switched<F>& s) {
  return s.on != 0;
}
template <class F>
SUTURE_FN const F& bare(const F& f) {
  return f;
}
template <class F>
SUTURE_FN const F& bare(const switched<F>& s) {
  return s.functor;
}
template <class F>
F& bare(F& f) {
  return f;
}
template <class F>
F& bare(switched<F>& s) {
  return s.functor;
}

// The type of a functor without its switch.
template <class F>
struct unswitched {
  using type = F;
};
template <class F>
struct unswitched<switched<F>> {
  using type = F;
};

// The number of normally distributed values that the functors of a pack use at every voxel.
template <class Pack>
inline constexpr int all_normals = 0;
template <class... Fs>
inline constexpr int all_normals<pack<Fs...>> = (normals_of<typename unswitched<Fs>::type> + ... + 0);

// On a device the threads of a block compute normally distributed values ahead. These are the number of threads, the
// slots of a thread (a slot is one channel of one voxel), and the bytes of all values.
inline constexpr int threads_ahead = 256;
template <int Normals>
inline constexpr int slots_ahead = Normals > 2 ? 4 : 16 / Normals;
template <>
inline constexpr int slots_ahead<0> = 0;
template <int Normals>
inline constexpr std::size_t bytes_ahead = 32 + sizeof(float) * (threads_ahead + 1) * (Normals * slots_ahead<Normals>);

// Returns the voxel for functor F: without normals if F uses none, and otherwise with the number of its first one.
template <class F>
SUTURE_FN voxel with_normals(voxel at, int first) {
  if (normals_of<typename unswitched<F>::type> == 0) at.normals = nullptr;
  at.first_normal = first;
  return at;
}

// Applies the functors of a pack in order; `Normals` is the number of normals that the functors before I use.
template <std::size_t I = 0, int Normals = 0, class Pack, class T>
SUTURE_FN auto apply(const Pack& functors, T v, const voxel& at) {
  if constexpr (I == Pack::size) {
    return v;
  } else {
    using F = element_t<I, Pack>;
    return apply<I + 1, Normals + normals_of<typename unswitched<F>::type>>(
        functors, call(get<I>(functors), v, with_normals<F>(at, Normals)), at);
  }
}

template <class F>
inline constexpr bool needs_voxel = applies_with_voxel<F, float> || applies_with_voxel<F, rgb>;
template <class Pack>
inline constexpr bool any_needs_voxel = false;
template <class... Fs>
inline constexpr bool any_needs_voxel<pack<Fs...>> = (needs_voxel<typename unswitched<Fs>::type> || ...);
// Tests whether an active functor uses the position of the voxel.
template <class... Fs>
bool any_on_needs_voxel(const pack<Fs...>& functors) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return ((needs_voxel<typename unswitched<Fs>::type> && is_on(get<I>(functors))) || ...);
  }
  (std::index_sequence_for<Fs...>{});
}
template <class Pack>
inline constexpr bool any_color = false;
template <class... Fs>
inline constexpr bool any_color<pack<Fs...>> = (color_functor<typename unswitched<Fs>::type> || ...);

// Tests whether every functor but the last returns the type of its argument.
template <class T, std::size_t I = 0, class Pack>
constexpr bool casts_last(const Pack* = nullptr) {
  if constexpr (I + 1 >= Pack::size) {
    return true;
  } else {
    using F = element_t<I, Pack>;
    return std::is_same_v<decltype(call(std::declval<const F&>(), T{}, std::declval<const voxel&>())), T> &&
           casts_last<T, I + 1, Pack>();
  }
}

// The stored type of one channel.
template <class T>
struct channel_of {
  using type = T;
};
template <class T>
struct channel_of<pixel<T>> {
  using type = T;
};

// Returns the functor of an operation on a grid.
template <class D>
auto prepared(const D& op, const grid& g, const site& where) {
  if constexpr (prepares_on_grid<D>) {
    return op.prepare(g, where);
  } else if constexpr (prepared_operation<D>) {
    return op.prepare(where);
  } else {
    if constexpr (requires { op.check(where); }) op.check(where);
    return op;
  }
}

// Tests whether what a functor returns can be passed on or stored. It is called with a float or, if it takes none, with
// a color.
template <class F>
constexpr bool returns_storable() {
  if constexpr (applies<F, float>) {
    return is_image_storage_v<decltype(call(std::declval<const F&>(), 0.0f, std::declval<const voxel&>()))>;
  } else if constexpr (applies<F, rgb>) {
    using result = decltype(call(std::declval<const F&>(), rgb{}, std::declval<const voxel&>()));
    using channel = typename channel_of<result>::type;
    return is_image_storage_v<channel> && !std::is_same_v<channel, result>;
  } else {
    return true;
  }
}

// Replaces a refused functor, so that the compiler prints the refusal alone.
struct no_functor {
  SUTURE_FN float operator()(float x) const { return x; }
};

template <class Op>
struct functor {
  using prepared_type =
      decltype(prepared(std::declval<const drawn_t<Op>&>(), std::declval<const grid&>(), std::declval<const site&>()));
  static constexpr bool travels = std::is_trivially_copyable_v<prepared_type>;
  static constexpr bool has_form = applies<prepared_type, float> || applies<prepared_type, rgb> ||
                                   filter_functor<prepared_type> || statistic_functor<prepared_type>;
  static constexpr bool is_storable = returns_storable<prepared_type>();
  static constexpr bool is_sound = travels && has_form && is_storable;
  using plain = std::conditional_t<is_sound, prepared_type, no_functor>;
  using type = std::conditional_t<random_operation<Op>, switched<plain>, plain>;
  // This check comes last, when clang++ has seen the members, and looks at one functor at a time.
  static_assert(travels,
                "suture: the functor of a value operation must be trivially copyable, it travels to the device");
  static_assert(!travels || has_form,
                "suture: what prepare() returns is no functor: it needs operator()(float or rgb[, voxel]) const for "
                "values, and active(channel) const beside what makes it a filter or an operation on patch statistics");
  static_assert(!travels || !has_form || is_storable,
                "suture: a value operation makes a float of a float, or rgb of rgb");
};

// Tells whether an operation with draw() has all that makes it a random one.
template <class Op>
inline constexpr bool draws_as_random_ones_do =
    random_operation<Op> || !(draws_alone<Op> || draws_on_grid<Op> || draws_in_source<Op>);

// Tells whether the functor of an operation, if it works on values, is accepted.
template <class Op>
constexpr bool has_sound_functor() {
  if constexpr (role_of<Op>() == role::value)
    return functor<Op>::is_sound && draws_as_random_ones_do<Op>;
  else
    return true;
}

template <class Ops, class Indices, std::size_t First>
struct functor_pack;
template <class... Ops, std::size_t... I, std::size_t First>
struct functor_pack<chain<Ops...>, std::index_sequence<I...>, First> {
  using type = pack<typename functor<element_t<First + I, pack<Ops...>>>::type...>;
};

// Tests whether an operation needs more than one voxel of the patch, so that everything before it must be complete
// first.
template <class Op>
constexpr bool ends_fusion() {
  if constexpr (role_of<Op>() == role::value) {
    using F = typename functor<Op>::plain;
    return filter_functor<F> || statistic_functor<F>;
  } else {
    return false;
  }
}

template <class Pack>
struct schedule_of;
template <class... Fs>
struct schedule_of<pack<Fs...>> {
  using type = stage_schedule<typename unswitched<Fs>::type...>;
};

// The type that the operations after the fused part make of a float.
template <class Pack>
struct later_result {
  using type = float;
};
template <class F>
struct later_value {
  using type = float;
};
template <class F>
requires(applies<F, float>) struct later_value<F> {
  using type = decltype(call(std::declval<const F&>(), 0.0f, std::declval<const voxel&>()));
};
template <class F>
struct later_result<pack<F>> : later_value<typename unswitched<F>::type> {};
template <class F, class... Fs>
requires(sizeof...(Fs) > 0) struct later_result<pack<F, Fs...>> : later_result<pack<Fs...>> {
  static_assert(std::is_same_v<typename later_value<typename unswitched<F>::type>::type, float>,
                "suture: cast ends a chain; nothing can follow it");
};

template <class... Ops>
struct sampling_of {
  using type = sampling<>;
};
template <class Op, class... Ops>
struct sampling_of<Op, Ops...> {
  using type = std::conditional_t<is_sampling<Op>::value, Op, typename sampling_of<Ops...>::type>;
};

}  // namespace detail

template <class Chain>
struct pipeline;

template <class... Ops>
struct pipeline<chain<Ops...>> {
  using chain_type = chain<Ops...>;
  static constexpr std::size_t size = sizeof...(Ops);
  static constexpr std::array<role, size> roles{role_of<Ops>()...};
  static constexpr std::array<bool, size> axes_kept{keeps_axes<Ops>()...};
  static constexpr std::array<bool, size> sound{detail::has_sound_functor<Ops>()...};
  static constexpr bool has_random = (random_operation<Ops> || ...);

  static constexpr std::size_t count(role r) {
    std::size_t n = 0;
    for (role each : roles) n += each == r ? 1 : 0;
    return n;
  }
  static constexpr bool is_spatial(std::size_t i) { return roles[i] != role::value; }
  static constexpr std::size_t spatial_begin() {
    std::size_t i = 0;
    while (i < size && !is_spatial(i)) ++i;
    return i;
  }
  static constexpr std::size_t spatial_end() {
    std::size_t i = size;
    while (i > 0 && !is_spatial(i - 1)) --i;
    return i;
  }
  static constexpr std::size_t begin = spatial_begin();
  static constexpr std::size_t end = begin == size ? size : spatial_end();

  static constexpr bool spatial_contiguous() {
    for (std::size_t i = begin; i < end; ++i)
      if (!is_spatial(i)) return false;
    return true;
  }
  static constexpr std::size_t deformation_index() {
    for (std::size_t i = 0; i < size; ++i)
      if (roles[i] == role::deformation) return i;
    return size;
  }
  // Tests whether the geometry after the deformation keeps axes, so that the voxels of a column share sums over control
  // points.
  static constexpr bool axes_kept_after_deformation() {
    for (std::size_t i = deformation_index() + 1; i < end; ++i)
      if (roles[i] == role::geometry && !axes_kept[i]) return false;
    return true;
  }

  // The fused part ends where an operation needs more than one voxel.
  static constexpr std::size_t first_unfused() {
    constexpr std::array<bool, size> ends{detail::ends_fusion<Ops>()...};
    std::size_t i = 0;
    while (i < size && !ends[i]) ++i;
    return i;
  }
  static constexpr std::size_t fused_end = first_unfused();
  static constexpr bool is_staged = fused_end < size;

  static constexpr bool source_is_known() {
    constexpr std::array<bool, size> in_source{draws_in_source<Ops>...};
    for (std::size_t i = deformation_index(); i < size; ++i)
      if (in_source[i]) return false;
    return true;
  }
  static constexpr bool has_geometry = count(role::geometry) + count(role::deformation) > 0;
  static constexpr bool has_deformation = count(role::deformation) == 1;
  static constexpr bool inverts_deformation = (inverse_operation<Ops> || ...);
  static constexpr bool separable_deformation =
      has_deformation && !inverts_deformation && axes_kept_after_deformation();

  using sampling_type = typename detail::sampling_of<Ops...>::type;
  using interpolation_type = typename sampling_type::interpolation_type;
  using border_type = typename sampling_type::border_type;
  using label_type = typename sampling_type::label_type;
  static constexpr bool prefiltered = has_geometry && interpolation_type::prefiltered;
  // Number of voxels by which the B-spline coefficients extend beyond the source on each side.
  static constexpr std::int32_t padding = prefiltered ? border_type::prefilter_padding : 0;

  // Value operations before the geometry act on the source voxels that interpolation reads: source_functors. Those
  // after it act on the output voxels: output_functors in the fused part, stage_functors in the stages after it.
  // Without geometry, all act on outputs.
  static constexpr std::size_t source_functor_count = begin == size ? 0 : std::min(begin, fused_end);
  static constexpr std::size_t output_begin = begin == size ? 0 : end;
  static constexpr std::size_t stages_begin = std::max(fused_end, output_begin);
  // Tests whether operation i has a functor: a value operation at an allowed position.
  static constexpr bool has_functor(std::size_t i) {
    const auto at =
        static_cast<std::ptrdiff_t>(i);  // signed, since nvcc warns of an unsigned number below a bound of 0
    return !is_spatial(i) && sound[i] &&
           (at < std::ptrdiff_t{source_functor_count} || at >= std::ptrdiff_t{output_begin});
  }
  using source_functors =
      typename detail::functor_pack<chain<Ops...>, std::make_index_sequence<source_functor_count>, 0>::type;
  using output_functors =
      typename detail::functor_pack<chain<Ops...>, std::make_index_sequence<stages_begin - output_begin>,
                                    output_begin>::type;
  using stage_functors =
      typename detail::functor_pack<chain<Ops...>, std::make_index_sequence<size - stages_begin>, stages_begin>::type;
  static constexpr typename detail::schedule_of<stage_functors>::type schedule{};

  // Type of the values that pass through the chain: the channels of an image one by one, or, where an operation works
  // on color, all three of a voxel together.
  static constexpr bool is_color = detail::any_color<source_functors> || detail::any_color<output_functors>;
  using value_type = std::conditional_t<is_color, rgb, float>;

  using source_result =
      decltype(detail::apply(std::declval<const source_functors&>(), value_type{}, std::declval<const voxel&>()));
  // The element type of the result of the fused part, and that of the pipeline for images.
  using fused_type = typename detail::channel_of<decltype(detail::apply(
      std::declval<const output_functors&>(), value_type{}, std::declval<const voxel&>()))>::type;
  using result_type = std::conditional_t<is_staged, typename detail::later_result<stage_functors>::type, fused_type>;

  // Passes over the patch: B-spline coefficients, if the interpolation needs them, the fused part, and later stages.
  static constexpr int stages = (prefiltered ? 2 : 1) + schedule.stage_count;

  // These come last, since clang skips what follows a failed assertion and would then report it as missing.
  static_assert(sizeof...(Ops) > 0, "suture: a pipeline needs at least one operation");
  static_assert((operation<Ops> && ...),
                "suture: not an operation: give it prepare(site) or operator()(float or rgb[, voxel]) for values, "
                "step(grid, site) for geometry, or draw(draws&, ...) with probability and kind for random ones");
  static_assert((detail::draws_as_random_ones_do<Ops> && ...),
                "suture: an operation with draw() is a random one: it needs `float probability` and `static constexpr "
                "std::uint16_t kind`");
  static_assert((!(geometry_operation<drawn_t<Ops>> && value_operation<drawn_t<Ops>>)&&...),
                "suture: an operation has step() and works on values too; make two of it");
  static_assert(
      has_geometry || count(role::sampling) == 0,
      "suture: sampling stands in a pipeline without geometry, where nothing is sampled; leave it out, or put "
      "identity{} beside it");
  static_assert(!detail::any_color<stage_functors>,
                "suture: an operation on color stands right of a filter or of an operation on patch statistics; put it "
                "left of them, or run two plans");
  static_assert(detail::casts_last<value_type, 0, output_functors>(),
                "suture: cast ends a chain; nothing can follow it");
  static_assert(std::is_same_v<source_result, value_type>,
                "suture: cast left of the geometry: interpolation needs float; put cast at the end");
  static_assert(!is_staged || std::is_same_v<fused_type, float>, "suture: cast ends a chain; nothing can follow it");
  static_assert(end <= fused_end || begin == size,
                "suture: a filter or an operation on patch statistics stands left of geometry; put it right of all "
                "geometry, or run two plans");
  static_assert(spatial_contiguous(),
                "suture: a value operation stands between two geometry operations, which would mean interpolating "
                "twice; move it left of all geometry (it then acts on every tap) or right of all geometry (it then "
                "acts once per output voxel), or run two plans. sampling counts as geometry");
  static_assert(count(role::deformation) <= 1,
                "suture: at most one elastic deformation per pipeline; compose the "
                "displacements, or run two plans");
  static_assert(count(role::sampling) <= 1, "suture: sampling stands at most once in a pipeline");

  static_assert(
      source_is_known(),
      "suture: crop_by_class stands right of an elastic deformation, where the place of a voxel is not known; "
      "put it left of it: a patch reads the volume around it all the same");
};

template <class... Ops>
struct pipeline<const chain<Ops...>> : pipeline<chain<Ops...>> {};

}  // namespace suture
SUTURE_ALLOW_HOST_CALLS
