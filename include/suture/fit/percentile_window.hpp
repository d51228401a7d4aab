// SPDX-License-Identifier: Apache-2.0
// Finds, for a Macenko fit on the CPU, the keys at a percentile without counting all of them. The first round keeps the
// densities of every pixel, rounded to 16 bits. A sample of pixels predicts a window for the wanted keys. The rounded
// densities decide for most pixels on which side of it they lie, and keys are computed only for the others.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "macenko_rounds.hpp"

namespace suture::detail {

inline constexpr int stain_strip = 128;

// Pixels side by side: densities below 8 in units of 2^-12. The lowest bit of red tells instead whether the pixel is
// selected, that of green whether it is also stained.
struct rounded_strip {
  std::int16_t density[3][stain_strip];
};
inline constexpr float rounded_unit = 0x1p-12f, rounded_error = 0x1p-11f;

// Ranks of a sample between which a rank among `count` keys very likely lies.
struct likely_ranks {
  std::uint64_t first, last;

  SUTURE_HD likely_ranks(std::uint64_t sampled, std::uint64_t rank, std::uint64_t count) {
    const auto n = static_cast<double>(sampled);
    const double share = math::detail::divide(static_cast<double>(rank), static_cast<double>(count));
    // 3.5 standard deviations of the binomial distribution, and 3 ranks.
    const double slack = fma(3.5, math::sqrt(n * share * (1 - share)), 3.0);
    const double most = fma(n, share, slack), least = fma(n, share, -slack);
    first = least > 0 ? static_cast<std::uint64_t>(least) : 0;
    last = most < n ? static_cast<std::uint64_t>(most) : sampled - 1;
  }
};

// Two planes in the space of optical densities, by their normals `side`. If the dot products of a pixel with both
// normals exceed `least`, its key is not wanted: in a coarse round of angles it lies between `first` and `second`; in
// one of concentrations the key of its first stain is below `first`, and that of its second below `second`.
struct stain_planes {
  float side[2][3] = {};
  float least[2] = {};

  // `error` is that of rounded densities.
  SUTURE_HD stain_planes(const macenko_rules& r, const macenko_solver& s, std::uint32_t first, std::uint32_t second,
                         float error) {
    // Covers rounding, also that of keys, which is a hundredth of this.
    const float rounding = fma(0x1p-14f, static_cast<float>(r.most_density), 0.0f);
    if (s.round == coarse_angles) {
      least[0] = least[1] = rounding;
      // A point lies between two directions if it is in front of both planes through the origin and one of them.
      if (first >= second) return;
      float x[2], y[2];
      direction_of_key(first, x[0], y[0]);
      direction_of_key(second, x[1], y[1]);
      for (int c = 0; c < 3; ++c) {
        side[0][c] = fma(x[0], s.plane[1][c], -(y[0] * s.plane[0][c]));
        side[1][c] = fma(y[1], s.plane[0][c], -(x[1] * s.plane[1][c]));
        for (int k = 0; k < 2; ++k) least[k] = fma(error, magnitude(side[k][c]), least[k]);
      }
    } else {
      for (int k = 0; k < 2; ++k) {
        float slope = 0;
        for (int c = 0; c < 3; ++c) {
          slope += magnitude(s.unmixing.row[k][c]) + magnitude(s.unmixing.alone[k][c]);
          side[k][c] = -s.unmixing.row[k][c];
        }
        least[k] = fma(slope, rounding + error, 0.0f) -
                   math::detail::divide(key_as_float(k == 0 ? first : second) - 0x1.8p23f - 1, s.scale);
      }
    }
  }

private:
  SUTURE_FN static float magnitude(float x) { return x < 0 ? -x : x; }
};

// Window of keys in which two neighboring ranks are searched: keys from low to high are kept, others are counted.
struct key_window {
  std::uint32_t low = 0, high = 0;
  std::uint64_t below = 0, above = 0;
  std::vector<std::uint32_t> inside;

