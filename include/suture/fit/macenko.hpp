// SPDX-License-Identifier: Apache-2.0
// The Macenko stain fit on the CPU: of a tile, of many tiles together, or in parts that merge.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "macenko_pass.hpp"
#include "moments.hpp"

namespace suture {

namespace detail {

// Element types of images that stains are fitted to.
template <class T>
inline constexpr bool is_stain_image = std::is_same_v<T, std::uint8_t> || std::is_same_v<T, float> ||
                                       std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

template <class T, class Selection>
void check_stain_image(std::string_view name, const view<const T>& image, const Selection& selection,
                       std::size_t sample) {
  static_assert(is_image_storage_v<T>, "suture: unsupported element type of an image");
  check_color_selection<Selection>();
  const site where{name, static_cast<std::int64_t>(sample)};
  require(is_stain_image<T>, where, storage_name<T>(),
          " image: stains are fitted to uint8, half, bfloat16 or float; convert images of other types");
  check_sample(name, image, selection, sample);
  require(image.channels == 3, where, image.channels, " channels; red, green and blue are needed",
          image.channels == 4 ? " (a view may leave alpha out: channels = 3 with the strides of RGBA)" : "");
}

template <class T, class Selection>
void check_stain_images(std::string_view name, std::span<const view<const T>> images, const Selection& selection) {
  check_map_count(name, images.size(), selection);
  std::int64_t pixels = 0;
  for (std::size_t i = 0; i < images.size(); ++i) {
    check_stain_image(name, images[i], selection, i);
    pixels += images[i].grid.voxels();
    require(pixels <= std::int64_t{1} << 38, {name, static_cast<std::int64_t>(i)}, "more than 2^38 pixels in all");
  }
}

// Returns the number of results that are needed: one for each image, or one for all.
inline std::size_t check_stain_results(const fit_macenko& settings, std::size_t images, std::size_t results) {
  const std::size_t groups = settings.together ? (images == 0 ? 0 : 1) : images;
  require(results == groups, {fit_macenko::name}, results, " results given, ", groups, " needed: one",
          settings.together ? " for all images" : " per image");
  return groups;
}

}  // namespace detail

// A fit in rounds, over parts that may lie on several machines: in each round add every part of the pixels, merge
// counts from other machines, then advance, until done. The bits are those of one fit over everything.
//
// Counts of another machine come as a search at the same round (`merge`), or alone (`counts`, `add_counts`): 64-bit
// integers that an all-reduce may sum up, and that fit_macenko_round computes on a device.
class macenko_search {
public:
  explicit macenko_search(const fit_macenko& settings)
      : rules_(detail::rules_of(settings)), counts_(new macenko_counts), tables_(new detail::stain_tables) {
    solver_.start(rules_);
    tables_->make(rules_, solver_);
  }

  bool done() const { return solver_.round == detail::no_round; }

  template <class T, class Selection = everything>
  void add(const cpu& exec, const view<T>& image, const Selection& selection = {}, std::size_t sample = 0) {
    require(!done(), {fit_macenko::name}, "the fit is over");
    const view<const T> pixels = image;
    detail::check_stain_image(fit_macenko::name, pixels, selection, sample);
    add_pixels(exec, pixels, selection, sample, nullptr);
  }

  void merge(const macenko_search& other) {
    require(other.rules_.fit == rules_.fit && other.solver_ == solver_, {fit_macenko::name},
            "fits of different parameters, at different rounds or of other pixels in earlier rounds do not merge");
    counts_->add(*other.counts_);
  }
  const macenko_counts& counts() const { return *counts_; }
  void add_counts(const macenko_counts& other) { counts_->add(other); }

  void advance() {
    require(!done(), {fit_macenko::name}, "the fit is over");
    const bool counted = solver_.counts_bins();
    if (solver_.round == detail::stretch_round) {
      solver_.conclude_levels(counts_->bin);
      tables_->make(rules_, solver_);
    } else if (solver_.round == detail::sums_round) {
      solver_.conclude_sums(rules_, counts_->totals);
    } else if (solver_.round == detail::refinement) {
      solver_.conclude_refinement(rules_, counts_->totals);
    } else {
      std::uint64_t rest[4];
      std::int32_t digit[4] = {};
      for (int r = 0; r < 4; ++r) {
        const auto bins = solver_.bins_of(r);
        rest[r] = solver_.rank[r];
        while (digit[r] < bins.n && rest[r] >= counts_->bin[bins.first + digit[r]])
          rest[r] -= counts_->bin[bins.first + digit[r]++];
        require(digit[r] < bins.n, {fit_macenko::name}, "this round saw fewer pixels than the first");
      }
      // After all checks: a round that is refused changes nothing.
      for (int r = 0; r < 4; ++r) solver_.found(r, static_cast<std::uint32_t>(digit[r]), rest[r]);
      solver_.conclude_digits(rules_);
    }
    counts_->totals = {};
    if (counted) std::fill(std::begin(counts_->bin), std::end(counts_->bin), std::uint64_t{0});
  }

