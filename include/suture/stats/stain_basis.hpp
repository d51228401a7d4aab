// SPDX-License-Identifier: Apache-2.0
// The result of a fit of stains: the colors of two stains and the maximum concentration of each.
#pragma once

#include <span>

#include "../base/fields.hpp"
#include "../color/optical_density.hpp"
#include "../math/trigonometric.hpp"
#include "statistics.hpp"

namespace suture {

// The outcome of a fit of stains.
//   ok                 stains and concentrations are those of the tile
//   too_little_tissue  too few stained pixels; stains and concentrations are those of the fallback
//   single_stain       the stained pixels show at most one stain; stains and concentrations are those of the fallback
//   ill_conditioned    a maximum concentration is not above 1e-6; that stain is not rescaled
//   not_fitted         no fit has written the result
enum class stain_status : std::uint32_t { ok, too_little_tissue, single_stain, ill_conditioned, not_fitted };

constexpr std::string_view status_name(stain_status s) {
  return s == stain_status::ok                  ? "ok"
         : s == stain_status::too_little_tissue ? "too_little_tissue"
         : s == stain_status::single_stain      ? "single_stain"
         : s == stain_status::ill_conditioned   ? "ill_conditioned"
                                                : "not_fitted";
}

// The optical density of one unit of each stain: rows red, green, blue; columns hematoxylin, eosin.
struct stain_matrix {
  double m[3][2];

  SUTURE_HD constexpr double* operator[](int row) { return m[row]; }
  SUTURE_HD constexpr const double* operator[](int row) const { return m[row]; }
  bool operator==(const stain_matrix&) const = default;
};

// The target to which tiles are normalized. The default is that of the MATLAB original, torchstain, MONAI and cuCIM.
struct stain_reference {
  stain_matrix stains = {{{.5626, .2159}, {.7201, .8012}, {.4062, .5581}}};
  double max_concentration[2] = {1.9705, 1.0308};

  static constexpr auto fields =
      named("stains", &stain_reference::stains, "max_concentration", &stain_reference::max_concentration);

  bool operator==(const stain_reference&) const = default;

  // Throws if the target cannot be used.
  // Errors: numbers that are not finite or exceed 1e6, a stain of length 0, two stains less than 0.1 degrees apart, a
  // maximum concentration that is not positive.
  void check(const site& where) const {
    double hh = 0, ee = 0, he = 0;
    for (int c = 0; c < 3; ++c) {
      for (int k = 0; k < 2; ++k)
        require(stains[c][k] >= -1e6 && stains[c][k] <= 1e6, where, "stain matrix element (", c, ", ", k, ") is ",
                stains[c][k]);
      hh = fma(stains[c][0], stains[c][0], hh);
      ee = fma(stains[c][1], stains[c][1], ee);
      he = fma(stains[c][0], stains[c][1], he);
    }
    require(hh > 1e-12 && ee > 1e-12, where, "a column of the stain matrix has no length");
    require(fma(hh, ee, -(he * he)) > 3e-6 * (hh * ee), where,
            "the stain matrix cannot be inverted: its columns are less than 0.1 degrees apart");
    for (const double c : max_concentration)
      require(c > 1e-6 && c <= 1e6, where, "maximum concentration ", c, " must be in (1e-6, 1e6]");
  }
};

namespace detail {

// Computes the concentrations c of the two stains H in a pixel of optical density od: by least squares or, with a
// penalty, as the minimum of |H c - od|^2 / 2 + penalty (c_H + c_E) over c >= 0.
struct stain_unmixing {
  float row[2][3] = {};                          // least squares: c = row od - offset
  float offset[2] = {};                          // what the penalty subtracts
  float alone[2][3] = {}, alone_offset[2] = {};  // the same for each stain if the other one is absent
  std::uint32_t penalized = 0;
  bool operator==(const stain_unmixing&) const = default;

