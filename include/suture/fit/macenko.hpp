// SPDX-License-Identifier: Apache-2.0
// The Macenko stain fit on the CPU: of a tile, of many tiles together, or in parts that merge.
#pragma once

#include <memory>
#include <vector>

#include "macenko_rounds.hpp"
#include "moments.hpp"

namespace suture {

namespace detail {

// Element types of images that show stains.
template <class T>
inline constexpr bool is_stain_image = std::is_same_v<T, std::uint8_t> || std::is_same_v<T, float> ||
                                       std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

template <class T, class Selection>
void check_stain_image(std::string_view name, const view<const T>& image, const Selection& selection,
                       std::size_t sample) {
  static_assert(is_storage_v<T>, "suture: unsupported element type of an image");
  const site where{name, static_cast<std::int64_t>(sample)};
  require(is_stain_image<T>, where, storage_name<T>(),
          " image: stains are fitted to uint8 or float; convert 16-bit images");
  check_sample(name, image, selection, sample);
  require(image.channels == 3, where, image.channels, " channels; red, green and blue are needed",
          image.channels == 4 ? " (a view may leave alpha out: channels = 3 with the strides of RGBA)" : "");
}

template <class T, class Selection>
void check_stain_images(std::string_view name, std::span<const view<const T>> images, const Selection& selection) {
  if constexpr (Selection::has_map)
    require(selection.samples() == images.size(), {name}, selection.samples(), " masks or label maps for ",
            images.size(), " images");
  std::int64_t pixels = 0;
  for (std::size_t i = 0; i < images.size(); ++i) {
    check_stain_image(name, images[i], selection, i);
    pixels += images[i].grid.voxels();
    require(pixels <= std::int64_t{1} << 38, {name, static_cast<std::int64_t>(i)}, "more than 2^38 pixels in all");
  }
}

// What the levels of 8-bit images become.
struct stain_tables {
  float density[256];
  std::int32_t fixed[256];
  std::uint16_t light[256];

  void make(const macenko_rules& r, const macenko_solver& s) {
    for (int i = 0; i < 256; ++i) {
      density[i] = r.density.density(static_cast<float>(i));
      fixed[i] = fixed_density(density[i]);
      light[i] = s.light(r, i);
    }
  }
};

// A strip of pixels: optical densities, and all ones where a pixel is finite and where it is stained.
struct stain_strip {
  static constexpr int capacity = 256;
  float density[3][capacity];
  std::int32_t fixed[3][capacity];
  std::uint8_t level[3][capacity];
  std::uint32_t looked[capacity], stained[capacity];
};

// One thread's part of a round.
template <class T>
struct macenko_pass {
  const macenko_rules& rules;
  const macenko_solver& solver;
  const stain_tables& tables;
  std::uint32_t* keys[2] = {};  // where a coarse round leaves the keys of the next row, for the fine one; or null
  macenko_counts counts{};
  std::uint32_t near[macenko_counts::bins] = {};  // narrow counters stay in the first-level cache
  std::uint32_t near_pixels = 0;
  stain_strip strip;

  macenko_pass(const macenko_rules& r, const macenko_solver& s, const stain_tables& t)
      : rules(r), solver(s), tables(t) {}

  template <class Map, class Selector>
  void row(const T* values, std::int64_t channel_stride, std::int64_t stride, const Map* map, std::int64_t map_stride,
           std::int64_t count, const Selector& select) {
    for (std::int64_t x = 0; x < count; x += stain_strip::capacity) {
      const auto n = static_cast<int>(std::min<std::int64_t>(stain_strip::capacity, count - x));
      if constexpr (std::is_same_v<Selector, everything::selector>) {
        std::fill_n(strip.looked, n, 0xffffffffu);
      } else {
        for (int i = 0; i < n; ++i) {
          const verdict v = select(std::uint8_t{0}, map[(x + i) * map_stride]);
          strip.looked[i] = v == verdict::selected ? 0xffffffffu : 0u;
          if (solver.round == sums_round) counts.totals.undeclared += v == verdict::undeclared ? 1 : 0;
        }
      }
      load(values + x * stride, channel_stride, stride, n);
      if (solver.round == stretch_round) {
        levels(n);
        continue;
      }
      find_stained(n);
      if (solver.round == sums_round)
        sum(n);
      else if (solver.round == refinement)
        sum_refinement(n);
      else
        count_keys(n);
    }
  }

