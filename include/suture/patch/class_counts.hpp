// SPDX-License-Identifier: Apache-2.0
// Counts of the voxels of each class in each block of a volume. Voxels are drawn from this small table, so that no
// lists of their indices are needed.
#pragma once

#include <atomic>
#include <cstddef>
#include <numeric>
#include <utility>

#include "../exec/cpu/run.hpp"
#include "class_rows.hpp"

namespace suture {

// The number of consecutive linear indices (z, y, x with x fastest) that make a block.
inline constexpr std::int64_t count_block = 4096;

// The counts of one sample, in the memory passed to count_classes.
struct class_counts {
  const std::uint64_t* totals = nullptr;  // classes + 2
  const std::uint32_t* counts = nullptr;  // (class, block)
  std::int64_t blocks = 0;
  std::int32_t classes = 0;

  // Returns the number of voxels of a class; for a weight map, the sum of the weights.
  std::uint64_t total(std::int32_t of_class) const { return totals[of_class]; }
  // Returns the number of voxels whose label is no class, or that are neither foreground nor background.
  std::uint64_t unclassified() const { return totals[classes]; }
  // Returns the number of voxels that are left out because their image is NaN or infinite.
  std::uint64_t nonfinite() const { return totals[classes + 1]; }
};

namespace detail {

// Layout of the tables of a batch: all totals, then the counts of each sample. It depends only on extents and classes,
// so a table that is copied from device to host has the same layout.
struct count_layout {
  std::vector<std::size_t> counts;  // byte offset of each sample's counts
  std::vector<std::int64_t> blocks;
  std::size_t totals_bytes = 0;
  std::size_t bytes = 0;
  std::int32_t classes = 0;

  template <class Classes>
  explicit count_layout(const Classes& map) : classes(map.classes) {
    totals_bytes = map.samples() * static_cast<std::size_t>(classes + 2) * sizeof(std::uint64_t);
    bytes = totals_bytes;
    for (std::size_t i = 0; i < map.samples(); ++i) {
      counts.push_back(bytes);
      blocks.push_back((map.grid(i).voxels() + count_block - 1) / count_block);
      const std::size_t size = static_cast<std::size_t>(blocks.back()) * static_cast<std::size_t>(classes);
      bytes += (size + 1) / 2 * 2 * sizeof(std::uint32_t);
    }
  }
  std::uint64_t* totals(std::byte* memory, std::size_t i) const {
    return reinterpret_cast<std::uint64_t*>(memory) + i * static_cast<std::size_t>(classes + 2);
  }
  class_counts at(const std::byte* memory, std::size_t i) const {
    return {totals(const_cast<std::byte*>(memory), i), reinterpret_cast<const std::uint32_t*>(memory + counts[i]),
            blocks[i], classes};
  }
};

inline void check_counts_memory(std::span<const std::byte> memory, const count_layout& l, std::string_view operation) {
  require(memory.size() >= l.bytes, {operation}, "counts of ", memory.size(), " bytes given, ", l.bytes, " needed");
  require(reinterpret_cast<std::uintptr_t>(memory.data()) % alignof(std::uint64_t) == 0, {operation}, "counts ",
          static_cast<const void*>(memory.data()), " are not aligned to ", alignof(std::uint64_t), " bytes");
}

// Checks that the output does not overlap the input.
template <class Classes>
void check_apart(const Classes& map, const void* data, std::size_t size, std::string_view operation,
                 std::string_view what) {
  const auto first = reinterpret_cast<std::uintptr_t>(data);
  map.for_each_range([&](const byte_range& r) {
    require(first + size <= r.first || first >= r.last, {operation}, what, " overlap an input in memory");
  });
}

// Checks the views of every sample and their counts by memory_check() of the executor.
template <class Check, class Classes>
void check_classes_memory(const Check& check, const Classes& map, std::string_view name, const void* counts) {
  std::size_t i = 0;
  map.for_each_range([&](const byte_range& r) {
    const site where{name, static_cast<std::int64_t>(i++ % map.samples())};
    check(reinterpret_cast<const void*>(r.first), where, "view: ");
  });
  check(counts, {name}, "counts: ");
}

template <class Classes>
count_layout check_count(const Classes& map, std::span<std::byte> counts) {
  map.check();
  const count_layout l(map);
  check_counts_memory(counts, l, "count_classes");
  check_apart(map, counts.data(), l.bytes, "count_classes", "counts");
  return l;
}

// Adds to the counts of a sample. The count of each class in its current block is kept here until the class is seen in
// another block, so that few additions go to the table. `alone` states that no other thread adds to it.
class block_counts {
public:
  block_counts(const count_layout& l, std::byte* memory, std::size_t sample, bool alone)
      : l_(l),
        table_(reinterpret_cast<std::uint32_t*>(memory + l.counts[sample])),
        totals_(l.totals(memory, sample)),
        blocks_(l.blocks[sample]),
        alone_(alone),
        pending_(static_cast<std::size_t>(l.classes + 2)) {}
  ~block_counts() {
    for (std::int32_t c = 0; c < l_.classes + 2; ++c) flush(c);
  }

