// SPDX-License-Identifier: Apache-2.0
// Rotation, scale, shear and translation about the image center, deterministic and random, in the conventions of the
// field's libraries.
#pragma once

#include <cfloat>
#include <cmath>

#include "../../base/fields.hpp"
#include "../../image/geometry_step.hpp"
#include "../../math/elementary.hpp"
#include "../../rng/draw.hpp"
#include "../common/axis_values.hpp"

namespace suture {

// Meaning of the numbers of `affine`. c is the image center, index (N - 1) / 2; R0, R1, R2 rotate about components 0,
// 1, 2 of the frame named, from component k + 1 towards k + 2; S = diag(scale); Sh is the identity plus the shears, in
// the order (01, 02, 10, 12, 20, 21); t is the translation. A `pull` takes output positions to input positions, a
// `forward` moves the objects and is inverted.
//
//   name     frame                             map                                                translate
//   suture   array axes, mm                    forward p' = R2 R1 R0 Sh S (p - c) + c + t          mm
//   itk      patient (LPS), mm                 pull    p' = Rz Rx Ry (p - c) + c + t               mm
//   torchio  patient (RAS signs), mm           forward p' = S (Rz Rx Ry (p - c) + t) + c           mm
//   monai    array axes, voxels                pull    x' = R0 R1 R2 Sh T S (x - c) + c            voxels, inside R Sh
//   nnunet   array axes, voxels                pull    x' = R2 R1 R0 S (x - c) + c                 -
//   monai_xyz  array axes (x, y, z), voxels    as monai, of an array whose first axis is x
//   kornia   array axes (x, y, z), voxels      forward x' = Rod(-r) S (x - c) + c + t              voxels
//
// Rz, Ry, Rx act in the (x, y, z) frame of the patient; Rod is the axis-angle (Rodrigues) rotation by the length of the
// vector r. Scale above 1 enlarges objects in suture, torchio and kornia and shrinks them in the others but itk. A
// rotation in voxels shears the anatomy where voxels are anisotropic; the default, suture, rotates in millimeters.
// All triples are given in (z, y, x) order, those of the patient frame too, and all angles in degrees. In Python monai
// means monai_xyz where the array's axes are xyz. A parameter that a convention lacks (shear outside suture and monai,
// scale in itk, translation in nnunet) must keep its default.
// Sources: MONAI Affine; batchgeneratorsv2 SpatialTransform (since 2026-07, the transpose before); TorchIO v1 Affine;
// ITK Euler3DTransform; Kornia get_affine_matrix3d.
enum class affine_convention { suture, itk, torchio, monai, nnunet, kornia, monai_xyz };

// Shear coefficients in the order (01, 02, 10, 12, 20, 21): entry ij adds component j to component i.
struct shears {
  double v[6];
};

namespace detail {

// Sine and cosine of an angle in degrees, at most 1e9; multiples of 90 are exact.
SUTURE_INLINE math::sine_cosine<double> sincos_of_degrees(double degrees) {
  const double quarters = std::floor(fma(degrees, 1.0 / 90, 0.5));
  const double radians = fma(quarters, -90.0, degrees) * 0.017453292519943295769;
  return math::detail::turn_quarters(math::sincos(radians), quarters + 0x1.8p52);
}

// Rotation about component `axis` of the frame, from component axis + 1 towards axis + 2.
inline matrix3 rotation(int axis, double degrees) {
  const auto [s, c] = sincos_of_degrees(degrees);
  const int from = (axis + 1) % 3, towards = (axis + 2) % 3;
  matrix3 r;
  r[from][from] = c;
  r[from][towards] = -s;
  r[towards][from] = s;
  r[towards][towards] = c;
  return r;
}

// Rotates two rows of a matrix, `low` being the one with the lower number. The order of the sums is that of the matrix
// product, so that the bits are the same.
SUTURE_INLINE void rotate_rows(double* low, double* high, double sine, double cosine) {
  SUTURE_UNROLL
  for (int j = 0; j < 3; ++j) {
    const double a = low[j], b = high[j];
    low[j] = fma(cosine, a, -sine * b);
    high[j] = fma(sine, a, cosine * b);
  }
}

// m becomes R2 R1 R0 m; an angle of 0 is skipped.
SUTURE_INLINE void rotate(matrix3& m, const point3& degrees) {
  if (degrees == point3{0, 0, 0}) return;
  const auto [s0, c0] = sincos_of_degrees(degrees[0]);
  const auto [s1, c1] = sincos_of_degrees(degrees[1]);
  const auto [s2, c2] = sincos_of_degrees(degrees[2]);
  if (degrees[0] != 0) rotate_rows(m[1], m[2], s0, c0);
  if (degrees[1] != 0) rotate_rows(m[0], m[2], -s1, c1);
  if (degrees[2] != 0) rotate_rows(m[0], m[1], s2, c2);
}

SUTURE_INLINE void scale_columns(matrix3& m, const point3& by) {
  SUTURE_UNROLL
  for (int i = 0; i < 3; ++i) {
    SUTURE_UNROLL
    for (int j = 0; j < 3; ++j) m[i][j] *= by[j];
  }
}

// Rz Rx Ry of the patient's (x, y, z) frame, written for components in (z, y, x) order: reversing the order of the
// components reverses the sense of every rotation.
inline matrix3 euler_zxy(const point3& degrees) {
  return rotation(0, -degrees[0]) * (rotation(2, -degrees[2]) * rotation(1, -degrees[1]));
}

// Rotation by |r| degrees about the vector r = (z, y, x), right-handed in (x, y, z).
inline matrix3 rodrigues(const point3& r) {
  const double angle = std::sqrt(fma(r[0], r[0], fma(r[1], r[1], r[2] * r[2])));
  if (angle == 0) return {};
  const auto [s, c] = sincos_of_degrees(angle);
  const point3 k{r[0] / angle, r[1] / angle, r[2] / angle};
  matrix3 result;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      // The cross-product matrix of a left-handed (z, y, x) frame has the opposite sign.
      const int other = 3 - i - j;
      const double cross = i == j ? 0 : (j - i + 3) % 3 == 1 ? k[other] : -k[other];
      result[i][j] = fma((1 - c) * k[i], k[j], fma(s, cross, i == j ? c : 0.0));
    }
  return result;
}

// The arguments are passed by value, so that a matrix whose address is never taken can stay in registers.
SUTURE_NOINLINE inline matrix3 product(matrix3 a, matrix3 b) { return a * b; }

inline matrix3 shear_matrix(const shears& s) {
  return {{{1, s.v[0], s.v[1]}, {s.v[2], 1, s.v[3]}, {s.v[4], s.v[5], 1}}};
}

inline bool well_conditioned(const matrix3& a) {
  const double d = determinant(a);
  return std::isfinite(d) && std::abs(d) > 1e-9;
}

// Turns a pull in voxels about index 0 into one about the image center: x_in = c + pull(x_out - c).
SUTURE_INLINE void center(affine_map& pull, const grid& input) {
  const point3 c = input.center(), moved = pull({-c[0], -c[1], -c[2]});
  for (int k = 0; k < 3; ++k) pull.offset[k] = moved[k] + c[k];
}

}  // namespace detail

