// SPDX-License-Identifier: Apache-2.0
// A batch of a case, bound and run on one executor.
#pragma once

#include <cstring>
#include <optional>
#include <type_traits>

#include "context.hpp"

namespace fuzz {

// Of a case whose label maps are stored as they are.
struct no_conversion {};

inline std::int64_t channels_of(const no_conversion&, std::int64_t in) { return in; }
inline std::int64_t channels_of(const suture::remap&, std::int64_t in) { return in; }
inline std::int64_t channels_of(const suture::one_hot& c, std::int64_t) {
  return c.classes - (c.background ? 0 : 1) + (c.ignore ? 1 : 0);
}
inline std::int64_t channels_of(const suture::regions& c, std::int64_t) {
  return static_cast<std::int64_t>(c.sets.size()) + (c.ignore ? 1 : 0);
}

template <class In, class Out, class Conversion, class... Levels>
auto bind_labels(const In& in, const Out& out, const Conversion& conversion, const Levels&... levels) {
  if constexpr (std::is_same_v<Conversion, no_conversion>)
    return suture::labels(in, out, levels...);
  else
    return suture::labels(in, out, conversion, levels...);
}

// The result of one sample, dense.
template <class Out, class LabelOut>
struct result {
  std::vector<Out> image;
  std::vector<LabelOut> labels, level;
};

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// Memory that views of a layout write to; what lies between their elements must stay as it is.
template <class T, class Backend>
class targets {
public:
  targets(Backend& backend, const memory_layout& layout, const std::vector<suture::grid>& grids, std::int64_t channels)
      : backend_(backend) {
    for (const suture::grid& g : grids) {
      const std::size_t n = layout.elements<T>(g, channels);
      std::vector<T> filled(n);
      std::memset(static_cast<void*>(filled.data()), 0xab, n * sizeof(T));
      counts_.push_back(n);
      memory_.push_back(backend.place(filled));
      views.push_back(layout.view(memory_.back(), g, channels));
    }
  }
  // Dense elements of sample i; whether nothing else was written.
  std::vector<T> dense(std::size_t i, bool& clean) const {
    std::vector<T> host = backend_.back(memory_[i], counts_[i]);
    suture::view<T> v = views[i];
    v.data = host.data() + (v.data - memory_[i]);
    std::vector<T> values;
    T untouched;
    std::memset(static_cast<void*>(&untouched), 0xab, sizeof untouched);
    each_voxel(v.grid.extents, v.channels, [&](auto c, auto z, auto y, auto x) {
      values.push_back(element(v, c, z, y, x));
      element(v, c, z, y, x) = untouched;
    });
    for (const T& rest : host) clean = clean && std::memcmp(&rest, &untouched, sizeof rest) == 0;
    return values;
  }

  std::vector<suture::view<T>> views;

private:
  Backend& backend_;
  std::vector<T*> memory_;
  std::vector<std::size_t> counts_;
};

// A box of a view of the host, alone in memory: place(std::vector<T>) gives the memory that an executor reads.
template <class T, class Place>
suture::view<const T> boxed(const suture::view<const T>& from, const suture::voxel_box& box, memory_layout layout,
                            const Place& place) {
  for (std::int64_t& gap : layout.gap) gap = 1;
  suture::grid part = from.grid;
  part.extents = box.size;
  std::vector<T> values(static_cast<std::size_t>(box.voxels() * from.channels));
  const suture::view<T> held = layout.view(values.data(), part, from.channels);
  each_voxel(box.size, from.channels, [&](auto c, auto z, auto y, auto x) {
    element(held, c, z, y, x) = element(from, c, box.first[0] + z, box.first[1] + y, box.first[2] + x);
  });
  const T* const placed = place(values);
  std::int64_t first = held.data - values.data();
  for (int k = 0; k < 3; ++k) first -= box.first[k] * held.stride[k];
  return {reinterpret_cast<const T*>(reinterpret_cast<std::uintptr_t>(placed) +
                                     static_cast<std::uintptr_t>(first) * sizeof(T)),
          from.grid,
          held.stride,
          from.channels,
          held.channel_stride,
          box};
}

// Samples of a case in an order, in the memory of an executor.
template <class Case, class Backend>
struct batch {
  using In = typename Case::element;
  using Label = typename Case::label;
  using LabelOut = typename Case::label_out;
  using context_type = context<Backend, In, Label>;

