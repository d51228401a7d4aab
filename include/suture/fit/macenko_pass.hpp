// SPDX-License-Identifier: Apache-2.0
// One thread's pass over pixels for a Macenko fit on the CPU: strips of them, and of each what a round counts. Loops
// run over whole strips, a fixed number of pixels, and each does one thing, so that compilers vectorise them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "macenko_rounds.hpp"
#include "selection.hpp"

namespace suture::detail {

// What the levels of 8-bit images become: optical densities; the same twice in fixed point, plus 1 where the rule for
// stained pixels calls it dense; linear light.
struct stain_tables {
  float density[256];
  std::int32_t marked[256];
  std::uint16_t light[256];

  void make(const macenko_rules& r, const macenko_solver& s) {
    for (int i = 0; i < 256; ++i) {
      density[i] = r.density.density(static_cast<float>(i));
      marked[i] = 2 * fixed_density(density[i]) + (r.dense(density[i]) ? 1 : 0);
      light[i] = r.by_light() ? s.light(r, i) : std::uint16_t{0};
    }
  }
};

// Where two neighbouring ranks are looked for: keys from low to high are kept, others are counted.
struct key_window {
  std::uint32_t low = 0, high = 0;
  std::uint64_t below = 0, above = 0;
  std::vector<std::uint32_t> inside;

  // By the coarse bins of a sample: where the rank among `count` keys should lie, give or take what chance may do.
  bool aim(const std::uint64_t* bin, std::uint64_t rank, std::uint64_t count) {
    std::uint64_t sampled = 0;
    for (int i = 0; i < coarse_bins; ++i) sampled += bin[i];
    if (sampled == 0) return false;
    const auto n = static_cast<double>(sampled);
    const double share = static_cast<double>(rank) / static_cast<double>(count);
    const double slack = fma(3.5, math::sqrt(n * share * (1 - share)), 3.0);
    const double most = fma(n, share, slack), least = fma(n, share, -slack);
    const std::uint64_t first = least > 0 ? static_cast<std::uint64_t>(least) : 0;
    const std::uint64_t last = most < n ? static_cast<std::uint64_t>(most) : sampled - 1;
    std::uint32_t i = 0;
    std::uint64_t before = 0;
    while (before + bin[i] <= first) before += bin[i++];
    low = first > 0 ? i << 11 : 0;
    while (before + bin[i] <= last) before += bin[i++];
    high = last + 1 < sampled ? (i << 11) + 2047 : macenko_keys - 1;
    return true;
  }
  template <int N>
  void take(const std::uint32_t (&key)[N], int n) {
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
  // The keys of a rank and of the same or the next one where `first` keys lie below; false if they are not inside.
  bool find(const std::uint64_t* rank, std::uint64_t first, std::uint32_t* key) {
    if (rank[0] < first || rank[1] - first >= inside.size()) return false;
    const auto at = inside.begin() + static_cast<std::ptrdiff_t>(rank[0] - first);
    std::nth_element(inside.begin(), at, inside.end());
    key[0] = *at;
    key[1] = rank[1] == rank[0] ? *at : *std::min_element(at + 1, inside.end());
    return true;
  }
};

// Pixels whose angles have keys between two: in front of both planes through the origin of optical densities. Keys and
// distances are rounded; the margin is a hundred times that, and what lies in it is not said to be between.
struct angle_wedge {
  float side[2][3] = {};
  float margin;

  angle_wedge(const macenko_rules& r, const macenko_solver& s, std::uint32_t first, std::uint32_t last)
      : margin(0x1p-14f * static_cast<float>(r.most_density)) {
    if (first >= last) return;
    float x[2], y[2];
    direction_of_key(first, x[0], y[0]);
    direction_of_key(last, x[1], y[1]);
    for (int c = 0; c < 3; ++c) {
      side[0][c] = fma(x[0], s.plane[1][c], -(y[0] * s.plane[0][c]));
      side[1][c] = fma(y[1], s.plane[0][c], -(x[1] * s.plane[1][c]));
    }
  }
  SUTURE_INLINE bool holds(float red, float green, float blue) const {
    bool between = true;
    for (const auto& d : side) between &= fma(d[0], red, fma(d[1], green, fma(d[2], blue, 0.0f))) > margin;
    return between;
  }
};

// As rows are passed in, a coarse round counts the keys of all pixels, or given windows keeps those inside.
template <class T>
struct macenko_pass {
  static constexpr int width = 128;
  static constexpr bool is_bytes = std::is_same_v<T, std::uint8_t>;
  static constexpr std::uint32_t all_ones = 0xffffffffu;