  void add(std::int32_t c, std::int64_t block, std::uint64_t count) {
    pending_count& pending = pending_[static_cast<std::size_t>(c)];
    if (pending.block != block) {
      flush(c);
      pending.block = block;
    }
    pending.count += count;
  }

private:
  struct pending_count {
    std::int64_t block = 0;
    std::uint64_t count = 0;
  };
  void flush(std::int32_t c) {
    const auto [block, count] = std::exchange(pending_[static_cast<std::size_t>(c)], pending_count{});
    if (count == 0) return;
    if (c < l_.classes)
      add_to(table_[c * blocks_ + block], static_cast<std::uint32_t>(count));
    else
      add_to(totals_[c], count);
  }
  template <class T>
  void add_to(T& sum, T count) const {
    if (alone_)
      sum += count;
    else
      std::atomic_ref(sum).fetch_add(count, std::memory_order_relaxed);
  }

  const count_layout& l_;
  std::uint32_t* table_;
  std::uint64_t* totals_;
  std::int64_t blocks_;
  bool alone_;
  std::vector<pending_count> pending_;
};

// Adds `count` adjacent voxels along an axis, from index `at` on, to sums by class: voxel i of class c to sums[c *
// class_stride + i], or to sums[c] if class_stride is 0.
template <class Reader, class Sum>
void add_line(const Reader& reader, const std::int32_t (&at)[3], int axis, std::int64_t count, Sum* sums,
              std::int64_t class_stride) {
  std::int32_t place[3] = {at[0], at[1], at[2]};
  for (std::int64_t i = 0; i < count; ++i, ++place[axis]) {
    const weighted_class c = reader(place[0], place[1], place[2]);
    Sum& sum = sums[class_stride == 0 ? c.of_class : c.of_class * class_stride + i];
    sum = static_cast<Sum>(sum + c.weight);
  }
}
template <class W>
void add_line(const weight_reader<W>& reader, const std::int32_t (&at)[3], int axis, std::int64_t count,
              std::uint32_t* sums, std::int64_t class_stride) {
  const auto& [weights, first, last] = reader;
  std::int64_t begin = 0, end = count;
  for (int k = 0; k < 3; ++k)
    if (k == axis) {
      begin = std::max<std::int64_t>(begin, first[k] - at[k]);
      end = std::min<std::int64_t>(end, last[k] + 1 - at[k]);
    } else if (at[k] < first[k] || at[k] > last[k]) {
      return;
    }
  const W* weight = weights.data + weights.offset(at[0], at[1], at[2]);
  const auto add = [&](auto step) {
    if (class_stride != 0)
      for (std::int64_t i = begin; i < end; ++i) sums[i] += weight[i * step];
    else
      for (std::int64_t i = begin; i < end; ++i) *sums += weight[i * step];
  };
  if (weights.stride[axis] == 1)
    add(std::integral_constant<std::int64_t, 1>{});
  else
    add(weights.stride[axis]);
}

// Counts labels and an image of one channel each without branches that depend on a voxel.
template <class L, class I>
void add_line(const foreground_reader<L, I>& reader, const std::int32_t (&at)[3], int axis, std::int64_t count,
              std::uint16_t* sums, std::int64_t class_stride) {
  const auto& labels = reader.labels;
  const auto& image = reader.image;
  const float threshold = reader.threshold;
  if (image.data == nullptr || labels.channels != 1 || image.channels != 1 || labels.stride[axis] != 1 ||
      image.stride[axis] != 1)
    return add_line<foreground_reader<L, I>, std::uint16_t>(reader, at, axis, count, sums, class_stride);
  const L* label = labels.data + labels.offset(at[0], at[1], at[2]);
  const I* value = image.data + image.offset(at[0], at[1], at[2]);
  // Foreground is counted; the other voxels count where they are finite, and where they are above the threshold.
  const auto add = [&](std::int64_t i, std::uint32_t& above, std::uint32_t& foreground, std::uint32_t& finite) {
    const float v = storage<I>::load(value[i]);
    const std::uint32_t is_foreground = label[i] > 0 ? 1 : 0;
    const std::uint32_t is_finite = (float_bits(v) & 0x7f800000u) != 0x7f800000u ? 1 : 0;
    const std::uint32_t is_above = v > threshold ? 1 : 0;
    foreground += is_foreground;
    finite += (is_foreground ^ 1) & is_finite;
    above += (is_foreground ^ 1) & is_finite & is_above;
  };
  const auto add_to = [](std::uint16_t& sum, std::uint32_t more) { sum = static_cast<std::uint16_t>(sum + more); };
  if (class_stride == 0) {
    std::uint32_t above = 0, foreground = 0, finite = 0;
    for (std::int64_t i = 0; i < count; ++i) add(i, above, foreground, finite);
    add_to(sums[0], above);
    add_to(sums[1], foreground);
    add_to(sums[2], finite - above);
    add_to(sums[3], static_cast<std::uint32_t>(count) - foreground - finite);
    return;
  }
  std::uint16_t* __restrict const of_class[4] = {sums, sums + class_stride, sums + 2 * class_stride,
                                                 sums + 3 * class_stride};
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint32_t above = 0, foreground = 0, finite = 0;
    add(i, above, foreground, finite);
    add_to(of_class[0][i], above);
    add_to(of_class[1][i], foreground);
    add_to(of_class[2][i], finite - above);
    add_to(of_class[3][i], 1 - foreground - finite);
  }
}

// Counts voxel by voxel, in lines along the axis with the smallest stride. If that is not x, each row has sums of its
// own, which are added to the table where the row enters another block.
template <class Reader>
void count_voxels(const class_rows<Reader>& rows, std::int64_t task, const extent3& n, std::int32_t classes,
                  block_counts& to) {
  constexpr bool counted = requires { rows.reader().labels; };  // else weights, which may add up to more in a block
  using Sum = std::conditional_t<counted, std::uint16_t, std::uint32_t>;
  std::vector<Sum> sums;
  rows.each_rows(task, [&](std::int64_t outer, std::int64_t row, std::int64_t count, bool ends) {
    const int dense = rows.dense();
    const std::int64_t begin = rows.voxel(outer, row, 0), next = rows.voxel(outer, row + 1, 0) - begin;
    // Sums continue in the next call only if rows are counted along x and the next row follows in linear order.
    const bool leaves = dense != 2 || ends || next != n[2];
    sums.resize(static_cast<std::size_t>(count * (classes + 2)));
    for (std::int64_t x = 0, end; x < n[2]; x = end) {
      end = n[2];
      for (std::int64_t i = 0; i < count; ++i)
        end = std::min(end, x + count_block - (begin + i * next + x) % count_block);
      if (dense == 2)
        add_line(rows.reader(), rows.place(outer, row, x).at, 2, end - x, sums.data(), 0);
      else
        for (std::int64_t k = x; k < end; ++k) {
          rows.prefetch(outer + 1, row, count, k);
          add_line(rows.reader(), rows.place(outer, row, k).at, dense, count, sums.data(), count);
        }
      for (std::int64_t i = 0; i < count; ++i)
        if (const std::int64_t voxel = begin + i * next + end; voxel % count_block == 0 || (end == n[2] && leaves))
          for (std::int32_t c = 0; c < classes + 2; ++c)
            if (Sum& sum = sums[static_cast<std::size_t>(c * count + i)]; sum != 0)
              to.add(c, (voxel - 1) / count_block, std::exchange(sum, Sum{}));
    }
  });
}

}  // namespace detail

