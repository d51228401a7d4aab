// SPDX-License-Identifier: Apache-2.0
// Fits for other languages: each fit by a request, on either executor (abi/fit.cuh for a device).
//
// Every struct reads the images, the selection with its map and its numbers, then the parameters of the fit. T is the
// element type of the images; Selection is one of the types of fit/selection.hpp. Results are the structs that operations
// read, as result_layouts describes them.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "../color/color_space.hpp"
#include "../fit/color_moments.hpp"
#include "../fit/macenko.hpp"
#include "../fit/macenko_modes.hpp"
#include "../fit/one_pass.hpp"
#include "../fit/otsu.hpp"
#include "../fit/percentiles.hpp"
#include "../fit/sharpness.hpp"
#include "executor.hpp"
#include "parameters.hpp"

namespace suture::abi {

template <>
struct codec<everything> {
  static everything read(reader&, std::string_view) { return {}; }
};
template <>
struct codec<nonzero> {
  static nonzero read(reader&, std::string_view) { return {}; }
};
template <>
struct codec<above> {
  static above read(reader& r, std::string_view) { return above(r.next<float>("threshold")); }
};
template <class Map>
struct codec<inside_selection<Map>> {
  static inside_selection<Map> read(reader& r, std::string_view) { return inside(r.input<Map>("masks")); }
};
template <class Map>
struct codec<labeled_selection<Map>> {
  static labeled_selection<Map> read(reader& r, std::string_view) {
    auto maps = r.input<Map>("label maps");
    const auto classes = r.next<std::int32_t>("classes");
    return labeled(std::move(maps), label_set(r.list<std::int32_t>("labels"), classes));
  }
};

namespace detail {

// Fits `how` to the images and writes the results, of which there are as many as the fit says.
template <class Executor, class How, class Images, class Selection>
void run_fit(reader& r, const How& how, const Images& images, const Selection& selection) {
  using result = typename How::result;
  static_assert(std::is_trivially_copyable_v<result> && std::is_standard_layout_v<result>);
  const std::span<result> results = r.result<result>("results");
  std::size_t workspace = 0;
  if constexpr (!std::is_same_v<Executor, cpu>) workspace = workspace_bytes(how, images);
  place<Executor>::run(r, workspace, results, [&](const Executor& exec, std::span<result> there) {
    fit(exec, how, images, selection, there);
  });
}

}  // namespace detail

// A fit with the parameters that it lists.
template <class How, class T, class Selection, class Executor>
struct fit_by_parameters {
  static void call(const request& given) {
    reader r(given, How::name);
    const auto images = r.input<T>("images");
    const auto selection = r.next<Selection>("where");
    How how{};
    detail::read_parameters(r, how);
    detail::run_fit<Executor>(r, how, images, selection);
  }
};

template <class T, class Selection, class Executor>
using fit_moments = fit_by_parameters<suture::fit_moments, T, Selection, Executor>;
template <int N, class T, class Selection, class Executor>
using fit_percentiles = fit_by_parameters<suture::fit_percentiles<N>, T, Selection, Executor>;
template <class T, class Selection, class Executor>
using fit_range = fit_by_parameters<suture::fit_range, T, Selection, Executor>;
template <int N, class T, class Selection, class Executor>
using fit_landmarks = fit_by_parameters<suture::fit_landmarks<N>, T, Selection, Executor>;
template <class T, class Selection, class Executor>
using fit_otsu = fit_by_parameters<suture::fit_otsu, T, Selection, Executor>;
// T: int8, uint8, int16 or uint16.
template <class T, class Selection, class Executor>
using fit_histogram = fit_by_parameters<suture::fit_histogram<T>, T, Selection, Executor>;
template <class Executor>
using fit_sharpness = fit_by_parameters<suture::fit_sharpness, std::uint8_t, everything, Executor>;
// Space: lab, ruderman, hed or hsv.
template <class Space, class T, class Selection, class Executor>
using fit_color_moments = fit_by_parameters<suture::fit_color_moments<Space>, T, Selection, Executor>;

// The modes of fit/macenko_modes.hpp.
enum class stain_library {
  standard,
  torchstain,
  torchstain_torch,
  matlab,
  henorm,
  monai,
  cucim,
  staintools,
  tiatoolbox,
  vahadane
};
inline const suture::fit_macenko& fit_of(stain_library library) {
  static constexpr std::array fits = {macenko::standard.fit, macenko::torchstain.fit, macenko::torchstain_torch.fit,
                                      macenko::matlab.fit,   macenko::henorm.fit,     macenko::monai.fit,
                                      macenko::cucim.fit,    macenko::staintools.fit, macenko::tiatoolbox.fit,
                                      macenko::vahadane.fit};
  return fits[static_cast<std::size_t>(library)];
}

// A mode, and the parameters of it that are changed.
template <class T, class Selection, class Executor>
struct fit_macenko {
  static void call(const request& given) {
    reader r(given, suture::fit_macenko::name);
    const auto tiles = r.input<T>("tiles");
    const auto selection = r.next<Selection>("where");
    suture::fit_macenko how = fit_of(r.next<stain_library>("mode"));
    const auto change = [&r]<class V>(V& value, std::string_view parameter) {
      if (const auto changed = r.next<std::optional<V>>(parameter)) value = *changed;
    };
    change(how.least_density, "least_density");
    change(how.luminosity, "luminosity");
    change(how.centered, "centered");
    change(how.alpha, "alpha");
    change(how.concentration_percentile, "concentration_percentile");
    change(how.concentrations_of_all, "concentrations_of_all");
    change(how.penalty, "penalty");
    change(how.refinements, "refinements");
    change(how.sparsity, "sparsity");
    change(how.least_pixels, "least_pixels");
    change(how.least_share, "least_share");
    change(how.single_stain_ratio, "single_stain_ratio");
    change(how.single_stain_angle, "single_stain_angle");
    change(how.together, "together");
    change(how.full_scale, "full_scale");
    detail::run_fit<Executor>(r, how, tiles, selection);
  }
};

namespace detail {

// The bytes of a struct, then where each of these numbers begins in it.
template <class Result, class... Numbers>
std::vector<std::int64_t> layout_of(const Result& of, const Numbers&... numbers) {
  const auto* const begin = reinterpret_cast<const char*>(&of);
  return {static_cast<std::int64_t>(sizeof(Result)), (reinterpret_cast<const char*>(&numbers) - begin)...};
}
inline auto layout_of_moments() {
  const moments m;
  return layout_of(m, m.mean, m.standard_deviation, m.minimum, m.maximum, m.tally.count, m.tally.excluded,
                   m.tally.undeclared, m.status, m.ddof, m.center, m.reciprocal);
}
inline auto layout_of_range() {
  const intensity_range i;
  return layout_of(i, i.low, i.high, i.tally.count, i.tally.excluded, i.tally.undeclared, i.status, i.origin,
                   i.reciprocal);
}
inline auto layout_of_threshold() {
  const threshold t;
  return layout_of(t, t.value, t.tally.count, t.tally.excluded, t.tally.undeclared, t.status);
}
inline auto layout_of_percentiles() {
  const percentiles<3> p;
  return layout_of(p, p.value[0], p.value[1], p.value[2], p.tally.count, p.tally.excluded, p.tally.undeclared,
                   p.status);
}
// Layout of landmark_map; one with an even and one with an odd number of landmarks are described, since their padding
// differs between slopes and counts.
inline auto layout_of_two_landmarks() {
  const landmark_map<2> l;
  return layout_of(l, l.source[0], l.source[1], l.target[0], l.target[1], l.slope[0], l.tally.count, l.tally.excluded,
                   l.tally.undeclared, l.status);
}
inline auto layout_of_three_landmarks() {
  const landmark_map<3> l;
  return layout_of(l, l.source[0], l.source[1], l.source[2], l.target[0], l.target[1], l.target[2], l.slope[0],
                   l.slope[1], l.tally.count, l.tally.excluded, l.tally.undeclared, l.status);
}
inline auto layout_of_colors() {
  const color_moments<lab> c;
  return layout_of(c, c.mean[0], c.mean[1], c.mean[2], c.standard_deviation[0], c.standard_deviation[1],
                   c.standard_deviation[2], c.tally.count, c.tally.excluded, c.tally.undeclared, c.status, c.ddof,
                   c.center[0], c.center[1], c.center[2], c.deviation[0], c.deviation[1], c.deviation[2],
                   c.reciprocal[0], c.reciprocal[1], c.reciprocal[2]);
}
inline auto layout_of_sharpness() {
  const sharpness s;
  return layout_of(s, s.laplacian_variance, s.mean, s.standard_deviation, s.pixels, s.status);
}
// Lists the members that callers read; the other members are for the operations that apply the fit.
inline auto layout_of_stains() {
  const stain_basis b;
  return layout_of(b, b.stains[0][0], b.stains[0][1], b.stains[1][0], b.stains[1][1], b.stains[2][0], b.stains[2][1],
                   b.max_concentration[0], b.max_concentration[1], b.tally.count, b.tally.excluded, b.tally.undeclared,
                   b.pixels, b.status, b.unchanged);
}

}  // namespace detail

// The layouts of results, which callers that pack and unpack them compare with their own: for each kind of result the
// bytes of one and where its numbers begin, in the order in which callers write them.
struct result_layouts {
  static void call(const request& given) {
    reader r(given, "result_layouts");
    const std::array layouts = {
        detail::layout_of_moments(),     detail::layout_of_range(),         detail::layout_of_threshold(),
        detail::layout_of_percentiles(), detail::layout_of_two_landmarks(), detail::layout_of_three_landmarks(),
        detail::layout_of_colors(),      detail::layout_of_sharpness(),     detail::layout_of_stains()};
    std::array<std::span<std::int64_t>, layouts.size()> written;
    for (std::size_t i = 0; i < layouts.size(); ++i)
      written[i] = r.result<std::int64_t>("layout", static_cast<std::int64_t>(layouts[i].size()));
    r.finish();
    for (std::size_t i = 0; i < layouts.size(); ++i) std::ranges::copy(layouts[i], written[i].begin());
  }
};

}  // namespace suture::abi