  // Everything counted is in `counts`.
  void settle() {
    for (int i = 0; i < macenko_counts::bins; ++i) counts.bin[i] += near[i];
    std::fill(std::begin(near), std::end(near), 0u);
    near_pixels = 0;
  }

private:
  static constexpr bool is_bytes = std::is_same_v<T, std::uint8_t>;

  bool needs_levels() const { return rules.how.stained >= stained_rule::luminosity; }

  void load(const T* values, std::int64_t channel_stride, std::int64_t stride, int n) {
    for (int c = 0; c < 3; ++c) {
      const T* from = values + c * channel_stride;
      float* density = strip.density[c];
      if constexpr (is_bytes) {
        for (int i = 0; i < n; ++i) density[i] = tables.density[from[i * stride]];
        if (solver.round == sums_round)
          for (int i = 0; i < n; ++i) strip.fixed[c][i] = tables.fixed[from[i * stride]];
        if (needs_levels())
          for (int i = 0; i < n; ++i) strip.level[c][i] = from[i * stride];
      } else {
        for (int i = 0; i < n; ++i) density[i] = fma(storage<T>::load(from[i * stride]), rules.to_255, 0.0f);
        for (int i = 0; i < n; ++i) {
          const bool finite = (float_bits(density[i]) & 0x7f800000u) != 0x7f800000u;
          if (!finite && strip.looked[i] != 0) {
            strip.looked[i] = 0;
            if (solver.round == sums_round) ++counts.totals.excluded;
          }
          if (!finite) density[i] = 0;
        }
        if (needs_levels())
          for (int i = 0; i < n; ++i) strip.level[c][i] = storage<std::uint8_t>::store(density[i]);
        for (int i = 0; i < n; ++i) density[i] = rules.density.density(density[i]);
        if (solver.round == sums_round)
          for (int i = 0; i < n; ++i) strip.fixed[c][i] = fixed_density(density[i]);
      }
    }
  }

  void levels(int n) {
    for (int c = 0; c < 3; ++c)
      for (int i = 0; i < n; ++i)
        if (strip.looked[i] != 0) ++counts.bin[strip.level[c][i]];
  }

  void find_stained(int n) {
    const float *r = strip.density[0], *g = strip.density[1], *b = strip.density[2];
    const float least = rules.how.least_density;
    const auto keep = [&](const auto& rule) {
      for (int i = 0; i < n; ++i) strip.stained[i] = strip.looked[i] & (0u - static_cast<std::uint32_t>(rule(i)));
    };
    // A loop for each rule, so that every one is vectorised.
    switch (rules.how.stained) {
      case stained_rule::all_at_least:
        return keep([&](int i) { return (r[i] >= least) & (g[i] >= least) & (b[i] >= least); });
      case stained_rule::all_above:
        return keep([&](int i) { return (r[i] > least) & (g[i] > least) & (b[i] > least); });
      case stained_rule::any_above:
        return keep([&](int i) { return (r[i] > least) | (g[i] > least) | (b[i] > least); });
      default:
        return keep([&](int i) {
          return luminance(tables.light[strip.level[0][i]], tables.light[strip.level[1][i]],
                           tables.light[strip.level[2][i]]) <= rules.luminance_limit;
        });
    }
  }

  void sum(int n) {
    std::int64_t sums[3] = {}, products[6] = {};
    std::uint32_t stained = 0, pixels = 0;
    for (int i = 0; i < n; ++i) {
      const auto mask = static_cast<std::int32_t>(strip.stained[i]);
      const std::int64_t r = strip.fixed[0][i] & mask, g = strip.fixed[1][i] & mask, b = strip.fixed[2][i] & mask;
      sums[0] += r;
      sums[1] += g;
      sums[2] += b;
      products[0] += r * r;
      products[1] += r * g;
      products[2] += r * b;
      products[3] += g * g;
      products[4] += g * b;
      products[5] += b * b;
      stained -= strip.stained[i];
      pixels -= strip.looked[i];
    }
    counts.totals.stained += stained;
    counts.totals.pixels += pixels;
    for (int k = 0; k < 3; ++k) counts.totals.sum[k] += sums[k];
    add_products(products, 6);
  }

