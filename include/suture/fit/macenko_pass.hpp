// SPDX-License-Identifier: Apache-2.0
// One thread's pass over pixels for a Macenko fit on the CPU, in strips, with the counts of a round. Loops run over
// whole strips of a fixed number of pixels, and each does one thing, so that compilers vectorize them.
#pragma once

#include <algorithm>
#include <vector>

#include "../exec/common/uint8_lookup.hpp"
#include "percentile_window.hpp"
#include "selection.hpp"

namespace suture::detail {

// Tables of the levels of 8-bit images: optical densities; twice the same in fixed point, plus 1 where it passes the
// threshold of the rule for stained pixels; linear light.
struct stain_tables {
  float density[256];
  std::int32_t marked[256];
  std::uint16_t light[256];

  void make(const macenko_rules& r, const macenko_solver& s) {
    for (int i = 0; i < 256; ++i) {
      density[i] = r.density.density(static_cast<float>(i));
      marked[i] = 2 * fixed_density(density[i]) + (r.passes_threshold(density[i]) ? 1 : 0);
      light[i] = r.by_light() ? s.light(r, i) : std::uint16_t{0};
    }
  }
};

// Sums of products of densities below 2^23, over strips: a lane takes 128 of them, below 2^46, which add up in a double
// without rounding.
struct products_in_lanes {
  static constexpr int width = 8, most_strips = 8;
  static_assert(stain_strip / width * most_strips <= 128);
  double sum[6][width] = {};
  int strips = 0;

  void add(const std::int32_t (&fixed)[3][stain_strip]) {
    for (int i = 0; i < stain_strip; i += width)
      for (int l = 0; l < width; ++l) {
        const auto r = static_cast<double>(fixed[0][i + l]), g = static_cast<double>(fixed[1][i + l]),
                   b = static_cast<double>(fixed[2][i + l]);
        sum[0][l] = fma(r, r, sum[0][l]);
        sum[1][l] = fma(r, g, sum[1][l]);
        sum[2][l] = fma(r, b, sum[2][l]);
        sum[3][l] = fma(g, g, sum[3][l]);
        sum[4][l] = fma(g, b, sum[4][l]);
        sum[5][l] = fma(b, b, sum[5][l]);
      }
    ++strips;
  }
  void add_to(macenko_totals& to) {
    std::int64_t products[6] = {};
    for (int k = 0; k < 6; ++k)
      for (int l = 0; l < width; ++l) products[k] += static_cast<std::int64_t>(sum[k][l]);
    to.add_products(products, 6);
    *this = {};
  }
};

// The keys of a round: of angles, or of the concentrations of both stains.
template <class T>
struct macenko_keys_of {
  const macenko_rules& rules;
  const macenko_solver& solver;
  const stain_tables& tables;

  bool angles() const { return solver.round <= fine_angles; }

  // The optical densities of a pixel.
  void density(const T* at, std::int64_t channel_stride, float (&to)[3][stain_strip], int i) const {
    for (int c = 0; c < 3; ++c) {
      const T value = at[c * channel_stride];
      if constexpr (std::is_same_v<T, std::uint8_t>)
        to[c][i] = tables.density[value];
      else
        to[c][i] = rules.density.density(fma(storage<T>::load(value), rules.to_255, 0.0f));
    }
  }

  void operator()(const float (&density)[3][stain_strip], std::uint32_t (&key)[2][stain_strip]) const {
    if (angles()) {
      const macenko_solver s = solver;  // a copy, which stores to keys cannot change
      for (int i = 0; i < stain_strip; ++i) key[0][i] = s.angle_key(density[0][i], density[1][i], density[2][i]);
    } else if (solver.unmixing.penalized == 0) {
      of_concentrations<false>(density, key);
    } else {
      of_concentrations<true>(density, key);
    }
  }

private:
  template <bool Penalized>
  void of_concentrations(const float (&density)[3][stain_strip], std::uint32_t (&key)[2][stain_strip]) const {
    const stain_unmixing unmixing = solver.unmixing;
    const float scale = solver.scale;
    for (int i = 0; i < stain_strip; ++i) {
      const auto p = unmixing.mixture<Penalized>(density[0][i], density[1][i], density[2][i]);
      for (int k = 0; k < 2; ++k) key[k][i] = macenko_key(p.c[k], scale);
    }
  }
};

template <class T>
struct macenko_pass {
  static constexpr int width = stain_strip;
  static constexpr bool is_bytes = std::is_same_v<T, std::uint8_t>;
  static constexpr std::uint32_t all_ones = 0xffffffffu;

  const macenko_rules& rules;
  const macenko_solver& solver;
  const stain_tables& tables;
  macenko_totals totals{};
  products_in_lanes lanes;
  std::vector<std::uint64_t> bin;

  macenko_pass(const macenko_rules& r, const macenko_solver& s, const stain_tables& t)
      : rules(r), solver(s), tables(t) {
    if (solver.counts_bins()) bin.resize(macenko_counts::bins);
  }

