// SPDX-License-Identifier: Apache-2.0
// This header has the optical density, the absorbance of a stained section, by the rule of each library.
#pragma once

#include "../base/error.hpp"
#include "../math/exponential.hpp"

namespace suture {

// OD = max(-ln(clamp(I + added, least, most) / white), floor) of an intensity I in 0 .. 255 (what lies outside counts
// as the nearest end). The inverse is I = white exp(-OD). Natural logarithms. Errors: white, least or most not in
// [1e-6, 1e6], least above most, added not in [0, 1e6], floor not in [-1e6, 1e6].
struct optical_density {
  float white = 240;  // the intensity of the empty slide
  float added = 1;    // so that black has a logarithm
  float least = 1e-6f;
  float most = 1e6f;
  float floor = -1e6f;

  bool operator==(const optical_density&) const = default;

  void check(const site& where) const {
    require(white >= 1e-6f && white <= 1e6f, where, "white ", white, " must be in [1e-6, 1e6]");
    require(added >= 0 && added <= 1e6f, where, "added ", added, " must be in [0, 1e6]");
    require(least >= 1e-6f && least <= most && most <= 1e6f, where, "least ", least, " and most ", most,
            " must be in order and in [1e-6, 1e6]");
    require(floor >= -1e6f && floor <= 1e6f, where, "floor ", floor, " must be in [-1e6, 1e6]");
  }

  // Returns -ln((I + 1) / 240): torchstain, the MATLAB original, HEnorm_python.
  static constexpr optical_density plus_one(float white = 240) { return {.white = white, .added = 1}; }
  // Returns -ln((I + 1) / 240), never negative: MONAI.
  static constexpr optical_density plus_one_clipped(float white = 240) {
    return {.white = white, .added = 1, .most = white};
  }
  // Returns -ln(clip(I, 1, white) / white): cuCIM.
  static constexpr optical_density clipped(float white = 240) {
    return {.white = white, .added = 0, .least = 1, .most = white};
  }
  // Returns max(-ln(max(I, 1) / 255), 1e-6): StainTools, TIAToolbox.
  static constexpr optical_density positive() { return {.white = 255, .added = 0, .least = 1, .floor = 1e-6f}; }
};

namespace detail {

// An optical_density ready for pixels. It also makes the tables of 8-bit images, so that those give the same bits as
// images of the same values in float.
struct density_map {
  float inverse_white = 0, white = 0, added = 0, low = 0, high = 0, floor = 0;  // low, high: of intensity + added
  bool operator==(const density_map&) const = default;

  // NaN stays NaN.
  SUTURE_FN float density(float intensity) const { return density_of_bounded(bounded(intensity)); }
  SUTURE_FN float bounded(float intensity) const {
    const float sum = intensity + added;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    float result;  // the instruction may give a zero of either sign, but low is above 0
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(sum), "f"(low));
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(result), "f"(high));
    return result;
#else
    const float lifted = sum < low ? low : sum;  // a minimum and a maximum of the processor
    return lifted > high ? high : lifted;
#endif
  }
  SUTURE_FN float density_of_bounded(float bounded) const {
    constexpr float ln_2 = 0x1.62e430p-1f;
    const float od = fma(math::detail::short_log2(fma(bounded, inverse_white, 0.0f)), -ln_2, 0.0f);
#if defined(__CUDA_ARCH__)
    const float least = fmaxf(od, floor);  // the sign of zero is lost below
#else
    const float least = od > floor ? od : floor;
#endif
    return fma(bounded, 0.0f, least);
  }
};

inline density_map map_of(const optical_density& d) {
  const float darkest = d.added > d.least ? d.added : d.least, brightest = 255.0f + d.added;
  return {math::detail::divide(1.0f, d.white),
          d.white,
          d.added,
          darkest < d.most ? darkest : d.most,
          brightest > d.most    ? d.most
          : brightest > d.least ? brightest
                                : d.least,
          d.floor};
}

// Returns the linear light of a level in units of 1/2040, from which OpenCV computes the luminosity L of 8-bit CIE Lab.
SUTURE_HD inline std::uint16_t linear_light(double level) {
  const double x = math::detail::divide(level, 255.0);
  const double linear = x <= 0.04045 ? math::detail::divide(x, 12.92)
                                     : math::exp(fma(2.4, math::log(math::detail::divide(x + 0.055, 1.055)), 0.0));
  return static_cast<std::uint16_t>(fma(2040.0, linear, 0.5));
}
SUTURE_FN std::int32_t luminance(std::uint16_t r, std::uint16_t g, std::uint16_t b) {
  return (r * 871 + g * 2929 + b * 296 + 2048) >> 12;
}

// Returns the greatest luminance for which the 8-bit L is below 255 times `threshold`, or -1.
inline std::int32_t luminance_limit(double threshold) {
  std::int32_t limit = -1;
  for (std::int64_t y = 0; y <= 2040; ++y) {
    std::int64_t f = 0;  // f(Y) of Lab in units of 2^-15, rounded
    if (static_cast<double>(y) < 0.008856 * 2040) {
      f = static_cast<std::int64_t>(
          fma(32768.0, fma(math::detail::divide(static_cast<double>(y), 2040.0), 7.787, 0.13793103448275862), 0.5));
    } else {
      std::int64_t low = 0, high = 32769;  // the greatest f with f - 1/2 at most the cube root
      while (high - low > 1) {
        const std::int64_t middle = (low + high) / 2, odd = 2 * middle - 1;
        (odd * odd * odd * 255 <= (std::int64_t{1} << 45) * y ? low : high) = middle;
      }
      f = low;
    }
    const std::int64_t level = (296 * f - ((16 * 255 * 32768 + 50) / 100) + 16384) >> 15;
    if (static_cast<double>(level) < 255.0 * threshold) limit = static_cast<std::int32_t>(y);
  }
  return limit;
}

}  // namespace detail

}  // namespace suture
