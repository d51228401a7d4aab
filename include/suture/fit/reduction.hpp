// SPDX-License-Identifier: Apache-2.0
// One pass of a fit over a sample on the CPU: rows are divided among threads, each with a state of its own, which are
// then merged.
#pragma once

#include "../exec/cpu/run.hpp"
#include "../stats/statistics.hpp"
#include "selection.hpp"

namespace suture::detail {

inline int fit_workers(const cpu& exec, std::int64_t voxels) {
  return static_cast<int>(std::min<std::int64_t>(thread_count(exec.threads), 1 + voxels / 65536));
}

// Tests whether a value is part of a statistic, and counts it in the tally.
template <class T>
SUTURE_FN bool tally_value(fit_tally& tally, verdict v, T value) {
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

// A row of an image, and of the map that belongs to it.
template <class T, class Map>
struct voxel_row {
  const T* values;
  std::int64_t stride;
  const Map* map;
  std::int64_t map_stride, count;

  // Calls visit(pointer to the value, verdict) for every voxel.
  template <class Selector, class Visit>
  void visit_addresses(const Selector& select, const Visit& visit) const {
    const voxel_row r = *this;  // a copy stays in registers even if visit stores
    for (std::int64_t x = 0; x < r.count; ++x)
      visit(r.values + x * r.stride, select(r.values[x * r.stride], r.map[x * r.map_stride]));
  }
  // Calls visit(value) for the selected values that are finite; the tally counts those and the others.
  template <class Selector, class Visit>
  void visit_values(const Selector& select, fit_tally& tally, const Visit& visit) const {
    fit_tally seen;
    visit_addresses(select, [&](const T* place, verdict v) {
      const T value = *place;
      if (tally_value(seen, v, value)) visit(value);
    });
    tally.merge(seen);
  }
};

// Adds one channel of an image, or with -1 all channels, to `into`; `zero` is a state without counts. A state has
// row(voxel_row, selector) and merge(state). The map of selections without one is a single byte, read with stride 0.
// `name` is the name of the state in error messages.
template <class T, class Selection, class State>
void reduce_rows(const cpu& exec, std::string_view name, const view<const T>& image, const Selection& selection,
                 std::size_t sample, std::int64_t channel, const State& zero, State& into) {
  check_sample(name, image, selection, sample);
  require(channel >= -1 && channel < image.channels, {name}, "channel ", channel, " of ", image.channels);
  using Map = typename Selection::map_type;
  static constexpr Map nothing = 0;
  view<const Map> map{};
  map.data = &nothing;
  if constexpr (Selection::has_map) map = selection.map(sample);
  // Rows follow the axis with the smallest stride, since the order of voxels does not matter.
  const extent3& extents = image.grid.extents;
  std::int64_t n[3] = {extents[0], extents[1], extents[2]};
  std::int64_t stride[3] = {image.stride[0], image.stride[1], image.stride[2]};
  std::int64_t map_stride[3] = {map.stride[0], map.stride[1], map.stride[2]};
  const std::uint8_t loops = loops_in_memory(stride, n);
  for (auto* by_axis : {&n, &stride, &map_stride}) reorder(*by_axis, loops);
  const std::int64_t first_channel = channel < 0 ? 0 : channel;
  const std::int64_t rows = n[0] * n[1] * (channel < 0 ? image.channels : 1);
  const int workers = fit_workers(exec, rows * n[2]);
  const auto select = selection.select();
  const auto pass = [&](State& state, std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t y = row % n[1], z = row / n[1] % n[0], c = first_channel + row / n[1] / n[0];
      const T* const values = image.data + c * image.channel_stride + z * stride[0] + y * stride[1];
      const Map* const labels = map.data + z * map_stride[0] + y * map_stride[1];
      state.row(voxel_row<T, Map>{values, stride[2], labels, map_stride[2], n[2]}, select);
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

// Checks the parameters of a fit, and that it takes images of T.
template <class T, class Fit>
void check_parameters(const Fit& settings) {
  settings.check();
  if constexpr (requires { settings.template check_type<T>(); }) settings.template check_type<T>();
}

// Fits every group: start() makes a state, finish(state) its result. add(exec, image, selection, channel, sample) of
// the state reads the voxels: once or, if the state has advance(), once in each round until it is done().
template <class T, class Fit, class Selection, class Start, class Finish>
void fit_each_group(const cpu& exec, const Fit& settings, std::span<const view<const T>> images,
                    const Selection& selection, std::span<typename Fit::result> results, const Start& start,
                    const Finish& finish) {
  check_parameters<T>(settings);
  check_fit(Fit::name, images, selection, settings.pooled, results.size());
  std::size_t group = 0;
  for (std::size_t i = 0; i < images.size(); ++i)
    for (std::int64_t c = 0; c < (settings.pooled ? 1 : images[i].channels); ++c) {
      auto state = start();
      const auto add = [&] { state.add(exec, images[i], selection, settings.pooled ? -1 : c, i); };
      if constexpr (requires { state.advance(); })
        for (; !state.done(); state.advance()) add();
      else
        add();
      results[group++] = finish(state);
    }
}

// Calls visit(pointer, where, role) for the inputs of a fit and its results.
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

}  // namespace suture::detail