  stain_basis basis() const {
    require(done(), {fit_macenko::name}, "the fit needs another round");
    return solver_.finish(rules_);
  }

  const detail::macenko_rules& rules() const { return rules_; }
  const detail::macenko_solver& solver() const { return solver_; }

  // Does the same as add and advance, for a single checked image. A key is an angle or a concentration as 23 bits. The
  // four ranks are the places of the wanted keys among all keys in sorted order, two neighbors for each of two
  // percentiles.
  //
  // If the rounded densities of all pixels were kept, one pass replaces a coarse round and the fine one after it. A
  // sample of the pixels predicts two windows of keys, one per percentile, and only keys that may lie in a window are
  // computed. If all ranks lie in the windows, the keys found equal those of the two rounds; otherwise the rounds
  // follow.
  template <class T, class Selection>
  void advance_alone(const cpu& exec, const view<const T>& image, const Selection& selection, std::size_t sample) {
    constexpr std::int64_t most_strips = std::int64_t{1} << 15;  // 768 bytes each
    const bool sums = solver_.round == detail::sums_round;
    const std::int64_t strips = strips_of(image);
    if (sums && rules_.fits_rounded() && strips <= most_strips)
      kept_.reset(new detail::rounded_strip[static_cast<std::size_t>(strips)]);
    if (kept_ && find_keys(exec, image, selection, sample)) return;
    add_pixels(exec, image, selection, sample, sums ? kept_.get() : nullptr);
    advance();
  }

private:
  template <class T>
  static std::int64_t strips_in_row(const view<const T>& image) {
    return (image.grid.extents[2] + detail::stain_strip - 1) / detail::stain_strip;
  }
  template <class T>
  static std::int64_t strips_of(const view<const T>& image) {
    return image.grid.extents[0] * image.grid.extents[1] * strips_in_row(image);
  }

  template <class T, class Selection>
  void add_pixels(const cpu& exec, const view<const T>& image, const Selection& selection, std::size_t sample,
                  detail::rounded_strip* kept) {
    for (const auto& pass : passes_over<T>(exec, image, selection, sample, 1, 1, kept)) pass->add_to(*counts_);
  }

  // Returns false, with nothing changed, if this is not a coarse round or the ranks are outside the prediction.
  template <class T, class Selection>
  bool find_keys(const cpu& exec, const view<const T>& image, const Selection& selection, std::size_t sample) {
    const bool angles = solver_.round == detail::coarse_angles;
    if (!angles && solver_.round != detail::coarse_concentrations) return false;
    // Steps of 7 rows and 5 pixels share no factor with the blocks of compressed images.
    const auto passes = passes_over<T>(exec, image, selection, sample, 7, 5);
    std::vector<std::uint64_t>& few = passes.front()->bin;
    for (std::size_t w = 1; w < passes.size(); ++w)
      std::transform(few.begin(), few.end(), passes[w]->bin.begin(), few.begin(), [](auto a, auto b) { return a + b; });
    const std::uint64_t count = solver_.searched(rules_);
    detail::key_window window[2];
    for (int k = 0; k < 2; ++k)
      if (!window[k].predict(few.data() + (angles ? 0 : k * detail::coarse_bins), solver_.rank[2 * k], count))
        return false;
    sift(exec, image, window);
    std::uint32_t keys[4];
    for (int k = 0; k < 2; ++k) {
      detail::key_window& w = window[k];
      // The sieve counts no pixel that it rejects. Their keys lie above the first window of angles, and below the other
      // windows.
      const std::uint64_t below = angles && k == 0 ? w.below : count - w.above - w.inside.size();
      if (!w.find(solver_.rank + 2 * k, below, keys + 2 * k)) return false;
    }
    solver_.conclude_keys(rules_, keys);
    return true;
  }

