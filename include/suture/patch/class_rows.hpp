// SPDX-License-Identifier: Apache-2.0
// The search for runs of voxels of one class along x, in the order in which voxels lie in memory. If the smallest
// stride is that of z or y, a line along that axis is compared with the next line along x, without transposing the
// volume.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../base/bits.hpp"
#include "../exec/common/loop_order.hpp"
#include "../exec/cpu/cpu.hpp"
#include "classes.hpp"

namespace suture::detail {

// Calls f(i) for every index i where two lines of n elements differ, in ascending order.
template <class T, class F>
void each_difference(const T* a, const T* b, std::int64_t n, const F& f) {
  constexpr std::int64_t together = 64;
  const auto one_to_differ = [](const T* p, const T* q, std::int64_t count) {
    std::uint8_t differ[together] = {};
    for (std::int64_t i = 0; i < count; ++i) differ[i] = p[i] != q[i];
    return word_of_bytes(differ);
  };
  for (std::int64_t first = 0; first < n; first += together) {
    // The last group of 64 overlaps the one before it; bits that were reported are cleared.
    const std::int64_t at = n < together ? 0 : std::min(first, n - together);
    std::uint64_t bits = n < together ? one_to_differ(a, b, n) : one_to_differ(a + at, b + at, together);
    for (bits &= ~std::uint64_t{0} << (first - at); bits != 0; bits &= bits - 1) f(at + std::countr_zero(bits));
  }
}

// A division of a volume into tasks of whole rows along x, which are visited in the order of memory.
template <class Reader>
class class_rows {
  static constexpr std::int64_t most_tasks = 32;
  // Rows that are visited together: at least this many, or as many as have most_voxels.
  static constexpr std::int64_t side_by_side = 64, most_voxels = 1 << 18;

public:
  class_rows(const Reader& reader, const extent3& n, int threads) : reader_(reader), n_(n) {
    const std::uint8_t* order = nullptr;
    reader_.each_source([&](const auto& s) {
      if (order == nullptr) order = loop_axes[loops_in_memory(s.stride, {n[0], n[1], n[2]})];
    });
    dense_ = order[2];
    outer_ = order[0] != 2 ? order[0] : order[1];
    // Tasks divide the outer axis, or the other one of z and y if the outer axis has one voxel.
    shared_ = n[outer_] > 1 ? outer_ : 1 - outer_;
    const std::int64_t unit = shared_ == dense_ ? side_by_side : 1, units = (n[shared_] + unit - 1) / unit;
    // A few tasks per thread: joining their results costs time for each task.
    const std::int64_t count = thread_count(threads), tasks = count == 1 ? 1 : std::min(4 * count, most_tasks);
    of_task_ = (units + tasks - 1) / tasks * unit;
  }

  std::int64_t tasks() const { return (n_[shared_] + of_task_ - 1) / of_task_; }
  const Reader& reader() const { return reader_; }
  // Returns the axis with the smallest stride.
  int dense() const { return dense_; }
  struct zyx {
    std::int32_t at[3];
  };
  // Return the index of voxel x of a row, as (z, y, x) and as a linear index.
  zyx place(std::int64_t outer, std::int64_t row, std::int64_t x) const {
    const auto o = static_cast<std::int32_t>(outer), r = static_cast<std::int32_t>(row);
    return {{outer_ == 0 ? o : r, outer_ == 0 ? r : o, static_cast<std::int32_t>(x)}};
  }
  std::int64_t voxel(std::int64_t outer, std::int64_t row, std::int64_t x) const {
    return ((outer_ == 0 ? outer : row) * n_[1] + (outer_ == 0 ? row : outer)) * n_[2] + x;
  }
  // Prefetches `count` adjacent voxels along the axis with the smallest stride, the first at voxel x of this row.
  SUTURE_INLINE void prefetch(std::int64_t outer, std::int64_t row, std::int64_t count, std::int64_t x) const {
    reader_.each_source([&]<class T>(const strided<T>& s) SUTURE_INLINE_LAMBDA {
      const T* const line = s.data + (outer * s.stride[outer_] + row * s.stride[1 - outer_] + x * s.stride[2]);
      for (std::int64_t k = 0; k < count; k += static_cast<std::int64_t>(64 / sizeof(T)))
        __builtin_prefetch(line + k * s.stride[dense_], 0, 2);
      __builtin_prefetch(line + (count - 1) * s.stride[dense_], 0, 2);
    });
  }