  void sum_refinement(int n) {
    const float *r = strip.density[0], *g = strip.density[1], *b = strip.density[2];
    std::int32_t code[2][stain_strip::capacity], density[3][stain_strip::capacity];
    const stain_unmixing unmixing = solver.unmixing;
    for (int i = 0; i < n; ++i) {
      const auto mask = static_cast<std::int32_t>(strip.stained[i]);
      const stain_unmixing::pair p = unmixing.mixture<true>(r[i], g[i], b[i]);
      for (int k = 0; k < 2; ++k) code[k][i] = fixed_density(p.c[k]) & mask;
    }
    for (int c = 0; c < 3; ++c)
      for (int i = 0; i < n; ++i) density[c][i] = fixed_density(strip.density[c][i]);
    std::int64_t products[9] = {};
    for (int i = 0; i < n; ++i) {
      const std::int64_t h = code[0][i], e = code[1][i];
      products[0] += h * h;
      products[1] += h * e;
      products[2] += e * e;
      for (int c = 0; c < 3; ++c) {
        products[3 + 2 * c] += density[c][i] * h;
        products[4 + 2 * c] += density[c][i] * e;
      }
    }
    add_products(products, 9);
  }

  void add_products(const std::int64_t* products, int count) {
    for (int k = 0; k < count; ++k) {
      counts.totals.low[k] += products[k] & 0xffffffff;
      counts.totals.high[k] += products[k] >> 32;
    }
  }

  void count_keys(int n) {
    const float *r = strip.density[0], *g = strip.density[1], *b = strip.density[2];
    std::uint32_t found[2][stain_strip::capacity];
    const bool angles = solver.round <= fine_angles;
    const std::uint32_t* wanted = !angles && rules.how.concentrations_of_all ? strip.looked : strip.stained;
    const auto concentrations = [&](const auto& mixture) {
      const stain_unmixing unmixing = solver.unmixing;
      const float scale = solver.scale;
      for (int i = 0; i < n; ++i) {
        const stain_unmixing::pair p = mixture(unmixing, r[i], g[i], b[i]);
        found[0][i] = macenko_key(p.c[0], scale) | ~wanted[i];
        found[1][i] = macenko_key(p.c[1], scale) | ~wanted[i];
      }
    };
    if (angles)
      for (int i = 0; i < n; ++i) found[0][i] = solver.angle_key(r[i], g[i], b[i]) | ~wanted[i];
    else if (solver.unmixing.penalised == 0)
      concentrations([](const stain_unmixing& u, float x, float y, float z) { return u.mixture<false>(x, y, z); });
    else
      concentrations([](const stain_unmixing& u, float x, float y, float z) { return u.mixture<true>(x, y, z); });
    const bool coarse = solver.round == coarse_angles || solver.round == coarse_concentrations;
    near_pixels += static_cast<std::uint32_t>(n);
    if (near_pixels > 1u << 30) settle();
    for (int k = 0; k < (angles ? 1 : 2); ++k) {
      if (coarse)
        for (int i = 0; i < n; ++i) {
          if (found[k][i] < macenko_keys) ++near[k * coarse_bins + static_cast<std::int32_t>(found[k][i] >> 11)];
        }
      else
        count_fine(found[k], n, k);
      if (keys[k] != nullptr) keys[k] = std::copy_n(found[k], n, keys[k]);
    }
  }

public:
  // Keys of the angles or of stain k, beyond all keys where a pixel does not count.
  void count_fine(const std::uint32_t* found, std::int64_t count, int k) {
    const bool angles = solver.round == fine_angles;
    const int first = angles ? 0 : 2 * k, slots = angles ? 4 : 2;
    std::uint32_t wanted[4];
    for (int s = 0; s < 4; ++s) wanted[s] = solver.slot_prefix[first + s % slots];
    for (std::int64_t at = 0; at < count; at += 32) {  // few blocks have one that shares a prefix
      const std::int64_t n = std::min<std::int64_t>(32, count - at);
      std::uint32_t any = 0;
      for (std::int64_t i = at; i < at + n; ++i) {
        const std::uint32_t prefix = found[i] >> 11;
        any |= static_cast<std::uint32_t>((prefix == wanted[0]) | (prefix == wanted[1]) | (prefix == wanted[2]) |
                                          (prefix == wanted[3]));
      }
      if (any == 0) continue;
      for (std::int64_t i = at; i < at + n; ++i) {
        const std::int32_t bin = solver.fine_bin(found[i], first, slots);
        if (bin >= 0) ++counts.bin[bin];
      }
    }
  }
};

// The keys of one image between the coarse and the fine round, so that the fine one need not work them out again.
struct macenko_keys_of_image {
  std::vector<std::uint32_t> keys[2];
};

}  // namespace detail

// A fit in rounds, over parts that may lie on several machines: in each round add every part of the pixels, merge what
// was counted elsewhere, then advance, until done. The bits are those of one fit over everything.
//
// Elsewhere is another search at the same round (`merge`), or bare counts (`counts`, `add_counts`): 64-bit integers
// that an all-reduce may sum up, and that a device leaves (fit_macenko_round).
class macenko_search {
public:
  explicit macenko_search(const fit_macenko& how)
      : rules_(detail::rules_of(how)), counts_(new macenko_counts), tables_(new detail::stain_tables) {
    solver_.start(rules_);
    tables_->make(rules_, solver_);
  }

