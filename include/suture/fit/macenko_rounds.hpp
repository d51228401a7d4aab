// SPDX-License-Identifier: Apache-2.0
// The rounds of a Macenko fit, for host and device: the counts of pixels, and their evaluation. All counts are
// integers, so the bits do not depend on the division of the pixels.
#pragma once

#include "../math/symmetric_eigen.hpp"
#include "../math/trigonometric.hpp"
#include "../stats/stain_basis.hpp"

namespace suture {

// Rule by which pixels count as stained.
enum class stained_rule : std::int32_t {
  all_at_least,          // every optical density at least `least_density`
  all_above,             // every one above
  any_above,             // at least one above
  luminosity,            // 8-bit L of CIE Lab below 255 times `luminosity`, as OpenCV rounds it
  stretched_luminosity,  // that of the image with its 2nd to 98th percentile, over all channels, stretched to 0..255
};

// The percentile q of n sorted values x[0] .. x[n - 1] lies at index
enum class percentile_rule : std::int32_t {
  linear,   // q (n - 1) / 100, interpolated (numpy.percentile)
  nearest,  // q (n - 1) / 100 rounded half to even (torchstain's PyTorch backend)
  hazen,    // q n / 100 - 1/2 within 0 .. n - 1, interpolated (MATLAB prctile)
};

// Result for a tile that cannot be fitted.
enum class stain_fallback : std::int32_t {
  unchanged,  // the tile is left unchanged
  given,      // `fallback_stains` are used: a group's, or the reference
};

// The Macenko fit: the two stains of H&E tiles. Optical densities of the stained pixels; the plane of the two largest
// eigenvectors of their covariance; in it, the directions at the percentiles `alpha` and 100 - `alpha` of the angle;
// hematoxylin is the one with more red. Then the concentrations of both stains by least squares and of each the
// percentile `concentration_percentile`. Images have the channels red, green, blue, of uint8, half, bfloat16 or float.
//   density                   intensity to optical density
//   stained                   the rule for stained pixels, with `least_density` or `luminosity`
//   centered                  false: eigenvectors of the second moments about 0
//   alpha                     percent, 0 <= alpha < 50
//   concentrations_of_all     percentiles of concentrations over all pixels; otherwise over the stained ones, which
//                             does not depend on how much glass a tile shows
//   penalty                   of the non-negative lasso for concentrations; 0: least squares
//   least_pixels, least_share stained pixels a tile needs, and their share of all; at least two
//   single_stain_ratio, _angle below which second eigenvalue / first, or degrees between the two vectors, is one stain
//   refinements, sparsity     alternations of the factorization of Vahadane et al. 2016 that follow, if any: from the
//                             vectors found, the minimum over stains W >= 0 of unit length and concentrations c >= 0 of
//                             the sum over stained pixels of |W c - od|^2 / 2 + sparsity (c_H + c_E)
//   together                  one result for all images: a slide, a scanner
//   full_scale                the value of the image that means 255
// Errors: parameters out of their ranges, images without three channels or of another type, `together` with
// stretched_luminosity, fallback stains that cannot be inverted; those of the views.
// Source: Macenko et al. 2009, Vahadane et al. 2016; torchstain, whose numbers are the defaults but for the percentiles
// over stained pixels.
struct fit_macenko {
  optical_density density{};
  stained_rule stained = stained_rule::all_at_least;
  float least_density = .15f;
  double luminosity = .8;
  bool centered = true;
  percentile_rule percentile = percentile_rule::linear;
  double alpha = 1;
  double concentration_percentile = 99;
  bool concentrations_of_all = false;
  double penalty = 0;
  std::int32_t refinements = 0;
  double sparsity = .1;
  std::uint64_t least_pixels = 100;
  double least_share = .01;
  double single_stain_ratio = 1e-6;
  double single_stain_angle = 1;
  stain_fallback fallback = stain_fallback::unchanged;
  stain_reference fallback_stains{};
  bool together = false;
  float full_scale = 255;

  static constexpr std::string_view name = "fit_macenko";
  using result = stain_basis;

  bool operator==(const fit_macenko&) const = default;