  // Sets the window for the rank among `count` keys by the coarse bins of a sample.
  bool predict(const std::uint64_t* bin, std::uint64_t rank, std::uint64_t count) {
    std::uint64_t sampled = 0;
    for (int i = 0; i < coarse_bins; ++i) sampled += bin[i];
    if (sampled == 0) return false;
    const likely_ranks at(sampled, rank, count);
    std::uint32_t i = 0;
    std::uint64_t before = 0;
    while (before + bin[i] <= at.first) before += bin[i++];
    low = at.first > 0 ? i << 11 : 0;
    while (before + bin[i] <= at.last) before += bin[i++];
    high = at.last + 1 < sampled ? (i << 11) + 2047 : macenko_keys - 1;
    return true;
  }
  template <int N>
  void add_keys(const std::uint32_t (&key)[N], int n) {
    std::uint32_t lower = 0, within[N];
    int kept = 0;
    for (int i = 0; i < n; ++i) lower += key[i] < low ? 1 : 0;
    for (int i = 0; i < n; ++i) {
      within[kept] = key[i];
      kept += key[i] - low <= high - low ? 1 : 0;
    }
    inside.insert(inside.end(), within, within + kept);
    below += lower;
    above += static_cast<std::uint32_t>(n - kept) - lower;
  }
  void add(const key_window& part) {
    below += part.below;
    above += part.above;
    inside.insert(inside.end(), part.inside.begin(), part.inside.end());
  }
  // Finds the keys of two ranks, the second equal to the first or the next, if `first` keys lie below the window.
  // Returns false if the window does not hold them.
  bool find(const std::uint64_t* rank, std::uint64_t first, std::uint32_t* key) {
    if (rank[0] < first || rank[1] - first >= inside.size()) return false;
    const auto at = inside.begin() + static_cast<std::ptrdiff_t>(rank[0] - first);
    std::nth_element(inside.begin(), at, inside.end());
    key[0] = *at;
    key[1] = rank[1] == rank[0] ? *at : *std::min_element(at + 1, inside.end());
    return true;
  }
};

// Rejects pixels whose rounded densities alone show that their key cannot be in a window.
class stain_sieve {
public:
  stain_sieve(const macenko_rules& r, const macenko_solver& s, const key_window (&window)[2])
      : unmixing_(s.unmixing),
        planes_(r, s, s.round == coarse_angles ? window[0].high : window[0].low, window[1].low, rounded_error),
        wanted_(s.round == coarse_concentrations && r.fit.concentrations_of_all ? 0 : 1),
        penalized_(s.round == coarse_concentrations && s.unmixing.penalized != 0) {
    for (auto& plane : planes_.side)
      for (float& x : plane) x = fma(x, rounded_unit, 0.0f);
  }

  // Sets `rest` to 1 for pixels whose keys must be computed, and to 0 for the others.
  void sift(const rounded_strip& s, std::uint8_t (&rest)[stain_strip]) const {
    const stain_sieve mine = *this;  // stores to rest cannot change a copy
    const std::int16_t* const wanted = s.density[wanted_];
    if (penalized_) {
      for (int i = 0; i < stain_strip; ++i) {
        const auto density = [&](int c) { return fma(static_cast<float>(s.density[c][i]), rounded_unit, 0.0f); };
        const stain_unmixing::pair p = mine.unmixing_.mixture<true>(density(0), density(1), density(2));
        const bool out = (-p.c[0] > mine.planes_.least[0]) & (-p.c[1] > mine.planes_.least[1]);
        rest[i] = static_cast<std::uint8_t>(wanted[i] & static_cast<std::int16_t>(!out));
      }
      return;
    }
    for (int i = 0; i < stain_strip; ++i) {
      const auto r = static_cast<float>(s.density[0][i]), g = static_cast<float>(s.density[1][i]),
                 b = static_cast<float>(s.density[2][i]);
      const auto distance = [&](const float(&d)[3]) { return fma(d[0], r, fma(d[1], g, fma(d[2], b, 0.0f))); };
      const float first = distance(mine.planes_.side[0]), second = distance(mine.planes_.side[1]);
      const bool out = (first > mine.planes_.least[0]) & (second > mine.planes_.least[1]);
      rest[i] = static_cast<std::uint8_t>(wanted[i] & static_cast<std::int16_t>(!out));
    }
  }

private:
  stain_unmixing unmixing_;
  stain_planes planes_;
  int wanted_;  // the channel whose lowest bits select pixels
  bool penalized_;
};

// Appends the indices where rest is 1 to a list that has room for 4 more. There is no branch for each: their positions
// are hard to predict.
inline void append_positions(const std::uint8_t (&rest)[stain_strip], std::int32_t first, std::int32_t* list,
                             std::int32_t& count) {
  for (int block = 0; block < stain_strip; block += 64) {
    std::uint64_t any = 0;
    for (int k = 0; k < 64; k += 8) {
      std::uint64_t eight = 0;
      std::memcpy(&eight, rest + block + k, 8);
      any |= (eight * 0x0102040810204080u) >> 56 << k;  // a bit for each byte
    }
    const int n = std::popcount(any);
    for (int done = 0; done < n; done += 4)
      for (int k = 0; k < 4; ++k, any &= any - 1) list[count + done + k] = first + block + std::countr_zero(any);
    count += n;
  }
}

}  // namespace suture::detail