  // Calls f(outer, row, count, ends) for the rows of a task: one at a time if x has the smallest stride, otherwise
  // `count` adjacent rows. `ends` states that these are the last rows of this index along the outer axis, z or y. A
  // task has all z of some y, or all y of some z.
  template <class F>
  void each_rows(std::int64_t task, const F& f) const {
    std::int64_t first[2] = {0, 0}, last[2] = {n_[0], n_[1]};
    first[shared_] = task * of_task_;
    last[shared_] = std::min(n_[shared_], first[shared_] + of_task_);
    const std::int64_t most = dense_ == 2 ? 1 : std::max(side_by_side, most_voxels / n_[2]), end = last[1 - outer_];
    for (std::int64_t outer = first[outer_]; outer < last[outer_]; ++outer)
      for (std::int64_t row = first[1 - outer_]; row < end; row += most)
        f(outer, row, std::min(most, end - row), row + most >= end);
  }

  // Calls run(z, y, class, x, length) for the runs of a task, row by row, by ascending y for each z. Adjacent runs may
  // be of the same class.
  template <class Run>
  void each_run(std::int64_t task, const Run& run) const {
    const auto& labels = reader_.labels;
    if (reader_.goes_by_label() && labels.stride[dense_] == 1)
      return compare(task, run, [&](const zyx& p, std::int64_t) {
        return labels.data + labels.offset(p.at[0], p.at[1], p.at[2]);
      });
    std::vector<std::uint16_t> classes[2];
    compare(task, run, [&](zyx p, std::int64_t count) {
      std::vector<std::uint16_t>& line = classes[p.at[2] % 2];
      line.resize(static_cast<std::size_t>(count));
      for (std::uint16_t& c : line) {
        c = static_cast<std::uint16_t>(reader_(p.at[0], p.at[1], p.at[2]).of_class);
        ++p.at[dense_];
      }
      return static_cast<const std::uint16_t*>(line.data());
    });
  }

private:
  // Finds the runs. line(index, count) returns `count` adjacent voxels along the axis with the smallest stride.
  template <class Run, class Line>
  void compare(std::int64_t task, const Run& run, const Line& line) const {
    struct run_end {
      std::int32_t x, of_class;
    };
    std::vector<run_end> ends;
    std::vector<std::int64_t> found;  // runs of each row
    const std::int64_t nx = n_[2];
    each_rows(task, [&](std::int64_t outer, std::int64_t row, std::int64_t count, bool) {
      ends.resize(static_cast<std::size_t>(count * nx));
      found.assign(static_cast<std::size_t>(count), 0);
      const auto end_run = [&](std::int64_t i, std::int64_t x) {
        const auto [z, y, before] = place(outer, row + i, x - 1).at;
        ends[static_cast<std::size_t>(i * nx + found[static_cast<std::size_t>(i)]++)] = {
            before + 1, reader_(z, y, before).of_class};
      };
      const auto* voxels = line(place(outer, row, 0), dense_ == 2 ? nx : count);
      if (dense_ == 2)
        each_difference(voxels, voxels + 1, nx - 1, [&](std::int64_t x) { end_run(0, x + 1); });
      else
        for (std::int64_t x = 1; x < nx; ++x) {
          prefetch(outer + 1, row, count, x);
          const auto* next = line(place(outer, row, x), count);
          each_difference(voxels, next, count, [&](std::int64_t i) { end_run(i, x); });
          voxels = next;
        }
      for (std::int64_t i = 0; i < count; ++i) {
        end_run(i, nx);
        const run_end* end = &ends[static_cast<std::size_t>(i * nx)];
        const auto [z, y, begin] = place(outer, row + i, 0).at;
        for (std::int32_t x = begin; x < nx; x = end++->x) run(z, y, end->of_class, x, end->x - x);
      }
    });
  }

  Reader reader_;
  extent3 n_;
  std::int64_t of_task_;
  int dense_, outer_, shared_;
};

}  // namespace suture::detail