  void check() const {
    const site where{name};
    density.check(where);
    require(least_density >= -32 && least_density <= 32, where, "least_density ", least_density,
            " is not in [-32, 32]");
    require(luminosity > 0 && luminosity <= 1.01, where, "luminosity ", luminosity, " is not in (0, 1.01]");
    require(alpha >= 0 && alpha < 50, where, "alpha ", alpha, " must be in [0, 50)");
    require(concentration_percentile >= 0 && concentration_percentile <= 100, where, "concentration_percentile ",
            concentration_percentile, " must be in [0, 100]");
    require(penalty >= 0 && penalty <= 1, where, "penalty ", penalty, " must be in [0, 1]");
    require(refinements >= 0 && refinements <= 1000, where, "refinements ", refinements, " must be in 0..1000");
    require(sparsity > 0 && sparsity <= 1, where, "sparsity ", sparsity, " must be in (0, 1]");
    require(least_share >= 0 && least_share <= 1, where, "least_share ", least_share, " must be in [0, 1]");
    require(single_stain_ratio >= 0 && single_stain_ratio < 1, where, "single_stain_ratio ", single_stain_ratio,
            " must be in [0, 1)");
    require(single_stain_angle >= .1 && single_stain_angle < 90, where, "single_stain_angle ", single_stain_angle,
            " must be in [0.1, 90) degrees");
    require(full_scale > 0 && full_scale <= 1e6f, where, "full_scale ", full_scale, " must be in (0, 1e6]");
    require(!together || stained != stained_rule::stretched_luminosity, where,
            "stretched_luminosity stretches every image by itself: it does not go with `together`");
    fallback_stains.check(where);
  }
};

// Totals of the round of sums: densities in units of 2^-20, their products rr rg rb gg gb bb in units of 2^-40 as
// 2^32 high + low. Of a refinement: the products of concentrations HH HE EE, then of densities and concentrations.
struct macenko_totals {
  std::uint64_t stained = 0, pixels = 0, excluded = 0, undeclared = 0;
  std::int64_t sum[3] = {};
  std::int64_t low[9] = {}, high[9] = {};

  void add_products(const std::int64_t* products, int count) {
    for (int k = 0; k < count; ++k) {
      low[k] += products[k] & 0xffffffff;
      high[k] += products[k] >> 32;
    }
  }
  void add(const macenko_totals& other) {
    const auto* from = reinterpret_cast<const std::uint64_t*>(&other);
    auto* to = reinterpret_cast<std::uint64_t*>(this);
    for (std::size_t i = 0; i < sizeof(macenko_totals) / 8; ++i) to[i] += from[i];
  }
};

// Everything a round counts: 64-bit integers alone. The counts of parts add up, in any order and on any machine.
struct macenko_counts {
  static constexpr int bins = 8192;
  macenko_totals totals{};
  std::uint64_t bin[bins] = {};

  void add(const macenko_counts& other) {
    totals.add(other.totals);
    for (int i = 0; i < bins; ++i) bin[i] += other.bin[i];
  }
};

namespace detail {

// The rounds of a fit. Keys of angles and of concentrations have 23 bits. A coarse round counts keys by their upper 12
// bits; a fine one counts, by their lower 11, the keys that share the upper bits with the key at a wanted rank.
enum macenko_round : std::int32_t {
  stretch_round,
  sums_round,
  coarse_angles,
  fine_angles,
  refinement,
  coarse_concentrations,
  fine_concentrations,
  no_round
};

// fit_macenko with constants that the host computes once.
struct macenko_rules {
  fit_macenko fit;
  density_map density;
  std::int32_t luminance_limit;
  float to_255, from_255;
  double most_density;   // greatest absolute density of intensities in 0 .. 255
  double single_cosine;  // of single_stain_angle
  stain_unmixing fallback_unmixing;