  const macenko_rules& rules;
  const macenko_solver& solver;
  const stain_tables& tables;
  const bool in_windows;
  key_window window[2];  // of the ranks 0 and 1, 2 and 3
  macenko_totals totals{};
  std::vector<std::uint32_t> bin;  // narrow counters stay in the first-level cache

  macenko_pass(const macenko_rules& r, const macenko_solver& s, const stain_tables& t, const key_window* windows)
      : rules(r), solver(s), tables(t), in_windows(windows != nullptr) {
    if (in_windows)
      std::copy_n(windows, 2, window);
    else if (solver.counts_bins())
      bin.resize(macenko_counts::bins);
  }

  template <class Map, class Selector>
  void row(const T* values, std::int64_t channel_stride, std::int64_t stride, const Map* map, std::int64_t map_stride,
           std::int64_t count, const Selector& select) {
    for (std::int64_t x = 0; x < count; x += width) {
      const auto n = static_cast<int>(std::min<std::int64_t>(width, count - x));
      if constexpr (std::is_same_v<Selector, everything::selector>) {
        std::fill_n(looked, n, all_ones);
      } else {
        for (int i = 0; i < n; ++i) {
          const verdict v = select(std::uint8_t{0}, map[(x + i) * map_stride]);
          looked[i] = v == verdict::selected ? all_ones : 0u;
          if (solver.round == sums_round) totals.undeclared += v == verdict::undeclared ? 1 : 0;
        }
      }
      std::fill(looked + n, looked + width, 0u);
      load(values + x * stride, channel_stride, stride, n);
      if ((counted += 3 * width) > 1u << 30) settle();
      if (solver.round == stretch_round) {
        count_levels();
        continue;
      }
      if (wanted() == stained) find_stained();
      if (solver.round == sums_round)
        sum();
      else if (solver.round == refinement)
        sum_refinement();
      else if (in_windows)
        sift();
      else
        count_keys();
    }
  }

  // Finds the keys that are still to be found; also at the end.
  void take_sifted() {
    std::uint32_t key[2][width];
    find_keys(sifted, key);
    for (int k = 0; k < 2; ++k) window[k].take(key[angles() ? 0 : k], held);
    held = 0;
  }

  void give(macenko_counts& to) {
    to.totals.add(totals);
    if (wide) to.add(*wide);
    for (std::size_t i = 0; i < bin.size(); ++i) to.bin[i] += bin[i];
  }

private:
  std::uint32_t counted = 0;             // the most that a counter can hold
  std::unique_ptr<macenko_counts> wide;  // what they held before it was too much

  void settle() {
    if (!wide) wide.reset(new macenko_counts);
    for (std::size_t i = 0; i < bin.size(); ++i) wide->bin[i] += bin[i];
    std::fill(bin.begin(), bin.end(), 0u);
    counted = 0;
  }

  // A strip: optical densities, levels where a rule needs them, and all ones where a pixel is looked at and where it is
  // stained.
  float density[3][width];
  std::int32_t marked[3][width];  // as in the tables
  std::uint8_t level[3][width];
  std::uint32_t looked[width], stained[width];
  // Of windows: the optical densities whose keys are still to be found.
  float sifted[3][width] = {};
  int held = 0;

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
    for (int c = 0; c < 3; ++c, from += channel_stride) {
      const T* at = from;
      int i = 0;
      for (; i + 4 <= n; i += 4, at += 4 * stride) {  // by fours, which one store writes
        const V four[4] = {table[at[0]], table[at[stride]], table[at[2 * stride]], table[at[3 * stride]]};
        std::memcpy(to[c] + i, four, sizeof(four));
      }
      for (; i < n; ++i, at += stride) to[c][i] = table[*at];
      std::fill(to[c] + n, to[c] + width, V{});
    }
  }

  // 0 where they are not finite.
  void find_intensities(float* x) {
    std::uint32_t excluded = 0;
    for (int i = 0; i < width; ++i) x[i] = fma(x[i], rules.to_255, 0.0f);
    for (int i = 0; i < width; ++i) {
      const bool finite = (float_bits(x[i]) & 0x7f800000u) != 0x7f800000u;
      const std::uint32_t mask = 0u - static_cast<std::uint32_t>(finite);
      excluded -= looked[i] & ~mask;
      looked[i] &= mask;
      x[i] = float_from_bits(float_bits(x[i]) & mask);
    }
    if (solver.round == sums_round) totals.excluded += excluded;
  }