  batch(Backend& b, const numbers& n, const inputs<In, Label>& all, const std::vector<std::size_t>& order)
      : backend(b) {
    for (const std::size_t i : order) {
      ids.push_back(all.ids[i]);
      images.push_back(all.in_layout.template view<const In>(place(all.images[i]), all.grids[i], all.channels));
      maps.push_back(
          all.label_layout.template view<const Label>(place(all.labels[i]), all.grids[i], all.label_channels));
    }
    made.emplace(n, backend, images, maps, ids);
    // With its type: of bare braces that are assigned in a template nvcc 13.0 gives a member to one that is left out.
    how = suture::settings{
        .seed = all.seed, .epoch = all.epoch, .sample_ids = ids, .evaluation = all.evaluation, .same_ids = true};
  }
  batch(const batch&) = delete;

  auto chain() { return Case::chain(*made); }
  auto conversion() { return Case::conversion(*made); }

  Backend& backend;
  std::vector<std::uint64_t> ids;
  std::vector<suture::view<const In>> images;
  std::vector<suture::view<const Label>> maps;
  std::optional<context_type> made;
  suture::settings how;

private:
  // A view of a layout that runs backwards begins somewhere in it.
  template <class T>
  const T* place(const std::vector<T>& values) {
    return backend.place(values);
  }
};

template <class Plan>
using result_of = typename std::remove_cvref_t<Plan>::pipeline_type::result_type;

// Runs a plan of a batch; run(bindings...) does so on the executor. Fills one result for each sample.
template <class Case, class Backend, class Plan, class Run>
auto run_batch(batch<Case, Backend>& b, const Plan& plan, const memory_layout& out_layout,
               const memory_layout& label_layout, bool& clean, const Run& run) {
  using Out = result_of<Plan>;
  using LabelOut = typename Case::label_out;
  const std::vector<suture::grid> grids = plan.output_grids();
  const auto conversion = b.conversion();
  const std::int64_t label_channels = channels_of(conversion, b.maps[0].channels);
  targets<Out, Backend> images(b.backend, out_layout, grids, b.images[0].channels);
  targets<LabelOut, Backend> maps(b.backend, label_layout, grids, label_channels);
  std::vector<suture::grid> level_grids;
  for (const auto& g : grids) {
    const suture::extent3& n = g.extents;
    level_grids.push_back(suture::level_grid(g, {n[0], (n[1] + 1) / 2, (2 * n[2] + 4) / 5}));
  }
  targets<LabelOut, Backend> levels(b.backend, memory_layout::dense(), level_grids, label_channels);
  if constexpr (Case::has_level)
    run(suture::image(b.images, images.views),
        bind_labels(b.maps, maps.views, conversion, suture::deep_supervision(levels.views)));
  else
    run(suture::image(b.images, images.views), bind_labels(b.maps, maps.views, conversion));
  std::vector<result<Out, LabelOut>> results(grids.size());
  for (std::size_t i = 0; i < grids.size(); ++i) {
    results[i].image = images.dense(i, clean);
    results[i].labels = maps.dense(i, clean);
    if constexpr (Case::has_level) results[i].level = levels.dense(i, clean);
  }
  return results;
}

// One number for all results.
template <class Out, class LabelOut>
std::uint64_t digest_of(const std::vector<result<Out, LabelOut>>& results) {
  std::uint64_t sum = 14695981039346656037ull;
  const auto add = [&](const auto& values) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
    for (std::size_t i = 0; i < values.size() * sizeof(values[0]); ++i) sum = (sum ^ bytes[i]) * 1099511628211ull;
    sum = suture::mix64(sum);
  };
  for (const auto& r : results) {
    add(r.image);
    add(r.labels);
    add(r.level);
  }
  return sum;
}

}  // namespace fuzz
