// SPDX-License-Identifier: Apache-2.0
// This header maps random words to random numbers.
#pragma once

#include <cstdint>

#include "../math/exponential.hpp"
#include "../math/root.hpp"
#include "../math/trigonometric.hpp"

namespace suture {

// Returns a multiple of 2^-24 in [0, 1), exactly.
SUTURE_FN float unit_half_open(std::uint32_t word) {
  return fma(static_cast<float>(static_cast<std::int32_t>(word >> 8)), 0x1p-24f, 0.0f);
}

// Returns a multiple of 2^-24 in (0, 1], exactly, so that its logarithm is finite.
SUTURE_FN float unit_positive(std::uint32_t word) {
  return fma(static_cast<float>(static_cast<std::int32_t>(word >> 8) + 1), 0x1p-24f, 0.0f);
}

// Returns the greatest float below x.
SUTURE_FN float float_below(float x) {
  if (x == 0) return -0x1p-149f;
  const auto bits = bit_cast<std::uint32_t>(x);
  return bit_cast<float>(x > 0 ? bits - 1 : bits + 1);
}

// Returns a (1 - u) + b u. In the form a + (b - a) u a compiler could contract b - a with the product that made a
// bound.
SUTURE_FN float blend(float a, float b, float u) { return fma(b, u, fma(-a, u, a)); }

// Maps u in [0, 1) to [a, b), and to a where a == b: blend(a, b, u), clamped. It has no branch, for many draws at once.
class uniform_between {
public:
  SUTURE_FN uniform_between(float a, float b) : a_(a), b_(b), last_(a < b ? float_below(b) : a) {}
  SUTURE_FN float operator()(float u) const {
    const float value = blend(a_, b_, u), below_b = math::detail::select(value < b_, value, last_);
    return math::detail::select(below_b > a_, below_b, a_);
  }

private:
  float a_, b_, last_;
};

// Returns an integer in [0, n), 1 <= n <= 2^32, by multiplication and shift; the probability of a value is off by less
// than 2^-32.
SUTURE_FN constexpr std::int64_t integer_below(std::uint32_t word, std::int64_t n) {
  return static_cast<std::int64_t>((std::uint64_t{word} * static_cast<std::uint64_t>(n)) >> 32);
}

// Two independent standard normal values from two words: r cos 2 pi u and r sin 2 pi u, r = sqrt(-2 ln v), v in (0, 1]
// from the first word and u in [0, 1) from the second (Box and Muller, 1958). |z| <= 5.77.
struct normal_pair {
  float cosine;
  float sine;
};
SUTURE_FN normal_pair box_muller(std::uint32_t radius, std::uint32_t angle) {
  const float r = math::sqrt(-2.0f * math::detail::log_of_normal(unit_positive(radius)));
  const math::sine_cosine<float> direction = math::detail::sincospi_small(2.0f * unit_half_open(angle));
  return {fma(r, direction.cosine, 0.0f), fma(r, direction.sine, 0.0f)};
}

}  // namespace suture
