// SPDX-License-Identifier: Apache-2.0
// One pass of a fit over a sample on the CPU: rows divided among threads, each with a state of its own, merged after.
#pragma once

#include "../exec/cpu/run.hpp"
#include "../stats/statistics.hpp"
#include "selection.hpp"

namespace suture::detail {

inline int fit_workers(const cpu& exec, std::int64_t voxels) {
  return static_cast<int>(std::min<std::int64_t>(thread_count(exec.threads), 1 + voxels / 65536));
}

// Whether a statistic is of this value; the tally says what became of it.
template <class T>
SUTURE_FN bool takes(fit_tally& tally, verdict v, T value) {
  if (v == verdict::rejected) return false;
  if (v == verdict::undeclared) {
    ++tally.undeclared;
    return false;
  }
  const bool finite = counted<T>::finite(value);
  if (finite)
    ++tally.count;
  else
    ++tally.excluded;
  return finite;
}

// Merges into `into` what `zero`, a state without counts, finds in channels [channel, channel_end) of one image.
// A state has row(values, stride, map, map_stride, count, selector) and merge(state). The map of selections without one
// is a single byte, read with stride 0.
template <class T, class Selection, class State>
void gather(const cpu& exec, const view<const T>& image, const Selection& selection, std::size_t sample,
            std::int64_t channel, std::int64_t channel_end, const State& zero, State& into) {
  using Map = typename Selection::map_type;
  static constexpr Map nothing = 0;
  view<const Map> map{};
  map.data = &nothing;
  if constexpr (Selection::has_map)
    map = selection.map(sample);
  else
    (void)sample;
  const extent3& n = image.grid.extents;
  const std::int64_t rows = n[0] * n[1] * (channel_end - channel);
  const int workers = fit_workers(exec, rows * n[2]);
  const auto select = selection.select();
  const auto pass = [&](State& state, std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t y = row % n[1], z = row / n[1] % n[0], c = channel + row / n[1] / n[0];
      state.row(image.data + c * image.channel_stride + z * image.stride[0] + y * image.stride[1], image.stride[2],
                map.data + z * map.stride[0] + y * map.stride[1], map.stride[2], n[2], select);
    }
  };
  if (workers == 1) {
    pass(into, 0, rows);
    return;
  }
  std::vector<State> states(static_cast<std::size_t>(workers), zero);
  parallel_for(workers, workers, [&](std::int64_t w) {
    pass(states[static_cast<std::size_t>(w)], rows * w / workers, rows * (w + 1) / workers);
  });
  for (const State& s : states) into.merge(s);
}

// f(sample, first channel, end of channels, result index) for every fitted group.
template <class T, class F>
void for_each_group(std::span<const view<const T>> images, bool pooled, const F& f) {
  std::size_t group = 0;
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (pooled)
      f(i, 0, images[i].channels, group++);
    else
      for (std::int64_t c = 0; c < images[i].channels; ++c) f(i, c, c + 1, group++);
  }
}

// visit(pointer, where, role) for what a fit reads and where its results go.
template <class Visit, class Images, class Selection, class Result>
void each_fit_pointer(const Visit& visit, std::string_view name, const Images& images, const Selection& selection,
                      std::span<Result> results) {
  for (std::size_t i = 0; i < images.size(); ++i) {
    const site where{name, static_cast<std::int64_t>(i)};
    visit(images[i].data, where, "image: ");
    if constexpr (Selection::has_map)
      if (i < selection.samples()) visit(selection.map(i).data, where, "map: ");
  }
  visit(results.data(), {name}, "results: ");
}

// Views of constant elements, from a view or a range of views of either kind.
template <class Images>
auto constant_views(const Images& images) {
  const auto views = as_views(images);
  return std::vector<view<const std::remove_const_t<view_element_t<Images>>>>(views.begin(), views.end());
}

}  // namespace suture::detail
