// SPDX-License-Identifier: Apache-2.0
// Color spaces and stain separation. Colors are red, green, blue in [0, 1] here, whatever the operations that use
// these functions take. An error bound is the largest difference from the formula in exact arithmetic, in the units of
// the result; tests/color/color_space_test.cpp measures it.
//
//   space      from_rgb                                           channels                             error bound
//   hed        stain concentrations of hematoxylin, eosin, DAB   [0, 1.32], in units of 6 decades     3e-7
//   hsv        hue, saturation, value                             [0, 1)  [0, 1]  [0, 1]               2e-7
//   lab        CIE L*a*b*, sRGB, D65, 2 degrees                   [0, 100]  about [-108, 99]           6e-5
//   ruderman   l-alpha-beta, natural logarithm                    [-63, 10]  [-60, 52]  [-31, 32]      4e-6
//
// to_rgb is the inverse, limited to [0, 1], to within 1e-6 (lab: 3e-6, in red, green or blue near 0). For NaN the
// result is an unspecified color.
#pragma once

#include <string_view>

#include "../base/pixel.hpp"
#include "../base/vec.hpp"
#include "../math/elementary.hpp"

namespace suture {

namespace detail {

// Returns the dot product of a pixel and three weights.
SUTURE_FN float weigh(const rgb& v, float a, float b, float c) { return fma(v.c[0], a, fma(v.c[1], b, v.c[2] * c)); }

SUTURE_FN rgb limit(const rgb& v, float low, float high) {
  return {{math::detail::clamp_number(v.c[0], low, high), math::detail::clamp_number(v.c[1], low, high),
           math::detail::clamp_number(v.c[2], low, high)}};
}

// Limits values to [0, 1]; NaN becomes 0.
struct unit_range {
  SUTURE_FN rgb limit(const rgb& v) const { return detail::limit(v, 0, 1); }
  SUTURE_FN float limit(float x) const { return math::detail::clamp_number(x, 0.0f, 1.0f); }
};

// Limits values to a range in loops over pixels; NaN becomes the lower bound. Where a host compiler does not know the
// bounds it uses the processor's minimum and maximum; otherwise it makes comparisons and masks.
class range_of_lanes {
public:
  SUTURE_FN explicit range_of_lanes(float low = 0, float high = 1) : low_(low), high_(high) {
#if defined(__SSE2__) && !defined(__CUDACC__)
    asm("" : "+x"(low_), "+x"(high_));
#endif
  }

  // Applies the lower bound alone.
  SUTURE_FN float lift(float x) const {
#if defined(__SSE2__) && !defined(__CUDACC__)
    return x > low_ ? x : low_;
#else
    return math::detail::at_least(x, low_);
#endif
  }
  SUTURE_FN float limit(float x) const {
#if defined(__SSE2__) && !defined(__CUDACC__)
    const float lifted = lift(x);
    return lifted > high_ ? high_ : lifted;
#else
    return math::detail::clamp_number(x, low_, high_);
#endif
  }
  SUTURE_FN rgb limit(const rgb& v) const { return {{limit(v.c[0]), limit(v.c[1]), limit(v.c[2])}}; }

private:
  float low_, high_;
};

// Applies steps, each from rgb to rgb, to pixels side by side: all steps to one pixel before the next.
template <int N, class... Steps>
SUTURE_FN void in_one_loop(float (&v)[3][N], const Steps&... steps) {
  SUTURE_LANES
  for (int l = 0; l < N; ++l) {
    rgb x{{v[0][l], v[1][l], v[2][l]}};
    ((x = steps(x)), ...);
    SUTURE_UNROLL
    for (int c = 0; c < 3; ++c) v[c][l] = x.c[c];
  }
}
// Applies steps to pixels side by side, on the host one loop for each step. The steps of one pixel depend on each
// other, and in one loop they are too many instructions for a processor to overlap those of two pixels.
template <int N, class... Steps>
SUTURE_FN void in_steps(float (&v)[3][N], const Steps&... steps) {
#if defined(__CUDA_ARCH__)
  in_one_loop(v, steps...);
#else
  (in_one_loop(v, steps), ...);
#endif
}

// Applies a functor whose computation is in apply_lanes to one pixel.
template <class F>
SUTURE_FN rgb by_lanes(const F& f, const rgb& x, std::int32_t sample_index) {
  float v[3][1] = {{x.c[0]}, {x.c[1]}, {x.c[2]}};
  f.apply_lanes(v, sample_index);
  return {{v[0][0], v[1][0], v[2][0]}};
}

// The compiler must not know either value, else it may make a branch of this: see range_of_lanes.
SUTURE_FN float larger(float a, float b) { return a > b ? a : b; }
SUTURE_FN float smaller(float a, float b) { return a < b ? a : b; }

// Returns ln x of every channel, for positive normal x.
SUTURE_FN rgb log_of_normal(const rgb& v) {
  return {
      {math::detail::log_of_normal(v.c[0]), math::detail::log_of_normal(v.c[1]), math::detail::log_of_normal(v.c[2])}};
}
SUTURE_FN rgb exp(const rgb& v) { return {{math::exp(v.c[0]), math::exp(v.c[1]), math::exp(v.c[2])}}; }

// Converts sRGB to linear light, and linear light to sRGB, v in [0, 1].
SUTURE_FN float linear_of_srgb(float v) {
  const float base = fma(math::detail::at_least(v, 0.04045f), 0x1.e54edcp-1f, 0x1.ab1232p-5f);  // (v + 0.055) / 1.055
  const float curve = math::detail::power_of_normal(base, 2.4f);
  return math::detail::select(v > 0.04045f, curve, fma(v, 0x1.3d0722p-4f, 0.0f));  // v / 12.92
}
SUTURE_FN float srgb_of_linear(float v) {
  const float curve = math::detail::power_of_normal(math::detail::at_least(v, 0.0031308f), 0x1.aaaaaap-2f);  // 1 / 2.4
  return math::detail::select(v > 0.0031308f, fma(curve, 1.055f, -0.055f), fma(v, 12.92f, 0.0f));
}

}  // namespace detail

// A linear map of colors by three rows; a color is a row vector: out[k] = sum over c of in[c] row[c][k].
struct color_matrix {
  float row[3][3];