  SUTURE_HD bool by_light() const { return fit.stained >= stained_rule::luminosity; }
  // Densities in units of 2^-20 are below 2^23.
  SUTURE_HD bool fits_rounded() const { return most_density < 7.99; }
  SUTURE_HD bool passes_threshold(float od) const {
    return fit.stained == stained_rule::all_at_least ? od >= fit.least_density : od > fit.least_density;
  }
};

inline macenko_rules rules_of(const fit_macenko& settings) {
  settings.check();
  macenko_rules rules{settings,
                      map_of(settings.density),
                      settings.stained >= stained_rule::luminosity ? luminance_limit(settings.luminosity) : 0,
                      math::detail::divide(255.0f, settings.full_scale),
                      math::detail::divide(settings.full_scale, 255.0f),
                      0,
                      math::cos(settings.single_stain_angle * 0.017453292519943295),
                      unmix(settings.fallback_stains.stains, settings.penalty)};
  for (const float end : {0.0f, 255.0f}) {
    const double od = static_cast<double>(rules.density.density(end));
    rules.most_density = std::max(rules.most_density, od < 0 ? -od : od);
  }
  return rules;
}

inline constexpr int coarse_bins = 4096, fine_bins = 2048;
inline constexpr std::uint32_t macenko_keys = 1u << 23;

SUTURE_FN std::int32_t fixed_density(float od) { return nearest_int32(fma(od, 0x1p20f, 0.0f)); }

// The key of x * scale, |x scale| <= 2^22: the last bits of a float in [2^23, 2^24).
SUTURE_FN float shifted_key(float x, float scale) { return fma(x, scale, 0x1.8p23f); }
SUTURE_FN std::uint32_t macenko_key(float x, float scale) {
  const std::uint32_t key = float_bits(shifted_key(x, scale)) - 0x4b000000u;  // 2^22 added
  return key < macenko_keys ? key : macenko_keys - 1;
}
SUTURE_FN float key_as_float(std::uint32_t key) { return float_from_bits(key + 0x4b000000u); }

// An angle in the plane as a number in [-2, 2] that grows with it, from -pi to pi, without a trigonometric function.
SUTURE_FN float pseudo_angle(float x, float y) {
  const float ax = float_from_bits(float_bits(x) & 0x7fffffffu), ay = float_from_bits(float_bits(y) & 0x7fffffffu);
  const float sum = ax + ay;
  const float ratio = math::detail::divide(y, math::detail::select(sum > 0, sum, 1.0f));
  const float behind = math::detail::select(y >= 0, 2.0f, -2.0f) - ratio;
  return math::detail::select(x >= 0, ratio, behind);
}
// Returns the direction whose pseudo angle has this key.
SUTURE_HD inline void direction_of_key(std::uint32_t key, float& x, float& y) {
  const float t = fma(key_as_float(key) - 0x1.8p23f, 0x1p-21f, 0.0f);
  const bool behind = t > 1 || t < -1;
  y = !behind ? t : t > 0 ? 2 - t : -2 - t;
  x = 1 - (y < 0 ? -y : y);
  if (behind) x = -x;
}
SUTURE_HD inline double angle_of_pseudo(double t) {
  const double magnitude = t < 0 ? -t : t;
  const double y = magnitude <= 1 ? magnitude : 2 - magnitude;
  return static_cast<double>(math::atan2(static_cast<float>(t < 0 ? -y : y), static_cast<float>(1 - magnitude)));
}

SUTURE_HD inline percentile_place locate_percentile(percentile_rule rule, double q, std::uint64_t count) {
  if (rule == percentile_rule::linear) return locate_percentile(q, count);
  const auto n = static_cast<double>(count);
  if (rule == percentile_rule::nearest) {
    const double h = rounded_product(rounded_product(.01, q), n - 1);
    const double rounded = (h + 0x1p52) - 0x1p52;
    return {static_cast<std::uint64_t>(rounded), 0};
  }
  const double h = math::detail::divide(rounded_product(q, n), 100.0) - 0.5;
  if (!(h > 0)) return {0, 0};
  const auto lower = static_cast<std::uint64_t>(h);
  if (lower >= count - 1) return {count - 1, 0};
  return {lower, h - static_cast<double>(lower)};
}

// State of a fit between its rounds, with the evaluation of the counts of each.
struct macenko_solver {
  std::int32_t round = sums_round;
  stain_status status = stain_status::ok;
  std::uint64_t unchanged = 0;  // wide, so that there is no padding
  fit_tally tally{};
  std::uint64_t pixels = 0;
  double stretch[2] = {0, 255};  // rule stretched_luminosity
  float plane[2][3] = {};        // first and second eigenvector
  double axes[2][3] = {};        // the same, in double
  stain_unmixing unmixing{};
  float scale = 1;  // of the keys of concentrations
  stain_matrix stains{};
  double max_concentration[2] = {};
  // Two ranks for each of two percentiles.
  std::uint64_t rank[4] = {};
  double fraction[2] = {};
  std::uint32_t prefix[4] = {};  // the key after the last round
  std::int32_t slot[4] = {};
  std::uint32_t slot_prefix[4] = {};
  std::int64_t refined = 0;
  bool operator==(const macenko_solver&) const = default;

