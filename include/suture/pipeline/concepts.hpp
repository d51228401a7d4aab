// SPDX-License-Identifier: Apache-2.0
// The roles of operations, told from their signatures alone, without a base class or registration.
//
//   role         signature                                                       examples
//   value        Functor prepare([grid,] site) const, or T' operator()(T[, voxel]) const   window, gamma, cast
//                with T = float for one channel or rgb for three together        hed_jitter
//   geometry     geometry_step step(grid, site) const                            resample, crop, affine
//   deformation  deformation deform(grid, site) const                            elastic
//                or sample_geometry undone(grid, site) const                     inverse_elastic
//   random       float probability; kind; Op draw(draws&, [grid,] site) const      random_affine, gaussian_noise
//                or draw(draws&, placed_grid, site), by the place in the source    crop_by_class
//   chosen       Op chosen(std::size_t sample) const, Op unchosen() const,         crop_at
//                void check_samples(std::size_t samples, site) const
//   sampling     sampling<Interpolation, Border, Labels>                         sampling
//
// A random operation draws a deterministic one and has its role. A chosen operation returns one for each sample.
#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>
#include <utility>

#include "../base/chain.hpp"
#include "../base/pixel.hpp"
#include "../base/voxel.hpp"
#include "../image/geometry_step.hpp"
#include "../image/sample_geometry.hpp"
#include "../rng/draw.hpp"
#include "../sample/sampling.hpp"