  SUTURE_FN rgb operator()(const rgb& v) const {
    return {{detail::weigh(v, row[0][0], row[1][0], row[2][0]), detail::weigh(v, row[0][1], row[1][1], row[2][1]),
             detail::weigh(v, row[0][2], row[1][2], row[2][2])}};
  }
  SUTURE_FN constexpr color_matrix operator-() const {
    color_matrix result{};
    for (int i = 0; i < 3; ++i)
      for (int k = 0; k < 3; ++k) result.row[i][k] = -row[i][k];
    return result;
  }
};

// The rows are the optical densities of hematoxylin, eosin and DAB for unit concentration; hed_from_rgb is the inverse.
// Source: Ruifrok and Johnston 2001, the rounded values of scikit-image.
SUTURE_FN constexpr color_matrix rgb_from_hed() {
  return {{{0.65f, 0.70f, 0.29f}, {0.07f, 0.99f, 0.11f}, {0.27f, 0.57f, 0.78f}}};
}
SUTURE_FN constexpr color_matrix hed_from_rgb() {
  return {{{1.8779827368521353f, -1.0076786862855645f, -0.5561158181996246f},
           {-0.06590806222356332f, 1.1347303724996625f, -0.1355217986283712f},
           {-0.6019073634392891f, -0.4804141884970579f, 1.5735880719641926f}}};
}

// Returns stain concentrations, max(0, ln max(v, 1e-6) / ln 1e-6 unmix), in units of six decades of optical density.
// The limit at 0 loses colors that the stains cannot make. Source: scikit-image separate_stains.
SUTURE_FN rgb separate_stains(const rgb& v, const color_matrix& unmix) {
  const rgb stains = unmix(detail::log_of_normal(detail::limit(v, 1e-6f, 0x1p60f)));
  rgb result{};
  SUTURE_UNROLL
  for (int k = 0; k < 3; ++k)  // -1 / ln 1e6
    result.c[k] = math::detail::at_least(fma(stains.c[k], -0x1.287a76p-4f, 0.0f), 0.0f);
  return result;
}

// Returns exp(ln 1e-6 stains mix), limited to [0, 1]. Source: scikit-image combine_stains.
SUTURE_FN rgb combine_stains(const rgb& stains, const color_matrix& mix) {
  rgb density = mix(stains);
  SUTURE_UNROLL
  for (int k = 0; k < 3; ++k) density.c[k] = fma(density.c[k], -0x1.ba18aap3f, 0.0f);  // -ln 1e6
  return detail::limit(detail::exp(density), 0, 1);
}

// Hematoxylin, eosin, DAB. Source: scikit-image (0.18 and later) rgb2hed, hed2rgb.
struct hed {
  static constexpr std::string_view name = "hed";
  // Constants for statistics: the fraction bits of the summed numbers, and the deviation below which a channel holds
  // only rounding errors.
  static constexpr int fraction_bits = 24;
  static constexpr double resolution = 1e-6;