  SUTURE_HD void start(const macenko_rules& rules) {
    *this = {};
    if (rules.fit.stained == stained_rule::stretched_luminosity) round = stretch_round;
  }

  SUTURE_FN std::uint32_t angle_key(float red, float green, float blue) const {
    const float x = fma(plane[0][0], red, fma(plane[0][1], green, fma(plane[0][2], blue, 0.0f)));
    const float y = fma(plane[1][0], red, fma(plane[1][1], green, fma(plane[1][2], blue, 0.0f)));
    return macenko_key(pseudo_angle(x, y), 0x1p21f);
  }
  // Returns the number of keys that a search orders.
  SUTURE_HD std::uint64_t searched(const macenko_rules& rules) const {
    return round >= coarse_concentrations && rules.fit.concentrations_of_all ? pixels : tally.count;
  }
  // The bin of a key in a fine round among the slots first .. first + n - 1, or -1.
  SUTURE_FN std::int32_t fine_bin(std::uint32_t key, int first, int n) const {
    std::int32_t bin = -1;
    for (int s = first; s < first + n; ++s)
      bin = key >> 11 == slot_prefix[s] ? s * fine_bins + static_cast<std::int32_t>(key & 2047u) : bin;
    return bin;
  }

  // Counters of the search for rank r: first .. first + n - 1.
  struct range {
    std::int32_t first, n;
  };
  SUTURE_HD range bins_of(int r) const {
    if (round == coarse_angles) return {0, coarse_bins};
    if (round == coarse_concentrations) return {r / 2 * coarse_bins, coarse_bins};
    return {slot[r] * fine_bins, fine_bins};
  }
  bool counts_bins() const { return round == stretch_round || searches(); }
  SUTURE_HD bool searches() const { return round >= coarse_angles && round < no_round && round != refinement; }
  SUTURE_HD void found(int r, std::uint32_t digit, std::uint64_t rest) {
    prefix[r] = prefix[r] << 11 | digit;  // 0 before a coarse round
    rank[r] = rest;
  }

  // ---- After each round ----

  // Evaluates the counts of the 256 levels over all channels: `stretch` becomes their 2nd and 98th percentile, or
  // minimum and maximum if those are equal.
  template <class Count>
  SUTURE_HD void conclude_levels(const Count* levels) {
    std::uint64_t count = 0;
    int least = 255, greatest = 0;
    for (int i = 0; i < 256; ++i) {
      count += levels[i];
      if (levels[i] == 0) continue;
      least = i < least ? i : least;
      greatest = i;
    }
    round = sums_round;
    if (count == 0) return;
    for (int k = 0; k < 2; ++k) {
      const percentile_place p = suture::detail::locate_percentile(k == 0 ? 2.0 : 98.0, count);
      const auto level = [&](std::uint64_t at) {
        int i = 0;
        while (at >= levels[i]) at -= levels[i++];
        return static_cast<double>(i);
      };
      stretch[k] =
          interpolate_percentile(level(p.lower), level(p.lower + 1 < count ? p.lower + 1 : p.lower), p.fraction);
    }
    if (stretch[0] >= stretch[1]) {
      stretch[0] = least;
      stretch[1] = greatest;
    }
  }
  // Returns a level after the stretch, as numpy.uint8 truncates it.
  SUTURE_HD double stretched(std::int32_t level) const {
    if (!(stretch[1] > stretch[0])) return level;
    const double x = level < stretch[0] ? stretch[0] : level > stretch[1] ? stretch[1] : level;
    const double share = math::detail::divide(x - stretch[0], stretch[1] - stretch[0]);
    return static_cast<double>(static_cast<std::int32_t>(fma(share, 255.0, 0.0)));
  }
  SUTURE_FN bool stained(const macenko_rules& rules, float red, float green, float blue) const {
    const float least = rules.fit.least_density;
    switch (rules.fit.stained) {
      case stained_rule::all_at_least:
        return (red >= least) & (green >= least) & (blue >= least);
      case stained_rule::all_above:
        return (red > least) & (green > least) & (blue > least);
      default:
        return (red > least) | (green > least) | (blue > least);
    }
  }
  SUTURE_HD std::uint16_t light(const macenko_rules& rules, std::int32_t level) const {
    return linear_light(rules.fit.stained == stained_rule::stretched_luminosity ? stretched(level) : level);
  }

