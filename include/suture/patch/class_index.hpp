// SPDX-License-Identifier: Apache-2.0
// An index of the voxels of each class of a volume, as runs in host memory. It is built once per case; a voxel of a
// class is then found without reading the label map.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "../exec/cpu/run.hpp"
#include "../ops/label/remap.hpp"
#include "class_rows.hpp"

namespace suture {

namespace detail {

inline void check_converted_classes(std::int32_t classes, bool foreground, const site& where) {
  check_number_of_classes(classes, where);
  require(!foreground || classes == 2, where, "foreground and background are two classes, got ", classes);
}

template <class L>
struct remapped_reader {
  strided<L> labels;
  std::int32_t classes;
  bool foreground;
  remap::functor change;

  template <class F>
  SUTURE_INLINE void each_source(const F& f) const {
    f(labels);
  }
  bool goes_by_label() const { return labels.channels == 1; }

  weighted_class operator()(std::int32_t z, std::int32_t y, std::int32_t x) const {
    const L* label = labels.data + labels.offset(z, y, x);
    if (!foreground) return {class_of_label(change(static_cast<std::int32_t>(*label)), classes), 1};
    for (std::int32_t c = 0; c < labels.channels; ++c)
      if (change(static_cast<std::int32_t>(label[c * labels.channel_stride])) > 0) return {1, 1};
    return {0, 1};
  }
};

// Consecutive voxels of one class in memory order (z, y, x with x fastest).
struct class_run {
  std::uint32_t first, length;
};

// Appends a run of a class and joins it to the last one if they touch. Runs come in memory order.
inline void append(std::vector<class_run>& runs, const class_run& next) {
  if (!runs.empty() && runs.back().first + runs.back().length == next.first)
    runs.back().length += next.length;
  else
    runs.push_back(next);
}

}  // namespace detail

// The classes of label maps after a conversion of labels: those that labels(in, out, remap{...}) would store. A voxel
// whose converted label is no class is never drawn.
//   foreground  two classes instead: 1 where a converted label is above 0 in any channel, 0 elsewhere
template <class L>
struct remapped_class_map {
  static constexpr std::string_view name = "remapped_classes";
  std::vector<view<const L>> labels;
  std::int32_t classes = 0;
  remap change = {};
  bool foreground = false;

  std::size_t samples() const { return labels.size(); }
  const suture::grid& grid(std::size_t i) const { return labels[i].grid; }
  detail::remapped_reader<L> reader(std::size_t i) const {
    return {detail::strided_of(labels[i]), classes, foreground,
            change.prepare(detail::label_types_of<L, std::int32_t>(), {name, static_cast<std::int64_t>(i)})};
  }
  void check() const {
    detail::check_converted_classes(classes, foreground, {name});
    detail::check_views(labels, name);
    for (std::size_t i = 0; i < labels.size(); ++i)
      require(foreground || labels[i].channels == 1, {name, static_cast<std::int64_t>(i)}, "labels have ",
              labels[i].channels, " channels; one is needed");
  }
};

// The voxels of each class of one volume, built by index_classes. It takes 8 bytes of host memory for each run of
// consecutive voxels of one class, and 16 for each class. It does not refer to the labels that it was built from.
class class_index {
public:
  class_index() = default;
  // Builds the index from the runs of each class in memory order, no two of which touch.
  class_index(const extent3& extents, std::span<const std::vector<detail::class_run>> runs) : extents_(extents) {
    for (const auto& of_class : runs) {
      begins_.push_back(first_.size());
      std::uint64_t total = 0;
      for (const detail::class_run& run : of_class) {
        first_.push_back(run.first);
        before_.push_back(static_cast<std::uint32_t>(total));
        total += run.length;
      }
      totals_.push_back(total);
    }
    begins_.push_back(first_.size());
    first_.shrink_to_fit();
    before_.shrink_to_fit();
  }

  // Returns the extents of the label map.
  const extent3& extents() const { return extents_; }
  std::int32_t classes() const { return static_cast<std::int32_t>(totals_.size()); }
  // Returns the number of voxels of a class.
  std::uint64_t total(std::int32_t of_class) const { return totals_[static_cast<std::size_t>(of_class)]; }
  const std::uint64_t* totals() const { return totals_.data(); }