  struct pair {
    float c[2];
  };
  template <bool Penalized>
  SUTURE_FN pair mixture(float red, float green, float blue) const {
    pair p{{fma(row[0][0], red, fma(row[0][1], green, fma(row[0][2], blue, -offset[0]))),
            fma(row[1][0], red, fma(row[1][1], green, fma(row[1][2], blue, -offset[1])))}};
    if constexpr (!Penalized) return p;
    // A negative concentration means that the minimum is at 0 for that stain.
    const float h = fma(alone[0][0], red, fma(alone[0][1], green, fma(alone[0][2], blue, -alone_offset[0])));
    const float e = fma(alone[1][0], red, fma(alone[1][1], green, fma(alone[1][2], blue, -alone_offset[1])));
    const bool first = p.c[0] >= 0, second = p.c[1] >= 0;
    using math::detail::select;
    return {{select(first & second, p.c[0], select(second | (h <= 0), 0.0f, h)),
             select(first & second, p.c[1], select(first | (e <= 0), 0.0f, e))}};
  }
  SUTURE_FN pair operator()(float red, float green, float blue) const {
    return penalized == 0 ? mixture<false>(red, green, blue) : mixture<true>(red, green, blue);
  }
};

// Returns the coefficients of the unmixing. The caller must have checked that the stains differ.
SUTURE_HD inline stain_unmixing unmix(const stain_matrix& stains, double penalty) {
  double hh = 0, ee = 0, he = 0;
  for (int c = 0; c < 3; ++c) {
    hh = fma(stains[c][0], stains[c][0], hh);
    ee = fma(stains[c][1], stains[c][1], ee);
    he = fma(stains[c][0], stains[c][1], he);
  }
  const double determinant = fma(hh, ee, -(he * he));
  stain_unmixing u;
  u.penalized = penalty > 0 ? 1 : 0;
  for (int c = 0; c < 3; ++c) {
    const double h = stains[c][0], e = stains[c][1];
    u.row[0][c] = static_cast<float>(math::detail::divide(fma(ee, h, -(he * e)), determinant));
    u.row[1][c] = static_cast<float>(math::detail::divide(fma(hh, e, -(he * h)), determinant));
    u.alone[0][c] = static_cast<float>(math::detail::divide(h, hh));
    u.alone[1][c] = static_cast<float>(math::detail::divide(e, ee));
  }
  if (penalty > 0) {
    u.offset[0] = static_cast<float>(math::detail::divide(fma(penalty, ee, -(penalty * he)), determinant));
    u.offset[1] = static_cast<float>(math::detail::divide(fma(penalty, hh, -(penalty * he)), determinant));
    u.alone_offset[0] = static_cast<float>(math::detail::divide(penalty, hh));
    u.alone_offset[1] = static_cast<float>(math::detail::divide(penalty, ee));
  }
  return u;
}

}  // namespace detail

// The stains of a tile, which a fit writes and operations read.
//   stains             columns of length 1, or those of the fallback (see stain_status)
//   max_concentration  of each stain: the percentile of the fit, or that of the fallback
//   tally              stained pixels (count), pixels with a channel that is not finite, pixels under undeclared labels
//   pixels             finite pixels among the selected ones, stained or not
//   unchanged          1 if operations must not change the tile: it could not be fitted, and there is no fallback
// A pipeline on the CPU refuses a basis that was never fitted; on a device such a basis leaves the tile unchanged.
struct stain_basis {
  stain_matrix stains = stain_reference{}.stains;
  double max_concentration[2] = {1.9705, 1.0308};
  fit_tally tally{};
  std::uint64_t pixels = 0;
  stain_status status = stain_status::not_fitted;
  std::uint32_t unchanged = 1;
  detail::density_map density{};      // the map to optical density of the fit, which operations must use too
  detail::stain_unmixing unmixing{};  // of `stains`
  float inverse_max[2] = {};          // 1 / max_concentration, or 0 where that is not above 1e-6
  float to_255 = 1, from_255 = 1;     // units of the image to 0 .. 255, and back
  bool operator==(const stain_basis&) const = default;

  SUTURE_HD suture::stain_reference reference() const { return {stains, {max_concentration[0], max_concentration[1]}}; }
  // Returns the angle between the vectors, in degrees: about 20 in H&E. A few degrees mean noise around one stain.
  double angle() const {
    double he = 0;
    for (int c = 0; c < 3; ++c) he = fma(stains[c][0], stains[c][1], he);
    // The cross product gives the sine: the cosine of a small angle does not resolve it.
    double squares = 0;
    for (int c = 0; c < 3; ++c) {
      const int a = (c + 1) % 3, b = (c + 2) % 3;
      const double cross = fma(stains[a][0], stains[b][1], -(stains[b][0] * stains[a][1]));
      squares = fma(cross, cross, squares);
    }
    return static_cast<double>(math::atan2(static_cast<float>(math::sqrt(squares)), static_cast<float>(he))) *
           57.29577951308232;
  }
};

namespace detail {
// Checks a basis that an operation is about to read, in host memory.
inline void check_fitted(const stain_basis& b, const site& where) {
  require(b.status != stain_status::not_fitted, where,
          "the stains were never fitted (status not_fitted): run fit_macenko before, or take basis_of stored ones");
}
}  // namespace detail

// Returns the stains of a fitted tile as the reference for other tiles. Errors: a status other than ok.
inline stain_reference reference_of(const stain_basis& target) {
  require(target.status == stain_status::ok, {"reference_of"}, "the target has the status ",
          status_name(target.status));
  return target.reference();
}

// Returns the average of several targets: the mean of their stain vectors, scaled to length 1, and of their maximum
// concentrations. Errors: no target, a status other than ok, vectors that cancel out.
inline stain_reference average_reference(std::span<const stain_basis> targets) {
  const site where{"average_reference"};
  require(!targets.empty(), where, "no targets");
  stain_reference mean;
  for (int k = 0; k < 2; ++k) {
    double sum[3] = {}, most = 0;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      require(targets[i].status == stain_status::ok, {"average_reference", static_cast<std::int64_t>(i)},
              "the target has the status ", status_name(targets[i].status));
      for (int c = 0; c < 3; ++c) sum[c] += targets[i].stains[c][k];
      most += targets[i].max_concentration[k];
    }
    const double length = math::sqrt(fma(sum[0], sum[0], fma(sum[1], sum[1], sum[2] * sum[2])));
    require(length > 1e-6, where, "the vectors of the targets cancel out");
    for (int c = 0; c < 3; ++c) mean.stains[c][k] = math::detail::divide(sum[c], length);
    mean.max_concentration[k] = math::detail::divide(most, static_cast<double>(targets.size()));
  }
  mean.check(where);
  return mean;
}

}  // namespace suture
