// SPDX-License-Identifier: Apache-2.0
// Macenko's method as each library computes it: the fit and the arithmetic of the normalization, by name.
#pragma once

#include "../ops/stain/macenko.hpp"
#include "macenko_rounds.hpp"

namespace suture {

// A mode has
//   fit       the parameters to pass to fit
//   rounding  and `over`: those of macenko_normalize
// normalize(fitted, reference) returns the operation that belongs to the fit.
struct macenko_mode {
  fit_macenko fit{};
  stain_rounding rounding = stain_rounding::unrounded;
  float over = 255;

  constexpr macenko_normalize normalize(std::span<const stain_basis> fitted, const stain_reference& reference = {},
                                        bool shared = false) const {
    return {fitted, reference, shared, rounding, over};
  }
};

namespace macenko {

// suture's own: percentiles of concentrations over stained pixels, colors rounded once, when they are stored.
inline constexpr macenko_mode standard{};

// The modes below fit any tile with two stained pixels, as their libraries do, and take their percentiles of
// concentrations over all pixels.
namespace detail {
constexpr fit_macenko as_library(fit_macenko settings) {
  settings.concentrations_of_all = true;
  settings.least_pixels = 2;
  settings.least_share = 0;
  return settings;
}
}  // namespace detail

// torchstain, NumPy backend.
inline constexpr macenko_mode torchstain{detail::as_library({}), stain_rounding::truncated};
// torchstain, PyTorch backend.
inline constexpr macenko_mode torchstain_torch{detail::as_library({.percentile = percentile_rule::nearest}),
                                               stain_rounding::truncated};
// MATLAB code of Macenko et al. (mitkovetta/staining-normalization).
inline constexpr macenko_mode matlab{detail::as_library({.percentile = percentile_rule::hazen}),
                                     stain_rounding::nearest};
// HEnorm_python (schaugf).
inline constexpr macenko_mode henorm{detail::as_library({}), stain_rounding::truncated, 254};
// MONAI ExtractHEStains, NormalizeHEStains.
inline constexpr macenko_mode monai{
    detail::as_library({.density = optical_density::plus_one_clipped(), .stained = stained_rule::all_above}),
    stain_rounding::truncated, 254};
// cuCIM normalize_colors_pca.
inline constexpr macenko_mode cucim{
    detail::as_library(
        {.density = optical_density::clipped(), .stained = stained_rule::any_above, .least_density = .345f}),
    stain_rounding::nearest};
// StainTools MacenkoStainExtractor with its luminosity mask and lasso concentrations.
inline constexpr macenko_mode staintools{
    detail::as_library({.density = optical_density::positive(), .stained = stained_rule::luminosity, .penalty = .01}),
    stain_rounding::truncated};
// TIAToolbox MacenkoNormalizer.
inline constexpr macenko_mode tiatoolbox{
    detail::as_library({.density = optical_density::positive(), .stained = stained_rule::stretched_luminosity}),
    stain_rounding::truncated};

// Vahadane et al. 2016: sparse non-negative factorization, from the vectors of Macenko on; concentrations as
// StainTools.
inline constexpr macenko_mode vahadane{
    {.density = optical_density::positive(), .stained = stained_rule::luminosity, .penalty = .01, .refinements = 30}};

}  // namespace macenko

}  // namespace suture