  // Adds to the windows the keys of all pixels that may lie in them.
  template <class T>
  void sift(const cpu& exec, const view<const T>& image, detail::key_window (&window)[2]) const {
    using detail::stain_strip;
    const extent3& n = image.grid.extents;
    const std::int64_t rows = n[0] * n[1], strips = strips_in_row(image);
    const auto workers = std::min<std::int64_t>(detail::fit_workers(exec, n[2] * rows), rows);
    struct part {
      detail::key_window window[2];
    };
    std::vector<part> parts(static_cast<std::size_t>(workers), part{{window[0], window[1]}});
    const detail::stain_sieve sieve(rules_, solver_, window);
    detail::parallel_for(static_cast<int>(workers), workers, [&](std::int64_t w) {
      detail::key_window(&mine)[2] = parts[static_cast<std::size_t>(w)].window;
      const detail::macenko_keys_of<T> keys_of{rules_, solver_, *tables_};
      float found[3][stain_strip] = {};  // optical densities whose keys are needed
      int waiting = 0;
      const auto flush = [&] {
        std::uint32_t key[2][stain_strip];
        keys_of(found, key);
        for (int k = 0; k < 2; ++k) mine[k].add_keys(key[keys_of.angles() ? 0 : k], waiting);
        waiting = 0;
      };
      std::vector<std::int32_t> positions(static_cast<std::size_t>(n[2] + stain_strip));
      for (std::int64_t row = rows * w / workers; row < rows * (w + 1) / workers; ++row) {
        std::int32_t count = 0;
        for (std::int64_t s = 0; s < strips; ++s) {
          std::uint8_t rest[stain_strip];
          sieve.sift(kept_[static_cast<std::size_t>(row * strips + s)], rest);
          detail::append_positions(rest, static_cast<std::int32_t>(s) * stain_strip, positions.data(), count);
        }
        const T* const from = image.data + row / n[1] * image.stride[0] + row % n[1] * image.stride[1];
        for (std::int32_t i = 0; i < count; ++i) {
          keys_of.density(from + positions[static_cast<std::size_t>(i)] * image.stride[2], image.channel_stride, found,
                          waiting);
          if (++waiting == stain_strip) flush();
        }
      }
      flush();
    });
    for (const part& p : parts)
      for (int k = 0; k < 2; ++k) window[k].add(p.window[k]);
  }

  // Makes one pass per worker over its share of the pixels: of every `every_row`-th row, every `every_pixel`-th pixel.
  // In the round of sums `kept`, if given, receives the rounded densities.
  template <class T, class Selection>
  auto passes_over(const cpu& exec, const view<const T>& image, const Selection& selection, std::size_t sample,
                   std::int64_t every_row, std::int64_t every_pixel, detail::rounded_strip* kept = nullptr) const {
    using Map = typename Selection::map_type;
    static constexpr Map nothing = 0;
    view<const Map> map{};
    map.data = &nothing;
    if constexpr (Selection::has_map)
      map = selection.map(sample);
    else
      (void)sample;
    const extent3& n = image.grid.extents;
    const std::int64_t rows = (n[0] * n[1] + every_row - 1) / every_row;
    const std::int64_t columns = (n[2] + every_pixel - 1) / every_pixel;
    const auto workers = std::min<std::int64_t>(detail::fit_workers(exec, rows * columns), rows);
    const auto select = selection.select();
    std::vector<std::unique_ptr<detail::macenko_pass<T>>> passes(static_cast<std::size_t>(workers));
    detail::parallel_for(static_cast<int>(workers), workers, [&](std::int64_t w) {
      auto& pass = passes[static_cast<std::size_t>(w)];
      pass.reset(new detail::macenko_pass<T>(rules_, solver_, *tables_));
      for (std::int64_t row = rows * w / workers; row < rows * (w + 1) / workers; ++row) {
        const std::int64_t y = row * every_row % n[1], z = row * every_row / n[1];
        pass->row(image.data + z * image.stride[0] + y * image.stride[1], image.channel_stride,
                  image.stride[2] * every_pixel, map.data + z * map.stride[0] + y * map.stride[1],
                  map.stride[2] * every_pixel, columns, select,
                  kept == nullptr ? nullptr : kept + row * strips_in_row(image));
      }
    });
    return passes;
  }

  detail::macenko_rules rules_;
  detail::macenko_solver solver_;
  std::unique_ptr<macenko_counts> counts_;
  std::unique_ptr<detail::stain_tables> tables_;
  std::unique_ptr<detail::rounded_strip[]> kept_;
};

// Runs fit_macenko on the CPU: one result per image, or one for all of them.
template <class T, class Selection>
void fit_on_cpu(const cpu& exec, const fit_macenko& settings, std::span<const view<const T>> images,
                const Selection& selection, std::span<stain_basis> results) {
  detail::check_stain_images(fit_macenko::name, images, selection);
  const std::size_t groups = detail::check_stain_results(settings, images.size(), results.size());
  settings.check();
  const auto one = [&](const cpu& inside, std::size_t first, std::size_t last) {
    macenko_search search(settings);
    while (!search.done()) {
      if (last - first == 1) {
        search.advance_alone(inside, images[first], selection, first);
        continue;
      }
      for (std::size_t i = first; i < last; ++i) search.add(inside, images[i], selection, i);
      search.advance();
    }
    return search.basis();
  };
  if (groups == 0) return;
  if (settings.together || groups == 1) {
    results[0] = one(exec, 0, images.size());
    return;
  }
  const int workers = std::min<int>(detail::fit_workers(exec, std::int64_t{1} << 38), static_cast<int>(groups));
  detail::parallel_for(workers, static_cast<std::int64_t>(groups), [&](std::int64_t i) {
    const auto group = static_cast<std::size_t>(i);
    results[group] = one(cpu{.threads = 1}, group, group + 1);
  });
}

}  // namespace suture