  // Uses the fallback because no fit is possible. Concentrations in its vectors would tell how much of each stain the
  // tile shows, but the percentile of an absent stain is noise, by which no color must be scaled.
  SUTURE_HD void fall_back(const macenko_rules& rules, stain_status why) {
    status = why;
    unchanged = rules.fit.fallback == stain_fallback::unchanged ? 1 : 0;
    use(rules.fit.fallback_stains, rules.fallback_unmixing);
    round = no_round;
  }
  // Uses the given stains, whatever the pixels show.
  SUTURE_HD void use(const stain_reference& given, const stain_unmixing& unmixing_of_given) {
    stains = given.stains;
    unmixing = unmixing_of_given;
    for (int k = 0; k < 2; ++k) max_concentration[k] = given.max_concentration[k];
  }

  SUTURE_HD void conclude_sums(const macenko_rules& rules, const macenko_totals& c) {
    tally = {c.stained, c.excluded, c.undeclared};
    pixels = c.pixels;
    const auto share = fma(rules.fit.least_share, static_cast<double>(pixels), 0.0);
    const std::uint64_t least = rules.fit.least_pixels > 2 ? rules.fit.least_pixels : 2;
    if (tally.count < least || static_cast<double>(tally.count) < share) {
      fall_back(rules, stain_status::too_little_tissue);
      return;
    }
    const auto n = static_cast<int128>(tally.count);
    const auto count = static_cast<double>(tally.count);
    matrix3 a;
    for (int i = 0, k = 0; i < 3; ++i)
      for (int j = i; j < 3; ++j, ++k) {
        int128 product = whole(c, k);
        if (rules.fit.centered) product = n * product - static_cast<int128>(c.sum[i]) * c.sum[j];
        const double exact = to_double(product) * 0x1p-40;
        a[i][j] = math::detail::divide(rules.fit.centered ? math::detail::divide(exact, count) : exact, count - 1);
      }
    const math::symmetric_eigen e = math::eigen_of_symmetric(a);
    if (!(e.values[1] > fma(rules.fit.single_stain_ratio, e.values[0], 0.0))) {
      fall_back(rules, stain_status::single_stain);
      return;
    }
    // The first vector points towards the mean. The sign of the second does not matter.
    double towards = 0;
    for (int i = 0; i < 3; ++i) towards = fma(e.vectors[i][0], static_cast<double>(c.sum[i]), towards);
    for (int k = 0; k < 2; ++k)
      for (int i = 0; i < 3; ++i) {
        axes[k][i] = k == 0 && towards < 0 ? -e.vectors[i][k] : e.vectors[i][k];
        plane[k][i] = static_cast<float>(axes[k][i]);
      }
    set_ranks(rules, rules.fit.alpha, 100 - rules.fit.alpha, tally.count);
    round = coarse_angles;
  }