  SUTURE_FN static rgb from_rgb(const rgb& v) { return separate_stains(v, hed_from_rgb()); }
  SUTURE_FN static rgb to_rgb(const rgb& v) { return combine_stains(v, rgb_from_hed()); }
};

namespace detail {

// Colors by hue, chroma (the largest channel less the smallest) and value (the largest channel). The hue is in sixths of
// a turn from red over green, in [-1, 5]. The hue of a gray has no meaning.
struct hue_chroma_value {
  SUTURE_FN static rgb from_rgb(const rgb& v) {
    using math::detail::select;
    const float r = v.c[0], g = v.c[1], b = v.c[2];
    const float high = larger(larger(r, g), b), low = smaller(smaller(r, g), b);
    const float chroma = high - low;
    const bool is_b = b == high, is_g = g == high;
    const float first = select(is_b, r, select(is_g, b, g)), second = select(is_b, g, select(is_g, r, b));
    const float start = select(is_b, 4.0f, select(is_g, 2.0f, 0.0f));
    return {{start + math::detail::divide(first - second, not_zero(chroma)), chroma, high}};
  }
  // Returns values in [0, 1] where the value is, and the chroma is at most the value.
  template <class Unit = unit_range>
  SUTURE_FN static rgb to_rgb(const rgb& v, const Unit& unit = {}) {
    // Each channel is the value less a share, in [0, 1], of the chroma.
    const float hue = v.c[0];
    const auto channel = [&](float share) { return fma(-v.c[1], unit.limit(share), v.c[2]); };
    return {{channel(smaller(hue - 1.0f, 5.0f - hue)), channel(larger(1.0f - hue, hue - 3.0f)),
             channel(smaller(hue + 1.0f, 3.0f - hue))}};
  }
  // Rotates a hue by a number of sixths of a turn in [0, 6).
  SUTURE_FN static float rotate(float hue, float sixths) {
    const float rotated = hue + sixths;
    return rotated - math::detail::select(rotated >= 5.0f, 6.0f, 0.0f);
  }
  SUTURE_FN static float saturation(const rgb& v) { return math::detail::divide(v.c[1], not_zero(v.c[2])); }

private:
  // Returns a divisor for quotients that are 0 where it is 0.
  SUTURE_FN static float not_zero(float x) { return math::detail::at_least(x, 0x1p-126f); }
};

}  // namespace detail

// Hue (0 for grays; a fraction of a turn from red over green), saturation (0 for black), value. Where two channels are
// the largest, blue counts before green before red. to_rgb uses the fraction of a hue, which may be up to 2^20 turns.
// Source: scikit-image rgb2hsv, hsv2rgb.
struct hsv {
  static constexpr std::string_view name = "hsv";
  static constexpr int fraction_bits = 24;
  static constexpr double resolution = 1e-6;

  SUTURE_FN static rgb from_rgb(const rgb& v) {
    using math::detail::select;
    const rgb w = detail::hue_chroma_value::from_rgb(v);
    const float hue = w.c[0] + select(w.c[0] < 0.0f, 6.0f, 0.0f);
    return {{fma(select((w.c[1] > 0.0f) & (hue < 6.0f), hue, 0.0f), 0x1.555556p-3f, 0.0f),
             detail::hue_chroma_value::saturation(w), w.c[2]}};
  }
  SUTURE_FN static rgb to_rgb(const rgb& v) {
    using math::detail::select;
    constexpr float magic = math::detail::round_magic;
    const float nearest = (v.c[0] + magic) - magic;
    const float hue = fma(v.c[0] - nearest, 6.0f, 0.0f);  // in [-3, 3]
    return detail::limit(
        detail::hue_chroma_value::to_rgb({{hue + select(hue < -1.0f, 6.0f, 0.0f), v.c[1] * v.c[2], v.c[2]}}), 0, 1);
  }
};

// CIE L*a*b* of sRGB under D65. Source: scikit-image rgb2lab, lab2rgb and their constants.
struct lab {
  static constexpr std::string_view name = "lab";
  static constexpr int fraction_bits = 20;
  static constexpr double resolution = 1e-4;

  SUTURE_FN static rgb from_rgb(const rgb& v) { return of_linear(linear_of_rgb(v)); }
  SUTURE_FN static rgb to_rgb(const rgb& v) { return rgb_of_linear(to_linear(v)); }

  // Converts pixels side by side.
  template <int N>
  SUTURE_FN static void lanes_from_rgb(float (&v)[3][N]) {
    detail::in_steps(
        v, [](const rgb& x) SUTURE_INLINE_LAMBDA { return linear_of_rgb(x); },
        [](const rgb& x) SUTURE_INLINE_LAMBDA { return of_linear(x); });
  }
  template <int N>
  SUTURE_FN static void lanes_to_rgb(float (&v)[3][N]) {
    detail::in_steps(
        v, [](const rgb& x) SUTURE_INLINE_LAMBDA { return to_linear(x); },
        [](const rgb& x) SUTURE_INLINE_LAMBDA { return rgb_of_linear(x); });
  }

private:
  SUTURE_FN static rgb linear_of_rgb(const rgb& v) {
    return {{detail::linear_of_srgb(v.c[0]), detail::linear_of_srgb(v.c[1]), detail::linear_of_srgb(v.c[2])}};
  }
  SUTURE_FN static rgb of_linear(const rgb& linear) {
    const float fx = curve(detail::weigh(linear, 0.4339463633781182f, 0.3762138731364483f, 0.1898250339305817f));
    const float fy = curve(detail::weigh(linear, 0.212671f, 0.71516f, 0.072169f));
    const float fz = curve(detail::weigh(linear, 0.017756674595666908f, 0.10946887943939825f, 0.8727046462716862f));
    return {{fma(fy, 116.0f, -16.0f), fma(fx - fy, 500.0f, 0.0f), fma(fy - fz, 200.0f, 0.0f)}};
  }