// affine_matrix: the primitive under all conventions. x_in = c + linear (x_out - c) + translation in voxels, with
//   c = (N - 1) / 2, or 0 where about_center is false (then it is matrix and offset of scipy.ndimage.affine_transform).
// The content moves, the grid stays. Errors: a matrix that is singular or not finite.
struct affine_matrix {
  static constexpr std::string_view name = "affine_matrix";
  static constexpr auto gives_size = output_size::alike;
  static constexpr bool keeps_axes = false;

  matrix3 linear{};
  point3 translation{0, 0, 0};
  bool about_center = true;

  static constexpr auto parameters = named("linear", &affine_matrix::linear, "translation", &affine_matrix::translation,
                                           "about_center", &affine_matrix::about_center);

  geometry_step step(const grid& input, const site& where) const {
    require(detail::well_conditioned(linear), where, "matrix with determinant ", determinant(linear),
            " cannot be inverted");
    for (int k = 0; k < 3; ++k)
      require(std::isfinite(translation[k]), where, "translation ", translation, " must be finite");
    geometry_step result{input, {linear, translation}};
    if (about_center) detail::center(result.pull, input);
    return result;
  }
};

// affine: rotation, scale, shear and translation about the image center; see affine_convention for what they mean.
//   The content moves, the grid stays. Angles in degrees; multiples of 90 are exact.
// Errors: a scale that is not positive, a shear that makes the map singular, a parameter the convention does not have.
struct affine {
  static constexpr std::string_view name = "affine";
  static constexpr auto gives_size = output_size::alike;
  static constexpr bool keeps_axes = false;
  static constexpr bool keeps_grid = true;