  // Does one pass of block coordinate descent over the stains, for the concentrations of the pixels.
  SUTURE_HD void conclude_refinement(const macenko_rules& rules, const macenko_totals& c) {
    const double codes[2][2] = {{to_double(whole(c, 0)), to_double(whole(c, 1))},
                                {to_double(whole(c, 1)), to_double(whole(c, 2))}};
    for (int k = 0; k < 2; ++k) {
      if (!(codes[k][k] > 0)) continue;  // a stain without pixels stays unchanged
      const stain_matrix before = stains;
      for (int i = 0; i < 3; ++i) {
        const double mixed = fma(codes[k][0], stains[i][0], codes[k][1] * stains[i][1]);
        stains[i][k] += math::detail::divide(to_double(whole(c, 3 + 2 * i + k)) - mixed, codes[k][k]);
      }
      if (!make_unit(k)) stains = before;
    }
    double cosine = 0;
    for (int i = 0; i < 3; ++i) cosine = fma(stains[i][0], stains[i][1], cosine);
    if (!(cosine < rules.single_cosine)) {
      fall_back(rules, stain_status::single_stain);
      return;
    }
    if (++refined < rules.fit.refinements) {
      unmixing = unmix(stains, rules.fit.sparsity);
      return;
    }
    if (stains[0][0] < stains[0][1])
      for (int i = 0; i < 3; ++i) {
        const double h = stains[i][1];
        stains[i][1] = stains[i][0];
        stains[i][0] = h;
      }
    unmixing = unmix(stains, rules.fit.penalty);
    start_concentrations(rules);
  }

  SUTURE_HD void conclude_digits(const macenko_rules& rules) {
    if (round == coarse_angles || round == coarse_concentrations) {
      assign_slots();
      ++round;
    } else if (round == fine_angles) {
      conclude_angles(rules);
    } else {
      conclude_concentrations();
    }
  }

  // Ends a coarse round and the fine round after it, by the keys of all four ranks.
  void conclude_keys(const macenko_rules& rules, const std::uint32_t (&keys)[4]) {
    for (int k = 0; k < 4; ++k) prefix[k] = keys[k];
    ++round;
    conclude_digits(rules);
  }

  SUTURE_HD stain_basis finish(const macenko_rules& rules) const {
    stain_basis b;
    b.stains = stains;
    b.tally = tally;
    b.pixels = pixels;
    b.status = status;
    b.unchanged = static_cast<std::uint32_t>(unchanged);
    b.density = rules.density;
    b.unmixing = unmixing;
    b.to_255 = rules.to_255;
    b.from_255 = rules.from_255;
    for (int k = 0; k < 2; ++k) {
      b.max_concentration[k] = max_concentration[k];
      b.inverse_max[k] =
          max_concentration[k] > 1e-6 ? static_cast<float>(math::detail::divide(1.0, max_concentration[k])) : 0.0f;
    }
    return b;
  }

private:
  SUTURE_HD static int128 whole(const macenko_totals& c, int k) {
    return static_cast<int128>(c.high[k]) * (int128{1} << 32) + c.low[k];
  }

