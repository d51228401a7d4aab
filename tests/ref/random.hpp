// SPDX-License-Identifier: Apache-2.0
// Philox4x32, the words-to-numbers conversions, and the layout of streams, blocks, slots and elements.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace reference {

using words4 = std::array<std::uint32_t, 4>;
using words2 = std::array<std::uint32_t, 2>;

inline words4 philox(words4 c, words2 k, int rounds = 10) {
  for (int r = 0; r < rounds; ++r) {
    if (r > 0) {
      k[0] += 0x9E3779B9U;
      k[1] += 0xBB67AE85U;
    }
    const std::uint64_t p0 = std::uint64_t{0xD2511F53U} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57U} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32U) ^ c[1] ^ k[0], static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32U) ^ c[3] ^ k[1], static_cast<std::uint32_t>(p0)};
  }
  return c;
}

inline std::uint32_t low_word(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
inline std::uint32_t high_word(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32U); }

// One stream per (seed, epoch, sample, operation, purpose).
inline words4 stream(std::uint64_t seed, std::uint32_t epoch, std::uint64_t sample, std::uint16_t operation,
                     std::uint16_t purpose) {
  return philox({low_word(sample), high_word(sample), epoch, (std::uint32_t{operation} << 16U) | purpose},
                {low_word(seed), high_word(seed)});
}
inline words4 block(const words4& s, std::uint64_t i) {
  return philox({low_word(i), high_word(i), s[2], s[3]}, {s[0], s[1]});
}

inline double u24(std::uint32_t x) { return (x >> 8U) * 0x1p-24; }               // [0, 1)
inline double u24_closed(std::uint32_t x) { return ((x >> 8U) + 1) * 0x1p-24; }  // (0, 1]
inline double u23_open(std::uint32_t x) { return ((x >> 9U) + 0.5) * 0x1p-23; }  // (0, 1)
// cuRAND's uniform, in float as defined: the 128 largest words give 1.
inline float u32_curand(std::uint32_t x) { return static_cast<float>(x) * 0x1p-32F + 0x1p-33F; }  // (0, 1]
inline std::uint64_t integer_below(std::uint32_t x, std::uint64_t n) { return (std::uint64_t{x} * n) >> 32U; }

// Box-Muller, cosine first: two normals per pair of words.
inline std::array<double, 4> normals(const words4& w) {
  const double tau = 2 * std::acos(-1.0);
  std::array<double, 4> z{};
  for (std::size_t i = 0; i < 4; i += 2) {
    const double radius = std::sqrt(-2 * std::log(u24_closed(w[i])));
    const double angle = tau * u24(w[i + 1]);
    z[i] = radius * std::cos(angle);
    z[i + 1] = radius * std::sin(angle);
  }
  return z;
}

// Scalar slot k of a stream, and voxel element e of a noise field.
inline std::uint32_t slot_word(const words4& s, std::uint64_t k) { return block(s, k >> 2U)[k & 3U]; }
inline double element_uniform(const words4& s, std::uint64_t e) { return u24(slot_word(s, e)); }
inline double element_normal(const words4& s, std::uint64_t e) { return normals(block(s, e >> 2U))[e & 3U]; }

}  // namespace reference