  point3 rotate_deg{0, 0, 0};
  point3 scale{1, 1, 1};
  shears shear{0, 0, 0, 0, 0, 0};
  point3 translate{0, 0, 0};
  affine_convention convention = affine_convention::suture;

  static constexpr auto fields = named("rotate_deg", &affine::rotate_deg, "scale", &affine::scale, "shear",
                                       &affine::shear, "translate", &affine::translate);
  static constexpr auto parameters =
      named("rotate_deg", &affine::rotate_deg, "scale", &affine::scale, "shear", &affine::shear, "translate",
            &affine::translate, "convention", &affine::convention);

  geometry_step step(const grid& input, const site& where) const {
    check(where);
    geometry_step result{input, pull(input)};
    detail::center(result.pull, input);
    bool finite = true;
    for (int i = 0; i < 3; ++i) {
      finite = finite && std::abs(result.pull.offset[i]) <= DBL_MAX;
      for (double m : result.pull.linear.m[i]) finite = finite && std::abs(m) <= DBL_MAX;
    }
    require(finite, where, "scale ", scale, " and translate ", translate, " are too extreme to be inverted");
    return result;
  }

  void check(const site& where) const {
    bool good = true;
    for (int k = 0; k < 3; ++k)
      good = good && std::abs(rotate_deg[k]) <= 1e6 && scale[k] > 0 && scale[k] <= DBL_MAX &&
             std::abs(translate[k]) <= DBL_MAX;
    if (convention == affine_convention::itk) good = good && scale == point3{1, 1, 1};
    if (convention == affine_convention::nnunet) good = good && translate == point3{0, 0, 0};
    if (!good) explain(where);
    if (!is_sheared()) return;
    const bool can_shear = convention == affine_convention::suture || convention == affine_convention::monai ||
                           convention == affine_convention::monai_xyz;
    require(can_shear, where, "only the suture and monai conventions have a shear");
    const double d = determinant(detail::shear_matrix(shear));
    require(std::isfinite(d) && std::abs(d) > 1e-6, where, "shear with determinant ", d, " cannot be inverted");
  }

private:
  void explain(const site& where) const {
    for (int k = 0; k < 3; ++k) {
      require(std::abs(rotate_deg[k]) <= 1e6, where, "rotate_deg ", rotate_deg, " must be finite and below 1e6");
      require(std::isfinite(scale[k]) && scale[k] > 0, where, "scale ", scale, " must be positive and finite");
      require(std::isfinite(translate[k]), where, "translate ", translate, " must be finite");
      require(convention != affine_convention::itk || scale[k] == 1, where, "the itk convention has no scale");
      require(convention != affine_convention::nnunet || translate[k] == 0, where,
              "the nnunet convention has no translation");
    }
  }