  SUTURE_HD void set_ranks(const macenko_rules& rules, double first, double second, std::uint64_t count) {
    for (int k = 0; k < 2; ++k) {
      const percentile_place p = locate_percentile(rules.fit.percentile, k == 0 ? first : second, count);
      rank[2 * k] = p.lower;
      rank[2 * k + 1] = p.lower + 1 < count ? p.lower + 1 : count - 1;
      fraction[k] = p.fraction;
      prefix[2 * k] = prefix[2 * k + 1] = 0;
    }
  }
  // Assigns a slot of the next fine round to each prefix that was found. All ranks of angles share slots;
  // concentrations of either stain have two of their own.
  SUTURE_HD void assign_slots() {
    const bool angles = round == coarse_angles;
    std::int32_t used = 0;
    for (int s = 0; s < 4; ++s) slot_prefix[s] = 0xffffffffu;
    for (int k = 0; k < 4; ++k) {
      if (!angles && k == 2) used = 2;
      int same = angles ? 0 : k & 2;
      while (same < k && prefix[same] != prefix[k]) ++same;
      slot[k] = same < k ? slot[same] : used++;
      slot_prefix[slot[k]] = prefix[k];
    }
  }
  // Computes the directions at the two percentiles, hematoxylin first.
  SUTURE_HD void conclude_angles(const macenko_rules& rules) {
    double v[2][3];
    for (int k = 0; k < 2; ++k) {
      const auto angle = [&](std::uint32_t key) {
        return angle_of_pseudo((static_cast<double>(key) - 0x1p22) * 0x1p-21);
      };
      const double phi = interpolate_percentile(angle(prefix[2 * k]), angle(prefix[2 * k + 1]), fraction[k]);
      const auto direction = math::sincos(phi);
      for (int i = 0; i < 3; ++i) v[k][i] = fma(axes[0][i], direction.cosine, axes[1][i] * direction.sine);
    }
    double cosine = 0;
    for (int i = 0; i < 3; ++i) cosine = fma(v[0][i], v[1][i], cosine);
    if (!(cosine < rules.single_cosine)) {
      fall_back(rules, stain_status::single_stain);
      return;
    }
    const int h = v[0][0] > v[1][0] ? 0 : 1;
    for (int i = 0; i < 3; ++i) {
      stains[i][0] = v[h][i];
      stains[i][1] = v[1 - h][i];
    }
    if (rules.fit.refinements > 0) {
      for (int k = 0; k < 2; ++k) (void)make_unit(k);
      unmixing = unmix(stains, rules.fit.sparsity);
      round = refinement;
    } else {
      unmixing = unmix(stains, rules.fit.penalty);
      start_concentrations(rules);
    }
  }
  // Removes the negative parts of stain k and normalizes it; returns false, with no change, if nothing is left.
  SUTURE_HD bool make_unit(int k) {
    double squares = 0;
    for (int i = 0; i < 3; ++i) squares = stains[i][k] > 0 ? fma(stains[i][k], stains[i][k], squares) : squares;
    if (!(squares > 1e-12)) return false;
    const double length = math::sqrt(squares);
    for (int i = 0; i < 3; ++i) stains[i][k] = stains[i][k] > 0 ? math::detail::divide(stains[i][k], length) : 0.0;
    return true;
  }
  SUTURE_HD void start_concentrations(const macenko_rules& rules) {
    // A power of two that brings every concentration within 2^22.
    double most = 1e-30;
    for (int k = 0; k < 2; ++k) {
      double least_squares = 0, alone = 0;
      const auto add = [&](double& sum, float x) {
        sum = fma(rules.most_density, static_cast<double>(x < 0 ? -x : x), sum);
      };
      for (int i = 0; i < 3; ++i) {
        add(least_squares, unmixing.row[k][i]);
        add(alone, unmixing.alone[k][i]);
      }
      for (const double bound :
           {least_squares + (unmixing.offset[k] < 0 ? -unmixing.offset[k] : unmixing.offset[k]), alone})
        most = bound > most ? bound : most;
    }
    const auto exponent = static_cast<int>(bit_cast<std::uint64_t>(most) >> 52) - 1022;  // most < 2^exponent
    scale = static_cast<float>(power_of_two(21 - exponent));
    round = coarse_concentrations;
    set_ranks(rules, rules.fit.concentration_percentile, rules.fit.concentration_percentile, searched(rules));
  }
  SUTURE_HD void conclude_concentrations() {
    for (int k = 0; k < 2; ++k) {
      const double inverse = math::detail::divide(1.0, static_cast<double>(scale));
      const auto value = [&](std::uint32_t key) { return fma(static_cast<double>(key) - 0x1p22, inverse, 0.0); };
      max_concentration[k] = interpolate_percentile(value(prefix[2 * k]), value(prefix[2 * k + 1]), fraction[k]);
      if (!(max_concentration[k] > 1e-6) && status == stain_status::ok) status = stain_status::ill_conditioned;
    }
    round = no_round;
  }
};

}  // namespace detail

// The basis that a fit with these vectors and maxima would return, so that a stored result serves as the `fitted` of
// operations with the same bits. `settings` is the original fit: its optical density, penalty and full scale are used.
// Status ok; tally and pixels, which a reference does not hold, are 0. Errors: those of the reference and of the fit.
inline stain_basis basis_of(const stain_reference& stains, const fit_macenko& settings = {}) {
  stains.check({"basis_of"});
  const detail::macenko_rules rules = detail::rules_of(settings);
  detail::macenko_solver solver;
  solver.use(stains, detail::unmix(stains.stains, settings.penalty));
  return solver.finish(rules);
}

}  // namespace suture
