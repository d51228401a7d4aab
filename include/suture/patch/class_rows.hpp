// SPDX-License-Identifier: Apache-2.0
// Rows along x of what a rule reads, whatever axis is densest in memory: where that is z or y, as many as 32 rows side by
// side are transposed into a buffer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../base/simd.hpp"
#include "../exec/common/loop_order.hpp"
#include "../exec/cpu/cpu.hpp"
#include "classes.hpp"

namespace suture::detail {

// run(class, x, length) for the runs of voxels of one class along x in [x, end). Where labels tell, two runs may be of
// one class.
template <class Reader, class Run>
void each_run(const Reader& reader, std::int32_t z, std::int32_t y, std::int32_t x, std::int32_t end, const Run& run) {
  const bool by_label = reader.goes_by_label() && reader.labels.stride[2] == 1;
  for (std::int32_t next; x < end; x = next) {
    const std::int32_t of_class = reader(z, y, x).of_class;
    if (by_label) {
      next = x + equal_labels(reader.labels, z, y, x, end);
    } else {
      next = x + 1;
      while (next < end && reader(z, y, next).of_class == of_class) ++next;
    }
    run(of_class, x, next - x);
  }
}

template <class Reader>
class class_rows {
  static constexpr std::int64_t side_by_side = 32, most_tasks = 32;

public:
  class_rows(const Reader& reader, const extent3& n, int threads) : reader_(reader), n_(n) {
    const std::uint8_t* order = nullptr;
    reader_.each_source([&](const auto& s) {
      if (order == nullptr) order = loop_axes[loops_in_memory(s.stride, {n[0], n[1], n[2]})];
    });
    dense_ = order[2];
    outer_ = order[0] != 2 ? order[0] : order[1];
    inner_ = 1 - outer_;
    // Rows are shared out along the outer axis, unless that is one voxel; then by tiles.
    shared_ = n[outer_] > 1 ? outer_ : inner_;
    const std::int64_t unit = shared_ == dense_ ? side_by_side : 1, units = (n[shared_] + unit - 1) / unit;
    // A few tasks for each thread: putting together what they find costs time for each of them.
    const std::int64_t count = thread_count(threads), tasks = count == 1 ? 1 : std::min(4 * count, most_tasks);
    of_task_ = (units + tasks - 1) / tasks * unit;
  }

  std::int64_t tasks() const { return (n_[shared_] + of_task_ - 1) / of_task_; }

  // Calls f(reader, z, y) for every row of a task, by ascending y for each z; the reader serves that row alone. A task
  // has all z of some y, or all y of some z.
  template <class F>
  void operator()(std::int64_t task, const F& f) const {
    std::int64_t first[2] = {0, 0}, last[2] = {n_[0], n_[1]}, at[2];
    first[shared_] = task * of_task_;
    last[shared_] = std::min(n_[shared_], first[shared_] + of_task_);
    const std::int64_t step = inner_ == dense_ ? side_by_side : 1;
    const Reader reader = reader_;
    tile_buffer buffer;
    for (at[outer_] = first[outer_]; at[outer_] < last[outer_]; ++at[outer_])
      for (at[inner_] = first[inner_]; at[inner_] < last[inner_]; at[inner_] += step) {
        if (step == 1)
          f(reader, static_cast<std::int32_t>(at[0]), static_cast<std::int32_t>(at[1]));
        else
          tile(at[0], at[1], std::min(step, last[inner_] - at[inner_]), buffer, f);
      }
  }

private:
  using tile_buffer = std::vector<std::byte>[2];  // for each source

  template <class F>
  void tile(std::int64_t z, std::int64_t y, std::int64_t count, tile_buffer& buffer, const F& f) const {
    Reader rows = reader_;
    int source = 0;
    rows.each_source([&]<class T>(strided<T>& s) {
      std::vector<std::byte>& memory = buffer[source++];
      const std::int64_t area = side_by_side * n_[2];
      memory.resize(static_cast<std::size_t>(s.channels * area) * sizeof(T));
      T* const to = reinterpret_cast<T*>(memory.data());
      for (std::int32_t c = 0; c < s.channels; ++c)
        turn(s.data + c * s.channel_stride + z * s.stride[0] + y * s.stride[1], s.stride, count, to + c * area);
      s = {to, {0, 0, 1}, area, s.channels};
    });
    for (std::int64_t i = 0; i < count; ++i) {
      const Reader row = rows;
      f(row, static_cast<std::int32_t>(dense_ == 0 ? z + i : z), static_cast<std::int32_t>(dense_ == 0 ? y : y + i));
      rows.each_source([&](auto& s) { s.data += n_[2]; });
    }
  }

  template <class T>
  void turn(const T* from, const std::int64_t (&stride)[3], std::int64_t count, T* to) const {
    if (stride[dense_] == 1) {
      const char* next = reinterpret_cast<const char*>(from + stride[outer_]);
      for (std::int64_t x = 0; x < n_[2]; ++x, next += stride[2] * static_cast<std::int64_t>(sizeof(T)))
        for (std::size_t byte = 0; byte < side_by_side * sizeof(T); byte += 64) __builtin_prefetch(next + byte);
      return simd::transpose(from, stride[2], static_cast<int>(n_[2]), static_cast<int>(count), to, n_[2]);
    }
    for (std::int64_t x = 0; x < n_[2]; ++x)
      for (std::int64_t i = 0; i < count; ++i) to[i * n_[2] + x] = from[x * stride[2] + i * stride[dense_]];
  }

  Reader reader_;
  extent3 n_;
  std::int64_t of_task_;
  int dense_, outer_, inner_, shared_;
};

}  // namespace suture::detail