  // The pull in voxels about the image center.
  affine_map pull(const grid& input) const {
    if (convention == affine_convention::suture) return suture_pull(input.spacing);
    if (convention == affine_convention::nnunet) return nnunet_pull();
    return other_pull(input);
  }

  affine_map suture_pull(const point3& spacing) const {
    matrix3 forward;
    detail::rotate(forward, rotate_deg);
    if (is_sheared())
      forward = detail::product(forward, detail::shear_matrix(shear) * diagonal(scale));
    else
      detail::scale_columns(forward, scale);
    affine_map result = inverse(affine_map{forward, translate});
    to_voxels(result, spacing);
    return result;
  }

  affine_map nnunet_pull() const {
    affine_map result;
    detail::rotate(result.linear, rotate_deg);
    detail::scale_columns(result.linear, scale);
    return result;
  }

  affine_map other_pull(const grid& input) const {
    using detail::rotation;
    const matrix3 s = diagonal(scale), sh = detail::shear_matrix(shear);
    switch (convention) {
      case affine_convention::itk:
        return in_voxels({detail::euler_zxy(rotate_deg), translate}, input.direction, input.spacing);
      case affine_convention::torchio: {
        // The first two axes of the patient, x and y, change sign from RAS to LPS.
        const matrix3 r = detail::euler_zxy({rotate_deg[0], -rotate_deg[1], -rotate_deg[2]});
        const point3 t{scale[0] * translate[0], -scale[1] * translate[1], -scale[2] * translate[2]};
        return in_voxels(inverse({s * r, t}), input.direction, input.spacing);
      }
      case affine_convention::monai: {
        const matrix3 r = rotation(0, rotate_deg[0]) * (rotation(1, rotate_deg[1]) * rotation(2, rotate_deg[2]));
        return {r * (sh * s), (r * sh) * translate};
      }
      case affine_convention::monai_xyz: {
        // The other order of the components reverses the sense of every rotation.
        const matrix3 r = rotation(2, -rotate_deg[2]) * (rotation(1, -rotate_deg[1]) * rotation(0, -rotate_deg[0]));
        return {r * (sh * s), (r * sh) * translate};
      }
      case affine_convention::suture:
      case affine_convention::nnunet:
      case affine_convention::kornia:
        break;
    }
    const matrix3 r = detail::rodrigues({-rotate_deg[0], -rotate_deg[1], -rotate_deg[2]});
    return inverse({r * s, translate});
  }

  bool is_sheared() const {
    bool sheared = false;
    for (const double s : shear.v) sheared |= s != 0;
    return sheared;
  }

  // Converts a map of millimeters in the frame whose columns are `axes` to voxels.
  static affine_map in_voxels(const affine_map& map, const matrix3& axes, const point3& spacing) {
    const matrix3 back = inverse(axes);
    affine_map result{back * (map.linear * axes), back * map.offset};
    to_voxels(result, spacing);
    return result;
  }
  // Converts a map in millimeters of the frame of the array to voxels, in place.
  SUTURE_INLINE static void to_voxels(affine_map& map, const point3& spacing) {
    SUTURE_UNROLL
    for (int i = 0; i < 3; ++i) {
      SUTURE_UNROLL
      for (int j = 0; j < 3; ++j)
        if (spacing[j] != spacing[i]) map.linear[i][j] *= spacing[j] / spacing[i];
      map.offset[i] /= spacing[i];
    }
  }
};

// random_affine: an affine whose parameters are uniform in the ranges given (fifteen slots: three angles, three scales,
//   six shears, three translations; drawn whatever the ranges are). isotropic_scale takes one scale for all axes.
//   Ranges read as `axis_ranges` says: `.rotate_deg = 15`, `.scale = {.85f, 1.25f}`, `.translate = {0, 10, 10}`.
//   A 2D image (an axis of a single voxel) stays in its plane: angles, shears and translations that would take it out
//   are 0. The itk and torchio conventions turn about axes of the patient and are not held back.
// Errors: an empty or infinite range, a scale range that reaches 0, different scale ranges where isotropic; as affine.
struct random_affine {
  static constexpr std::string_view name = "random_affine";
  static constexpr auto gives_size = output_size::alike;
  static constexpr std::uint16_t kind = 1;