  bool done() const { return solver_.round == detail::no_round; }

  template <class T, class Selection = everything>
  void add(const cpu& exec, const view<const T>& image, const Selection& selection = {}, std::size_t sample = 0) {
    require(!done(), {fit_macenko::name}, "the fit is over");
    detail::check_stain_image(fit_macenko::name, image, selection, sample);
    add(exec, image, selection, sample, nullptr);
  }
  template <class T, class Selection = everything>
  void add(const cpu& exec, const view<T>& image, const Selection& selection = {}, std::size_t sample = 0) {
    add(exec, static_cast<view<const T>>(image), selection, sample);
  }

  void merge(const macenko_search& other) {
    require(
        other.solver_.round == solver_.round && std::equal(solver_.prefix, solver_.prefix + 4, other.solver_.prefix),
        {fit_macenko::name}, "fits that stand at different places do not merge");
    counts_->add(*other.counts_);
  }
  const macenko_counts& counts() const { return *counts_; }
  void add_counts(const macenko_counts& other) { counts_->add(other); }

  void advance() {
    require(!done(), {fit_macenko::name}, "the fit is over");
    if (solver_.round == detail::stretch_round) {
      solver_.take_levels(counts_->bin);
      tables_->make(rules_, solver_);
    } else if (solver_.round == detail::sums_round) {
      solver_.take_sums(rules_, counts_->totals);
    } else if (solver_.round == detail::refinement) {
      solver_.take_refinement(rules_, counts_->totals);
    } else {
      for (int r = 0; r < 4; ++r) {
        const auto where = solver_.bins_of(r);
        std::uint64_t rest = solver_.rank[r];
        std::int32_t digit = 0;
        while (digit < where.n && rest >= counts_->bin[where.first + digit])
          rest -= counts_->bin[where.first + digit++];
        require(digit < where.n, {fit_macenko::name}, "this round saw fewer pixels than the first");
        solver_.found(r, static_cast<std::uint32_t>(digit), rest);
      }
      solver_.take_digits(rules_);
    }
    *counts_ = {};
  }

  stain_basis basis() const {
    require(done(), {fit_macenko::name}, "the fit needs another round");
    return solver_.finish(rules_);
  }

  const detail::macenko_rules& rules() const { return rules_; }
  const detail::macenko_solver& solver() const { return solver_; }