  SUTURE_FN static rgb to_linear(const rgb& v) {
    const float fy = fma(v.c[0], 0x1.1a7b96p-7f, 0x1.1a7b96p-3f);  // (L + 16) / 116
    const float fx = fma(v.c[1], 0x1.0624dep-9f, fy);
    const float fz = math::detail::at_least(fma(v.c[2], -0x1.47ae14p-8f, fy), 0.0f);
    const rgb xyz{{uncurve(fx), uncurve(fy), uncurve(fz)}};
    return detail::limit({{detail::weigh(xyz, 3.0799803022718044f, -1.5371515162713185f, -0.5428213080224701f),
                           detail::weigh(xyz, -0.9212477523232383f, 1.8759900014898907f, 0.045247339514465995f),
                           detail::weigh(xyz, 0.05289046109881183f, -0.20404133836651123f, 1.1512320119619401f)}},
                         0, 1);
  }
  SUTURE_FN static rgb rgb_of_linear(const rgb& linear) {
    return detail::limit({{detail::srgb_of_linear(linear.c[0]), detail::srgb_of_linear(linear.c[1]),
                           detail::srgb_of_linear(linear.c[2])}},
                         0, 1);
  }

  SUTURE_FN static float curve(float t) {
    const float root = math::detail::cube_root_of_large(math::detail::at_least(t, 0.008856f));
    return math::detail::select(t > 0.008856f, root, fma(t, 7.787f, 0x1.1a7b96p-3f));
  }
  SUTURE_FN static float uncurve(float f) {
    const float straight = fma(f - 0x1.1a7b96p-3f, 0x1.0700a0p-3f, 0.0f);  // / 7.787
    return math::detail::select(f > 0.2068966f, f * f * f, straight);
  }
};

// l-alpha-beta of Ruderman et al. 1998 as Reinhard et al. 2001 use it, on red, green and blue from 0 to 255, by the
// natural logarithm; a cone response of 0 counts as 2.2e-16. Source: HistomicsTK rgb_to_lab, lab_to_rgb.
struct ruderman {
  static constexpr std::string_view name = "ruderman";
  static constexpr int fraction_bits = 20;
  static constexpr double resolution = 1e-5;

  SUTURE_FN static rgb from_rgb(const rgb& v) {
    // The responses are in [0, 1]: the logarithm of 255 is added to l alone.
    const rgb cones = detail::log_of_normal(
        detail::limit({{detail::weigh(v, 0.3811f, 0.5783f, 0.0402f), detail::weigh(v, 0.1967f, 0.7244f, 0.0782f),
                        detail::weigh(v, 0.0241f, 0.1288f, 0.8444f)}},
                      0x1.010102p-60f, 0x1p60f));  // 2^-52 / 255
    const float sum = cones.c[0] + cones.c[1];
    return {{fma(sum + cones.c[2], 0x1.279a74p-1f, 0x1.3320c4p3f),
             fma(fma(cones.c[2], -2.0f, sum), 0x1.a20bd8p-2f, 0.0f),
             fma(cones.c[0] - cones.c[1], 0x1.6a09e6p-1f, 0.0f)}};
  }

  SUTURE_FN static rgb to_rgb(const rgb& v) {
    const float l = fma(v.c[0], 0x1.279a74p-1f, -0x1.62a410p2f);  // l / sqrt(3) - ln 255
    const float lm = fma(v.c[1], 0x1.a20bd8p-2f, l);
    const rgb cones = detail::exp(
        {{fma(v.c[2], 0x1.6a09e6p-1f, lm), fma(v.c[2], -0x1.6a09e6p-1f, lm), fma(v.c[1], -0x1.a20bd8p-1f, l)}});
    return detail::limit({{detail::weigh(cones, 4.468669863496255f, -3.5886759034721267f, 0.11960436657860116f),
                           detail::weigh(cones, -1.2197166276177631f, 2.3830879129554567f, -0.16263011175140055f),
                           detail::weigh(cones, 0.058508476938545856f, -0.2610784390276937f, 1.205665908525623f)}},
                         0, 1);
  }
};

}  // namespace suture