  axis_ranges rotate_deg = 0;
  axis_ranges scale = {1, 1};
  value_range shear = 0;
  axis_ranges translate = 0;
  bool isotropic_scale = true;
  affine_convention convention = affine_convention::suture;
  float probability = 1;

  static constexpr auto parameters = named(
      "rotate_deg", &random_affine::rotate_deg, "scale", multiplies(&random_affine::scale), "shear",
      &random_affine::shear, "translate", &random_affine::translate, "isotropic_scale", &random_affine::isotropic_scale,
      "convention", &random_affine::convention, "probability", &random_affine::probability);

  void check(const site& where) const {
    for (int k = 0; k < 3; ++k) {
      check(rotate_deg[k], "rotate_deg", where);
      check(scale[k], "scale", where);
      check(translate[k], "translate", where);
      require(scale[k].low > 0, where, "scale ", scale[k], " must be positive");
      require(!isotropic_scale || scale[k] == scale[0], where,
              "scale ranges differ between axes; set isotropic_scale = false");
    }
    check(shear, "shear", where);
    check_convention(&value_range::low, where);
    check_convention(&value_range::high, where);
  }

  affine draw(draws& random, const grid& input, const site&) const {
    affine drawn{.convention = convention};
    for (int k = 0; k < 3; ++k) drawn.rotate_deg[k] = from(rotate_deg[k], random);
    for (int k = 0; k < 3; ++k) drawn.scale[k] = from(scale[k], random);
    if (isotropic_scale) drawn.scale = {drawn.scale[0], drawn.scale[0], drawn.scale[0]};
    for (double& s : drawn.shear.v) s = from(shear, random);
    for (int k = 0; k < 3; ++k) drawn.translate[k] = from(translate[k], random);
    if (convention != affine_convention::itk && convention != affine_convention::torchio)
      keep_in_plane(drawn, input.extents);
    return drawn;
  }

private:
  static void keep_in_plane(affine& drawn, const extent3& n) {
    for (int i = 0, shear_term = 0; i < 3; ++i) {
      const int j = (i + 1) % 3, k = (i + 2) % 3;
      if (n[j] == 1 || n[k] == 1) drawn.rotate_deg[i] = 0;  // a rotation that mixes the other two axes
      if (n[i] == 1) drawn.translate[i] = 0;
      for (int other = 0; other < 3; ++other) {
        if (other == i) continue;
        if (n[i] == 1 || n[other] == 1) drawn.shear.v[shear_term] = 0;
        ++shear_term;
      }
    }
  }
  // Checks the affine at one end of the ranges. One shear alone can be inverted whatever it is.
  void check_convention(float value_range::*end, const site& where) const {
    const auto at_end = [&](const axis_ranges& ranges) {
      return point3{static_cast<double>(ranges.z.*end), static_cast<double>(ranges.y.*end),
                    static_cast<double>(ranges.x.*end)};
    };
    affine{.rotate_deg = at_end(rotate_deg),
           .scale = at_end(scale),
           .shear = {static_cast<double>(shear.*end), 0, 0, 0, 0, 0},
           .translate = at_end(translate),
           .convention = convention}
        .check(where);
  }
  static void check(const value_range& range, const char* what, const site& where) {
    require(range.low >= -FLT_MAX && range.low <= range.high && range.high <= FLT_MAX, where, what, " ", range,
            " must be a finite range, low end first");
  }
  static double from(const value_range& range, draws& random) {
    if (range.low == range.high) {  // most are
      random.skip();
      return static_cast<double>(range.low);
    }
    return static_cast<double>(random.uniform(range.low, range.high));
  }
};

}  // namespace suture