  // As above, of an image that is the only one and was checked; with room for its keys, if they are to be kept.
  template <class T, class Selection>
  void add(const cpu& exec, const view<const T>& image, const Selection& selection, std::size_t sample,
           detail::macenko_keys_of_image* kept) {
    using Map = typename Selection::map_type;
    static constexpr Map nothing = 0;
    view<const Map> map{};
    map.data = &nothing;
    if constexpr (Selection::has_map)
      map = selection.map(sample);
    else
      (void)sample;
    const extent3& n = image.grid.extents;
    const std::int64_t rows = n[0] * n[1];
    const int workers = static_cast<int>(std::min<std::int64_t>(detail::fit_workers(exec, rows * n[2]), rows));
    const auto select = selection.select();
    const int columns = solver_.round <= detail::fine_angles ? 1 : 2;  // of keys
    const bool again =
        kept != nullptr && (solver_.round == detail::fine_angles || solver_.round == detail::fine_concentrations);
    if (kept != nullptr)
      for (int k = 0; k < columns; ++k) kept->keys[k].resize(static_cast<std::size_t>(rows * n[2]));
    std::vector<std::unique_ptr<detail::macenko_pass<T>>> passes(static_cast<std::size_t>(workers));
    detail::parallel_for(workers, workers, [&](std::int64_t w) {
      auto& pass = passes[static_cast<std::size_t>(w)];
      pass.reset(new detail::macenko_pass<T>(rules_, solver_, *tables_));
      const std::int64_t first = rows * w / workers, last = rows * (w + 1) / workers;
      if (kept != nullptr && solver_.searches())
        for (int k = 0; k < columns; ++k) {
          std::uint32_t* const keys = kept->keys[k].data() + first * n[2];
          if (again)
            pass->count_fine(keys, (last - first) * n[2], k);
          else
            pass->keys[k] = keys;
        }
      if (again) return;
      for (std::int64_t row = first; row < last; ++row) {
        const std::int64_t y = row % n[1], z = row / n[1];
        pass->row(image.data + z * image.stride[0] + y * image.stride[1], image.channel_stride, image.stride[2],
                  map.data + z * map.stride[0] + y * map.stride[1], map.stride[2], n[2], select);
      }
    });
    for (const auto& pass : passes) {
      pass->settle();
      counts_->add(pass->counts);
    }
  }

private:
  detail::macenko_rules rules_;
  detail::macenko_solver solver_;
  std::unique_ptr<macenko_counts> counts_;
  std::unique_ptr<detail::stain_tables> tables_;
};

// What fit does for fit_macenko: one result per image, or one for all of them.
template <class T, class Selection>
void fit_on_cpu(const cpu& exec, const fit_macenko& how, std::span<const view<const T>> images,
                const Selection& selection, std::span<stain_basis> results) {
  detail::check_stain_images(fit_macenko::name, images, selection);
  const std::size_t groups = how.together ? (images.empty() ? 0 : 1) : images.size();
  require(results.size() == groups, {fit_macenko::name}, results.size(), " results given, ", groups, " needed: one",
          how.together ? " for all images" : " per image");
  how.check();
  const auto one = [&](const cpu& inside, std::size_t first, std::size_t last, detail::macenko_keys_of_image& kept) {
    macenko_search search(how);
    const bool keeps = last - first == 1 && images[first].grid.voxels() <= std::int64_t{1} << 22;
    while (!search.done()) {
      for (std::size_t i = first; i < last; ++i) search.add(inside, images[i], selection, i, keeps ? &kept : nullptr);
      search.advance();
    }
    return search.basis();
  };
  if (groups == 0) return;
  if (how.together || groups == 1) {
    detail::macenko_keys_of_image kept;
    results[0] = one(exec, 0, images.size(), kept);
    return;
  }
  const auto threads = static_cast<std::size_t>(detail::fit_workers(exec, std::int64_t{1} << 38));
  const std::size_t workers = std::min(threads, groups);
  detail::parallel_for(static_cast<int>(workers), static_cast<std::int64_t>(workers), [&](std::int64_t w) {
    detail::macenko_keys_of_image kept;
    for (auto i = static_cast<std::size_t>(w); i < groups; i += workers)
      results[i] = one(cpu{.threads = 1}, i, i + 1, kept);
  });
}

}  // namespace suture
