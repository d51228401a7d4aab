// SPDX-License-Identifier: Apache-2.0
// Functions of a request that fit statistics to images, for callers in other languages: on the CPU or, with
// abi/fit.cuh, on a device.
//
// A request passes the images, the selection of voxels with its masks and numbers, then the parameters of the fit. T is
// the element type of the images; Selection is a type of fit/selection.hpp. Results are the structs that operations
// take as parameters.
#pragma once

#include <array>
#include <optional>

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

// Fits `settings` to the images and writes the results. The request has memory for any number of results, which `fit`
// checks.
template <class Executor, class Fit, class Images, class Selection>
void run_fit(reader& r, const Fit& settings, const Images& images, const Selection& selection) {
  using result = typename Fit::result;
  static_assert(std::is_trivially_copyable_v<result> && std::is_standard_layout_v<result>);
  const std::span<result> results = r.result<result>("results");
  place<Executor>::run(
      r, device_bytes<Executor>(settings, images), results,
      [&](const Executor& exec, std::span<result> there) { fit(exec, settings, images, selection, there); });
}

}  // namespace detail

// Computes a fit whose parameters are read in the order of its struct.
template <class Fit, class T, class Selection, class Executor>
void fit_by_parameters(const request& given) {
  reader r(given, Fit::name);
  const auto images = r.input<T>("images");
  const auto selection = r.next<Selection>("where");
  Fit settings{};
  detail::read_parameters(r, settings);
  detail::run_fit<Executor>(r, settings, images, selection);
}

template <class T, class Selection, class Executor>
inline constexpr auto& fit_moments = fit_by_parameters<suture::fit_moments, T, Selection, Executor>;
template <int N, class T, class Selection, class Executor>
inline constexpr auto& fit_percentiles = fit_by_parameters<suture::fit_percentiles<N>, T, Selection, Executor>;
template <class T, class Selection, class Executor>
inline constexpr auto& fit_range = fit_by_parameters<suture::fit_range, T, Selection, Executor>;
template <int N, class T, class Selection, class Executor>
inline constexpr auto& fit_landmarks = fit_by_parameters<suture::fit_landmarks<N>, T, Selection, Executor>;
template <class T, class Selection, class Executor>
inline constexpr auto& fit_otsu = fit_by_parameters<suture::fit_otsu, T, Selection, Executor>;
// Here T is int8, uint8, int16 or uint16.
template <class T, class Selection, class Executor>
inline constexpr auto& fit_histogram = fit_by_parameters<suture::fit_histogram<T>, T, Selection, Executor>;
template <class Executor>
inline constexpr auto& fit_sharpness = fit_by_parameters<suture::fit_sharpness, std::uint8_t, everything, Executor>;
// Here Space is lab, ruderman, hed or hsv.
template <class Space, class T, class Selection, class Executor>
inline constexpr auto& fit_color_moments = fit_by_parameters<suture::fit_color_moments<Space>, T, Selection, Executor>;

// The modes of fit/macenko_modes.hpp, in the order of `fits` below. Most are named after the library that they
// reproduce.
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

// Computes the Macenko fit of a mode. The request passes the mode, then each of its parameters as an optional value
// that replaces the mode's.
template <class T, class Selection, class Executor>
void fit_macenko(const request& given) {
  reader r(given, suture::fit_macenko::name);
  const auto tiles = r.input<T>("tiles");
  const auto selection = r.next<Selection>("where");
  suture::fit_macenko settings = fit_of(r.next<stain_library>("mode"));
  const auto change = [&r]<class V>(V& value, std::string_view parameter) {
    if (const auto changed = r.next<std::optional<V>>(parameter)) value = *changed;
  };
  change(settings.least_density, "least_density");
  change(settings.luminosity, "luminosity");
  change(settings.centered, "centered");
  change(settings.alpha, "alpha");
  change(settings.concentration_percentile, "concentration_percentile");
  change(settings.concentrations_of_all, "concentrations_of_all");
  change(settings.penalty, "penalty");
  change(settings.refinements, "refinements");
  change(settings.sparsity, "sparsity");
  change(settings.least_pixels, "least_pixels");
  change(settings.least_share, "least_share");
  change(settings.single_stain_ratio, "single_stain_ratio");
  change(settings.single_stain_angle, "single_stain_angle");
  change(settings.together, "together");
  change(settings.full_scale, "full_scale");
  detail::run_fit<Executor>(r, settings, tiles, selection);
}

}  // namespace suture::abi