// clang-format 14 has no layout for concepts and requires-clauses.
// clang-format off
namespace suture {

enum class role { value, geometry, deformation, sampling, none };

template <class F, class T>
concept applies_with_voxel = requires(const F& f, T v, const voxel& at) { f(v, at); };
template <class F, class T>
concept applies_alone = requires(const F& f, T v) { f(v); };
template <class F, class T>
concept applies = applies_with_voxel<F, T> || applies_alone<F, T>;
template <class F, class T>
concept value_functor = applies<F, T> && std::is_trivially_copyable_v<F>;

template <class Op>
concept prepares_on_grid = requires(const Op& op, const grid& g, const site& where) { op.prepare(g, where); };
template <class Op>
concept prepared_operation = prepares_on_grid<Op> || requires(const Op& op, const site& where) { op.prepare(where); };
template <class Op>
concept geometry_operation = requires(const Op& op, const grid& g, const site& where) {
  { op.step(g, where) } -> std::same_as<geometry_step>;
};
// Operation that picks voxels; its step is that of the voxels it picks.
template <class Op>
concept picks_voxels = geometry_operation<Op> && requires(const Op& op, grid& g, affine_map& map, const site& where) {
  detail::pick(op.picked(g, where), g, g, map);
};
template <class Op>
concept deformation_operation = requires(const Op& op, const grid& g, const site& where) {
  { op.deform(g, where) } -> std::same_as<deformation>;
};
template <class Op>
concept inverse_operation = requires(const Op& op, const grid& g, const site& where) {
  { op.undone(g, where) } -> std::same_as<detail::sample_geometry>;
};
template <class Op>
concept value_operation = prepared_operation<Op> || value_functor<Op, float> || value_functor<Op, rgb>;

// A functor that takes the three channels of a pixel together and not one alone.
template <class F>
concept color_functor = applies<F, rgb> && !applies<F, float>;

template <class Op>
concept draws_alone = requires(const Op& op, draws& random, const site& where) { op.draw(random, where); };
template <class Op>
concept draws_on_grid =
    requires(const Op& op, draws& random, const grid& g, const site& where) { op.draw(random, g, where); };
// Geometry whose draw depends on the content of the source; it cannot follow a deformation.
template <class Op>
concept draws_in_source = !draws_on_grid<Op> &&
    requires(const Op& op, draws& random, const placed_grid& at, const site& where) { op.draw(random, at, where); };
template <class Op>
concept random_operation = (draws_alone<Op> || draws_on_grid<Op> || draws_in_source<Op>) && requires(const Op& op) {
  { op.probability } -> std::convertible_to<float>;
  { Op::kind } -> std::convertible_to<std::uint16_t>;
};
// Geometry that was chosen for each sample beforehand. A plan calls chosen() once for each sample and keeps the
// results, which its JSON record contains. unchosen() returns a value that a record is read into.
template <class Op>
concept chosen_operation = requires(const Op& op, std::size_t i, const site& where) {
  op.check_samples(i, where);
  { op.unchosen() } -> std::same_as<decltype(op.chosen(i))>;
} && geometry_operation<decltype(std::declval<const Op&>().unchosen())>;
// Operation whose parameters are checked once for a plan, and not with each draw.
template <class Op>
concept checks_recipe = random_operation<Op> && requires(const Op& op, const site& where) { op.check(where); };
// Operation whose per-sample parameters are checked for all samples, even those without a draw.
template <class Op>
concept checks_each_sample =
    random_operation<Op> && requires(const Op& op, const site& where) { op.check_sample(where); };
// Operation with parameters for each sample, whose number is checked once for a plan, but not in evaluation or a
// replay.
template <class Op>
concept counts_samples =
    random_operation<Op> && requires(const Op& op, std::size_t n, const site& where) { op.check_samples(n, where); };
template <class Op>
concept has_evaluation =
    requires(const Op& op, const grid& g, const site& where) { op.evaluation(g, where); };

namespace detail {
template <class T>
struct is_sampling : std::false_type {};
template <class I, class B, class L>
struct is_sampling<sampling<I, B, L>> : std::true_type {};

// Calls draw() of an operation with the arguments that it has.
template <class Op>
SUTURE_INLINE auto draw_at(const Op& op, draws& random, const placed_grid& at, const site& where) {
  if constexpr (draws_in_source<Op>) return op.draw(random, at, where);
  else if constexpr (draws_on_grid<Op>) return op.draw(random, at.output, where);
  else return op.draw(random, where);
}

template <class Op>
struct drawn {
  using type = Op;
};
template <class Op>
  requires(draws_alone<Op> || draws_on_grid<Op> || draws_in_source<Op>)
struct drawn<Op> {
  using type = decltype(draw_at(std::declval<const Op&>(), std::declval<draws&>(), std::declval<const placed_grid&>(),
                                std::declval<const site&>()));
};
template <chosen_operation Op>
struct drawn<Op> {
  using type = decltype(std::declval<const Op&>().unchosen());
};
}  // namespace detail

// The deterministic operation that an operation becomes for one sample.
template <class Op>
using drawn_t = typename detail::drawn<Op>::type;

// Values that a random operation drew, and whether it acts.
template <class Drawn>
struct drawing {
  Drawn parameters;
  bool on;
};

namespace detail {
template <class T>
struct is_drawing : std::false_type {};
template <class Drawn>
struct is_drawing<drawing<Drawn>> : std::true_type {};

// Operations that differ between samples, which a plan records.
template <class Op>
inline constexpr bool recorded = random_operation<Op> || chosen_operation<Op>;
}  // namespace detail

template <class Op>
constexpr role role_of() {
  using D = drawn_t<Op>;
  if constexpr (detail::is_sampling<Op>::value) return role::sampling;
  else if constexpr (geometry_operation<D>) return role::geometry;
  else if constexpr (deformation_operation<D> || inverse_operation<D>) return role::deformation;
  else if constexpr (value_operation<D>) return role::value;
  else return role::none;
}

template <class Op>
concept operation = role_of<Op>() != role::none;

template <class T>
concept operation_or_chain = is_chain<T>::value || operation<T>;

template <class A, class B>
  requires(operation_or_chain<A> && operation_or_chain<B>)
constexpr auto operator|(const A& a, const B& b) {
  const auto left = as_chain(a);
  const auto right = as_chain(b);
  return detail::join(left, std::make_index_sequence<decltype(left)::size>{}, right,
                      std::make_index_sequence<decltype(right)::size>{});
}

// Joining an operation with something else prints a sentence instead of a list of candidates.
template <class A, class B>
  requires(std::is_class_v<A> && std::is_class_v<B> && operation_or_chain<A> != operation_or_chain<B>)
constexpr auto operator|(const A& a, const B& b) {
  static_assert(operation_or_chain<A> && operation_or_chain<B>,
                "suture: one side of | is not an operation: give it prepare(site) or operator()(float or rgb[, voxel]) "
                "for values, step(grid, site) for geometry, or draw(draws&, ...) with probability and kind for random "
                "ones. Fits are no operations: suture::fit runs them ahead, and operations take what they leave");
  if constexpr (operation_or_chain<A>) return as_chain(a);
  else return as_chain(b);
}

// Tells whether the linear part of the map of a geometry operation is always diagonal.
template <class Op>
constexpr bool keeps_axes() {
  if constexpr (requires { drawn_t<Op>::keeps_axes; }) return drawn_t<Op>::keeps_axes;
  else return false;
}

// Tells whether a geometry operation moves the content and leaves the grid as it is.
template <class Op>
constexpr bool keeps_grid() {
  if constexpr (requires { drawn_t<Op>::keeps_grid; }) return drawn_t<Op>::keeps_grid;
  else return false;
}

// Tells whether a deterministic operation is the same for all samples of one grid, since it never reads where.sample.
// It is then prepared once for consecutive samples of that grid. Functors that their neighbors change are excluded (see
// pass_on_logarithms).
template <class Op>
constexpr bool depends_on_grid_alone() {
  if constexpr (requires { Op::depends_on_grid_alone; }) return Op::depends_on_grid_alone;
  else return false;
}

template <class Op>
constexpr std::string_view name_of() {
  // Only JSON and callers of other languages read the names of members. Without them clang and nvcc would report those
  // of an operation in an unnamed namespace as unused.
  if constexpr (requires { Op::fields; }) static_cast<void>(Op::fields);
  if constexpr (requires { Op::parameters; }) static_cast<void>(Op::parameters);
  if constexpr (requires { Op::name; }) return Op::name;
  else return "operation";
}

}  // namespace suture
