// SPDX-License-Identifier: Apache-2.0
// Random words to random numbers.
#pragma once

#include <cstdint>

#include "../math/exponential.hpp"
#include "../math/root.hpp"
#include "../math/trigonometric.hpp"

namespace suture {

// [0, 1): a multiple of 2^-24, exact.
SUTURE_FN float unit_half_open(std::uint32_t word) {
  return fma(static_cast<float>(static_cast<std::int32_t>(word >> 8)), 0x1p-24f, 0.0f);
}

// (0, 1]: a multiple of 2^-24, exact, and fit for a logarithm.
SUTURE_FN float unit_positive(std::uint32_t word) {
  return fma(static_cast<float>(static_cast<std::int32_t>(word >> 8) + 1), 0x1p-24f, 0.0f);
}

// An integer in [0, n), 1 <= n <= 2^32, by multiplication and shift; the probability of a value is off by less than
// 2^-32.
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
  const math::sine_cosine<float> turn = math::detail::sincospi_small(2.0f * unit_half_open(angle));
  return {fma(r, turn.cosine, 0.0f), fma(r, turn.sine, 0.0f)};
}

}  // namespace suture