// Returns the bytes that count_classes writes for a batch, the same on either executor.
template <class Classes>
std::size_t class_counts_bytes(const Classes& map) {
  map.check();
  return detail::count_layout(map).bytes;
}

// Counts the voxels of each class of each sample in blocks of 4096 linear indices and writes the table to `counts`,
// which has class_counts_bytes bytes, aligned to 8. Every executor and number of threads gives the same table.
//   map: label_classes(...), foreground_background(...) or weight_map(...).
// Errors: an empty batch, a view that cannot be read, extents that differ, too little memory, overlapping memory.
template <class Classes>
void count_classes(const cpu& exec, const Classes& map, std::span<std::byte> counts) {
  const detail::count_layout l = detail::check_count(map, counts);
  detail::check_classes_memory(detail::memory_check(exec), map, "count_classes", counts.data());
  std::fill_n(counts.data(), l.bytes, std::byte{0});
  for (std::size_t i = 0; i < map.samples(); ++i) {
    const extent3& n = map.grid(i).extents;
    const detail::class_rows rows(map.reader(i), n, exec.threads);
    detail::parallel_for(exec.threads, rows.tasks(), [&](std::int64_t task) {
      detail::block_counts to(l, counts.data(), i, rows.tasks() == 1);
      if constexpr (requires { map.labels; })
        if (rows.reader().goes_by_label())
          return rows.each_run(
              task, [&](std::int32_t z, std::int32_t y, std::int32_t c, std::int32_t x, std::int32_t length) {
                std::int64_t voxel = (z * n[1] + y) * n[2] + x;
                for (std::int64_t left = length, count; left > 0; left -= count, voxel += count) {
                  count = std::min(left, count_block - voxel % count_block);
                  to.add(c, voxel / count_block, static_cast<std::uint64_t>(count));
                }
              });
      detail::count_voxels(rows, task, n, l.classes, to);
    });
    const std::uint32_t* table = reinterpret_cast<const std::uint32_t*>(counts.data() + l.counts[i]);
    for (std::int32_t c = 0; c < l.classes; ++c, table += l.blocks[i])
      l.totals(counts.data(), i)[c] = std::accumulate(table, table + l.blocks[i], std::uint64_t{0});
  }
}

// Returns the counts of sample i, which refer to `counts` and do not copy it. A table of a device must be copied to the
// host first.
template <class Classes>
class_counts counts_of(const Classes& map, std::span<const std::byte> counts, std::size_t i) {
  const detail::count_layout l(map);
  detail::check_counts_memory(counts, l, "counts_of");
  require(i < map.samples(), {"counts_of"}, "no sample ", i, " in a batch of ", map.samples());
  return l.at(counts.data(), i);
}

}  // namespace suture