  // `kept`, if given, receives the rounded densities of the pixels in the round of sums.
  template <class Map, class Selector>
  void row(const T* values, std::int64_t channel_stride, std::int64_t stride, const Map* map, std::int64_t map_stride,
           std::int64_t count, const Selector& select, rounded_strip* kept = nullptr) {
    for (std::int64_t x = 0; x < count; x += width) {
      const auto n = static_cast<int>(std::min<std::int64_t>(width, count - x));
      if constexpr (std::is_same_v<Selector, everything::selector>) {
        std::fill_n(selected, n, all_ones);
      } else {
        for (int i = 0; i < n; ++i) {
          const verdict v = select(std::uint8_t{0}, map[(x + i) * map_stride]);
          selected[i] = v == verdict::selected ? all_ones : 0u;
          if (solver.round == sums_round) totals.undeclared += v == verdict::undeclared ? 1 : 0;
        }
      }
      std::fill(selected + n, selected + width, 0u);
      load(values + x * stride, channel_stride, stride, n);
      if (solver.round == stretch_round) {
        count_levels();
        continue;
      }
      if (wanted() == stained) find_stained();
      if (solver.round == sums_round) {
        sum();
        if (kept != nullptr) keep(kept[x / width]);
      } else if (solver.round == refinement) {
        sum_refinement();
      } else {
        count_keys();
      }
    }
  }

  void add_to(macenko_counts& to) {
    lanes.add_to(totals);
    to.totals.add(totals);
    for (std::size_t i = 0; i < bin.size(); ++i) to.bin[i] += bin[i];
  }

private:
  // A strip: optical densities, levels if a rule needs them, and masks of the selected pixels and of those that are
  // also stained.
  float density[3][width];
  std::int32_t marked[3][width];  // as in the tables
  std::uint8_t level[3][width];
  std::uint32_t selected[width], stained[width];

  void load(const T* from, std::int64_t channel_stride, std::int64_t stride, int n) {
    const bool levels = rules.by_light();
    if (levels)
      for (int c = 0; c < 3; ++c) std::fill(level[c] + n, level[c] + width, std::uint8_t{0});
    if constexpr (is_bytes) {
      if (levels)
        for (int c = 0; c < 3; ++c)
          for (int i = 0; i < n; ++i) level[c][i] = from[c * channel_stride + i * stride];
      if (solver.round == sums_round)
        look_up(tables.marked, marked, from, channel_stride, stride, n);
      else
        look_up(tables.density, density, from, channel_stride, stride, n);
    } else {
      for (int c = 0; c < 3; ++c) {
        float* to = density[c];
        for (int i = 0; i < n; ++i) to[i] = storage<T>::load(from[c * channel_stride + i * stride]);
        std::fill(to + n, to + width, 0.0f);
        find_intensities(to);
        if (levels)
          for (int i = 0; i < width; ++i) level[c][i] = storage<std::uint8_t>::store(to[i]);
        for (int i = 0; i < width; ++i) to[i] = rules.density.density(to[i]);
      }
    }
  }

  template <class V>
  static void look_up(const V (&table)[256], V (&to)[3][width], const T* from, std::int64_t channel_stride,
                      std::int64_t stride, int n) {
    detail::look_up(table, to, from, channel_stride, stride, n);
    for (auto& channel : to) std::fill(channel + n, channel + width, V{});
  }

  // Scales values to the intensities of 8-bit images. Those that are not finite become 0 and are excluded.
  void find_intensities(float* x) {
    std::uint32_t excluded = 0;
    for (int i = 0; i < width; ++i) x[i] = fma(x[i], rules.to_255, 0.0f);
    for (int i = 0; i < width; ++i) {
      const bool finite = (float_bits(x[i]) & 0x7f800000u) != 0x7f800000u;
      const std::uint32_t mask = 0u - static_cast<std::uint32_t>(finite);
      excluded -= selected[i] & ~mask;
      selected[i] &= mask;
      x[i] = float_from_bits(float_bits(x[i]) & mask);
    }
    if (solver.round == sums_round) totals.excluded += excluded;
  }

  void find_stained() {
    const float *r = density[0], *g = density[1], *b = density[2];
    const float least = rules.fit.least_density;
    const auto keep = [&](const auto& rule) {
      for (int i = 0; i < width; ++i) stained[i] = selected[i] & (0u - static_cast<std::uint32_t>(rule(i)));
    };
    // A loop for each rule, so that every one is vectorized.
    if (is_bytes && solver.round == sums_round && !rules.by_light()) {
      if (rules.fit.stained == stained_rule::any_above)
        return keep([&](int i) { return ((marked[0][i] | marked[1][i] | marked[2][i]) & 1) != 0; });
      return keep([&](int i) { return (marked[0][i] & marked[1][i] & marked[2][i] & 1) != 0; });
    }
    switch (rules.fit.stained) {
      case stained_rule::all_at_least:
        return keep([&](int i) { return (r[i] >= least) & (g[i] >= least) & (b[i] >= least); });
      case stained_rule::all_above:
        return keep([&](int i) { return (r[i] > least) & (g[i] > least) & (b[i] > least); });
      case stained_rule::any_above:
        return keep([&](int i) { return (r[i] > least) | (g[i] > least) | (b[i] > least); });
      default:
        return keep([&](int i) {
          return luminance(tables.light[level[0][i]], tables.light[level[1][i]], tables.light[level[2][i]]) <=
                 rules.luminance_limit;
        });
    }
  }