  // Returns the linear index of the voxel with number `rank` < total(of_class) of a class, in memory order, by a binary
  // search.
  std::int64_t voxel(std::int32_t of_class, std::uint64_t rank) const {
    const auto c = static_cast<std::size_t>(of_class);
    const auto begin = before_.begin() + static_cast<std::ptrdiff_t>(begins_[c]);
    const auto end = before_.begin() + static_cast<std::ptrdiff_t>(begins_[c + 1]);
    const auto run = std::upper_bound(begin, end, static_cast<std::uint32_t>(rank)) - 1;
    const auto at = static_cast<std::size_t>(run - before_.begin());
    return static_cast<std::int64_t>(first_[at]) + static_cast<std::int64_t>(rank - *run);
  }

  // Returns the bytes of memory that the index takes.
  std::size_t bytes() const {
    return (first_.size() + before_.size()) * sizeof(std::uint32_t) +
           (begins_.size() + totals_.size()) * sizeof(std::uint64_t);
  }

  friend bool operator==(const class_index& a, const class_index& b) {
    return a.extents_ == b.extents_ && a.first_ == b.first_ && a.before_ == b.before_ && a.begins_ == b.begins_ &&
           a.totals_ == b.totals_;
  }

private:
  extent3 extents_{0, 0, 0};
  std::vector<std::uint32_t> first_;   // first voxel of each run: all runs of class 0, then those of class 1, ...
  std::vector<std::uint32_t> before_;  // voxels of the class in the runs before it
  std::vector<std::uint64_t> begins_;  // first run of each class, and the end of the last
  std::vector<std::uint64_t> totals_;
};

namespace detail {

template <class Classes>
void check_indexed(const Classes& map) {
  static_assert(
      requires { map.labels; },
      "suture: index_classes takes label_classes, foreground_background or remapped_class_map; what is drawn by weight "
      "goes by select_patches");
  map.check();
  for (std::size_t i = 0; i < map.samples(); ++i)
    require(map.grid(i).voxels() <= std::numeric_limits<std::uint32_t>::max(),
            {"index_classes", static_cast<std::int64_t>(i)}, "extents ", map.grid(i).extents,
            " are more than 4294967295 voxels");
}

// Indexes sample i of a map that was checked.
template <class Classes>
class_index index_sample(int threads, const Classes& map, std::size_t i) {
  const extent3& n = map.grid(i).extents;
  const auto classes = static_cast<std::size_t>(map.classes);
  const class_rows rows(map.reader(i), n, threads);
  // Runs are kept by plane and task, then joined across these.
  const std::int64_t tasks = rows.tasks();
  std::vector<std::vector<std::vector<class_run>>> found(static_cast<std::size_t>(n[0] * tasks));
  parallel_for(threads, tasks, [&](std::int64_t task) {
    rows.each_run(task, [&](std::int32_t z, std::int32_t y, std::int32_t c, std::int32_t x, std::int32_t length) {
      if (c >= map.classes) return;
      auto& part = found[static_cast<std::size_t>(z * tasks + task)];
      part.resize(classes);
      append(part[static_cast<std::size_t>(c)],
             {static_cast<std::uint32_t>((z * n[1] + y) * n[2] + x), static_cast<std::uint32_t>(length)});
    });
  });
  std::vector<std::vector<class_run>> runs(classes);
  for (auto& part : found)
    for (std::size_t c = 0; c < part.size(); ++c) {
      for (const class_run& run : part[c]) append(runs[c], run);
      part[c] = {};
    }
  return class_index(n, std::span<const std::vector<class_run>>(runs));
}

}  // namespace detail

// index_classes: builds an index for each sample of a map of labels in host memory. Call it once per case, when the
// case is read: crop_by_class then chooses without a label map, on any executor.
//   map: label_classes(...), foreground_background(...) or remapped_class_map{...}.
// Errors: an empty batch, a view that cannot be read, extents that differ, more than 4294967295 voxels.
template <class Classes>
std::vector<class_index> index_classes(const cpu& exec, const Classes& map) {
  detail::check_indexed(map);
  std::vector<class_index> all;
  for (std::size_t i = 0; i < map.samples(); ++i) all.push_back(detail::index_sample(exec.threads, map, i));
  return all;
}

}  // namespace suture
