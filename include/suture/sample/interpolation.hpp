// SPDX-License-Identifier: Apache-2.0
// Interpolation along one axis; a volume is interpolated along x, then y, then z. An interpolation states how many taps
// it reads, where the first one is, and how taps combine. One that picks a label `serves_labels`. At the center of a
// voxel nearest, linear and the two interpolating cubics copy that voxel, whatever it and its neighbors hold: a tap of
// weight 0 is ignored. A mixture of voxels is not finite if one of them is not.
#pragma once

#include "../base/coordinate.hpp"
#include "../math/bspline.hpp"

namespace suture {

// floor(x + 1/2): SciPy order 0, ITK, skimage, torch nearest-exact.
struct nearest {
  static constexpr int taps = 1;
  static constexpr bool prefiltered = false;
  static constexpr bool serves_labels = true;
  // Fractions are not negative, so their bits are ordered like integers: the sum sets the highest bit from 1/2 on.
  SUTURE_FN static std::int32_t first(coordinate c) {
    return c.base + static_cast<std::int32_t>((float_bits(c.fraction) + 0x41000000u) >> 31);
  }
  SUTURE_FN static void weights(float, float (&w)[1]) { w[0] = 1.0f; }
  SUTURE_FN static float combine(const float (&v)[1], const float (&)[1]) { return v[0]; }
};

// Ties to even: torch grid_sample nearest.
struct nearest_half_even {
  static constexpr int taps = 1;
  static constexpr bool prefiltered = false;
  static constexpr bool serves_labels = true;
  SUTURE_FN static std::int32_t first(coordinate c) {
    return c.base + ((c.fraction > 0.5f || (c.fraction == 0.5f && (c.base & 1))) ? 1 : 0);
  }
  SUTURE_FN static void weights(float, float (&w)[1]) { w[0] = 1.0f; }
  SUTURE_FN static float combine(const float (&v)[1], const float (&)[1]) { return v[0]; }
};

struct linear {
  static constexpr int taps = 2;
  static constexpr bool prefiltered = false;
  SUTURE_FN static std::int32_t first(coordinate c) { return c.base; }
  SUTURE_FN static void weights(float t, float (&w)[2]) {
    w[0] = 1.0f - t;
    w[1] = t;
  }
  SUTURE_FN static float combine(const float (&v)[2], const float (&w)[2]) { return detail::lerp(v[0], v[1], w[1]); }
};

namespace detail {
SUTURE_FN float combine_four(const float (&v)[4], const float (&w)[4]) {
  return fma(w[3], v[3], fma(w[2], v[2], fma(w[1], v[1], w[0] * v[0])));
}

// Keys' interpolating cubic; Thousandths = -1000 * A.
template <int Thousandths>
struct keys_cubic {
  static constexpr int taps = 4;
  static constexpr bool prefiltered = false;
  SUTURE_FN static std::int32_t first(coordinate c) { return c.base - 1; }
  SUTURE_FN static void weights(float t, float (&w)[4]) {
    constexpr float a = -static_cast<float>(Thousandths) / 1000.0f;
    const float s = 1.0f - t;
    w[0] = (a * t) * (s * s);
    w[1] = fma(fma(a + 2.0f, t, -(a + 3.0f)), t * t, 1.0f);
    w[2] = fma(fma(a + 2.0f, s, -(a + 3.0f)), s * s, 1.0f);
    w[3] = (a * s) * (t * t);
  }
  // The first weight is 0 only where t is 0 or was rounded to 1.
  SUTURE_FN static float combine(const float (&v)[4], const float (&w)[4]) {
    return w[0] != 0.0f ? combine_four(v, w) : w[1] != 0.0f ? v[1] : v[2];
  }
};
}  // namespace detail

// Keys' cubic with A = -1/2.
using catmull_rom = detail::keys_cubic<500>;
// Keys' cubic with A = -3/4: torch and OpenCV bicubic.
using torch_cubic = detail::keys_cubic<750>;

// Cubic B-spline on prefiltered coefficients: SciPy and skimage order 3, ITK BSplineInterpolateImageFunction.
// The coefficients are a stage of their own; see sample/prefilter.hpp.
struct cubic_bspline {
  static constexpr int taps = 4;
  static constexpr bool prefiltered = true;
  SUTURE_FN static std::int32_t first(coordinate c) { return c.base - 1; }
  SUTURE_FN static void weights(float t, float (&w)[4]) { bspline_weights(t, w); }
  SUTURE_FN static float combine(const float (&v)[4], const float (&w)[4]) { return detail::combine_four(v, w); }
};

// Label maps: the label with the largest sum of linear corner weights, ties to the lowest label. This is the result of
// nnU-Net's one-hot + linear + argmax in one pass over eight corners.
struct vote {
  static constexpr bool serves_labels = true;
};

}  // namespace suture