  void count_levels() {
    for (int c = 0; c < 3; ++c)
      for (int i = 0; i < width; ++i)
        if (selected[i] != 0) ++bin[level[c][i]];
  }

  void sum() {
    if constexpr (!is_bytes)
      for (int c = 0; c < 3; ++c)
        for (int i = 0; i < width; ++i) marked[c][i] = 2 * fixed_density(density[c][i]);
    if (!rules.fits_rounded()) return sum_wide();
    std::int32_t fixed[3][width];
    for (int c = 0; c < 3; ++c)
      for (int i = 0; i < width; ++i) fixed[c][i] = marked[c][i] >> 1 & static_cast<std::int32_t>(stained[i]);
    for (int c = 0; c < 3; ++c) {
      std::int32_t total = 0;  // below 2^30
      for (int i = 0; i < width; ++i) total += fixed[c][i];
      totals.sum[c] += total;
    }
    count_pixels();
    lanes.add(fixed);
    if (lanes.strips == lanes.most_strips) lanes.add_to(totals);
  }
  void count_pixels() {
    std::uint32_t pixels[2] = {};
    for (int i = 0; i < width; ++i) {
      pixels[0] -= selected[i];
      pixels[1] -= stained[i];
    }
    totals.pixels += pixels[0];
    totals.stained += pixels[1];
  }

  void sum_wide() {
    std::int64_t sums[3] = {}, products[6] = {};
    for (int i = 0; i < width; ++i) {
      const auto mask = static_cast<std::int32_t>(stained[i]);
      const std::int64_t r = marked[0][i] >> 1 & mask, g = marked[1][i] >> 1 & mask, b = marked[2][i] >> 1 & mask;
      sums[0] += r;
      sums[1] += g;
      sums[2] += b;
      products[0] += r * r;
      products[1] += r * g;
      products[2] += r * b;
      products[3] += g * g;
      products[4] += g * b;
      products[5] += b * b;
    }
    count_pixels();
    for (int k = 0; k < 3; ++k) totals.sum[k] += sums[k];
    totals.add_products(products, 6);
  }

  void keep(rounded_strip& to) const {
    for (int c = 0; c < 3; ++c)
      for (int i = 0; i < width; ++i) {
        const std::uint32_t flag = c == 0 ? selected[i] : stained[i];
        to.density[c][i] = static_cast<std::int16_t>((marked[c][i] >> 9 & ~1) | static_cast<std::int32_t>(flag & 1));
      }
  }

  void sum_refinement() {
    const float *r = density[0], *g = density[1], *b = density[2];
    std::int32_t code[2][width], fixed[3][width];
    const stain_unmixing unmixing = solver.unmixing;
    for (int i = 0; i < width; ++i) {
      const auto mask = static_cast<std::int32_t>(stained[i]);
      const stain_unmixing::pair p = unmixing.mixture<true>(r[i], g[i], b[i]);
      for (int k = 0; k < 2; ++k) code[k][i] = fixed_density(p.c[k]) & mask;
    }
    for (int c = 0; c < 3; ++c)
      for (int i = 0; i < width; ++i) fixed[c][i] = fixed_density(density[c][i]);
    std::int64_t products[9] = {};
    for (int i = 0; i < width; ++i) {
      const std::int64_t h = code[0][i], e = code[1][i];
      products[0] += h * h;
      products[1] += h * e;
      products[2] += e * e;
      for (int c = 0; c < 3; ++c) {
        products[3 + 2 * c] += fixed[c][i] * h;
        products[4 + 2 * c] += fixed[c][i] * e;
      }
    }
    totals.add_products(products, 9);
  }

  bool angles() const { return solver.round <= fine_angles; }
  const std::uint32_t* wanted() const {
    return solver.round >= coarse_concentrations && rules.fit.concentrations_of_all ? selected : stained;
  }

  void count_keys() {
    std::uint32_t key[2][width];
    macenko_keys_of<T>{rules, solver, tables}(density, key);
    const std::uint32_t* counts = wanted();
    for (int k = 0; k < (angles() ? 1 : 2); ++k) {
      if (solver.round == coarse_angles || solver.round == coarse_concentrations) {
        std::uint64_t* const to = bin.data() + k * coarse_bins;
        for (int i = 0; i < width; ++i)
          if (counts[i] != 0) ++to[key[k][i] >> 11];
      } else {
        const int first = angles() ? 0 : 2 * k, slots = angles() ? 4 : 2;
        for (int i = 0; i < width; ++i) {
          const std::int32_t where = solver.fine_bin(key[k][i], first, slots);
          if (counts[i] != 0 && where >= 0) ++bin[static_cast<std::size_t>(where)];
        }
      }
    }
  }
};

}  // namespace suture::detail