  void find_stained() {
    const float *r = density[0], *g = density[1], *b = density[2];
    const float least = rules.how.least_density;
    const auto keep = [&](const auto& rule) {
      for (int i = 0; i < width; ++i) stained[i] = looked[i] & (0u - static_cast<std::uint32_t>(rule(i)));
    };
    // A loop for each rule, so that every one is vectorised.
    if (is_bytes && solver.round == sums_round && !rules.by_light()) {
      if (rules.how.stained == stained_rule::any_above)
        return keep([&](int i) { return ((marked[0][i] | marked[1][i] | marked[2][i]) & 1) != 0; });
      return keep([&](int i) { return (marked[0][i] & marked[1][i] & marked[2][i] & 1) != 0; });
    }
    switch (rules.how.stained) {
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
        if (looked[i] != 0) ++bin[level[c][i]];
  }

  void sum() {
    if constexpr (!is_bytes)
      for (int c = 0; c < 3; ++c)
        for (int i = 0; i < width; ++i) marked[c][i] = 2 * fixed_density(density[c][i]);
    std::int64_t sums[3] = {}, products[6] = {};
    std::uint32_t pixels[2] = {};
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
    for (int i = 0; i < width; ++i) {
      pixels[0] -= looked[i];
      pixels[1] -= stained[i];
    }
    totals.pixels += pixels[0];
    totals.stained += pixels[1];
    for (int k = 0; k < 3; ++k) totals.sum[k] += sums[k];
    add_products(products, 6);
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
    add_products(products, 9);
  }

  void add_products(const std::int64_t* products, int count) {
    for (int k = 0; k < count; ++k) {
      totals.low[k] += products[k] & 0xffffffff;
      totals.high[k] += products[k] >> 32;
    }
  }

  bool angles() const { return solver.round <= fine_angles; }
  const std::uint32_t* wanted() const {
    return solver.round >= coarse_concentrations && rules.how.concentrations_of_all ? looked : stained;
  }

  // Calls f(a concentrations functor) by which loops need not choose.
  template <class F>
  void with_mixture(const F& f) const {
    if (solver.unmixing.penalised == 0)
      f([](const stain_unmixing& u, float x, float y, float z) { return u.mixture<false>(x, y, z); });
    else
      f([](const stain_unmixing& u, float x, float y, float z) { return u.mixture<true>(x, y, z); });
  }

  // Keys of the angles, or of the concentrations of both stains.
  void find_keys(const float (&od)[3][width], std::uint32_t (&key)[2][width]) const {
    const float *r = od[0], *g = od[1], *b = od[2];
    const macenko_solver s = solver;  // a copy, which stores to keys cannot change
    if (angles())
      for (int i = 0; i < width; ++i) key[0][i] = s.angle_key(r[i], g[i], b[i]);
    else
      with_mixture([&](const auto& mixture) {
        for (int i = 0; i < width; ++i) {
          const stain_unmixing::pair p = mixture(s.unmixing, r[i], g[i], b[i]);
          key[0][i] = macenko_key(p.c[0], s.scale);
          key[1][i] = macenko_key(p.c[1], s.scale);
        }
      });
  }

  void count_keys() {
    std::uint32_t key[2][width];
    find_keys(density, key);
    const std::uint32_t* counts = wanted();
    for (int k = 0; k < (angles() ? 1 : 2); ++k) {
      if (solver.round == coarse_angles || solver.round == coarse_concentrations) {
        std::uint32_t* const to = bin.data() + k * coarse_bins;
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

  // Most angles lie between the windows and most concentrations below both. A few operations find such pixels, and only
  // for the others are keys worked out.
  void sift() {
    const float *r = density[0], *g = density[1], *b = density[2];
    const std::uint32_t* counts = wanted();
    std::uint8_t rest[width];
    if (angles()) {
      const angle_wedge between(rules, solver, window[0].high, window[1].low);
      for (int i = 0; i < width; ++i) rest[i] = (counts[i] != 0) & !between.holds(r[i], g[i], b[i]);
    } else {
      with_mixture([&](const auto& mixture) {
        const stain_unmixing unmixing = solver.unmixing;
        const float scale = solver.scale;
        const float first = key_as_float(window[0].low), second = key_as_float(window[1].low);
        for (int i = 0; i < width; ++i) {
          const stain_unmixing::pair p = mixture(unmixing, r[i], g[i], b[i]);
          const float h = shifted_key(p.c[0], scale), e = shifted_key(p.c[1], scale);
          rest[i] = (counts[i] != 0) & ((h >= first) | (e >= second));
        }
      });
    }
    for (int block = 0; block < width; block += 8) {
      std::uint64_t any = 0;
      std::memcpy(&any, rest + block, 8);
      for (; any != 0; any &= any - 1) {
        const int i = block + std::countr_zero(any) / 8;
        for (int c = 0; c < 3; ++c) sifted[c][held] = density[c][i];
        if (++held == width) take_sifted();
      }
    }
  }
};

}  // namespace suture::detail
